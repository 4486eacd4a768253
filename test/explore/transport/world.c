/* SPDX-License-Identifier: BSD-3-Clause */
/* Time passes when a timer expires, and only then: what arrives, arrives at once. */
#include "test/explore/transport/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/explore/arena.h"
#include "wire/bulk.h"
#include "wire/row.h"

#define IOVA 0x100000u

struct world *w;

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "explore: cannot set up: %s\n", what);
	exit(2);
}

/* --- what a transport asks of its NIC --- */

static unsigned pkt_alloc(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct node *node = ctx;
	unsigned got = 0;

	for (; got < n && node->free; got++) {
		struct ur_pkt *p = &node->pkt[__builtin_ctz(node->free)];

		node->free &= node->free - 1;
		ur_pkt_clear(p);
		p->len = 0;
		pkts[got] = p;
	}
	return got;
}

static void pkt_free(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct node *node = ctx;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < pkts[i]->nseg; k++)
			ur_ref_put(pkts[i]->seg[k].ref);
		node->free |= 1u << (pkts[i] - node->pkt);
	}
}

static void on_event(struct ur_qp *qp, enum ibv_event_type ev)
{
	(void)qp;
	if (ev != IBV_EVENT_COMM_EST && !w->s->rd_n)
		violation("asynchronous event %d", (int)ev);
}

static void on_notify(struct ur_cq *cq)
{
	(void)cq;
}

/* --- setting up --- */

static void path_open(unsigned i)
{
	static const struct ur_mac mac[NODES] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};
	struct ur_path *path = &w->node[i].path;
	struct ur_gid gid[NODES];

	for (unsigned k = 0; k < NODES; k++) {
		const uint8_t v4[4] = {10, 0, 0, (uint8_t)(k + 1)};
		uint32_t addr;

		memcpy(&addr, v4, 4);
		gid[k] = ur_gid_from_v4(addr);
	}
	ur_path_build(path, &mac[i], &mac[!i], 0, &gid[i], &gid[!i], 0, 64, 0, 0xc123);
	path->ready = true;
}

static void end_open(struct node *n, struct end *e)
{
	struct ur_qp_init init = {
		.type = IBV_QPT_RC,
		.pd = n->pd,
		.cap = {8, 8, 1, 1, 0},
		.event = on_event,
		.srq = n->srq,
	};
	struct ur_tp *tp = n->tp[e - n->end];

	need(ur_cq_create(tp, 16, e, on_notify, &e->scq) == 0 && ur_cq_create(tp, 16, e, on_notify, &e->rcq) == 0, "completion queues");
	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	need(ur_qp_create(tp, &init, &e->qp) == 0, "a QP");
}

/* --- lanes --- */

/*
 * Lanes run at the same time, and a lane's packet may do anything between two steps of another one's. Here that shows where memory is
 * touched, which is on-demand memory for that reason: what a WRITE has checked before must still be so afterwards.
 */
static void run_other_lane(void)
{
	const unsigned k = w->meanwhile;

	w->meanwhile = 0;
	if (k)
		world_deliver(0, k - 1, false, false);
}

static bool populate(void *at, uint64_t len, bool write)
{
	(void)at;
	(void)len;
	(void)write;
	return true;
}

static bool copy(void *to, const void *from, uint64_t len, bool write)
{
	(void)write;
	run_other_lane();
	memcpy(to, from, len);
	return true;
}

static void lanes_open(struct node *n, struct ur_tp_config c)
{
	struct ur_srq_init init = {.pd = n->pd, .attr = {.max_wr = MESSAGES, .max_sge = 1}};

	n->lanes = w->s->lanes && n != w->node ? LANES : 1;
	for (unsigned k = 1; k < LANES; k++) {
		n->tp[k] = n->tp[0];
		if (k >= n->lanes)
			continue;
		c.slot = (uint8_t)(NODES + k);
		need(ur_tp_create(&c, &n->tp[k]) == 0 && ur_tp_join(n->tp[k], n->tp[0]) == 0, "a lane");
	}
	if (n->lanes == 1)
		return;
	need(ur_srq_create(n->tp[0], &init, &n->srq) == 0, "an SRQ");
	for (unsigned k = 1; k < n->lanes; k++)
		ur_srq_share(n->srq, n->tp[k]);
}

/* Of the lanes of the node that it is for. */
static struct ur_tp *lane_of(const struct node *n, const struct ur_pkt *p)
{
	for (unsigned k = 1; k < n->lanes; k++)
		if (ur_slot_of(p->bth.dqpn) == n->tp[k]->c.slot)
			return n->tp[k];
	return n->tp[0];
}

