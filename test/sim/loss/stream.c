/* SPDX-License-Identifier: BSD-3-Clause */
/* See stream.h. */
#include "test/sim/loss/stream.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "wire/frame.h"

#define CHUNK (128u << 10) /* of one work request */
#define DEPTH 256          /* work requests under way: more than a window, and what waits for a hole to be filled */
#define RECVS (2 * DEPTH)  /* posted at host 0 */
#define STANDARD_WINDOW 512
#define PING 64   /* bytes */
#define RING 4096 /* frames that wait at a host that does nothing, as in a socket's buffer or a NIC's ring */
#define STEPS 64  /* of a span: how exactly it is said when a stream has come to life */
#define CONNECTIONS (STREAM_SENDERS + STREAM_PINGERS)
#define HOSTS (STREAM_SENDERS + 2)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct end { /* of a connection */
	struct ur_nic *nic;
	struct ur_cq *cq;
	struct ur_qp *qp;
	struct ur_net_path path;
};

struct stream {
	const struct stream_opt *o;
	struct ur_sim *sim;
	ur_time now;
	unsigned hosts;
	struct ur_nic *nic[HOSTS];
	struct ur_pd *pd[HOSTS];
	struct ur_mr *mr[HOSTS];
	struct ur_gid gid[HOSTS];
	uint8_t *mem[HOSTS];
	unsigned connections;           /* those of the senders and after them those of the pings */
	struct end end[CONNECTIONS][2]; /* at the sender, at host 0 */
	unsigned under_way[CONNECTIONS];
	bool dead[CONNECTIONS];
	bool asleep; /* host 0 */
	ur_time ping_sent[STREAM_PINGERS];
	uint64_t pings;
	struct ur_rng rng;
	bool paused[HOSTS]; /* `late` */
	ur_time turn[HOSTS]; /* when that changes */
	unsigned owed[CONNECTIONS]; /* receives that host 0 has not posted again */
	ur_time posts_at;
	struct stream_result *out;
};

static uint32_t chunk(const struct stream_opt *o)
{
	return o->chunk ? o->chunk : CHUNK;
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "stream: cannot set up: %s\n", what);
	exit(2);
}

static void no_notify(struct ur_cq *cq)
{
	(void)cq;
}

const char *const stream_congestion_name[STREAM_CONGESTIONS] = {"auto", "window", "dcqcn", "off"};

static const uint8_t follow_when[STREAM_CONGESTIONS] = {UR_CWND_LOSSES, UR_CWND_ALWAYS, UR_CWND_NEVER, UR_CWND_NEVER};

static void init_host(struct stream *s, unsigned i)
{
	struct ur_port *port = ur_sim_port(s->sim, i);
	bool standard = s->o->standard[i ? STREAM_SENDER : STREAM_RECEIVER];
	struct ur_nic_config nc = {.seed = ur_seed_of(s->o->seed * 16 + i),
				   .guid = 0x1000 + i,
				   .tp.slot = (uint8_t)(1 + i),
				   .owned = true,
				   .mac = port->mac,
				   .mtu = port->mtu,
				   .tp.cc = s->o->congestion != STREAM_OFF,
				   .tp.cwnd = standard ? UR_CWND_NEVER : follow_when[s->o->congestion],
				   .tp.plain_recovery = standard,
				   .tp.selective_repeat = !standard,
				   .tp.window = standard && !s->o->window ? STANDARD_WINDOW : s->o->window};
	struct ur_net_addr addr = {.prefix_len = 24};

	port->speed_mbps = s->o->mbps;
	need(ur_nic_create(&nc, s->now, &s->nic[i]) == 0, "a NIC");
	addr.gid = s->gid[i] = ur_gid_from_v4(htonl(0x0a000001 + i));
	need(ur_net_addr_add(s->nic[i]->net, &addr) == 0, "an address");
	ur_nic_attach(s->nic[i], port);
	s->mem[i] = calloc(1, chunk(s->o));
	need(s->mem[i] && ur_pd_create(s->nic[i]->tp, &s->pd[i]) == 0 &&
		     ur_mr_reg(s->nic[i]->tp, s->pd[i], s->mem[i], chunk(s->o), (uintptr_t)s->mem[i], ACCESS, &s->mr[i]) == 0,
	     "memory");
}

