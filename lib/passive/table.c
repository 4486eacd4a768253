/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows are in the order of lib/conform's rules. A fact says that the rule was obeyed, a finding that it was broken. What a rule says of
 * SENDs, and clause 9.7.4 of all messages, also applies to WRITEs.
 */
#include "passive/table.h"

#include "wire/msg/cm_msg.h"

#define RC UR_AN_ON_RC
#define XRC UR_AN_ON_XRC
#define UC UR_AN_ON_UC
#define ONLY (UR_AN_BEGINS | UR_AN_ENDS)
#define SEND UR_AN_SEND
#define WRITE UR_AN_WRITE
#define READS UR_AN_READ
#define ATOMIC UR_AN_ATOMIC

#define PARTS_ENOUGH 3

#define ROW(name, kind_, ...)                                                                                                              \
	{                                                                                                                                  \
		.rule = name, .kind = UR_##kind_, .sub = UR_PV_ANY, __VA_ARGS__                                                            \
	}
#define SUB(name, kind_, sub_, ...)                                                                                                        \
	{                                                                                                                                  \
		.rule = name, .kind = UR_##kind_, .sub = sub_, __VA_ARGS__                                                                 \
	}
#define DOUBT(name, kind_, ...) ROW(name, kind_, .doubt = true, __VA_ARGS__)
/* A host that sends an invalid request breaks the rule, and so does one that accepts it. */
#define INVALID(name, rule_, fault, ...)                                                                                                   \
	SUB(name, RULE_##rule_, UR_AN_##fault, __VA_ARGS__), SUB(name, RULE_TAKEN, UR_AN_##fault, __VA_ARGS__),                            \
		SUB(name, FACT_FAULT_REFUSED, UR_AN_##fault, __VA_ARGS__)
#define READ_WRONG(name, ...)                                                                                                              \
	ROW(name, RULE_READ_LEN, __VA_ARGS__), DOUBT(name, RULE_READ_KIND, __VA_ARGS__), DOUBT(name, RULE_READ_SHORT, __VA_ARGS__)

const struct ur_pv_row ur_pv_rows[] = {
	ROW("send-acknowledged", FACT_ACK, .with = RC | SEND | ONLY | UR_AN_ASKED),
	ROW("send-acknowledged", RULE_MSN, .with = RC | SEND | ONLY, .without = UR_AN_OLDER),
	ROW("send-acknowledged", RULE_ACK_AHEAD, .with = RC),
	DOUBT("send-acknowledged", RULE_ACK_OLD, .with = RC),
	DOUBT("send-acknowledged", RULE_ACK_DUP, .with = RC),
	ROW("send-acknowledged", RULE_SYNDROME, .with = RC, .without = READS | ATOMIC),
	ROW("send-acknowledged", RULE_ANSWER_KIND, .with = RC, .without = READS | ATOMIC | UR_AN_FLUSH | UR_AN_ATOMIC_WRITE),
	ROW("ack-covers-earlier", FACT_ACK, .with = RC | UR_AN_COVERS),
	ROW("msn-counts-messages", FACT_ACK, .with = RC | UR_AN_ENDS, .without = UR_AN_BEGINS),
	ROW("msn-counts-messages", RULE_MSN, .with = RC, .without = UR_AN_OLDER),
	ROW("ack-within-message", FACT_ACK, .with = RC | UR_AN_ASKED, .without = UR_AN_ENDS),
	ROW("ack-within-message", RULE_MSN, .with = RC, .without = UR_AN_ENDS | UR_AN_OLDER),
	ROW("gap-nak", FACT_NAK, .with = RC),
	DOUBT("gap-nak", RULE_NAK_NOGAP, .with = RC),
	DOUBT("gap-nak", RULE_NAK_BACK, .with = RC),
	ROW("gap-nak-once", FACT_NAK_ALONE, .with = RC),
	DOUBT("gap-nak-once", RULE_NAK_DUP, .with = RC),
	ROW("gap-nak-anew", FACT_NAK, .with = RC | UR_AN_ANEW),
	ROW("gap-read-nak", FACT_NAK, .with = RC | READS, .without = UR_AN_SEVERAL),
	ROW("read-takes-psns", FACT_ACK, .with = RC | UR_AN_AFTER_READ),
	ROW("duplicate-send", FACT_ACK_AGAIN, .with = RC | SEND, .without = UR_AN_OLDER),
	ROW("duplicate-send", RULE_MSN, .with = RC | SEND | UR_AN_OLDER),
	ROW("duplicate-old-send", FACT_ACK_AGAIN, .with = RC | SEND | UR_AN_OLDER),
	ROW("duplicate-write", FACT_ACK_AGAIN, .with = RC | WRITE),
	ROW("duplicate-write", RULE_MSN, .with = RC | WRITE | UR_AN_OLDER),
	ROW("read-whole", FACT_READ, .with = RC | READS, .without = UR_AN_NOTHING),
	READ_WRONG("read-whole", .with = RC | READS),
	ROW("read-whole", RULE_ANSWER_KIND, .with = RC | READS),
	ROW("read-whole", RULE_SYNDROME, .with = RC | READS),
	ROW("read-whole", RULE_MSN, .with = RC | READS),
	ROW("duplicate-read", FACT_READ_AGAIN, .with = RC | READS, .without = UR_AN_PART),
	ROW("duplicate-read-part", FACT_READ_AGAIN, .with = RC | READS | UR_AN_PART),
	ROW("duplicate-read-part", RULE_READ_PART, .with = RC | READS, .enough = PARTS_ENOUGH),
	ROW("read-of-nothing", FACT_READ, .with = RC | READS | UR_AN_NOTHING),
	READ_WRONG("read-of-nothing", .with = RC | READS | UR_AN_NOTHING),
	ROW("write-of-nothing", FACT_ACK, .with = RC | WRITE | ONLY | UR_AN_NOTHING),
	ROW("rnr-nak", FACT_ACK, .with = RC | SEND | UR_AN_AFTER_RNR),
	ROW("rnr-nak-alone", FACT_RNR_ALONE, .with = RC),
	ROW("rnr-nak-alone", RULE_NAK_AFTER_RNR, .with = RC),
	DOUBT("rnr-nak-alone", RULE_ACK_AFTER_RNR, .with = RC),
	ROW("write-immediate-rnr", FACT_RNR, .with = RC | WRITE | UR_AN_RECEIVES),
	SUB("ignores-wrong-version", RULE_OPCODE, 1, .with = UR_AN_INTACT),
	ROW("takes-limited-pkey", FACT_ACK, .with = RC | UR_AN_LIMITED),
	ROW("congestion-notified", FACT_CNP),
	ROW("congestion-notified", RULE_CE_NOCNP, .by_dst = true),
	ROW("congestion-notified", RULE_CNP_BECN),

	ROW("wrap-send", FACT_ACK, .with = RC | SEND | ONLY | UR_AN_WRAPS, .without = UR_AN_COVERS),
	ROW("wrap-ack-covers", FACT_ACK, .with = RC | ONLY | UR_AN_WRAPS | UR_AN_COVERS),
	ROW("wrap-in-send", FACT_ACK, .with = RC | SEND | UR_AN_ENDS | UR_AN_WRAPS, .without = UR_AN_BEGINS),
	ROW("wrap-in-write", FACT_ACK, .with = RC | WRITE | UR_AN_ENDS | UR_AN_WRAPS, .without = UR_AN_BEGINS),
	ROW("wrap-in-read", FACT_READ, .with = RC | READS | UR_AN_WRAPS),
	ROW("wrap-gap-nak", FACT_NAK, .with = RC | UR_AN_WRAPS),
	ROW("wrap-duplicate-send", FACT_ACK_AGAIN, .with = RC | SEND | UR_AN_WRAPS),
	ROW("wrap-duplicate-write", FACT_ACK_AGAIN, .with = RC | WRITE | UR_AN_WRAPS),
	ROW("wrap-duplicate-read", FACT_READ_AGAIN, .with = RC | READS | UR_AN_WRAPS, .without = UR_AN_PART),
	ROW("wrap-duplicate-read-part", FACT_READ_AGAIN, .with = RC | READS | UR_AN_WRAPS | UR_AN_PART),
	ROW("wrap-duplicate-read-part", RULE_READ_PART, .with = RC | READS | UR_AN_WRAPS, .enough = PARTS_ENOUGH),
	ROW("wrap-duplicate-atomic", FACT_ATOMIC_AGAIN, .with = RC | UR_AN_WRAPS),
	ROW("msn-wraps", FACT_ACK, .with = RC | UR_AN_ENDS | UR_AN_MSN_ZERO),

	ROW("xrc-send", FACT_ACK, .with = XRC | SEND | UR_AN_ENDS),
	ROW("xrc-send", RULE_MSN, .with = XRC | SEND, .without = UR_AN_OLDER),
	ROW("xrc-send", RULE_ACK_AHEAD, .with = XRC),
	DOUBT("xrc-send", RULE_ACK_OLD, .with = XRC),
	DOUBT("xrc-send", RULE_ACK_DUP, .with = XRC),
	ROW("xrc-send", RULE_SYNDROME, .with = XRC, .without = READS | ATOMIC),
	ROW("xrc-write-read", FACT_READ, .with = XRC | READS),
	READ_WRONG("xrc-write-read", .with = XRC | READS),
	ROW("xrc-write-read", RULE_ANSWER_KIND, .with = XRC | READS),
	ROW("xrc-atomic", FACT_ATOMIC, .with = XRC | UR_AN_ADDS),
	DOUBT("xrc-atomic", RULE_ATOMIC_VALUE, .with = XRC | UR_AN_ADDS),
	ROW("xrc-gap-nak", FACT_NAK, .with = XRC),
	DOUBT("xrc-gap-nak", RULE_NAK_NOGAP, .with = XRC),
	DOUBT("xrc-gap-nak", RULE_NAK_BACK, .with = XRC),
	ROW("xrc-duplicate-send", FACT_ACK_AGAIN, .with = XRC | SEND),
	ROW("xrc-duplicate-send", RULE_MSN, .with = XRC | SEND | UR_AN_OLDER),
	INVALID("xrc-last-without-first", OPSEQ, LAST_ALONE, .with = XRC),

	ROW("flush", FACT_READ, .with = RC | UR_AN_FLUSH),
	READ_WRONG("flush", .with = RC | UR_AN_FLUSH),
	ROW("flush", RULE_ANSWER_KIND, .with = RC | UR_AN_FLUSH),
	ROW("duplicate-flush", FACT_READ_AGAIN, .with = RC | UR_AN_FLUSH),
	ROW("flush-gap-nak", FACT_NAK, .with = RC | UR_AN_FLUSH, .without = UR_AN_SEVERAL),
	ROW("atomic-write", FACT_READ, .with = RC | UR_AN_ATOMIC_WRITE),
	READ_WRONG("atomic-write", .with = RC | UR_AN_ATOMIC_WRITE),
	ROW("atomic-write", RULE_ANSWER_KIND, .with = RC | UR_AN_ATOMIC_WRITE),
	ROW("duplicate-atomic-write", FACT_READ_AGAIN, .with = RC | UR_AN_ATOMIC_WRITE),
	INVALID("atomic-write-misaligned", INVALID, MISALIGNED, .with = RC | UR_AN_ATOMIC_WRITE),

	INVALID("middle-without-first", OPSEQ, MIDDLE_ALONE, .with = RC | SEND),
	INVALID("last-without-first", OPSEQ, LAST_ALONE, .with = RC | SEND),
	INVALID("write-middle-without-first", OPSEQ, MIDDLE_ALONE, .with = RC | WRITE),
	INVALID("write-last-without-first", OPSEQ, LAST_ALONE, .with = RC | WRITE),
	INVALID("only-within-send", OPSEQ, ONLY_WITHIN, .with = RC | SEND | UR_AN_IN_SEND),
	INVALID("first-within-send", OPSEQ, FIRST_WITHIN, .with = RC | SEND | UR_AN_IN_SEND),
	INVALID("write-within-send", OPSEQ, ONLY_WITHIN, .with = RC | WRITE | UR_AN_IN_SEND),
	INVALID("write-within-send", OPSEQ, FIRST_WITHIN, .with = RC | WRITE | UR_AN_IN_SEND),
	INVALID("write-within-send", OPSEQ, OTHER_WITHIN, .with = RC | WRITE | UR_AN_IN_SEND),
	INVALID("send-within-write", OPSEQ, ONLY_WITHIN, .with = RC | SEND | UR_AN_IN_WRITE),
	INVALID("send-within-write", OPSEQ, FIRST_WITHIN, .with = RC | SEND | UR_AN_IN_WRITE),
	INVALID("send-within-write", OPSEQ, OTHER_WITHIN, .with = RC | SEND | UR_AN_IN_WRITE),
	INVALID("read-within-send", OPSEQ, ONLY_WITHIN, .with = RC | READS | UR_AN_IN_SEND),
	INVALID("atomic-within-write", OPSEQ, ONLY_WITHIN, .with = RC | ATOMIC | UR_AN_IN_WRITE),
	SUB("invalid-ends-qp", FACT_ENDED, UR_NAK_INV_REQ),
	SUB("invalid-ends-qp", RULE_ACK_AFTER_FATAL, UR_NAK_INV_REQ),
	SUB("reserved-opcode", RULE_OPCODE, 0, .with = RC | UR_AN_INTACT),
	INVALID("only-above-mtu", MTU, ABOVE_MTU, .with = RC | ONLY),
	INVALID("first-below-mtu", MTU, BELOW_MTU, .with = RC | UR_AN_BEGINS, .without = UR_AN_ENDS),
	INVALID("middle-below-mtu", MTU, BELOW_MTU, .with = RC, .without = ONLY),
	INVALID("last-empty", MTU, LAST_EMPTY, .with = RC),
	INVALID("last-above-mtu", MTU, ABOVE_MTU, .with = RC | UR_AN_ENDS, .without = UR_AN_BEGINS),
	INVALID("write-above-reth", RETH_LEN, ABOVE_RETH, .with = RC | ONLY),
	INVALID("write-below-reth", RETH_LEN, BELOW_RETH, .with = RC | ONLY),
	INVALID("write-last-above-reth", RETH_LEN, ABOVE_RETH, .with = RC, .without = UR_AN_BEGINS),
	INVALID("write-last-below-reth", RETH_LEN, BELOW_RETH, .with = RC, .without = UR_AN_BEGINS),
	INVALID("read-above-2-gib", INVALID, READ_HUGE, .with = RC),
	INVALID("atomic-misaligned", INVALID, MISALIGNED, .with = RC | ATOMIC),

	SUB("access-error-ends-qp", FACT_ENDED, UR_NAK_REM_ACCESS),
	SUB("access-error-ends-qp", RULE_ACK_AFTER_FATAL, UR_NAK_REM_ACCESS),
	ROW("fetch-add", FACT_ATOMIC, .with = RC | UR_AN_ADDS),
	DOUBT("fetch-add", RULE_ATOMIC_VALUE, .with = RC | UR_AN_ADDS),
	ROW("fetch-add", RULE_ANSWER_KIND, .with = RC | UR_AN_ADDS),
	ROW("fetch-add", RULE_MSN, .with = RC | UR_AN_ADDS),
	ROW("fetch-add", RULE_SYNDROME, .with = RC | UR_AN_ADDS),
	ROW("compare-swap", FACT_ATOMIC, .with = RC | ATOMIC, .without = UR_AN_ADDS),
	DOUBT("compare-swap", RULE_ATOMIC_VALUE, .with = RC | ATOMIC, .without = UR_AN_ADDS),
	ROW("compare-swap", RULE_ANSWER_KIND, .with = RC | ATOMIC, .without = UR_AN_ADDS),
	ROW("compare-swap", RULE_MSN, .with = RC | ATOMIC, .without = UR_AN_ADDS),
	ROW("compare-swap", RULE_SYNDROME, .with = RC | ATOMIC, .without = UR_AN_ADDS),
	ROW("fetch-add-wraps", FACT_ATOMIC, .with = RC | UR_AN_WRAPS),
	ROW("duplicate-atomic", FACT_ATOMIC_AGAIN, .with = RC),
	ROW("duplicate-atomic", RULE_ATOMIC_AGAIN, .with = RC),
	ROW("duplicate-old-atomic", FACT_ATOMIC_AGAIN, .with = RC | UR_AN_OLDER),

	ROW("first-psn", FACT_FIRST),
	ROW("first-psn", RULE_CM_PSN),
	ROW("first-psn", RULE_PSN),
	ROW("psn-wraps", FACT_WRAP, .without = UR_AN_SEVERAL),
	ROW("psn-wraps-in-read", FACT_WRAP, .with = UR_AN_SEVERAL),
	SUB("obeys-sequence-nak", FACT_REPAIR, UR_AN_SEQ_NAK),
	SUB("obeys-rnr-nak", FACT_REPAIR, UR_AN_RNR),
	ROW("obeys-rnr-nak", RULE_RNR_EARLY),
	SUB("repeats-read", FACT_REPAIR, UR_AN_TIMEOUT, .with = READS),
	ROW("repeats-read", RULE_RETX_DIFFERS, .with = READS),
	SUB("repeats-send", FACT_REPAIR, UR_AN_TIMEOUT, .with = SEND),
	ROW("repeats-send", RULE_RETX_DIFFERS, .with = SEND),
	ROW("repeats-send", RULE_RETX_DIFFERS, .with = WRITE),
	SUB("repeats-no-more", FACT_REPAIR, UR_AN_SPURIOUS, .with = RC | SEND),
	ROW("repeats-no-more", FACT_ONCE, .with = RC),
	SUB("obeys-fatal-nak", FACT_STOPPED, UR_NAK_REM_ACCESS),
	SUB("obeys-operational-nak", FACT_STOPPED, UR_NAK_REM_OP),
	SUB("obeys-invalid-nak", FACT_STOPPED, UR_NAK_INV_REQ),
	SUB("response-lost", FACT_REPAIR, UR_AN_IMPLIED, .with = READS | UR_AN_PART),

	ROW("uc-no-ack", FACT_UC_SILENT),
	ROW("uc-no-ack", RULE_UC_ANSWER),
	SUB("uc-middle-without-first", RULE_OPSEQ, UR_AN_MIDDLE_ALONE, .with = UC),
	SUB("uc-middle-without-first", RULE_OPSEQ, UR_AN_LAST_ALONE, .with = UC),
	SUB("uc-first-anew", RULE_OPSEQ, UR_AN_ONLY_WITHIN, .with = UC),
	SUB("uc-first-anew", RULE_OPSEQ, UR_AN_FIRST_WITHIN, .with = UC),
	SUB("uc-above-mtu", RULE_MTU, UR_AN_ABOVE_MTU, .with = UC),
	ROW("ud-lookup-again", FACT_CM_SIDR_AGAIN),

	SUB("cm-unknown-service", FACT_CM_REFUSED, UR_CM_REJ_INVALID_SERVICE_ID),
	SUB("cm-no-transport", FACT_CM_REFUSED, UR_CM_REJ_INVALID_TRANSPORT_TYPE),
	SUB("cm-wrong-version", FACT_CM_REFUSED, UR_CM_REJ_INVALID_CLASS_VERSION),
	ROW("cm-duplicate-req", FACT_CM_REP_AGAIN),
	ROW("cm-duplicate-req", RULE_CM_REP),
	ROW("cm-rep-repeated", FACT_CM_REP_REPEATED),
	SUB("cm-rep-ends-with-rtu", FACT_CM_REP_DONE, UR_CM_RTU),
	SUB("cm-rep-ends-with-rtu", RULE_CM_AGAIN, UR_CM_REP, .doubt = true),
	SUB("cm-rep-rejected", FACT_CM_REP_DONE, UR_CM_REJ),
	ROW("cm-message-for-rtu", FACT_CM_EARLY),
	ROW("cm-dreq", FACT_CM_DREP),
	SUB("cm-dreq", RULE_CM_NOREP, UR_CM_DREQ, .by_dst = true, .doubt = true),
	ROW("cm-duplicate-dreq", FACT_CM_DREP_AGAIN),
	ROW("cm-message-after-dreq", FACT_CM_GONE),
	ROW("cm-message-after-dreq", RULE_ACK_AFTER_DREP),
	SUB("cm-stale", FACT_CM_REFUSED, UR_CM_REJ_STALE_CONN),
	ROW("cm-dreq-crossing", FACT_CM_DREQ_CROSSED),
	ROW("cm-dreq-repeated", FACT_CM_DREQ_REPEATED),
	SUB("cm-dreq-repeated", RULE_CM_AGAIN, UR_CM_DREQ, .doubt = true),
	SUB("sidr-unknown-service", FACT_CM_SIDR, UR_CM_SIDR_UNSUPPORTED),
	{.rule = NULL},
};
