/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known while a recording is read.
 * The functions of a source are in the header of its name; README.md says where what is.
 */
#ifndef UR_AN_STATE_H
#define UR_AN_STATE_H

#include "analyze/frame/dissect.h"
#include "analyze/frame/twice.h"
#include "base/list.h"
#include "base/psn.h"
#include "base/table.h"
#include "wire/crc/icrc.h"

/* --- windows --- */

enum an_req_flag {
	AN_HOLE = 1,           /* not seen: PSNs that were jumped over */
	AN_NAKED = 2,          /* a sequence NAK asked for it, since its newest transmission */
	AN_LATE = 4,           /* came after packets with later PSNs */
	AN_REPORTED = 8,       /* what became of it has been said */
	AN_RESENT = 16,        /* transmitted again since the newest NAK */
	AN_ASKS = 32,          /* wants an answer: AckReq, or a READ or atomic */
	AN_MSN = 64,           /* `msn` counts from the beginning of its epoch */
	AN_BEHIND_IT = 128,    /* lost after the recorder, as a NAK said */
	AN_HIDDEN = 256,       /* a hole: of a train, cut off by the recorder; a READ: so are responses of it, and `got` is a guess */
	AN_CUT = 4096,         /* a READ whose RETH was cut off: `n` is a guess */
	AN_DAMAGED = 2048,     /* a hole: here, but with a wrong ICRC */
	AN_PIECES = 1024,      /* asked for again in more than one piece: their responses may come in any order */
	AN_LIMITED = 8192,     /* of a limited member of the partition */
	AN_PART_WRONG = 16384, /* the rest of it did not begin with FIRST; the other: it did */
	AN_PART_RIGHT = 32768,
	AN_PERHAPS = 512, /* a hole: perhaps only of a READ that was asked for before the recording began */
};

struct an_req {                 /* a request packet, or a hole */
	uint64_t psn;           /* unwrapped */
	uint32_t n;             /* PSNs that it takes; 0: a READ whose path MTU is not known yet */
	uint32_t frame, newest; /* its first and newest transmission; of a hole: the frame that showed it */
	uint32_t missing;       /* the frame of the SACK that says that its newest transmission has not arrived; 0: none */
	uint32_t msn;
	ur_time when, newest_when;
	uint32_t len;          /* payload, or what a READ asks for */
	uint32_t digest, data; /* of its headers, and of its payload; 0: cut */
	uint16_t epoch, flags;
	uint16_t tries, early; /* transmissions; those that came before its timer can have run out */
	uint8_t opcode;
	uint32_t atomic; /* its number among them all; 0: none, or its addresses are cut */
	uint64_t va;     /* of the memory that it is for: `want` bytes, with `rkey`; 0 bytes: none, or not known */
	uint32_t rkey, want;
	/* responses */
	uint32_t got;                      /* the next one that is expected, counted from psn */
	uint32_t gap_at, gap_n, gap_frame; /* responses that did not come */
	uint32_t asked;                    /* the frame of the newest request for them */
	uint32_t from, upto;               /* of these it asks again, while responses to older requests are under way; upto: 0 for none */
	uint32_t again;                    /* and this one of them is expected next */
};

#define AN_SEEN 256 /* responses whose frames are known: a power of two */

struct an_seen {
	uint32_t psn, frame; /* the low bits of an unwrapped PSN */
};

#define AN_READ_MAX (1u << 31) /* bytes that a READ may ask for */
#define AN_KEYS 4

struct an_key { /* accesses with it were accepted, from `low` to before `high` */
	uint64_t low, high;
	uint32_t rkey, frame; /* frame: of the newest; 0: no key */
	uint32_t kinds;
};

struct an_window {
	struct an_req *ring;
	uint32_t head, n, room;      /* room: a power of two */
	struct an_key keys[AN_KEYS]; /* of what has left it */
};

struct an_dgrams;
struct ur_analysis;
struct path;

static inline struct an_req *an_req_at(const struct an_window *w, uint32_t i)
{
	return &w->ring[(w->head + i) & (w->room - 1)];
}

/* --- flows --- */

enum an_message { AN_MSG_UNKNOWN, AN_MSG_NONE, AN_MSG_SEND, AN_MSG_WRITE };

struct an_held { /* an answer to what has not come yet */
	bool set;
	uint8_t opcode, syndrome;
	uint64_t psn;
	uint32_t msn, frame;
	ur_time when;
};

struct an_stray { /* what of a packet has to be kept to take it for a request later on */
	struct an_pkt p;
	uint64_t psn;
	uint8_t ext[64];
};

#define AN_TIMES 8 /* of transmissions that are kept: as many as ur_an_half has */

struct an_ignored { /* what was answered once, and is asked for again */
	uint64_t psn, end;
	uint64_t messages; /* of the flow, when it was asked for last */
	uint64_t pause;    /* the longest between two times */
	uint32_t tries, frame, newest;
	ur_time when, newest_when, at[AN_TIMES];
};

