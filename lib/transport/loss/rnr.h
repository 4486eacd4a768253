/* SPDX-License-Identifier: BSD-3-Clause */
/* After an RNR NAK: the wait, and the one packet that asks whether the peer is ready now. */
#ifndef UR_TRANSPORT_RNR_H
#define UR_TRANSPORT_RNR_H

#include "transport/transport.h"

struct ur_requester;

/*
 * How long to wait after an RNR NAK whose timer is `asked` ns, where the request has been refused for `refused` ns: `asked` at least, and
 * longer than that by a quarter of `refused` at most.
 */
ur_time ur_rnr_wait(ur_time asked, ur_time refused);
/* Something was acknowledged: what was refused has been taken. */
void ur_rnr_progress(struct ur_requester *r);
/* A sequence error NAK has come: is it of what the peer has thrown away? Of one for each refusal it is taken to be. */
bool ur_rnr_explains_nak(struct ur_requester *r);
/* The request at `una` was refused, and may be sent again once `asked` ns have passed. */
void ur_rnr_begin(struct ur_qp *qp, ur_time asked, ur_time now);
/* The QP's timer has expired: is it for this? */
bool ur_rnr_is_due(const struct ur_requester *r);
/* The wait is over: the packet asks, or asks again. */
void ur_rnr_expired(struct ur_qp *qp, ur_time now);

#endif
