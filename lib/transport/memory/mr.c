/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains and memory regions. Keys are random, and stand in a table that memory windows share. The lower 8 bits of a window's
 * key may be the program's choice, so the place in the table goes by the upper 24.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "base/random.h"
#include "transport/memory/mr.h"
#include "transport/state/token.h"
#include "transport/state/tp_priv.h"

struct mr_full {
	struct ur_mr mr;
	bool retired; /* out of the table; the memory is still waited for */
};

int ur_pd_create(struct ur_tp *tp, struct ur_pd **out)
{
	int err = ur_made(tp, UR_KIND_PD);
	struct ur_pd *pd;

	if (err)
		return err;
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		ur_unmade(tp, UR_KIND_PD);
		return ENOMEM;
	}
	pd->tp = tp;
	*out = pd;
	return 0;
}

int ur_pd_destroy(struct ur_pd *pd)
{
	if (atomic_load(&pd->users))
		return EBUSY;
	ur_unmade(pd->tp, UR_KIND_PD);
	free(pd);
	return 0;
}

void ur_pd_use(struct ur_pd *pd, int n)
{
	atomic_fetch_add_explicit(&pd->users, (unsigned)n, memory_order_relaxed);
}

/* Of a key all 32 bits are random; its upper 24 are its alone. */
int ur_key_alloc(struct ur_tp *tp, enum ur_kind kind, struct ur_mr *key)
{
	int err = ur_made(tp, kind);

	if (err)
		return err;
	do {
		key->lkey = key->rkey = ur_random_u32(tp->c.random);
		err = key->lkey >> 8 ? ur_idtab_add(&tp->keys->table, key->lkey >> 8, key) : EEXIST;
	} while (err == EEXIST);
	if (err)
		ur_unmade(tp, kind);
	return err;
}

void ur_key_free(struct ur_tp *tp, enum ur_kind kind, const struct ur_mr *key)
{
	ur_idtab_free(&tp->keys->table, key->lkey >> 8);
	ur_unmade(tp, kind);
}

static int check(const struct ur_tp *tp, const struct ur_mr *mr)
{
	if ((uintptr_t)mr->addr + mr->length < (uintptr_t)mr->addr || mr->iova + mr->length < mr->iova)
		return EINVAL;
	if (mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return mr->access & IBV_ACCESS_ON_DEMAND && !tp->c.populate ? EOPNOTSUPP : 0;
}

/* Each lane shows tokens of its own. */
static void renew_tokens(const struct ur_tp *tp, uint32_t region)
{
	for (unsigned i = 0; i < tp->keys->lanes; i++)
		ur_token_renew(tp->keys->lane[i], ur_region_token_at(region));
}

static struct mr_full *make(struct ur_tp *tp, const struct ur_mr *as)
{
	struct mr_full *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->mr.pd = as->pd;
	/* A byte at NULL would look as if there were none. Nothing is ever touched at a null region's addresses. */
	f->mr.addr = as->access & UR_ACCESS_NULL ? (uint8_t *)1 : as->addr;
	f->mr.iova = as->iova;
	f->mr.length = as->length;
	f->mr.access = as->access;
	f->mr.frames.dma = as->frames.dma;
	f->mr.tp = tp;
	f->mr.number = tp->keys->regions < UINT32_MAX ? ++tp->keys->regions : 0;
	if (!ur_token_of(tp, ur_region_token_at(f->mr.number)))
		renew_tokens(tp, f->mr.number);
	return f;
}

int ur_mr_reg(struct ur_tp *tp, struct ur_pd *pd, void *addr, size_t length, uint64_t iova, int access, struct ur_mr **out)
{
	const struct ur_mr as = {.pd = pd, .addr = addr, .iova = iova, .length = length, .access = access};
	struct mr_full *f;
	int err = check(tp, &as);

	if (err)
		return err;
	f = make(tp, &as);
	if (!f)
		return ENOMEM;
	err = ur_key_alloc(tp, UR_KIND_MR, &f->mr);
	if (err) {
		free(f);
		return err;
	}
	ur_pd_use(pd, 1);
	UR_TRACE(tp->trace, MR_MADE, f->mr.rkey, iova, length, (uint32_t)access);
	*out = &f->mr;
	return 0;
}

int ur_mr_rereg(struct ur_mr *mr, const struct ur_mr *as, struct ur_mr **out)
{
	struct mr_full *f, *old = ur_container_of(mr, struct mr_full, mr);
	int err = mr->windows ? EBUSY : check(mr->tp, as);

	if (err)
		return err;
	f = make(mr->tp, as);
	if (!f)
		return ENOMEM;
	f->mr.lkey = mr->lkey;
	f->mr.rkey = mr->rkey;
	ur_idtab_replace(&mr->tp->keys->table, mr->lkey >> 8, &f->mr);
	old->retired = true;
	renew_tokens(mr->tp, mr->number);
	ur_pd_use(f->mr.pd, 1);
	UR_TRACE(mr->tp->trace, MR_GONE, mr->rkey);
	UR_TRACE(mr->tp->trace, MR_MADE, mr->rkey, f->mr.iova, f->mr.length, (uint32_t)f->mr.access);
	*out = &f->mr;
	return 0;
}

struct ur_mr *ur_mr_of(const struct ur_pd *pd, uint32_t index)
{
	struct ur_mr *mr = ur_idtab_get(&pd->tp->keys->table, index);

	return mr && mr->pd == pd ? mr : NULL;
}

int ur_mr_dereg(struct ur_mr *mr)
{
	struct mr_full *f = ur_container_of(mr, struct mr_full, mr);

	if (mr->windows)
		return EBUSY;
	/* Out of the table at the first call, so that frames which refer to it only grow fewer. */
	if (!f->retired) {
		ur_key_free(mr->tp, UR_KIND_MR, mr);
		UR_TRACE(mr->tp->trace, MR_GONE, mr->rkey);
		f->retired = true;
		renew_tokens(mr->tp, mr->number);
	}
	if (atomic_load_explicit(&mr->frames.n, memory_order_acquire))
		return EBUSY;
	ur_pd_use(mr->pd, -1);
	free(f);
	return 0;
}
