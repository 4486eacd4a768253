/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC: its making, and one round of doorbells, receiving, timers and sending. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/touch.h"
#include "fault/inject.h"
#include "nic/internal.h"
#include "wire/bulk.h"
#include "wire/frame.h"
#include "wire/train.h"

/*
 * While packets of this host come, the port may wait: a system call that finds nothing takes longer than all that such a packet needs. They
 * come for so long after each, and the port is looked at this often: less and less often while it brings nothing.
 */
#define LOCAL_NS (20 * UR_NS_PER_US)
#define LOOK_NS (5 * UR_NS_PER_US)
#define LOOK_NS_MAX (20 * UR_NS_PER_US)
#define CONTROL_LOOK_NS (50 * UR_NS_PER_US)
#define TX_BURSTS 16 /* of a round that only sends: 1 MiB with the usual path MTU, about what a window holds */

/* --- packet buffers for the layers below --- */

static struct ur_pkt *nic_alloc_train(void *ctx)
{
	struct ur_nic *nic = ctx;

	return nic->port->queue->ops->alloc_train(nic->port->queue);
}

static enum ur_fetched_by nic_fetch(void *ctx, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				    unsigned nfrom)
{
	struct ur_nic *nic = ctx;

	return nic->cfg.fetch ? nic->cfg.fetch(nic->cfg.ctx, slot, to, nto, from, nfrom) : UR_FETCHED_NOT;
}

static uint64_t nic_token(void *ctx, uint8_t slot, uint32_t at)
{
	struct ur_nic *nic = ctx;

	return nic->cfg.token ? nic->cfg.token(nic->cfg.ctx, slot, at) : 0;
}

static void nic_free(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	(void)ctx;
	ur_pkts_release(pkts, n);
}

static void nic_output(void *ctx, struct ur_pkt *p)
{
	if (!ur_nic_hold_mad(ctx, p))
		ur_nic_send_one(ctx, p);
}

static void nic_tell(void *ctx, const struct ur_pkt *p)
{
	ur_nic_tell_siblings(ctx, p, UR_PKT_LOCAL, 0);
}

/* --- making and unmaking --- */

#define IN_USE (2 * UR_NS_PER_S)

/* As ur_cm_config.in_use. */
static bool nic_qp_in_use(void *ctx, uint32_t qpn, ur_time now)
{
	struct ur_nic *nic = ctx;
	const struct ur_qp *qp = ur_qp_find(nic->tp, qpn);
	ur_time last = qp ? ur_qp_last_received(qp) : 0;

	if (!qp && nic->cfg.last_received && ur_slot_of(qpn) != nic->cfg.tp.slot)
		last = nic->cfg.last_received(nic->cfg.ctx, qpn);
	return last && now < last + IN_USE;
}

static int nic_create_layers(struct ur_nic *nic)
{
	struct ur_tp_config tp = nic->cfg.tp;
	struct ur_net_config net = {.ctx = nic,
				    .alloc = ur_nic_alloc,
				    .free = nic_free,
				    .output = nic_output,
				    .wheel = nic->wheel,
				    .counters = &nic->counters,
				    .mac = nic->cfg.mac,
				    .mtu = nic->cfg.mtu,
				    .owned = nic->cfg.owned,
				    .seed = ur_random_u64(&nic->random),
				    .undelivered = ur_nic_undelivered,
				    .tell = nic_tell};
	struct ur_cm_config cm = {.ctx = nic,
				  .send = ur_nic_send_mad,
				  .other_answers = ur_nic_other_answers,
				  .orphaned = ur_nic_orphaned,
				  .in_use = nic_qp_in_use,
				  .trouble = nic->cfg.trouble ? ur_nic_trouble : NULL,
				  .farewell = nic->cfg.farewell || nic->cfg.alive ? ur_nic_farewell : NULL,
				  .wheel = nic->wheel,
				  .counters = &nic->counters,
				  .random = &nic->random,
				  .ca_guid = nic->cfg.guid,
				  .half_open = nic->cfg.half_open,
				  .slot = nic->cfg.tp.slot};
	int err;

	tp.ctx = nic;
	tp.alloc = ur_nic_alloc;
	tp.free = nic_free;
	tp.alloc_train = nic_alloc_train;
	tp.unread = ur_nic_unread;
	tp.fetch = nic_fetch;
	tp.token = nic_token;
	tp.only_short = ur_nic_only_short;
	tp.wheel = nic->wheel;
	tp.counters = &nic->counters;
	tp.random = &nic->random;
	err = ur_tp_create(&tp, &nic->tp);
	if (!err)
		ur_tp_set_port_mtu(nic->tp, 128u << ur_max_path_mtu(nic->cfg.mtu));
	if (!err)
		err = ur_net_create(&net, &nic->net);
	if (!err)
		err = ur_cm_create(&cm, &nic->cm);
	return err;
}

