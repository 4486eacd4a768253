/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the verdict on a request packet. */
#ifndef UR_VERDICTS_H
#define UR_VERDICTS_H

#include "transport/state/verdict.h"
#include "transport/transport.h"

/* `p` has been executed, refused or kept: tells the peer and the program what the verdict says they are told. */
void ur_resp_conclude(struct ur_qp *qp, enum ur_resp_verdict v, const struct ur_pkt *p);
/* Refuses the request at `psn` for good: NAK, completion of a current receive, event, ERR. */
void ur_resp_refuse(struct ur_qp *qp, enum ur_resp_verdict v, uint32_t psn);

#endif
