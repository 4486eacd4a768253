/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_APP_BETWEEN_WAIT_H
#define UR_APP_BETWEEN_WAIT_H

#include <poll.h>
#include <signal.h>

#include "base/base.h"

struct ur_between_wait {
	ur_time now;
	ur_time due;   /* to the microsecond: the wait ends before, so that little is left */
	ur_time other; /* what need not be as exact */
	bool asks;     /* there is an end without a descriptor */
	ur_time last;  /* when the last frame came */
};

/* `realtime`: before all other processes. False after a message. */
bool ur_between_wait_begin(bool realtime);
/* False when there was a signal. */
bool ur_between_wait(const struct ur_between_wait *w, struct pollfd *fds, unsigned n, const sigset_t *unblocked);

#endif
