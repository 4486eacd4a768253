/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the connection manager. */
#ifndef UR_AN_CM_H
#define UR_AN_CM_H

#include "analyze/state/state.h"

void an_cm_packet(struct ur_analysis *a, const struct an_pkt *p);
void an_cm_finish(struct ur_analysis *a);
/* The flow goes. */
void an_cm_leave(struct an_flow *f);
/* Exchanges that are older, and that no flow belongs to, go. */
void an_cms_forget(struct ur_analysis *a, ur_time since);
void an_cms_fini(struct ur_analysis *a);

#endif
