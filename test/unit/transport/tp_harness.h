/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transports with one queue pair each (RC unless told otherwise), joined by a wire in virtual time on which exactly the chosen packets
 * are lost. A test may also play one of the two itself: th_pull takes a packet from a node, th_feed hands a node a packet that the test has
 * made.
 */
#ifndef UR_TP_HARNESS_H
#define UR_TP_HARNESS_H

#include <CUnit/CUnit.h>

#include "base/psn.h"
#include "base/rng.h"
#include "transport/state/tp_priv.h"
#include "wire/frame.h"
#include "wire/train.h"

/* Syndromes: an acknowledgement without credits, and refusals. */
#define ACK 0x1f
#define NAK(code) (UR_AETH_NAK << 5 | (code))
#define SEQ_NAK NAK(UR_NAK_PSN_SEQ)
#define US UR_NS_PER_US
#define TH_MEM (1u << 20)
#define TH_ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define TH_MR_ACCESS (TH_ALL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | UR_ACCESS_FLUSH) /* of a node's MR */

struct th_opt {
	enum ibv_qp_type type; /* 0 is RC */
	enum ibv_mtu mtu;
	uint32_t qkey; /* of UD QPs */
	uint32_t psn[2]; /* first PSN that each node sends */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr, max_rd;
	unsigned window, wr, sge, cqe;
	uint32_t inline_data;
	bool sig_all, v6, stay_rtr, cc, selective;
	uint8_t cwnd;
	size_t reorder_bytes;
	int access;
	unsigned train; /* packets of the longest train that the ports send; 0: none */
	uint32_t train_bytes;
};

/* 1024 bytes MTU, 64 WRs, 4 SGEs, timeout 8 (1.05 ms), 7 retries; signalled by flag. */
extern const struct th_opt th_default;

struct th;

struct th_node {
	struct th *h;
	struct ur_tp *tp;
	struct ur_random random;
	struct ur_counters c;
	struct ur_pd *pd;
	struct ur_cq *scq, *rcq;
	struct ur_qp *qp;
	struct ur_path path;
	struct ur_mr *mr; /* covers mem, iova = address */
	uint8_t *mem;
	int live;      /* packets that were allocated and not freed */
	unsigned room; /* packets that may still be allocated */
	unsigned trains; /* and trains */
	enum ibv_event_type event[32];
	unsigned nevents;
	unsigned notified;
};

struct th {
	struct ur_wheel *wheel;
	ur_time now;
	struct th_opt opt;
	struct th_node n[2];
	bool (*lose)(struct th *h, unsigned from, const struct ur_pkt *p);
	void *arg;
	uint64_t sent[2]; /* packets that each node put on the wire */
};

struct th_pkt { /* as received */
	struct ur_pkt p;
	uint8_t buf[UR_PKT_ROOM + 64];
};

struct th_hdr { /* extended headers for th_make; those that the opcode has are used */
	uint64_t va;
	uint32_t rkey, len, imm, ieth, msn, srqn;
	uint8_t syndrome;
	uint64_t swap_add, compare, original; /* of atomics */
	struct ur_feth feth;
	uint32_t qkey, sqpn;
};

void th_open(struct th *h, const struct th_opt *opt);
/* Destroys everything and checks that no packet and no reference is left, and that no QP has stalled. */
void th_close(struct th *h);
/* INIT, RTR and RTS (unless opt.stay_rtr) for one node. */
void th_connect(struct th *h, unsigned node);

/* Moves packets between the nodes until both are quiet, at standing time. */
void th_pump(struct th *h);
/* The same, and lets time pass until nothing is left to wait for or `limit` has passed. */
void th_run(struct th *h, ur_time limit);
/* How long a peer has to be silent until so many retries are used up, with the ACK timer of th_default; times of it. */
#define TH_TIMES_SILENT(retries) ((retries) < 2 ? 1 + 2 * (retries) : 3 + 3.5 * ((retries) - 1))
/* Lets time pass without moving packets. */
void th_sleep(struct th *h, ur_time d);

bool th_pull(struct th *h, unsigned node, struct th_pkt *out);
/* One packet of what ur_tp_tx gave, or the next of a train (`at` begins with zeros); false behind the last. Then th_free. */
bool th_wire(struct ur_pkt *p, struct ur_train_cursor *at, struct th_pkt *out);
void th_free(struct th *h, unsigned node, struct ur_pkt **pkts, unsigned n);
/* Pulls all and throws them away; returns how many. */
unsigned th_drain(struct th *h, unsigned node);
void th_feed(struct th *h, unsigned node, struct th_pkt *in);
/* A packet as `node`'s peer would send it. */
void th_make(struct th *h, unsigned node, struct th_pkt *out, uint8_t opcode, uint32_t psn, bool ackreq, const struct th_hdr *ext,
	     const void *payload, uint32_t len);
/* th_make and th_feed. */
void th_inject(struct th *h, unsigned node, uint8_t opcode, uint32_t psn, bool ackreq, const struct th_hdr *ext, const void *payload,
	       uint32_t len);
void th_ack(struct th *h, unsigned node, uint32_t psn, uint8_t syndrome);
/* Pulls one packet and checks that it is an acknowledgement with these values. */
void th_expect_ack(struct th *h, unsigned node, uint32_t psn, uint8_t syndrome);
/* A fatal refusal: the NAK leaves, the QP is in ERR, `event` (-1 for none) has been reported, nothing else is sent. */
void th_expect_refused(struct th *h, unsigned node, uint32_t psn, enum ur_nak_code code, int event);
/* A RETH into the node's memory, and an immediate. */
struct th_hdr th_reth(const struct th *h, unsigned node, uint32_t off, uint32_t len);
void th_expect_quiet(struct th *h, unsigned node);

/* Posts a request whose operands are not those of RDMA, and kicks. */
int th_post_wr(struct th *h, unsigned node, struct ibv_send_wr *wr);
/* Posts one request with one SGE of the node's own memory and kicks. Remote operations go to `roff` in the peer's memory. */
int th_post(struct th *h, unsigned node, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len, uint32_t roff, unsigned flags);
int th_post_sge(struct th *h, unsigned node, enum ibv_wr_opcode op, uint64_t wr_id, struct ibv_sge *sge, int nsge, uint64_t raddr,
		uint32_t rkey, unsigned flags);
int th_recv(struct th *h, unsigned node, uint64_t wr_id, uint32_t off, uint32_t len);
/* Takes one completion and checks wr_id and status. */
struct ibv_wc th_expect_wc(struct ur_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
void th_expect_no_wc(struct ur_cq *cq);
void th_fill(struct th_node *n, uint64_t seed);
/* Loses the packets whose numbers (counted from 0 for each node) are set in the 64-bit masks at h->arg (two of them). */
bool th_lose_mask(struct th *h, unsigned from, const struct ur_pkt *p);

#endif