/*
 * Bulk and slim packets are for as long as nobody looks at packets: captures and traces show frames, and faults hit them. This process
 * sends none then, and the others are told to send it none.
 */
void ur_nic_set_watched(struct ur_nic *nic)
{
	nic->watched = nic->cfg.packets || nic->faults || nic->capture || nic->trace;
	for (unsigned s = 1; s < UR_NIC_OUTS; s++)
		ur_tp_set_takes(nic->tp, (uint8_t)s, !nic->watched && s == nic->cfg.tp.slot ? UR_TP_BULK | UR_TP_SLIM : 0);
	if (nic->cfg.watched)
		nic->cfg.watched(nic->cfg.ctx, nic->watched);
}

int ur_nic_create(const struct ur_nic_config *cfg, ur_time now, struct ur_nic **out)
{
	struct ur_nic *nic = calloc(1, sizeof(*nic));
	int err = ENOMEM;

	if (!nic)
		return ENOMEM;
	nic->cfg = *cfg;
	ur_random_init(&nic->random, &cfg->seed);
	memset(&nic->cfg.seed, 0, sizeof(nic->cfg.seed)); /* no longer needed; nobody should be able to read it */
	nic->now = now;
	ur_nic_mad_init(nic);
	ur_nic_out_init(nic);
	nic->wheel = ur_wheel_create(now);
	if (nic->wheel)
		err = nic_create_layers(nic);
	if (err) {
		ur_nic_destroy(nic);
		return err;
	}
	ur_nic_set_watched(nic);
	*out = nic;
	return 0;
}

void ur_nic_destroy(struct ur_nic *nic)
{
	if (!nic)
		return;
	if (nic->cm)
		ur_cm_destroy(nic->cm);
	if (nic->net)
		ur_net_destroy(nic->net);
	if (nic->port)
		ur_nic_out_clear(nic);
	if (nic->faults)
		ur_faults_destroy(nic->faults);
	if (nic->tp)
		ur_tp_destroy(nic->tp);
	if (nic->wheel)
		ur_wheel_destroy(nic->wheel);
	free(nic);
}

void ur_nic_leave_siblings(struct ur_nic *nic)
{
	nic->cfg.inbox = NULL;
	nic->cfg.sibling = NULL;
	nic->cfg.siblings = NULL;
	nic->cfg.fetch = NULL;
	nic->cfg.token = NULL;
	nic->cfg.watched = NULL;
	ur_tp_hide_tokens(nic->tp);
}

/* A capture wants to know when packets came. */
static void nic_set_stamps(struct ur_nic *nic)
{
	if (nic->port)
		nic->port->queue->stamp = nic->capture != NULL;
}

void ur_nic_attach(struct ur_nic *nic, struct ur_port *port)
{
	nic->port = port;
	port->owner = nic;
	nic_set_stamps(nic);
	nic->routed = port->queue->caps & UR_QUEUE_BARE;
	port->undelivered = ur_nic_port_undelivered;
	ur_net_set_routed(nic->net, nic->routed);
	ur_tp_set_window(nic->tp, port->queue->rx_bytes);
	ur_tp_set_copies(nic->tp, port->queue->caps & UR_QUEUE_COPIES);
	nic->train_pkts = 0;
	ur_tp_set_train(nic->tp, 0, 0); /* until something is sent */
	nic->out[0].queue = port->queue;
	nic->cfg.mtu = port->mtu;
	ur_tp_set_port_mtu(nic->tp, 128u << ur_max_path_mtu(port->mtu));
	ur_nic_filter_mcast(nic);
	ur_net_set_mac(nic->net, &port->mac);
	nic->cfg.mac = *ur_net_mac(nic->net);
	ur_tp_set_speed(nic->tp, port->speed_mbps);
	UR_TRACE(nic->trace, PORT_OPEN, port->mtu, port->speed_mbps, port->queue->train_pkts);
}