static void node_open(unsigned i)
{
	struct node *n = &w->node[i];
	const struct ur_seed seed = ur_seed_of(i + 1);
	unsigned qps = 0;
	const struct ur_tp_config c = {
		.ctx = n,
		.alloc = pkt_alloc,
		.free = pkt_free,
		.wheel = n->wheel = ur_wheel_create(w->now),
		.counters = &n->counters,
		.random = &n->random,
		.slot = (uint8_t)(i + 1),
		.window = w->s->window,
		.cwnd = w->s->cwnd,
		.plain_recovery = w->s->plain,
		.selective_repeat = w->s->keeps[i],
		.reorder_bytes = w->s->reorder_bytes ? w->s->reorder_bytes : 1u << 20,
		.cc = w->s->mbps != 0,
		.populate = populate,
		.copy = copy,
	};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	arena_cold(true); /* what is built in them is gone before a step ends */
	for (unsigned k = 0; k < ur_array_size(n->pkt); k++)
		n->pkt[k] = (struct ur_pkt){.data = malloc(UR_PKT_ROOM), .room = UR_PKT_ROOM};
	arena_cold(false);
	arena_cold_size(UR_TOKENS * sizeof(uint64_t)); /* nobody looks at them, and they change when a QP fails */
	n->free = (1u << ur_array_size(n->pkt)) - 1;
	ur_random_init(&n->random, &seed);
	need(ur_tp_create(&c, &n->tp[0]) == 0 && ur_pd_create(n->tp[0], &n->pd) == 0, "a transport");
	lanes_open(n, c);
	for (unsigned k = 0; k < n->lanes; k++) {
		ur_tp_set_copies(n->tp[k], true);
		ur_tp_set_speed(n->tp[k], w->s->mbps);
	}
	while (qps < QPS && w->s->post[qps][0])
		qps++;
	n->mem = malloc(qps * sizeof(*n->mem));
	memset(n->mem, 0xee, qps * sizeof(*n->mem));
	access |= n->lanes > 1 ? IBV_ACCESS_ON_DEMAND : 0;
	need(ur_mr_reg(n->tp[0], n->pd, n->mem, qps * sizeof(*n->mem), IOVA, access, &n->mr) == 0, "a memory region");
	path_open(i);
	for (unsigned q = 0; q < qps; q++) {
		n->end[q].mem = &n->mem[q];
		n->mem[q].word = 0;
		end_open(n, &n->end[q]);
	}
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                                                                           \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT)

static void connect(unsigned i, unsigned q)
{
	struct node *n = &w->node[i];
	struct ur_qp *qp = n->end[q].qp;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = ur_qp_num(w->node[!i].end[q].qp),
		.rq_psn = w->s->psn ? w->s->psn : 100,
		.sq_psn = w->s->psn ? w->s->psn : 100,
		.max_dest_rd_atomic = w->s->rd_n     ? w->s->rd_n
				      : w->s->max_rd ? w->s->max_rd
						     : 4,
		.max_rd_atomic = w->s->max_rd ? w->s->max_rd : 4,
		.min_rnr_timer = 31, /* half a second: after three of them nobody remembers what was before */
		.timeout = 8,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	need(ur_qp_modify(qp, &a, INIT_MASK, NULL, w->now) == 0, "INIT");
	a.qp_state = IBV_QPS_RTR;
	need(ur_qp_modify(qp, &a, RTR_MASK, &n->path, w->now) == 0, "RTR");
	a.qp_state = IBV_QPS_RTS;
	need(ur_qp_modify(qp, &a, RTS_MASK, NULL, w->now) == 0, "RTS");
}

void world_open(const struct scenario *s)
{
	w = calloc(1, sizeof(*w));
	w->s = s;
	w->now = UR_NS_PER_S;
	for (unsigned i = 0; i < NODES * WIRE_FRAMES; i++)
		w->wire[i / WIRE_FRAMES].order[i % WIRE_FRAMES] = (uint8_t)(i % WIRE_FRAMES);
	for (unsigned i = 0; i < NODES; i++)
		node_open(i);
	for (unsigned q = 0; q < QPS && s->post[q][0]; q++)
		for (unsigned i = 0; i < NODES; i++)
			connect(i, q);
}

/* The same in each process, so that hashes are. */
uint64_t world_address(unsigned node, const void *at)
{
	return IOVA + (uint64_t)((const uint8_t *)at - (const uint8_t *)w->node[node].mem);
}

/* --- the wire --- */

static void put_frame(struct wire *wire, struct ur_pkt *p)
{
	struct frame *f;
	uint8_t *to;

	if (!(p->flags & UR_PKT_COMPLETE))
		ur_frame_finish(p, p->bth.pad);
	if (wire->n == WIRE_FRAMES || ur_pkt_frame_len(p) > WIRE_ROOM) {
		violation(wire->n == WIRE_FRAMES ? "more frames on the wire than it holds" : "a frame that is longer than the MTU allows");
		return;
	}
	f = &wire->frame[wire->order[wire->n++]];
	to = ur_pkt_gather(p, 0, f->bytes);
	f->len = (uint32_t)(to - f->bytes);
}

void world_send(unsigned from)
{
	struct node *n = &w->node[from];
	struct ur_pkt *p[BURST];
	unsigned got;

	for (unsigned k = 0; k < n->lanes; k++)
		while (!violated() && (got = ur_tp_tx(n->tp[k], p, BURST, w->now))) {
			for (unsigned i = 0; i < got; i++)
				put_frame(&w->wire[from], p[i]);
			pkt_free(n, p, got);
		}
}

