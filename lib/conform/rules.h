/* SPDX-License-Identifier: BSD-3-Clause */
/* The vocabulary of scripts. PSNs count from the first of their direction. */
#ifndef UR_CF_RULES_H
#define UR_CF_RULES_H

#include "conform/internal.h"

#define RC(op) (UR_RC | UR_OP_##op)
#define XRC(op) (UR_XRC | UR_OP_##op)
#define UC(op) (UR_UC | UR_OP_##op)
#define UD(op) (UR_UD | UR_OP_##op)

#define NAK(code) (UR_AETH_NAK << 5 | UR_NAK_##code)
#define RNR(timer) (UR_AETH_RNR << 5 | (timer))
#define ACK 0x1f

#define SEND(op, n, ...)                                                                                                                   \
	{                                                                                                                                  \
		.kind = UR_CF_SEND, .opcode = (op), .psn = (n), __VA_ARGS__                                                                \
	}
#define EXPECT(op, n, ...)                                                                                                                 \
	{                                                                                                                                  \
		.kind = UR_CF_EXPECT, .opcode = (op), .psn = (n), __VA_ARGS__                                                              \
	}
#define EXPECT_ACK(n, messages)                                                                                                            \
	{                                                                                                                                  \
		.kind = UR_CF_EXPECT, .opcode = RC(ACK), .psn = (n), .msn = (messages), .code = ACK                                        \
	}
/* The same after a gap was filled; or, of a peer that has kept the `more` messages behind it, of these as well. */
#define EXPECT_ACK_KEPT(n, messages, more)                                                                                                 \
	{                                                                                                                                  \
		.kind = UR_CF_EXPECT, .opcode = RC(ACK), .psn = (n), .msn = (messages), .code = ACK, .kept = (more)                        \
	}
#define EXPECT_NAK(why, n, messages)                                                                                                       \
	{                                                                                                                                  \
		.kind = UR_CF_EXPECT, .opcode = RC(ACK), .psn = (n), .msn = (messages), .code = NAK(why)                                   \
	}
#define EXPECT_NAK_KEPT(why, n, messages, more)                                                                                            \
	{                                                                                                                                  \
		.kind = UR_CF_EXPECT, .opcode = RC(ACK), .psn = (n), .msn = (messages), .code = NAK(why), .kept = (more)                   \
	}
#define QUIET                                                                                                                              \
	{                                                                                                                                  \
		.kind = UR_CF_QUIET                                                                                                        \
	}
#define NO_REQUEST(op)                                                                                                                     \
	{                                                                                                                                  \
		.kind = UR_CF_QUIET, .opcode = (op)                                                                                        \
	}
#define PAUSE(n)                                                                                                                           \
	{                                                                                                                                  \
		.kind = UR_CF_PAUSE, .ms = (n)                                                                                             \
	}
/* Messages of one packet, from PSN 0 on; what comes after counts PSNs and MSNs from 0 again. */
#define MANY(op, n, ...)                                                                                                                   \
	{                                                                                                                                  \
		.kind = UR_CF_BULK, .opcode = (op), .x = (n), __VA_ARGS__                                                                  \
	}
#define CM(attr, ...)                                                                                                                      \
	{                                                                                                                                  \
		.kind = UR_CF_CM, .opcode = UR_CM_##attr, __VA_ARGS__                                                                      \
	}
#define EXPECT_CM(attr, ...)                                                                                                               \
	{                                                                                                                                  \
		.kind = UR_CF_CM_EXPECT, .opcode = UR_CM_##attr, __VA_ARGS__                                                               \
	}
#define NO_CM(attr, n)                                                                                                                     \
	{                                                                                                                                  \
		.kind = UR_CF_CM_QUIET, .opcode = UR_CM_##attr, .ms = (n)                                                                  \
	}
#define END                                                                                                                                \
	{                                                                                                                                  \
		.kind = UR_CF_END                                                                                                          \
	}

