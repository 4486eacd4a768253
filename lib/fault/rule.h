/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that are rules: what is done to which packets. The NIC's fault injection, the simulated fabric and `uroce between` have the same
 * table, which says by a packet's BTH, its place in its flow (flows.h) and its connection (conns.h) what becomes of it; they do
 * it. parse.c reads the text.
 */
#ifndef UR_FAULT_RULE_H
#define UR_FAULT_RULE_H

#include "base/rng.h"
#include "wire/pkt.h"

#define UR_FAULT_PPM 1000000u
#define UR_FAULT_ITERATIONS 255 /* of a PSN; more count as this many */

enum ur_fault_dir { UR_FAULT_TX = 1, UR_FAULT_RX = 2 };

enum ur_fault_action {
	UR_FAULT_DROP,
	UR_FAULT_DUPLICATE, /* the second one comes rule.delay later, or at once */
	UR_FAULT_DELAY,     /* by rule.delay; others pass it */
	UR_FAULT_REORDER,   /* until rule.by others to the same QP have passed it, but no longer than rule.delay */
	UR_FAULT_CORRUPT,   /* one bit of rule.part */
	UR_FAULT_MARK,      /* CE, whether or not the sender declared itself ECN-capable */
	UR_FAULT_TRIM,      /* all but rule.keep bytes of its payload are cut off */
	UR_FAULT_HOLD,      /* until rule.until, but no longer than rule.delay, and no more than rule.most at a time */
	UR_FAULT_ACTIONS,
};

/* The kind of acknowledgement that its AETH must show. */
enum ur_fault_answer { UR_FAULT_ANY_ANSWER, UR_FAULT_RNR_NAK, UR_FAULT_NAK };

/* Which packets. */
struct ur_fault_match {
	unsigned dir;     /* of enum ur_fault_dir; 0: both */
	int opcode;       /* of the BTH, or -1 for any frame, RoCE or not */
	bool any_service; /* only the opcode's low five bits count */
	bool relative;    /* psn counts from the first of its flow */
	bool has_src, has_dst;
	uint8_t answer;     /* enum ur_fault_answer */
	uint16_t port;      /* the UDP source port; 0: any */
	uint32_t qpn;       /* the destination's; 0: any */
	int64_t psn;        /* -1: any */
	uint32_t msg;       /* number of the message in its flow, from 1; 0: any */
	uint32_t iteration; /* which transmission of its PSN, from 1; 0: any */
	struct ur_gid src, dst;
	uint64_t service; /* that its connection was made for: a service id, or a port of the RDMA CM; 0: any */
};

enum ur_fault_until { UR_FAULT_UNTIL_NOTHING, UR_FAULT_UNTIL_PACKET, UR_FAULT_UNTIL_TOLD };

struct ur_fault_rule {
	enum ur_fault_action action;
	struct ur_fault_match on;
	uint32_t nth;         /* the first match to act on, from 1; 0 is 1 */
	uint32_t times;       /* how many matches to act on from there; 0: all */
	uint32_t chance;      /* in parts per million, of what matches otherwise; 0: always */
	uint32_t enter;       /* likewise, that a burst begins with what matches; 0: there are no bursts */
	uint32_t leave;       /* and that it ends before it; chance is within a burst */
	uint32_t by;          /* of UR_FAULT_REORDER */
	ur_time after, lasts; /* the time since the first packet, in which it acts; lasts 0: without end */
	ur_time delay;
	uint8_t part;  /* of UR_FAULT_CORRUPT: ur_fault_part_named; 0: any bit after the Ethernet header */
	bool fix;      /* of UR_FAULT_CORRUPT and UR_FAULT_TRIM: the ICRC is made right afterwards */
	int dscp;      /* of UR_FAULT_TRIM: the packet's from then on; -1: as it was */
	uint32_t keep; /* bytes of the payload */
	uint32_t most; /* of UR_FAULT_HOLD */
	uint8_t ends;  /* enum ur_fault_until */
	struct ur_fault_match until;
};

struct ur_fault_row {
	struct ur_fault_rule rule;
	bool bursting;
	unsigned seen, hits; /* packets that match; that it has acted on */
};

/* Where a packet stands in its flow. */
struct ur_fault_place {
	bool known;      /* else the rest means nothing */
	bool fresh;      /* it begins a flow, perhaps in place of another one of this number */
	bool arrived;    /* the same PSN got through before */
	unsigned flow;   /* its number */
	uint32_t offset; /* of its PSN from the flow's first */
	uint32_t msg;    /* of requests, from 1; 0: not known */
	uint32_t iteration;
};

