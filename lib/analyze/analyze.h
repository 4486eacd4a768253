/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/analyze: what a recording of RoCEv2 traffic says. Frames go in with their times and numbers; findings come out as they are decided
 * (a finding about an early frame may come late), and what is known of each connection stands ready at the end.
 *
 * The recorder stands somewhere between two hosts. It may have missed packets, and have written packets that crossed in either order. So no
 * packet is called lost without saying between whom, and what only a complete recording could prove is no error.
 *
 * Memory is bounded by the flows (UR_AN_FLOWS) and what is in flight on them, not by the length of the recording.
 */
#ifndef UR_ANALYZE_H
#define UR_ANALYZE_H

#include "analyze/rules.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#define UR_EFFECT_NS UR_NS_PER_MS /* for so long what happens may have slowed a flow down (effect.h) */
#define UR_AN_FLOWS 32768

enum ur_an_link {
	UR_AN_ETHERNET,
	UR_AN_RAW_IP,
	UR_AN_SLL,
	UR_AN_SLL2,
	UR_AN_LOOPBACK,
	UR_AN_ERF,
	UR_AN_NATIVE_IB,
	UR_AN_OTHER, /* which nobody here reads */
	UR_AN_LINKS
};

/* Frames that are taken for RoCEv2, or hide it, and cannot be read. */
enum ur_an_strange {
	UR_AN_NOT_STRANGE,
	UR_AN_ROCE_V1,
	UR_AN_INFINIBAND,
	UR_AN_MRC,
	UR_AN_ULTRA_ETHERNET,
	UR_AN_IPSEC,
	UR_AN_MACSEC,
	UR_AN_FRAGMENT,
	UR_AN_UNREAD_LINK,
	UR_AN_STRANGE
};
extern const struct ur_an_strange_info {
	const char *name, *advice; /* "frames of NAME: ADVICE" */
} ur_an_strange[UR_AN_STRANGE];

/* Of a frame, seen from a host that recorded itself: times of what came and of what left need not be in one order. */
enum ur_an_direction { UR_AN_IN = 1, UR_AN_OUT, UR_AN_DIRECTIONS };

struct ur_an_frame {     /* as the recorder wrote it */
	uint32_t number; /* in the file, from 1 */
	ur_time when;    /* any origin */
	enum ur_an_link link;
	uint8_t direction; /* as the recorder says: UR_AN_IN, UR_AN_OUT, or 0 */
	const uint8_t *data;
	uint32_t have, len; /* bytes recorded, and on the wire */
};

struct ur_finding {
	enum ur_rule rule;
	uint32_t frame;   /* the frame that it is about */
	uint32_t seen[3]; /* others that show it; 0 for none */
	ur_time when;     /* of `frame`, or as near as is known */
	struct ur_gid src, dst;
	uint32_t qpn; /* the destination QP of `frame`, 0 when there is none */
	uint64_t v[4];
	const char *s[2]; /* constant phrases */
	enum ur_severity severity; /* that of its rule; a warning at most where there is an excuse */
	const char *excuse;        /* why the recording does not prove that a host is to blame; NULL: it does */
	/* for those who judge a host (facts.h) */
	uint8_t sub, opcode; /* opcode: of the request */
	uint32_t with;       /* enum ur_an_with */
};

/* Writes the sentence, cut to `room` bytes with the terminating zero; returns its length. */
size_t ur_finding_text(const struct ur_finding *f, char *to, size_t room);

/* Why request packets were sent again. */
enum ur_an_cause { UR_AN_SEQ_NAK, UR_AN_RNR, UR_AN_TIMEOUT, UR_AN_IMPLIED, UR_AN_SACK, UR_AN_SPURIOUS, UR_AN_CAUSES };
extern const char *const ur_an_cause_names[UR_AN_CAUSES];

/* Where packets went, of requests and of answers. */
enum ur_an_place {
	UR_AN_BEFORE,    /* between their sender and the recorder */
	UR_AN_BEHIND,    /* between the recorder and their receiver */
	UR_AN_FAR,       /* the request after the recorder, or its answer before it */
	UR_AN_MISSED,    /* the recorder alone did not see them */
	UR_AN_OVERTAKEN, /* reordered */
	UR_AN_PLACES
};
extern const char *const ur_an_place_names[UR_AN_PLACES];

struct ur_an_times {
	uint64_t n, sum, min, max; /* ns */
};

#define UR_AN_INSTANT_NS 500 /* nobody answers sooner: what is said to have is of a recorder that gave several frames one time */

