/* SPDX-License-Identifier: BSD-3-Clause */
/* See nic_harness.h. */
#include "nic_harness.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "siblings/fetch.h"
#include "transport/packet/bulk.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct ur_gid nics_gid(const struct nics *h, unsigned nic, bool v6)
{
	if (nic < h->sharers)
		nic = 0;
	if (v6)
		return (struct ur_gid){{0xfd, [15] = (uint8_t)(nic + 1)}};
	return ur_gid_from_v4(htonl(0x0a000001u + nic));
}

static void node_open(struct nics *h, unsigned i)
{
	struct nics_node *n = &h->n[i];
	struct ur_port *port = ur_sim_port(h->sim, i);
	struct ur_nic_config nc = {.seed = ur_seed_of(i + 1),
				   .guid = i + 1,
				   .tp.slot = (uint8_t)(i + 1),
				   .owned = !(port->queue->caps & UR_QUEUE_BARE),
				   .mac = port->mac,
				   .mtu = port->mtu};
	struct ur_net_addr v4 = {.gid = nics_gid(h, i, false), .prefix_len = 24}, v6 = {.gid = nics_gid(h, i, true), .prefix_len = 64};

	CU_ASSERT_EQUAL_FATAL(ur_nic_create(&nc, h->now, &n->nic), 0);
	CU_ASSERT_EQUAL_FATAL(ur_net_addr_add(n->nic->net, &v4), 0);
	CU_ASSERT_EQUAL_FATAL(ur_net_addr_add(n->nic->net, &v6), 0);
	ur_nic_attach(n->nic, port);
	CU_ASSERT_EQUAL_FATAL(ur_pd_create(n->nic->tp, &n->pd), 0);
	CU_ASSERT_EQUAL_FATAL(ur_cq_create(n->nic->tp, 1023, n, NULL, &n->cq), 0);
	CU_ASSERT_EQUAL_FATAL(ur_mr_reg(n->nic->tp, n->pd, n->mem, NICS_MEM, (uintptr_t)n->mem, ACCESS, &n->mr), 0);
	for (unsigned k = 0; k < NICS_MEM; k++)
		n->mem[k] = (uint8_t)(k * 11 + (k >> 8) + i);
}

static void open_all(struct nics *h, unsigned nics, unsigned bare, unsigned train, unsigned sharers)
{
	struct ur_sim_config sc = {.seed = 1, .ports = nics, .train_pkts = train, .train_bytes = 65507, .tx = {.delay = 1000, .mtu = 1500}};

	memset(h, 0, sizeof(*h));
	h->now = UR_NS_PER_S;
	h->nics = nics;
	h->sharers = sharers;
	h->sim = ur_sim_create(&sc);
	CU_ASSERT_PTR_NOT_NULL_FATAL(h->sim);
	ur_sim_advance(h->sim, h->now);
	for (unsigned i = 0; i < nics; i++) {
		struct ur_gid v4 = nics_gid(h, i, false);

		ur_sim_port(h->sim, i)->mtu = 1500;
		ur_sim_set_addr(h->sim, i, &v4);
		if (i < bare)
			ur_sim_set_bare(h->sim, i);
		else if (i & 1)
			ur_sim_set_joins(h->sim, i);
		if (i && i < sharers)
			ur_sim_share(h->sim, i, 0);
		node_open(h, i);
	}
	nics_run(h, UR_NS_PER_MS);
}

void nics_open(struct nics *h, unsigned nics)
{
	open_all(h, nics, 0, 0, 0);
}

void nics_open_bare(struct nics *h, unsigned nics, unsigned bare)
{
	open_all(h, nics, bare, 16, 0);
}

void nics_open_host(struct nics *h, unsigned nics)
{
	open_all(h, nics, 0, 0, nics);
}

void nics_open_bare_host(struct nics *h, unsigned nics, unsigned sharers)
{
	open_all(h, nics, nics, 16, sharers);
}

void nics_close(struct nics *h)
{
	nics_run(h, UR_NS_PER_MS);
	for (unsigned i = 0; i < h->nics; i++) {
		struct nics_node *n = &h->n[i];

		CU_ASSERT_EQUAL(ur_mr_dereg(n->mr), 0);
		CU_ASSERT_EQUAL(ur_cq_destroy(n->cq), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(n->pd), 0);
		ur_nic_destroy(n->nic);
	}
	CU_ASSERT_EQUAL(ur_sim_outstanding(h->sim), 0);
	ur_sim_destroy(h->sim);
}