/* A message that every peer takes: rping's first one, which advertises nothing. */
#define SMALL .len = UR_CF_ADVERT_LEN, .flags = UR_CF_ADVERT | UR_CF_ACKREQ
#define SMALL_QUIET .len = UR_CF_ADVERT_LEN, .flags = UR_CF_ADVERT
#define SMALL_BUT(flag) .len = UR_CF_ADVERT_LEN, .flags = UR_CF_ADVERT | UR_CF_ACKREQ | (flag)
/* One that makes the peer READ `n` bytes of ours. */
#define ADVERT(n) .len = UR_CF_ADVERT_LEN, .flags = UR_CF_ADVERT | UR_CF_ACKREQ, .dma_len = (n)

#define M UR_CF_MTU

/* A 600-byte message in the region that may be changed, and the READ of all of it. */
#define WRITE_600(n, pattern)                                                                                                              \
	SEND(RC(WRITE_FIRST), n, .region = UR_CF_RW, .dma_len = 600, .len = M, .fill = pattern),                                           \
		SEND(RC(WRITE_MIDDLE), n + 1, .len = M, .at = M, .fill = pattern),                                                         \
		SEND(RC(WRITE_LAST), n + 2, .len = 600 - 2 * M, .at = 2 * M, .fill = pattern, .flags = UR_CF_ACKREQ)
#define READ(n, length) SEND(RC(READ_REQ), n, .region = UR_CF_RW, .dma_len = length, .flags = UR_CF_ACKREQ)
#define READ_FROM(n, at_byte, length) SEND(RC(READ_REQ), n, .region = UR_CF_RW, .off = at_byte, .dma_len = length, .flags = UR_CF_ACKREQ)
#define DATA(op, n, begin, length, pattern, messages)                                                                                      \
	EXPECT(RC(op), n, .len = length, .at = begin, .fill = pattern, .msn = messages, .flags = UR_CF_PAYLOAD)
#define DATA_AGAIN(op, n, begin, length, pattern)                                                                                          \
	EXPECT(RC(op), n, .len = length, .at = begin, .fill = pattern, .flags = UR_CF_PAYLOAD | UR_CF_ANY_MSN)

/* At an offset that no other rule uses. What is there is set to 0 first, a value that does not depend on the order of bytes. */
#define ADD(n, value) SEND(RC(FETCH_ADD), n, .region = UR_CF_RW, .off = UR_CF_ATOMIC_OFF, .x = value, .flags = UR_CF_ACKREQ)
#define SWAP(n, compare, value)                                                                                                            \
	SEND(RC(CMP_SWAP), n, .region = UR_CF_RW, .off = UR_CF_ATOMIC_OFF, .x = value, .y = compare, .flags = UR_CF_ACKREQ)
#define WAS(n, value, messages) EXPECT(RC(ATOMIC_ACK), n, .code = ACK, .x = value, .msn = messages)
#define WAS_AGAIN(n, value) EXPECT(RC(ATOMIC_ACK), n, .code = ACK, .x = value, .flags = UR_CF_ANY_MSN)
#define BEGIN_ATOMIC                                                                                                                       \
	SEND(RC(WRITE_ONLY), 0, .region = UR_CF_RW, .off = UR_CF_ATOMIC_OFF, .dma_len = 8, .len = 8, .flags = UR_CF_ACKREQ | UR_CF_ZERO),  \
		EXPECT_ACK(0, 1)

/* The steps, and what is unusual about the rule. */
#define RULE(name_, clause_, what_, ...)                                                                                                   \
	{                                                                                                                                  \
		.name = name_, .clause = clause_, .what = what_, .steps = __VA_ARGS__                                                      \
	}
#define STEPS(...)                                                                                                                         \
	(const struct ur_cf_step[])                                                                                                        \
	{                                                                                                                                  \
		__VA_ARGS__, END                                                                                                           \
	}

extern const struct ur_cf_rule ur_cf_rules_psn[], ur_cf_rules_wrap[], ur_cf_rules_window[], ur_cf_rules_xrc[], ur_cf_rules_persist[],
	ur_cf_rules_order[], ur_cf_rules_access[], ur_cf_rules_requester[], ur_cf_rules_unreliable[], ur_cf_rules_cm[];

#endif
