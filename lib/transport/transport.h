/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport: the InfiniBand transport (IBTA volume 1, chapters 9 to 11) without I/O. Protection domains, memory regions,
 * completion queues, queue pairs; requester, responder and completer; retransmission. Packets enter through ur_tp_rx and leave through
 * ur_tp_tx; time enters as `now` and leaves through the timing wheel.
 *
 * Types of the API (states, attributes, work requests, completions) are those of rdma-core's verbs.h; only its declarations are used.
 *
 * Two kinds of callers. The *NIC* (the thread that holds the engine's lock) may call everything. *Application threads* may, without the
 * lock, call what is marked [app]: they share with the NIC only the rings of SQ, RQ and CQ (single producer, single consumer, C11
 * acquire/release), so calls on one ring must be serialised by the caller. Functions that can fail return 0 or a positive errno.
 */
#ifndef UR_TRANSPORT_H
#define UR_TRANSPORT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "base/counters.h"
#include "base/list.h"
#include "base/trace.h"
#include "base/wheel.h"
#include "wire/bulk.h"
#include "wire/path.h"
#include "wire/pkt.h"

struct ur_tp;
struct ur_pd;
struct ur_mr;
struct ur_mw;
struct ur_cq;
struct ur_qp;
struct ur_srq;
struct ur_xrcd;

/* What this software can do; the same numbers go into ibv_query_device. */
#define UR_MAX_QP 16384
#define UR_MAX_QP_WR 16384
#define UR_MAX_SGE 32
#define UR_MAX_INLINE 1024
#define UR_MAX_CQE 1048575
#define UR_MAX_RD_ATOMIC 128
#define UR_MAX_MSG (1u << 31)
#define UR_MAX_MR (1u << 20)
#define UR_MAX_MW (1u << 20)
#define UR_MAX_PD (1u << 16)
#define UR_MAX_CQ (1u << 16)
#define UR_MAX_AH (1u << 16)
#define UR_MAX_SRQ 16384
#define UR_MAX_SRQ_WR 32768
#define UR_MAX_MCAST_GROUPS 1024
#define UR_MAX_MCAST_QPS 256 /* attached to one group */
#define UR_LANES 16          /* of a device */

#define UR_SLOT_SHIFT 16 /* of a QPN, and of the number of an SRQ */

/* Whose is a QP, or an SRQ? Each process of a host has a slot, which is the top byte of the numbers that it gives; 0: nobody's. */
static inline uint8_t ur_slot_of(uint32_t number)
{
	return (uint8_t)(number >> UR_SLOT_SHIFT);
}

enum ur_cwnd_when {
	UR_CWND_NEVER,
	UR_CWND_ALWAYS,
	UR_CWND_LOSSES, /* from the first loss on, if the peer says in a SACK what it has; until then they begin small, and grow */
};

struct ur_tp_config {
	void *ctx; /* handed to the functions below */
	/* Packets to build frames in, as ur_queue_ops.alloc; may give fewer than asked. Counts UR_C_TX_NO_BUFFER when it gives none. */
	unsigned (*alloc)(void *ctx, struct ur_pkt **pkts, unsigned n);
	void (*free)(void *ctx, struct ur_pkt **pkts, unsigned n);
	struct ur_pkt *(*alloc_train)(void *ctx); /* as ur_queue_ops.alloc_train; called while ur_tp_set_train allows trains */
	/* Has the process `to` of this host (see ur_tp_hold) not read yet all that was sent to it? Nothing of it is lost then. Or NULL. */
	bool (*unread)(void *ctx, uint8_t to);
	struct ur_wheel *wheel; /* shared with the other layers; the NIC advances it */
	struct ur_counters *counters;
	struct ur_random *random; /* where QPNs, SRQ numbers and keys come from; outlives the instance */
	void (*yield)(void); /* lets others run: called while another lane holds what both use. May be NULL. */
	uint8_t slot;    /* ur_slot_of every QPN; at least 1 */
	bool cc;         /* congestion control: notifications are sent and obeyed (annex A17) */
	uint8_t cwnd;  /* enum ur_cwnd_when: windows follow the path (cwnd.h), where `window` is 0 */
	unsigned window; /* packets that one QP may have unacknowledged, up to 65536; 0: 2 MB of them, between 256 and 2048 */
	/* Losses are repaired by going back and by the ACK timer alone: no probes, no requests for parts of READs. To compare with. */
	bool plain_recovery;
	/*
	 * Packets beyond a lost one are kept (reorder.h), and selective acknowledgements exchanged with peers that know them
	 * (wire/sack.h).
	 */
	bool selective_repeat;
	size_t reorder_bytes;           /* for reorder buffers, which hold those packets; 0: what is worth while */
	uint32_t bulk_least, bulk_most; /* bytes of payload of a bulk packet: most is 4096 to UR_BULK_LEN; 0: what is worth while */
	/*
	 * A QP fails for want of acknowledgements whose peer is there, but has never acknowledged a message of more than one packet: a hop
	 * on the way may carry less than packets of that path MTU, in bytes, take. May be NULL.
	 */
	void (*only_short)(void *ctx, const struct ur_gid *dst, uint32_t path_mtu);
	/*
	 * Makes [at, at + len) readable, or writable too, if something can be mapped there; false otherwise. Called in the course of a
	 * packet, for what it touches of an on-demand region. NULL: there are no such regions.
	 */
	bool (*populate)(void *at, uint64_t len, bool write);
	/*
	 * Copies in ascending order between a packet and an on-demand region (`write`: to it); false, and any part may have been copied,
	 * when the region's bytes are not there. They may cease to be at any moment. NULL when `populate` is.
	 */
	bool (*copy)(void *to, const void *from, uint64_t len, bool write);
	/*
	 * Copies `from`, pieces of the memory of the process `slot` of this host, one after another into `to`, pieces of ours that are as
	 * long together; at most UR_FETCH_PIECES of each, and not empty. NULL: there is no other process.
	 */
	enum ur_fetched_by (*fetch)(void *ctx, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				    unsigned nfrom);
	/* What that process shows now as its token `at`, which is below UR_TOKENS; 0 if it shows none. NULL with `fetch`. */
	uint64_t (*token)(void *ctx, uint8_t slot, uint32_t at);
	_Atomic uint64_t *tokens; /* what we show, UR_TOKENS of them, zeros at first. NULL: nobody else sees any. */
};

int ur_tp_create(const struct ur_tp_config *c, struct ur_tp **out);
/* Everything in it must have been destroyed before. */
void ur_tp_destroy(struct ur_tp *tp);
/*
 * A further lane of a device, before anything is made in it: from now on it has the regions and windows of `first` in common with it and
 * its other lanes, and is to be destroyed before it. With the locks of all of them, as each call that makes, changes or destroys a region
 * or window. ENOSPC beyond UR_LANES.
 */
int ur_tp_join(struct ur_tp *tp, struct ur_tp *first);
/* Others see no tokens any more: from now on `tokens` of the configuration is neither read nor written. */
void ur_tp_hide_tokens(struct ur_tp *tp);

/*
 * How much the receivers of this port, and so those of peers like us, hold at a time: no QP has more bytes in flight. 0: 2 MB, as far as
 * `window` of the configuration does not say otherwise. For QPs that get their path MTU from now on.
 */
void ur_tp_set_window(struct ur_tp *tp, uint32_t bytes);
/* The longest train that the port sends (drivers/port.h): QPs send half of it in turn, or a few packets where it sends none. */
void ur_tp_set_train(struct ur_tp *tp, unsigned pkts, uint32_t bytes);
/* Whether payload is copied into packets; otherwise they refer to it where it lies, as far as that is worth while. */
void ur_tp_set_copies(struct ur_tp *tp, bool copies);
/* Receives trace events; may be NULL. Outlives the instance, or is removed. */
void ur_tp_set_trace(struct ur_tp *tp, struct ur_trace *trace);
/* The name of a value in a trace; NULL when it has none here. */
const char *ur_tp_trace_name(enum ur_trace_type type, uint64_t v);
/* The port's rate, where it is known: what a QP returns to when congestion is over. */
void ur_tp_set_speed(struct ur_tp *tp, uint32_t mbps);

/* Handles one received RoCEv2 packet (parsed, ICRC right, dqpn other than 0 and 1). The packet stays the caller's. */
void ur_tp_rx(struct ur_tp *tp, struct ur_pkt *p, ur_time now);
/*
 * The same for the first packets of a row that was received and is for this host, as far as they are in the middle of a message that a QP
 * waits for, or messages of one packet each, and all is right with them, their headers included: returns how many. The others go by
 * ur_tp_rx, one after another.
 */
struct ur_row; /* wire/row.h */
unsigned ur_tp_rx_run(struct ur_tp *tp, const struct ur_row *row, ur_time now);
/*
 * Builds up to n packets from the QPs that have something to send, fairly, ACKs and responses before requests; a train is one entry of
 * `pkts` and counts as many packets as it has. Returns the number of entries, which the caller owns. What is not UR_PKT_COMPLETE lacks
 * ur_frame_finish (which takes p->bth.pad). 0 means that nothing is left to send now, though a FLUSH may be (ur_tp_tx_pending).
 */
unsigned ur_tp_tx(struct ur_tp *tp, struct ur_pkt **pkts, unsigned n, ur_time now);
/*
 * After it: where it has ended with a train that has room, more packets into that train, as long as they join it, and returns how many. To
 * send costs hardly more with them than without, and otherwise they would need another one.
 */
unsigned ur_tp_fill(struct ur_tp *tp);
/*
 * A packet that ur_tp_tx built cannot be finished: memory that it refers to is not there any more. It stays the caller's to release; its
 * request fails, or the READ that it answers is refused, in one of the next calls of ur_tp_tx.
 */
void ur_tp_unsendable(struct ur_tp *tp, struct ur_pkt *p);
/*
 * Whether packets to `to` can be had: 0 is the wire, other numbers are those processes of this host (the top byte of their QPNs). While it
 * is held, ur_tp_tx builds nothing for it, and a QP with something for it next waits.
 */
void ur_tp_hold(struct ur_tp *tp, uint8_t to, bool hold);
/* What besides frames the process `to` of this host (as above) takes now: a sum of these; at first nothing. */
enum ur_takes {
	UR_TP_BULK = 1, /* bulk packets (wire/bulk.h): it takes payload from our memory by itself */
	UR_TP_SLIM = 2, /* slim packets (wire/slim.h) */
};
void ur_tp_set_takes(struct ur_tp *tp, uint8_t to, unsigned takes);
/* Handles a received slim or bulk packet (ur_slim_parse, ur_bulk_parse), whose `slot` is right, as ur_tp_rx does. */
void ur_tp_rx_local(struct ur_tp *tp, struct ur_pkt *p, ur_time now);
/* True when ur_tp_tx would have work. */
bool ur_tp_tx_pending(const struct ur_tp *tp);
/* The same, or a QP that has stalled (UR_C_TX_STALLED) would be asked again, in a round that takes place anyhow: none is begun for it. */
bool ur_tp_tx_worthwhile(const struct ur_tp *tp);
/* True when answers wait to be sent, and no requests. */
bool ur_tp_tx_answers(const struct ur_tp *tp);

/* --- protection domains and memory regions --- */

/* ENOMEM beyond UR_MAX_PD too; so it is with UR_MAX_MR, UR_MAX_MW, UR_MAX_CQ and UR_MAX_AH. */
int ur_pd_create(struct ur_tp *tp, struct ur_pd **out);
/* EBUSY while MRs, memory windows, SRQs or QPs belong to it. */
int ur_pd_destroy(struct ur_pd *pd);
/* Something that is no object of the transport stands on it, or (-1) no longer does: that counts as an object. */
void ur_pd_use(struct ur_pd *pd, int n);

/* What FLUSH needs (annex A19): flags that <infiniband/verbs.h> has from rdma-core 45 on. */
enum ur_access {
	UR_ACCESS_FLUSH_GLOBAL = 1 << 8,
	UR_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	UR_ACCESS_FLUSH = UR_ACCESS_FLUSH_GLOBAL | UR_ACCESS_FLUSH_PERSISTENT,
	UR_ACCESS_NULL = 1 << 16, /* not the API's: no memory at all, see ibv_alloc_null_mr(3) */
	UR_ACCESS_DOUBTFUL = 1 << 17, /* nor this: bytes of it were missing when they were touched */
	/* Memory that cannot be touched just like that, or that no packet may refer to. */
	UR_ACCESS_UNUSUAL = UR_ACCESS_NULL | UR_ACCESS_DOUBTFUL | IBV_ACCESS_ON_DEMAND,
};

/* Does FLUSH make data last in memory that keeps it? That takes an instruction that writes the CPU's caches back. */
#ifdef __x86_64__
#define UR_FLUSH_PERSISTS 1
#else
#define UR_FLUSH_PERSISTS 0
#endif

struct ur_mr {
	uint32_t lkey, rkey; /* equal: table index in the high 24 bits, generation in the low 8 */
	struct ur_pd *pd;
	uint8_t *addr; /* what `iova` refers to in this process */
	uint64_t iova;
	size_t length;
	int access;           /* enum ibv_access_flags and enum ur_access */
	unsigned windows;     /* memory windows bound to it */
	struct ur_ref frames; /* frames in flight that refer to this memory; and whether the port's device reaches it by itself */
	struct ur_tp *tp;
	uint32_t number; /* no other region of this instance has it, ever; 0 when there are no more (wire/bulk.h) */
};

/*
 * frames.dma of the new MR is its owner's to set, before anything is sent. EINVAL when addr + length or iova + length overflows, or for
 * remote write or atomic access without local write; EOPNOTSUPP for IBV_ACCESS_ON_DEMAND without a `populate` in the configuration.
 */
int ur_mr_reg(struct ur_tp *tp, struct ur_pd *pd, void *addr, size_t length, uint64_t iova, int access, struct ur_mr **out);
/*
 * EBUSY while frames refer to it: let the port finish them and call again. No packet touches the memory afterwards. EBUSY without any
 * effect while memory windows are bound to it (mr->windows).
 */
int ur_mr_dereg(struct ur_mr *mr);
/*
 * ibv_rereg_mr(3): a new MR takes over the keys of `mr`, with pd, addr, length, iova, access and frames.dma of `as`. All that is left to
 * do with `mr` is ur_mr_dereg, which waits for the frames that refer to its memory. EINVAL and EOPNOTSUPP as ur_mr_reg, EBUSY while windows
 * are bound to it, ENOMEM: then nothing has changed.
 */
int ur_mr_rereg(struct ur_mr *mr, const struct ur_mr *as, struct ur_mr **out);
/* The MR of that PD whose keys have this index (key >> 8), or NULL. */
struct ur_mr *ur_mr_of(const struct ur_pd *pd, uint32_t index);

/*
 * Memory windows (IBTA volume 1, 10.6.6 and 10.6.7; ibv_alloc_mw(3)), bound by BIND_MW work requests. A window of type 2 is one of type 2B:
 * only the QP that bound it has access. EINVAL for a type that does not exist; ENOMEM.
 */
int ur_mw_alloc(struct ur_tp *tp, struct ur_pd *pd, enum ibv_mw_type type, struct ur_mw **out);
/* Unbinds it first. */
void ur_mw_dealloc(struct ur_mw *mw);
/* The key that it has now: that of the last bind which was executed. */
uint32_t ur_mw_rkey(const struct ur_mw *mw);

/* --- memory of queues that somebody else brings --- */

/*
 * The rings of a QP, SRQ or CQ may lie in memory of the caller's, of as many bytes as asked for here, aligned to UR_RING_ALIGN. It stays
 * his and must outlive the object, even if that is resized. Before anything has been posted or completed. A size of 0: there is no such
 * ring.
 */
#define UR_RING_ALIGN 64
void ur_qp_ring_bytes(const struct ur_qp *qp, size_t *sq, size_t *rq);
/* Either may be NULL: then that ring stays where it is. */
void ur_qp_lend(struct ur_qp *qp, void *sq, void *rq);
size_t ur_srq_ring_bytes(const struct ur_srq *srq);
void ur_srq_lend(struct ur_srq *srq, void *mem);
size_t ur_cq_ring_bytes(const struct ur_cq *cq);
void ur_cq_lend(struct ur_cq *cq, void *mem);

/* --- completion queues --- */

/*
 * `notify` is called once per arming, when a completion arrives that the arming asked for, by the NIC, or is there already, by ur_cq_arm.
 */
int ur_cq_create(struct ur_tp *tp, unsigned cqe, void *context, void (*notify)(struct ur_cq *cq), struct ur_cq **out);
/* EBUSY while QPs or (XRC) SRQs use it. */
int ur_cq_destroy(struct ur_cq *cq);
void *ur_cq_context(const struct ur_cq *cq);
/* Do QPs or SRQs use it? The lane that it belongs to. */
bool ur_cq_is_used(const struct ur_cq *cq);
struct ur_tp *ur_cq_lane(const struct ur_cq *cq);
/*
 * A QP of that instance is to use it: it now belongs to that lane if nobody uses it yet, and otherwise is shared by lanes, for good. With
 * the locks of all lanes.
 */
void ur_cq_share(struct ur_cq *cq, struct ur_tp *tp);
unsigned ur_cq_size(const struct ur_cq *cq);
/* Before its first completion: each carries the `now` of the call in which it arose, for ur_cq_take. ENOMEM. */
int ur_cq_stamp(struct ur_cq *cq);
/* A completion that finds no room is lost and counted, and nothing else happens. */
void ur_cq_ignore_overrun(struct ur_cq *cq);
/*
 * Room for at least `cqe` completions; what is queued stays. EINVAL when there is more of it, or outside [1, UR_MAX_CQE]; ENOMEM. Needs the
 * consumer's lock as well.
 */
int ur_cq_resize(struct ur_cq *cq, unsigned cqe);
/*
 * One notification for `count` completions of an armed CQ, or for those that have come `period_us` after the first of them. 0 in
 * either place, and 1 as the count, mean a notification for each.
 */
void ur_cq_moderate(struct ur_cq *cq, uint16_t count, uint16_t period_us);
/* `overrun` is called by the NIC, once, when the CQ overruns (IBV_EVENT_CQ_ERR); may be left unset. */
void ur_cq_on_overrun(struct ur_cq *cq, void (*overrun)(struct ur_cq *cq));
/* [app] A poll would return 0. The one function of the consumer's side that needs no lock against others of it. */
bool ur_cq_is_empty(const struct ur_cq *cq);
/* [app] Up to n completions; returns how many, or -1 when the CQ has overrun. */
int ur_cq_poll(struct ur_cq *cq, int n, struct ibv_wc *wc);
/* [app] ur_cq_poll for one completion; *at is when it arose, untouched without ur_cq_stamp. */
int ur_cq_take(struct ur_cq *cq, struct ibv_wc *wc, ur_time *at);
/* [app] Asks for one call of `notify` at the next completion, or at the next solicited (or failed) one; at once if the CQ holds
 * one of which no event has told. */
void ur_cq_arm(struct ur_cq *cq, bool solicited_only);
/* [app] The consumer has fetched an event. It told of the oldest completion that is there now: programs count on no second event for
 * that one, and some, which poll one completion an event, on one for each behind it. */
void ur_cq_event_fetched(struct ur_cq *cq);
/* Removes completions of a QP that is being destroyed or reset. Needs the consumer's lock as well. */
void ur_cq_clean(struct ur_cq *cq, uint32_t qpn);

/* --- shared receive queues (IBTA volume 1, 10.2.9; annex A14 for XRC) --- */

struct ur_srq_init {
	struct ur_pd *pd;
	struct ur_xrcd *xrcd;     /* of an XRC SRQ; NULL makes a basic one */
	struct ur_cq *cq;         /* of an XRC SRQ: where its receives complete; a basic one uses those of its QPs */
	struct ibv_srq_attr attr; /* max_wr is granted as asked for; max_sge 0 becomes 1 in place; srq_limit is not used */
	void *context;
	/*
	 * IBV_EVENT_SRQ_LIMIT_REACHED, and IBV_EVENT_SRQ_ERR when the CQ of an XRC SRQ has overrun: nothing can be received there any more.
	 * A basic SRQ is a ring in memory and has no error of its own. Called by the NIC in the middle of its work. May be NULL.
	 */
	void (*event)(struct ur_srq *srq, enum ibv_event_type ev);
};

int ur_srq_create(struct ur_tp *tp, struct ur_srq_init *init, struct ur_srq **out);
/* Drops what is posted without completions. EBUSY while QPs were made with it; an XRC_RECV QP that is filling a WQE of it loses that. */
int ur_srq_destroy(struct ur_srq *srq);
/*
 * ibv_modify_srq(3). IBV_SRQ_MAX_WR resizes to attr->max_wr; needs the producers' lock as well. IBV_SRQ_LIMIT arms the
 * limit event, which comes once, when fewer are posted (at once if they are already); 0 disarms. EINVAL, and nothing is changed, for more
 * than UR_MAX_SRQ_WR, fewer than are posted, a limit above the size.
 */
int ur_srq_modify(struct ur_srq *srq, struct ibv_srq_attr *attr, int mask);
void ur_srq_query(const struct ur_srq *srq, struct ibv_srq_attr *attr);
/* A QP of that instance is to take from it: from now on lanes share it, if it is another one than its own. With the locks of all. */
void ur_srq_share(struct ur_srq *srq, struct ur_tp *tp);
/* What an XRCETH names: 24 bits, the slot in the top byte. */
uint32_t ur_srq_num(const struct ur_srq *srq);
void *ur_srq_context(const struct ur_srq *srq);
/* [app] ibv_post_srq_recv(3): as ur_qp_post_recv. EINVAL after IBV_EVENT_SRQ_ERR. */
int ur_srq_post(struct ur_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* XRC domains: an XRC_RECV QP reaches the SRQs of its own. */
int ur_xrcd_create(struct ur_tp *tp, struct ur_xrcd **out);
/* EBUSY while SRQs or QPs belong to it. */
int ur_xrcd_destroy(struct ur_xrcd *xrcd);

/* --- queue pairs --- */

struct ur_qp_init {
	enum ibv_qp_type type;           /* IBV_QPT_RC, UC, UD, XRC_SEND, XRC_RECV; EOPNOTSUPP for others */
	struct ur_pd *pd;                /* of XRC_RECV unused, as are the CQs: its SRQs have them */
	struct ur_cq *send_cq, *recv_cq; /* recv_cq: of XRC_SEND unused */
	struct ur_srq *srq;              /* a basic one, in place of a receive queue; may be NULL */
	struct ur_xrcd *xrcd;            /* of XRC_RECV alone */
	struct ibv_qp_cap cap;           /* becomes what was granted: WRs as asked for, SGEs and inline bytes perhaps more */
	bool sq_sig_all;
	void *context;
	/* Asynchronous events, called by the NIC in the middle of its work: it may not call back into the QP. May be NULL. */
	void (*event)(struct ur_qp *qp, enum ibv_event_type ev);
};

int ur_qp_create(struct ur_tp *tp, struct ur_qp_init *init, struct ur_qp **out);
/* Drops what is queued without completions, as ibv_destroy_qp(3) does. EBUSY while it is attached to a multicast group. */
int ur_qp_destroy(struct ur_qp *qp);
uint32_t ur_qp_num(const struct ur_qp *qp);
/* When the last packet came to it with the right source, P_Key and service; 0: never. */
ur_time ur_qp_last_received(const struct ur_qp *qp);
void *ur_qp_context(const struct ur_qp *qp);
/* NULL unless it is an XRC_RECV QP. */
struct ur_xrcd *ur_qp_xrcd(const struct ur_qp *qp);
struct ur_qp *ur_qp_find(struct ur_tp *tp, uint32_t qpn);
/* [app] */
enum ibv_qp_state ur_qp_state(const struct ur_qp *qp);

/*
 * ibv_modify_qp(3): checks the transition and its required and optional attributes against the one table, EINVAL otherwise. IBV_QP_AV needs
 * `path` (owned by the caller, alive as long as the QP or until the next IBV_QP_AV; it may become ready later); NULL otherwise.
 */
int ur_qp_modify(struct ur_qp *qp, const struct ibv_qp_attr *attr, int mask, const struct ur_path *path, ur_time now);
void ur_qp_query(const struct ur_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);
/*
 * A message to the peer and its answer took that long when the connection was made, or less: until a packet has been timed, it is missed by
 * that.
 */
void ur_qp_handshake_took(struct ur_qp *qp, ur_time t);

/* [app] ibv_post_send(3) and ibv_post_recv(3): 0, or errno with *bad the first request not taken (ENOMEM full, EINVAL otherwise: receives
 * of a QP with an SRQ among others). */
int ur_qp_post_send(struct ur_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ur_qp_post_recv(struct ur_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/*
 * [app] ibv_wr_post(3): requests that become visible to the NIC together, or not at all. Between ur_wr_start and ur_wr_complete nothing
 * else may post to the send queue. The first error stays and fails the batch: ENOMEM full, EINVAL otherwise, as for ur_qp_post_send, whose
 * checks these are.
 */
struct ur_wr_batch {
	struct ibv_send_wr wr; /* of the current request, the caller's to fill: everything but sg_list and num_sge */
	uint64_t length;       /* of its data */
	uint32_t tail;         /* where it goes */
	bool open;             /* there is one, and room for it */
	int err;
};

/* Is there such a request on a QP of that type? */
bool ur_wr_supported(enum ibv_qp_type type, enum ibv_wr_opcode opcode);
void ur_wr_start(struct ur_qp *qp, struct ur_wr_batch *b);
/* Begins a request and returns where wr_id, opcode, flags and operands go; its UD address and SRQ number are unset, it has no data. */
struct ibv_send_wr *ur_wr_next(struct ur_qp *qp, struct ur_wr_batch *b);
/* Its data, once its wr is filled: by reference, or copied, which sets IBV_SEND_INLINE. The last call counts. */
void ur_wr_list(struct ur_qp *qp, struct ur_wr_batch *b, const struct ibv_sge *list, size_t n);
void ur_wr_inline(struct ur_qp *qp, struct ur_wr_batch *b, const struct ibv_data_buf *bufs, size_t n);
/* 0, or the error and nothing has been posted. */
int ur_wr_complete(struct ur_qp *qp, struct ur_wr_batch *b);
/* In its place: nothing has been posted. */
void ur_wr_abort(struct ur_qp *qp, struct ur_wr_batch *b);
/* [app] True once until ur_qp_answer when new sends (or receives of a QP in error) wait for the NIC: the caller then puts the QP on the
 * engine's doorbell list. */
bool ur_qp_doorbell(struct ur_qp *qp);
/* The QP has been taken off the doorbell list: lets it ring again and kicks it. Only for the thread that empties that list. */
void ur_qp_answer(struct ur_qp *qp, ur_time now);
/* There may be something new for the NIC in this QP, or its path has become ready: schedules it for ur_tp_tx. */
void ur_qp_kick(struct ur_qp *qp, ur_time now);
/* Since the QP was created or reset. */
const struct ur_qp_counters *ur_qp_counters(const struct ur_qp *qp);

/* The state of a QP right now, as `uroce top` shows it. */
struct ur_qp_snapshot {
	uint32_t qpn, dqpn;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	uint32_t mtu;                  /* bytes of payload in a packet */
	bool connected;                /* it has a peer, whose address is known */
	struct ur_gid local, peer;     /* then */
	uint32_t srtt, rttvar, rtt_min; /* the round trip, ns; 0: not measured yet */
	uint32_t window, in_flight;    /* packets that may be, and are, unacknowledged */
	uint32_t unfinished;           /* send requests that are posted and not complete */
	uint32_t rate_kbps;            /* that congestion holds it to; 0: none */
};

/* Asks nothing of the QP but what is at hand. */
void ur_qp_snapshot(const struct ur_qp *qp, struct ur_qp_snapshot *snapshot);
struct ur_last_ack; /* wire/last_ack.h */
/*
 * The acknowledgement that the QP sent last: what its peer waits for, if it was lost. False: there has been none, or the last word was a
 * NAK, or the peer has sent nothing since `since`.
 */
bool ur_qp_last_ack(const struct ur_qp *qp, ur_time since, struct ur_last_ack *ack);
/* The QPs one after the other in no order that means anything, beginning with *place 0; NULL at the end. `place` is kept between calls. */
const struct ur_qp *ur_tp_next_qp(const struct ur_tp *tp, uint32_t *place);
/* How many QPs there are. */
unsigned ur_tp_qp_count(const struct ur_tp *tp);

/* The engine's doorbell list runs through the QP. */
struct ur_qp **ur_qp_doorbell_link(struct ur_qp *qp);
/*
 * Nobody answers at the next hop of the QP's path. An RC QP goes on counting retries; what a UC QP has to send is lost, as on a wire that
 * leads nowhere, and completes.
 */
void ur_qp_unreachable(struct ur_qp *qp);
/*
 * Somebody says (ICMP) that a packet with this BTH did not reach `dst`. When it is a request of ours that is not acknowledged, requests to
 * that address are sent again sooner; they fail when their retries are exhausted, as without it.
 */
bool ur_tp_unreachable(struct ur_tp *tp, const struct ur_gid *dst, const uint8_t bth[12], ur_time now);
/*
 * The same where the packet was too long for a hop that carries hop_mtu IP bytes. It counts also when it is a READ response; and returns
 * the path MTU of its QP, in bytes, or 0 when it is none of ours, or of a QP whose packets are not that long.
 */
uint32_t ur_tp_too_long(struct ur_tp *tp, const struct ur_gid *dst, uint16_t hop_mtu, const uint8_t bth[12], ur_time now);

/* --- datagrams: address handles and multicast --- */

/*
 * Where a datagram goes. The owner of the path makes it (ur_ah_init) and tells of changes (ur_ah_changed). Every queued request refers to
 * its address handle; ur_ah_destroy gives up the owner's reference, and `release` is called with the last one, perhaps later.
 */
struct ur_ah {
	struct ibv_ah api; /* first: what wr.ud.ah of a send request points to */
	struct ur_pd *pd;
	const struct ur_path *path;
	bool unreachable;       /* the next hop did not answer: what is sent is lost, until it does */
	atomic_uint refs;
	struct ur_list waiters; /* QPs whose oldest request waits for `path` */
	void (*retry)(struct ur_ah *ah, ur_time now); /* something was to be sent to an unreachable one: look for it again */
	void (*release)(struct ur_ah *ah);
	struct ur_tp *tp;
	struct ur_ah *dropped; /* the next of those that wait for their release */
};

/* 0, or ENOMEM. */
int ur_ah_init(struct ur_ah *ah, struct ur_pd *pd, const struct ur_path *path, void (*retry)(struct ur_ah *ah, ur_time now),
	       void (*release)(struct ur_ah *ah));
/* The path became ready, or its next hop did not answer. */
void ur_ah_changed(struct ur_ah *ah, bool reachable);
void ur_ah_destroy(struct ur_ah *ah);

/* A datagram is at most this long: the port's active MTU. 4096 until it is set. */
void ur_tp_set_port_mtu(struct ur_tp *tp, uint32_t bytes);

/*
 * ibv_attach_mcast(3): a UD QP receives what is sent to the group, once, however often it is attached. EINVAL for other QPs and for a GID
 * that is no multicast address; ENOMEM at a limit (UR_MAX_MCAST_GROUPS, UR_MAX_MCAST_QPS).
 */
int ur_mcast_attach(struct ur_qp *qp, const struct ur_gid *group);
/* EINVAL when it is not attached. */
int ur_mcast_detach(struct ur_qp *qp, const struct ur_gid *group);
/* Up to `max` groups that QPs are attached to; returns how many there are in all. */
unsigned ur_mcast_list(const struct ur_tp *tp, struct ur_gid *out, unsigned max);
bool ur_qp_is_attached(const struct ur_qp *qp);
/* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB: what the QP sends to groups from now on does not come back to this host. */
void ur_qp_block_mcast_loopback(struct ur_qp *qp);

#endif