static void poll_all(struct nics *h)
{
	unsigned moved, rounds = 0;

	do {
		moved = 0;
		for (unsigned i = 0; i < h->nics; i++)
			moved += h->stopped >> i & 1 ? 0 : ur_nic_poll(h->n[i].nic, h->now);
	} while (moved && ++rounds < 100000);
	CU_ASSERT_TRUE(rounds < 100000);
}

static ur_time step_of(const struct nics *h)
{
	return h->step ? h->step : h->stopped ? UR_NS_PER_US : 1;
}

void nics_run(struct nics *h, ur_time d)
{
	ur_time end = h->now + d;

	for (;;) {
		ur_time next;

		ur_sim_advance(h->sim, h->now);
		poll_all(h);
		if (h->now >= end)
			return;
		next = ur_sim_next(h->sim);
		for (unsigned i = 0; i < h->nics; i++)
			next = h->stopped >> i & 1 ? next : ur_min_time(next, ur_nic_next(h->n[i].nic));
		h->now = next > h->now ? ur_min_time(next, end) : h->now + step_of(h);
	}
}

uint64_t nics_sum(const struct nics *h, enum ur_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < h->nics; i++)
		n += h->n[i].nic->counters.v[c];
	return n;
}

struct ibv_ah_attr nics_route(const struct ur_gid *to, uint8_t sgid_index)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = sgid_index}};

	memcpy(a.grh.dgid.raw, to->raw, 16);
	return a;
}

void nics_qp_create(struct nics *h, unsigned nic, enum ibv_qp_type type, struct nics_qp *q)
{
	struct nics_node *n = &h->n[nic];
	struct ur_qp_init init = {
		.type = type, .pd = n->pd, .send_cq = n->cq, .recv_cq = n->cq, .cap = {64, 64, 2, 2, 0}, .sq_sig_all = true};

	memset(q, 0, sizeof(*q));
	q->nic = nic;
	q->type = type;
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(n->nic->tp, &init, &q->qp), 0);
}

void nics_qp_connect(struct nics *h, struct nics_qp *q, const struct nics_qp *peer)
{
	struct ur_nic *nic = h->n[q->nic].nic;
	bool rc = q->type == IBV_QPT_RC, ud = q->type == IBV_QPT_UD;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qkey = NICS_QKEY,
				.qp_access_flags = ACCESS,
				.path_mtu = IBV_MTU_256,
				.rq_psn = 5,
				.sq_psn = 5,
				.max_rd_atomic = 4,
				.max_dest_rd_atomic = 4,
				.timeout = 14,
				.retry_cnt = 7,
				.rnr_retry = 7};
	int rtr = ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ur_gid to = nics_gid(h, peer ? peer->nic : 0, false);

	a.dest_qp_num = peer ? ur_qp_num(peer->qp) : 0;
	a.ah_attr = nics_route(&to, 0);
	CU_ASSERT_EQUAL_FATAL(ur_nic_modify_qp(nic, q->qp, &q->path, &a,
					       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
					       h->now),
			      0);
	a.qp_state = IBV_QPS_RTR;
	rtr |= rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
	CU_ASSERT_EQUAL_FATAL(ur_nic_modify_qp(nic, q->qp, &q->path, &a, IBV_QP_STATE | rtr, h->now), 0);
	a.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL_FATAL(
		ur_nic_modify_qp(nic, q->qp, &q->path, &a,
				 IBV_QP_STATE | IBV_QP_SQ_PSN |
					 (rc ? IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT : 0),
				 h->now),
		0);
}

void nics_qp_destroy(struct nics *h, struct nics_qp *q)
{
	CU_ASSERT_EQUAL(ur_nic_destroy_qp(h->n[q->nic].nic, q->qp, &q->path), 0);
}

static int post(struct nics *h, struct nics_qp *q, struct ibv_send_wr *wr, uint32_t off, uint32_t len)
{
	struct nics_node *n = &h->n[q->nic];
	struct ibv_sge sge = {(uintptr_t)n->mem + off, len, n->mr->lkey};
	struct ibv_send_wr *bad;
	int err;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	err = ur_qp_post_send(q->qp, wr, &bad);
	if (ur_qp_doorbell(q->qp))
		ur_nic_ring(n->nic, q->qp);
	return err;
}

int nics_post(struct nics *h, struct nics_qp *q, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len, unsigned peer,
	      uint32_t roff)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = op};

	wr.wr.rdma.remote_addr = (uintptr_t)h->n[peer].mem + roff;
	wr.wr.rdma.rkey = h->n[peer].mr->rkey;
	return post(h, q, &wr, off, len);
}

