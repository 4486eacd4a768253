/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: a ring with the NIC as producer and the application as consumer. It holds as many completions as were asked for: the
 * number of its slots is the next power of two. Arming and the notification are ordered by a full fence on either side: whoever
 * arms and then polls finds the completion or is notified; and who arms a CQ that holds completions of which no event has told is
 * notified at once: they may have come after its last poll. An event tells of one completion, the oldest that is there when it is fetched:
 * who takes one completion an event gets an event for each, and who is behind with a single one gets no second event for it. Moderation
 * holds a notification back until a number of completions has come or a time has passed.
 *
 * A CQ belongs to a lane, whose lock guards its producer's side. Once QPs of other lanes complete in it, it is shared: its producers take
 * turns by a lock of its own, and its notifications are not held back, because that takes a timer.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/spin.h"
#include "transport/queues/cq.h"
#include "transport/state/tp_priv.h"

enum { ARM_NONE, ARM_SOLICITED, ARM_ANY };

struct ur_cq {
	struct ur_cqe *ring;
	ur_time *stamps;    /* when each entry of `ring` was pushed; NULL unless asked for */
	uint32_t mask;      /* slots less one */
	uint32_t cap;       /* completions that it holds at the most */
	uint32_t head_seen; /* the producer's last view of `head` */
	void (*notify)(struct ur_cq *cq);
	struct ur_tp *tp;
	uint16_t count; /* moderation: completions that one notification stands for; up to 1: each has its own */
	uint16_t held;  /* completions since the first that was held back, itself among them */
	bool lent;      /* `ring` is somebody else's */
	bool lossy;     /* a completion without room is lost, and nothing else */
	bool shared;    /* its QPs are of several lanes */
	atomic_uint users; /* QPs; send and receive count separately */
	struct ur_spin producers; /* where it is shared */
	void *context;
	void (*on_overrun)(struct ur_cq *cq);
	ur_time period; /* the longest that a notification is held back */
	struct ur_timer timer;
	_Alignas(64) atomic_uint tail;
	_Alignas(64) atomic_uint head;
	atomic_uint armed;
	atomic_uint told; /* behind the completion that the last fetched event told of */
	atomic_bool overrun;
};

/* --- making --- */

static uint32_t slots_for(unsigned cqe)
{
	uint32_t slots = 1;

	while (slots < cqe)
		slots *= 2;
	return slots;
}

static struct ur_cqe *ring_alloc(uint32_t slots)
{
	return aligned_alloc(64, (slots * sizeof(struct ur_cqe) + 63) & ~(size_t)63); /* C11: a multiple of the alignment */
}

static void ring_free(struct ur_cq *cq)
{
	if (!cq->lent)
		free(cq->ring);
	cq->lent = false;
}

static void fire(struct ur_cq *cq)
{
	if (cq->held) {
		cq->held = 0;
		ur_timer_cancel(cq->tp->c.wheel, &cq->timer);
	}
	if (atomic_exchange_explicit(&cq->armed, ARM_NONE, memory_order_acq_rel) != ARM_NONE)
		cq->notify(cq);
}

static void period_over(struct ur_timer *t, ur_time now)
{
	(void)now;
	fire(ur_container_of(t, struct ur_cq, timer));
}

int ur_cq_create(struct ur_tp *tp, unsigned cqe, void *context, void (*notify)(struct ur_cq *cq), struct ur_cq **out)
{
	struct ur_cq *cq;
	uint32_t slots;

	if (cqe < 1 || cqe > UR_MAX_CQE)
		return EINVAL;
	slots = slots_for(cqe);
	cq = aligned_alloc(64, sizeof(*cq));
	if (!cq)
		return ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->ring = ring_alloc(slots);
	if (!cq->ring || ur_made(tp, UR_KIND_CQ)) {
		free(cq->ring);
		free(cq);
		return ENOMEM;
	}
	cq->tp = tp;
	cq->mask = slots - 1;
	cq->cap = cqe;
	cq->context = context;
	cq->notify = notify;
	ur_timer_init(&cq->timer, period_over);
	*out = cq;
	return 0;
}

