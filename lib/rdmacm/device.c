/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices, as ids see them: one for each engine; rdma_get_devices(3). */
#include <stdlib.h>

#include "engine/fork.h"
#include "rdmacm/internal.h"
#include "verbs/verbs.h"

static struct ur_id_device *_Atomic devices[UR_DEVICES]; /* changed under UR_FORK_IDS */

/* A parent's stays as it is: its ids still point to it. */
static struct ur_id_device *current(unsigned index)
{
	struct ur_id_device *d = atomic_load_explicit(&devices[index], memory_order_acquire);

	return d && !ur_engine_foreign(d->engine) ? d : NULL;
}

static struct ur_id_device *device_new(unsigned index)
{
	struct ibv_context *ctx = ur_verbs_context(index);
	struct ibv_pd *pd = ctx ? ur_verbs_default_pd(ctx) : NULL;
	struct ur_id_device *d = pd ? calloc(1, sizeof(*d)) : NULL;

	if (!d) {
		errno = errno ? errno : ENOMEM;
		return NULL;
	}
	d->index = index;
	d->ctx = ctx;
	d->engine = ur_verbs_engine(ctx);
	d->default_pd = pd;
	ur_list_init(&d->joins);
	return d;
}

/* NULL and errno. */
static struct ur_id_device *device(unsigned index)
{
	struct ur_id_device *d = current(index), *mine;

	if (ur_likely(d != NULL))
		return d;
	mine = device_new(index);
	if (!mine)
		return NULL;
	ur_fork_lock(UR_FORK_IDS);
	d = current(index);
	if (!d) {
		ur_verbs_keep_pd(mine->default_pd); /* ids go on to use it when a program closes the context that it found in one */
		mine->parents = atomic_load(&devices[index]);
		atomic_store_explicit(&devices[index], mine, memory_order_release);
	}
	ur_fork_unlock(UR_FORK_IDS);
	if (!d)
		return mine;
	free(mine); /* another thread was first */
	return d;
}

unsigned ur_id_devices(struct ur_id_device *out[UR_DEVICES])
{
	unsigned n = 0;

	for (out[0] = device(0); out[n] && ++n < UR_DEVICES && ur_engine_next(out[n - 1]->engine);)
		out[n] = device(n);
	return n;
}

struct ur_id_device *ur_id_device_of(const struct ur_engine *e)
{
	for (unsigned i = 0; i < UR_DEVICES; i++) {
		struct ur_id_device *d = current(i);

		if (d && d->engine == e)
			return d;
	}
	return NULL;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ur_id_device *d[UR_DEVICES];
	unsigned n = ur_id_devices(d);
	struct ibv_context **list = n ? calloc(n + 1, sizeof(*list)) : NULL;

	for (unsigned i = 0; list && i < n; i++)
		list[i] = d[i]->ctx;
	if (num_devices)
		*num_devices = list ? (int)n : 0;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
