/* SPDX-License-Identifier: BSD-3-Clause */
/* What the responder sends: acknowledgements, and answers from the resource table. */
#ifndef UR_RESP_TX_H
#define UR_RESP_TX_H

#include "transport/transport.h"

/* As ur_req_build. */
unsigned ur_resp_build(struct ur_qp *qp, unsigned n, ur_time now, bool *more);
/* What it has to send is an acknowledgement of whole messages, and no more. */
bool ur_resp_has_last_ack_only(const struct ur_qp *qp);

#endif
