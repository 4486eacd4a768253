/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester sends once more while it stays where it is: tail probes, and what was lost. */
#ifndef UR_RETRANSMIT_H
#define UR_RETRANSMIT_H

#include "transport/transport.h"

/* Sends the packet of a probe. False: there was no buffer, which is as if it had been lost, or nothing to send. */
bool ur_retransmit_probe(struct ur_qp *qp);
/*
 * What is lost and comes first of that: packets as they were, READs by the range that is missing. At most `at_most` packets; returns how
 * many.
 */
unsigned ur_retransmit_lost(struct ur_qp *qp, unsigned at_most);

#endif
