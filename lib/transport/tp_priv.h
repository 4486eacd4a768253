/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms of lib/transport share: the instance and the calls between its files. qp_priv.h has what a queue pair is made of.
 *
 *   tp.c         the instance, demultiplexing of received packets, the transmit arbiter
 *   mr.c cq.c    memory regions, completion queues
 *   memory.c     regions whose memory is not simply there: on-demand and null ones, and those of which something has vanished
 *   mw.c         memory windows, and the work requests that change them: BIND_MW, LOCAL_INV
 *   qp.c         life of a queue pair, doorbell, error state and flushing; qp_modify.c its state transitions
 *   wr_op.c      the table of work request opcodes; post.c writes send work requests into the ring (on the application's threads)
 *   recvq.c      receive queues: posting (on the application's threads), taking, completing; srq.c shared ones (srq.h)
 *   xrc.c        extended reliable connections: domains, and the shared receive queue that a packet names
 *   sge.c        from and to scatter/gather lists
 *   requester.c  builds request packets; completer.c handles what comes back for them
 *   atomic.c     requests that are one packet and whose answer carries the result: atomics, ATOMIC WRITE
 *   window.c     how much may be unacknowledged; round trips. probe.c asks again when acknowledgements are overdue; reread.c repairs READs:
 *                each with a header of its own
 *   responder.c  executes request packets; resp_tx.c sends acknowledgements and READ responses; resp_atomic.c executes what atomic.c
 *                sends, and FLUSH
 *   uc.c         unreliable connections, as far as they differ: nobody answers
 *   ud.c         datagrams, out and in; ah.c address handles; mcast.c multicast groups and who is attached to them
 *   trace.c      what a trace is told of packets; names
 *   congest.c    congestion notifications and pacing; dcqcn.c is the arithmetic of the rate
 */
#ifndef UR_TP_PRIV_H
#define UR_TP_PRIV_H

#include <stdatomic.h>

#include "base/idtab.h"
#include "base/psn.h"
#include "base/random.h"
#include "base/touch.h"
#include "transport/qp_priv.h"
#include "wire/frame.h"

#define UR_TX_SWAP 4        /* requests up to this many go ahead of as many acknowledgements in a burst */
#define UR_TX_STASH 32      /* packet buffers fetched at a time */
#define UR_COPY_MAX 256              /* payloads up to this size are copied behind the headers instead of being referred to */

#define UR_QPN_LOW_BITS 16 /* of a QPN, or the number of an SRQ, below the slot */

#define UR_MCAST_BUCKETS 64 /* a power of two */

/* What only a count limits. */
enum ur_kind { UR_KIND_PD, UR_KIND_MR, UR_KIND_MW, UR_KIND_CQ, UR_KIND_AH, UR_KINDS };

struct ur_tp {
	struct ur_tp_config c;
	struct ur_idtab qps, mrs, srqs; /* by QPN, by the upper 24 bits of the key, by number */
	ur_time now; /* of the call under way */
	struct ur_trace *trace; /* NULL: nobody wants to know */
	/*
	 * The low parts of numbers to come. Nobody can guess them, and a QPN comes back late: a peer that has not noticed the end of its
	 * last owner, perhaps a process that died, goes on sending to it, and its CM refuses a new connection to it as stale.
	 */
	struct ur_shuffle qpns, srqns;
	struct ur_list txq[UR_TXQ_COUNT]; /* QPs that have something to send */
	struct ur_list parked[UR_TXQ_COUNT]; /* and those whose next packet goes where nothing can go now */
	unsigned nheld;                      /* such destinations */
	uint64_t held[256 / 64];
	ur_time deaf_until; /* of what the network says */
	unsigned nstash;
	bool starved; /* no packet buffer was to be had in this call of ur_tp_tx */
	bool sliced;  /* a FLUSH has had its slice in it */
	bool pause;   /* the QP whose turn it is has more to do, but not in this call */
	struct ur_list paused; /* such QPs; the first has had its slice */
	unsigned quantum;      /* packets of one QP before the next has its turn */
	uint32_t window_bytes; /* that a QP may have unacknowledged */
	uint32_t line_kbps; /* rate of the port */
	unsigned made[UR_KINDS];
	_Atomic(struct ur_ah *) dropped; /* address handles whose last reference an application thread gave up: the NIC's to release */
	uint32_t port_mtu;
	unsigned ngroups;
	struct ur_list group[UR_MCAST_BUCKETS];
	struct ur_pkt *stash[UR_TX_STASH];
};

/* --- trace.c: what is told from hot functions, which had to make room for the values otherwise --- */

void ur_tp_trace_rx(struct ur_tp *tp, const struct ur_pkt *p);
/* Packets that a QP has built, and what its requester waits for now. */
void ur_tp_trace_tx(struct ur_qp *qp, struct ur_pkt *const *pkts, unsigned n, bool requests);
void ur_tp_trace_refused(const struct ur_qp *qp, enum ur_counter why);
void ur_tp_trace_armed(const struct ur_qp *qp, enum ur_trace_timer timer, ur_time after);
void ur_tp_trace_failed(const struct ur_qp *qp, uint64_t wr_id, enum ibv_wc_status status);

/* Counts for the device, and for the QP what a QP counts; with a constant `c` no more than that is left of the switch. */
static inline void ur_qp_count(struct ur_qp *qp, enum ur_counter c)
{
	ur_count(qp->tp->c.counters, c);
	switch (c) {
#define UR_QP_COUNT_CASE(member, counter)                                                                                                  \
	case UR_C_##counter: qp->n.member++; break;
		UR_QP_COUNTERS(UR_QP_COUNT_CASE)
#undef UR_QP_COUNT_CASE
	default: break;
	}
	if (UR_C_REFUSED(c) && ur_unlikely(qp->tp->trace != NULL))
		ur_tp_trace_refused(qp, c);
}

/* One more of a kind: 0, or ENOMEM when there are as many as ibv_query_device(3) says that there can be. One less. */
int ur_made(struct ur_tp *tp, enum ur_kind kind);
void ur_unmade(struct ur_tp *tp, enum ur_kind kind);

/* --- wr_op.c --- */

enum ur_wr_kind { UR_WR_NONE, UR_WR_SEND, UR_WR_WRITE, UR_WR_READ, UR_WR_ATOMIC, UR_WR_ATOMIC_WRITE, UR_WR_LOCAL };

struct ur_wr_op {
	uint8_t kind;
	uint8_t services;                  /* bits of enum ur_service_bit */
	uint8_t first, middle, last, only; /* enum ur_opcode */
	uint8_t wc;                        /* enum ibv_wc_opcode */
	uint8_t send_flags;                /* enum ibv_send_flags that may go with it */
};

enum ur_service_bit { UR_SVC_RC = 1, UR_SVC_UC = 2, UR_SVC_UD = 4, UR_SVC_XRC = 8 };

#define UR_WR_OPS 16
extern const struct ur_wr_op ur_wr_ops[UR_WR_OPS]; /* by enum ibv_wr_opcode */

static inline const struct ur_wr_op *ur_swqe_op(const struct ur_swqe *w)
{
	return &ur_wr_ops[w->opcode & (UR_WR_OPS - 1)];
}

static inline bool ur_swqe_is_read(const struct ur_swqe *w)
{
	return w->opcode == IBV_WR_RDMA_READ;
}

/* Opcodes whose answer is more than an acknowledgement, and those that are executed without a packet. */
#define UR_WRS_ATOMIC (1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD | 1u << IBV_WR_ATOMIC_WRITE)
#define UR_WRS_ANSWERED (1u << IBV_WR_RDMA_READ | UR_WRS_ATOMIC)
#define UR_WRS_LOCAL (1u << IBV_WR_LOCAL_INV | 1u << IBV_WR_BIND_MW)

static inline bool ur_swqe_in(const struct ur_swqe *w, uint32_t set)
{
	return set >> w->opcode & 1; /* below UR_WR_OPS: posting has checked it */
}

/* --- mr.c --- */

static inline struct ur_mr *ur_mr_find(const struct ur_tp *tp, uint32_t key)
{
	struct ur_mr *mr = ur_idtab_get(&tp->mrs, key >> 8);

	return ur_likely(mr && mr->lkey == key) ? mr : NULL;
}

/* The bytes [va, va + len) of the MR with that key, or NULL unless all of them are there and the access is granted. */
static inline uint8_t *ur_mr_in(const struct ur_tp *tp, const struct ur_pd *pd, uint32_t key, uint64_t va, uint64_t len, int access,
				struct ur_mr **out)
{
	struct ur_mr *mr = ur_mr_find(tp, key);
	uint64_t off;

	if (ur_unlikely(!mr || mr->pd != pd || (mr->access & access) != access))
		return NULL;
	off = va - mr->iova;
	if (ur_unlikely(off > mr->length || len > mr->length - off))
		return NULL;
	*out = mr;
	return (uint8_t *)((uintptr_t)mr->addr + off); /* an on-demand region of everything begins at NULL */
}

static inline uint8_t *ur_mr_local(const struct ur_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access, struct ur_mr **out)
{
	return ur_mr_in(qp->tp, qp->pd, key, va, len, access, out);
}

/* As ur_mr_local for the key of a memory window; NULL for any other key. */
uint8_t *ur_mw_at(const struct ur_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access, struct ur_mr **out);

/* What a peer may refer to: an MR, or a memory window. *out is the MR that the bytes belong to. */
static inline uint8_t *ur_mr_at(const struct ur_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access, struct ur_mr **out)
{
	uint8_t *at = ur_mr_local(qp, key, va, len, access, out);

	return ur_likely(at) ? at : ur_mw_at(qp, key, va, len, access, out);
}

/* --- memory.c: for regions with UR_ACCESS_UNUSUAL --- */

/* Counts; false. */
bool ur_mr_gone(const struct ur_tp *tp);
bool ur_mr_reach_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *at, uint64_t len, bool write);
bool ur_mr_read_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, uint8_t *from, uint32_t len);
bool ur_mr_write_unusual(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, const uint8_t *from, uint32_t len);

