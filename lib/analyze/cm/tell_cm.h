/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts of the connection manager (rules.h): nothing while nobody judges. */
#ifndef UR_AN_TELL_CM_H
#define UR_AN_TELL_CM_H

#include "analyze/state/cm_facts.h"

/* A message, which is counted already; `back`: from the side that was asked. */
void an_tell_cm(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, enum ur_cm_attr attr, bool back);
void an_tell_sidr(struct ur_analysis *a, const struct an_cm *c, const struct an_pkt *p, uint8_t status);
void an_tell_rej(struct ur_analysis *a, const struct an_pkt *p, uint16_t reason);
void an_tell_cm_end(struct ur_analysis *a, const struct an_cm *c);

#endif
