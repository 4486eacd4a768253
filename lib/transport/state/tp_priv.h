/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all of lib/transport shares: the instance, its numbers, packets and counts. qp_priv.h has what a queue pair is made of. What else a
 * source offers to the others stands in the header of its name; README.md says where what is.
 */
#ifndef UR_TP_PRIV_H
#define UR_TP_PRIV_H

#include "base/idtab.h"
#include "base/random.h"
#include "transport/state/keys.h"
#include "transport/state/qp_priv.h"
#include "transport/state/trace.h"
#include "transport/state/tx_state.h"
#include "wire/frame.h"

#define UR_TX_STASH 32      /* packet buffers fetched at a time */
#define UR_MCAST_BUCKETS 64 /* a power of two */

struct ur_reorder_arena; /* reorder.h */

struct ur_tp {
	struct ur_tp_config c;
	struct ur_keys *keys;                     /* regions and windows: this instance's own, or those of the lane that it joined */
	struct ur_idtab qps, srqs;                /* by QPN, by number */
	ur_time now;                              /* of the current call */
	struct ur_trace *trace;                   /* NULL: nobody wants to know */
	_Atomic uint64_t *tokens, *hidden_tokens; /* of bulk packets (bulk.h): those in use; where they are that nobody else sees */
	/*
	 * The low parts of numbers to come. Nobody can guess them, and a QPN comes back late: a peer that has not noticed the end of its
	 * last owner, perhaps a process that died, goes on sending to it, and its CM refuses a new connection to it as stale.
	 */
	struct ur_shuffle qpns, srqns;
	struct ur_list txq[UR_TXQ_COUNT];    /* QPs that have something to send */
	struct ur_list parked[UR_TXQ_COUNT]; /* and those whose next packet goes where nothing can go now */
	unsigned nheld;                      /* such destinations */
	uint64_t held[256 / 64];
	uint8_t takes[256];      /* of enum ur_takes: what may go to whom on this host */
	struct ur_budget budget; /* of all QPs, for what may be sent again without evidence of a loss */
	ur_time deaf_until;      /* of what the network says */
	unsigned nstash;
	bool starved;           /* no packet buffer was available in this call of ur_tp_tx */
	bool sliced;            /* a FLUSH has had its slice in it */
	bool pause;             /* the QP whose turn it is has more to do, but not in this call */
	struct ur_list paused;  /* such QPs; the first has had its slice */
	struct ur_list stalled; /* those that had something to send, and moved nothing: schedule.c */
	unsigned quantum;       /* packets of one QP before the next has its turn */
	struct ur_qp *last;     /* whose packets are the last of this call of ur_tp_tx; NULL: nobody's */
	enum ur_txq last_q;     /* and what they are */
	unsigned train_pkts;    /* the longest train that the port sends; 0 and 1: none */
	uint32_t train_bytes;
	bool copies; /* the port does not send payload from where it lies */
	struct ur_txbuf tx;
	struct ur_reorder_arena *reorder; /* NULL: packets beyond a lost one are not kept */
	uint32_t window_bytes;            /* that a QP may have unacknowledged */
	uint32_t line_kbps;               /* rate of the port */
	_Atomic(struct ur_ah *) dropped; /* address handles whose last reference an application thread gave up: the NIC's to release */
	uint32_t port_mtu;
	unsigned ngroups;
	struct ur_list group[UR_MCAST_BUCKETS];
	struct ur_pkt *stash[UR_TX_STASH];
};

/* --- objects --- */

/* One more of a kind: 0, or ENOMEM when there are as many as ibv_query_device(3) says that there can be. One less. */
int ur_made(struct ur_tp *tp, enum ur_kind kind);
void ur_unmade(struct ur_tp *tp, enum ur_kind kind);
/* Puts the object into the table under a number of the slot that `order` brings next. ENOSPC or ENOMEM otherwise. */
int ur_tp_number(struct ur_tp *tp, struct ur_idtab *t, struct ur_shuffle *order, void *obj, uint32_t *number);

/* --- packets --- */

/* A fresh packet or NULL. */
struct ur_pkt *ur_tp_pkt(struct ur_tp *tp);
/* It is not sent after all. */
void ur_tp_pkt_drop(struct ur_tp *tp, struct ur_pkt *p);

/*
 * Writes path headers and BTH; of p->bth the caller has set what differs from packet to packet. Returns where the extended headers go,
 * which are the caller's to write; p->len is after them.
 */
uint8_t *ur_pkt_begin_to(const struct ur_path *path, uint32_t dqpn, struct ur_pkt *p, const struct ur_opcode_info *op);

static inline uint8_t *ur_pkt_begin(const struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	return ur_pkt_begin_to(qp->path, qp->dqpn, p, op);
}

/* True when what goes to this QP has to wait, and the sender with it: it is off the list of those that have something to send. */
bool ur_tp_park_held(struct ur_qp *qp, enum ur_txq q, const struct ur_path *path, uint32_t dqpn);

/* What may go to the peer of a connected QP, if that is a process of this host: enum ur_takes. */
static inline uint8_t ur_tp_takes(const struct ur_qp *qp)
{
	return qp->tp->takes[ur_slot_of(qp->dqpn)];
}

/* --- counters --- */

/* Counts for the device, and for the QP what a QP counts; with a constant `c` no more than that is left of the switch. */
static inline void ur_qp_count_many(struct ur_qp *qp, enum ur_counter c, uint32_t n)
{
	qp->tp->c.counters->v[c] += n;
	switch (c) {
#define UR_QP_COUNT_CASE(member, counter)                                                                                                  \
	case UR_C_##counter: qp->n.member += n; break;
		UR_QP_COUNTERS(UR_QP_COUNT_CASE)
#undef UR_QP_COUNT_CASE
	default: break;
	}
	if (UR_C_REFUSED(c) && ur_unlikely(qp->tp->trace != NULL))
		ur_tp_trace_refused(qp, c);
}

static inline void ur_qp_count(struct ur_qp *qp, enum ur_counter c)
{
	ur_qp_count_many(qp, c, 1);
}

#endif
