/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_AN_DATAGRAM_H
#define UR_AN_DATAGRAM_H

#include "analyze/state/state.h"

/* A datagram that is no message of the connection manager. */
void an_datagram(struct ur_analysis *a, const struct an_pkt *p);
void an_datagram_finish(struct ur_analysis *a);
void an_datagram_fini(struct ur_analysis *a);

#endif
