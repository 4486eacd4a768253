/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a queue pair is made of: the rings that an application shares with the NIC, the states of requester and responder, and the QP that
 * holds them. tp_priv.h has the calls.
 */
#ifndef UR_QP_PRIV_H
#define UR_QP_PRIV_H

#include <stdatomic.h>

#include "base/psn.h"
#include "transport/dcqcn.h"
#include "transport/probe.h"
#include "transport/reread.h"
#include "transport/transport.h"
#include "transport/window.h"
#include "wire/opcode.h"
#include "wire/path.h"

#define UR_RD_SIDE 32                /* repeated parts of READs that wait to be sent; a power of two */
#define UR_RD_SLOTS UR_MAX_RD_ATOMIC /* a power of two */

enum ur_txq { UR_TXQ_RESP, UR_TXQ_REQ, UR_TXQ_COUNT };

struct ur_pd {
	struct ur_tp *tp;
	unsigned users; /* MRs and QPs */
};

/* --- rings --- */

struct ur_swqe { /* a send work request; behind it the scatter/gather list or the inline data */
	uint64_t wr_id;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t imm; /* as posted: immediate data in network order, or the rkey to invalidate */
	uint32_t length;
	uint32_t psn, npkts; /* the NIC's: first PSN and number of PSNs, from the moment that the WQE is started */
	uint8_t opcode;      /* enum ibv_wr_opcode */
	uint8_t flags;       /* enum ibv_send_flags and UR_SWQE_TOO_LONG */
	uint8_t nsge;
	uint8_t rd_shift; /* the NIC's: a READ is asked for in pieces of 1 << rd_shift packets */
	uint32_t srqn;    /* XRC: the receiving SRQ */
	uint8_t spare[4];
	struct ibv_sge sge[];
};
_Static_assert(sizeof(struct ur_swqe) == 48, "a WQE with one SGE fills one cache line");

/* What few requests have, in a ring of its own beside the SQ, so that a usual WQE stays within a cache line. */
struct ur_swqe_ext {
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct { /* of a datagram */
			struct ur_ah *ah;
			uint32_t qpn, qkey;
		} ud;
		struct ur_bind { /* of a memory window; by keys, since its objects may be gone when the request is executed */
			uint64_t addr, length;
			uint32_t access;
			uint32_t old, rkey; /* the window's key before, and the one that it shall have: the same but for the tag */
			uint32_t lkey;         /* of the MR; 0 for none */
		} bind;
	};
};

#define UR_SWQE_TOO_LONG 0x80 /* the list is longer than UR_MAX_MSG, or has not the bytes that an atomic takes */

struct ur_rwqe {
	uint64_t wr_id;
	uint32_t length; /* UINT32_MAX when the list is longer than that */
	uint32_t nsge;
	struct ibv_sge sge[];
};

/* Single producer (the application), single consumer (the NIC); indices run freely and are masked on use. */
struct ur_ring {
	uint8_t *buf;
	uint32_t mask, stride;
	uint32_t cap; /* entries granted; 0 for none */
	uint32_t max_sge;
	bool lent; /* `buf` is somebody else's */
	_Alignas(64) atomic_uint tail; /* stored by the producer */
	uint32_t head_seen;            /* the producer's last view of `head` */
	_Alignas(64) atomic_uint head; /* stored by the consumer: entries before it may be overwritten */
};

/* The producer's question; `tail` is where it would write. */
static inline bool ur_ring_full(struct ur_ring *r, uint32_t tail)
{
	if (tail - r->head_seen < r->cap)
		return false;
	r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
	return tail - r->head_seen >= r->cap;
}

static inline size_t ur_ring_bytes(const struct ur_ring *r)
{
	return ((size_t)(r->mask + 1) * r->stride + UR_RING_ALIGN - 1) & ~(size_t)(UR_RING_ALIGN - 1);
}

static inline void *ur_ring_at(const struct ur_ring *r, uint32_t i)
{
	return r->buf + (size_t)(i & r->mask) * r->stride;
}

struct ur_sge_pos { /* a place in a scatter/gather list */
	uint32_t i, off;
};

