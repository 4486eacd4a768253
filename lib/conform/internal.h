/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/conform share: steps of scripts, and the state of a run. */
#ifndef UR_CONFORM_PRIV_H
#define UR_CONFORM_PRIV_H

#include "base/psn.h"
#include "base/rng.h"
#include "conform/conform.h"
#include "wire/msg/cm_msg.h"

#define UR_CF_MTU 256    /* of all connections: long enough, and no frame is too long for any link */
#define UR_CF_MTU_CODE 1 /* enum ibv_mtu */
#define UR_CF_OUR_VA 0x7a00000000ull
#define UR_CF_OUR_RKEY 0x5eed0001u
#define UR_CF_ATOMIC_OFF 4096 /* in the region, where no other rule writes */
#define UR_CF_ACK_TIMEOUT 18  /* of the peer's QP: 1.07 s */
#define UR_CF_DEPTH 4         /* READs and atomics in flight, each way */

enum ur_cf_kind {
	UR_CF_END, /* after the last step */
	UR_CF_SEND,
	UR_CF_EXPECT, /* the next packet of its kind, answer or request; ACKs of what came before it are passed over */
	UR_CF_QUIET,  /* no answer; with the opcode of a request: no such request */
	UR_CF_PAUSE,
	UR_CF_BULK, /* send `x` messages of one packet each, and wait until all are acknowledged; the next PSN and MSN count from there */
	UR_CF_CM,   /* send a message of the CM */
	UR_CF_CM_EXPECT, /* the next one, except for MRAs */
	UR_CF_CM_QUIET,
};

enum ur_cf_flag {
	UR_CF_ACKREQ = 1 << 0,
	UR_CF_BAD_ICRC = 1 << 1,
	UR_CF_BAD_PKEY = 1 << 2,
	UR_CF_BAD_TVER = 1 << 3,
	UR_CF_BAD_QPN = 1 << 4,
	UR_CF_BAD_QKEY = 1 << 5,
	UR_CF_BAD_PAD = 1 << 6, /* more padding than payload */
	UR_CF_LIMITED_PKEY = 1 << 7,
	UR_CF_CE = 1 << 8,     /* congestion experienced, in the IP header */
	UR_CF_ADVERT = 1 << 9, /* the payload advertises `dma_len` bytes of ours */
	UR_CF_HUGE = 1 << 10,  /* a DMA length of 2^31 + 4 */
	/* of what is expected */
	UR_CF_OR_SILENCE = 1 << 11,
	UR_CF_ANY_PSN = 1 << 12,
	UR_CF_PAYLOAD = 1 << 13, /* compared with the pattern */
	UR_CF_ANY_MSN = 1 << 14,
	UR_CF_OR_REPEAT = 1 << 15, /* requests of the peer's that came before may be repeated before it */
	UR_CF_ANY_LEN = 1 << 16,
	/* of messages of the CM */
	UR_CF_RESEND = 1 << 17,     /* while there is no answer */
	UR_CF_AGAIN = 1 << 18,      /* the one of this kind that was sent last, byte for byte */
	UR_CF_NO_SERVICE = 1 << 19, /* a service id that nobody has */
	UR_CF_BAD_ID = 1 << 20,     /* a communication id that the peer does not know */
	UR_CF_SAME_ID = 1 << 21,    /* expected: the communication id of the last REP again */
	UR_CF_NO_TRANSPORT = 1 << 22,
	UR_CF_FRESH_ID = 1 << 23, /* another communication id; the QPN stays */
	UR_CF_BAD_CLASS = 1 << 24,
	UR_CF_LONE_ADDRESS = 1 << 25, /* expected of a READ: its address, and whatever length */
	UR_CF_ZERO = 1 << 26,         /* the payload is all zero */
	UR_CF_PREPARES = 1 << 27,     /* without it nothing is known of the rule */
	UR_CF_ECHO = 1 << 28,         /* expected: the payload says that `x` messages were taken, the last one of `y` bytes */
};

#define UR_CF_ANY 0xff /* as `code2`: any reason, or syndrome, will do */

