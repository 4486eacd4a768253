/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and responses that are missing: what became of them is reported once. */
#ifndef UR_AN_HOLES_H
#define UR_AN_HOLES_H

#include "analyze/state/state.h"

/* A hole ends: says what became of it. `place` is where, `by` the frame that shows it. */
void an_report_hole(struct ur_analysis *a, struct an_flow *f, struct an_req *r, enum ur_an_place place, uint32_t by, ur_time when);
/* Number `i` of the window, a READ, takes the place of the holes after it that are its own, by its length. */
void an_widen(struct an_flow *f, uint32_t i);
/* Says what became of the responses that a record lacks. */
void an_report_read_gap(struct ur_analysis *a, struct an_flow *f, struct an_req *r, enum ur_an_place place);
/* The same when the requester goes on at `now`: it has what it had asked for again. */
void an_report_again_gap(struct ur_analysis *a, struct an_flow *f, struct an_req *r, ur_time now);
/* Answers to the records from `from` to before `end` are due: marks those that have not come. Whether they will be asked for again is still
 * open. */
void an_responses_due(struct an_flow *f, uint32_t from, uint32_t end, const struct an_pkt *p);

#endif
