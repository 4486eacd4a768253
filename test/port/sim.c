/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers and ports of the fabric. Every buffer is accounted for: free, out with a caller, or flying. */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "test/port/hide.h"
#include "test/port/internal.h"
#include "wire/train.h"

#define NPKTS_DEFAULT 4096
#define MTU_FULL (UR_PKT_ROOM - 18)

static struct ur_sim_buf *buf_of(struct ur_pkt *p)
{
	return ur_container_of(p, struct ur_sim_buf, pkt);
}

static struct ur_sim_port *port_of(struct ur_port *p)
{
	return ur_container_of(p, struct ur_sim_port, port);
}

static struct ur_sim_port *port_of_queue(struct ur_queue *q)
{
	return ur_container_of(q, struct ur_sim_port, queue);
}

static void count(struct ur_sim *sim, uint8_t where, int by)
{
	if (where == UR_SIM_OUT)
		sim->outstanding += (unsigned)by;
	else if (where == UR_SIM_FLYING)
		sim->flying += (unsigned)by;
}

static void set_where(struct ur_sim *sim, struct ur_sim_buf *b, enum ur_sim_where where)
{
	count(sim, b->where, -1);
	b->where = (uint8_t)where;
	count(sim, b->where, 1);
}

struct ur_sim_buf *ur_sim_buf_get(struct ur_sim *sim, enum ur_sim_where where)
{
	struct ur_sim_buf *b = ur_pool_take(&sim->free);

	if (!b)
		return NULL;
	b->where = UR_SIM_FREE; /* it may be one that was never used */
	ur_show(b->bytes, sizeof(b->bytes));
	b->pkt = (struct ur_pkt){.data = b->bytes + UR_SIM_HEADROOM, .room = UR_PKT_ROOM};
	b->more = NULL;
	b->damaged = b->merge = false;
	set_where(sim, b, where);
	return b;
}

void ur_sim_buf_put(struct ur_sim *sim, struct ur_sim_buf *b)
{
	set_where(sim, b, UR_SIM_FREE);
	ur_pool_give(&sim->free, b);
	ur_hide(b->bytes, sizeof(b->bytes));
}

struct ur_sim_buf *ur_sim_buf_copy(struct ur_sim *sim, const struct ur_sim_buf *from)
{
	struct ur_sim_buf *b = ur_sim_buf_get(sim, UR_SIM_FLYING);

	if (!b) {
		sim->stats.no_buffer++;
		return NULL;
	}
	memcpy(b->pkt.data, from->pkt.data, from->pkt.len);
	b->pkt.len = from->pkt.len;
	b->damaged = from->damaged;
	return b;
}

bool ur_sim_deliver(struct ur_sim_port *p, struct ur_sim_buf *b)
{
	if (p->sim->rx_ring && p->waiting >= p->sim->rx_ring) {
		p->sim->stats.ring_drops++;
		p->queue.rx_missed++;
		ur_sim_buf_put(p->sim, b);
		return false;
	}
	b->more = NULL;
	b->pkt.when = p->sim->now;
	b->pkt.next = NULL;
	*p->tail = &b->pkt;
	p->tail = &b->pkt.next;
	p->waiting++;
	p->sim->stats.delivered++;
	return true;
}

struct ur_pkt *ur_sim_pop(struct ur_sim_port *p)
{
	struct ur_pkt *pkt = p->head;

	p->head = pkt->next;
	if (!p->head) {
		p->tail = &p->head;
		p->run.last = NULL;
	}
	p->waiting--;
	pkt->next = NULL;
	pkt->home = &p->queue;
	set_where(p->sim, buf_of(pkt), UR_SIM_OUT);
	return pkt;
}

static unsigned rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_sim_port *p = port_of_queue(q);
	unsigned got = 0, all = 0;

	while (all < n && p->head) {
		if (q->caps & UR_QUEUE_BARE)
			pkts[got] = ur_sim_kernel_join(p);
		else
			pkts[got] = p->joins ? ur_sim_kernel_join_frames(p) : ur_sim_pop(p);
		all += ur_train_count(pkts[got++]);
	}
	return got;
}

static struct ur_pkt *alloc_train(struct ur_queue *q)
{
	struct ur_sim *sim = port_of_queue(q)->sim;
	struct ur_sim_train *t = ur_pool_take(&sim->free_trains);

	if (!t)
		return NULL;
	ur_show(t->bytes, sizeof(t->bytes));
	t->pkt = (struct ur_pkt){.data = t->bytes, .room = sizeof(t->bytes), .home = q};
	t->out = true;
	sim->outstanding++;
	return &t->pkt;
}