static void init_fabric(struct stream *s)
{
	struct ur_sim_config sc = {.seed = s->o->seed, .ports = s->hosts, .npkts = 32768, .rx_ring = RING};

	sc.tx = (struct ur_sim_link){.rate_mbps = s->o->mbps, .delay = s->o->rtt / 2, .mtu = 4200};
	s->sim = ur_sim_create(&sc);
	need(s->sim != NULL, "a fabric");
	ur_sim_advance(s->sim, s->now);
	for (unsigned i = 0; i < s->hosts; i++)
		ur_sim_port(s->sim, i)->mtu = 4200;
	ur_sim_rx(s->sim, 0)->rate_mbps = s->o->to_mbps ? s->o->to_mbps : s->o->mbps;
	ur_sim_rx(s->sim, 0)->queue_bytes = s->o->queue_bytes;
	ur_sim_rx(s->sim, 0)->mark_bytes = s->o->mark_bytes;
}

static void create_end(struct stream *s, struct end *e, unsigned host)
{
	struct ur_qp_init init = {.type = IBV_QPT_RC,
				  .pd = s->pd[host],
				  .sq_sig_all = true,
				  .cap = {.max_send_wr = DEPTH, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1}};

	e->nic = s->nic[host];
	need(ur_cq_create(e->nic->tp, DEPTH + RECVS, NULL, no_notify, &e->cq) == 0, "a CQ");
	init.send_cq = init.recv_cq = e->cq;
	need(ur_qp_create(e->nic->tp, &init, &e->qp) == 0, "a QP");
}

static void connect_end(struct stream *s, struct end *e, const struct end *peer, unsigned peer_host)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = ACCESS,
				.path_mtu = IBV_MTU_4096,
				.dest_qp_num = ur_qp_num(peer->qp),
				.max_dest_rd_atomic = 16,
				.max_rd_atomic = 16,
				.min_rnr_timer = 5,
				.timeout = s->o->timeout,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	static const int masks[] = {IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC};

	memcpy(a.ah_attr.grh.dgid.raw, s->gid[peer_host].raw, 16);
	for (unsigned i = 0; i < 3; i++) {
		a.qp_state = (enum ibv_qp_state)(IBV_QPS_INIT + i);
		need(ur_nic_modify_qp(e->nic, e->qp, &e->path, &a, masks[i], s->now) == 0, "a connection");
	}
	ur_qp_handshake_took(e->qp, s->o->rtt); /* as the connection manager says */
}

/* Where connection `i` begins. */
static unsigned host_of(const struct stream *s, unsigned i)
{
	if (i >= s->o->senders)
		return s->hosts - 1;
	return s->o->one_host ? 1 : i + 1;
}

static void open_stream(struct stream *s, const struct stream_opt *o, struct stream_result *out)
{
	const unsigned pingers = !o->pings ? 0 : o->pingers ? o->pingers : 1;

	*s = (struct stream){.o = o, .now = UR_NS_PER_S, .connections = o->senders + pingers, .out = out};
	s->hosts = (o->one_host && o->senders ? 1 : o->senders) + (pingers > 0) + 1;
	s->rng.state = o->seed;
	init_fabric(s);
	for (unsigned i = 0; i < s->hosts; i++)
		init_host(s, i);
	for (unsigned i = 0; i < s->connections; i++) {
		create_end(s, &s->end[i][0], host_of(s, i));
		create_end(s, &s->end[i][1], 0);
		connect_end(s, &s->end[i][0], &s->end[i][1], 0);
		connect_end(s, &s->end[i][1], &s->end[i][0], host_of(s, i));
	}
}

