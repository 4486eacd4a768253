/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended reliable connections (annex A14), the responder: its QP has no receives and no protection domain; each request names a shared
 * receive queue in its XRCETH, which lends both.
 */
#include "conform/rules.h"

#define XRC_RULE(name_, clause_, what_, ...)                                                                                               \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .offered = true, .serve = UR_CF_SERVE_XRC    \
	}
#define XRC_ACK(n, messages) EXPECT(XRC(ACK), n, .msn = messages, .code = ACK)
#define XRC_NAK(why, n, messages) EXPECT(XRC(ACK), n, .msn = messages, .code = NAK(why))
#define XRC_WRITE(n, where, length, pattern)                                                                                               \
	SEND(XRC(WRITE_ONLY), n, .region = where, .dma_len = length, .len = length, .fill = pattern, .flags = UR_CF_ACKREQ)
#define XRC_READ(n, length) SEND(XRC(READ_REQ), n, .region = UR_CF_RW, .dma_len = length, .flags = UR_CF_ACKREQ)
#define XRC_DATA(n, length, pattern, messages)                                                                                             \
	EXPECT(XRC(READ_RESP_ONLY), n, .len = length, .fill = pattern, .msn = messages, .flags = UR_CF_PAYLOAD)

const struct ur_cf_rule ur_cf_rules_xrc[] = {
	XRC_RULE("xrc-send", "A14", "A SEND to a shared receive queue of the QP's XRC domain is accepted and acknowledged",
		 SEND(XRC(SEND_ONLY), 0, SMALL), XRC_ACK(0, 1), SEND(XRC(SEND_FIRST), 1, .len = M), SEND(XRC(SEND_MIDDLE), 2, .len = M),
		 SEND(XRC(SEND_LAST), 3, .len = 7, .flags = UR_CF_ACKREQ), XRC_ACK(3, 2)),
	XRC_RULE("xrc-write-read", "A14", "A READ returns what a WRITE has written", XRC_WRITE(0, UR_CF_RW, 80, 13), XRC_ACK(0, 1),
		 XRC_READ(1, 80), XRC_DATA(1, 80, 13, 2)),
	XRC_RULE("xrc-atomic", "A14, 9.4.5", "FETCH_ADD returns the previous value, and adds",
		 SEND(XRC(WRITE_ONLY), 0, .region = UR_CF_RW, .off = UR_CF_ATOMIC_OFF, .dma_len = 8, .len = 8,
		      .flags = UR_CF_ACKREQ | UR_CF_ZERO),
		 XRC_ACK(0, 1), SEND(XRC(FETCH_ADD), 1, .region = UR_CF_RW, .off = UR_CF_ATOMIC_OFF, .x = 5, .flags = UR_CF_ACKREQ),
		 EXPECT(XRC(ATOMIC_ACK), 1, .code = ACK, .x = 0, .msn = 2),
		 SEND(XRC(FETCH_ADD), 2, .region = UR_CF_RW, .off = UR_CF_ATOMIC_OFF, .flags = UR_CF_ACKREQ),
		 EXPECT(XRC(ATOMIC_ACK), 2, .code = ACK, .x = 5, .msn = 3)),
	XRC_RULE("xrc-unknown-srq", "A14", "A SEND to a shared receive queue that does not exist is an invalid request",
		 SEND(XRC(SEND_ONLY), 0, SMALL, .srq = UR_CF_SRQ_UNKNOWN), XRC_NAK(INV_REQ, 0, 0)),
	XRC_RULE("xrc-foreign-srq", "A14", "A SEND to a shared receive queue of another XRC domain is an invalid request",
		 SEND(XRC(SEND_ONLY), 0, SMALL, .srq = UR_CF_SRQ_FOREIGN), XRC_NAK(INV_REQ, 0, 0)),
	XRC_RULE("xrc-write-foreign-srq", "A14", "A WRITE that names a shared receive queue of another XRC domain is an invalid request",
		 SEND(XRC(WRITE_ONLY), 0, .region = UR_CF_RW, .dma_len = 8, .len = 8, .flags = UR_CF_ACKREQ, .srq = UR_CF_SRQ_FOREIGN),
		 XRC_NAK(INV_REQ, 0, 0)),
	XRC_RULE("xrc-unknown-key", "A14, 9.7.5.2", "A WRITE with an R_Key that was never issued is refused (remote access error)",
		 XRC_WRITE(0, UR_CF_UNKNOWN, 8, 0), XRC_NAK(REM_ACCESS, 0, 0)),
	XRC_RULE("xrc-gap-nak", "A14, 9.7.5.2", "A packet beyond the expected PSN causes a NAK (PSN sequence error) with the expected one",
		 SEND(XRC(SEND_ONLY), 1, SMALL), XRC_NAK(PSN_SEQ, 0, 0), SEND(XRC(SEND_ONLY), 0, SMALL),
		 EXPECT(XRC(ACK), 0, .msn = 1, .code = ACK, .kept = 1)),
	XRC_RULE("xrc-duplicate-send", "A14, 9.7.5.1", "A SEND that is repeated is acknowledged again and not executed again",
		 SEND(XRC(SEND_ONLY), 0, SMALL), XRC_ACK(0, 1), SEND(XRC(SEND_ONLY), 0, SMALL), XRC_ACK(0, 1)),
	XRC_RULE("xrc-last-without-first", "A14, 9.7.4", "A SEND LAST that continues nothing is an invalid request",
		 SEND(XRC(SEND_LAST), 0, .len = 16, .flags = UR_CF_ACKREQ), XRC_NAK(INV_REQ, 0, 0)),
	XRC_RULE("xrc-rc-opcode", "9.6.1, A14", "A packet of another service, reliable connections, is silently dropped",
		 SEND(RC(SEND_ONLY), 0, SMALL), QUIET, SEND(XRC(SEND_ONLY), 0, SMALL), XRC_ACK(0, 1)),
	{.name = NULL},
};