int ur_cq_destroy(struct ur_cq *cq)
{
	if (atomic_load(&cq->users))
		return EBUSY;
	if (ur_timer_armed(&cq->timer))
		ur_timer_cancel(cq->tp->c.wheel, &cq->timer);
	ur_unmade(cq->tp, UR_KIND_CQ);
	free(cq->stamps);
	ring_free(cq);
	free(cq);
	return 0;
}

size_t ur_cq_ring_bytes(const struct ur_cq *cq)
{
	return (size_t)(cq->mask + 1u) * sizeof(struct ur_cqe);
}

void ur_cq_lend(struct ur_cq *cq, void *mem)
{
	if (!mem)
		return;
	ring_free(cq);
	cq->ring = mem;
	cq->lent = true;
}

int ur_cq_stamp(struct ur_cq *cq)
{
	cq->stamps = calloc(cq->mask + 1u, sizeof(*cq->stamps));
	return cq->stamps ? 0 : ENOMEM;
}

void ur_cq_ignore_overrun(struct ur_cq *cq)
{
	cq->lossy = true;
}

void ur_cq_on_overrun(struct ur_cq *cq, void (*overrun)(struct ur_cq *cq))
{
	cq->on_overrun = overrun;
}

void ur_cq_use(struct ur_cq *cq, int n)
{
	atomic_fetch_add_explicit(&cq->users, (unsigned)n, memory_order_relaxed);
}

bool ur_cq_is_used(const struct ur_cq *cq)
{
	return atomic_load_explicit(&cq->users, memory_order_relaxed);
}

struct ur_tp *ur_cq_lane(const struct ur_cq *cq)
{
	return cq->tp;
}

void *ur_cq_context(const struct ur_cq *cq)
{
	return cq->context;
}

unsigned ur_cq_size(const struct ur_cq *cq)
{
	return cq->cap;
}

/* --- size --- */

/* Copies what is queued into rings of another size; the indices run on. */
static void move_entries(const struct ur_cq *cq, struct ur_cqe *ring, ur_time *stamps, uint32_t mask, uint32_t head, uint32_t tail)
{
	for (uint32_t i = head; i != tail; i++) {
		ring[i & mask] = cq->ring[i & cq->mask];
		if (stamps)
			stamps[i & mask] = cq->stamps[i & cq->mask];
	}
}

int ur_cq_resize(struct ur_cq *cq, unsigned cqe)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	struct ur_cqe *ring;
	ur_time *stamps = NULL;
	uint32_t slots;

	if (cqe < 1 || cqe > UR_MAX_CQE || cqe < tail - head)
		return EINVAL;
	slots = slots_for(cqe);
	if (slots == cq->mask + 1) {
		cq->cap = cqe;
		return 0;
	}
	ring = ring_alloc(slots);
	if (ring && cq->stamps)
		stamps = calloc(slots, sizeof(*stamps));
	if (!ring || (cq->stamps && !stamps)) {
		free(ring);
		return ENOMEM;
	}
	move_entries(cq, ring, stamps, slots - 1, head, tail);
	ring_free(cq);
	free(cq->stamps);
	cq->ring = ring;
	cq->stamps = stamps;
	cq->mask = slots - 1;
	cq->cap = cqe;
	cq->head_seen = head;
	return 0;
}

/* --- notifications --- */

/* The first that is held back starts the clock. */
static bool hold_back(struct ur_cq *cq)
{
	if (!cq->held++)
		ur_timer_arm(cq->tp->c.wheel, &cq->timer, cq->tp->now + cq->period);
	return cq->held < cq->count;
}

static void notify(struct ur_cq *cq, bool solicited)
{
	unsigned armed;

	atomic_thread_fence(memory_order_seq_cst);
	armed = atomic_load_explicit(&cq->armed, memory_order_relaxed);
	if (armed == ARM_NONE || (armed == ARM_SOLICITED && !solicited))
		return;
	if (ur_unlikely(cq->count > 1) && !cq->shared && hold_back(cq))
		return;
	fire(cq);
}

static void release_held(struct ur_cq *cq)
{
	if (cq->held)
		fire(cq);
}