static inline bool ur_mr_unusual(const struct ur_mr *mr)
{
	return ur_unlikely(mr->access & UR_ACCESS_UNUSUAL);
}

/*
 * False when nothing can be mapped at these bytes of the region, which a lookup has granted: an access error. Of usual regions that is
 * known when they are touched.
 */
static inline bool ur_mr_reach(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *at, uint64_t len, bool write)
{
	return !ur_mr_unusual(mr) || ur_mr_reach_unusual(tp, mr, at, len, write);
}

/* Copies from or to these bytes; false as above. Programs that wait for an RDMA WRITE look at its last bytes, so those are written last. */
static inline bool ur_mr_read(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, uint8_t *from, uint32_t len)
{
	if (ur_mr_unusual(mr))
		return ur_mr_read_unusual(tp, mr, to, from, len);
	return ur_likely(ur_touch_copy(to, from, len)) || ur_mr_gone(tp);
}

static inline bool ur_mr_write(const struct ur_tp *tp, const struct ur_mr *mr, uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (ur_mr_unusual(mr))
		return ur_mr_write_unusual(tp, mr, to, from, len);
	return ur_likely(ur_touch_copy_end_last(to, from, len)) || ur_mr_gone(tp);
}

/* Puts the object into the table under a number of the slot that `order` brings next. ENOSPC or ENOMEM otherwise. */
int ur_tp_number(struct ur_tp *tp, struct ur_idtab *t, struct ur_shuffle *order, void *obj, uint32_t *number);
/* Gives `key` a place in the table of keys, and its lkey and rkey. ENOSPC or ENOMEM otherwise. */
int ur_key_alloc(struct ur_tp *tp, enum ur_kind kind, struct ur_mr *key);
void ur_key_free(struct ur_tp *tp, enum ur_kind kind, const struct ur_mr *key);