static void close_stream(struct stream *s)
{
	for (unsigned i = 0; i < s->connections; i++)
		for (unsigned k = 0; k < 2; k++) {
			struct end *e = &s->end[i][k];

			need(ur_nic_destroy_qp(e->nic, e->qp, &e->path) == 0 && ur_cq_destroy(e->cq) == 0, "the end of a QP");
		}
	ur_sim_advance(s->sim, s->now + UR_NS_PER_S);
	for (unsigned i = 0; i < s->hosts; i++) {
		ur_nic_poll(s->nic[i], s->now + UR_NS_PER_S);
		while (ur_nic_poll(s->nic[i], s->now + UR_NS_PER_S))
			;
	}
	for (unsigned i = 0; i < s->hosts; i++) {
		need(ur_mr_dereg(s->mr[i]) == 0 && ur_pd_destroy(s->pd[i]) == 0, "the end of a memory region");
		ur_nic_destroy(s->nic[i]);
		free(s->mem[i]);
	}
	ur_sim_destroy(s->sim);
}

/* --- posting and completions --- */

static void post_send(struct stream *s, unsigned i, unsigned side, enum ibv_wr_opcode op, uint32_t len)
{
	unsigned host = side ? 0 : host_of(s, i);
	struct end *e = &s->end[i][side];
	struct ibv_sge sge = {(uintptr_t)s->mem[host], len, s->mr[host]->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)s->mem[0];
	wr.wr.rdma.rkey = s->mr[0]->rkey;
	need(ur_qp_post_send(e->qp, &wr, &bad) == 0, "a request");
}

