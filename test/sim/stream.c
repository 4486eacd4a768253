/* SPDX-License-Identifier: BSD-3-Clause */
/* See stream.h. */
#include "stream.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

#define CHUNK (128u << 10) /* of one work request */
#define DEPTH 64           /* work requests under way: more than a window */
#define HOSTS (STREAM_SENDERS + 1)
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
	struct end end[STREAM_SENDERS][2]; /* at the sender, at host 0 */
	unsigned under_way[STREAM_SENDERS];
	bool failed;
};

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

static void init_host(struct stream *s, unsigned i)
{
	struct ur_port *port = ur_sim_port(s->sim, i);
	struct ur_nic_config nc = {.seed = ur_seed_of(s->o->seed * 16 + i),
				   .guid = 0x1000 + i,
				   .slot = (uint8_t)(1 + i),
				   .owned = true,
				   .mac = port->mac,
				   .mtu = port->mtu,
				   .cc = s->o->cc,
				   .plain_recovery = s->o->plain,
				   .window = s->o->window};
	struct ur_net_addr addr = {.prefix_len = 24};

	port->speed_mbps = s->o->mbps;
	need(ur_nic_create(&nc, s->now, &s->nic[i]) == 0, "a NIC");
	addr.gid = s->gid[i] = ur_gid_from_v4(htonl(0x0a000001 + i));
	need(ur_net_addr_add(s->nic[i]->net, &addr) == 0, "an address");
	ur_nic_attach(s->nic[i], port);
	s->mem[i] = calloc(1, CHUNK);
	need(s->mem[i] && ur_pd_create(s->nic[i]->tp, &s->pd[i]) == 0 &&
		     ur_mr_reg(s->nic[i]->tp, s->pd[i], s->mem[i], CHUNK, (uintptr_t)s->mem[i], ACCESS, &s->mr[i]) == 0,
	     "memory");
}

static void init_fabric(struct stream *s)
{
	struct ur_sim_config sc = {.seed = s->o->seed, .ports = s->hosts, .npkts = 32768};

	sc.tx = (struct ur_sim_link){.rate_mbps = s->o->mbps, .delay = s->o->rtt / 2, .mtu = 4200};
	s->sim = ur_sim_create(&sc);
	need(s->sim != NULL, "a fabric");
	ur_sim_advance(s->sim, s->now);
	for (unsigned i = 0; i < s->hosts; i++)
		ur_sim_port(s->sim, i)->mtu = 4200;
	ur_sim_rx(s->sim, 0)->rate_mbps = s->o->mbps;
	ur_sim_rx(s->sim, 0)->queue_bytes = s->o->queue_bytes;
	ur_sim_rx(s->sim, 0)->mark_bytes = s->o->mark_bytes;
}

static void create_end(struct stream *s, struct end *e, unsigned host)
{
	struct ur_qp_init init = {.type = IBV_QPT_RC,
				  .pd = s->pd[host],
				  .sq_sig_all = true,
				  .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	e->nic = s->nic[host];
	need(ur_cq_create(e->nic->tp, 2 * DEPTH, NULL, no_notify, &e->cq) == 0, "a CQ");
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
}

static void open_stream(struct stream *s, const struct stream_opt *o)
{
	*s = (struct stream){.o = o, .now = UR_NS_PER_S, .hosts = o->senders + 1};
	init_fabric(s);
	for (unsigned i = 0; i < s->hosts; i++)
		init_host(s, i);
	for (unsigned i = 0; i < o->senders; i++) {
		create_end(s, &s->end[i][0], i + 1);
		create_end(s, &s->end[i][1], 0);
		connect_end(s, &s->end[i][0], &s->end[i][1], 0);
		connect_end(s, &s->end[i][1], &s->end[i][0], i + 1);
	}
}

static void close_stream(struct stream *s)
{
	for (unsigned i = 0; i < s->o->senders; i++)
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

/* --- running --- */

static void post(struct stream *s, unsigned i)
{
	struct end *e = &s->end[i][0];
	struct ibv_sge sge = {(uintptr_t)s->mem[i + 1], CHUNK, s->mr[i + 1]->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = s->o->read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)s->mem[0];
	wr.wr.rdma.rkey = s->mr[0]->rkey;
	for (; s->under_way[i] < DEPTH && !s->failed; s->under_way[i]++)
		need(ur_qp_post_send(e->qp, &wr, &bad) == 0, "a request");
	if (ur_qp_doorbell(e->qp))
		ur_nic_ring(e->nic, e->qp);
}

static void reap(struct stream *s, struct stream_result *out)
{
	struct ibv_wc wc[DEPTH];

	for (unsigned i = 0; i < s->o->senders; i++) {
		int n = ur_cq_poll(s->end[i][0].cq, DEPTH, wc);

		for (int k = 0; k < n; k++)
			s->failed |= wc[k].status != IBV_WC_SUCCESS;
		s->under_way[i] -= (unsigned)n;
		out->bytes[i] += (uint64_t)n * CHUNK;
		if (n)
			post(s, i);
	}
}

/* Everything that happens until `end`. */
static void run(struct stream *s, ur_time end, struct stream_result *out)
{
	while (s->now < end && !s->failed) {
		ur_time next = ur_min_time(ur_sim_next(s->sim), end);

		for (unsigned i = 0; i < s->hosts; i++)
			next = ur_min_time(next, ur_nic_next(s->nic[i]));
		if (next > s->now)
			s->now = next;
		ur_sim_advance(s->sim, s->now);
		for (unsigned i = 0; i < s->hosts; i++)
			while (ur_nic_poll(s->nic[i], s->now))
				;
		reap(s, out);
	}
}

void stream_run(const struct stream_opt *o, struct stream_result *out)
{
	struct ur_sim_stats before;
	struct stream s;

	open_stream(&s, o);
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < o->senders; i++)
		post(&s, i);
	run(&s, s.now + 10 * o->rtt, out); /* addresses are found and all goes well so far */
	for (unsigned i = 0; i < s.hosts; i++)
		ur_sim_tx(s.sim, i)->loss = o->loss_ppm;
	run(&s, s.now + o->warm, out);
	memset(out, 0, sizeof(*out));
	before = *ur_sim_stats(s.sim);
	run(&s, s.now + o->span, out);
	out->queue_drops = ur_sim_stats(s.sim)->queue_drops - before.queue_drops;
	out->marked = ur_sim_stats(s.sim)->marked - before.marked;
	out->failed = s.failed;
	for (unsigned i = 0; i < s.hosts; i++)
		for (unsigned c = 0; c < UR_C_COUNT; c++)
			out->counters[c] += s.nic[i]->counters.v[c];
	close_stream(&s);
}

double stream_share(const struct stream_opt *o, const struct stream_result *r, int i)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < o->senders; k++)
		if (i < 0 || (unsigned)i == k)
			bytes += r->bytes[k];
	return (double)bytes * 8000 / o->mbps / (double)o->span;
}