/* --- completion queues --- */

struct ur_cqe {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /* immediate data in network order, or the invalidated rkey */
	uint32_t qpn, src_qp;
	uint8_t status, opcode, wc_flags, vendor_err; /* of wc_flags also the two below, beyond what enum ibv_wc_flags has for us */
};
#define UR_CQE_IP4 0x80u       /* a datagram that came over IPv4 */
#define UR_CQE_SOLICITED 0x40u /* what an arming for solicited completions alone asks for; ur_cq_push sets it */
_Static_assert(sizeof(struct ur_cqe) == 32, "two CQEs in a cache line");

/* --- queue pairs --- */

struct ur_requester {
	uint32_t head, cur, fresh, tail; /* SQ indices: oldest incomplete, being sent, first never started, last seen tail */
	uint32_t una, next, max;         /* PSNs: oldest unacknowledged, next to send, first never sent */
	struct ur_sge_pos pos;           /* where the payload of `next` begins in the list of `cur` */
	struct ur_sge_pos rpos;          /* where the READ response `una` goes in the list of `head` */
	uint32_t since_ack;              /* packets since the last AckReq */
	uint32_t restart;                /* PSN of the last rewind: a READ response there may start a message or continue one */
	uint32_t rd_out;                 /* READ requests on the wire */
	uint32_t rd_wqes;                /* READ and atomic WQEs started and incomplete: what a fence waits for */
	uint32_t locals;                 /* local operations that are executed and wait for their turn to complete */
	uint8_t max_rd;
	uint8_t retry_cnt, retry_left, rnr_cnt, rnr_left;
	uint8_t halt;              /* enum ibv_wc_status that `cur` fails with once it is the oldest; 0 when none */
	bool rnr_wait, hole;       /* `hole`: a lost READ response has been asked for again and has not come yet */
	bool reseek;               /* `rpos` has to be found anew */
	ur_time timeout, deadline; /* of the ACK timer; timeout 0: none */
	ur_time retried_at;        /* the last rewind that counted as a retry */
	struct ur_window window;
	struct ur_rtt rtt;
	struct ur_probe probe;
	struct ur_reread reread;
	/* told.c */
	bool told;         /* the network says that the peer cannot be reached, and since then nothing was acknowledged */
	uint32_t told_una; /* that was when it said so */
	ur_time told_due;  /* when the next retry comes then */
};

struct ur_rd_res { /* a request whose answer is more than an acknowledgement, kept for duplicates */
	uint64_t va;
	uint64_t result; /* of an atomic: the original value; of a FLUSH: bytes that are still to be written back */
	uint32_t rkey, len, psn, npkts, msn;
	uint32_t start, k, end; /* the run of responses under way: packets [start, end) of the request, `k` is next */
	uint32_t stop;          /* byte of the request where the run ends */
	bool replay;
	bool again; /* (parts of) the answer were asked for again, and may have been on the wire before */
	uint8_t opcode; /* enum ur_opcode of the request */
	uint16_t flush_access; /* of a FLUSH that has something to write back: the access flags that it needs; else 0 */
	bool flush_whole;      /* all of what its key stands for */
	uint32_t srqn;  /* XRC: the SRQ that lends its protection domain */
};

struct ur_responder {
	uint32_t epsn, msn;
	uint32_t head, tail;     /* RQ indices: next to use, last seen tail */
	const struct ur_rwqe *w; /* the receive WQE of the message under way: in the ring, or the copy of an SRQ's */
	uint16_t expect;         /* UR_OPF_SEND or UR_OPF_WRITE inside such a message, 0 between messages */
	bool nak_sent;           /* nothing but the expected PSN is answered */
	bool dying;              /* a fatal NAK waits behind READ responses */
	bool established;        /* COMM_EST has been reported */
	bool ack_pending;
	uint8_t ack_syndrome;
	uint8_t min_rnr;
	uint32_t ack_psn, ack_msn;
	struct ur_sge_pos pos;
	uint32_t got;  /* bytes of the SEND so far */
	uint32_t rkey; /* the WRITE under way: */
	uint64_t va;   /* where the next packet goes */
	uint32_t left, dma_len;
	uint32_t rd_cur, rd_tail, rd_count; /* oldest with responses to send, next free, number of valid entries */
	uint32_t rd_n;                      /* max_dest_rd_atomic */
	struct ur_rd_res *rd;               /* UR_RD_SLOTS of them, and UR_RD_SIDE */
	uint32_t side_head, side_tail;      /* parts of READs to repeat, in the last of them */
};

