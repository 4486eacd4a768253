/* SPDX-License-Identifier: BSD-3-Clause */
/* What SACKs say (doc/wire-extensions.md). */
#ifndef UR_AN_SACKS_H
#define UR_AN_SACKS_H

#include "analyze/state/state.h"
#include "wire/sack.h"

/* False when it is none, cut, or malformed. */
bool an_sack_get(const struct an_pkt *p, struct ur_sack *s);
/* Notes which requests are missing at the receiver, beside what was sent later and has arrived. `psn` is that of the SACK, unwrapped. */
void an_sack_missing(struct an_flow *f, const struct an_pkt *p, uint64_t psn);

#endif
