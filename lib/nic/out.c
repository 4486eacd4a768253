/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues that packets leave by: the port's, the loop, and one to each other process of the device. What a queue does not take waits for
 * it alone, and the transport builds nothing more that would go there (ur_tp_hold); the other queues do not notice.
 */
#include "base/bytes.h"
#include "nic/internal.h"
#include "wire/frame.h"
#include "wire/train.h"

#define BACKLOG (2 * UR_NIC_BURST) /* packets */
#define WIRE_STUCK_NS (2 * UR_NS_PER_MS)
#define SIBLING_STUCK_NS (200 * UR_NS_PER_MS) /* other programs may have its CPU for that long; it holds up nobody else */

unsigned ur_nic_alloc(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct ur_nic *nic = ctx;
	unsigned got;

	if (ur_unlikely(!nic->port))
		return 0;
	got = ur_queue_alloc(nic->port->queue, pkts, n);
	if (ur_unlikely(!got))
		ur_count(&nic->counters, UR_C_TX_NO_BUFFER);
	return got;
}

void ur_nic_out_init(struct ur_nic *nic)
{
	ur_list_init(&nic->waiting);
	ur_loop_init(&nic->loop);
	nic->out[nic->cfg.tp.slot].queue = &nic->loop.queue;
	for (unsigned i = 0; i < UR_NIC_OUTS; i++)
		ur_list_init(&nic->out[i].link);
}

static uint8_t index_of_out(const struct ur_nic *nic, const struct ur_nic_out *o)
{
	return (uint8_t)(o - nic->out);
}

static void drop(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		nic->counters.v[UR_C_TX_DROPPED] += ur_train_count(pkts[i]);
	ur_pkts_release(pkts, n);
}

static void push(struct ur_nic_out *o, struct ur_pkt *p)
{
	p->next = NULL;
	if (o->n++)
		o->last->next = p;
	else
		o->head = p;
	o->last = p;
}

/* The oldest of the backlog, up to a burst. They stay in it. */
static unsigned peek(const struct ur_nic_out *o, struct ur_pkt *pkts[UR_NIC_BURST])
{
	unsigned n = ur_min_u32(o->n, UR_NIC_BURST);
	struct ur_pkt *p = o->head;

	for (unsigned i = 0; i < n; i++, p = p->next)
		pkts[i] = p;
	return n;
}

/* Hands the oldest to the queue; returns how many it took. */
static unsigned offer(struct ur_nic_out *o)
{
	struct ur_pkt *pkts[UR_NIC_BURST], *behind;
	unsigned n = peek(o, pkts), sent;

	if (!n)
		return 0;
	behind = pkts[n - 1]->next; /* who takes a packet may change it */
	sent = ur_queue_tx(o->queue, pkts, n);
	o->head = sent < n ? pkts[sent] : behind;
	o->n -= sent;
	return sent;
}

static void drop_backlog(struct ur_nic *nic, struct ur_nic_out *o)
{
	while (o->n) {
		struct ur_pkt *p = o->head;

		o->head = p->next;
		o->n--;
		drop(nic, &p, 1);
	}
}

static void end_waiting(struct ur_nic *nic, struct ur_nic_out *o)
{
	ur_list_del(&o->link);
	ur_tp_hold(nic->tp, index_of_out(nic, o), false);
}

static ur_time patience(const struct ur_nic *nic, const struct ur_nic_out *o)
{
	if (index_of_out(nic, o))
		return SIBLING_STUCK_NS;
	return o->queue->patience_ns ? o->queue->patience_ns : WIRE_STUCK_NS;
}

/* A queue that takes nothing (its reader has gone) loses packets as a cable does, so that timers and retry counters can do their work. */
static void flush(struct ur_nic *nic, struct ur_nic_out *o)
{
	while (offer(o))
		o->since = nic->now;
	if (o->n && nic->now < o->since + patience(nic, o)) /* a thread's `now` may be older */
		return;
	o->stuck = o->n != 0;
	drop_backlog(nic, o);
	end_waiting(nic, o);
}

void ur_nic_flush(struct ur_nic *nic)
{
	struct ur_list *pos, *tmp;

	ur_list_for_each_safe (pos, tmp, &nic->waiting)
		flush(nic, ur_container_of(pos, struct ur_nic_out, link));
}

/* What waits for another process may wait for long: the memory that it refers to is not held up meanwhile. */
static unsigned detach(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++)
		if (ur_pkt_linearise(pkts[i]))
			pkts[k++] = pkts[i];
		else
			drop(nic, &pkts[i], 1);
	return k;
}

