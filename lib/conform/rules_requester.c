/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable connections, the requester: what the peer sends and repeats when it READs memory that was advertised to it, as rping's server
 * and `uroce conform --serve` do, and then sends a message.
 */
#include "conform/rules.h"

#define TIMEOUT 14   /* 67 ms; an implementation may add its own delay */
#define RNR_TIMER 28 /* 163.84 ms */

#define ASKED(length) SEND(RC(SEND_ONLY), 0, ADVERT(length)), EXPECT(RC(READ_REQ), 0, .dma_len = length)
#define RESPONSE(n, length) SEND(RC(READ_RESP_ONLY), n, .len = length, .msn = 1, .code = ACK)
#define SAYS(n) EXPECT(RC(SEND_ONLY), n, .flags = UR_CF_ANY_LEN | UR_CF_OR_REPEAT)
#define ACKS(n) SEND(RC(ACK), n, .msn = 2, .code = ACK)
#define ASKS_AGAIN EXPECT(RC(READ_REQ), 0, .dma_len = 64)
#define READ_64(name_, clause_, what_, ...)                                                                                                \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(ASKED(64), __VA_ARGS__)                                    \
	}

const struct ur_cf_rule ur_cf_rules_requester[] = {
	READ_64("first-psn", "12.7", "The first request has the starting PSN of the REQ, and the next one the PSN after it",
		RESPONSE(0, 64), SAYS(1), ACKS(1)),
	RULE("psn-wraps", "9.7.2", "PSN 0 follows PSN 0xffffff", STEPS(ASKED(64), RESPONSE(0, 64), SAYS(1), ACKS(1)), .fixed_psn = true,
	     .their_psn = 0xffffff),
	RULE("psn-wraps-in-read", "9.7.2", "The response to a READ may wrap, and the next request has the PSN after it",
	     STEPS(ASKED(600), SEND(RC(READ_RESP_FIRST), 0, .len = M, .msn = 1, .code = ACK), SEND(RC(READ_RESP_MIDDLE), 1, .len = M),
		   SEND(RC(READ_RESP_LAST), 2, .len = 600 - 2 * M, .msn = 1, .code = ACK), SAYS(3), ACKS(3)),
	     .fixed_psn = true, .their_psn = 0xfffffe, .offered = true),
	READ_64("obeys-sequence-nak", "9.7.6", "A request is repeated after a NAK (PSN sequence error) that names it",
		SEND(RC(ACK), 0, .code = NAK(PSN_SEQ)), ASKS_AGAIN, RESPONSE(0, 64), SAYS(1), ACKS(1)),
	READ_64("obeys-rnr-nak", "9.7.5.2, 9.7.6", "A request is repeated after an RNR NAK, and not before its timer has expired",
		SEND(RC(ACK), 0, .code = RNR(RNR_TIMER)), EXPECT(RC(READ_REQ), 0, .dma_len = 64, .ms = 160), RESPONSE(0, 64), SAYS(1),
		ACKS(1)),
	RULE("repeats-read", "9.7.6", "A READ that is not answered is repeated with the same PSN",
	     STEPS(ASKED(64), ASKS_AGAIN, RESPONSE(0, 64), SAYS(1), ACKS(1)), .ack_timeout = TIMEOUT),
	RULE("repeats-send", "9.7.6", "A SEND that is not acknowledged is repeated with the same PSN",
	     STEPS(ASKED(64), RESPONSE(0, 64), SAYS(1), EXPECT(RC(SEND_ONLY), 1, .flags = UR_CF_ANY_LEN), ACKS(1)), .ack_timeout = TIMEOUT),
	RULE("repeats-no-more", "9.7.6", "A SEND that is acknowledged is not repeated",
	     STEPS(ASKED(64), RESPONSE(0, 64), SAYS(1), ACKS(1), {.kind = UR_CF_QUIET, .opcode = RC(SEND_ONLY), .ms = 400}),
	     .ack_timeout = TIMEOUT),
	READ_64("obeys-fatal-nak", "9.7.6, 9.9.2", "A request that got a NAK (remote access error) is not repeated",
		SEND(RC(ACK), 0, .code = NAK(REM_ACCESS)), NO_REQUEST(RC(READ_REQ))),
	READ_64("obeys-operational-nak", "9.7.6, 9.9.2", "A request that got a NAK (remote operational error) is not repeated",
		SEND(RC(ACK), 0, .code = NAK(REM_OP)), NO_REQUEST(RC(READ_REQ))),
	READ_64("obeys-invalid-nak", "9.7.6, 9.9.2", "A request that got a NAK (invalid request) is not repeated",
		SEND(RC(ACK), 0, .code = NAK(INV_REQ)), NO_REQUEST(RC(READ_REQ))),
	READ_64("response-wrong-icrc", "7.8.1, A17", "A response whose ICRC is wrong is ignored",
		SEND(RC(READ_RESP_ONLY), 0, .len = 64, .msn = 1, .code = ACK, .flags = UR_CF_BAD_ICRC), NO_REQUEST(RC(SEND_ONLY)),
		RESPONSE(0, 64), SAYS(1), ACKS(1)),
	READ_64("response-wrong-pkey", "9.6.1", "A response of another partition is ignored",
		SEND(RC(READ_RESP_ONLY), 0, .len = 64, .msn = 1, .code = ACK, .flags = UR_CF_BAD_PKEY), NO_REQUEST(RC(SEND_ONLY)),
		RESPONSE(0, 64), SAYS(1), ACKS(1)),
	READ_64("response-ghost", "9.7.7", "A response with a PSN that was not requested is ignored", RESPONSE(9, 64),
		NO_REQUEST(RC(SEND_ONLY)), RESPONSE(0, 64), SAYS(1), ACKS(1)),
	READ_64("ack-ghost", "9.7.7", "An ACK beyond the last PSN sent is ignored", SEND(RC(ACK), 20, .code = ACK, .msn = 5),
		NO_REQUEST(RC(SEND_ONLY)), RESPONSE(0, 64), SAYS(1), ACKS(1)),
	READ_64("ack-is-no-response", "9.7.5.1, 9.7.7", "An ACK does not complete a READ", SEND(RC(ACK), 0, .code = ACK, .msn = 1),
		NO_REQUEST(RC(SEND_ONLY))),
	READ_64("response-too-short", "9.7.5.1, 9.9.2", "A response shorter than requested does not complete a READ", RESPONSE(0, 60),
		NO_REQUEST(RC(SEND_ONLY))),
	READ_64("response-too-long", "9.7.5.1, 9.9.2", "A response longer than requested does not complete a READ", RESPONSE(0, 68),
		NO_REQUEST(RC(SEND_ONLY))),
	RULE("response-lost", "9.7.6",
	     "When a packet of a response is missing the rest does not complete the READ, which is requested again from there on",
	     STEPS(ASKED(600), SEND(RC(READ_RESP_FIRST), 0, .len = M, .msn = 1, .code = ACK),
		   SEND(RC(READ_RESP_LAST), 2, .len = 600 - 2 * M, .msn = 1, .code = ACK),
		   EXPECT(RC(READ_REQ), 1, .off = M, .flags = UR_CF_LONE_ADDRESS | UR_CF_OR_REPEAT)),
	     .offered = true, .ack_timeout = TIMEOUT),
	{.name = NULL},
};