/* --- mw.c --- */

#define UR_KEY_TAG 0xffu /* the low bits of a key; a window's are the consumer's to choose when it is bound (IBTA volume 1, 10.6.6.2.1) */

/*
 * Checks a BIND_MW or LOCAL_INV and takes over its operands; the window's public rkey is the new one from now on, which has the tag of the
 * one that is asked for. On the application's thread; 0 or EINVAL.
 */
int ur_local_post(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr);
/* A batch with that request is given up: the window has the key that it had. The last of a batch goes first. */
void ur_local_unpost(struct ur_swqe *w, const struct ur_swqe_ext *x);
/* Executes the local operation at `cur`. */
enum ibv_wc_status ur_local_start(struct ur_qp *qp, struct ur_swqe *w);
/* Completes the executed local operations that have become the oldest. */
void ur_local_done(struct ur_qp *qp);
/* Invalidates a window of type 2, for LOCAL_INV and for a peer's SEND. False when that key may not be invalidated through this QP. */
bool ur_mw_invalidate(struct ur_qp *qp, uint32_t rkey);
/* The QP goes, or is reset: windows bound through it are no longer bound. */
void ur_mw_forget_qp(struct ur_qp *qp);

/* --- atomic.c --- */

#define UR_ATOMIC_LEN 8