void ur_nic_set_capture(struct ur_nic *nic, struct ur_capture *capture)
{
	nic->capture = capture;
	nic_set_stamps(nic);
	ur_nic_set_watched(nic);
}

void ur_nic_set_trace(struct ur_nic *nic, struct ur_trace *trace)
{
	nic->trace = trace;
	ur_nic_set_watched(nic);
	ur_tp_set_trace(nic->tp, trace);
	ur_cm_set_trace(nic->cm, trace);
}

/* --- sending --- */

/* Packets to finish, from the first that is not. */
struct finish {
	struct ur_pkt **pkts;
	volatile unsigned done;
	unsigned n;
};

static inline void finish_one(struct ur_pkt *p)
{
	if (!(p->flags & UR_PKT_COMPLETE))
		ur_frame_finish(p, p->bth.pad);
}

static void nic_finish_rest(void *arg)
{
	struct finish *f = arg;

	for (; f->done < f->n; f->done++)
		finish_one(f->pkts[f->done]);
}

/* Finishing computes the ICRC, which reads the program's memory. A packet whose memory has gone leaves the burst; returns how many stay. */
__attribute__((noinline)) static unsigned finish_all(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	struct finish f = {.pkts = pkts, .n = n};
	unsigned own = 0;

	while (own < n && !pkts[own]->nseg) /* nothing of the program's is in it */
		finish_one(pkts[own++]);
	f.done = own;
	while (f.done < f.n && ur_unlikely(!ur_touch_call(nic_finish_rest, &f))) {
		struct ur_pkt **gone = &pkts[f.done];

		ur_tp_unsendable(nic->tp, *gone);
		ur_pkts_release(gone, 1);
		memmove(gone, gone + 1, (--f.n - f.done) * sizeof(*gone));
	}
	return f.n;
}

static inline unsigned nic_finish(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	unsigned complete = UR_PKT_COMPLETE;

	for (unsigned i = 0; i < n; i++)
		complete &= pkts[i]->flags;
	return complete ? n : finish_all(nic, pkts, n);
}

/* The longest train that may be built now. */
static void nic_set_train(struct ur_nic *nic)
{
	const struct ur_queue *q = nic->port->queue;
	const unsigned pkts = q->ops->alloc_train ? q->train_pkts : 0;

	if (ur_likely(nic->train_pkts == pkts))
		return;
	nic->train_pkts = pkts;
	ur_tp_set_train(nic->tp, pkts, q->train_bytes);
}

static unsigned nic_tx(struct ur_nic *nic)
{
	struct ur_pkt *pkts[UR_NIC_BURST];
	unsigned n, all = 0;

	if (ur_unlikely(!ur_list_empty(&nic->waiting)))
		ur_nic_flush(nic);
	if (!ur_tp_tx_worthwhile(nic->tp))
		return 0;
	nic_set_train(nic);
	n = ur_tp_tx(nic->tp, pkts, UR_NIC_BURST, nic->now);
	ur_tp_fill(nic->tp);
	n = nic_finish(nic, pkts, n);
	for (unsigned i = 0; i < n; i++)
		all += ur_unlikely(pkts[i]->flags & UR_PKT_BULK) ? ur_pkt_psns(pkts[i]) : ur_train_count(pkts[i]);
	nic->counters.v[UR_C_TX_ROCE] += all;
	if (n)
		ur_nic_send(nic, pkts, n);
	return all;
}

/* --- one round --- */

/* Somebody else's `now` may have been later. */
static bool local_is_busy(const struct ur_nic *nic)
{
	return nic->now < nic->local_at + LOCAL_NS;
}

static unsigned port_arrivals(struct ur_nic *nic)
{
	const struct ur_queue *q = nic->port->queue;
	unsigned n = ur_nic_rx(nic, nic->port->queue);

	nic->look_ns = n || !local_is_busy(nic) ? LOOK_NS : ur_min_time(2 * nic->look_ns, LOOK_NS_MAX);
	nic->look_at = n ? 0 : nic->now + nic->look_ns;
	nic->counters.v[UR_C_RX_MISSED] = q->rx_missed;
	nic->counters.v[UR_C_TX_REFUSED] = q->tx_refused;
	nic->counters.v[UR_C_TX_CHAINED] = q->tx_chained;
	nic->counters.v[UR_C_TX_GATHERED] = q->tx_gathered;
	nic->counters.v[UR_C_TX_UNMAPPED] = q->tx_unmapped;
	return n;
}

