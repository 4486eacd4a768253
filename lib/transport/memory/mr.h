/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and their keys, as packets and work requests look for them. */
#ifndef UR_MR_H
#define UR_MR_H

#include "base/idtab.h"
#include "transport/state/tp_priv.h"

static inline struct ur_mr *ur_mr_find(const struct ur_tp *tp, uint32_t key)
{
	struct ur_mr *mr = ur_idtab_get(&tp->keys->table, key >> 8);

	return ur_likely(mr && mr->lkey == key) ? mr : NULL;
}

/* The bytes [va, va + len) of the MR with that key, or NULL unless all of them are there and the access is granted. */
static inline uint8_t *ur_mr_in(const struct ur_tp *tp, const struct ur_pd *pd, uint32_t key, uint64_t va, uint64_t len, int access,
				struct ur_mr **out)
{
	struct ur_mr *mr = ur_mr_find(tp, key);
	uint64_t off;

	if (ur_unlikely(!mr || mr->pd != pd || (mr->access & access) != access))
		return NULL;
	off = va - mr->iova;
	if (ur_unlikely(off > mr->length || len > mr->length - off))
		return NULL;
	*out = mr;
	return (uint8_t *)((uintptr_t)mr->addr + off); /* an on-demand region of everything begins at NULL */
}

static inline uint8_t *ur_mr_local(const struct ur_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access, struct ur_mr **out)
{
	return ur_mr_in(qp->tp, qp->pd, key, va, len, access, out);
}

/* Gives `key` a place in the table of keys, and its lkey and rkey. ENOSPC or ENOMEM otherwise. */
int ur_key_alloc(struct ur_tp *tp, enum ur_kind kind, struct ur_mr *key);
void ur_key_free(struct ur_tp *tp, enum ur_kind kind, const struct ur_mr *key);

#endif