/* Takes over the operands of an atomic or ATOMIC WRITE. On the application's thread. */
void ur_atomic_post(struct ur_swqe *w, struct ur_swqe_ext *x, const struct ibv_send_wr *wr);
/* The extended headers, and the payload, of its request. */
enum ibv_wc_status ur_atomic_put(struct ur_qp *qp, const struct ur_swqe *w, uint8_t *ext, struct ur_pkt *p);
/* Takes its answer. */
enum ibv_wc_status ur_atomic_answer(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op);

/* --- sge.c: each returns IBV_WC_SUCCESS or IBV_WC_LOC_PROT_ERR --- */

/* Puts `len` bytes from *pos on into the packet behind p->len, as segments or copied, and moves *pos. */
enum ibv_wc_status ur_sge_gather(const struct ur_qp *qp, const struct ur_swqe *w, struct ur_sge_pos *pos, uint32_t len, struct ur_pkt *p);
/* Copies `len` bytes into the list from *pos on, and moves *pos. The list has room for them; its keys are of the domain `pd`. */
enum ibv_wc_status ur_sge_scatter_in(const struct ur_tp *tp, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge,
				     struct ur_sge_pos *pos, const uint8_t *data, uint32_t len);
static inline enum ibv_wc_status ur_sge_scatter(const struct ur_qp *qp, const struct ibv_sge *sge, unsigned nsge, struct ur_sge_pos *pos,
						const uint8_t *data, uint32_t len)
{
	return ur_sge_scatter_in(qp->tp, qp->pd, sge, nsge, pos, data, len);
}
/* Bytes of a list. */
static inline uint64_t ur_list_length(const struct ibv_sge *sge, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

enum ibv_wc_status ur_sge_check(const struct ur_qp *qp, const struct ibv_sge *sge, unsigned nsge, int access);
struct ur_sge_pos ur_sge_seek(const struct ibv_sge *sge, unsigned nsge, uint64_t off);

/* --- cq.c --- */

/* False when the CQ has overrun. */
bool ur_cq_push(struct ur_cq *cq, const struct ur_cqe *e, bool solicited);
void ur_cq_use(struct ur_cq *cq, int qps);

/* --- tp.c --- */

/* A fresh packet or NULL. */
struct ur_pkt *ur_tp_pkt(struct ur_tp *tp);
/* True when what goes to this QP has to wait, and the sender with it: it is off the list of those that have something to send. */
bool ur_tp_park_held(struct ur_qp *qp, enum ur_txq q, const struct ur_path *path, uint32_t dqpn);
void ur_tp_pkt_drop(struct ur_tp *tp, struct ur_pkt *p);
/*
 * Writes path headers and BTH; of p->bth the caller has set what differs from packet to packet. Returns where the extended headers go,
 * which are the caller's to write; p->len is behind them.
 */
uint8_t *ur_pkt_begin_to(const struct ur_path *path, uint32_t dqpn, struct ur_pkt *p, const struct ur_opcode_info *op);
static inline uint8_t *ur_pkt_begin(const struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	return ur_pkt_begin_to(qp->path, qp->dqpn, p, op);
}

/* --- qp.c --- */

/* `wr` is rounded up in place to a power of two; none stays none, and one slot is there all the same. */
int ur_ring_init(struct ur_ring *r, uint32_t *wr, uint32_t stride, uint32_t max_sge);
void ur_ring_free(struct ur_ring *r);
/* The entries move into `mem`, which stays the caller's; NULL leaves them. Before there are any. */
void ur_ring_lend(struct ur_ring *r, void *mem);
void ur_qp_event(struct ur_qp *qp, enum ibv_event_type ev);
/*
 * The oldest send WQE `w` is over: frees its slot and completes it; the CQE is left out for an unsignalled success. For those that hold
 * nothing else: neither READs and atomics that were started nor datagrams. Here since each acknowledgement comes by.
 */
static inline void ur_qp_send_retire(struct ur_qp *qp, const struct ur_swqe *w, enum ibv_wc_status status, uint8_t vendor_err)
{
	bool cqe = w->flags & IBV_SEND_SIGNALED || status != IBV_WC_SUCCESS;
	struct ur_cqe e = {
		.wr_id = w->wr_id,
		.byte_len = w->length,
		.qpn = qp->qpn,
		.status = (uint8_t)status,
		.opcode = ur_swqe_op(w)->wc,
		.vendor_err = vendor_err,
	};

	/* The slot is free before the completion shows: who has polled it may post again. */
	atomic_store_explicit(&qp->sq.head, ++qp->req.head, memory_order_release);
	if (!cqe)
		return;
	if (ur_unlikely(status != IBV_WC_SUCCESS)) {
		ur_qp_count(qp, UR_C_REQ_CQE_ERR);
		ur_tp_trace_failed(qp, e.wr_id, status);
	}
	if (ur_unlikely(!ur_cq_push(qp->send_cq, &e, false)))
		qp->broken = true;
}

/* As ur_qp_send_retire, for the oldest send WQE whatever it is. */
void ur_qp_send_done(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err);
void ur_qp_set_state(struct ur_qp *qp, enum ibv_qp_state to);
void ur_qp_to_err(struct ur_qp *qp);
void ur_qp_to_reset(struct ur_qp *qp);
/* A send of an unacknowledged service failed: what is posted behind it is flushed, and nothing else happens to the QP (IBTA 10.3.1.7). */
void ur_qp_to_sqe(struct ur_qp *qp);
void ur_qp_sqd_check(struct ur_qp *qp);

/* --- qp_modify.c --- */

/* 0, or EINVAL unless the transition exists and `mask` holds what it requires and nothing that it does not allow. */
int ur_qp_modify_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* --- recvq.c --- */

/* Is a receive WQE posted that a message could take? */
bool ur_recv_ready(struct ur_qp *qp);
/* Makes it resp.w, unless a message that was given up has left one there. False when there is none. */
bool ur_recv_take(struct ur_qp *qp);
/* Completes resp.w; `e` carries everything but wr_id and qpn; the source of a datagram, or no source for the QP's peer. */
void ur_recv_done(struct ur_qp *qp, struct ur_cqe *e, bool solicited);
/* Copies into resp.w from resp.pos on, which moves. */
enum ibv_wc_status ur_recv_scatter(struct ur_qp *qp, const uint8_t *data, uint32_t len);
/* Without an SRQ all that is posted; with one only what the QP holds: the rest is there for others. */
void ur_recv_flush(struct ur_qp *qp);
/* Writes a work request into a slot. EINVAL for more than `max_sge` elements. */
int ur_recv_write(struct ur_rwqe *w, const struct ibv_recv_wr *wr, uint32_t max_sge);

/* --- requester.c --- */

#define UR_REQ_STATES(X) X(IDLE) X(START) X(SEND) X(READ) X(WINDOW) X(RD_LIMIT) X(FENCE) X(RNR_WAIT) X(PACED) X(PROBE) X(REREAD) \
	X(HALT) X(DRAIN) X(DOWN)

enum ur_req_state {
#define UR_REQ_STATE_ENUM(n) UR_REQ_##n,
	UR_REQ_STATES(UR_REQ_STATE_ENUM)
#undef UR_REQ_STATE_ENUM
		UR_REQ_STATE_COUNT
};

/* What the requester would do next, or what it waits for. */
enum ur_req_state ur_req_next(struct ur_qp *qp);
const char *ur_req_state_name(enum ur_req_state s);
unsigned ur_req_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
void ur_req_schedule(struct ur_qp *qp);
/* Sends again from the oldest unacknowledged PSN. */
void ur_req_rewind(struct ur_qp *qp);
/* A READ request for the `n` packets from `psn` on. */
void ur_req_put_read(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, uint32_t n, struct ur_pkt *p);
/* Gives the WQE at `cur` its PSNs, or executes it if it is a local operation. Otherwise the status that it fails with. */
enum ibv_wc_status ur_req_start(struct ur_qp *qp);
/* The oldest send WQE fails, and with it the QP. */
void ur_req_fail(struct ur_qp *qp, enum ibv_wc_status status, uint8_t vendor_err);

/* --- completer.c --- */

void ur_comp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);
void ur_comp_timer(struct ur_timer *t, ur_time now);
/* When the timer has something to do next, as things stand. */
ur_time ur_comp_expiry(const struct ur_qp *qp);
/* The MTU is known: a new window. */
void ur_req_open_window(struct ur_qp *qp);
/* Requests that wait for a path count against the retry counter as unanswered ones do. */
void ur_comp_watch_path(struct ur_qp *qp, ur_time now);
/* The wait that an RNR NAK's timer field stands for, in ns (IBTA volume 1, table 46). */
ur_time ur_rnr_time(unsigned code);

