/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of scripts. PSNs count from the first of their direction. */
#ifndef UR_CF_RULES_H
#define UR_CF_RULES_H

#include "conform/conform_priv.h"

#define RC(op) (UR_RC | UR_OP_##op)
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
#define EXPECT_NAK(why, n, messages)                                                                                                       \
	{                                                                                                                                  \
		.kind = UR_CF_EXPECT, .opcode = RC(ACK), .psn = (n), .msn = (messages), .code = NAK(why)                                   \
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

extern const struct ur_cf_rule ur_cf_rules_psn[], ur_cf_rules_order[], ur_cf_rules_access[], ur_cf_rules_requester[],
	ur_cf_rules_unreliable[], ur_cf_rules_cm[];

#endif