int nics_post_ud(struct nics *h, struct nics_qp *q, struct ur_ah *ah, uint32_t qpn, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_SEND};

	wr.wr.ud.ah = &ah->api;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = NICS_QKEY;
	return post(h, q, &wr, off, len);
}

void nics_recv(struct nics *h, struct nics_qp *q, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct nics_node *n = &h->n[q->nic];
	struct ibv_sge sge = {(uintptr_t)n->mem + off, len, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	CU_ASSERT_EQUAL(ur_qp_post_recv(q->qp, &wr, &bad), 0);
}

struct ibv_wc nics_expect(struct nics *h, unsigned nic, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};

	if (ur_cq_poll(h->n[nic].cq, 1, &wc) != 1) {
		CU_FAIL("no completion");
		return wc;
	}
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
	CU_ASSERT_EQUAL(wc.status, status);
	return wc;
}

void nics_expect_none(struct nics *h, unsigned nic)
{
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(ur_cq_poll(h->n[nic].cq, 1, &wc), 0);
}

/* --- the other processes of a device --- */

struct nics_mailbox nics_mail[NICS_MAX];

static unsigned mail_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct nics_mailbox *m = ur_container_of(q, struct nics_mailbox, queue);
	unsigned k = ur_min_u32(n, m->room - m->waiting);

	m->waiting += k;
	m->sent += k;
	return ur_queue_tx(&m->loop.queue, pkts, k);
}

static unsigned mail_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct nics_mailbox *m = ur_container_of(q, struct nics_mailbox, queue);
	unsigned got = ur_queue_rx(&m->loop.queue, pkts, n);

	m->waiting -= got;
	return got;
}

static struct ur_queue *mail_to(void *ctx, uint8_t slot)
{
	struct nics *h = ctx;

	return slot && slot <= h->nics ? &nics_mail[slot - 1].queue : NULL;
}

static unsigned mail_slots(void *ctx, uint8_t slot[UR_NIC_OUTS])
{
	const struct nics *h = ctx;

	for (unsigned i = 0; i < h->nics; i++)
		slot[i] = (uint8_t)(i + 1);
	return h->nics;
}

void nics_mail_open(struct nics *h, unsigned room)
{
	static const struct ur_queue_ops ops = {.rx = mail_rx, .tx = mail_tx};

	for (unsigned i = 0; i < h->nics; i++) {
		nics_mail[i] = (struct nics_mailbox){.queue = {.ops = &ops}, .room = room};
		ur_loop_init(&nics_mail[i].loop);
		h->n[i].nic->cfg.ctx = h;
		h->n[i].nic->cfg.sibling = mail_to;
		h->n[i].nic->cfg.siblings = mail_slots;
		h->n[i].nic->cfg.inbox = &nics_mail[i].queue;
	}
}

unsigned nics_fetch_fails, nics_fetched;
enum ur_fetched_by nics_fetched_by;

/* By the system call, as between processes: what is not there is no crash. */
static enum ur_fetched_by fetch(void *ctx, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				unsigned nfrom)
{
	static struct ur_own_page own; /* of this process, which stands for all of them */
	struct ur_sibling self = {.pid = getpid()};

	(void)ctx;
	if (!own.page && !ur_page_create(&own, 1))
		ur_fetch_offer(&own);
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.page);
	self.page = own.page;
	CU_ASSERT(slot && slot <= NICS_MAX);
	if (nics_fetch_fails && !(nics_fetched++ % nics_fetch_fails))
		return UR_FETCHED_NOT;
	return ur_fetch(&self, to, nto, from, nfrom) ? nics_fetched_by : UR_FETCHED_NOT;
}

static uint64_t token(void *ctx, uint8_t slot, uint32_t at)
{
	const struct nics *h = ctx;

	return ur_token_of(h->n[slot - 1].nic->tp, at);
}

void nics_mail_fetch(struct nics *h)
{
	nics_fetched = 0;
	nics_fetched_by = UR_FETCHED_BY_KERNEL;
	for (unsigned i = 0; i < h->nics; i++) {
		nics_mail[i].queue.caps |= UR_QUEUE_FETCHES;
		h->n[i].nic->cfg.fetch = fetch;
		h->n[i].nic->cfg.token = token;
	}
}

void nics_mail_close(struct nics *h)
{
	for (unsigned i = 0; i < h->nics; i++) {
		ur_loop_clear(&nics_mail[i].loop);
		h->n[i].nic->cfg.sibling = NULL;
		h->n[i].nic->cfg.siblings = NULL;
		h->n[i].nic->cfg.inbox = NULL;
		h->n[i].nic->cfg.fetch = NULL;
		h->n[i].nic->cfg.token = NULL;
	}
}