/* --- told.c --- */

/* Of a QP that has been told, in its timer: lets the ACK timer expire when the next retry is due. */
void ur_told_timer(struct ur_qp *qp, ur_time now);
/* And at the end of it: arms the timer for the next one. */
void ur_told_again(struct ur_qp *qp, ur_time now);

/* --- congest.c --- */

void ur_cc_init(struct ur_qp *qp);
/* No rate, no notifications under way: for a QP that leaves the states in which it sends. */
void ur_cc_stop(struct ur_qp *qp);
/* A packet of the peer came with a congestion mark. */
void ur_cc_marked(struct ur_qp *qp, ur_time now);
bool ur_cc_build_cnp(struct ur_qp *qp, struct ur_pkt **out, ur_time now);
/* The peer says that our packets meet congestion. Returns what it counts as. */
enum ur_counter ur_cc_notified(struct ur_qp *qp, ur_time now);
/* A packet was built while a rate is in force. */
void ur_cc_sent(struct ur_qp *qp, const struct ur_pkt *p, ur_time now);

/* --- responder.c, resp_tx.c --- */

#define UR_RESP_VERDICTS(X)                                                                                                                \
	X(DONE)                                                                                                                            \
	X(DUPLICATE)                                                                                                                       \
	X(OUT_OF_SEQ) X(RNR) X(BAD_ORDER) X(UNSUPPORTED) X(BAD_LENGTH) X(TOO_MANY_READS) X(MISALIGNED)                                     \
	X(ACCESS) X(LOCAL_ACCESS) X(TOO_LONG) X(LOCAL_PROT) X(INVALIDATE) X(XRC_SRQ) X(SRQ_FAILED)