void ur_cq_moderate(struct ur_cq *cq, uint16_t count, uint16_t period_us)
{
	release_held(cq);
	cq->count = period_us ? count : 0;
	cq->period = period_us * UR_NS_PER_US;
}

void ur_cq_share(struct ur_cq *cq, struct ur_tp *tp)
{
	if (cq->tp == tp || cq->shared)
		return;
	release_held(cq);
	if (ur_cq_is_used(cq))
		cq->shared = true;
	else
		cq->tp = tp;
}

void ur_cq_event_fetched(struct ur_cq *cq)
{
	const uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire); /* first: others may poll in between */

	atomic_store_explicit(&cq->told, head + (head != atomic_load_explicit(&cq->tail, memory_order_acquire)), memory_order_relaxed);
}

/* Is there a completion that such an arming asks for, and of which no event has told? The consumer's question. */
static bool holds(const struct ur_cq *cq, bool solicited_only)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
	uint32_t known = atomic_load_explicit(&cq->told, memory_order_relaxed) - head;

	if (known <= tail - head) /* else they have been polled */
		head += known;
	if (!solicited_only)
		return head != tail;
	for (; head != tail; head++)
		if (cq->ring[head & cq->mask].wc_flags & UR_CQE_SOLICITED)
			return true;
	return false;
}

void ur_cq_arm(struct ur_cq *cq, bool solicited_only)
{
	unsigned none = ARM_NONE;

	if (solicited_only)
		atomic_compare_exchange_strong(&cq->armed, &none, ARM_SOLICITED);
	else
		atomic_store(&cq->armed, ARM_ANY);
	atomic_thread_fence(memory_order_seq_cst);
	/* What holds one back, and its timer, are the NIC's: it will find that there is nothing to tell any more. */
	if (cq->notify && holds(cq, solicited_only) && atomic_exchange_explicit(&cq->armed, ARM_NONE, memory_order_acq_rel) != ARM_NONE)
		cq->notify(cq);
}

/* --- the producer --- */

static bool overrun(struct ur_cq *cq, const struct ur_tp *tp)
{
	if (cq->lossy) {
		ur_count(tp->c.counters, UR_C_CQE_LOST);
		return true;
	}
	if (!atomic_exchange_explicit(&cq->overrun, true, memory_order_acq_rel)) {
		if (cq->notify)
			fire(cq);
		if (cq->on_overrun)
			cq->on_overrun(cq);
	}
	return false;
}

/* False when there is no room. */
static inline bool put_entry(struct ur_cq *cq, const struct ur_tp *tp, const struct ur_cqe *e, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	struct ur_cqe *entry;

	if (ur_unlikely(tail - cq->head_seen >= cq->cap)) {
		cq->head_seen = atomic_load_explicit(&cq->head, memory_order_acquire);
		if (tail - cq->head_seen >= cq->cap)
			return false;
	}
	entry = &cq->ring[tail & cq->mask];
	*entry = *e;
	if (solicited)
		entry->wc_flags |= UR_CQE_SOLICITED;
	if (ur_unlikely(cq->stamps != NULL))
		cq->stamps[tail & cq->mask] = tp->now;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	return true;
}

/* The others wait, so nobody is told meanwhile. */
__attribute__((noinline)) static bool put_in_turn(struct ur_cq *cq, const struct ur_tp *tp, const struct ur_cqe *e, bool solicited)
{
	bool done;

	ur_spin_lock(&cq->producers, tp->c.yield);
	done = put_entry(cq, tp, e, solicited);
	ur_spin_unlock(&cq->producers);
	return done;
}

bool ur_cq_push(struct ur_cq *cq, const struct ur_tp *tp, const struct ur_cqe *e, bool solicited)
{
	solicited |= e->status != IBV_WC_SUCCESS;
	if (ur_unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed)))
		return overrun(cq, tp);
	if (!(ur_unlikely(cq->shared) ? put_in_turn(cq, tp, e, solicited) : put_entry(cq, tp, e, solicited)))
		return overrun(cq, tp);
	if (cq->notify)
		notify(cq, solicited);
	return true;
}

