/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with a wrong ICRC: which bit is wrong, or that all of a direction are; and the place that each has among the others. */
#ifndef UR_AN_DAMAGE_H
#define UR_AN_DAMAGE_H

#include "analyze/state/state.h"

void an_damage(struct ur_analysis *a, const struct an_pkt *p);
/* Counts a packet that no receiver takes, whatever is wrong with it, with its flow, which it returns; NULL when there is none. */
struct an_flow *an_damage_note(struct ur_analysis *a, const struct an_pkt *p);
/* A packet without damage, once there were others. */
void an_damage_none(struct ur_analysis *a, const struct an_pkt *p);
void an_damage_finish(struct ur_analysis *a);
void an_damage_fini(struct ur_analysis *a);

#endif
