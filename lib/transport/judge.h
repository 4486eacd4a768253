/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets are lost. */
#ifndef UR_JUDGE_H
#define UR_JUDGE_H

#include "transport/repair.h"

/* What has not arrived of the first `n` PSNs of a repeat is lost; the rest stays. */
void ur_judge_lost(struct ur_requester *r, struct ur_repeat *e, uint32_t n);

#endif
