/* SPDX-License-Identifier: BSD-3-Clause */
/* What is decided at the end of a flow. */
#ifndef UR_AN_FINISH_H
#define UR_AN_FINISH_H

#include "analyze/state/state.h"

void an_flow_finish(struct ur_analysis *a, struct an_flow *f);

#endif
