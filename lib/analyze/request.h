/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that come for the first time. */
#ifndef UR_AN_REQUEST_H
#define UR_AN_REQUEST_H

#include "analyze/state.h"

void an_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p);

#endif