static bool is_train(const struct ur_sim *sim, const struct ur_pkt *p)
{
	return (const void *)p >= (const void *)sim->trains && (const void *)p < (const void *)(sim->trains + UR_SIM_TRAINS);
}

static bool is_out(const struct ur_sim *sim, struct ur_pkt *p)
{
	return is_train(sim, p) ? ur_container_of(p, struct ur_sim_train, pkt)->out : buf_of(p)->where == UR_SIM_OUT;
}

static unsigned alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_sim *sim = port_of_queue(q)->sim;
	unsigned got = 0;

	for (struct ur_sim_buf *b; got < n && (b = ur_sim_buf_get(sim, UR_SIM_OUT)); got++) {
		pkts[got] = &b->pkt;
		b->pkt.home = q;
	}
	return got;
}

static void give_train(struct ur_sim *sim, struct ur_sim_train *t)
{
	t->out = false;
	sim->outstanding--;
	ur_pool_give(&sim->free_trains, t);
	ur_hide(t->bytes, sizeof(t->bytes));
}

static void give_back(struct ur_sim *sim, struct ur_pkt *pkt)
{
	if (!is_out(sim, pkt)) {
		sim->stats.bad_free++;
		return;
	}
	ur_pkt_let_go(pkt);
	if (is_train(sim, pkt))
		give_train(sim, ur_container_of(pkt, struct ur_sim_train, pkt));
	else
		ur_sim_buf_put(sim, buf_of(pkt));
}

static void release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		give_back(port_of_queue(q)->sim, pkts[i]);
}

/* False, and it counts: it is no packet to send. */
static bool departs(struct ur_sim_port *p, struct ur_pkt *pkt)
{
	uint32_t len;

	if (!is_out(p->sim, pkt)) {
		p->sim->stats.bad_free++;
		return false;
	}
	len = pkt->stride ? pkt->bth_off + pkt->stride : ur_pkt_frame_len(pkt);
	if (len <= UR_PKT_ROOM && len >= 14)
		return true;
	p->sim->stats.mtu_drops++;
	give_back(p->sim, pkt);
	return false;
}

static unsigned tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_sim_port *p = port_of_queue(q);
	struct ur_sim *sim = p->sim;

	if (n > 1 && ur_sim_happens(sim, p->tx.link.busy)) {
		n = 1 + ur_rng_below(&sim->rng, n - 1);
		sim->stats.busy++;
	}
	for (unsigned i = 0; i < n; i++) {
		struct ur_sim_buf *unit;

		if (!departs(p, pkts[i]))
			continue;
		unit = ur_sim_unit_make(p, pkts[i]);
		give_back(sim, pkts[i]);
		if (unit)
			ur_sim_send(p, unit);
	}
	return n;
}

static int set_mcast(struct ur_port *port, const struct ur_mac *macs, unsigned n)
{
	struct ur_sim_port *p = port_of(port);

	if (n > UR_SIM_MCAST)
		return ENOSPC;
	if (n)
		memcpy(p->mcast, macs, n * sizeof(*macs));
	p->nmcast = n;
	return 0;
}

static int wake_fd(struct ur_queue *q)
{
	(void)q;
	return -1;
}

bool ur_sim_link_up(struct ur_port *port)
{
	const struct ur_sim_port *p = port_of(port);

	return !p->tx.link.down && !p->rx.link.down;
}

/* The fabric owns its ports: a port that is closed hears nothing any more. */
void ur_sim_close(struct ur_port *port)
{
	struct ur_sim_port *p = port_of(port);

	p->tx.link.down = p->rx.link.down = true;
	while (p->head) {
		struct ur_pkt *pkt = p->head;

		p->head = pkt->next;
		ur_sim_buf_put(p->sim, buf_of(pkt));
	}
	p->tail = &p->head;
	p->waiting = 0;
	p->run.last = NULL;
}

static const struct ur_queue_ops queue_ops = {
	.rx = rx,
	.tx = tx,
	.alloc = alloc,
	.alloc_train = alloc_train,
	.release = release,
	.wake_fd = wake_fd,
};

static const struct ur_port_ops ops = {
	.set_mcast = set_mcast,
	.link_up = ur_sim_link_up,
	.close = ur_sim_close,
};

