/* SPDX-License-Identifier: BSD-3-Clause */
/* Saying what was found. */
#ifndef UR_AN_REPORT_H
#define UR_AN_REPORT_H

#include "analyze/state/state.h"

void an_report(struct ur_analysis *a, const struct ur_finding *f);
/* The same about packet `p` alone, with its addresses. */
void an_report_packet(struct ur_analysis *a, const struct an_pkt *p, struct ur_finding f);
/* The same about a flow: source, destination and QPN are its own. */
void an_report_on(struct ur_analysis *a, struct an_flow *fl, struct ur_finding f);
/* Both: about a flow, and frame and time are those of `p`. */
void an_report_at(struct ur_analysis *a, struct an_flow *fl, const struct an_pkt *p, struct ur_finding f);

#endif
