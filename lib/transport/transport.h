/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport: the InfiniBand transport (IBTA volume 1, chapters 9 to 11) without I/O. Protection domains, memory regions,
 * completion queues, queue pairs; requester, responder and completer; retransmission. Packets enter through ur_tp_rx and leave through
 * ur_tp_tx; time enters as `now` and leaves through the timing wheel.
 *
 * Types of the API (states, attributes, work requests, completions) are those of rdma-core's verbs.h; only its declarations are used.
 *
 * Two kinds of callers. The *shard* (whoever holds the engine's lock) may call everything. *Application threads* may, without the lock,
 * call what is marked [app]: they share with the shard only the rings of SQ, RQ and CQ (single producer, single consumer, C11
 * acquire/release), so calls on one ring must be serialised by the caller. Functions that can fail return 0 or a positive errno.
 */
#ifndef UR_TRANSPORT_H
#define UR_TRANSPORT_H

#include <infiniband/verbs.h>

#include "base/counters.h"
#include "base/list.h"
#include "base/wheel.h"
#include "wire/path.h"
#include "wire/pkt.h"

struct ur_tp;
struct ur_pd;
struct ur_mr;
struct ur_cq;
struct ur_qp;
struct ur_ah;

/* What this software can do; the same numbers go into ibv_query_device. */
#define UR_MAX_QP 16384
#define UR_MAX_QP_WR 16384
#define UR_MAX_SGE 32
#define UR_MAX_INLINE 1024
#define UR_MAX_CQE 65535
#define UR_MAX_RD_ATOMIC 128
#define UR_MAX_MSG (1u << 31)
#define UR_MAX_MR (1u << 20)

struct ur_tp_config {
	void *ctx; /* handed to alloc */
	/* Packets to build frames in, as ur_port_ops.alloc; may give fewer than asked. */
	unsigned (*alloc)(void *ctx, struct ur_pkt **pkts, unsigned n);
	void (*free)(void *ctx, struct ur_pkt **pkts, unsigned n);
	struct ur_wheel *wheel; /* shared with the other layers; the NIC advances it */
	struct ur_counters *counters;
	uint64_t seed;
	uint8_t slot;    /* top byte of every QPN; at least 1 */
	bool cc;         /* congestion control: notifications are sent and obeyed (annex A17) */
	unsigned window; /* packets that one QP may have unacknowledged, up to 65536; 0: 2 MB of them, between 256 and 2048 */
	/* Losses are repaired by going back and by the ACK timer alone: no probes, no requests for parts of READs. To compare with. */
	bool plain_recovery;
};

int ur_tp_create(const struct ur_tp_config *c, struct ur_tp **out);
/* Everything in it must have been destroyed before. */
void ur_tp_destroy(struct ur_tp *tp);

/* The port's rate, where it is known: what a QP returns to when congestion is over. */
void ur_tp_set_speed(struct ur_tp *tp, uint32_t mbps);

/* Handles one received RoCEv2 packet (parsed, ICRC right, dqpn other than 0 and 1). The packet stays the caller's. */
void ur_tp_rx(struct ur_tp *tp, struct ur_pkt *p, ur_time now);
/*
 * Builds up to n packets from the QPs that have something to send, fairly, ACKs and responses before requests, and returns how many. Each
 * is complete but for ur_frame_finish (which takes p->bth.pad); the caller owns them. 0 means that nothing is left to send now.
 */
unsigned ur_tp_tx(struct ur_tp *tp, struct ur_pkt **pkts, unsigned n, ur_time now);
/* True when ur_tp_tx would have work. */
bool ur_tp_tx_pending(const struct ur_tp *tp);

/* --- protection domains and memory regions --- */

int ur_pd_create(struct ur_tp *tp, struct ur_pd **out);
/* EBUSY while MRs or QPs belong to it. */
int ur_pd_destroy(struct ur_pd *pd);

struct ur_mr {
	uint32_t lkey, rkey; /* equal: table index in the high 24 bits, generation in the low 8 */
	struct ur_pd *pd;
	uint8_t *addr; /* what `iova` refers to in this process */
	uint64_t iova;
	size_t length;
	int access;           /* enum ibv_access_flags */
	struct ur_ref frames; /* frames under way that refer to this memory */
	struct ur_tp *tp;
};

/* EINVAL when addr + length or iova + length overflows, or for remote write or atomic access without local write. */
int ur_mr_reg(struct ur_tp *tp, struct ur_pd *pd, void *addr, size_t length, uint64_t iova, int access, struct ur_mr **out);
/* EBUSY while frames refer to it: let the port finish them and call again. No packet touches the memory afterwards. */
int ur_mr_dereg(struct ur_mr *mr);

/* --- completion queues --- */

/* `notify` is called by the shard, once per arming, when a completion arrives that the arming asked for. */
int ur_cq_create(struct ur_tp *tp, unsigned cqe, void *context, void (*notify)(struct ur_cq *cq), struct ur_cq **out);
/* EBUSY while QPs use it. */
int ur_cq_destroy(struct ur_cq *cq);
void *ur_cq_context(const struct ur_cq *cq);
unsigned ur_cq_size(const struct ur_cq *cq);
/* `overrun` is called by the shard, once, when the CQ overruns (IBV_EVENT_CQ_ERR); may be left unset. */
void ur_cq_on_overrun(struct ur_cq *cq, void (*overrun)(struct ur_cq *cq));
/* [app] Up to n completions; returns how many, or -1 when the CQ has overrun. */
int ur_cq_poll(struct ur_cq *cq, int n, struct ibv_wc *wc);
/* [app] Asks for one call of `notify` at the next completion, or at the next solicited (or failed) one. */
void ur_cq_arm(struct ur_cq *cq, bool solicited_only);
/* Removes completions of a QP that is being destroyed or reset. Needs the consumer's lock as well. */
void ur_cq_clean(struct ur_cq *cq, uint32_t qpn);

/* --- queue pairs --- */

struct ur_qp_init {
	enum ibv_qp_type type; /* IBV_QPT_RC; EOPNOTSUPP for what is not built yet */
	struct ur_pd *pd;
	struct ur_cq *send_cq, *recv_cq;
	struct ibv_qp_cap cap; /* rounded up in place to what was granted */
	bool sq_sig_all;
	void *context;
	/* Asynchronous events, called by the shard in the middle of its work: it may not call back into the QP. May be NULL. */
	void (*event)(struct ur_qp *qp, enum ibv_event_type ev);
};

int ur_qp_create(struct ur_tp *tp, struct ur_qp_init *init, struct ur_qp **out);
/* Drops what is queued without completions, as ibv_destroy_qp(3) does. EBUSY while frames refer to its inline data. */
int ur_qp_destroy(struct ur_qp *qp);
uint32_t ur_qp_num(const struct ur_qp *qp);
void *ur_qp_context(const struct ur_qp *qp);
struct ur_qp *ur_qp_find(struct ur_tp *tp, uint32_t qpn);
/* The numbers of up to n queue pairs; returns how many. */
unsigned ur_tp_qps(const struct ur_tp *tp, uint32_t *qpns, unsigned n);
/* [app] */
enum ibv_qp_state ur_qp_state(const struct ur_qp *qp);

/*
 * ibv_modify_qp(3): checks the transition and its required and optional attributes against the one table, EINVAL otherwise. IBV_QP_AV needs
 * `path` (owned by the caller, alive as long as the QP or until the next IBV_QP_AV; it may become ready later); NULL otherwise.
 */
int ur_qp_modify(struct ur_qp *qp, const struct ibv_qp_attr *attr, int mask, const struct ur_path *path, ur_time now);
void ur_qp_query(const struct ur_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* [app] ibv_post_send(3) and ibv_post_recv(3): 0, or errno with *bad the first request not taken (ENOMEM full, EINVAL otherwise). */
int ur_qp_post_send(struct ur_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ur_qp_post_recv(struct ur_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* [app] True once until ur_qp_answer when new sends (or receives of a QP in error) wait for the shard: the caller then puts the QP on the
 * engine's doorbell list. */
bool ur_qp_doorbell(struct ur_qp *qp);
/* The QP has been taken off the doorbell list: lets it ring again and kicks it. For nobody but whoever empties that list. */
void ur_qp_answer(struct ur_qp *qp, ur_time now);
/* There may be something new for the shard in this QP, or its path has become ready: schedules it for ur_tp_tx. */
void ur_qp_kick(struct ur_qp *qp, ur_time now);
/*
 * What one QP counts: packets and bytes of payload, and what of enum ur_counter says how its connection fares. One table: the members,
 * their names, and the counters of the device that they go with.
 */
#define UR_QP_COUNTERS(X)                                                                                                                  \
	X(retransmits, RETRANSMIT)                                                                                                         \
	X(out_of_sequence, DROP_OUT_OF_SEQ)                                                                                                \
	X(duplicates, DUPLICATE)                                                                                                           \
	X(seq_errors, PACKET_SEQ_ERR)                                                                                                      \
	X(implied_naks, IMPLIED_NAK)                                                                                                       \
	X(rnr_sent, RNR_NAK_SENT)                                                                                                          \
	X(rnr_received, RNR_NAK_RCVD)                                                                                                      \
	X(timeouts, ACK_TIMEOUT)                                                                                                           \
	X(probes, PROBE)                                                                                                                   \
	X(cnp_sent, CNP_SENT)                                                                                                              \
	X(cnp_handled, CNP_HANDLED)

struct ur_qp_counters {
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
#define UR_QP_COUNTER_MEMBER(member, counter) uint64_t member;
	UR_QP_COUNTERS(UR_QP_COUNTER_MEMBER)
#undef UR_QP_COUNTER_MEMBER
};

#define UR_QP_COUNTER_COUNT (sizeof(struct ur_qp_counters) / sizeof(uint64_t))

/* Since the QP was created or reset. */
const struct ur_qp_counters *ur_qp_counters(const struct ur_qp *qp);
/* "tx_packets" and so on, in the order of the struct; NULL past the last. */
const char *ur_qp_counter_name(unsigned i);

/* The engine's doorbell list runs through the QP. */
struct ur_qp **ur_qp_doorbell_link(struct ur_qp *qp);

#endif
