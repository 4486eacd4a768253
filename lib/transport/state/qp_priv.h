/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a queue pair is made of: the rings that an application shares with the NIC, the states of requester and responder, and the QP that
 * holds them.
 */
#ifndef UR_QP_PRIV_H
#define UR_QP_PRIV_H

#include <stdlib.h>

#include "transport/control/cwnd.h"
#include "transport/control/dcqcn.h"
#include "transport/control/window.h"
#include "transport/state/budget.h"
#include "transport/state/ring.h"
#include "transport/state/scoreboard_state.h"
#include "transport/state/wqe.h"
#include "transport/transport.h"
#include "wire/opcode.h"
#include "wire/path.h"

enum ur_txq { UR_TXQ_RESP, UR_TXQ_REQ, UR_TXQ_COUNT };

struct ur_pd {
	struct ur_tp *tp;  /* that it was made with; the lanes of a device have it in common */
	atomic_uint users; /* MRs and QPs */
};

/* --- the requester --- */

/* Packets that are sent once more because an acknowledgement is overdue: tail_probe.c. */
enum ur_tail_probe_what { UR_TAIL_PROBE_NONE, UR_TAIL_PROBE_OLDEST, UR_TAIL_PROBE_NEWEST, UR_TAIL_PROBE_LAST };

struct ur_tail_probe {
	uint8_t times;   /* that one was due since the last progress */
	bool sent;       /* and one was, */
	bool all;        /* or all in flight was sent again with it */
	uint8_t copies;  /* of the newest packet, that are to be sent of this one */
	uint8_t turn;    /* what its READ requests say (wire/sack.h); 0: nothing, for the peer does not know that */
	bool one;        /* it asks for one answer of the oldest request, a READ */
	bool eager;      /* the peer is known to go back: it is asked as soon as when little is in flight */
	uint32_t spent;  /* PSNs sent again since the last progress, of `budget` */
	uint32_t earned; /* what was sent before this PSN has been counted in it */
	struct ur_budget budget;
	ur_time since;   /* when the newest packet that was overdue then had left */
	ur_time sent_at; /* when something was last sent again that nobody had asked for; 0: never */
	ur_time loss_at; /* when a loss was last noticed; 0: never */
	ur_time news;    /* when something was last heard of what lies beyond a hole */
	/* What was sent again before the last progress; was the peer only late? */
	struct {
		uint32_t n, from, upto; /* PSNs that were, 0: none, or it is known; they lie in this range */
		uint32_t paid;          /* what was given back for them */
		ur_time took, loss_at;  /* how long progress took; `loss_at` without it */
	} doubt;
};

/* A window that follows the path: qp_cwnd.c. */
struct ur_qp_cwnd {
	bool on;
	bool first;               /* the next packet is timed: no other of ours is right before it */
	bool slow;                /* the window is less than one packet */
	uint32_t seen;            /* what of it is known: PSNs that have arrived, */
	uint32_t losses, samples; /* and how many were lost, and timed */
	uint32_t traced;          /* the size that was traced last */
	struct ur_cwnd w;
	struct ur_timer timer;
};

/* After an RNR NAK: rnr.c. */
enum ur_rnr { UR_RNR_NONE, UR_RNR_WAITS, UR_RNR_ASKS, UR_RNR_CAREFUL };

/* What keeps a requester from just going on; of each, 0 is usual. One word, because it is asked for each packet. */
union ur_stops {
	struct {
		uint8_t rnr;   /* enum ur_rnr */
		uint8_t halt;  /* enum ibv_wc_status that `cur` fails with once it is the oldest */
		uint8_t probe; /* enum ur_tail_probe_what: the packet to send once more */
		bool lost;     /* something is to be sent again: scoreboard.c */
		bool paused;   /* until cwnd.timer expires no request is sent */
		bool blocked;  /* until cc.timer expires nothing is sent but acknowledgements and notifications */
	};
	uint64_t any;
};

