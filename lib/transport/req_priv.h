/* SPDX-License-Identifier: BSD-3-Clause */
/* What requester.c builds packets with, for what is sent once more (again.c). */
#ifndef UR_REQ_PRIV_H
#define UR_REQ_PRIV_H

#include "transport/transport.h"

struct ur_swqe;

/* The next packet is that of `psn`, in the WQE `index`. */
void ur_req_go_to(struct ur_qp *qp, uint32_t index, uint32_t psn);
/* The next packet of a SEND or WRITE; returns what builders do (req_sent.h). */
int ur_req_build_data(struct ur_qp *qp, struct ur_swqe *w);
/* After a packet of `w`: the middle packets that follow it, as a run of at most `most`; returns how many. */
uint32_t ur_req_build_middles(struct ur_qp *qp, struct ur_swqe *w, uint32_t most);

#endif
