/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues and XRC domains inside lib/transport. */
#ifndef UR_SRQ_H
#define UR_SRQ_H

#include "transport/tp_priv.h"

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

/* Bytes of a receive WQE with so many elements. */
static inline uint32_t ur_recv_stride(uint32_t max_sge)
{
	return (uint32_t)(sizeof(struct ur_rwqe) + max_sge * sizeof(struct ibv_sge));
}

/* --- srq.c --- */

bool ur_srq_ready(struct ur_srq *srq);
/* Moves the oldest WQE into `copy`, whose slot is free at once. False when there is none. */
bool ur_srq_take(struct ur_srq *srq, struct ur_rwqe *copy);
/* A completion of an XRC SRQ was lost. */
void ur_srq_fail(struct ur_srq *srq);

/* --- xrc.c --- */

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
