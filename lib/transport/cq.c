/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: a ring with the shard as producer and the application as consumer. One slot stays empty, so a ring
 * of 2^k slots holds 2^k - 1 completions. Arming and the notification are ordered by a full fence on either side: whoever
 * arms and then polls finds the completion or is notified.
 */
#include <errno.h>
#include <stdlib.h>

#include "transport/tp_priv.h"

enum { ARM_NONE, ARM_SOLICITED, ARM_ANY };

struct ur_cq {
	struct ur_cqe *ring;
	uint32_t mask;
	unsigned users; /* QPs; send and receive count separately */
	void *context;
	void (*notify)(struct ur_cq *cq);
	void (*on_overrun)(struct ur_cq *cq);
	uint32_t head_seen; /* the producer's last view of `head` */
	_Alignas(64) atomic_uint tail;
	_Alignas(64) atomic_uint head;
	atomic_uint armed;
	atomic_bool overrun;
};

int ur_cq_create(struct ur_tp *tp, unsigned cqe, void *context, void (*notify)(struct ur_cq *cq), struct ur_cq **out)
{
	struct ur_cq *cq;
	uint32_t slots = 2;

	(void)tp;
	if (cqe < 1 || cqe > UR_MAX_CQE)
		return EINVAL;
	while (slots < cqe + 1)
		slots *= 2;
	cq = aligned_alloc(64, sizeof(*cq));
	if (!cq)
		return ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->ring = aligned_alloc(64, slots * sizeof(struct ur_cqe));
	if (!cq->ring) {
		free(cq);
		return ENOMEM;
	}
	cq->mask = slots - 1;
	cq->context = context;
	cq->notify = notify;
	*out = cq;
	return 0;
}

int ur_cq_destroy(struct ur_cq *cq)
{
	if (cq->users)
		return EBUSY;
	free(cq->ring);
	free(cq);
	return 0;
}

void ur_cq_on_overrun(struct ur_cq *cq, void (*overrun)(struct ur_cq *cq))
{
	cq->on_overrun = overrun;
}

void ur_cq_use(struct ur_cq *cq, int qps)
{
	cq->users += (unsigned)qps;
}

void *ur_cq_context(const struct ur_cq *cq)
{
	return cq->context;
}

unsigned ur_cq_size(const struct ur_cq *cq)
{
	return cq->mask;
}

static void notify(struct ur_cq *cq, bool solicited)
{
	unsigned armed;

	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);
	if (armed == ARM_NONE || (armed == ARM_SOLICITED && !solicited))
		return;
	if (atomic_exchange_explicit(&cq->armed, ARM_NONE, memory_order_acq_rel) != ARM_NONE)
		cq->notify(cq);
}

static bool overrun(struct ur_cq *cq)
{
	if (!atomic_exchange_explicit(&cq->overrun, true, memory_order_acq_rel)) {
		if (cq->notify)
			notify(cq, true);
		if (cq->on_overrun)
			cq->on_overrun(cq);
	}
	return false;
}

bool ur_cq_push(struct ur_cq *cq, const struct ur_cqe *e, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (ur_unlikely(tail - cq->head_seen >= cq->mask)) {
		cq->head_seen = atomic_load_explicit(&cq->head, memory_order_acquire);
		if (tail - cq->head_seen >= cq->mask)
			return overrun(cq);
	}
	if (ur_unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed)))
		return false;
	cq->ring[tail & cq->mask] = *e;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	if (cq->notify)
		notify(cq, solicited || e->status != IBV_WC_SUCCESS);
	return true;
}

static void expand(struct ibv_wc *wc, const struct ur_cqe *e)
{
	*wc = (struct ibv_wc){
		.wr_id = e->wr_id,
		.status = (enum ibv_wc_status)e->status,
		.opcode = (enum ibv_wc_opcode)e->opcode,
		.vendor_err = e->vendor_err,
		.byte_len = e->byte_len,
		.qp_num = e->qpn,
		.src_qp = e->src_qp,
		.wc_flags = e->wc_flags,
	};
	memcpy(&wc->imm_data, &e->imm, sizeof(e->imm)); /* imm_data and invalidated_rkey are one union */
}

int ur_cq_poll(struct ur_cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
	int i;

	if (ur_unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed)))
		return -1;
	for (i = 0; i < n && head != tail; i++)
		expand(&wc[i], &cq->ring[head++ & cq->mask]);
	if (i > 0)
		atomic_store_explicit(&cq->head, head, memory_order_release);
	return i;
}

void ur_cq_arm(struct ur_cq *cq, bool solicited_only)
{
	unsigned none = ARM_NONE;

	if (solicited_only)
		atomic_compare_exchange_strong(&cq->armed, &none, ARM_SOLICITED);
	else
		atomic_store(&cq->armed, ARM_ANY);
	atomic_thread_fence(memory_order_seq_cst);
}

void ur_cq_clean(struct ur_cq *cq, uint32_t qpn)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t to = tail;

	/* From the newest to the oldest, so that what stays moves towards the tail and the producer's index holds still. */
	for (uint32_t i = tail; i != head; i--) {
		const struct ur_cqe *e = &cq->ring[(i - 1) & cq->mask];

		if (e->qpn == qpn)
			continue;
		to--;
		if (to != i - 1)
			cq->ring[to & cq->mask] = *e;
	}
	atomic_store_explicit(&cq->head, to, memory_order_release);
}
