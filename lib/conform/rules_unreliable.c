/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable connections and datagrams: what is accepted, and what is silently dropped. The peer answers each message that it has
 * accepted.
 */
#include "conform/rules.h"

#define TAKEN(n, bytes) EXPECT(UC(SEND_ONLY), (n)-1, .x = n, .y = bytes, .flags = UR_CF_ECHO)
#define NOT_TAKEN NO_REQUEST(UC(SEND_ONLY))
#define UC_RULE(name_, clause_, what_, ...)                                                                                                \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .setup = UR_CF_UC, .offered = true           \
	}
#define UC_WRAPS(name_, clause_, what_, ...)                                                                                               \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .setup = UR_CF_UC, .offered = true,          \
		.serve = UR_CF_SERVE_PSN, .our_psn = 0xfffffe                                                                              \
	}
#define UD_TAKEN(n, bytes) EXPECT(UD(SEND_ONLY), 0, .x = n, .y = bytes, .flags = UR_CF_ECHO | UR_CF_ANY_PSN)
#define UD_NOT_TAKEN NO_REQUEST(UD(SEND_ONLY))
#define UD_RULE(name_, clause_, what_, ...)                                                                                                \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .setup = UR_CF_UD, .offered = true           \
	}

const struct ur_cf_rule ur_cf_rules_unreliable[] = {
	UC_RULE("uc-send", "9.8.2", "A SEND is accepted, and one of several packets as one message", SEND(UC(SEND_ONLY), 0, .len = 20),
		TAKEN(1, 20), SEND(UC(SEND_FIRST), 1, .len = M), SEND(UC(SEND_MIDDLE), 2, .len = M), SEND(UC(SEND_LAST), 3, .len = 88),
		TAKEN(2, 600)),
	UC_RULE("uc-no-ack", "9.8.2", "Nothing is acknowledged, even if AckReq is set",
		SEND(UC(SEND_ONLY), 0, .len = 20, .flags = UR_CF_ACKREQ), QUIET),
	UC_RULE("uc-gap-drops-message", "9.8.2", "A message of which a packet is missing is dropped, and the next one is accepted",
		SEND(UC(SEND_FIRST), 0, .len = M), SEND(UC(SEND_LAST), 2, .len = 8), NOT_TAKEN, SEND(UC(SEND_ONLY), 3, .len = 20),
		TAKEN(1, 20)),
	UC_RULE("uc-gap-between", "9.8.2", "A message after a gap is accepted", SEND(UC(SEND_ONLY), 0, .len = 20), TAKEN(1, 20),
		SEND(UC(SEND_ONLY), 7, .len = 24), TAKEN(2, 24)),
	UC_WRAPS("uc-wrap", "9.8.2", "A message may wrap, and the next one is accepted", SEND(UC(SEND_FIRST), 0, .len = M),
		 SEND(UC(SEND_MIDDLE), 1, .len = M), SEND(UC(SEND_LAST), 2, .len = 88), TAKEN(1, 600), SEND(UC(SEND_ONLY), 3, .len = 20),
		 TAKEN(2, 20)),
	UC_WRAPS("uc-wrap-gap", "9.8.2", "A message after a gap across the wrap is accepted", SEND(UC(SEND_ONLY), 0, .len = 20),
		 TAKEN(1, 20), SEND(UC(SEND_ONLY), 3, .len = 24), TAKEN(2, 24)),
	UC_RULE("uc-middle-without-first", "9.8.2", "A packet that continues nothing is dropped", SEND(UC(SEND_MIDDLE), 0, .len = M),
		SEND(UC(SEND_LAST), 1, .len = 8), NOT_TAKEN, SEND(UC(SEND_ONLY), 2, .len = 20), TAKEN(1, 20)),
	UC_RULE("uc-first-anew", "9.8.2", "A message that begins in the middle of another one takes its place",
		SEND(UC(SEND_FIRST), 0, .len = M), SEND(UC(SEND_ONLY), 1, .len = 20), TAKEN(1, 20)),
	UC_RULE("uc-write-immediate", "9.8.2", "A WRITE with immediate is accepted with the length of what it writes",
		SEND(UC(WRITE_ONLY_IMM), 0, .region = UR_CF_RW, .dma_len = 40, .len = 40), TAKEN(1, 40)),
	UC_RULE("uc-write-unknown-key", "9.8.2, 9.9.3", "A WRITE with an R_Key that was never issued is silently dropped",
		SEND(UC(WRITE_ONLY_IMM), 0, .region = UR_CF_UNKNOWN, .dma_len = 40, .len = 40), QUIET, NOT_TAKEN),
	UC_RULE("uc-above-mtu", "9.8.2", "A SEND ONLY of more than the path MTU is dropped", SEND(UC(SEND_ONLY), 0, .len = M + 4),
		NOT_TAKEN),
	UC_RULE("uc-wrong-pkey", "9.6.1", "A packet of another partition is dropped",
		SEND(UC(SEND_ONLY), 0, .len = 20, .flags = UR_CF_BAD_PKEY), NOT_TAKEN, SEND(UC(SEND_ONLY), 0, .len = 24), TAKEN(1, 24)),
	UC_RULE("uc-wrong-icrc", "7.8.1, A17", "A packet whose ICRC is wrong is dropped",
		SEND(UC(SEND_ONLY), 0, .len = 20, .flags = UR_CF_BAD_ICRC), NOT_TAKEN, SEND(UC(SEND_ONLY), 0, .len = 24), TAKEN(1, 24)),
	UC_RULE("uc-rc-opcode", "9.6.1", "A packet of reliable connections is dropped",
		SEND(RC(SEND_ONLY), 0, .len = 20, .flags = UR_CF_ACKREQ), QUIET, SEND(UC(SEND_ONLY), 0, .len = 24), TAKEN(1, 24)),
	UD_RULE("ud-send", "9.8.3", "A datagram is accepted, and so is a second one with the same PSN", SEND(UD(SEND_ONLY), 0, .len = 20),
		UD_TAKEN(1, 20), SEND(UD(SEND_ONLY), 0, .len = 24), UD_TAKEN(2, 24)),
	UD_RULE("ud-wrong-qkey", "9.6.1, 10.2.5", "A datagram with another Q_Key is dropped",
		SEND(UD(SEND_ONLY), 0, .len = 20, .flags = UR_CF_BAD_QKEY), UD_NOT_TAKEN, SEND(UD(SEND_ONLY), 1, .len = 24),
		UD_TAKEN(1, 24)),
	UD_RULE("ud-wrong-pkey", "9.6.1", "A datagram of another partition is dropped",
		SEND(UD(SEND_ONLY), 0, .len = 20, .flags = UR_CF_BAD_PKEY), UD_NOT_TAKEN, SEND(UD(SEND_ONLY), 1, .len = 24),
		UD_TAKEN(1, 24)),
	UD_RULE("ud-wrong-icrc", "7.8.1, A17", "A datagram whose ICRC is wrong is dropped",
		SEND(UD(SEND_ONLY), 0, .len = 20, .flags = UR_CF_BAD_ICRC), UD_NOT_TAKEN, SEND(UD(SEND_ONLY), 1, .len = 24),
		UD_TAKEN(1, 24)),
	UD_RULE("ud-rc-opcode", "9.6.1", "A packet of reliable connections is dropped",
		SEND(RC(SEND_ONLY), 0, .len = 20, .flags = UR_CF_ACKREQ), QUIET, SEND(UD(SEND_ONLY), 1, .len = 24), UD_TAKEN(1, 24)),
	UD_RULE("ud-lookup-again", "12.11", "A lookup that is repeated is answered again", CM(SIDR_REQ, .flags = UR_CF_AGAIN),
		EXPECT_CM(SIDR_REP), SEND(UD(SEND_ONLY), 0, .len = 20), UD_TAKEN(1, 20)),
	{.name = NULL},
};
