/* SPDX-License-Identifier: BSD-3-Clause */
/* Tokens of bulk packets (wire/bulk.h): what a process shows of its own. */
#ifndef UR_TRANSPORT_TOKEN_H
#define UR_TRANSPORT_TOKEN_H

#include "base/random.h"
#include "transport/state/tp_priv.h"
#include "wire/bulk.h"

static inline uint32_t ur_qp_token_at(const struct ur_qp *qp)
{
	return qp->qpn % UR_TOKENS_HALF;
}

static inline uint64_t ur_token_of(const struct ur_tp *tp, uint32_t at)
{
	return atomic_load_explicit(&tp->tokens[at], memory_order_relaxed);
}

/*
 * Another value, before anything else is done with the memory that it stood for: what the process stores there from now on, nobody sees who
 * does not see the new value afterwards.
 */
static inline void ur_token_renew(struct ur_tp *tp, uint32_t at)
{
	const uint64_t fresh = ur_random_u64(tp->c.random);

	atomic_store_explicit(&tp->tokens[at], fresh ? fresh : 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

#endif