static void post_recv(struct stream *s, unsigned i, unsigned side)
{
	unsigned host = side ? 0 : host_of(s, i);
	struct ibv_sge sge = {(uintptr_t)s->mem[host], chunk(s->o), s->mr[host]->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	need(ur_qp_post_recv(s->end[i][side].qp, &wr, &bad) == 0, "a receive");
}

static void ring(struct end *e)
{
	if (ur_qp_doorbell(e->qp))
		ur_nic_ring(e->nic, e->qp);
}

static bool is_ping(const struct stream *s, unsigned i)
{
	return i >= s->o->senders;
}

static void fill(struct stream *s, unsigned i)
{
	for (; s->under_way[i] < DEPTH; s->under_way[i]++)
		post_send(s, i, 0, s->o->op, chunk(s->o));
	ring(&s->end[i][0]);
}

static void ping(struct stream *s, unsigned i, unsigned side)
{
	if (!side)
		s->ping_sent[i - s->o->senders] = s->now;
	post_send(s, i, side, IBV_WR_SEND, PING);
	ring(&s->end[i][side]);
}

/* A SEND has arrived: another receive takes its place, and a ping is answered, or answers the one before. */
static void received(struct stream *s, unsigned i, unsigned side)
{
	if (!is_ping(s, i)) {
		s->owed[i]++;
		return;
	}
	post_recv(s, i, side);
	s->pings += !side;
	if (!side && s->out->npings < s->o->pings)
		s->out->ping[s->out->npings++] = s->now - s->ping_sent[i - s->o->senders];
	ping(s, i, side);
}

static void reap(struct stream *s, unsigned i, unsigned side)
{
	struct ibv_wc wc[DEPTH];
	int n = ur_cq_poll(s->end[i][side].cq, DEPTH, wc);
	unsigned done = 0;

	for (int k = 0; k < n; k++) {
		if (wc[k].status != IBV_WC_SUCCESS && !s->dead[i]) {
			s->dead[i] = true;
			s->out->lost++;
		}
		if (s->dead[i])
			continue;
		if (wc[k].opcode & IBV_WC_RECV)
			received(s, i, side);
		else
			done++;
	}
	if (is_ping(s, i) || side || !done)
		return;
	s->under_way[i] -= done;
	s->out->bytes[i] += (uint64_t)done * chunk(s->o);
	fill(s, i);
}

/* What host 0 owes. */
static void post_owed(struct stream *s)
{
	if (s->now < s->posts_at)
		return;
	for (unsigned i = 0; i < s->o->senders; i++)
		for (; s->owed[i]; s->owed[i]--)
			post_recv(s, i, 1);
	s->posts_at = s->now + s->o->rests;
}

static unsigned receives(const struct stream *s, unsigned i)
{
	if (is_ping(s, i) || (s->o->op == IBV_WR_SEND && !s->o->receives))
		return RECVS;
	return s->o->op == IBV_WR_SEND ? s->o->receives : 0;
}

static void start(struct stream *s)
{
	for (unsigned i = 0; i < s->connections; i++)
		for (unsigned side = 0; side < 2; side++)
			for (unsigned k = 0; k < receives(s, i); k++)
				post_recv(s, i, side);
	for (unsigned i = 0; i < s->o->senders; i++)
		fill(s, i);
	for (unsigned i = s->o->senders; i < s->connections; i++)
		ping(s, i, 0);
}

/* --- running --- */

static bool alive(const struct stream *s)
{
	for (unsigned i = 0; i < s->connections; i++)
		if (!s->dead[i])
			return true;
	return false;
}

/* Pings alone are measured when there are enough of them. */
static bool enough(const struct stream *s)
{
	return !s->o->senders && !s->o->calm && s->out->npings == s->o->pings;
}

/* A host that shares its CPU with others has it for a while, and then not. */
static void pause_hosts(struct stream *s)
{
	for (unsigned i = 0; i < s->hosts && s->o->late; i++)
		while (s->turn[i] <= s->now) {
			s->paused[i] = !s->paused[i];
			s->turn[i] += 1 + ur_rng_below(&s->rng, (uint32_t)(s->paused[i] ? s->o->late : 2 * s->o->late));
		}
}

static bool acts(const struct stream *s, unsigned host)
{
	return !s->paused[host] && !(s->asleep && !host);
}

/* What is to be done now. */
static void take_turns(struct stream *s)
{
	ur_sim_advance(s->sim, s->now);
	pause_hosts(s);
	for (unsigned i = 0; i < s->hosts; i++)
		while (acts(s, i) && ur_nic_poll(s->nic[i], s->now))
			;
	for (unsigned i = 0; i < s->connections; i++)
		for (unsigned side = 0; side < 2; side++)
			if (acts(s, side ? 0 : host_of(s, i)))
				reap(s, i, side);
	if (acts(s, 0))
		post_owed(s);
}

/* When something is to be done. */
static ur_time next_turn(const struct stream *s)
{
	ur_time next = ur_sim_next(s->sim);

	if (s->o->rests && acts(s, 0))
		next = ur_min_time(next, s->posts_at);
	for (unsigned i = 0; i < s->hosts; i++) {
		if (s->paused[i])
			next = ur_min_time(next, s->turn[i]);
		else if (acts(s, i))
			next = ur_min_time(next, ur_nic_rang(s->nic[i]) ? s->now : ur_nic_next(s->nic[i]));
	}
	return next;
}

/* Everything that happens until `end`. */
static void run(struct stream *s, ur_time end)
{
	while (s->now < end && alive(s) && !enough(s)) {
		const ur_time next = ur_min_time(next_turn(s), end);

		if (next > s->now)
			s->now = next;
		take_turns(s);
	}
}

static void begin_faults(struct stream *s)
{
	for (unsigned i = 0; i < s->hosts; i++) {
		struct ur_sim_link *l = ur_sim_tx(s->sim, i), is = *l;

		*l = s->o->faults;
		l->rate_mbps = is.rate_mbps;
		l->delay = is.delay;
		l->mtu = is.mtu;
	}
}

static uint64_t counted(const struct stream *s, enum ur_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < s->hosts; i++)
		n += s->nic[i]->counters.v[c];
	return n;
}

static uint64_t total(const struct stream_opt *o, const struct stream_result *r)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < o->senders; i++)
		bytes += r->bytes[i];
	return bytes;
}

/* Bytes that the streams complete within a time from now on. */
static uint64_t moved_within(struct stream *s, ur_time span)
{
	uint64_t before = total(s->o, s->out);

	run(s, s->now + span);
	return total(s->o, s->out) - before;
}