/* What the queue has not taken waits; once it is known to be stuck, nothing waits until it takes something again. */
static void append_backlog(struct ur_nic *nic, struct ur_nic_out *o, struct ur_pkt **pkts, unsigned n)
{
	unsigned fit;

	ur_count(&nic->counters, UR_C_TX_BACKLOG);
	if (o->stuck) {
		drop(nic, pkts, n);
		return;
	}
	if (index_of_out(nic, o))
		n = detach(nic, pkts, n);
	fit = ur_min_u32(n, BACKLOG - o->n);
	if (!o->n) {
		o->since = nic->now;
		ur_list_add_tail(&nic->waiting, &o->link);
		ur_tp_hold(nic->tp, index_of_out(nic, o), true);
	}
	for (unsigned i = 0; i < fit; i++)
		push(o, pkts[i]);
	drop(nic, pkts + fit, n - fit); /* only ARP, MADs, multicasts and what is handed on can meet a full backlog; they may be lost */
}

/* What a queue has not taken all of, or was stuck. */
__attribute__((noinline)) static void note_unsent(struct ur_nic *nic, struct ur_nic_out *o, struct ur_pkt **pkts, unsigned n, unsigned sent)
{
	if (ur_unlikely(o->stuck))
		o->stuck = !sent;
	if (sent < n)
		append_backlog(nic, o, pkts + sent, n - sent);
}

static inline void offer_all(struct ur_nic *nic, struct ur_nic_out *o, struct ur_pkt **pkts, unsigned n)
{
	unsigned sent = ur_likely(!o->n) ? ur_queue_tx(o->queue, pkts, n) : 0;

	if (ur_unlikely(sent < n || o->stuck))
		note_unsent(nic, o, pkts, n, sent);
}

void ur_nic_out_port(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	offer_all(nic, &nic->out[0], pkts, n);
}

/* As enum ur_takes. */
static unsigned taken_by(const struct ur_queue *q)
{
	return (q->caps & UR_QUEUE_FETCHES ? UR_TP_BULK : 0) | (q->caps & UR_QUEUE_SLIM ? UR_TP_SLIM : 0);
}

void ur_nic_out(struct ur_nic *nic, uint8_t to, struct ur_pkt **pkts, unsigned n)
{
	struct ur_nic_out *o = &nic->out[to];

	if (to && to != nic->cfg.tp.slot) {
		struct ur_queue *q = nic->cfg.sibling ? nic->cfg.sibling(nic->cfg.ctx, to) : NULL;

		if (!q) { /* nobody is there */
			ur_pkts_release(pkts, n);
			return;
		}
		o->queue = q;
		ur_tp_set_takes(nic->tp, to, nic->watched ? 0 : taken_by(q));
	}
	offer_all(nic, o, pkts, n);
}

bool ur_nic_unread(void *ctx, uint8_t to)
{
	struct ur_nic *nic = ctx;
	struct ur_nic_out *o = &nic->out[to];

	return o->queue && o->queue->ops->unread && o->queue->ops->unread(o->queue) && !o->stuck;
}

void ur_nic_out_clear(struct ur_nic *nic)
{
	struct ur_list *l;

	ur_pkts_release(&nic->mads.train, nic->mads.train != NULL);
	while ((l = ur_list_pop(&nic->waiting)))
		drop_backlog(nic, ur_container_of(l, struct ur_nic_out, link));
	ur_loop_clear(&nic->loop);
}

/* --- packets to this host --- */

struct ur_pkt *ur_nic_copy(struct ur_nic *nic, const struct ur_pkt *p)
{
	struct ur_pkt *c;

	if (!nic->port || ur_queue_alloc(nic->port->queue, &c, 1) != 1)
		return NULL;
	if (ur_pkt_frame_len(p) > c->room) {
		ur_pkts_release(&c, 1);
		return NULL;
	}
	c->len = (uint32_t)(ur_pkt_gather(p, 0, c->data) - c->data);
	ur_pkt_copy_fields(c, p);
	return c;
}

void ur_nic_tell_sibling(struct ur_nic *nic, uint8_t slot, const struct ur_pkt *p, uint8_t flags)
{
	struct ur_pkt *c;

	if (!nic->cfg.sibling || !nic->cfg.sibling(nic->cfg.ctx, slot))
		return;
	c = ur_nic_copy(nic, p);
	if (!c) {
		ur_count(&nic->counters, UR_C_TX_DROPPED);
		return;
	}
	c->flags = flags;
	ur_nic_out(nic, slot, &c, 1);
}