struct ur_requester {
	uint32_t head, cur, fresh, tail; /* SQ indices: oldest incomplete, being sent, first never started, last seen tail */
	uint32_t una, next, max;         /* PSNs: oldest unacknowledged, next to send, first never sent */
	struct ur_sge_pos pos;           /* where the payload of `next` begins in the list of `cur` */
	struct ur_sge_pos rpos;          /* where the READ response `una` goes in the list of `head` */
	uint32_t since_ack;              /* packets since the last AckReq */
	uint32_t asked;                  /* SQ index after the last request that had one */
	uint32_t packets_until;          /* what comes before this PSN was asked for again: it goes as packets, not as bulk packets */
	uint32_t restart;                /* PSN of the last rewind: a READ response there may start a message or continue one */
	uint32_t rd_out;                 /* READ requests and atomics on the wire */
	uint32_t rd_wqes;                /* READ and atomic WQEs started and incomplete: what a fence waits for */
	uint32_t locals;                 /* local operations that are executed and wait for their turn to complete */
	union ur_stops stops;
	uint8_t max_rd;
	uint8_t retry_cnt, retry_left, rnr_cnt, rnr_left;
	bool hole;                       /* all from a lost answer on was sent again, and that has not come yet */
	bool reseek;                     /* `rpos` has to be searched again */
	bool hello;                      /* what is sent before `hello_end`, for the first time, says hello (wire/sack.h) */
	uint32_t hello_end, hello_most;  /* `most`: as far as that may move */
	ur_time timeout, wait, deadline; /* of the ACK timer: as the program asked, 0: none; the interval that runs now; its end */
	ur_time retried_at;              /* the last rewind that counted as a retry */
	ur_time sent_at;                 /* when the last packet was built */
	ur_time refused_at;              /* the first RNR NAK of the request that was refused last */
	bool thrown_away;                /* what followed it, of which the peer has not complained yet */
	uint32_t refused, refused_until; /* its SQ index; before this PSN requests may have been thrown away */
	struct ur_window window;
	struct ur_rtt rtt;
	struct ur_qp_cwnd cwnd;
	struct ur_tail_probe probe;
	struct ur_scoreboard scoreboard;
	uint32_t first;           /* PSN of the first packet */
	uint32_t answers;         /* PSNs of READs that are complete, but for the first of each */
	bool unreachable;         /* the network says that the peer cannot be reached, and since then nothing was acknowledged */
	uint32_t unreachable_una; /* that was when it said so */
	ur_time unreachable_due;  /* when the next retry comes then */
};

/* --- the responder --- */

/* Why a packet with the expected PSN takes the slow path. */
enum ur_resp_slow_path {
	UR_RESP_NEW = 1,          /* none has come yet, and COMM_EST has not been reported */
	UR_RESP_AWAITS_HELLO = 2, /* the peer has not said hello (wire/sack.h), and may still do so */
	UR_RESP_REORDERING = 4,   /* packets beyond it are kept: reorder.h */
	UR_RESP_CATCHES_UP = 8,   /* what was kept is being executed, which goes on when the QP may send */
};

/* What waits to be sent: `ack_pending`. */
enum { UR_ACK_WAITS = 1, UR_SACK_WAITS = 2 };

/* Nothing but the expected PSN is answered: `nak_sent`. */
enum { UR_NAK_SENT_SEQ = 1, UR_NAK_SENT_RNR = 2 };

struct ur_reorder;

/* READ responses for a peer that has fallen silent: read_resend.c. */
struct ur_read_resend {
	ur_time asked_at; /* when the peer last asked for a READ again; 0: not of late */
	uint64_t sent;    /* `tx_bytes` when the timer was armed */
	uint8_t times;    /* since the last request */
	uint8_t series;   /* of requests that came again: none, one, or more */
	uint32_t from[2]; /* PSNs with which the newest two of them began, the older one first */
	uint32_t newest;  /* PSN of the last one of them, */
	uint32_t epsn;    /* and which was expected then */
	struct ur_timer timer;
};

