/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rule on the shortest conversation that breaks it, and on the same one without the fault where that is near. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze_harness.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

void ur_suite_analyze_rules(void);

#define STEPS 22

#define SO UR_OP_SEND_ONLY
#define SF UR_OP_SEND_FIRST
#define SM UR_OP_SEND_MIDDLE
#define SL UR_OP_SEND_LAST
#define WO UR_OP_WRITE_ONLY
#define RR UR_OP_READ_REQ
#define R1 UR_OP_READ_RESP_FIRST
#define R2 UR_OP_READ_RESP_MIDDLE
#define R3 UR_OP_READ_RESP_LAST
#define RO UR_OP_READ_RESP_ONLY
#define AK UR_OP_ACK
#define FA UR_OP_FETCH_ADD
#define AA UR_OP_ATOMIC_ACK
#define CN UR_OP_CNP
#define SK UR_OP_SACK
#define CNPS(us)                                                                                                                           \
	{'B', CN, 0, 0, 0, us}, {'B', CN, 0, 0, 0, us}, {'B', CN, 0, 0, 0, us},                                                            \
	{                                                                                                                                  \
		'B', CN, 0, 0, 0, us                                                                                                       \
	}
#define MARKED(psn, us)                                                                                                                    \
	{'A', SO, psn, 8 | MARK, 0, us}, {'A', SO, psn + 1, 8 | MARK, 0, us}, {'A', SO, psn + 2, 8 | MARK, 0, us},                         \
	{                                                                                                                                  \
		'A', SO, psn + 3, 8 | MARK, 0, us                                                                                          \
	}

