/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of the connection manager (facts.h). Called while somebody judges, but for the last one. */
#ifndef UR_AN_TELL_CM_H
#define UR_AN_TELL_CM_H

#include "analyze/state/cm_facts.h"

/* A message, which is counted already; `back`: from the side that was asked. */
void an_tell_cm(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, enum ur_cm_attr attr, bool back);
void an_tell_sidr(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, uint8_t status);
void an_tell_rej(struct ur_analysis *a, const struct an_pkt *p, uint16_t reason);
/* A REP with an id that is not the one of the REP before; `c`: the exchange that it may be of, or NULL. */
void an_tell_other_rep(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p);
/* A DREQ of side `from` was not answered. */
void an_tell_no_drep(struct ur_analysis *a, const struct an_cm *c, unsigned from);
void an_tell_cm_end(struct ur_analysis *a, const struct an_cm *c);

#endif