struct ur_cf_step {
	uint8_t kind;   /* enum ur_cf_kind */
	uint8_t opcode; /* of the BTH; enum ur_cm_attr of the CM's */
	uint8_t fill;   /* which pattern the payload has */
	uint8_t region; /* enum ur_cf_region */
	uint8_t srq;    /* enum ur_cf_srq, of XRC requests */
	/* Expected: AETH syndrome, reason of a REJ, status of a SIDR_REP; `code2`, unless it is 0, is right as well. Sent: the syndrome. */
	uint8_t code, code2;
	int16_t psn;      /* from the first one of its direction: of requests that we send and their answers, or of the peer's */
	int16_t msn;      /* from what UR_CF_BULK has brought it to */
	uint8_t kept;     /* expected: after a gap PSN and MSN may both be this many more, if the peer kept what was beyond it */
	uint16_t len, at; /* of the payload, and where in the pattern it begins */
	uint32_t flags;   /* enum ur_cf_flag */
	uint32_t off, dma_len;
	uint64_t x, y; /* of FLUSH: placement type and selectivity level; of atomics: what is added or swapped in, what is compared;
			  expected: the value before */
	uint32_t ms;   /* how long to wait; of EXPECT: the least time after what was sent last */
};

struct ur_cf_place { /* a region of the peer's */
	uint64_t va;
	uint32_t rkey, len;
};

enum ur_cf_phase { UR_CF_CONNECT, UR_CF_SCRIPT, UR_CF_LEAVE, UR_CF_FINISHED };

struct ur_cf_bulk { /* messages of the step, counted from 0 */
	uint32_t count, next, acked;
	uint32_t top;     /* after the last one that has been sent */
	unsigned repeats; /* in a row, without progress */
};

struct ur_cf_conn {
	uint32_t qpn, dqpn, id, peer_id, psn, their_psn, qkey;
	uint64_t tid;
	uint32_t msn;    /* that a step's `msn` counts from */
	bool exists;     /* there is a connection at the peer */
	uint32_t old_id; /* the connection's, where UR_CF_FRESH_ID has given `id` another value */
	bool ready;      /* it has been told that we know */
	bool ended;      /* by a DREQ of its or ours */
	uint32_t asked;  /* request packets of the peer's, without repetitions */
	bool went_back;  /* and there were repetitions */
	uint32_t top;    /* the PSN after the last of them */
};

struct ur_cf_run {
	struct ur_cf_config cfg;
	struct ur_rng rng;
	struct ur_path path, ce_path;
	struct ur_cf_place place[UR_CF_OFFERED];
	uint32_t srqn[UR_CF_SRQS];
	bool heard;     /* the peer has sent something */
	bool met;       /* a connection has come about, so it is known whether */
	bool offers;    /* the peer is the responder */
	uint32_t modes; /* 1 << enum ur_cf_serve, what it can serve */
	unsigned rule;  /* of all; `result` is its result */
	enum ur_cf_phase phase;
	const struct ur_cf_step *step;
	bool entered; /* what is waited for has a deadline */
	ur_time deadline, sent_at, resend_at;
	unsigned resends;
	struct ur_cf_conn conn;
	struct ur_cf_bulk bulk;
	bool keeps;
	uint8_t mad[UR_MAD_LEN];         /* the last message of the CM that the script has sent */
	uint8_t auto_mad[4][UR_MAD_LEN]; /* answers to what scripts do not wait for */
	unsigned nauto;
	uint32_t mad_psn; /* of QP 1 */
	unsigned npackets;
	unsigned deaf; /* rules in a row whose connection nobody answered */
	struct ur_cf_result *results, *result;
	unsigned nresults;
};

static inline const struct ur_cf_rule *ur_cf_current(const struct ur_cf_run *r)
{
	return ur_cf_rule(r->rule);
}