enum ur_resp_verdict {
#define UR_RESP_VERDICT_ENUM(n) UR_RESP_##n,
	UR_RESP_VERDICTS(UR_RESP_VERDICT_ENUM)
#undef UR_RESP_VERDICT_ENUM
		UR_RESP_VERDICT_COUNT
};

const char *ur_resp_verdict_name(enum ur_resp_verdict v);
void ur_resp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);
unsigned ur_resp_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
void ur_resp_schedule(struct ur_qp *qp);
void ur_resp_ack(struct ur_qp *qp, uint32_t psn, uint8_t syndrome);
/* Requests that are answered from the resource table. */
#define UR_OPF_ANSWERED (UR_OPF_READ | UR_OPF_ATOMIC | UR_OPF_FLUSH | UR_OPF_ATOMIC_WRITE)
/* Is there room in the resource table? Replays give way. */
bool ur_resp_rd_room(struct ur_qp *qp);
/* A new entry, for the request in `p`; the answers to be sent are the caller's to say. */
struct ur_rd_res *ur_resp_rd_add(struct ur_qp *qp, const struct ur_pkt *p);
/* Executes an atomic, ATOMIC WRITE or FLUSH. */
enum ur_resp_verdict ur_resp_atomic(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op);
#define UR_FLUSH_SLICE 65536u /* bytes; writing back as many takes up to 0.1 ms */

