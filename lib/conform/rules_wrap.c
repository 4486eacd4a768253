/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable connections, the responder: PSNs that wrap. The PSN of a requester's first request is the other side's choice (the REP says
 * it), so the peer's program has to give its QP the one that a rule needs, which UR_CF_SERVE_PSN asks for.
 */
#include "conform/rules.h"

#define WRAPS(first, name_, clause_, what_, ...)                                                                                           \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .offered = true, .serve = UR_CF_SERVE_PSN,   \
		.our_psn = first                                                                                                           \
	}

/* A WRITE of no bytes, for which the peer needs neither a receive nor memory. */
#define NOTHING(n) SEND(RC(WRITE_ONLY), n, .region = UR_CF_UNKNOWN, .flags = UR_CF_ACKREQ)

const struct ur_cf_rule ur_cf_rules_wrap[] = {
	WRAPS(0xfffffe, "wrap-send", "9.7.2", "After PSN 0xffffff the responder expects PSN 0", SEND(RC(SEND_ONLY), 0, SMALL),
	      EXPECT_ACK(0, 1), SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_ACK(1, 2), SEND(RC(SEND_ONLY), 2, SMALL), EXPECT_ACK(2, 3),
	      SEND(RC(SEND_ONLY), 3, SMALL), EXPECT_ACK(3, 4)),
	WRAPS(0xfffffe, "wrap-ack-covers", "9.7.5.1.2", "An ACK after the wrap covers the messages before it",
	      SEND(RC(SEND_ONLY), 0, SMALL_QUIET), SEND(RC(SEND_ONLY), 1, SMALL_QUIET), SEND(RC(SEND_ONLY), 2, SMALL_QUIET),
	      SEND(RC(SEND_ONLY), 3, SMALL), EXPECT_ACK(3, 4)),
	WRAPS(0xfffffe, "wrap-in-send", "9.7.2", "A SEND of several packets may wrap", SEND(RC(SEND_FIRST), 0, .len = M),
	      SEND(RC(SEND_MIDDLE), 1, .len = M), SEND(RC(SEND_LAST), 2, .len = 7, .flags = UR_CF_ACKREQ), EXPECT_ACK(2, 1),
	      SEND(RC(SEND_ONLY), 3, SMALL), EXPECT_ACK(3, 2)),
	WRAPS(0xfffffe, "wrap-in-write", "9.7.2", "A WRITE of several packets may wrap, and all of it is written", WRITE_600(0, 6),
	      EXPECT_ACK(2, 1), READ(3, 600), DATA(READ_RESP_FIRST, 3, 0, M, 6, 2), DATA(READ_RESP_MIDDLE, 4, M, M, 6, 0),
	      DATA(READ_RESP_LAST, 5, 2 * M, 600 - 2 * M, 6, 2)),
	WRAPS(0xfffffb, "wrap-in-read", "9.7.2, 9.7.5.1.3", "The response to a READ may wrap, and the next request has the PSN after it",
	      WRITE_600(0, 7), EXPECT_ACK(2, 1), READ(3, 600), DATA(READ_RESP_FIRST, 3, 0, M, 7, 2), DATA(READ_RESP_MIDDLE, 4, M, M, 7, 0),
	      DATA(READ_RESP_LAST, 5, 2 * M, 600 - 2 * M, 7, 2), SEND(RC(SEND_ONLY), 6, SMALL), EXPECT_ACK(6, 3)),
	WRAPS(0xffffff, "wrap-gap-nak", "9.7.5.2", "PSN 0 where 0xffffff is expected is a gap, and so is PSN 2 where 0 or 1 is expected",
	      SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_NAK(PSN_SEQ, 0, 0), SEND(RC(SEND_ONLY), 0, SMALL), EXPECT_ACK_KEPT(0, 1, 1),
	      SEND(RC(SEND_ONLY), 3, SMALL), EXPECT_NAK_KEPT(PSN_SEQ, 1, 1, 1), SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_ACK(1, 2)),
	WRAPS(0xfffffe, "wrap-duplicate-send", "9.7.5.1", "A SEND from before the wrap that is repeated after it is not executed again",
	      SEND(RC(SEND_ONLY), 0, SMALL), EXPECT_ACK(0, 1), SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_ACK(1, 2),
	      SEND(RC(SEND_ONLY), 2, SMALL), EXPECT_ACK(2, 3), SEND(RC(SEND_ONLY), 0, SMALL),
	      EXPECT(RC(ACK), 2, .msn = 3, .code = ACK, .flags = UR_CF_ANY_PSN), SEND(RC(SEND_ONLY), 3, SMALL), EXPECT_ACK(3, 4)),
	WRAPS(0xffffff, "wrap-duplicate-write", "9.7.5.1", "A WRITE from before the wrap that is repeated does not change memory again",
	      SEND(RC(WRITE_ONLY), 0, .region = UR_CF_RW, .dma_len = 64, .len = 64, .fill = 1, .flags = UR_CF_ACKREQ), EXPECT_ACK(0, 1),
	      SEND(RC(WRITE_ONLY), 1, .region = UR_CF_RW, .dma_len = 64, .len = 64, .fill = 2, .flags = UR_CF_ACKREQ), EXPECT_ACK(1, 2),
	      SEND(RC(WRITE_ONLY), 0, .region = UR_CF_RW, .dma_len = 64, .len = 64, .fill = 1, .flags = UR_CF_ACKREQ),
	      EXPECT(RC(ACK), 1, .msn = 2, .code = ACK, .flags = UR_CF_ANY_PSN), READ(2, 64), DATA(READ_RESP_ONLY, 2, 0, 64, 2, 3)),
	WRAPS(0xfffffb, "wrap-duplicate-read", "9.7.5.1.4", "A READ whose response wraps and which is repeated is answered again",
	      WRITE_600(0, 8), EXPECT_ACK(2, 1), READ(3, 600), DATA(READ_RESP_FIRST, 3, 0, M, 8, 2), DATA(READ_RESP_MIDDLE, 4, M, M, 8, 0),
	      DATA(READ_RESP_LAST, 5, 2 * M, 600 - 2 * M, 8, 2), READ(3, 600), DATA_AGAIN(READ_RESP_FIRST, 3, 0, M, 8),
	      DATA_AGAIN(READ_RESP_MIDDLE, 4, M, M, 8), DATA_AGAIN(READ_RESP_LAST, 5, 2 * M, 600 - 2 * M, 8), SEND(RC(SEND_ONLY), 6, SMALL),
	      EXPECT_ACK(6, 3)),
	WRAPS(0xfffffb, "wrap-duplicate-read-part", "9.7.5.1.4",
	      "Of a READ whose response wraps the part after the wrap may be requested again", WRITE_600(0, 9), EXPECT_ACK(2, 1),
	      READ(3, 600), DATA(READ_RESP_FIRST, 3, 0, M, 9, 2), DATA(READ_RESP_MIDDLE, 4, M, M, 9, 0),
	      DATA(READ_RESP_LAST, 5, 2 * M, 600 - 2 * M, 9, 2), READ_FROM(5, 2 * M, 600 - 2 * M),
	      DATA_AGAIN(READ_RESP_ONLY, 5, 2 * M, 600 - 2 * M, 9), SEND(RC(SEND_ONLY), 6, SMALL), EXPECT_ACK(6, 3)),
	WRAPS(0xfffffe, "wrap-duplicate-atomic", "9.4.5, 9.7.5.1",
	      "Atomics on both sides of the wrap that are repeated return their own values", BEGIN_ATOMIC, ADD(1, 5), WAS(1, 0, 2),
	      ADD(2, 6), WAS(2, 5, 3), ADD(1, 5), WAS_AGAIN(1, 0), ADD(2, 6), WAS_AGAIN(2, 5), ADD(3, 0), WAS(3, 11, 4)),
	RULE("msn-wraps", "9.7.7, 9.7.2", "After 2^24 messages the MSN is 0, and PSNs have wrapped on the way",
	     STEPS(MANY(RC(WRITE_ONLY), 0xfffffe, .region = UR_CF_UNKNOWN), NOTHING(0), EXPECT_ACK(0, 1), NOTHING(1), EXPECT_ACK(1, 2),
		   NOTHING(2), EXPECT_ACK(2, 3)),
	     .lengthy = true),
	{.name = NULL},
};
