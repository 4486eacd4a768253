/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains and memory regions. A key is an index into a table, which memory windows share, and a generation, so that a stale key
 * does not fit a new MR.
 */
#include <errno.h>
#include <stdlib.h>

#include "transport/tp_priv.h"

struct mr_full {
	struct ur_mr mr;
	bool retired; /* out of the table; the memory is still waited for */
};

int ur_pd_create(struct ur_tp *tp, struct ur_pd **out)
{
	struct ur_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return ENOMEM;
	pd->tp = tp;
	*out = pd;
	return 0;
}

int ur_pd_destroy(struct ur_pd *pd)
{
	if (pd->users)
		return EBUSY;
	free(pd);
	return 0;
}

void ur_pd_use(struct ur_pd *pd, int n)
{
	pd->users += (unsigned)n;
}

/* Generations start at random numbers, so that a key of an earlier process is unlikely to fit. */
static int grow_generations(struct ur_tp *tp)
{
	uint8_t *g;

	if (tp->mr_gen_size >= tp->mrs.size)
		return 0;
	g = realloc(tp->mr_gen, tp->mrs.size);
	if (!g)
		return ENOMEM;
	for (uint32_t i = tp->mr_gen_size; i < tp->mrs.size; i++)
		g[i] = (uint8_t)ur_rng_u32(&tp->rng);
	tp->mr_gen = g;
	tp->mr_gen_size = tp->mrs.size;
	return 0;
}

int ur_key_alloc(struct ur_tp *tp, struct ur_mr *key)
{
	uint32_t id;
	int err = ur_idtab_alloc(&tp->mrs, key, &id);

	if (err)
		return err;
	err = grow_generations(tp);
	if (err) {
		ur_idtab_free(&tp->mrs, id);
		return err;
	}
	key->lkey = key->rkey = id << 8 | tp->mr_gen[id]++;
	return 0;
}

static int check(const struct ur_tp *tp, const struct ur_mr *mr)
{
	if ((uintptr_t)mr->addr + mr->length < (uintptr_t)mr->addr || mr->iova + mr->length < mr->iova)
		return EINVAL;
	if (mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return mr->access & IBV_ACCESS_ON_DEMAND && !tp->c.reach ? EOPNOTSUPP : 0;
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
	f->mr.tp = tp;
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
	err = ur_key_alloc(tp, &f->mr);
	if (err) {
		free(f);
		return err;
	}
	pd->users++;
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
	ur_idtab_replace(&mr->tp->mrs, mr->lkey >> 8, &f->mr);
	old->retired = true;
	f->mr.pd->users++;
	*out = &f->mr;
	return 0;
}

struct ur_mr *ur_mr_of(const struct ur_pd *pd, uint32_t index)
{
	struct ur_mr *mr = ur_idtab_get(&pd->tp->mrs, index);

	return mr && mr->pd == pd ? mr : NULL;
}

int ur_mr_dereg(struct ur_mr *mr)
{
	struct mr_full *f = ur_container_of(mr, struct mr_full, mr);

	if (mr->windows)
		return EBUSY;
	/* Out of the table at the first call, so that frames which refer to it only grow fewer. */
	if (!f->retired) {
		ur_idtab_free(&mr->tp->mrs, mr->lkey >> 8);
		f->retired = true;
	}
	if (atomic_load_explicit(&mr->frames.n, memory_order_acquire))
		return EBUSY;
	mr->pd->users--;
	free(f);
	return 0;
}