struct ur_responder {
	uint32_t epsn, msn;
	uint32_t head, tail;     /* RQ indices: next to use, last seen tail */
	const struct ur_rwqe *w; /* the receive WQE of the current message: in the ring, or the copy of an SRQ's */
	uint16_t expect;         /* UR_OPF_SEND or UR_OPF_WRITE inside such a message, 0 between messages */
	uint8_t nak_sent;        /* 0: none since the expected PSN came last */
	bool dying;              /* a fatal NAK waits after READ responses */
	uint8_t slow_path;       /* enum ur_resp_slow_path; 0 is usual */
	bool peer_sacks;         /* the peer has said hello */
	bool goes_back;          /* it has sent a packet again that came beyond the expected one */
	bool rd_larger;          /* a READ has come again, in larger pieces than before, while others waited for their responses */
	uint8_t ack_pending;     /* a sum of these */
	uint8_t ack_again;       /* acknowledgements to follow the one that waits: of requests that came twice meanwhile */
	uint8_t ack_syndrome;    /* of what waits, or else of what was sent last: a NAK before anything was */
	uint8_t min_rnr;
	uint32_t ack_psn, ack_msn;
	uint32_t probed; /* PSN, and turn << 24, of the probe for which a READ was answered last */
	struct ur_sge_pos pos;
	uint32_t got;  /* bytes of the SEND so far */
	uint32_t rkey; /* the current WRITE: */
	uint64_t va;   /* where the next packet goes */
	uint32_t left, dma_len;
	uint32_t rd_cur, rd_tail, rd_count; /* oldest with responses to send, next free, number of valid entries */
	uint32_t rd_n;                      /* max_dest_rd_atomic */
	struct ur_rd_res *rd;               /* UR_RD_SLOTS of them, and UR_RD_SIDE; NULL until the first */
	uint32_t side_head, side_tail;      /* parts of READs to repeat, in the last of them */
	struct ur_reorder *reorder;         /* with UR_RESP_REORDERING */
	ur_time paced_at;                   /* then */
	uint32_t paced_from;                /* this was the expected PSN; */
	uint32_t shown;                     /* and so many packets the peer has shown at most to have in flight: reorder.h */
	uint32_t listens;                   /* packets to which it still listens */
	uint32_t beyond;                    /* PSN of the last packet that came beyond the expected one */
	struct ur_read_resend resend;
};

/* --- the queue pair --- */

/* Congestion: congest.c. */
struct ur_cc {
	struct ur_dcqcn rate;
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
	struct ur_list stalled; /* schedule.c */
	struct ur_timer timer;  /* ACK timer, or the wait after an RNR NAK */
	struct ur_requester req;
	struct ur_responder resp;
	struct ur_list windows; /* of type 2, bound through this QP */
	struct ur_cc cc;
	struct ur_qp_counters n;
	ur_time heard; /* when the last packet came that belongs here; 0: never */
	bool broken;   /* a completion was lost: to ERR at the next opportunity */
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
	_Alignas(64) atomic_uint db;
	struct ur_qp *doorbell_link;
	struct ur_ring sq, rq;
	struct ur_swqe_ext *sq_ext; /* one for each slot of `sq`; NULL until the first request that has one */
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

/* Brings the memory of `sq_ext`, if there is none yet. False without. */
static inline bool ur_sq_ext_begin(struct ur_qp *qp)
{
	if (!qp->sq_ext)
		qp->sq_ext = calloc(qp->sq.mask + 1u, sizeof(*qp->sq_ext));
	return qp->sq_ext;
}

static inline struct ur_swqe_ext *ur_sq_ext_at(const struct ur_qp *qp, uint32_t i)
{
	return &qp->sq_ext[i & qp->sq.mask];
}

#endif
