/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a flow has been answered. */
#ifndef UR_AN_ACKED_H
#define UR_AN_ACKED_H

#include "analyze/state/state.h"

/* Everything before `psn` has been answered. */
void an_acked(struct ur_analysis *a, struct an_flow *f, uint64_t psn, const struct an_pkt *p);
/* The oldest faulty request without an answer is accepted. */
void an_report_taken(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);
/* Request `psn` is answered: a fatal NAK before it has ended the QP. */
void an_check_ended(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn);
/* Whether it was compared with what is known, and is right. */
bool an_check_msn(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p, uint32_t msn, bool exact,
		  bool held);

#endif