struct an_stream { /* requests of a flow, and the answers to them */
	struct an_window w;
	bool begun, mid;
	uint64_t first; /* the first PSN that is known */
	uint64_t next;  /* after the newest request */
	uint64_t acked; /* everything before has been answered */
	uint32_t acked_frame;
	ur_time acked_when;
	uint64_t holes; /* in the window */
	/* after hidden requests at its end: what the next PSN may be; 0 when there are none */
	uint64_t behind_least, behind_most;
	uint32_t behind_room; /* the newest request is cut and may be one or more: how many more than one */
	/* the current message */
	enum an_message msg;
	uint64_t msg_len;
	uint32_t msg_reth;
	bool msg_whole; /* seen from its beginning */
	uint8_t msg_opcode;
	uint32_t msg_frame;
	uint8_t open_opcode; /* of the first packet of a message whose last one was not here */
	bool open;
	bool unread; /* answers were cut off before they say which they are */
	/* message sequence numbers: the answers' are `msn` of an epoch plus this */
	uint32_t msn, msn_off;
	uint16_t epoch, off_epoch;
	bool off_known;
	/* messages that the other has buffers for: up to `limit` */
	bool limited;
	uint16_t limit_epoch;
	uint32_t limit, limit_frame;
	/* the newest NAK */
	enum { AN_NAK_NONE, AN_NAK_SEQ, AN_NAK_RNR } nak;
	uint64_t nak_psn;
	uint32_t nak_frame;
	ur_time nak_when;
	uint64_t rnr_wait;
	bool nak_heard; /* the requester has sent something again since */
	/* repetition */
	bool back; /* going through what was sent before, of which `back_next` comes next */
	uint64_t back_next;
	enum ur_an_cause back_cause;
	ur_time back_since;
	uint64_t back_psn;
	uint32_t repeats; /* since the newest answer */
	bool repeated;
	ur_time repeat_when;    /* the newest of all */
	struct an_stray *stray; /* a packet far from all others; NULL */
	struct an_held held;
	uint32_t ahead;            /* answers to what has not come yet, ever */
	uint32_t depth;            /* READs and atomics without an answer */
	uint32_t deep, deep_frame; /* the first time that these were too many, before any answer was recorded */
	ur_time deep_when;
	struct an_seen *seen; /* of responses, once there was one; NULL also when memory is short */
	uint64_t seen_most;   /* after the last PSN among them */
	struct an_ignored ignored;
	uint32_t rnr_row;
	/* the oldest faulty request without an answer; what judges have to know of NAKs and repetitions */
	uint8_t fault; /* enum ur_an_fault */
	uint32_t fault_with, fault_frame;
	uint8_t fault_opcode;
	uint64_t fault_psn;
	uint8_t again_opcode; /* of the newest request that came again */
	uint64_t again_psn;
	bool nak_twice, after_rnr, nak_kept;
	uint64_t fatal_psn;
	ur_time fatal_when;
	uint32_t part_copy;      /* the frame of a request for the rest of a READ, after which responses before that came */
	bool fatal_again;        /* what got a fatal NAK came again */
	uint32_t fatal_answered; /* the frame of an answer after it */
	ur_time tries[AN_TIMES];
	uint8_t ntries;
};

struct an_cm;

#define AN_CROSSING_NS UR_NS_PER_MS /* what comes sooner after another may have been sent before that came, or be recorded out of order */

#define AN_CNPS 8 /* in a row whose times are kept */

enum an_said { AN_SAID_EARLY = 1, AN_SAID_LATE = 2, AN_SAID_UNEVEN = 4, AN_SAID_FAST = 8, AN_SAID_SLOW = 16 }; /* once of a flow */

struct an_flow {
	struct ur_table_node node; /* by hosts and destination QP */
	struct ur_gid src, dst;
	uint32_t dqpn;
	uint8_t service;
	bool second; /* half[1] of its connection */
	bool finished;
	bool start_known;
	uint32_t start; /* its first PSN, as the CM says */
	uint32_t mtu;
	bool mtu_cm;
	uint32_t id;           /* number of its connection */
	struct an_flow *peer;  /* the other direction */
	struct ur_list beside; /* of the same hosts, alone as well */
	ur_time newest;        /* packet of it */
	struct an_cm *cm;
	uint64_t packets, answers, marked, cnps; /* of all kinds; answers among them; with a congestion mark; CNPs */
	uint32_t first_frame, last_frame, marked_frame;
	uint64_t unnotified_marks; /* since the newest CNP */
	uint32_t unnotified_frame;
	ur_time unnotified_since;
	ur_time cnp_when[AN_CNPS]; /* of CNPs of this flow, in turn */
	uint32_t cnp_frame[AN_CNPS];
	uint8_t said;
	uint64_t alone_answers; /* while it has no peer */
	uint32_t unasked;       /* PSN after the last response that came again without a request; UINT32_MAX: none */
	struct an_stream s;
	struct ur_an_half facts;
};

#define AN_PAUSERS 16

struct an_pauser { /* a station that sent pause frames */
	uint64_t mac, n, ends;
	uint32_t first_frame, last_frame, priorities;
	bool all; /* not of single priorities */
	ur_time first, last;
};

