/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections, the responder: keys, bounds, rights, and atomics. */
#include "conform/rules.h"

#define WRITE_AT(where, at_byte, length)                                                                                                   \
	SEND(RC(WRITE_ONLY), 0, .region = where, .off = at_byte, .dma_len = length, .len = length, .flags = UR_CF_ACKREQ)
#define READ_AT(where, at_byte, length) SEND(RC(READ_REQ), 0, .region = where, .off = at_byte, .dma_len = length, .flags = UR_CF_ACKREQ)
#define REFUSED(name_, what_, ...)                                                                                                         \
	{                                                                                                                                  \
		.name = name_, .clause = "9.7.5.2, 10.6", .what = what_, .steps = STEPS(__VA_ARGS__, EXPECT_NAK(REM_ACCESS, 0, 0)),        \
		.offered = true                                                                                                            \
	}

#define ATOMIC(name_, what_, ...)                                                                                                          \
	{                                                                                                                                  \
		.name = name_, .clause = "9.4.5, 9.7.5.1", .what = what_, .steps = STEPS(BEGIN_ATOMIC, __VA_ARGS__), .offered = true       \
	}

const struct ur_cf_rule ur_cf_rules_access[] = {
	RULE("write-unknown-key", "9.7.5.2, 10.6", "A WRITE with an R_Key that was never issued is refused (remote access error)",
	     STEPS(WRITE_AT(UR_CF_UNKNOWN, 0, 8), EXPECT_NAK(REM_ACCESS, 0, 0))),
	RULE("read-unknown-key", "9.7.5.2, 10.6", "A READ with an R_Key that was never issued is refused (remote access error)",
	     STEPS(READ_AT(UR_CF_UNKNOWN, 0, 8), EXPECT_NAK(REM_ACCESS, 0, 0))),
	RULE("atomic-unknown-key", "9.7.5.2, 10.6", "An atomic with an R_Key that was never issued is refused (remote access error)",
	     STEPS(SEND(RC(FETCH_ADD), 0, .region = UR_CF_UNKNOWN, .x = 1, .flags = UR_CF_ACKREQ), EXPECT_NAK(REM_ACCESS, 0, 0))),
	RULE("access-error-ends-qp", "9.9.3", "After a remote access error the QP accepts nothing more: what follows is silently dropped",
	     STEPS(WRITE_AT(UR_CF_UNKNOWN, 0, 8), EXPECT_NAK(REM_ACCESS, 0, 0), SEND(RC(SEND_ONLY), 0, SMALL), QUIET)),
	REFUSED("write-old-key", "A WRITE with the key of a region that is deregistered is refused (remote access error)",
		WRITE_AT(UR_CF_GONE, 0, 8)),
	REFUSED("read-old-key", "A READ with the key of a region that is deregistered is refused (remote access error)",
		READ_AT(UR_CF_GONE, 0, 8)),
	REFUSED("write-beyond-end", "A WRITE that ends beyond its region is refused (remote access error)",
		WRITE_AT(UR_CF_RW, UR_CF_REGION_LEN - 4, 8)),
	REFUSED("read-beyond-end", "A READ that ends beyond its region is refused (remote access error)",
		READ_AT(UR_CF_RW, UR_CF_REGION_LEN - 4, 8)),
	REFUSED("write-before-begin", "A WRITE that begins before its region is refused (remote access error)",
		WRITE_AT(UR_CF_RW, (uint32_t)-4, 8)),
	REFUSED("read-long-beyond-end",
		"A READ whose first packets lie in its region and the last one beyond is refused (remote access error)",
		READ_AT(UR_CF_RW, UR_CF_REGION_LEN - 512, 600)),
	REFUSED("write-read-only", "A WRITE to a region that is read-only for the peer is refused (remote access error)",
		WRITE_AT(UR_CF_RO, 0, 8)),
	REFUSED("read-write-only", "A READ of a region that may only be written is refused (remote access error)", READ_AT(UR_CF_WO, 0, 8)),
	REFUSED("write-local-only", "A WRITE to a region without remote rights is refused (remote access error)",
		WRITE_AT(UR_CF_LOCAL, 0, 8)),
	REFUSED("read-local-only", "A READ of a region without remote rights is refused (remote access error)", READ_AT(UR_CF_LOCAL, 0, 8)),
	REFUSED("atomic-read-only", "An atomic on a region without that access right is refused (remote access error)",
		SEND(RC(FETCH_ADD), 0, .region = UR_CF_RO, .x = 1, .flags = UR_CF_ACKREQ)),
	RULE("read-allowed", "9.7.5.1", "A READ of a region that may only be read returns its bytes",
	     STEPS(SEND(RC(READ_REQ), 0, .region = UR_CF_RO, .off = 100, .dma_len = 77, .flags = UR_CF_ACKREQ),
		   EXPECT(RC(READ_RESP_ONLY), 0, .len = 77, .at = 100, .msn = 1, .flags = UR_CF_PAYLOAD)),
	     .offered = true),
	RULE("write-allowed", "9.7.4", "A WRITE up to the last byte of a region that may be written is acknowledged",
	     STEPS(WRITE_AT(UR_CF_WO, UR_CF_REGION_LEN - 8, 8), EXPECT_ACK(0, 1)), .offered = true),
	ATOMIC("fetch-add", "FETCH_ADD returns the previous value, and adds", ADD(1, 5), WAS(1, 0, 2), ADD(2, 7), WAS(2, 5, 3), ADD(3, 0),
	       WAS(3, 12, 4)),
	ATOMIC("compare-swap", "CMP_SWAP returns the previous value, and swaps only if it equals the compare value", SWAP(1, 1, 9),
	       WAS(1, 0, 2), SWAP(2, 0, 8), WAS(2, 0, 3), ADD(3, 0), WAS(3, 8, 4)),
	ATOMIC("fetch-add-wraps", "FETCH_ADD wraps modulo 2^64", ADD(1, UINT64_MAX), WAS(1, 0, 2), ADD(2, 3), WAS(2, UINT64_MAX, 3),
	       ADD(3, 0), WAS(3, 2, 4)),
	ATOMIC("duplicate-atomic", "An atomic that is repeated returns the same value and is not executed again", ADD(1, 5), WAS(1, 0, 2),
	       ADD(1, 5), WAS_AGAIN(1, 0), ADD(2, 0), WAS(2, 5, 3)),
	ATOMIC("duplicate-old-atomic", "Atomics that are repeated after others return their own values", ADD(1, 5), WAS(1, 0, 2), ADD(2, 6),
	       WAS(2, 5, 3), ADD(3, 7), WAS(3, 11, 4), ADD(1, 5), WAS_AGAIN(1, 0), ADD(2, 6), WAS_AGAIN(2, 5), ADD(4, 0), WAS(4, 18, 5)),
	{.name = NULL},
};
