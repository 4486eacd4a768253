/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and the SRQs that an XRC_RECV QP has for one packet. */
#ifndef UR_XRC_H
#define UR_XRC_H

#include "transport/state/verdict.h"

/* The PD of an XRC_RECV QP while no SRQ lends one: nothing belongs to it. (Memory windows have NULL.) */
extern struct ur_pd ur_xrc_no_pd;
void ur_xrcd_use(struct ur_xrcd *xrcd, int n);
/* The XRC_RECV QP receives a request that names SRQ `srqn`: from here on it has its PD, CQ and WQEs. A verdict unless it may. */
enum ur_resp_verdict ur_xrc_bind(struct ur_qp *qp, uint32_t srqn);
/* For a READ that was accepted earlier: the PD of its SRQ, or none when that has gone. */
void ur_xrc_lend_pd(struct ur_qp *qp, uint32_t srqn);
/* The SRQ goes: QPs that hold a WQE of it lose that. */
void ur_xrc_forget(struct ur_srq *srq);

#endif