/* build.c */
void ur_cf_build(struct ur_cf_run *r, const struct ur_cf_step *s, struct ur_pkt *p);
/* build_cm.c: the message of a step, in r->mad. */
void ur_cf_build_cm(struct ur_cf_run *r, const struct ur_cf_step *s);
void ur_cf_build_answer(const struct ur_cf_run *r, enum ur_cm_attr attr, const struct ur_cm_msg *to, uint8_t *mad);
void ur_cf_build_mad(struct ur_cf_run *r, const uint8_t *mad, struct ur_pkt *p);

/* judge.c */
enum ur_cf_match { UR_CF_PASSED_OVER, UR_CF_RIGHT, UR_CF_WRONG };
/* What a packet to the QP of the connection is to a step that waits; `odd` gets what is wrong beside what the packet's own text says. */
enum ur_cf_match ur_cf_judge(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_pkt *p, ur_time now, const char **odd);
/*
 * What a packet to the QP of the connection has that the specification does not know, and that is no hello where it is allowed
 * (wire/sack.h); NULL: nothing. We never say hello. For each of them, in the order in which they come.
 */
const char *ur_cf_judge_foreign(struct ur_cf_run *r, const struct ur_pkt *p);
enum ur_cf_match ur_cf_judge_cm(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_cm_msg *m, const char **odd);

/* bulk.c: the step UR_CF_BULK. */
void ur_cf_bulk_begin(struct ur_cf_run *r);
/* False: all that may be in flight is. */
bool ur_cf_bulk_tx(struct ur_cf_run *r, struct ur_pkt *p);
/* UR_CF_RIGHT when all messages are acknowledged; *moved when some are. */
enum ur_cf_match ur_cf_bulk_rx(struct ur_cf_run *r, const struct ur_pkt *p, bool *moved, const char **odd);
/* Nothing has come for long. False: send again what is not acknowledged; true: that has been done often enough. */
bool ur_cf_bulk_late(struct ur_cf_run *r);

/* text.c; all write at most UR_CF_TEXT bytes with a zero after */
void ur_cf_say_step(const struct ur_cf_run *r, const struct ur_cf_step *s, char *to);
void ur_cf_say_packet(const struct ur_cf_run *r, const struct ur_pkt *p, const char *odd, char *to);
void ur_cf_say_cm(const struct ur_cm_msg *m, const char *odd, char *to);
void ur_cf_say(char *to, const char *sentence);
void ur_cf_say_number(char *to, const char *before, uint32_t n, const char *behind);

/* setup.c: how a connection is made and ended. */
extern const struct ur_cf_step *const ur_cf_connect[], *const ur_cf_leave[]; /* by enum ur_cf_setup */
void ur_cf_conn_begin(struct ur_cf_run *r);
/* What the CM told us, whether or not a step waits for it. */
void ur_cf_conn_learn(struct ur_cf_run *r, const struct ur_cm_msg *m);

/* Whether the peer that we have met can serve the rule. */
static inline bool ur_cf_servable(const struct ur_cf_run *r, const struct ur_cf_rule *rule)
{
	return !rule->offered || (r->offers && r->modes & 1u << rule->serve);
}

static inline bool ur_cf_waits(const struct ur_cf_step *s)
{
	return s->kind != UR_CF_SEND && s->kind != UR_CF_CM && s->kind != UR_CF_END;
}

/* The MSN that a step expects. */
static inline uint32_t ur_cf_msn(const struct ur_cf_run *r, const struct ur_cf_step *s)
{
	return ur_psn_add(r->conn.msn, (uint32_t)(int32_t)s->msn);
}

static inline bool ur_cf_is_answer(uint8_t opcode)
{
	return ur_opcode(opcode)->flags & UR_OPF_RESPONSE;
}

/* The PSN that a step's `psn` stands for: answers we get and requests we send count from our first one, the others from the peer's. */
static inline uint32_t ur_cf_psn(const struct ur_cf_run *r, const struct ur_cf_step *s)
{
	bool sends = s->kind == UR_CF_SEND;

	return ur_psn_add(ur_cf_is_answer(s->opcode) == sends ? r->conn.their_psn : r->conn.psn, (uint32_t)(int32_t)s->psn);
}

#endif
