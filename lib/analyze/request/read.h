/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that carry data. */
#ifndef UR_AN_READ_H
#define UR_AN_READ_H

#include "analyze/state/state.h"

void an_read_answer(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint32_t at, uint64_t psn);

/* The answer `p` is not of the kind that the request `r` takes. */
void an_report_kind(struct ur_analysis *a, struct an_flow *f, const struct an_req *r, const struct an_pkt *p);

#endif
