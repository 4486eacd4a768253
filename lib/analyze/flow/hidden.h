/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of a train that the recorder has cut off. */
#ifndef UR_AN_HIDDEN_H
#define UR_AN_HIDDEN_H

#include "analyze/state/state.h"

/*
 * A packet that was cut, and is too long for one: makes it the first of its train, and counts those after it. `mtu` is the path MTU, or 0;
 * returns it, or what it must be.
 */
uint32_t an_hidden_count(struct an_pkt *p, uint32_t mtu);
/* Once the packet before them has been dealt with. */
void an_requests_behind(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
void an_answers_behind(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
/* A message of which the first packet was here, and not the last: that was cut off, or missed. */
void an_count_open(struct an_flow *f);
/* `psn` comes next: corrects how many requests were after the last one. */
void an_requests_settle(struct an_flow *f, uint64_t psn);
/*
 * PSNs up to `psn` are not here: true when they were after the last request, which nothing but this shows. Only when other frames held
 * several packets, too.
 */
bool an_requests_jumped(struct ur_analysis *a, struct an_flow *f, uint64_t psn);

#endif
