/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_AN_PAUSE_H
#define UR_AN_PAUSE_H

#include "analyze/state/state.h"

#define AN_PAUSE_ALL (1u << 8) /* not of single priorities */

/* Of a frame without a RoCEv2 packet: is it a pause frame, and of which priorities may nothing be sent any more? None: it ends a pause. */
bool an_pause_read(const struct an_pkt *p, const struct ur_an_frame *f, uint32_t *which);
/* A frame without a RoCEv2 packet: notes it when it is a pause frame. */
void an_pause(struct ur_analysis *a, const struct an_pkt *p, const struct ur_an_frame *f);
/* One finding for each station that sent some. */
void an_pause_finish(struct ur_analysis *a);

#endif