struct ur_analysis {
	ur_finding_fn found;
	void *ctx;
	uint64_t salt;          /* of all tables */
	ur_an_event_fn observe; /* NULL: nobody does */
	void *observe_ctx;
	bool judged;                 /* facts are told as well */
	ur_time paused, pause_began; /* the newest PAUSE frame, and the first of its series */
	struct ur_table flows, hosts;
	struct ur_table cms, cm_pairs; /* exchanges by the id of one end; by those of both */
	struct an_flow **conn;         /* one flow of each connection, in order */
	uint32_t nconn, conn_room;
	uint32_t nflows; /* with records of what has gone */
	bool limit_said; /* since it was reached */
	struct an_cm *oldest_cm, *newest_cm;
	struct an_chain *chain; /* once there was an atomic */
	uint32_t ncm;
	uint64_t cm_number; /* of the newest exchange */
	size_t window_bytes;
	struct an_mirror mirror;
	uint64_t walked;                              /* lone flows that were looked at, to find a partner */
	struct ur_table speakers;                     /* hosts that have sent something */
	ur_time last_when, last_of[UR_AN_DIRECTIONS]; /* of all frames; of each direction */
	bool time_back;
	uint32_t train_frame; /* the first frame that held a train */
	uint64_t trains;
	uint32_t cut_frame;
	uint32_t hidden_frame; /* the first train that was cut */
	uint64_t cut_trains, hidden;
	struct an_twice twice;
	struct ur_table paths; /* from one host to another, with damaged packets: damage.c */
	struct path *path;     /* the newest of them */
	uint32_t npaths;
	uint64_t strange[UR_AN_STRANGE]; /* frames that cannot be read, and the first of each kind */
	uint32_t strange_frame[UR_AN_STRANGE];
	struct an_pauser pausers[AN_PAUSERS];
	struct an_dgrams *dgrams; /* once there was a datagram: datagram.c */
	struct ur_an_totals total;
};

static inline uint64_t an_unwrap(uint64_t near, uint32_t psn)
{
	return near + (uint64_t)(int64_t)ur_psn_diff(psn, (uint32_t)near & UR_PSN_MASK);
}

/* The newest transmissions of something, the newest last; `n` came before this one. */
static inline void an_note_time(ur_time at[AN_TIMES], uint32_t n, ur_time when)
{
	if (n >= AN_TIMES) {
		memmove(at, at + 1, (AN_TIMES - 1) * sizeof(*at));
		n = AN_TIMES - 1;
	}
	at[n] = when;
}

static inline void an_time_add(struct ur_an_times *t, uint64_t ns)
{
	t->min = !t->n || ns < t->min ? ns : t->min;
	t->max = ns > t->max ? ns : t->max;
	t->sum += ns;
	t->n++;
}

/* Times of a recording may go back. */
static inline uint64_t an_since(ur_time now, ur_time then)
{
	return now > then ? now - then : 0;
}

#define AN_CROSSED_NS (5 * UR_NS_PER_MS)     /* an answer and its request are recorded in the wrong order within this time */
#define AN_UNDER_WAY_NS (200 * UR_NS_PER_MS) /* so long a request may wait for its answer, or be sent again */

/*
 * May what it answers, or what is after the gap of a NAK, have been sent for the first time before the recording began? A recording that
 * begins while something is repaired shows repetitions, holes between them, or several such answers.
 */
static inline bool an_sent_before(const struct an_flow *f, const struct an_held *h)
{
	return f->s.mid && (f->s.repeated || f->s.holes || f->s.ahead > 1) && an_since(h->when, f->facts.first) < AN_UNDER_WAY_NS;
}

static inline bool an_takes_answer(const struct ur_opcode_info *op)
{
	return op->flags & (UR_OPF_READ | UR_OPF_ATOMIC | UR_OPF_FLUSH | UR_OPF_ATOMIC_WRITE);
}

/* Never 0. */
static inline uint32_t an_digest(const uint8_t *p, uint32_t n)
{
	return ur_icrc_add(0, p, n) | 1;
}

/* Does the RDMA CM header precede the private data of a request for this service (annex A11)? */
static inline bool an_cm_ip_service(uint64_t service_id)
{
	const uint64_t space = service_id >> 16;

	return space == 0x0106 || space == 0x0111 || space == 0x0002;
}

static inline bool an_is_mtu(uint32_t n)
{
	return n >= 256 && n <= 4096 && !(n & (n - 1));
}

/* Packets that a READ of this length is answered with. */
static inline uint32_t an_npkts(uint32_t len, uint32_t mtu)
{
	return len > mtu ? (uint32_t)(((uint64_t)len + mtu - 1) / mtu) : 1;
}

/* The same on a flow: the fewest that they can be, while its path MTU is not known. */
static inline uint32_t an_read_psns(const struct an_flow *f, uint32_t len)
{
	return an_npkts(len, f->mtu ? f->mtu : 4096);
}

#endif
