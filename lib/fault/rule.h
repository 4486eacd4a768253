/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that are rules: what is done to which packets. The NIC's fault injection and the simulated fabric have the same table, which reads
 * a packet's BTH and says what becomes of it; doing it is theirs.
 */
#ifndef UR_FAULT_RULE_H
#define UR_FAULT_RULE_H

#include "wire/pkt.h"

#define UR_FAULT_RULE_WORDS 12

enum ur_fault_dir { UR_FAULT_TX = 1, UR_FAULT_RX = 2 };

enum ur_fault_action {
	UR_FAULT_DROP,
	UR_FAULT_DUPLICATE,
	UR_FAULT_DELAY, /* by rule.delay; others pass it */
	UR_FAULT_CORRUPT,
	UR_FAULT_MARK, /* CE, whether or not the sender declared itself ECN-capable */
};

struct ur_fault_rule {
	enum ur_fault_action action;
	unsigned dir;     /* of enum ur_fault_dir; 0: both */
	int opcode;       /* of the BTH, or -1 for any frame, RoCE or not */
	bool any_service; /* only the opcode's low five bits count */
	uint32_t qpn;     /* the destination's; 0: any */
	int64_t psn;      /* -1: any */
	unsigned nth;     /* the first match to act on, from 1; 0 is 1 */
	unsigned times;   /* how many matches to act on from there; 0: all */
	ur_time delay;
};

struct ur_fault_row {
	struct ur_fault_rule rule;
	unsigned seen, hits; /* packets that match; that it has acted on */
};

/*
 * "drop tx opcode=READ_RESP_MIDDLE qpn=0x12 psn=7 nth=3 times=2", "delay rx delay=5ms": an action (drop, dup, delay, corrupt, mark), then
 * in any order a direction (tx, rx, both) and conditions. An opcode without its service is that of each. Without nth and times it acts on
 * all. NULL, or what is wrong: the word of `text` that cannot be taken begins at *at.
 */
const char *ur_fault_rule_parse(const char *text, struct ur_fault_rule *r, unsigned *at);

/* Does it act on this packet? `bth` is NULL when the packet is not RoCEv2. Counts. */
bool ur_fault_row_acts(struct ur_fault_row *row, enum ur_fault_dir dir, const struct ur_bth *bth);

/* The BTH of a whole frame that has not been parsed, past one VLAN tag; false for what is not RoCEv2. */
bool ur_fault_find_bth(const uint8_t *frame, uint32_t len, struct ur_bth *bth);
/* Sets CE in the IP header of a whole frame: of one that is ECN-capable, or of `any`. False when it is not IP, or not capable. */
bool ur_fault_set_ce(uint8_t *frame, uint32_t len, bool any);

#endif
