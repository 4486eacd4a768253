/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues (IBTA volume 1, 10.2.9): a ring that the application fills and the NIC empties for many QPs. Several QPs have
 * messages in flight at the same time and finish in any order, so a WQE is copied when it is taken, and its slot is free at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "transport/queues/cq.h"
#include "transport/queues/rwqe.h"
#include "transport/queues/srq.h"
#include "transport/queues/xrc.h"
#include "transport/state/qp_priv.h"
#include "transport/state/ring.h"
#include "transport/state/srq_priv.h"
#include "transport/state/tp_priv.h"

/* --- life --- */

static int check(const struct ur_srq_init *i)
{
	if (!i->pd || !i->attr.max_wr || i->attr.max_wr > UR_MAX_SRQ_WR || i->attr.max_sge > UR_MAX_SGE)
		return EINVAL;
	return !i->xrcd == !i->cq ? 0 : EINVAL;
}

static void use_objects(struct ur_srq *srq, int n)
{
	ur_pd_use(srq->pd, n);
	if (!srq->xrcd)
		return;
	ur_xrcd_use(srq->xrcd, n);
	ur_cq_use(srq->cq, n);
}

int ur_srq_create(struct ur_tp *tp, struct ur_srq_init *init, struct ur_srq **out)
{
	struct ibv_srq_attr a = init->attr;
	struct ur_srq *srq;
	int err = check(init);

	if (err)
		return err;
	srq = aligned_alloc(64, sizeof(*srq));
	if (!srq)
		return ENOMEM;
	memset(srq, 0, sizeof(*srq));
	a.max_sge = a.max_sge ? a.max_sge : 1;
	a.srq_limit = 0;
	err = ur_ring_init(&srq->ring, a.max_wr, ur_recv_stride(a.max_sge), a.max_sge);
	if (!err)
		err = ur_tp_number(tp, &tp->srqs, &tp->srqns, srq, &srq->num);
	if (err) {
		ur_ring_free(&srq->ring);
		free(srq);
		return err;
	}
	srq->tp = tp;
	srq->pd = init->pd;
	srq->xrcd = init->xrcd;
	srq->cq = init->cq;
	srq->context = init->context;
	srq->event = init->event;
	use_objects(srq, 1);
	init->attr = a;
	*out = srq;
	return 0;
}

int ur_srq_destroy(struct ur_srq *srq)
{
	if (atomic_load(&srq->users))
		return EBUSY;
	if (srq->xrcd)
		ur_xrc_forget(srq);
	ur_idtab_free(&srq->tp->srqs, srq->num);
	use_objects(srq, -1);
	ur_ring_free(&srq->ring);
	free(srq);
	return 0;
}

size_t ur_srq_ring_bytes(const struct ur_srq *srq)
{
	return ur_ring_bytes(&srq->ring);
}

void ur_srq_lend(struct ur_srq *srq, void *mem)
{
	ur_ring_lend(&srq->ring, mem);
}

uint32_t ur_srq_num(const struct ur_srq *srq)
{
	return srq->num;
}

void *ur_srq_context(const struct ur_srq *srq)
{
	return srq->context;
}

static void raise_event(struct ur_srq *srq, enum ibv_event_type ev)
{
	if (srq->event)
		srq->event(srq, ev);
}

void ur_srq_fail(struct ur_srq *srq)
{
	if (!atomic_exchange_explicit(&srq->failed, true, memory_order_relaxed))
		raise_event(srq, IBV_EVENT_SRQ_ERR);
}

/* --- the application's side --- */

int ur_srq_post(struct ur_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct ur_ring *r = &srq->ring;
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed), from = tail;
	int err = atomic_load_explicit(&srq->failed, memory_order_relaxed) ? EINVAL : 0;

	for (; wr && !err; wr = err ? wr : wr->next) {
		err = ur_ring_full(r, tail) ? ENOMEM : ur_recv_write(ur_ring_at(r, tail), wr, r->max_sge);
		tail += !err;
	}
	if (tail != from)
		atomic_store_explicit(&r->tail, tail, memory_order_release);
	if (err && bad)
		*bad = wr;
	return err;
}

/* --- the NIC's side --- */

static uint32_t posted(struct ur_srq *srq)
{
	srq->tail = atomic_load_explicit(&srq->ring.tail, memory_order_acquire);
	return srq->tail - srq->head;
}

void ur_srq_share(struct ur_srq *srq, struct ur_tp *tp)
{
	if (srq->tp != tp)
		srq->shared = true;
}

/* True when fewer are posted than the limit, which comes once and must be armed again. */
static bool is_below_limit(struct ur_srq *srq)
{
	if (ur_likely(!srq->limit) || posted(srq) >= srq->limit)
		return false;
	srq->limit = 0;
	return true;
}

bool ur_srq_ready(struct ur_srq *srq)
{
	return srq->head != srq->tail || posted(srq);
}

static inline bool take_oldest(struct ur_srq *srq, struct ur_rwqe *copy, bool *low)
{
	const struct ur_rwqe *w;

	if (!ur_srq_ready(srq))
		return false;
	w = ur_ring_at(&srq->ring, srq->head);
	memcpy(copy, w, ur_recv_stride(w->nsge));
	atomic_store_explicit(&srq->ring.head, ++srq->head, memory_order_release);
	*low = is_below_limit(srq);
	return true;
}

bool ur_srq_take(struct ur_srq *srq, const struct ur_tp *tp, struct ur_rwqe *copy)
{
	bool low = false, taken;

	if (ur_unlikely(srq->shared))
		ur_spin_lock(&srq->takers, tp->c.yield);
	taken = take_oldest(srq, copy, &low);
	if (ur_unlikely(srq->shared))
		ur_spin_unlock(&srq->takers);
	if (ur_unlikely(low))
		raise_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	return taken;
}

/* --- modify and query --- */

/* What is posted keeps its indices, so that only the place of each changes. */
static int resize(struct ur_srq *srq, uint32_t max_wr)
{
	struct ur_ring fresh, *r = &srq->ring;
	int err = ur_ring_init(&fresh, max_wr, r->stride, r->max_sge);

	if (err)
		return err;
	for (uint32_t i = srq->head; i != srq->tail; i++) {
		const struct ur_rwqe *w = ur_ring_at(r, i);

		memcpy(ur_ring_at(&fresh, i), w, ur_recv_stride(w->nsge));
	}
	ur_ring_free(r);
	r->buf = fresh.buf;
	r->lent = false;
	r->mask = fresh.mask;
	r->cap = fresh.cap;
	return 0;
}

int ur_srq_modify(struct ur_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	uint32_t size = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->ring.cap;
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) || limit > size)
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		if (!size || size > UR_MAX_SRQ_WR || size < posted(srq))
			return EINVAL;
		err = resize(srq, attr->max_wr);
	}
	if (!err && mask & IBV_SRQ_LIMIT) {
		srq->limit = limit;
		if (is_below_limit(srq))
			raise_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	return err;
}

void ur_srq_query(const struct ur_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr){.max_wr = srq->ring.cap, .max_sge = srq->ring.max_sge, .srq_limit = srq->limit};
}
