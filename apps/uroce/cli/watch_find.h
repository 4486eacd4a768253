/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes of this host that use uroce and that the caller may inspect: those of this user, and for root all. */
#ifndef UR_WATCH_FIND_H
#define UR_WATCH_FIND_H

#include "watch/watch.h"

/* NULL, with errno, when /proc cannot be read or memory is short. */
struct ur_watch_sample *ur_watch_find(void);
/* Harmless for NULL. */
void ur_watch_free(struct ur_watch_sample *sample);

#endif
