/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues inside lib/transport. */
#ifndef UR_SRQ_H
#define UR_SRQ_H

#include "transport/ring.h"
#include "transport/transport.h"
#include "transport/wqe.h"

/* Written by the NIC but for the ring's tail, as an RQ is; several application threads that post take a lock above this layer. */
struct ur_srq {
	struct ur_tp *tp;
	struct ur_pd *pd;     /* receives are checked against it, whatever domain the QP is in */
	struct ur_xrcd *xrcd; /* NULL: a basic one */
	struct ur_cq *cq;     /* likewise */
	uint32_t num;
	unsigned users;      /* QPs made with it */
	uint32_t limit;      /* 0: not armed */
	uint32_t head, tail; /* ring indices: next to take, last seen tail */
	atomic_bool failed;
	void *context;
	void (*event)(struct ur_srq *srq, enum ibv_event_type ev);
	struct ur_ring ring;
};

bool ur_srq_ready(struct ur_srq *srq);
/* Moves the oldest WQE into `copy`, whose slot is free at once. False when there is none. */
bool ur_srq_take(struct ur_srq *srq, struct ur_rwqe *copy);
/* A completion of an XRC SRQ was lost. */
void ur_srq_fail(struct ur_srq *srq);

#endif
