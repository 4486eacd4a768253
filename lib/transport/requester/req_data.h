/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of SENDs and WRITEs. */
#ifndef UR_REQ_DATA_H
#define UR_REQ_DATA_H

#include "transport/transport.h"

struct ur_swqe;

/* The next packet of a SEND or WRITE; returns what builders do (req_sent.h). */
int ur_req_build_data(struct ur_qp *qp, struct ur_swqe *w);
/* After a packet of `w`: the middle packets that follow it, as a run of at most `most`; returns how many. */
uint32_t ur_req_build_middles(struct ur_qp *qp, struct ur_swqe *w, uint32_t most);
/* A packet, and those that follow it in its middle, or in messages like it: at most n. Returns how many, and in *st what builders do. */
unsigned ur_req_build_some(struct ur_qp *qp, struct ur_swqe *w, unsigned n, int *st);

#endif
