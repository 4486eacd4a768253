/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of a program: memory regions, CQs and QPs; connecting, breaking, taking down. */
#include <stdio.h>
#include <string.h>

#include "prog.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC

/* --- memory regions --- */

static const int key_access[KEYS] = {
	[K_SLOTS] = LW,
	[K_SLOTS2] = LW,
	[K_SLOTS_RO] = 0,
	[K_BOARDS] = LW | RW | RR,
	[K_BOARDS_RO] = RR,
	[K_BOARDS_WO] = LW | RW,
	[K_VOLATILE] = LW | RW | RR,
	[K_FOREIGN] = LW | RW | RR | RA,
	[K_CELLS] = LW | RA,
};

static void key_span(const struct memory *m, enum key_id id, uint8_t **from, uint8_t **to)
{
	const struct board *first = &m->board[0], *last = &m->board[BOARDS - BOARDS_VOLATILE - 1];

	if (id == K_VOLATILE)
		first = &m->board[BOARDS - BOARDS_VOLATILE];
	if (id == K_VOLATILE || id == K_FOREIGN)
		last = &m->board[BOARDS - 1];
	*from = first->mem;
	*to = last->mem + last->size;
	if (id == K_CELLS) {
		*from = (uint8_t *)m->cell[0].mem;
		*to = (uint8_t *)m->cell[CELLS - 1].mem + RED;
	} else if (id <= K_SLOTS_RO) {
		*from = m->slots;
		*to = m->base + m->size;
	}
}

bool key_register(struct prog *p, unsigned host, enum key_id id)
{
	struct sim_host *h = &p->host[host];
	struct key *k = &h->key[id];
	uint8_t *from, *to;

	key_span(&h->m, id, &from, &to);
	*k = (struct key){.base = from, .size = (size_t)(to - from), .access = key_access[id], .stale = k->stale};
	k->iova = ur_rng_u64(&p->rng) >> 2 & ~63ull;
	SAY(p, "host %u: register memory region %u", host, id);
	return !ur_mr_reg(h->nic->tp, id == K_FOREIGN ? h->pd2 : h->pd, from, k->size, k->iova, k->access, &k->mr);
}

/* What is under way and refers to the region may fail from now on. */
static void doubt(struct prog *p, unsigned host, enum key_id id)
{
	for (unsigned i = 0; i < p->nops; i++) {
		struct sim_op *op = &p->ops[i];

		if (op->open && op->qp->host == host && op->keys & 1u << id)
			op->may |= 1u << IBV_WC_LOC_PROT_ERR;
		if ((op->open || op->lost) && op->qp->peer->host == host && op->rkey == id && op->row->kind >= K_WRITE)
			op->may |= 1u << IBV_WC_REM_ACCESS_ERR;
	}
	for (unsigned i = 0; i < p->nrecvs; i++)
		if (p->recvs[i].open && p->recvs[i].qp->host == host && p->recvs[i].keys & 1u << id)
			p->recvs[i].may |= 1u << IBV_WC_LOC_PROT_ERR;
}

void key_deregister(struct prog *p, unsigned host, enum key_id id)
{
	struct key *k = &p->host[host].key[id];
	unsigned tries = 0;

	SAY(p, "host %u: deregister memory region %u", host, id);
	k->stale = k->mr->rkey;
	doubt(p, host, id);
	while (ur_mr_dereg(k->mr))
		if (!world_step(&p->w, p->w.now + UR_NS_PER_MS) || ++tries == 1000) {
			broke(p, "host %u: frames refer to memory region %u for ever", host, id);
			return;
		}
	k->mr = NULL;
}

/* --- QPs --- */

static enum ibv_qp_type type_of(enum service s)
{
	return s == RC ? IBV_QPT_RC : s == UC ? IBV_QPT_UC : IBV_QPT_UD;
}

