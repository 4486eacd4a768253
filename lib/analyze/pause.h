/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_AN_PAUSE_H
#define UR_AN_PAUSE_H

#include "analyze/state.h"

/* A frame without a RoCEv2 packet: notes it when it is a pause frame. */
void an_pause(struct ur_analysis *a, const struct an_pkt *p, const struct ur_an_frame *f);
/* One finding for each station that sent some. */
void an_pause_finish(struct ur_analysis *a);

#endif