static const struct row {
	const char *name;
	enum ur_rule rule;
	uint32_t frame; /* 0: the rule must not be broken */
	struct step steps[STEPS];
} rows[] = {
	{"a middle packet without a first", UR_RULE_OPSEQ, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SM, 101, MTU, 0, 9}}},
	{"a first packet within a message",
	 UR_RULE_OPSEQ,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SF, 101, MTU, 0, 9}, {'A', SO, 102, 8, 0, 9}}},
	{"a message in order", UR_RULE_OPSEQ, 0, {{'A', SF, 100, MTU, 0, 9}, {'A', SM, 101, MTU, 0, 9}, {'A', SL, 102, 8, 0, 9}}},
	{"a middle packet too short", UR_RULE_MTU, 2, {{'A', SF, 100, MTU, 0, 9}, {'A', SM, 101, 512, 0, 9}}},
	{"a last packet of nothing", UR_RULE_MTU, 2, {{'A', SF, 100, MTU, 0, 9}, {'A', SL, 101, 0, 0, 9}}},
	{"a WRITE of another length", UR_RULE_RETH_LEN, 1, {{'A', WO, 100, 64, 60, 9}}},
	{"a WRITE of its length", UR_RULE_RETH_LEN, 0, {{'A', WO, 100, 64, 64, 9}}},
	{"an atomic at an odd address", UR_RULE_INVALID, 1, {{'A', FA, 100, 5, 4, 9}}},
	{"a PSN far away", UR_RULE_PSN, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 900000, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}}},
	{"a new life with other PSNs", UR_RULE_PSN, 0, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 900000, 8, 0, 9}, {'A', SO, 900001, 8, 0, 9}}},
	{"missed by the recorder", UR_RULE_GAP, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 102, 0x1f, 3, 9}}},
	{"lost before the recorder",
	 UR_RULE_GAP,
	 2,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 101, NAK, 1, 9}, {'A', SO, 101, 8, 0, 90}, {'A', SO, 102, 8, 0, 9}}},
	{"never came", UR_RULE_MISSING, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}}},
	{"nobody answers",
	 UR_RULE_UNANSWERED,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SO, 101, 8, 0, 9}, {'B', SO, 500, 8, 0, 1500000}}},
	{"a sequence NAK and its packet",
	 UR_RULE_RETX,
	 5,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 101, NAK, 1, 9}, {'A', SO, 101, 8, 0, 90}}},
	{"a timeout", UR_RULE_RETX, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 100, 8, 0, 70000}}},
	{"an answer that did not arrive",
	 UR_RULE_RETX_SPURIOUS,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SO, 100, 8, 0, 70000}}},
	{"doubled on the way", UR_RULE_RETX_SPURIOUS, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 100, 8, 0, 1}}},
	{"again with another length", UR_RULE_RETX_DIFFERS, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 100, 16, 0, 70000}}},
	{"again with other data", UR_RULE_RETX_DATA, 2, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 100, 8 | FILL, 0, 70000}}},
	{"overtaken", UR_RULE_REORDERED, 3, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}}},
	{"an answer to nothing",
	 UR_RULE_ACK_AHEAD,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'B', AK, 101, 0x1f, 1, 9}, {'A', SO, 101, 8, 0, 9}}},
	{"an answer and its request in the wrong order",
	 UR_RULE_ACK_AHEAD,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'B', AK, 101, 0x1f, 2, 9}, {'A', SO, 101, 8, 0, 9}}},
	{"an older answer",
	 UR_RULE_ACK_OLD,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 2, 9}, {'B', AK, 100, 0x1f, 1, 9}}},
	{"an answer again", UR_RULE_ACK_DUP, 3, {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'B', AK, 100, 0x1f, 1, 9}}},
	{"a SACK again", UR_RULE_ACK_DUP, 0, {{'A', SO, 100, 8, 0, 9}, {'B', SK, 100, 8, 1, 9}, {'B', SK, 100, 8, 1, 9}}},
	{"an older SACK, of nothing that can be counted",
	 UR_RULE_ACK_OLD,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 2, 9}, {'B', SK, 99, 8, 7, 9}, {'B', SK, 100, 8, 7, 9}}},
	{"a SACK acknowledges",
	 UR_RULE_ACK_DUP,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', SK, 101, 8, 2, 9}, {'B', AK, 101, 0x1f, 2, 9}}},
	{"a wrong count",
	 UR_RULE_MSN,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 3, 9}}},
	{"a READ that comes again in pieces, each a message",
	 UR_RULE_MSN,
	 0,
	 {{'A', SO, 100, 8, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'A', RR, 101, 4 * MTU, 0, 9},
	  {'A', SO, 105, 8, 0, 9},
	  {'B', AK, 101, NAK, 1, 9},
	  {'A', RR, 101, 2 * MTU, 0, 9},
	  {'A', RR, 103, 2 * MTU, 0, 9},
	  {'A', SO, 105, 8, 0, 9},
	  {'B', R1, 101, MTU, 2, 9},
	  {'B', R3, 102, MTU, 2, 9},
	  {'B', R1, 103, MTU, 3, 9},
	  {'B', R3, 104, MTU, 3, 9},
	  {'B', AK, 105, 0x1f, 4, 9}}},
	{"a READ that is there as its repair first, and whole then",
	 UR_RULE_READ_LEN,
	 0,
	 {{'A', RR, 100, MTU, 0, 9},
	  {'B', RO, 100, MTU, 1, 9},
	  {'A', RR, 102, MTU, 0, 9},
	  {'A', RR, 100, 4 * MTU, 0, 9},
	  {'B', R2, 101, MTU, 0, 9},
	  {'B', RO, 102, MTU, 1, 9},
	  {'B', R3, 103, MTU, 1, 9}}},
	{"a READ whose parts are there first",
	 UR_RULE_READ_KIND,
	 0,
	 {{'A', RR, 100, MTU, 0, 9},
	  {'A', RR, 102, MTU, 0, 9},
	  {'A', RR, 100, 4 * MTU, 0, 9},
	  {'B', R1, 100, MTU, 1, 9},
	  {'B', R2, 101, MTU, 0, 9},
	  {'B', R2, 102, MTU, 0, 9},
	  {'B', R3, 103, MTU, 1, 9}}},
	{"a READ behind one whose parts are there first",
	 UR_RULE_READ_GAP,
	 0,
	 {{'A', RR, 100, MTU, 0, 9},
	  {'A', RR, 102, MTU, 0, 9},
	  {'A', RR, 100, 4 * MTU, 0, 9},
	  {'B', R1, 100, MTU, 1, 9},
	  {'B', R2, 101, MTU, 0, 9},
	  {'B', R2, 102, MTU, 0, 9},
	  {'B', R3, 103, MTU, 1, 9},
	  {'A', RR, 104, 4 * MTU, 0, 9},
	  {'B', R1, 104, MTU, 2, 9},
	  {'B', R2, 105, MTU, 0, 9},
	  {'B', R2, 106, MTU, 0, 9},
	  {'B', R3, 107, MTU, 2, 9}}},
	{"a READ whose first response tells the path MTU of one before it",
	 UR_RULE_READ_GAP,
	 0,
	 {{'A', RR, 100, MTU, 0, 9},
	  {'A', RR, 102, MTU, 0, 9},
	  {'A', RR, 100, 4 * MTU, 0, 9},
	  {'A', RR, 104, 4 * MTU, 0, 9},
	  {'B', R3, 103, MTU, 1, 9},
	  {'B', R1, 104, MTU, 2, 9},
	  {'B', R2, 105, MTU, 0, 9},
	  {'B', R2, 106, MTU, 0, 9},
	  {'B', R3, 107, MTU, 2, 9}}},
	{"answers to what was asked before the recording, and comes again",
	 UR_RULE_ACK_AHEAD,
	 0,
	 {{'A', FA, 100, 1, 0, 9},
	  {'B', AA, 100, FOUND(1), 1, 9},
	  {'B', AA, 102, FOUND(7), 3, 9},
	  {'B', AA, 103, FOUND(8), 4, 9},
	  {'A', FA, 101, 1, 0, 9000},
	  {'A', FA, 102, 1, 0, 9},
	  {'A', FA, 103, 1, 0, 9}}},
	{"an ACK of a READ that is answered, asked again before the recording",
	 UR_RULE_ANSWER_KIND,
	 0,
	 {{'A', RR, 100, 64, 0, 9}, {'B', RO, 100, 64, 1, 9}, {'B', AK, 100, 0x1f, 1, 9}}},
	{"a SEND that is doubled after the recorder, and a READ",
	 UR_RULE_ANSWER_KIND,
	 0,
	 {{'A', SO, 100, 8, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'A', RR, 101, 64, 0, 300000},
	  {'B', RO, 101, 64, 2, 9},
	  {'B', AK, 101, 0x1f, 2, 9}}},
	{"the same, which is noted",
	 UR_RULE_ACK_DUP,
	 5,
	 {{'A', SO, 100, 8, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'A', RR, 101, 64, 0, 300000},
	  {'B', RO, 101, 64, 2, 9},
	  {'B', AK, 101, 0x1f, 2, 9}}},
	{"and an atomic",
	 UR_RULE_ANSWER_KIND,
	 0,
	 {{'A', SO, 100, 8, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'A', FA, 101, 1, 0, 300000},
	  {'B', AA, 101, FOUND(1), 2, 9},
	  {'B', AK, 101, 0x1f, 2, 9}}},
	{"an ACK in the middle of a READ's responses",
	 UR_RULE_ANSWER_KIND,
	 5,
	 {{'A', SO, 100, 8, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'A', RR, 101, 3 * MTU, 0, 300000},
	  {'B', R1, 101, MTU, 2, 9},
	  {'B', AK, 101, 0x1f, 2, 9},
	  {'B', R2, 102, MTU, 2, 9},
	  {'B', R3, 103, MTU, 2, 9}}},
	{"an ACK of a READ", UR_RULE_ANSWER_KIND, 2, {{'A', RR, 100, 64, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}}},
	{"a READ response to a SEND", UR_RULE_ANSWER_KIND, 2, {{'A', SO, 100, 64, 0, 9}, {'B', RO, 100, 64, 1, 9}}},
	{"a last packet without a first is taken",
	 UR_RULE_TAKEN,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SL, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 2, 9}}},
	{"a last packet without a first is refused",
	 UR_RULE_TAKEN,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SL, 101, 8, 0, 9}, {'B', AK, 101, NAK | UR_NAK_INV_REQ, 1, 9}}},
	{"a reserved syndrome", UR_RULE_SYNDROME, 2, {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x40, 1, 9}}},
	{"a sequence NAK",
	 UR_RULE_NAK_SEQ,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 101, NAK, 1, 9}}},
	{"a sequence NAK for nothing", UR_RULE_NAK_NOGAP, 2, {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, NAK, 0, 9}}},
	{"a NAK of what was answered",
	 UR_RULE_NAK_BACK,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 2, 9}, {'B', AK, 100, NAK, 0, 9}}},
	{"a sequence NAK again",
	 UR_RULE_NAK_DUP,
	 5,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 101, NAK, 1, 9}, {'B', AK, 101, NAK, 1, 9}}},
	{"answered after it was refused for good",
	 UR_RULE_ACK_AFTER_FATAL,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, NAK | UR_NAK_INV_REQ, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 2, 9}}},
	{"no access", UR_RULE_NAK_FATAL, 2, {{'A', WO, 100, 8, 8, 9}, {'B', AK, 100, NAK | UR_NAK_REM_ACCESS, 0, 9}}},
	{"no receive buffer", UR_RULE_RNR, 2, {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR, 0, 9}}},
	{"again too early", UR_RULE_RNR_EARLY, 3, {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR, 0, 9}, {'A', SO, 100, 8, 0, 5}}},
	{"again in time", UR_RULE_RNR_EARLY, 0, {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR, 0, 9}, {'A', SO, 100, 8, 0, 20}}},
	{"again before it can know",
	 UR_RULE_RNR_EARLY,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR_LONG, 0, 9}, {'A', SO, 100, 8, 0, 169}}},
	{"again when it can know",
	 UR_RULE_RNR_EARLY,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR_LONG, 0, 9}, {'A', SO, 100, 8, 0, 5000}}},
	{"again 2 % too early",
	 UR_RULE_RNR_EARLY,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR_LONG, 0, 9}, {'A', SO, 100, 8, 0, 642300}}},
	{"again 4 % too early",
	 UR_RULE_RNR_EARLY,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR_LONG, 0, 9}, {'A', SO, 100, 8, 0, 629100}}},
	{"a buffer that is not needed", UR_RULE_RNR_NONE, 2, {{'A', WO, 100, 8, 8, 9}, {'B', AK, 100, RNR, 0, 9}}},
	{"answered after a refusal",
	 UR_RULE_ACK_AFTER_RNR,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, RNR, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}}},
	{"a NAK for what follows a refusal",
	 UR_RULE_NAK_AFTER_RNR,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 100, RNR_LONG, 0, 9}, {'B', AK, 100, NAK, 0, 9}}},
	{"a response missing",
	 UR_RULE_READ_GAP,
	 3,
	 {{'A', RR, 100, 3 * MTU, 0, 9}, {'B', R1, 100, MTU, 1, 9}, {'B', R3, 102, MTU, 1, 9}, {'A', RR, 100, 3 * MTU, 0, 70000}}},
	{"a response twice", UR_RULE_READ_DUP, 3, {{'A', RR, 100, 2 * MTU, 0, 9}, {'B', R1, 100, MTU, 1, 9}, {'B', R1, 100, MTU, 1, 9}}},
	{"responses again, as asked for",
	 UR_RULE_READ_DUP,
	 0,
	 {{'A', RR, 100, 2 * MTU, 0, 9},
	  {'B', R1, 100, MTU, 1, 9},
	  {'A', RR, 100, 2 * MTU, 0, 70000},
	  {'B', R1, 100, MTU, 1, 9},
	  {'B', R3, 101, MTU, 1, 9}}},
	{"a response too short", UR_RULE_READ_LEN, 2, {{'A', RR, 100, 64, 0, 9}, {'B', RO, 100, 60, 1, 9}}},
	{"a middle response at the end",
	 UR_RULE_READ_KIND,
	 3,
	 {{'A', RR, 100, 2 * MTU, 0, 9}, {'B', R1, 100, MTU, 1, 9}, {'B', R2, 101, MTU, 1, 9}}},
	{"responses that end early",
	 UR_RULE_READ_SHORT,
	 3,
	 {{'A', RR, 100, 3 * MTU, 0, 9}, {'B', R1, 100, MTU, 1, 9}, {'B', R3, 101, MTU, 1, 9}}},
	{"the rest of a READ that begins with a middle response",
	 UR_RULE_READ_PART,
	 7,
	 {{'A', RR, 100, 3 * MTU, 0, 9},
	  {'B', R1, 100, MTU, 1, 9},
	  {'B', R2, 101, MTU, 1, 9},
	  {'B', R3, 102, MTU, 1, 9},
	  {'A', RR, 101, 2 * MTU, MTU, 90000},
	  {'B', R2, 101, MTU, 1, 9},
	  {'B', R3, 102, MTU, 1, 9}}},
	{"an atomic without a result",
	 UR_RULE_ATOMIC_GAP,
	 4,
	 {{'A', SO, 100, 8, 0, 9},
	  {'A', FA, 101, 0, 0, 9},
	  {'A', FA, 102, 0, 0, 9},
	  {'B', AA, 102, 0x1f, 3, 9},
	  {'A', SO, 103, 8, 0, 20000}}},
	{"a value that nobody left there",
	 UR_RULE_ATOMIC_VALUE,
	 4,
	 {{'A', FA, 100, 5, 0, 9}, {'B', AA, 100, FOUND(70), 1, 9}, {'A', FA, 101, 5, 0, 9}, {'B', AA, 101, FOUND(76), 2, 9}}},
	{"values that follow from one another",
	 UR_RULE_ATOMIC_VALUE,
	 0,
	 {{'A', FA, 100, 5, 0, 9},
	  {'A', FA, 101, 1, 0, 9},
	  {'B', AA, 100, FOUND(70), 1, 9},
	  {'B', AA, 101, FOUND(75), 2, 9},
	  {'A', FA, 102, 1, 0, 9},
	  {'B', AA, 102, FOUND(76), 3, 9}}},
	{"a WRITE between two atomics",
	 UR_RULE_ATOMIC_VALUE,
	 0,
	 {{'A', FA, 100, 5, 0, 9},
	  {'B', AA, 100, FOUND(70), 1, 9},
	  {'A', WO, 101, 8, 8, 9},
	  {'B', AK, 101, 0x1f, 2, 9},
	  {'A', FA, 102, 5, 0, 9},
	  {'B', AA, 102, FOUND(0), 3, 9}}},
	{"an atomic that is not here",
	 UR_RULE_ATOMIC_VALUE,
	 0,
	 {{'A', FA, 100, 5, 0, 9}, {'B', AA, 100, FOUND(70), 1, 9}, {'A', FA, 102, 5, 0, 9}, {'B', AA, 102, FOUND(90), 3, 9}}},
	{"an atomic that is executed again",
	 UR_RULE_ATOMIC_AGAIN,
	 4,
	 {{'A', FA, 100, 5, 0, 9}, {'B', AA, 100, FOUND(70), 1, 9}, {'A', FA, 100, 5, 0, 70000}, {'B', AA, 100, FOUND(75), 1, 9}}},
	{"an atomic that is answered again",
	 UR_RULE_ATOMIC_AGAIN,
	 0,
	 {{'A', FA, 100, 5, 0, 9}, {'B', AA, 100, FOUND(70), 1, 9}, {'A', FA, 100, 5, 0, 70000}, {'B', AA, 100, FOUND(70), 1, 9}}},
	{"more than there are buffers for",
	 UR_RULE_CREDITS,
	 6,
	 {{'A', SO, 100, 8, 0, 9},
	  {'B', AK, 100, 0x02, 1, 9},
	  {'A', SO, 101, 8, 0, 9},
	  {'A', SO, 102, 8, 0, 9},
	  {'A', SO, 103, 8, 0, 9},
	  {'A', SO, 104, 8, 0, 9}}},
	{"one more than there are buffers for",
	 UR_RULE_CREDITS,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x02, 1, 9}, {'A', SO, 101, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'A', SO, 103, 8, 0, 9}}},
	{"WRITEs, which need no buffers",
	 UR_RULE_CREDITS,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x00, 1, 9}, {'A', WO, 101, 8, 8, 9}, {'A', WO, 102, 8, 8, 9}, {'A', WO, 103, 8, 8, 9}}},
	{"buffers without end",
	 UR_RULE_CREDITS,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SO, 101, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'A', SO, 103, 8, 0, 9}}},
	{"retries ever later",
	 UR_RULE_TIMER_UNEVEN,
	 4,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 100, 8, 0, 70000}, {'A', SO, 100, 8, 0, 140000}, {'A', SO, 100, 8, 0, 350000}}},
	{"retries evenly spaced",
	 UR_RULE_TIMER_UNEVEN,
	 0,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 100, 8, 0, 70000}, {'A', SO, 100, 8, 0, 80000}, {'A', SO, 100, 8, 0, 70000}}},
	{"notifications without a pause",
	 UR_RULE_CNP_PACE,
	 11,
	 {{'A', SO, 100, 8 | MARK, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, CNPS(3), CNPS(3), {'B', CN, 0, 0, 0, 3}}},
	{"notifications in turn",
	 UR_RULE_CNP_PACE,
	 0,
	 {{'A', SO, 100, 8 | MARK, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, CNPS(5), CNPS(5), {'B', CN, 0, 0, 0, 5}}},
	{"marks that are not told",
	 UR_RULE_CNP_PACE,
	 19,
	 {{'A', SO, 100, 8 | MARK, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'B', CN, 0, 0, 0, 9},
	  MARKED(101, 400),
	  MARKED(105, 400),
	  MARKED(109, 400),
	  MARKED(113, 400)}},
	{"marks that are told",
	 UR_RULE_CNP_PACE,
	 0,
	 {{'A', SO, 100, 8 | MARK, 0, 9},
	  {'B', AK, 100, 0x1f, 1, 9},
	  {'B', CN, 0, 0, 0, 9},
	  MARKED(101, 400),
	  MARKED(105, 400),
	  {'B', CN, 0, 0, 0, 9},
	  MARKED(109, 400),
	  MARKED(113, 400)}},
	{"a notification without its bit",
	 UR_RULE_CNP_BECN,
	 3,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'B', CN, 0, 0, 0, 9}}},
	{"only one direction", UR_RULE_ONEWAY, 1, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}}},
	{"from the middle", UR_RULE_MID, 1, {{'A', SM, 100, MTU, 0, 9}, {'A', SL, 101, 8, 0, 9}, {'B', AK, 101, 0x1f, 9, 9}}},
	{"times go back", UR_RULE_RECORDER, 2, {{'A', SO, 100, 8, 0, 9000}, {'A', SO, 101, 8, 0, -8000}}},
};