static void init_port(struct ur_sim *sim, unsigned i, const struct ur_sim_config *cfg)
{
	const struct ur_sim_link *tx = &cfg->tx;
	struct ur_sim_port *p = &sim->ports[i];
	uint16_t mtu = tx->mtu && tx->mtu < MTU_FULL ? tx->mtu : MTU_FULL;

	p->sim = sim;
	p->index = i;
	p->tail = &p->head;
	p->tx.link = *tx;
	p->queue = (struct ur_queue){.ops = &queue_ops, .train_pkts = cfg->train_pkts, .train_bytes = cfg->train_bytes};
	p->port = (struct ur_port){.ops = &ops, .queue = &p->queue, .mtu = mtu, .speed_mbps = tx->rate_mbps ? tx->rate_mbps : 100000};
	p->port.mac = (struct ur_mac){{0x02, 0x75, 0x72, 0, 0, (uint8_t)(i + 1)}};
	memcpy(p->port.name, "sim", 4);
	p->port.name[3] = (char)('0' + i / 10);
	p->port.name[4] = (char)('0' + i % 10);
}

struct ur_sim *ur_sim_create(const struct ur_sim_config *cfg)
{
	struct ur_sim *sim;

	if (!cfg->ports || cfg->ports > UR_SIM_PORTS)
		return NULL;
	sim = calloc(1, sizeof(*sim) + cfg->ports * sizeof(sim->ports[0]));
	if (!sim)
		return NULL;
	sim->rng.state = cfg->seed;
	sim->npkts = cfg->npkts ? cfg->npkts : NPKTS_DEFAULT;
	sim->spare = cfg->spare;
	sim->rx_ring = cfg->rx_ring;
	sim->nports = cfg->ports;
	sim->bufs = malloc((sim->npkts + sim->spare) * sizeof(*sim->bufs));
	sim->heap = malloc((sim->npkts + sim->spare) * sizeof(*sim->heap));
	sim->trains = malloc(UR_SIM_TRAINS * sizeof(*sim->trains));
	if (!sim->bufs || !sim->heap || !sim->trains) {
		ur_sim_destroy(sim);
		return NULL;
	}
	ur_pool_init(&sim->free, sim->bufs, sim->npkts, sizeof(*sim->bufs));
	ur_pool_init(&sim->free_trains, sim->trains, UR_SIM_TRAINS, sizeof(*sim->trains));
	for (unsigned i = 0; i < sim->nports; i++)
		init_port(sim, i, cfg);
	return sim;
}

void ur_sim_destroy(struct ur_sim *sim)
{
	if (!sim)
		return;
	for (struct ur_sim_buf *b = sim->bufs; b && (uint8_t *)b < sim->free.fresh; b++)
		ur_show(b->bytes, sizeof(b->bytes));
	for (struct ur_sim_train *t = sim->trains; t && (uint8_t *)t < sim->free_trains.fresh; t++)
		ur_show(t->bytes, sizeof(t->bytes));
	ur_fault_flows_destroy(sim->flows);
	free(sim->bufs);
	free(sim->trains);
	free(sim->heap);
	free(sim);
}

struct ur_port *ur_sim_port(struct ur_sim *sim, unsigned i)
{
	return &sim->ports[i].port;
}

struct ur_sim_link *ur_sim_tx(struct ur_sim *sim, unsigned i)
{
	return &sim->ports[i].tx.link;
}

struct ur_sim_link *ur_sim_rx(struct ur_sim *sim, unsigned i)
{
	return &sim->ports[i].rx.link;
}

void ur_sim_share(struct ur_sim *sim, unsigned i, unsigned with)
{
	sim->ports[i].port.mac = sim->ports[with].port.mac;
}

void ur_sim_set_slot(struct ur_sim *sim, unsigned i, uint8_t slot)
{
	sim->ports[i].slot = slot;
	sim->slots = true;
}

void ur_sim_set_addr(struct ur_sim *sim, unsigned i, const struct ur_gid *addr)
{
	sim->ports[i].addr = *addr;
}

void ur_sim_set_bare(struct ur_sim *sim, unsigned i)
{
	sim->ports[i].queue.caps |= UR_QUEUE_BARE;
	sim->ports[i].port.ops = &ur_sim_bare_ops;
}

void ur_sim_set_joins(struct ur_sim *sim, unsigned i)
{
	sim->ports[i].joins = true;
}

const struct ur_sim_stats *ur_sim_stats(const struct ur_sim *sim)
{
	return &sim->stats;
}

unsigned ur_sim_outstanding(const struct ur_sim *sim)
{
	return sim->outstanding;
}

unsigned ur_sim_in_flight(const struct ur_sim *sim)
{
	return sim->flying;
}

ur_time ur_sim_queued_until(const struct ur_sim *sim)
{
	ur_time until = sim->now;

	for (unsigned i = 0; i < sim->nports; i++) {
		const struct ur_sim_port *p = &sim->ports[i];

		until = p->tx.busy_until > until ? p->tx.busy_until : until;
		until = p->rx.busy_until > until ? p->rx.busy_until : until;
	}
	return until;
}