/* What the streams do behind a silence of host 0; `bytes` were completed in `span` before it. What is in `bytes[]` stays as it is. */
static void fall_silent(struct stream *s, uint64_t bytes)
{
	const ur_time step = s->o->span / STEPS, most = 4 * UR_NS_PER_S;
	uint64_t repeats = counted(s, UR_C_RETRANSMIT), kept[STREAM_SENDERS];
	ur_time woken;

	memcpy(kept, s->out->bytes, sizeof(kept));
	s->asleep = true;
	run(s, s->now + s->o->silent);
	s->asleep = false;
	take_turns(s); /* it finds what has come meanwhile */
	s->out->woken = UR_TIME_NEVER;
	for (woken = s->now; s->now < woken + most && alive(s);) {
		ur_time begun = s->now;

		if (moved_within(s, step) * 10 < bytes / STEPS * 9)
			continue;
		s->out->woken = begun - woken;
		break;
	}
	s->out->repeats = counted(s, UR_C_RETRANSMIT) - repeats;
	s->out->after = moved_within(s, s->o->span);
	memcpy(s->out->bytes, kept, sizeof(kept));
}

/* The faults end; what is sent again a good while later. */
static void calm_down(struct stream *s)
{
	uint64_t sent, again, pings;

	ur_sim_heal(s->sim);
	run(s, s->now + s->o->calm - UR_NS_PER_S);
	sent = counted(s, UR_C_TX_ROCE);
	again = counted(s, UR_C_RETRANSMIT);
	pings = s->pings;
	run(s, s->now + UR_NS_PER_S);
	s->out->calm_sent = counted(s, UR_C_TX_ROCE) - sent;
	s->out->calm_again = counted(s, UR_C_RETRANSMIT) - again;
	s->out->calm_pings = s->pings - pings;
}

static int by_time(const void *a, const void *b)
{
	const ur_time *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void stream_run(const struct stream_opt *o, struct stream_result *out)
{
	struct ur_sim_stats before;
	uint64_t sent, again;
	struct stream s;

	memset(out, 0, sizeof(*out));
	open_stream(&s, o, out);
	start(&s);
	run(&s, s.now + 10 * o->rtt); /* addresses are found and all goes well so far */
	begin_faults(&s);
	run(&s, s.now + o->warm);
	memset(out->bytes, 0, sizeof(out->bytes));
	out->npings = 0;
	before = *ur_sim_stats(s.sim);
	sent = counted(&s, UR_C_TX_ROCE);
	again = counted(&s, UR_C_RETRANSMIT);
	run(&s, s.now + o->span);
	out->lost_packets = ur_sim_stats(s.sim)->lost - before.lost;
	out->sent = counted(&s, UR_C_TX_ROCE) - sent;
	out->again = counted(&s, UR_C_RETRANSMIT) - again;
	out->queue_drops = ur_sim_stats(s.sim)->queue_drops - before.queue_drops;
	out->marked = ur_sim_stats(s.sim)->marked - before.marked;
	if (o->silent)
		fall_silent(&s, total(o, out));
	if (o->calm)
		calm_down(&s);
	for (unsigned c = 0; c < UR_C_COUNT; c++)
		out->counters[c] = counted(&s, (enum ur_counter)c);
	qsort(out->ping, out->npings, sizeof(out->ping[0]), by_time);
	close_stream(&s);
}

static double of_a_link(const struct stream_opt *o, uint64_t bytes)
{
	return (double)bytes * 8000 / (o->to_mbps ? o->to_mbps : o->mbps) / (double)o->span;
}

double stream_share(const struct stream_opt *o, const struct stream_result *r, int i)
{
	return of_a_link(o, i < 0 ? total(o, r) : r->bytes[i]);
}

double stream_share_after(const struct stream_opt *o, const struct stream_result *r)
{
	return of_a_link(o, r->after);
}

double stream_fairness(const struct stream_opt *o, const struct stream_result *r)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < o->senders; i++) {
		sum += (double)r->bytes[i];
		squares += (double)r->bytes[i] * (double)r->bytes[i];
	}
	return squares > 0 ? sum * sum / o->senders / squares : 0;
}

ur_time stream_ping(const struct stream_result *r, double share)
{
	unsigned at = (unsigned)((double)r->npings * share);

	return r->npings ? r->ping[at < r->npings ? at : r->npings - 1] : UR_TIME_NEVER;
}