static void rules__each(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_recording r = {.name = rows[i].name};
		ur_time when = UR_NS_PER_S;
		struct findings f;
		bool ok;

		for (const struct step *t = rows[i].steps; t < rows[i].steps + STEPS && t->from; t++) {
			when += (ur_time)((int64_t)t->us * 1000);
			analyze_add_step(&r, t, when);
		}
		analyze_run(&r, &f);
		ok = rows[i].frame ? findings_of(&f, rows[i].rule, rows[i].frame) == 1 : !findings_of(&f, rows[i].rule, 0);
		CU_ASSERT_TRUE(ok);
		if (!ok) {
			printf("# %s: expected %s at frame %u\n", rows[i].name, ur_rules[rows[i].rule].name, rows[i].frame);
			findings_print(&f, "  got");
		}
		findings_free(&f);
		ur_recording_free(&r);
	}
}

/* 4000 atomics of another QP between one and its repetition, which is executed again: that is seen, wherever flows lie in memory. */
static void atomic__among_others(void)
{
	struct ur_recording r = {.name = "atomics both ways"};
	ur_time when = UR_NS_PER_S;
	struct findings f;

	analyze_add_step(&r, &(struct step){'A', FA, 100, 5, 0, 0}, when);
	analyze_add_step(&r, &(struct step){'B', AA, 100, FOUND(70), 1, 0}, when += 9000);
	for (int i = 0; i < 4000; i++) {
		analyze_add_step(&r, &(struct step){'B', FA, 1000 + i, 5, 0, 0}, when += 9000);
		analyze_add_step(&r, &(struct step){'A', AA, 1000 + i, FOUND(5 * i), i + 1, 0}, when += 9000);
	}
	analyze_add_step(&r, &(struct step){'A', FA, 100, 5, 0, 0}, when += 9000);
	analyze_add_step(&r, &(struct step){'B', AA, 100, FOUND(75), 1, 0}, when += 9000);
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_ATOMIC_AGAIN, r.n), 1);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_ATOMIC_VALUE, 0), 0);
	findings_free(&f);
	ur_recording_free(&r);
}