bool qp_create(struct prog *p, struct sim_qp *q)
{
	struct sim_host *h = host_of(p, q);
	struct ur_qp_init init = {.type = type_of(q->svc),
				  .pd = h->pd,
				  .send_cq = q->scq->cq,
				  .recv_cq = q->rcq->cq,
				  .context = q,
				  .event = on_event,
				  .sq_sig_all = q->sig_all};

	init.cap = (struct ibv_qp_cap){.max_send_wr = p->sq_wr,
				       .max_recv_wr = p->rq_wr,
				       .max_send_sge = p->max_sge,
				       .max_recv_sge = p->max_sge,
				       .max_inline_data = 64};
	if (ur_qp_create(h->nic->tp, &init, &q->qp))
		return false;
	q->cap = init.cap;
	q->qpn = ur_qp_num(q->qp);
	q->path = (struct ur_net_path){.owner = NULL};
	SAY(p, "qp %u: created, number %#x", q->index, q->qpn);
	return true;
}

static void new_epoch(struct sim_qp *q)
{
	q->epoch++;
	q->life = UP;
	q->causes = q->drained = q->judged = q->seen = 0;
	q->send_failed = q->recv_failed = q->sqd = q->frozen = q->unexplained = false;
	q->went_bad = NEVER;
	q->shead = q->stail = q->rhead = q->rtail = q->nrops = q->delivered = 0;
	q->fence = 0;
}

static int modify(struct prog *p, struct sim_qp *q, const struct ibv_qp_attr *a, int mask)
{
	return ur_nic_modify_qp(host_of(p, q)->nic, q->qp, &q->path, a, mask | IBV_QP_STATE, p->w.now);
}