static bool port_may_wait(const struct ur_nic *nic)
{
	return local_is_busy(nic) && nic->now < nic->look_at && nic->port->queue->caps & UR_QUEUE_CALLS;
}

static unsigned local_arrivals(struct ur_nic *nic, struct ur_queue *q)
{
	unsigned n = ur_nic_rx(nic, q);

	if (n)
		nic->local_at = nic->now;
	return n;
}

/* From the other processes of the device, from ourselves, and from the clock. */
static inline unsigned other_arrivals(struct ur_nic *nic)
{
	unsigned n = 0;

	if (nic->cfg.inbox)
		n += local_arrivals(nic, nic->cfg.inbox);
	if (ur_unlikely(nic->faults != NULL))
		ur_faults_release(nic->faults, nic->now);
	if (ur_unlikely(nic->loop.head != NULL))
		n += local_arrivals(nic, &nic->loop.queue);
	return n + ur_wheel_advance(nic->wheel, nic->now);
}

static unsigned nic_arrivals(struct ur_nic *nic)
{
	unsigned n = ur_unlikely(port_may_wait(nic)) ? 0 : port_arrivals(nic);

	return n + other_arrivals(nic);
}

/* Somebody has just looked, and there was nothing; and what comes wakes the thread that sleeps on the port's descriptor. */
static bool port_was_empty(const struct ur_nic *nic)
{
	return nic->now < nic->look_at + CONTROL_LOOK_NS && nic->look_at && nic->port->queue->caps & UR_QUEUE_CALLS;
}

static bool nic_begin(struct ur_nic *nic, ur_time now)
{
	nic->now = now;
	ur_nic_drain_doorbells(nic);
	if (ur_likely(nic->port != NULL))
		return true;
	ur_wheel_advance(nic->wheel, now);
	return false;
}

unsigned ur_nic_poll(struct ur_nic *nic, ur_time now)
{
	unsigned n;

	if (!nic_begin(nic, now))
		return 0;
	n = nic_arrivals(nic);
	return n + nic_tx(nic);
}

unsigned ur_nic_poll_control(struct ur_nic *nic, ur_time now)
{
	unsigned n;

	if (!nic_begin(nic, now))
		return 0;
	n = port_was_empty(nic) ? other_arrivals(nic) : nic_arrivals(nic);
	return n + nic_tx(nic);
}

unsigned ur_nic_poll_lazy(struct ur_nic *nic, ur_time now)
{
	unsigned n;

	if (!nic_begin(nic, now))
		return 0;
	n = nic_tx(nic);
	return n + nic_arrivals(nic);
}

unsigned ur_nic_poll_rx(struct ur_nic *nic, ur_time now)
{
	nic->now = now;
	return nic->port ? nic_arrivals(nic) : 0;
}

unsigned ur_nic_poll_tx(struct ur_nic *nic, ur_time now)
{
	unsigned n, sum = 0;

	if (!nic_begin(nic, now))
		return 0;
	for (unsigned i = 0; i < TX_BURSTS; i++) {
		n = nic_tx(nic);
		if (ur_unlikely(nic->loop.head != NULL))
			n += local_arrivals(nic, &nic->loop.queue);
		if (!n)
			break;
		sum += n;
	}
	return sum;
}

bool ur_nic_owes_answers(const struct ur_nic *nic)
{
	return nic->port && ur_list_empty(&nic->waiting) && !nic->loop.head && ur_tp_tx_answers(nic->tp);
}

ur_time ur_nic_next(const struct ur_nic *nic)
{
	ur_time next = ur_wheel_next(nic->wheel);

	if (nic->faults)
		next = ur_min_time(next, ur_faults_next(nic->faults));
	if (nic->port && (nic->more || !ur_list_empty(&nic->waiting) || nic->loop.head || ur_tp_tx_pending(nic->tp)))
		next = nic->now;
	return next;
}