/* Do `n` times, `sum` in all, say how long it took? */
static inline bool ur_an_mean_tells(uint64_t sum, uint64_t n)
{
	return n && sum / n >= UR_AN_INSTANT_NS;
}

static inline bool ur_an_times_tell(const struct ur_an_times *t)
{
	return ur_an_mean_tells(t->sum, t->n);
}

/* What one end asks of the other, and how that is answered. */
struct ur_an_half {
	struct ur_gid from, to;
	uint32_t dqpn;
	uint64_t packets, bytes; /* requests, repeated ones too; payload of new ones, and bytes READ */
	uint64_t messages, sends, writes, reads, atomics;
	uint64_t answers, acks, naks_seq, naks_rnr, naks_fatal;
	uint64_t repeated[UR_AN_CAUSES]; /* packets */
	uint64_t repairs[UR_AN_CAUSES];  /* times that it retransmitted, by cause */
	uint64_t lost[UR_AN_PLACES];     /* packets, of requests */
	uint64_t answers_lost[UR_AN_PLACES];
	uint64_t marked, cnps, damaged; /* requests with a congestion mark; CNPs that came back; packets with a wrong ICRC */
	uint32_t damaged_frame;
	uint64_t early;             /* timeouts before the timer that was agreed on */
	uint32_t depth, depth_psns; /* the most READs and atomics, and PSNs, in flight */
	uint64_t findings;          /* warnings and errors about packets to or from this QP, and answers that came again */
	struct ur_an_times rtt, nak_reaction, repair;
	uint32_t first_frame, last_frame, last_answer_frame; /* of requests, and of answers to them */
	ur_time first, last, last_answer;
	/* the end */
	uint32_t icmp_frame; /* the newest ICMP error about a packet of it */
	uint8_t fatal;       /* a syndrome, 0 for none */
	uint32_t fatal_frame;
	uint64_t unanswered; /* request packets that nothing answers */
	bool open_again; /* it was answered once, as recorded: the first transmission is the first one after that */
	uint32_t open_frame; /* the first transmission of the oldest of them */
	uint32_t open_last;  /* and its newest */
	uint32_t open_psn, open_tries;
	uint32_t open_early; /* transmissions among these that came before the timer can have run out */
	uint32_t rnr_tries;  /* how often in a row the oldest was refused because no receive was posted */
	ur_time open_since, open_until;
	ur_time tries[8]; /* of its newest transmissions, the newest last */
	void *mine;       /* the observer's */
};

enum ur_an_ending { UR_AN_OPEN, UR_AN_DISCONNECTED, UR_AN_REJECTED };

struct ur_an_conn {
	uint8_t service;           /* enum ur_service */
	uint32_t mtu;              /* 0: not known */
	bool cm;                   /* made by the connection manager, as recorded */
	bool twice;                /* each packet is in the recording twice: copies are set aside */
	bool oneway;               /* packets of one end alone are recorded, or nobody answers (UC) */
	struct ur_an_half half[2]; /* half[0] is of who connected, or spoke first */
	uint32_t req_frame, rep_frame, rtu_frame, rej_frame, dreq_frame, drep_frame;
	ur_time dreq_when;
	bool dreq_by_second; /* half[1]'s host disconnected first */
	bool rej_by_second;  /* and it sent the REJ */
	uint16_t rej_reason;
	enum ur_an_ending ending;
	uint8_t retry_count, ack_timeout; /* of the connection request */
	uint8_t rnr_retry[2];             /* of each half; 7 is without end */
	uint8_t depth[2];                 /* READs and atomics that each half may have in flight */
	uint32_t cm_repeated;             /* messages of the connection manager that came again */
	const char *said[3];              /* private data of its REQ, REP and REJ that is text; NULL. Valid as long as the analysis */
};

struct ur_an_datagrams {        /* from one QP to another, or to a group */
	struct ur_an_half half; /* of it: hosts, packets, bytes, times, and what is missing among the PSNs */
	uint32_t sqpn, qkey;    /* qkey: of the first */
	uint32_t least, most;   /* bytes of payload */
};

struct ur_an_totals {
	uint64_t forgotten; /* connections, by ur_analysis_forget */
	uint64_t frames, roce, bytes, other, cut, damaged, datagrams, cm, cnps, pauses;
	uint64_t findings[UR_RULE_COUNT], severities[UR_ERROR + 1];
	ur_time first, last;
	uint32_t conns, dflows;
};