struct ur_cc { /* congestion */
	struct ur_dcqcn rate;
	bool blocked;           /* until `timer` expires nothing is sent but acknowledgements and notifications */
	bool cnp_due, cnp_sent; /* a notification waits to be sent; one was, at `cnp_at` */
	ur_time cnp_at;
	ur_time next; /* when the next packet may leave */
	struct ur_timer timer;
};

enum { UR_DB_WANT = 1, UR_DB_RUNG = 2 };

struct ur_qp {
	struct ur_tp *tp;
	const struct ur_path *path;
	struct ur_pd *pd; /* XRC_RECV: that of the SRQ which the packet in hand names */
	uint32_t qpn, dqpn;
	uint32_t mtu, mtu_shift;
	atomic_int state; /* enum ibv_qp_state; stored by the NIC */
	int access;       /* qp_access_flags */
	struct ur_cq *send_cq, *recv_cq;
	struct ur_srq *srq;   /* XRC_RECV: the one that the last packet named, NULL when it has gone */
	struct ur_xrcd *xrcd; /* XRC_RECV alone */
	struct ur_list link[UR_TXQ_COUNT];
	struct ur_timer timer; /* ACK timer, or the wait after an RNR NAK */
	struct ur_requester req;
	struct ur_responder resp;
	struct ur_list windows; /* of type 2, bound through this QP */
	struct ur_cc cc;
	struct ur_qp_counters n;
	ur_time heard; /* when the last packet came that belongs here; 0: never */
	bool broken; /* a completion was lost: to ERR at the next opportunity */
	bool no_mcast_loopback;
	bool sig_all, sqd_notify;
	bool srq_only;    /* no receives of its own: an SRQ's, or (XRC_SEND) none; the one slot of `rq` holds the copy of the WQE in use */
	uint8_t type;     /* enum ibv_qp_type */
	uint8_t service;  /* enum ur_service: what its packets' opcodes begin with */
	uint32_t ngroups; /* multicast groups that it is attached to */
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr; /* as last modified, for queries */
	void *context;
	void (*event)(struct ur_qp *qp, enum ibv_event_type ev);
	struct ur_qp *doorbell_link;
	_Alignas(64) atomic_uint db;
	struct ur_ring sq, rq;
	struct ur_swqe_ext *sq_ext; /* one for each slot of `sq` */
};

static inline enum ibv_qp_state ur_qp_st(const struct ur_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline struct ur_swqe *ur_sq_at(const struct ur_qp *qp, uint32_t i)
{
	return ur_ring_at(&qp->sq, i);
}

/* Is there an answer to what it sends? */
static inline bool ur_qp_acked(const struct ur_qp *qp)
{
	return qp->service != UR_UC && qp->service != UR_UD;
}

static inline bool ur_qp_path_ready(const struct ur_qp *qp)
{
	return ur_likely(qp->path && qp->path->ready);
}

/* Packets that `len` bytes make. */
static inline uint32_t ur_qp_npkts(const struct ur_qp *qp, uint32_t len)
{
	return len ? (uint32_t)(((uint64_t)len + qp->mtu - 1) >> qp->mtu_shift) : 1;
}

static inline struct ur_swqe_ext *ur_sq_ext_at(const struct ur_qp *qp, uint32_t i)
{
	return &qp->sq_ext[i & qp->sq.mask];
}

/* Behind the last packet of the request on the wire that packet `k` of a READ belongs to. */
static inline uint32_t ur_rd_piece_end(const struct ur_swqe *w, uint32_t k)
{
	return ur_min_u32(w->npkts, (k | ((1u << w->rd_shift) - 1)) + 1);
}

#endif
