/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections, the responder: FLUSH and ATOMIC WRITE (annex A19). Both are answered with a READ response of no bytes. */
#include "conform/rules.h"

enum { GLOBAL = 1 };   /* placement type: visible to all */
enum { RANGE, WHOLE }; /* selectivity level: what the RETH says, or all of the region */

#define FLUSH_OF(n, level, where, at_byte, length)                                                                                         \
	SEND(RC(FLUSH), n, .region = where, .off = at_byte, .dma_len = length, .x = GLOBAL, .y = level, .flags = UR_CF_ACKREQ)
#define AWRITE(n, where, at_byte, bytes, pattern)                                                                                          \
	SEND(RC(ATOMIC_WRITE), n, .region = where, .off = at_byte, .dma_len = bytes, .len = bytes, .fill = pattern, .flags = UR_CF_ACKREQ)
#define DONE(n, messages) EXPECT(RC(READ_RESP_ONLY), n, .code = ACK, .msn = messages)
#define DONE_AGAIN(n) EXPECT(RC(READ_RESP_ONLY), n, .code = ACK, .flags = UR_CF_ANY_MSN)
#define FLUSH_RULE(name_, clause_, what_, ...)                                                                                             \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .offered = true, .serve = UR_CF_SERVE_FLUSH  \
	}
#define AWRITE_RULE(name_, clause_, what_, ...)                                                                                            \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = STEPS(__VA_ARGS__), .offered = true,                             \
		.serve = UR_CF_SERVE_ATOMIC_WRITE                                                                                          \
	}

const struct ur_cf_rule ur_cf_rules_persist[] = {
	FLUSH_RULE("flush", "A19", "A FLUSH of written data is answered with a READ response of no bytes, and increments the MSN",
		   SEND(RC(WRITE_ONLY), 0, .region = UR_CF_RW, .dma_len = 64, .len = 64, .fill = 14), FLUSH_OF(1, RANGE, UR_CF_RW, 0, 64),
		   DONE(1, 2), READ(2, 64), DATA(READ_RESP_ONLY, 2, 0, 64, 14, 3)),
	FLUSH_RULE("flush-region", "A19", "A FLUSH of a whole region is answered, whatever length it says",
		   FLUSH_OF(0, WHOLE, UR_CF_RW, 0, 0), DONE(0, 1), SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_ACK(1, 2)),
	FLUSH_RULE("duplicate-flush", "A19, 9.7.5.1", "A FLUSH that is repeated is answered again, and the next request is executed",
		   FLUSH_OF(0, RANGE, UR_CF_RW, 0, 64), DONE(0, 1), FLUSH_OF(0, RANGE, UR_CF_RW, 0, 64), DONE_AGAIN(0),
		   SEND(RC(SEND_ONLY), 1, SMALL), EXPECT_ACK(1, 2)),
	FLUSH_RULE("flush-gap-nak", "A19, 9.7.5.2", "A FLUSH beyond the expected PSN causes a NAK (PSN sequence error)",
		   FLUSH_OF(1, RANGE, UR_CF_RW, 0, 64), EXPECT_NAK(PSN_SEQ, 0, 0)),
	FLUSH_RULE("flush-unknown-key", "A19, 9.7.5.2", "A FLUSH with an R_Key that was never issued is refused (remote access error)",
		   FLUSH_OF(0, RANGE, UR_CF_UNKNOWN, 0, 64), EXPECT_NAK(REM_ACCESS, 0, 0)),
	FLUSH_RULE("flush-beyond-end", "A19, 9.7.5.2", "A FLUSH that ends beyond its region is refused (remote access error)",
		   FLUSH_OF(0, RANGE, UR_CF_RW, UR_CF_REGION_LEN - 4, 8), EXPECT_NAK(REM_ACCESS, 0, 0)),
	FLUSH_RULE("flush-without-right", "A19, 9.7.5.2", "A FLUSH of a region without that access right is refused (remote access error)",
		   FLUSH_OF(0, RANGE, UR_CF_WO, 0, 64), EXPECT_NAK(REM_ACCESS, 0, 0)),
	AWRITE_RULE("atomic-write", "A19", "An ATOMIC WRITE is answered with a READ response of no bytes, and has written all eight bytes",
		    AWRITE(0, UR_CF_RW, 16, 8, 15), DONE(0, 1), READ_FROM(1, 16, 8), DATA(READ_RESP_ONLY, 1, 0, 8, 15, 2)),
	AWRITE_RULE("duplicate-atomic-write", "A19, 9.7.5.1", "An ATOMIC WRITE that is repeated is answered and does not write again",
		    AWRITE(0, UR_CF_RW, 16, 8, 16), DONE(0, 1), AWRITE(1, UR_CF_RW, 16, 8, 17), DONE(1, 2), AWRITE(0, UR_CF_RW, 16, 8, 16),
		    DONE_AGAIN(0), READ_FROM(2, 16, 8), DATA(READ_RESP_ONLY, 2, 0, 8, 17, 3)),
	AWRITE_RULE("atomic-write-length", "A19, 9.7.4", "An ATOMIC WRITE of four bytes is an invalid request",
		    AWRITE(0, UR_CF_RW, 16, 4, 0), EXPECT_NAK(INV_REQ, 0, 0)),
	AWRITE_RULE("atomic-write-misaligned", "A19, 9.7.4",
		    "An ATOMIC WRITE at an address that is not a multiple of eight is an invalid request", AWRITE(0, UR_CF_RW, 20, 8, 0),
		    EXPECT_NAK(INV_REQ, 0, 0)),
	AWRITE_RULE("atomic-write-unknown-key", "A19, 9.7.5.2",
		    "An ATOMIC WRITE with an R_Key that was never issued is refused (remote access error)",
		    AWRITE(0, UR_CF_UNKNOWN, 16, 8, 0), EXPECT_NAK(REM_ACCESS, 0, 0)),
	AWRITE_RULE("atomic-write-read-only", "A19, 9.7.5.2",
		    "An ATOMIC WRITE to a region that is read-only for the peer is refused (remote access error)",
		    AWRITE(0, UR_CF_RO, 16, 8, 0), EXPECT_NAK(REM_ACCESS, 0, 0)),
	{.name = NULL},
};