/* --- where it was lost --- */

static const struct place_row {
	const char *name;
	enum ur_an_place place;
	bool answers;
	unsigned half, n;
	struct step steps[STEPS];
} places[] = {
	{"before the recorder",
	 UR_AN_BEFORE,
	 false,
	 0,
	 2,
	 {{'A', SO, 100, 8, 0, 9},
	  {'A', SO, 103, 8, 0, 9},
	  {'B', AK, 101, NAK, 1, 9},
	  {'A', SO, 101, 8, 0, 90},
	  {'B', AK, 101, 0x1f, 2, 9}}},
	{"behind the recorder",
	 UR_AN_BEHIND,
	 false,
	 0,
	 1,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 101, NAK, 1, 9}, {'A', SO, 101, 8, 0, 90}}},
	{"by the recorder", UR_AN_MISSED, false, 0, 1, {{'A', SO, 100, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'B', AK, 102, 0x1f, 3, 9}}},
	{"overtaken",
	 UR_AN_OVERTAKEN,
	 false,
	 0,
	 1,
	 {{'A', SO, 100, 8, 0, 9}, {'A', SO, 102, 8, 0, 9}, {'A', SO, 101, 8, 0, 9}, {'B', AK, 102, 0x1f, 3, 9}}},
	{"the answer behind the recorder",
	 UR_AN_BEHIND,
	 true,
	 0,
	 1,
	 {{'A', SO, 100, 8, 0, 9}, {'B', AK, 100, 0x1f, 1, 9}, {'A', SO, 100, 8, 0, 70000}, {'B', AK, 100, 0x1f, 1, 9}}},
	{"responses before the recorder",
	 UR_AN_BEFORE,
	 true,
	 0,
	 1,
	 {{'A', RR, 100, 3 * MTU, 0, 9}, {'B', R1, 100, MTU, 1, 9}, {'B', R3, 102, MTU, 1, 9}, {'A', RR, 101, 2 * MTU, 0, 70000}}},
};

