/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come again. */
#ifndef UR_AN_REPEAT_H
#define UR_AN_REPEAT_H

#include "analyze/state/state.h"

void an_repeat(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn);

#endif
