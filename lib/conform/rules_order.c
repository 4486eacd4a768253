/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections, the responder: order of opcodes, lengths, and the path MTU. What is wrong causes a NAK (invalid request). */
#include "conform/rules.h"

#define FIRST SEND(RC(SEND_FIRST), 0, .len = M)
#define WFIRST(length) SEND(RC(WRITE_FIRST), 0, .region = UR_CF_RW, .dma_len = (length), .len = M)
#define INVALID(n, messages) EXPECT(RC(ACK), n, .code = NAK(INV_REQ), .msn = messages)

#define REFUSED(name_, what_, ...)                                                                                                         \
	{                                                                                                                                  \
		.name = name_, .clause = "9.7.4, 9.7.5.2", .what = what_, .steps = STEPS(__VA_ARGS__)                                      \
	}
#define REFUSED_OFFERED(name_, what_, ...)                                                                                                 \
	{                                                                                                                                  \
		.name = name_, .clause = "9.7.4, 9.7.5.2", .what = what_, .steps = STEPS(__VA_ARGS__), .offered = true                     \
	}

const struct ur_cf_rule ur_cf_rules_order[] = {
	REFUSED("middle-without-first", "A SEND MIDDLE that continues nothing is an invalid request",
		SEND(RC(SEND_MIDDLE), 0, .len = M, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED("last-without-first", "A SEND LAST that continues nothing is an invalid request",
		SEND(RC(SEND_LAST), 0, .len = 16, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED("write-middle-without-first", "A WRITE MIDDLE that continues nothing is an invalid request",
		SEND(RC(WRITE_MIDDLE), 0, .len = M, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED("write-last-without-first", "A WRITE LAST that continues nothing is an invalid request",
		SEND(RC(WRITE_LAST), 0, .len = 16, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED_OFFERED("only-within-send", "A SEND ONLY in the middle of a SEND is an invalid request", FIRST,
			SEND(RC(SEND_ONLY), 1, SMALL), INVALID(1, 0)),
	REFUSED_OFFERED("first-within-send", "A SEND FIRST in the middle of a SEND is an invalid request", FIRST,
			SEND(RC(SEND_FIRST), 1, .len = M, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("write-within-send", "A WRITE LAST in the middle of a SEND is an invalid request", FIRST,
			SEND(RC(WRITE_LAST), 1, .len = 8, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("send-within-write", "A SEND LAST in the middle of a WRITE is an invalid request", WFIRST(2 * M),
			SEND(RC(SEND_LAST), 1, .len = M, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("read-within-send", "A READ in the middle of a SEND is an invalid request", FIRST,
			SEND(RC(READ_REQ), 1, .region = UR_CF_RW, .dma_len = 8, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("atomic-within-write", "An atomic in the middle of a WRITE is an invalid request", WFIRST(2 * M),
			SEND(RC(FETCH_ADD), 1, .region = UR_CF_RW, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	RULE("invalid-ends-qp", "9.9.3", "After an invalid request the QP accepts nothing more: what follows is silently dropped",
	     STEPS(SEND(RC(SEND_LAST), 0, .len = 16, .flags = UR_CF_ACKREQ), INVALID(0, 0), SEND(RC(SEND_ONLY), 0, SMALL), QUIET)),
	RULE("reserved-opcode", "9.2.1, 9.7.4", "A reserved opcode of the service is an invalid request, or is dropped; it is not executed",
	     STEPS(SEND(UR_RC | 0x1f, 0, .flags = UR_CF_ACKREQ), EXPECT(RC(ACK), 0, .code = NAK(INV_REQ), .flags = UR_CF_OR_SILENCE))),
	REFUSED("only-above-mtu", "A SEND ONLY of more than the path MTU is an invalid request",
		SEND(RC(SEND_ONLY), 0, .len = M + 4, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED_OFFERED("first-below-mtu", "A SEND FIRST of less than the path MTU is an invalid request",
			SEND(RC(SEND_FIRST), 0, .len = M - 4, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED_OFFERED("middle-below-mtu", "A SEND MIDDLE of less than the path MTU is an invalid request", FIRST,
			SEND(RC(SEND_MIDDLE), 1, .len = M - 4, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("last-empty", "A SEND LAST without payload is an invalid request", FIRST,
			SEND(RC(SEND_LAST), 1, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("last-above-mtu", "A SEND LAST of more than the path MTU is an invalid request", FIRST,
			SEND(RC(SEND_LAST), 1, .len = M + 4, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	RULE("pad-above-payload", "9.2.1",
	     "A pad count beyond the payload is an invalid request, or the packet is dropped; it is not executed",
	     STEPS(SEND(RC(SEND_ONLY), 0, .flags = UR_CF_BAD_PAD | UR_CF_ACKREQ),
		   EXPECT(RC(ACK), 0, .code = NAK(INV_REQ), .flags = UR_CF_OR_SILENCE))),
	RULE("send-above-receive", "9.7.4", "A SEND that is longer than the posted receive is an invalid request",
	     STEPS(FIRST, SEND(RC(SEND_MIDDLE), 1, .len = M), SEND(RC(SEND_MIDDLE), 2, .len = M), SEND(RC(SEND_MIDDLE), 3, .len = M),
		   SEND(RC(SEND_MIDDLE), 4, .len = M), SEND(RC(SEND_MIDDLE), 5, .len = M), SEND(RC(SEND_MIDDLE), 6, .len = M),
		   SEND(RC(SEND_MIDDLE), 7, .len = M), SEND(RC(SEND_LAST), 8, .len = 4, .flags = UR_CF_ACKREQ),
		   EXPECT(RC(ACK), 8, .code = NAK(INV_REQ), .flags = UR_CF_ANY_PSN))),
	REFUSED_OFFERED("write-above-reth", "A WRITE ONLY with more payload than its RETH says is an invalid request",
			SEND(RC(WRITE_ONLY), 0, .region = UR_CF_RW, .dma_len = 32, .len = 64, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED_OFFERED("write-below-reth", "A WRITE ONLY with less payload than its RETH says is an invalid request",
			SEND(RC(WRITE_ONLY), 0, .region = UR_CF_RW, .dma_len = 64, .len = 32, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	REFUSED_OFFERED("write-last-above-reth", "A WRITE of several packets with more payload than its RETH says is an invalid request",
			WFIRST(M + 8), SEND(RC(WRITE_LAST), 1, .len = 16, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	REFUSED_OFFERED("write-last-below-reth", "A WRITE of several packets with less payload than its RETH says is an invalid request",
			WFIRST(M + 16), SEND(RC(WRITE_LAST), 1, .len = 8, .flags = UR_CF_ACKREQ), INVALID(1, 0)),
	RULE("read-above-2-gib", "9.7.4", "A READ of more than 2^31 bytes is refused",
	     STEPS(SEND(RC(READ_REQ), 0, .region = UR_CF_RW, .flags = UR_CF_ACKREQ | UR_CF_HUGE),
		   EXPECT(RC(ACK), 0, .code = NAK(INV_REQ), .code2 = NAK(REM_ACCESS)))),
	REFUSED_OFFERED("atomic-misaligned", "An atomic at an address that is not a multiple of eight is an invalid request",
			SEND(RC(FETCH_ADD), 0, .region = UR_CF_RW, .off = 4, .x = 1, .flags = UR_CF_ACKREQ), INVALID(0, 0)),
	{.name = NULL},
};
