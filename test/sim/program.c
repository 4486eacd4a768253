/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of actions, and the run of a program: actions at random moments, then an end that leaves nothing open. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/trace_text.h"
#include "test/sim/prog.h"

#define STEPS_MAX 3000000

void broke(struct prog *p, const char *fmt, ...)
{
	va_list ap;

	if (p->broken[0])
		return;
	va_start(ap, fmt);
	vsnprintf(p->broken, sizeof(p->broken), fmt, ap);
	va_end(ap);
	SAY(p, "BROKEN: %s", p->broken);
}

void say(struct prog *p, const char *fmt, ...)
{
	va_list ap;

	printf("%14.3f us  ", (double)(p->w.now - UR_NS_PER_S) / 1000);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* --- time --- */

/* A queue that reports that it is drained completes nothing more until it is told to go on. */
static void freeze(struct prog *p)
{
	for (unsigned i = 0; i < p->nqp; i++) {
		struct sim_qp *q = &p->qp[i];

		if (!q->drained || q->frozen || !q->sqd)
			continue;
		reap(p, q->scq, UINT32_MAX);
		q->frozen = true;
	}
}

static void go(struct prog *p, ur_time until)
{
	do {
		world_step(&p->w, until);
		freeze(p);
		if (++p->steps > STEPS_MAX)
			broke(p, "packets move for ever, and nothing comes of it");
	} while (p->w.now < until && !p->broken[0]);
}

/* --- breaking and healing --- */

static bool in_error(const struct sim_qp *q)
{
	return q->qp && q->life != DOWN && ur_qp_state(q->qp) == IBV_QPS_ERR;
}

static bool needs_healing(const struct sim_qp *q)
{
	const struct sim_qp *o = q->peer;

	return (q->life != DOWN || o->life != DOWN) && (q->life != UP || o->life != UP || in_error(q) || in_error(o));
}

static void end_side(struct prog *p, struct sim_qp *q)
{
	if (!q->qp || q->life == DOWN)
		return;
	end_unsignalled(p, q);
	if (q->shead != q->stail || q->own.head != q->own.tail)
		broke(p, "qp %u: %u sends and %u receives were not flushed", q->index, q->stail - q->shead, q->own.tail - q->own.head);
	if (q->rq->srq && !(q->seen & 1u << IBV_EVENT_QP_LAST_WQE_REACHED))
		broke(p, "qp %u: no event has told that it uses no more receives of its SRQ", q->index);
	close_epoch(p, q);
}

/* Takes both sides of a connection to ERR, sees that everything is flushed, and leaves them reset or destroyed. */
static void heal(struct prog *p, struct sim_qp *q)
{
	struct sim_qp *side[2] = {q, q->peer};
	unsigned n = q == q->peer ? 1 : 2;

	SAY(p, "qp %u and %u: to be ended", q->index, q->peer->index);
	for (unsigned i = 0; i < n; i++) {
		if (!side[i]->qp || side[i]->life == DOWN)
			continue;
		ring(p, side[i]);
		if (qp_to(p, side[i], IBV_QPS_ERR))
			broke(p, "qp %u: cannot be taken to ERR", side[i]->index);
	}
	go(p, p->w.now);
	reap_all(p);
	for (unsigned i = 0; i < n; i++)
		end_side(p, side[i]);
	for (unsigned i = 0; i < n; i++) {
		if (side[i]->qp && one_in(p, 2))
			qp_destroy(p, side[i]);
		else if (side[i]->qp && side[i]->life != DOWN)
			qp_reset(p, side[i]);
	}
}

/* --- actions --- */

static struct sim_qp *any_qp(struct prog *p)
{
	return &p->qp[below(p, p->nqp)];
}

static void act_send(struct prog *p)
{
	struct sim_qp *q = any_qp(p);
	unsigned n = 1 + below(p, 4), done = 0;

	while (done < n && post_send(p, q, false))
		done++;
	if (done)
		ring(p, q);
}

static void act_recv(struct prog *p)
{
	struct sim_qp *q = any_qp(p);
	unsigned n = p->stingy ? 1 + below(p, p->rq_wr) : UINT32_MAX, done = 0;

	while (done < n && q->receives && post_recv(p, q->rq, false))
		done++;
	if (done && q->qp)
		ring(p, q);
}

static void act_poll(struct prog *p)
{
	struct sim_host *h = &p->host[below(p, WORLD_HOSTS)];

	reap(p, &h->cq[below(p, h->ncq)], 1 + below(p, 20));
}

static void act_wait(struct prog *p)
{
	go(p, p->w.now + ur_rng_u64(&p->rng) % (p->pace << below(p, 4)));
	if (is_quiet(p))
		for (unsigned i = 0; i < WORLD_HOSTS; i++)
			boards_quiet(&p->host[i].m, ++p->clock);
}

static void act_step(struct prog *p)
{
	go(p, p->w.now);
}

static void act_arm(struct prog *p)
{
	struct sim_host *h = &p->host[below(p, WORLD_HOSTS)];
	struct sim_cq *c = &h->cq[below(p, h->ncq)];

	ur_cq_arm(c->cq, false);
	reap(p, c, UINT32_MAX);
	c->notified = 0;
	c->armed_empty = true;
	ur_cq_arm(c->cq, false);
}

static void act_break(struct prog *p)
{
	struct sim_qp *q = any_qp(p);

	if (!p->breaks || q->life != UP || !one_in(p, 12))
		return;
	switch (below(p, 3)) {
	case 0:
		if (qp_to(p, q, IBV_QPS_ERR))
			broke(p, "qp %u: cannot be taken to ERR", q->index);
		break;
	case 1: qp_reset(p, q); break;
	default: qp_destroy(p, q);
	}
}

static void act_heal(struct prog *p)
{
	struct sim_qp *q = any_qp(p);

	if (needs_healing(q))
		heal(p, q);
}

/* A CQ may grow and shrink as long as all that may complete finds room. */
static void act_resize(struct prog *p)
{
	struct sim_host *h = &p->host[below(p, WORLD_HOSTS)];
	struct sim_cq *c = &h->cq[below(p, h->ncq)];

	if (ur_cq_resize(c->cq, cq_room(p) * (1 + below(p, 3))))
		broke(p, "host %u, CQ %u: cannot be resized", c->host, c->index);
}

static void act_connect(struct prog *p)
{
	struct sim_qp *q = any_qp(p), *o = q->peer;

	if (q->life != DOWN || o->life != DOWN || p->w.now < q->ready_at || p->w.now < o->ready_at)
		return;
	if ((!q->qp && !qp_create(p, q)) || (!o->qp && !qp_create(p, o)))
		broke(p, "qp %u: cannot be made again", q->index);
	else
		qp_connect(p, q);
}

static void act_memory(struct prog *p)
{
	unsigned host = below(p, WORLD_HOSTS);
	enum key_id id = one_in(p, 2) ? K_VOLATILE : K_SLOTS2;

	if (!p->breaks)
		return;
	if (p->host[host].key[id].mr && p->host[host].lanes > 1 && one_in(p, 2))
		key_reregister(p, host, id);
	else if (p->host[host].key[id].mr)
		key_deregister(p, host, id);
	else if (!key_register(p, host, id))
		broke(p, "host %u: cannot register memory again", host);
}

static void resume(struct prog *p, struct sim_qp *q)
{
	q->sqd = q->frozen = false;
	q->drained = 0;
	if (!in_error(q) && qp_to(p, q, IBV_QPS_RTS))
		broke(p, "qp %u: cannot go on after SQD", q->index);
}

static void act_drain(struct prog *p)
{
	struct sim_qp *q = any_qp(p);

	if (q->life != UP || !q->sends || ur_qp_state(q->qp) == IBV_QPS_ERR || ur_qp_state(q->qp) == IBV_QPS_SQE)
		return;
	if (q->sqd && (q->drained || one_in(p, 4))) {
		resume(p, q);
	} else if (!q->sqd && one_in(p, 4)) {
		q->sqd = true;
		if (qp_to(p, q, IBV_QPS_SQD))
			broke(p, "qp %u: cannot be drained", q->index);
	}
}

/* A QP whose send queue alone has failed goes on where it stopped. */
static void recover(struct prog *p, struct sim_qp *q)
{
	ring(p, q);
	go(p, p->w.now);
	reap(p, q->scq, UINT32_MAX);
	if (q->shead != q->stail || !q->send_failed)
		broke(p, "qp %u: in SQE, and %u sends were not flushed", q->index, q->stail - q->shead);
	q->sqd = q->frozen = q->send_failed = false;
	q->drained = 0;
	if (!p->broken[0] && ur_qp_state(q->qp) == IBV_QPS_SQE && qp_to(p, q, IBV_QPS_RTS))
		broke(p, "qp %u: cannot go on after SQE", q->index);
}

static void act_recover(struct prog *p)
{
	struct sim_qp *q = any_qp(p);

	if (q->life == UP && ur_qp_state(q->qp) == IBV_QPS_SQE)
		recover(p, q);
}

static void act_limit(struct prog *p)
{
	srq_limit(p, &p->host[below(p, WORLD_HOSTS)].srq[below(p, SRQS)]);
}

static void act_address(struct prog *p)
{
	drop_ah(p, &p->host[below(p, WORLD_HOSTS)], below(p, WORLD_HOSTS + 1));
}

static const struct action {
	const char *name;
	void (*act)(struct prog *p);
	unsigned weight;
} actions[] = {
	{"post sends", act_send, 24}, {"post receives", act_recv, 18}, {"poll", act_poll, 16},
	{"wait", act_wait, 24},       {"step", act_step, 6},           {"arm", act_arm, 3},
	{"break", act_break, 3},      {"heal", act_heal, 6},           {"connect", act_connect, 6},
	{"memory", act_memory, 2},    {"drain", act_drain, 3},         {"recover", act_recover, 4},
	{"limit", act_limit, 1},      {"address", act_address, 1},     {"window", act_window, 1},
	{"resize", act_resize, 1},
};

const char *action_name(unsigned i)
{
	return i < ur_array_size(actions) ? actions[i].name : NULL;
}

static void act(struct prog *p)
{
	unsigned sum = 0, pick, i = 0;

	for (unsigned k = 0; k < ur_array_size(actions); k++)
		sum += actions[k].weight;
	for (pick = below(p, sum); pick >= actions[i].weight; i++)
		pick -= actions[i].weight;
	p->stats->actions[i]++;
	actions[i].act(p);
}

/* --- the end --- */

/* What o has sent and q has not received needs receives; nobody waits for those of unreliable services. */
static bool feed(struct prog *p, struct sim_qp *q, const struct sim_qp *o)
{
	bool posted = false;

	if (!q->receives || !reliable(q) || o->delivered >= o->nrops)
		return false;
	if (q->rq->srq)
		return post_recv(p, q->rq, true);
	while (q->own.tail < o->nrops && post_recv(p, q->rq, true))
		posted = true;
	return posted;
}

/* Everything that is under way gets what it waits for. */
static void serve(struct prog *p, struct sim_qp *q)
{
	bool rang;

	if (needs_healing(q))
		heal(p, q);
	if (q->life != UP)
		return;
	if (ur_qp_state(q->qp) == IBV_QPS_SQE)
		recover(p, q);
	if (q->sqd)
		resume(p, q);
	rang = feed(p, q, q->peer);
	if (q->stail != q->shead && !p->ops[q->sent[q->stail - 1]].signaled)
		rang |= post_send(p, q, true);
	if (rang)
		ring(p, q);
}

bool all_done(const struct prog *p)
{
	for (unsigned i = 0; i < p->nqp; i++)
		if (needs_healing(&p->qp[i]) || p->qp[i].stail != p->qp[i].shead)
			return false;
	return true;
}

/* Until all is over, or that time has come. */
static void complete_all(struct prog *p, ur_time until)
{
	ur_time wait = p->pace, seen;

	p->progress = p->w.now;
	while (!p->broken[0] && !all_done(p) && p->w.now < until) {
		seen = p->progress;
		for (unsigned i = 0; i < p->nqp; i++)
			serve(p, &p->qp[i]);
		go(p, ur_min_time(p->w.now + wait, until));
		reap_all(p);
		if (p->faultless)
			liveness_check(p);
		wait = p->progress != seen ? p->pace : ur_min_time(2 * wait, 10 * UR_NS_PER_MS);
		if (p->w.now - p->progress > p->patience)
			broke(p, "nothing completes any more");
	}
}

static void quiet(struct prog *p)
{
	ur_time until = p->w.now + 2 * in_flight_time(p);

	go(p, until);
	while (!is_quiet(p) && !p->broken[0])
		go(p, p->w.now + p->pace);
}

/* The faults end at once, or after a while in which the last requests meet them. */
static void finish(struct prog *p)
{
	if (!p->faultless && one_in(p, 2))
		complete_all(p, p->w.now + ur_rng_u64(&p->rng) % (p->pace << below(p, 16)));
	if (!p->faultless)
		faults_end(p);
	liveness_begin(p);
	complete_all(p, UR_TIME_NEVER);
	for (unsigned i = 0; i < p->nqp && !p->broken[0]; i++)
		if (one_in(p, 2) && (p->qp[i].life != DOWN || p->qp[i].peer->life != DOWN))
			heal(p, &p->qp[i]);
	for (unsigned i = 0; i < p->nqp && !p->broken[0]; i++)
		if (p->qp[i].life != DOWN)
			close_epoch(p, &p->qp[i]);
	if (p->broken[0])
		return;
	quiet(p);
	reap_all(p);
	final_checks(p);
}

/* --- a seed --- */

static void watch(void *ctx, unsigned from, const uint8_t *frame, uint32_t len, const char *fate)
{
	struct prog *p = ctx;
	uint8_t opcode;
	uint32_t psn;

	if (ur_sim_bth(frame, len, &opcode, &psn))
		say(p, "  host %u sends opcode %#04x PSN %06x, %u bytes %s", from, opcode, psn, len, fate);
	else
		say(p, "  host %u sends another frame, %u bytes %s", from, len, fate);
}

/* What is on the wire is told by `watch`. */
static void on_trace(struct ur_trace *trace, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	struct sim_trace *t = ur_container_of(trace, struct sim_trace, trace);
	char text[UR_TRACE_LINE];

	if ((id == UR_TRACE_TX || id == UR_TRACE_RX) && !t->p->o.packets)
		return;
	ur_trace_line(text, id, v);
	say(t->p, "  NIC %u: %s", t->nic, text);
}

static void trace_nics(struct prog *p)
{
	for (unsigned i = 0; i < p->w.nnics; i++) {
		p->traces[i] = (struct sim_trace){{on_trace}, p, i};
		/* Not ur_nic_set_trace, which has long messages sent as packets: what happens would not be what is to be shown. */
		p->w.nic[i]->trace = &p->traces[i].trace;
		ur_tp_set_trace(p->w.nic[i]->tp, &p->traces[i].trace);
		ur_cm_set_trace(p->w.nic[i]->cm, &p->traces[i].trace);
	}
}

static void describe(struct prog *p)
{
	char text[1000];

	fabric_describe(&p->f, text, sizeof(text));
	printf("seed %llu\n%sprogram: %u QPs, path MTU %u, messages up to %u bytes, %u sends and %u receives a QP, %u pieces%s%s, pace "
	       "%.1f us\n",
	       (unsigned long long)p->o.seed, text, p->nqp, p->mtu_bytes, p->max_len, p->sq_wr, p->rq_wr, p->max_sge,
	       p->sins ? ", sins" : "", p->breaks ? ", breaks" : "", (double)p->pace / 1000);
	trace_nics(p);
	if (p->o.packets)
		ur_sim_watch(p->w.sim, watch, p);
}

static void run(struct prog *p)
{
	unsigned n = one_in(p, 4) ? 20 + below(p, 200) : 200 + below(p, 1600);
	unsigned end_at = one_in(p, 8) ? below(p, n) : n;
	const char *left = setup(p);

	if (left) {
		broke(p, "%s", left);
		return;
	}
	if (p->o.trace)
		describe(p);
	for (; p->actions < n && p->actions < p->o.max_actions && !p->broken[0]; p->actions++) {
		if (p->actions == end_at)
			faults_end(p);
		act(p);
	}
	SAY(p, "the end begins");
	finish(p);
	if (p->broken[0])
		return;
	left = teardown(p);
	if (left)
		broke(p, "%s", left);
}

static void add_fabric(const struct prog *p, struct stats *stats)
{
	const struct ur_sim_stats *st = ur_sim_stats(p->w.sim);
	const uint64_t trains[TRAIN_STATS] = {
		[T_SENT] = st->trains,       [T_SPLIT] = st->split,   [T_THINNED] = st->thinned,
		[T_MERGED] = st->merged,     [T_BUSY] = st->busy,     [T_UNSEEN] = st->unseen,
		[T_ANSWERED] = st->answered, [T_JOINED] = st->joined, [T_BARE] = p->f.port[0].bare + p->f.port[1].bare};

	stats->frames += st->sent;
	stats->fetches += p->w.fetches;
	stats->unfetched += p->w.unfetched;
	stats->one_host += p->f.one.host;
	stats->lanes += fabric_has_lanes(&p->f);
	stats->break_ins += p->w.break_ins;
	stats->peers[p->f.port[0].selective + p->f.port[1].selective]++;
	for (unsigned i = 0; i < p->w.nnics; i++) {
		stats->bulk += p->w.mail[i].bulk;
		stats->other_slot += p->w.nic[i]->counters.v[UR_C_RX_OTHER_SLOT];
	}
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		stats->keepless += p->f.port[i].selective && p->f.port[i].reorder_bytes == KEEPS_NOTHING;
	for (unsigned i = 0; i < TRAIN_STATS; i++)
		stats->trains[i] += trains[i];
}

const char *prog_run(const struct prog_options *o, struct stats *stats, unsigned *done)
{
	static struct prog prog;
	static struct sim_op ops[OPS_MAX];
	static struct sim_recv recvs[RECVS_MAX];
	struct prog *p = &prog;
	struct ur_rng lanes;
	unsigned leaked;

	memset(p, 0, sizeof(*p));
	p->o = *o;
	p->stats = stats;
	p->ops = ops;
	p->recvs = recvs;
	lanes.state = ~o->seed;
	lanes.state = ur_rng_u64(&lanes);
	p->rng.state = ur_rng_u64(&(struct ur_rng){.state = o->seed}); /* mixed: neighbours have nothing in common */
	fabric_random(&p->f, &p->rng);
	if (one_in(p, 8) || o->one_host)
		fabric_one_host(&p->f, &p->rng);
	if (!ur_rng_below(&lanes, 4) || o->lanes) /* by numbers of their own: what all else of the seed is does not depend on them */
		fabric_lanes(&p->f, &lanes);
	world_init(&p->w, ur_rng_u64(&p->rng), &p->f);
	run(p);
	for (unsigned i = 0; i < p->w.nnics * UR_C_COUNT; i++)
		stats->counters[i % UR_C_COUNT] += p->w.nic[i / UR_C_COUNT]->counters.v[i % UR_C_COUNT];
	add_fabric(p, stats);
	stats->virtual_ms += (p->w.now - UR_NS_PER_S) / UR_NS_PER_MS;
	*done = p->actions;
	if (p->broken[0])
		return p->broken; /* what is left of the world is not worth the risk of taking it down */
	leaked = world_fini(&p->w);
	if (leaked)
		broke(p, "%u packet buffers leaked", leaked);
	return p->broken[0] ? p->broken : NULL;
}
