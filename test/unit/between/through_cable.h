/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two NICs that a cable joins, in virtual time: each hangs on a fabric of its own, whose other port is an end of the cable. What the NICs
 * count is the truth about what passed. NIC i has the address 10.0.0.(i + 1).
 */
#ifndef THROUGH_CABLE_H
#define THROUGH_CABLE_H

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "between/between.h"
#include "nic/nic.h"
#include "test/port/sim.h"
#include "wire/frame.h"

#define THROUGH_MEM (1u << 20)
#define THROUGH_DEPTH 512
#define THROUGH_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct through_opt {
	bool standard;     /* hosts of another make, which go back and have a timer */
	bool cc;           /* congestion control */
	ur_time delay;     /* between each host and the cable */
	uint32_t mbps;     /* of each host */
	uint8_t timeout;   /* of the QPs */
	uint8_t rnr_timer; /* that receivers ask for */
};

struct through_host {
	struct ur_sim *sim;
	struct ur_queue *cable; /* the other port */
	struct ur_nic *nic;
	struct ur_pd *pd;
	struct ur_mr *mr;
	struct ur_cq *cq;
	struct ur_qp *qp;
	struct ur_net_path path;
	struct ur_gid gid;
	uint8_t *mem;
	bool gone;                 /* its QP and CQ are */
	unsigned done;             /* sends that were completed, well or not */
	enum ibv_wc_status status; /* of the last one that was not */
};

struct through {
	const struct through_opt *o;
	struct ur_between *b;
	ur_time now;
	struct through_host host[2];
};

static inline void through_leave(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	struct through *t = ctx;
	struct ur_pkt *p;

	(void)extra;
	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(t->host[end].cable, &p, 1), 1);
	memcpy(p->data, frame, len);
	p->len = len;
	CU_ASSERT_EQUAL_FATAL(ur_queue_tx(t->host[end].cable, &p, 1), 1);
}

static inline void through_no_notify(struct ur_cq *cq)
{
	(void)cq;
}

/* The fabrics have ports alike, so that a frame to the other host goes to the port that has its MAC: the cable's. */
static inline void through_host_open(struct through *t, unsigned i)
{
	struct through_host *h = &t->host[i];
	const struct ur_sim_config sc = {
		.seed = 7 + i, .ports = 2, .npkts = 16384, .tx = {.rate_mbps = t->o->mbps, .delay = t->o->delay, .mtu = 4200}};
	struct ur_qp_init init = {.type = IBV_QPT_RC, .sq_sig_all = true, .cap = {THROUGH_DEPTH, THROUGH_DEPTH, 1, 1, 0}};
	struct ur_net_addr addr = {.prefix_len = 24};
	struct ur_nic_config nc;
	struct ur_port *port;

	CU_ASSERT_PTR_NOT_NULL_FATAL(h->sim = ur_sim_create(&sc));
	ur_sim_advance(h->sim, t->now);
	port = ur_sim_port(h->sim, i);
	port->mtu = 4200;
	port->speed_mbps = t->o->mbps;
	h->cable = ur_sim_port(h->sim, !i)->queue;
	*ur_sim_tx(h->sim, !i) = (struct ur_sim_link){.delay = 0};
	nc = (struct ur_nic_config){.seed = ur_seed_of(5 + i),
				    .guid = 0x1000 + i,
				    .tp.slot = (uint8_t)(1 + i),
				    .owned = true,
				    .mac = port->mac,
				    .mtu = port->mtu,
				    .tp.cc = t->o->cc,
				    .tp.cwnd = t->o->standard ? UR_CWND_NEVER : UR_CWND_LOSSES,
				    .tp.plain_recovery = t->o->standard,
				    .tp.selective_repeat = !t->o->standard,
				    .tp.window = t->o->standard ? 512 : 0};
	CU_ASSERT_EQUAL_FATAL(ur_nic_create(&nc, t->now, &h->nic), 0);
	addr.gid = h->gid = ur_gid_from_v4((uint32_t)(1 + i) << 24 | 10);
	CU_ASSERT_EQUAL_FATAL(ur_net_addr_add(h->nic->net, &addr), 0);
	ur_nic_attach(h->nic, port);
	CU_ASSERT_PTR_NOT_NULL_FATAL(h->mem = calloc(1, THROUGH_MEM));
	CU_ASSERT_EQUAL_FATAL(ur_pd_create(h->nic->tp, &h->pd), 0);
	CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h->nic->tp, h->pd, h->mem, THROUGH_MEM, (uintptr_t)h->mem, THROUGH_ACCESS, &h->mr), 0);
	CU_ASSERT_EQUAL_FATAL(ur_cq_create(h->nic->tp, 2 * THROUGH_DEPTH, NULL, through_no_notify, &h->cq), 0);
	init.pd = h->pd;
	init.send_cq = init.recv_cq = h->cq;
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(h->nic->tp, &init, &h->qp), 0);
}