static void take_frame(struct wire *wire, unsigned k)
{
	const uint8_t which = wire->order[k];

	memmove(&wire->order[k], &wire->order[k + 1], --wire->n - k);
	wire->order[wire->n] = which;
}

static bool parse(struct frame *f, struct ur_pkt *p)
{
	struct ur_counters c = {{0}};

	*p = (struct ur_pkt){.data = f->bytes, .len = f->len, .room = WIRE_ROOM};
	return ur_frame_parse(p, &c) && p->kind == UR_PKT_ROCE;
}

void world_deliver(unsigned from, unsigned k, bool stays, bool marked)
{
	struct frame f = w->wire[from].frame[w->wire[from].order[k]];
	struct ur_pkt p;

	if (!stays)
		take_frame(&w->wire[from], k);
	if (!parse(&f, &p)) {
		violation("a frame that cannot be parsed");
		return;
	}
	p.tos |= marked ? 3 : 0;
	ur_tp_rx(lane_of(&w->node[!from], &p), &p, w->now);
}

unsigned world_other(unsigned from)
{
	const struct node *n = &w->node[!from];
	struct ur_tp *first = NULL;

	for (unsigned k = 0; k < w->wire[from].n && n->lanes > 1; k++) {
		struct frame f = w->wire[from].frame[w->wire[from].order[k]];
		struct ur_pkt p;

		if (!parse(&f, &p))
			return 0;
		if (k && lane_of(n, &p) != first)
			return k;
		first = lane_of(n, &p);
	}
	return 0;
}

void world_deliver_two(unsigned from)
{
	w->meanwhile = world_other(from); /* and the first is gone by then */
	world_deliver(from, 0, false, false);
	w->meanwhile = 0;
}

/* As a NIC does with a burst: what is alike goes by ur_tp_rx_run. */
void world_deliver_all(unsigned from)
{
	static struct frame f[WIRE_FRAMES];
	static struct ur_pkt p[WIRE_FRAMES];
	struct ur_pkt *all[WIRE_FRAMES];
	struct ur_tp *tp = w->node[!from].tp[0];
	const unsigned n = w->wire[from].n;

	for (unsigned i = 0; i < n; i++) {
		f[i] = w->wire[from].frame[w->wire[from].order[i]];
		p[i] = (struct ur_pkt){.data = f[i].bytes, .len = f[i].len, .room = WIRE_ROOM};
		all[i] = &p[i];
	}
	w->wire[from].n = 0;
	for (unsigned i = 0; i < n;) {
		struct ur_row row;

		if (!parse(&f[i], &p[i])) {
			violation("a frame that cannot be parsed");
			return;
		}
		ur_tp_rx(tp, &p[i++], w->now);
		if (ur_row_of_burst(&row, &p[i - 1], all + i, n - i))
			i += ur_tp_rx_run(tp, &row, w->now);
	}
}

void world_drop(unsigned from)
{
	take_frame(&w->wire[from], 0);
}

void world_delay(unsigned from, bool copy)
{
	struct wire *wire = &w->wire[from];
	const struct frame f = wire->frame[wire->order[0]];

	if (wire->n == WIRE_FRAMES) {
		violation("more frames on the wire than it holds");
		return;
	}
	if (!copy)
		take_frame(wire, 0);
	wire->frame[wire->order[wire->n++]] = f;
}

void world_describe(unsigned from, unsigned k, char *text, size_t size)
{
	struct frame f = w->wire[from].frame[w->wire[from].order[k]];
	const struct ur_opcode_info *op;
	struct ur_aeth a = {0};
	struct ur_pkt p;

	if (!parse(&f, &p)) {
		snprintf(text, size, "not a packet");
		return;
	}
	op = ur_opcode(p.bth.opcode);
	if (op->flags & UR_OPF_AETH)
		ur_aeth_get(p.data + p.bth_off + UR_BTH_LEN + op->off_aeth, &a);
	snprintf(text, size, "%s psn %u%s%s, %u bytes", op->name, p.bth.psn, p.bth.ackreq ? ", asks" : "",
		 op->flags & UR_OPF_AETH && ur_syndrome_type(a.syndrome) == UR_AETH_NAK   ? ", NAK"
		 : op->flags & UR_OPF_AETH && ur_syndrome_type(a.syndrome) == UR_AETH_RNR ? ", RNR NAK"
											  : "",
		 p.payload_len);
}

/* --- time --- */

ur_time world_timer(unsigned node)
{
	ur_time t = ur_wheel_next(w->node[node].wheel);

	return t == UR_TIME_NEVER ? t : ur_max_time(t, w->now);
}

/* The wheel's next time may come before that of any timer: then there is nothing to see yet. */
void world_expire(unsigned node)
{
	while (world_timer(node) != UR_TIME_NEVER) {
		w->now = world_timer(node);
		if (ur_wheel_advance(w->node[node].wheel, w->now))
			return;
	}
}