/* --- events, for who observes the analysis --- */

/* clang-format off */
#define UR_AN_EVENTS(X) \
	X(REQUEST, "request") /* a request packet, for the first time: PSNs [psn, psn + n), `len` bytes */ \
	X(AGAIN, "again") /* the same that comes again: `cause` */ \
	X(REPAIR, "repair") /* the first of a run of these */ \
	X(RESPONSE, "response") /* that carries data, or the result of an atomic */ \
	X(ACKED, "acked") /* everything before `psn` has been answered */ \
	X(HAS, "has") /* a SACK says that these have arrived */ \
	X(NAK, "nak") /* `psn` is missing */ \
	X(RNR, "rnr") /* there is no receive buffer for it: to be sent again after `wait` */ \
	X(FATAL, "fatal") /* it is refused for good */ \
	X(MARKED, "marked") /* a packet with a congestion mark */ \
	X(CNP, "cnp") /* the sender is told to slow down */ \
	X(ICMP, "icmp") /* a router or the other host says that packets of this end did not get there */ \
	X(RTT, "rtt") /* an answer came `wait` after its request */
/* clang-format on */

enum ur_an_event_kind {
#define UR_AN_EVENT_ENUM(id, name) UR_AN_EV_##id,
	UR_AN_EVENTS(UR_AN_EVENT_ENUM)
#undef UR_AN_EVENT_ENUM
		UR_AN_EV_COUNT
};
extern const char *const ur_an_event_names[UR_AN_EV_COUNT];

struct ur_an_event {
	enum ur_an_event_kind kind;
	enum ur_an_cause cause;
	uint32_t frame;
	ur_time when;
	struct ur_an_half *half; /* whose requests these are */
	uint64_t psn;            /* counted on beyond 24 bits */
	uint32_t n, len;
	uint64_t wait; /* ns */
	uint8_t opcode, service;
	bool answer; /* sent by the other end */
	/* after it: everything before `acked` is answered, and everything before `next` has been sent */
	uint64_t acked, next;
	uint32_t depth, depth_most; /* READs and atomics in flight; the most that was agreed on, 0 when that is not known */
	bool no_credit;             /* the other end has announced no receive buffer for one more SEND */
	ur_time paused;             /* when the newest PAUSE or priority PAUSE frame with a time came; 0: none */
	ur_time pause_began;        /* and the first of these without a millisecond between two */
};

struct ur_analysis;
typedef void (*ur_an_event_fn)(void *ctx, const struct ur_an_event *e);
typedef void (*ur_finding_fn)(void *ctx, const struct ur_finding *f);

/* `salt`: a random number, which keeps whoever made a recording from choosing what its tables are slow with. NULL when memory is short. */
struct ur_analysis *ur_analysis_create(ur_finding_fn found, void *ctx, uint64_t salt);
void ur_analysis_destroy(struct ur_analysis *a);
/* From now on. Events of a flow come in the order of the recording. */
void ur_analysis_observe(struct ur_analysis *a, ur_an_event_fn observe, void *ctx);
void ur_analysis_frame(struct ur_analysis *a, const struct ur_an_frame *f);
/* What is held back until more is known is decided now, with what is known. */
void ur_analysis_settle(struct ur_analysis *a);
/* After the last frame: what is still open is decided. */
void ur_analysis_finish(struct ur_analysis *a);
/* Whether a frame has a RoCEv2 packet of which at least the BTH was recorded. Otherwise `what` is set. */
bool ur_an_has_packet(const struct ur_an_frame *f, enum ur_an_strange *what);
void ur_analysis_totals(const struct ur_analysis *a, struct ur_an_totals *t);
/* Connection `i` of those that the totals count, in the order in which they appeared. False when there is none. Valid after the finish. */
bool ur_analysis_conn(const struct ur_analysis *a, uint32_t i, struct ur_an_conn *c);
/* The same of datagrams: flow `i` of `dflows`. */
bool ur_analysis_datagrams(const struct ur_analysis *a, uint32_t i, struct ur_an_datagrams *out);
/* Whether a counter of this half says that anything was lost, damaged, refused, marked, repeated or out of order. */
bool ur_an_half_disturbed(const struct ur_an_half *h);
/* Whether a counter or a finding says so of the connection: where it is true, nobody may say that nothing happened. */
bool ur_an_conn_disturbed(const struct ur_an_conn *c);
/* What a NAK syndrome means. */
const char *ur_an_nak_text(uint8_t syndrome);

#endif
