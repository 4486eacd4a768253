/* SPDX-License-Identifier: BSD-3-Clause */
/* What a shared receive queue is made of. */
#ifndef UR_SRQ_PRIV_H
#define UR_SRQ_PRIV_H

#include "base/spin.h"
#include "transport/state/ring.h"
#include "transport/transport.h"

/* Written by the NIC except for the ring's tail, as an RQ is; several application threads that post take a lock above this layer. */
struct ur_srq {
	struct ur_tp *tp;
	struct ur_pd *pd;     /* receives are checked against it, whatever domain the QP is in */
	struct ur_xrcd *xrcd; /* NULL: a basic one */
	struct ur_cq *cq;     /* likewise */
	uint32_t num;
	atomic_uint users;   /* QPs made with it */
	bool shared;         /* they are of several lanes, which take turns */
	struct ur_spin takers;
	uint32_t limit;      /* 0: not armed */
	uint32_t head, tail; /* ring indices: next to take, last seen tail */
	atomic_bool failed;
	void *context;
	void (*event)(struct ur_srq *srq, enum ibv_event_type ev);
	struct ur_ring ring;
};

#endif