static void places__each(void)
{
	for (unsigned i = 0; i < ur_array_size(places); i++) {
		const struct place_row *row = &places[i];
		struct ur_recording r = {.name = row->name};
		ur_time when = UR_NS_PER_S;
		struct ur_an_conn c;
		struct findings f;
		uint64_t got;

		for (const struct step *t = row->steps; t < row->steps + STEPS && t->from; t++)
			analyze_add_step(&r, t, when += (ur_time)t->us * 1000);
		analyze_run(&r, &f);
		CU_ASSERT_TRUE_FATAL(ur_analysis_conn(f.a, 0, &c));
		got = row->answers ? c.half[row->half].answers_lost[row->place] : c.half[row->half].lost[row->place];
		CU_ASSERT_EQUAL(got, row->n);
		if (got != row->n)
			printf("# %s: %u expected, %u counted\n", row->name, row->n, (unsigned)got);
		findings_free(&f);
		ur_recording_free(&r);
	}
}

/* --- sentences --- */

static void text__holes(void)
{
	struct ur_finding f = {.rule = UR_RULE_RETX,
			       .frame = 9,
			       .seen = {4, 8},
			       .src = ur_gid_from_v4(0x0100000a),
			       .v = {77, 1500000},
			       .s = {"{dst} says so in {f1}", "of {f0} again, {t1} later"}};
	char text[200], small[8];

	f.dst = ur_gid_from_v4(0x0200000a);
	ur_finding_text(&f, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "PSN 77 of frame 4 again, 1.50 ms later: 10.0.0.2 says so in frame 8");
	CU_ASSERT_EQUAL(ur_finding_text(&f, small, sizeof(small)), 7);
	CU_ASSERT_STRING_EQUAL(small, "PSN 77 ");
}

static void rules__all_have_names(void)
{
	for (unsigned i = 0; i < UR_RULE_COUNT; i++) {
		CU_ASSERT_TRUE(ur_rules[i].name && *ur_rules[i].name && *ur_rules[i].sentence);
		for (unsigned k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(ur_rules[i].name, ur_rules[k].name);
	}
}

void ur_suite_analyze_rules(void)
{
	CU_pSuite s = CU_add_suite("analyze_rules", NULL, NULL);

	CU_add_test(s, "rules: each on its shortest conversation", rules__each);
	CU_add_test(s, "rules: an atomic among many others", atomic__among_others);
	CU_add_test(s, "rules: all have names", rules__all_have_names);
	CU_add_test(s, "places: each", places__each);
	CU_add_test(s, "text: holes", text__holes);
}
