/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable connections, the responder: memory windows of type 2, which its program has bound on the QP of the connection, and SENDs that
 * invalidate them.
 */
#include "conform/rules.h"

#define WINDOW_WRITE(n, where, at_byte, length, pattern)                                                                                   \
	SEND(RC(WRITE_ONLY), n, .region = where, .off = at_byte, .dma_len = length, .len = length, .fill = pattern, .flags = UR_CF_ACKREQ)
#define WINDOW_READ(n, where, at_byte, length)                                                                                             \
	SEND(RC(READ_REQ), n, .region = where, .off = at_byte, .dma_len = length, .flags = UR_CF_ACKREQ)
#define INVALIDATE(n, where) SEND(RC(SEND_ONLY_INV), n, .region = where, SMALL)
#define REFUSED_AT(n, messages) EXPECT_NAK(REM_ACCESS, n, messages)
/* Class J leaves open what the requester hears of a key that it may not invalidate; but the QP ends. */
#define ENDS_QP                                                                                                                            \
	EXPECT(RC(ACK), 0, .code = ACK, .code2 = UR_CF_ANY, .flags = UR_CF_OR_SILENCE | UR_CF_ANY_MSN), SEND(RC(SEND_ONLY), 1, SMALL), QUIET
#define WINDOW_RULE(name_, clause_, what_, ...)                                                                                            \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .offered = true,                             \
		.serve = UR_CF_SERVE_WINDOWS                                                                                               \
	}
#define END_OF_WINDOW UR_CF_WINDOW_LEN

const struct ur_cf_rule ur_cf_rules_window[] = {
	WINDOW_RULE("window-access", "10.6.7",
		    "What a WRITE through a window has written can be read through the window and through its region",
		    WINDOW_WRITE(0, UR_CF_WINDOW, 100, 64, 10), EXPECT_ACK(0, 1), WINDOW_READ(1, UR_CF_WINDOW, 100, 64),
		    DATA(READ_RESP_ONLY, 1, 0, 64, 10, 2), READ_FROM(2, UR_CF_WINDOW_OFF + 100, 64), DATA(READ_RESP_ONLY, 2, 0, 64, 10, 3)),
	WINDOW_RULE("window-last-byte", "10.6.7", "A WRITE up to the last byte of a window is acknowledged",
		    WINDOW_WRITE(0, UR_CF_WINDOW, END_OF_WINDOW - 8, 8, 0), EXPECT_ACK(0, 1)),
	WINDOW_RULE("window-write-beyond-end", "9.7.5.2, 10.6.7",
		    "A WRITE that ends beyond its window, but within the region, is refused (remote access error)",
		    WINDOW_WRITE(0, UR_CF_WINDOW, END_OF_WINDOW - 4, 8, 0), REFUSED_AT(0, 0)),
	WINDOW_RULE("window-read-beyond-end", "9.7.5.2, 10.6.7",
		    "A READ that ends beyond its window, but within the region, is refused (remote access error)",
		    WINDOW_READ(0, UR_CF_WINDOW, END_OF_WINDOW - 4, 8), REFUSED_AT(0, 0)),
	WINDOW_RULE("window-before-begin", "9.7.5.2, 10.6.7",
		    "A WRITE that begins before its window, but within the region, is refused (remote access error)",
		    WINDOW_WRITE(0, UR_CF_WINDOW, (uint32_t)-4, 8, 0), REFUSED_AT(0, 0)),
	WINDOW_RULE("window-read-allowed", "10.6.7", "A READ through a window that may only be read returns the bytes of the region",
		    WINDOW_WRITE(0, UR_CF_WINDOW, 200, 40, 11), EXPECT_ACK(0, 1), WINDOW_READ(1, UR_CF_WINDOW_RO, 200, 40),
		    DATA(READ_RESP_ONLY, 1, 0, 40, 11, 2)),
	WINDOW_RULE("window-write-read-only", "9.7.5.2, 10.6.7",
		    "A WRITE through a window that is read-only for the peer is refused (remote access error), though its region may be "
		    "written",
		    WINDOW_WRITE(0, UR_CF_WINDOW_RO, 0, 8, 0), REFUSED_AT(0, 0)),
	WINDOW_RULE("window-atomic", "9.7.5.2, 10.6.7",
		    "An atomic through a window without that access right is refused (remote access error), though its region has it",
		    SEND(RC(FETCH_ADD), 0, .region = UR_CF_WINDOW, .x = 1, .flags = UR_CF_ACKREQ), REFUSED_AT(0, 0)),
	WINDOW_RULE("window-other-tag", "9.7.5.2, 10.6.7",
		    "A WRITE with the key of a window, but another tag, is refused (remote access error)",
		    WINDOW_WRITE(0, UR_CF_WINDOW_OTHER, 0, 8, 0), REFUSED_AT(0, 0)),
	WINDOW_RULE("invalidate-window", "9.4.1, 10.6.7",
		    "A SEND with invalidate invalidates the window: a WRITE through it is refused from then on",
		    INVALIDATE(0, UR_CF_WINDOW), EXPECT_ACK(0, 1), WINDOW_WRITE(1, UR_CF_WINDOW, 0, 8, 0), REFUSED_AT(1, 1)),
	WINDOW_RULE("invalidate-in-last", "9.4.1, 10.6.7", "A SEND of several packets invalidates with its last one, and not before",
		    SEND(RC(SEND_FIRST), 0, .len = M, .flags = UR_CF_ACKREQ), EXPECT_ACK(0, 0),
		    SEND(RC(SEND_LAST_INV), 1, .region = UR_CF_WINDOW, .len = 20, .flags = UR_CF_ACKREQ), EXPECT_ACK(1, 1),
		    WINDOW_READ(2, UR_CF_WINDOW, 0, 8), REFUSED_AT(2, 1)),
	WINDOW_RULE("invalidate-one-window", "9.4.1, 10.6.7", "Invalidating a window leaves the other one and the region as they are",
		    INVALIDATE(0, UR_CF_WINDOW_RO), EXPECT_ACK(0, 1), WINDOW_WRITE(1, UR_CF_WINDOW, 300, 40, 12), EXPECT_ACK(1, 2),
		    READ_FROM(2, UR_CF_WINDOW_OFF + 300, 40), DATA(READ_RESP_ONLY, 2, 0, 40, 12, 3)),
	WINDOW_RULE("duplicate-invalidate", "9.7.5.1", "A SEND with invalidate that is repeated is acknowledged and not executed again",
		    INVALIDATE(0, UR_CF_WINDOW), EXPECT_ACK(0, 1), INVALIDATE(0, UR_CF_WINDOW), EXPECT_ACK(0, 1),
		    SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_ACK(1, 2)),
	WINDOW_RULE("invalidate-region", "9.9.6.3", "A SEND that would invalidate a region which its owner registered ends the QP",
		    INVALIDATE(0, UR_CF_RW), ENDS_QP),
	WINDOW_RULE("invalidate-unknown-key", "9.9.6.3", "A SEND that would invalidate an R_Key that was never issued ends the QP",
		    INVALIDATE(0, UR_CF_UNKNOWN), ENDS_QP),
	WINDOW_RULE("invalidate-other-tag", "9.9.6.3", "A SEND that would invalidate a window by a key with another tag ends the QP",
		    INVALIDATE(0, UR_CF_WINDOW_OTHER), ENDS_QP),
	{.name = NULL},
};