enum ur_flush { UR_FLUSH_DONE, UR_FLUSH_MORE, UR_FLUSH_GONE };

/* Writes back one slice for a FLUSH with flush_access. GONE: the region, or its memory, is not there any more. */
enum ur_flush ur_resp_flush_on(struct ur_qp *qp, struct ur_rd_res *e);
/* Answers a duplicate of one as the first time. */
void ur_resp_atomic_again(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op);
/* The access flags that a FLUSH with these placement types needs; ~0 for types that do not exist. */
int ur_resp_flush_access(const struct ur_pkt *p, const struct ur_opcode_info *op);
/* Has it been answered in full, so that whatever is sent now the peer may have had? */
static inline bool ur_resp_rd_answered(const struct ur_rd_res *e)
{
	return e->replay || e->k == e->end;
}
/* Lets packets [start, start + npkts) of the answer be sent; of a READ, `stop` is the offset at which its data ends. */
static inline void ur_resp_rd_run(struct ur_rd_res *e, uint32_t start, uint32_t npkts, uint32_t stop, bool replay)
{
	e->start = e->k = start;
	e->end = start + npkts;
	e->stop = stop;
	e->replay = replay;
}
/* Sends the responses from that PSN on again, if they are of a READ that is remembered. */
void ur_resp_rd_from(struct ur_qp *qp, uint32_t psn);
/* Entry `n` of the table from the newest (1) on has something to send again. */
void ur_resp_rd_again(struct ur_qp *qp, uint32_t n);
/* The oldest READ with responses to send, or NULL. */
struct ur_rd_res *ur_resp_rd_oldest(struct ur_qp *qp);
/* Refuses the request at `psn` for good: NAK, completion of a receive under way, event, ERR. */
void ur_resp_refuse(struct ur_qp *qp, enum ur_resp_verdict v, uint32_t psn);

/* --- uc.c --- */

/* Sorts out what does not continue its message; the rest goes through ur_resp_rx. */
void ur_uc_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);
/* A packet was not executed: it, and what is left of its message, is dropped. */
void ur_uc_refuse(struct ur_qp *qp, enum ur_resp_verdict v);
/* A packet has been handed out: with the last one of a message its WQE is done. */
void ur_uc_sent(struct ur_qp *qp);

/* --- ud.c, ah.c, mcast.c --- */

/* [app] The address of a request in that slot of the SQ. 0 or EINVAL. */
int ur_ud_address(struct ur_qp *qp, uint32_t slot, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
void ur_ud_schedule(struct ur_qp *qp);
unsigned ur_ud_build(struct ur_qp *qp, struct ur_pkt **pkts, unsigned n, ur_time now, bool *more);
void ur_ud_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op);
/* [app] The request in that slot is not posted after all. */
void ur_ud_unaddress(struct ur_qp *qp, uint32_t slot);
/* The request in that slot is done with its address handle. */
void ur_ud_release(struct ur_qp *qp, uint32_t slot);
/* The same for all that are queued: they are being dropped. */
void ur_ud_release_all(struct ur_qp *qp);
void ur_ah_put(struct ur_ah *ah);
/* [app] As ur_ah_put; the release is left to the NIC: ur_ah_reap, at the latest when the QP is destroyed. */
void ur_ah_put_later(struct ur_ah *ah);
void ur_ah_reap(struct ur_tp *tp);
void ur_mcast_rx(struct ur_tp *tp, struct ur_pkt *p, const struct ur_opcode_info *op);

#endif