static bool to_rts(struct prog *p, struct sim_qp *q, uint32_t mine, uint32_t theirs)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)q->access};

	if (modify(p, q, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = p->mtu,
				 .dest_qp_num = q->peer->qpn,
				 .rq_psn = theirs,
				 .max_dest_rd_atomic = q->peer->depth,
				 .min_rnr_timer = q->min_rnr,
				 .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	memcpy(a.ah_attr.grh.dgid.raw, p->w.gid[q->peer->host].raw, 16);
	if (modify(p, q, &a,
		   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   (q->svc == RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = q->timeout,
				 .retry_cnt = q->retry_cnt,
				 .rnr_retry = q->rnr_retry,
				 .sq_psn = mine,
				 .max_rd_atomic = q->depth};
	return !modify(p, q, &a,
		       IBV_QP_SQ_PSN | (q->svc == RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

static uint32_t random_psn(struct prog *p)
{
	return one_in(p, 3) ? 0xffffff - below(p, 64) : below(p, 1 << 24);
}

static uint8_t timeout_code(ur_time t)
{
	uint8_t code = 1;

	while (code < 31 && 4096ull << code < t)
		code++;
	return code;
}

/* What one side of a connection asks for. */
static void random_attributes(struct prog *p, struct sim_qp *q)
{
	ur_time rtt = fabric_rtt(&p->f, (uint64_t)p->nqp * 512 * (p->mtu_bytes + 120));
	unsigned less = 1 + below(p, 8);

	q->timeout = timeout_code(2 * rtt + 20 * UR_NS_PER_US);
	q->tight = one_in(p, 10);
	if (q->tight)
		q->timeout = q->timeout > less ? (uint8_t)(q->timeout - less) : 1;
	else if (one_in(p, 3))
		q->timeout++;
	q->retry_cnt = one_in(p, 4) ? (uint8_t)below(p, 8) : 7;
	q->rnr_retry = one_in(p, 4) ? (uint8_t)below(p, 8) : 7;
	q->min_rnr = one_in(p, 8) ? (uint8_t)below(p, 32) : (uint8_t)(1 + below(p, 14));
	q->depth = (uint8_t)(p->sins && one_in(p, 20) ? 0 : 1 + below(p, one_in(p, 2) ? 2 : 16));
	q->access = LW | RW | RR | RA;
	if (p->sins && one_in(p, 20))
		q->access &= one_in(p, 2) ? ~RW : ~(RR | RA);
}

/* Connects a QP and its peer; both are in RESET. */
void qp_connect(struct prog *p, struct sim_qp *q)
{
	struct sim_qp *o = q->peer;
	uint32_t psn[2] = {random_psn(p), random_psn(p)};

	random_attributes(p, q);
	new_epoch(q);
	if (o == q) {
		psn[1] = psn[0];
	} else {
		random_attributes(p, o);
		new_epoch(o);
	}
	if (!to_rts(p, q, psn[0], psn[1]) || (o != q && !to_rts(p, o, psn[1], psn[0])))
		broke(p, "qp %u: cannot be connected to qp %u", q->index, o->index);
	SAY(p,
	    "qp %u and %u: connected; timeouts %u %u, retries %u %u, RNR retries %u %u, RNR timers %u %u, READs %u %u, access %#x %#x, "
	    "PSNs %#x %#x",
	    q->index, o->index, q->timeout, o->timeout, q->retry_cnt, o->retry_cnt, q->rnr_retry, o->rnr_retry, q->min_rnr, o->min_rnr,
	    q->depth, o->depth, (unsigned)q->access, (unsigned)o->access, psn[0], psn[1]);
}

static void leaves(struct prog *p, struct sim_qp *q)
{
	q->went_bad = q->went_bad == NEVER ? ++p->clock : q->went_bad;
	q->causes |= CAUSE_PROGRAM;
	if (q->life == UP)
		q->life = BROKEN;
}

int qp_to(struct prog *p, struct sim_qp *q, enum ibv_qp_state to)
{
	struct ibv_qp_attr a = {.qp_state = to, .en_sqd_async_notify = 1};

	SAY(p, "qp %u: to state %d", q->index, to);
	if (to == IBV_QPS_ERR)
		leaves(p, q);
	return modify(p, q, &a, to == IBV_QPS_SQD ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0);
}

/* As the verbs do it: what has completed and was not polled is lost. */
static void clean_cqs(struct prog *p, struct sim_qp *q)
{
	ur_cq_clean(q->scq->cq, q->qpn);
	if (q->rcq != q->scq)
		ur_cq_clean(q->rcq->cq, q->qpn);
	host_of(p, q)->cleaned = true;
	q->scq->armed_empty = q->rcq->armed_empty = false;
}

ur_time in_flight_time(const struct prog *p)
{
	return p->f.lifetime + fabric_rtt(&p->f, (uint64_t)p->nqp * 512 * (p->mtu_bytes + 120));
}

/* What it has sent may be under way for a while, and would be taken for something new if it were connected at once. */
static void is_down(struct prog *p, struct sim_qp *q)
{
	give_up(p, q);
	q->life = DOWN;
	q->ready_at = p->w.now + in_flight_time(p);
}

void qp_reset(struct prog *p, struct sim_qp *q)
{
	if (qp_to(p, q, IBV_QPS_RESET))
		broke(p, "qp %u: cannot be reset", q->index);
	leaves(p, q);
	clean_cqs(p, q);
	is_down(p, q);
}

void qp_destroy(struct prog *p, struct sim_qp *q)
{
	SAY(p, "qp %u: destroy", q->index);
	leaves(p, q);
	if (ur_nic_destroy_qp(host_of(p, q)->nic, q->qp, &q->path))
		broke(p, "qp %u: cannot be destroyed", q->index);
	q->qp = NULL;
	clean_cqs(p, q);
	is_down(p, q);
}

/* --- all of them --- */

static void on_completion(struct ur_cq *cq)
{
	((struct sim_cq *)ur_cq_context(cq))->notified++;
}

static bool setup_host(struct prog *p, unsigned i)
{
	struct sim_host *h = &p->host[i];

	*h = (struct sim_host){.nic = p->w.nic[i], .ncq = 1 + below(p, CQS_MAX)};
	memory_init(p, i);
	if (ur_pd_create(h->nic->tp, &h->pd) || ur_pd_create(h->nic->tp, &h->pd2))
		return false;
	for (unsigned k = 0; k < KEYS; k++)
		if (!key_register(p, i, (enum key_id)k))
			return false;
	for (unsigned k = 0; k < h->ncq; k++) {
		struct sim_cq *c = &h->cq[k];

		*c = (struct sim_cq){.host = i, .index = k};
		if (ur_cq_create(h->nic->tp, p->nqp * (p->sq_wr + p->rq_wr), c, on_completion, &c->cq))
			return false;
	}
	return true;
}

static void choose_qp(struct prog *p, struct sim_qp *q, unsigned index, unsigned host, struct sim_qp *peer)
{
	struct sim_host *h = &p->host[host];

	memset(q, 0, offsetof(struct sim_qp, sends));
	q->p = p;
	q->index = index;
	q->host = host;
	q->svc = RC;
	q->peer = peer;
	q->life = DOWN;
	q->epoch = 0;
	q->scq = &h->cq[below(p, h->ncq)];
	q->rcq = one_in(p, 2) ? q->scq : &h->cq[below(p, h->ncq)];
	q->sig_all = one_in(p, 4);
}

/* Pairs between the hosts, and now and then within one of them, or of a QP with itself. */
static void choose_pairs(struct prog *p, unsigned pairs)
{
	unsigned n = 0;

	for (unsigned i = 0; i < pairs; i++) {
		unsigned host = below(p, 2), other = one_in(p, 8) ? host : !host;

		if (one_in(p, 40)) {
			choose_qp(p, &p->qp[n], n, host, &p->qp[n]);
			n++;
			continue;
		}
		choose_qp(p, &p->qp[n], n, host, &p->qp[n + 1]);
		choose_qp(p, &p->qp[n + 1], n + 1, other, &p->qp[n]);
		n += 2;
	}
	p->nqp = n;
}

static void choose_sizes(struct prog *p)
{
	unsigned max = (unsigned)ur_nic_max_mtu(p->f.mtu), packets = one_in(p, 2) ? 4 : 12;

	p->mtu = (enum ibv_mtu)(1 + below(p, max));
	p->mtu = one_in(p, 2) ? (enum ibv_mtu)max : p->mtu;
	p->mtu_bytes = 128u << p->mtu;
	if (p->mtu_bytes <= 512 && one_in(p, 12))
		packets = 300; /* more than a window */
	p->max_len = packets * p->mtu_bytes;
	p->sq_wr = 1u << (1 + below(p, 5));
	p->rq_wr = 1u << (1 + below(p, 4));
	p->max_sge = one_in(p, 8) ? UR_MAX_SGE : 1 + below(p, 4);
	p->sins = one_in(p, 2);
	p->breaks = one_in(p, 2);
}

const char *setup(struct prog *p)
{
	unsigned pairs = 1 + below(p, PAIRS_MAX);

	choose_sizes(p);
	p->nqp = 2 * pairs;
	for (unsigned i = 0; i < WORLD_HOSTS; i++)
		if (!setup_host(p, i))
			return "the objects of a host could not be made";
	choose_pairs(p, pairs);
	for (unsigned i = 0; i < p->nqp; i++)
		if (!qp_create(p, &p->qp[i]))
			return "a QP could not be made";
	for (unsigned i = 0; i < p->nqp; i++)
		if (p->qp[i].life == DOWN)
			qp_connect(p, &p->qp[i]);
	p->pace = 1 + fabric_rtt(&p->f, p->mtu_bytes) / (1u << below(p, 6));
	p->patience = 200 * (8 * (4096ull << 8) + fabric_rtt(&p->f, (uint64_t)p->nqp * 512 * (p->mtu_bytes + 120))) + 2000 * UR_NS_PER_S;
	return NULL;
}

const char *teardown(struct prog *p)
{
	const char *left = NULL;

	for (unsigned i = 0; i < p->nqp; i++)
		if (p->qp[i].qp)
			qp_destroy(p, &p->qp[i]);
	for (unsigned i = 0; i < WORLD_HOSTS; i++) {
		struct sim_host *h = &p->host[i];

		for (unsigned k = 0; k < h->ncq; k++)
			if (h->cq[k].cq && ur_cq_destroy(h->cq[k].cq))
				left = "a CQ could not be destroyed";
		for (unsigned k = 0; k < KEYS; k++)
			if (h->key[k].mr)
				key_deregister(p, i, (enum key_id)k);
		if ((h->pd && ur_pd_destroy(h->pd)) || (h->pd2 && ur_pd_destroy(h->pd2)))
			left = "a PD could not be destroyed";
	}
	return left;
}