/* What was found in a whole frame that was not parsed before, past one VLAN tag. */
struct ur_fault_frame {
	struct ur_bth bth;
	struct ur_gid src, dst;
	uint64_t service; /* conns.h; 0: not known */
	uint16_t sport;
	int16_t syndrome; /* of its AETH; -1: it has none */
	/* Only ur_fault_find_frame sets these: */
	uint32_t l3_off, bth_off;
	uint32_t end;     /* of the packet, the ICRC included; 0: its lengths are wrong */
	uint32_t payload; /* bytes between the extended headers and the ICRC */
};

/* A packet as rules see it. */
struct ur_fault_pkt {
	enum ur_fault_dir dir;
	const struct ur_bth *bth;           /* NULL when it is not RoCEv2 */
	const struct ur_fault_frame *frame; /* NULL: nothing but the BTH is known */
	ur_time since;                      /* the first packet */
	struct ur_fault_place place;
};

/*
 * "drop tx opcode=READ_RESP_MIDDLE qpn=0x12 psn=7 nth=3 times=2", "delay rx delay=5ms": an action (drop, dup, delay, reorder, corrupt,
 * mark, trim, hold), then in any order a direction (tx, rx, both) and conditions; the packet that ends a hold is described after the word
 * `until`. An opcode without its service is that of each. Without nth and times it acts on all. NULL, or what is wrong: the word of `text`
 * that cannot be taken begins at *at.
 */
const char *ur_fault_rule_parse(const char *text, struct ur_fault_rule *r, unsigned *at);
/* The same, and what is wrong in the words of a cable, whose directions are 1to2 and 2to1. */
const char *ur_fault_rule_parse_cable(const char *text, struct ur_fault_rule *r, unsigned *at);
/* Why only a cable can do what the rule says, as a sentence; NULL when a NIC and a fabric can, too. */
const char *ur_fault_rule_of_cables(const struct ur_fault_rule *r);
/* "1%" or "0.01", all of the `len` characters, in parts per million. */
bool ur_fault_parse_chance(const char *v, size_t len, uint32_t *ppm);
/* "20us", "5ms" or "3s", all of the `len` characters. */
bool ur_fault_parse_time(const char *v, size_t len, ur_time *to);

/* When the first packet came. */
struct ur_fault_origin {
	bool known;
	ur_time began;
};

/* How long ago that was; 0 of the first packet itself, and of one whose time is before that. */
static inline ur_time ur_fault_since(struct ur_fault_origin *o, ur_time now)
{
	if (!o->known)
		*o = (struct ur_fault_origin){.known = true, .began = now};
	return now - ur_min_time(o->began, now);
}

/* Has it a condition about a packet's place in its flow? */
static inline bool ur_fault_match_needs_place(const struct ur_fault_match *m)
{
	return m->relative || m->msg || m->iteration;
}

static inline bool ur_fault_rule_needs_place(const struct ur_fault_rule *r)
{
	return ur_fault_match_needs_place(&r->on) || (r->ends == UR_FAULT_UNTIL_PACKET && ur_fault_match_needs_place(&r->until));
}

/* Is it one of these? */
bool ur_fault_matches(const struct ur_fault_match *m, const struct ur_fault_pkt *p);
/* Does it act on this packet? Counts. `rng` is for rules with a chance. */
bool ur_fault_row_acts(struct ur_fault_row *row, const struct ur_fault_pkt *p, struct ur_rng *rng);

/* --- frame.c --- */

/* False for what is not RoCEv2. */
bool ur_fault_find_frame(const uint8_t *frame, uint32_t len, struct ur_fault_frame *f);
/* The syndrome of a packet whose BTH is at `bth`, with `len` bytes from there on; -1 when it has no AETH. */
int16_t ur_fault_syndrome(const uint8_t *bth, uint32_t len);
/* Sets CE in the IP header of a whole frame: of one that is ECN-capable, or of `any`. False when it is not IP, or not capable. */
bool ur_fault_set_ce(uint8_t *frame, uint32_t len, bool any);
/* Flips one bit after the Ethernet header. */
void ur_fault_flip_bit(uint8_t *frame, uint32_t len, struct ur_rng *rng);

#endif
