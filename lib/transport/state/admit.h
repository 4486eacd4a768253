/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a QP takes a received packet: its state, the partition, and where the packet comes from. The service is the caller's to judge. */
#ifndef UR_ADMIT_H
#define UR_ADMIT_H

#include "transport/state/qp_priv.h"
#include "wire/bulk.h"
#include "wire/frame.h"

enum { UR_RX_REQUESTS = 1, UR_RX_RESPONSES = 2, UR_RX_BOTH = 3 };

/* From whom a QP takes packets. */
enum ur_rx_from {
	UR_RX_FROM_ANYBODY, /* datagrams */
	UR_RX_FROM_PEER,    /* over the network */
	UR_RX_FROM_LOCAL,   /* the peer is a QP of a process of this host, and the packet comes from there */
};

#define UR_ADMITTED UR_C_COUNT /* no counter of drops */

/* Which of requests and responses a QP takes in this state. */
static inline unsigned ur_rx_allowed(enum ibv_qp_state st)
{
	static const uint8_t allowed[] = {
		[IBV_QPS_RESET] = 0,        [IBV_QPS_INIT] = 0,         [IBV_QPS_RTR] = UR_RX_REQUESTS,
		[IBV_QPS_RTS] = UR_RX_BOTH, [IBV_QPS_SQD] = UR_RX_BOTH, [IBV_QPS_SQE] = UR_RX_REQUESTS,
		[IBV_QPS_ERR] = 0,
	};

	return allowed[st];
}

/* XRC divides the two directions between two types (annex A14). */
static inline bool ur_rx_direction_ok(const struct ur_qp *qp, unsigned need)
{
	return qp->service != UR_XRC || need == (qp->type == IBV_QPT_XRC_SEND ? UR_RX_RESPONSES : UR_RX_REQUESTS);
}

/* From the peer, and to the address that it knows: another one of ours, or a group that we have joined, is not the connection's. */
static inline bool ur_pkt_is_between(const struct ur_pkt *p, const struct ur_path *path)
{
	return ur_gid_eq(&p->src, &path->dgid) && ur_gid_eq(&p->dst, &path->sgid);
}

static inline bool ur_pkt_is_from_local(const struct ur_pkt *p, const struct ur_qp *qp)
{
	if (!qp->path || !qp->path->local || ur_slot_of(qp->dqpn) != p->slot)
		return false;
	return ur_likely(!(p->flags & UR_PKT_BULK)) || ur_bulk_of(p)->sqpn == qp->dqpn;
}

/* UR_ADMITTED, or what the packet counts as when it is dropped. `need` is UR_RX_BOTH for what is either's business: one of them will do. */
__attribute__((always_inline)) static inline enum ur_counter ur_qp_admits(const struct ur_qp *qp, const struct ur_pkt *p, unsigned need,
									  enum ur_rx_from from)
{
	if (ur_unlikely(!(ur_rx_allowed(ur_qp_st(qp)) & need)))
		return UR_C_DROP_QP_STATE;
	if (ur_unlikely(!ur_pkey_ok(p->bth.pkey)))
		return UR_C_DROP_PKEY;
	if (from == UR_RX_FROM_PEER && ur_unlikely(!ur_pkt_is_between(p, qp->path)))
		return UR_C_DROP_SOURCE;
	if (from == UR_RX_FROM_LOCAL && ur_unlikely(!ur_pkt_is_from_local(p, qp)))
		return UR_C_DROP_SOURCE;
	return UR_ADMITTED;
}

#endif