uint32_t ur_cq_room(struct ur_cq *cq, uint32_t most)
{
	const uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (ur_unlikely(cq->shared))
		return 0;
	if (tail - cq->head_seen + most > cq->cap)
		cq->head_seen = atomic_load_explicit(&cq->head, memory_order_acquire);
	if (ur_unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed)))
		return 0;
	return ur_min_u32(cq->cap - (tail - cq->head_seen), most);
}

struct ur_cqe *ur_cq_ahead(struct ur_cq *cq, uint32_t i)
{
	return &cq->ring[(atomic_load_explicit(&cq->tail, memory_order_relaxed) + i) & cq->mask];
}

void ur_cq_push_ahead(struct ur_cq *cq, uint32_t n, bool solicited)
{
	const uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	for (uint32_t i = 0; i < n && solicited; i++)
		cq->ring[(tail + i) & cq->mask].wc_flags |= UR_CQE_SOLICITED;
	for (uint32_t i = 0; i < n && ur_unlikely(cq->stamps != NULL); i++)
		cq->stamps[(tail + i) & cq->mask] = cq->tp->now;
	atomic_store_explicit(&cq->tail, tail + n, memory_order_release);
	if (!cq->notify || !n)
		return;
	notify(cq, solicited);
	for (uint32_t i = 1; i < n && ur_unlikely(cq->count > 1); i++) /* moderation counts them */
		notify(cq, solicited);
}

/* --- the consumer --- */

/*
 * Annex A17.4.5.1 has the completion of a datagram say whether it came over IPv4 or IPv6, and struct ibv_wc has no field for it. RoCE NICs
 * say it in the service level, which RoCEv2 has no other use for; UCX depends on it: bit 3 for UDP, below it 1 for IPv6 and 2 for IPv4.
 */
static uint8_t service_level(const struct ur_cqe *e)
{
	return !(e->wc_flags & IBV_WC_GRH) ? 0 : e->wc_flags & UR_CQE_IP4 ? 8 | 2 : 8 | 1;
}

/* Each field by itself: to clear all of it first costs more than to fill it. */
static inline void expand(struct ibv_wc *wc, const struct ur_cqe *e)
{
	wc->wr_id = e->wr_id;
	wc->status = (enum ibv_wc_status)e->status;
	wc->opcode = (enum ibv_wc_opcode)e->opcode;
	wc->vendor_err = e->vendor_err;
	wc->byte_len = e->byte_len;
	memcpy(&wc->imm_data, &e->imm, sizeof(e->imm)); /* imm_data and invalidated_rkey are one union */
	wc->qp_num = e->qpn;
	wc->src_qp = e->src_qp;
	wc->wc_flags = (unsigned)e->wc_flags & ~(UR_CQE_IP4 | UR_CQE_SOLICITED);
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = service_level(e);
	wc->dlid_path_bits = 0;
}

bool ur_cq_is_empty(const struct ur_cq *cq)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire); /* first: others may poll in between */

	return head == atomic_load_explicit(&cq->tail, memory_order_acquire) && !atomic_load_explicit(&cq->overrun, memory_order_relaxed);
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

int ur_cq_take(struct ur_cq *cq, struct ibv_wc *wc, ur_time *at)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&cq->tail, memory_order_acquire))
		return atomic_load_explicit(&cq->overrun, memory_order_relaxed) ? -1 : 0;
	if (cq->stamps)
		*at = cq->stamps[head & cq->mask];
	return ur_cq_poll(cq, 1, wc);
}

/* What another lane adds meanwhile comes behind `tail`. */
void ur_cq_clean(struct ur_cq *cq, uint32_t qpn)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
	uint32_t to = tail;

	/* From the newest to the oldest, so that what stays moves towards the tail and the producer's index holds still. */
	for (uint32_t i = tail; i != head; i--) {
		const struct ur_cqe *e = &cq->ring[(i - 1) & cq->mask];

		if (e->qpn == qpn)
			continue;
		to--;
		if (to == i - 1)
			continue;
		cq->ring[to & cq->mask] = *e;
		if (cq->stamps)
			cq->stamps[to & cq->mask] = cq->stamps[(i - 1) & cq->mask];
	}
	atomic_store_explicit(&cq->head, to, memory_order_release);
}