static inline void through_connect(struct through *t, unsigned i)
{
	static const int masks[] = {IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC};
	struct through_host *h = &t->host[i];
	struct ibv_qp_attr a = {.port_num = 1,
				.qp_access_flags = THROUGH_ACCESS,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = ur_qp_num(t->host[!i].qp),
				.sq_psn = 1000 + 5000 * i,
				.rq_psn = 1000 + 5000 * !i,
				.max_dest_rd_atomic = 16,
				.max_rd_atomic = 16,
				.min_rnr_timer = t->o->rnr_timer,
				.timeout = t->o->timeout,
				.retry_cnt = 4,
				.rnr_retry = 3,
				.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};

	memcpy(a.ah_attr.grh.dgid.raw, t->host[!i].gid.raw, 16);
	for (unsigned k = 0; k < 3; k++) {
		a.qp_state = (enum ibv_qp_state)(IBV_QPS_INIT + k);
		CU_ASSERT_EQUAL_FATAL(ur_nic_modify_qp(h->nic, h->qp, &h->path, &a, masks[k], t->now), 0);
	}
}

static inline void through_open(struct through *t, const struct through_opt *o)
{
	const struct ur_between_host host = {.send = through_leave, .ctx = t};

	*t = (struct through){.o = o, .now = UR_NS_PER_S};
	CU_ASSERT_PTR_NOT_NULL_FATAL(t->b = ur_between_create(3, &host));
	for (unsigned i = 0; i < 2; i++)
		through_host_open(t, i);
	for (unsigned i = 0; i < 2; i++)
		through_connect(t, i);
}

static inline void through_rule(struct through *t, const char *text)
{
	struct ur_fault_rule r;
	unsigned at;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse(text, &r, &at));
	CU_ASSERT_FATAL(ur_between_add(t->b, t->now, &r, text));
}

/* What has come to the cable from host `i`. */
static inline unsigned through_fetch(struct through *t, unsigned i)
{
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};
	struct ur_pkt *p[32];
	const unsigned n = ur_queue_rx(t->host[i].cable, p, 32);

	for (unsigned k = 0; k < n; k++)
		ur_between_in(t->b, t->now, i, p[k]->data, p[k]->len, extra);
	ur_pkts_release(p, n);
	return n;
}

static inline void through_reap(struct through_host *h)
{
	struct ibv_wc wc;

	if (h->gone)
		return;
	while (ur_cq_poll(h->cq, 1, &wc) == 1) {
		h->done += !(wc.opcode & IBV_WC_RECV);
		h->status = wc.status ? wc.status : h->status;
	}
}

static inline unsigned through_round(struct through *t)
{
	unsigned moved = 0;

	ur_between_run(t->b, t->now);
	for (unsigned i = 0; i < 2; i++) {
		ur_sim_advance(t->host[i].sim, t->now);
		moved += through_fetch(t, i);
		moved += ur_nic_poll(t->host[i].nic, t->now);
		through_reap(&t->host[i]);
	}
	return moved;
}

/* All that happens until `d` from now. */
static inline void through_run(struct through *t, ur_time d)
{
	const ur_time end = t->now + d;

	while (t->now < end) {
		ur_time next;

		while (through_round(t))
			;
		next = ur_min_time(ur_between_next(t->b), end);
		for (unsigned i = 0; i < 2; i++)
			next = ur_min_time(next, ur_min_time(ur_sim_next(t->host[i].sim), ur_nic_next(t->host[i].nic)));
		t->now = ur_max_time(next, t->now + 1);
	}
	while (through_round(t))
		;
}

static inline void through_post(struct through *t, unsigned i, enum ibv_wr_opcode op, uint32_t len, bool bad_key)
{
	struct through_host *h = &t->host[i], *to = &t->host[!i];
	struct ibv_sge sge = {(uintptr_t)h->mem, len, h->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)to->mem;
	wr.wr.rdma.rkey = to->mr->rkey ^ bad_key;
	CU_ASSERT_EQUAL_FATAL(ur_qp_post_send(h->qp, &wr, &bad), 0);
	if (ur_qp_doorbell(h->qp))
		ur_nic_ring(h->nic, h->qp);
}

static inline void through_recv(struct through *t, unsigned i)
{
	struct through_host *h = &t->host[i];
	struct ibv_sge sge = {(uintptr_t)h->mem, THROUGH_MEM, h->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CU_ASSERT_EQUAL_FATAL(ur_qp_post_recv(h->qp, &wr, &bad), 0);
}

static inline uint64_t through_count(const struct through *t, unsigned i, enum ur_counter c)
{
	return t->host[i].nic->counters.v[c];
}

/* Requests of host `i`, or responses to the other one's. */
static inline const struct ur_account_flow *through_flow(const struct through *t, unsigned i, bool response)
{
	const struct ur_account *a = ur_between_account(t->b);

	for (unsigned k = 0; k < UR_FAULT_FLOWS; k++)
		if (a->flows[k].used && a->flows[k].end == i && a->flows[k].response == response)
			return &a->flows[k];
	CU_FAIL_FATAL("there is no such flow");
	return NULL;
}

static inline void through_close(struct through *t)
{
	for (unsigned i = 0; i < 2; i++) {
		struct through_host *h = &t->host[i];

		CU_ASSERT_EQUAL(ur_nic_destroy_qp(h->nic, h->qp, &h->path), 0);
		CU_ASSERT_EQUAL(ur_cq_destroy(h->cq), 0);
		h->gone = true;
	}
	through_run(t, UR_NS_PER_S);
	for (unsigned i = 0; i < 2; i++) {
		struct through_host *h = &t->host[i];

		CU_ASSERT_EQUAL(ur_mr_dereg(h->mr), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(h->pd), 0);
		ur_nic_destroy(h->nic);
		free(h->mem);
		ur_sim_destroy(h->sim);
	}
	ur_between_destroy(t->b);
}

#endif