void ur_nic_tell_siblings(struct ur_nic *nic, const struct ur_pkt *p, uint8_t flags, uint8_t but)
{
	uint8_t slot[UR_NIC_OUTS];
	unsigned n = nic->cfg.siblings ? nic->cfg.siblings(nic->cfg.ctx, slot) : 0;

	for (unsigned i = 0; i < n; i++)
		if (slot[i] != nic->cfg.tp.slot && slot[i] != but)
			ur_nic_tell_sibling(nic, slot[i], p, flags);
}

#define EVERYBODY 0

/*
 * Whose is a packet that has come to this host, or stays here? The top byte of its QPN is the slot of a process. MADs are for whoever knows
 * the connection, so everybody gets them, and multicasts. What has no slot is nobody's: whoever holds it counts it.
 */
static uint8_t owner(const struct ur_nic *nic, uint32_t dqpn)
{
	if (dqpn == 1 || dqpn == UR_QPN_MCAST)
		return EVERYBODY;
	return ur_slot_of(dqpn) ? ur_slot_of(dqpn) : nic->cfg.tp.slot;
}

/* How many packets from the first one on go to the same process. */
static unsigned same_process(const struct ur_nic *nic, struct ur_pkt **pkts, unsigned n, uint8_t *to)
{
	unsigned k = 1;

	*to = owner(nic, pkts[0]->bth.dqpn);
	while (k < n && pkts[k]->bth.dqpn == pkts[0]->bth.dqpn)
		k++;
	return k;
}

void ur_nic_out_local(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned k; n; pkts += k, n -= k) {
		uint8_t to;

		k = same_process(nic, pkts, n, &to);
		if (to == EVERYBODY) {
			for (unsigned i = 0; i < k; i++)
				ur_nic_tell_siblings(nic, pkts[i], UR_PKT_LOCAL, 0);
			to = nic->cfg.tp.slot;
		}
		ur_nic_out(nic, to, pkts, k);
	}
}

/* Which QP of this host a packet from the wire is for, before it is parsed: only bare ones come to the wrong process. */
static bool destination(const struct ur_pkt *p, uint32_t *dqpn)
{
	if (!(p->flags & UR_PKT_BARE) || p->len < UR_BTH_LEN)
		return false;
	*dqpn = ur_get24(p->data + UR_BTH_QPN);
	return *dqpn != UR_QPN_MCAST; /* every process has a copy from the kernel */
}

/* True when the packet is another process's, which `to` then says. What is for all is told to the others. */
static bool is_others(struct ur_nic *nic, const struct ur_pkt *p, uint8_t *to)
{
	uint32_t dqpn;

	if (!destination(p, &dqpn))
		return false;
	*to = owner(nic, dqpn);
	if (*to == EVERYBODY) {
		ur_nic_tell_siblings(nic, p, p->flags, nic->cfg.first_slot);
		*to = nic->cfg.first_slot; /* EVERYBODY: this is the first lane, which keeps it */
	}
	if (*to == EVERYBODY || *to == nic->cfg.tp.slot)
		return false;
	ur_count(&nic->counters, UR_C_RX_OTHER_SLOT);
	return true;
}

/* Bare ones come from the wire, by whichever process got them. A whole frame is parsed once more for that. */
bool ur_nic_is_for_first_lane(const struct ur_nic *nic, const struct ur_pkt *p)
{
	struct ur_counters none = {{0}};
	struct ur_pkt frame = *p;
	uint32_t dqpn;

	if (p->flags & UR_PKT_BARE)
		return !(p->flags & UR_PKT_LOCAL) && destination(p, &dqpn) && owner(nic, dqpn) == EVERYBODY;
	return ur_frame_parse(&frame, &none) && frame.kind == UR_PKT_ROCE && owner(nic, frame.bth.dqpn) == EVERYBODY;
}

bool ur_nic_hand_on_view(struct ur_nic *nic, const struct ur_pkt *view)
{
	struct ur_pkt *copy;
	uint8_t to;

	if (ur_likely(!is_others(nic, view, &to)))
		return false;
	copy = ur_nic_copy(nic, view);
	if (copy)
		ur_nic_out(nic, to, &copy, 1);
	else
		ur_count(&nic->counters, UR_C_TX_DROPPED);
	return true;
}

bool ur_nic_hand_on(struct ur_nic *nic, struct ur_pkt *p)
{
	uint8_t to;

	if (p->stride || !is_others(nic, p, &to))
		return false;
	ur_nic_out(nic, to, &p, 1);
	return true;
}
