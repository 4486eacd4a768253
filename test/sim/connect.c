/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs: making, connecting, breaking, taking down. */
#include <string.h>

#include "test/sim/prog.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC

static enum ibv_qp_type type_of(const struct sim_qp *q)
{
	static const enum ibv_qp_type types[] = {[RC] = IBV_QPT_RC, [UC] = IBV_QPT_UC, [UD] = IBV_QPT_UD};

	if (q->svc == XRC)
		return q->sends ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
	return types[q->svc];
}

/* Datagrams and XRC are the first lane's. What it completes in and receives from may be used by other lanes' QPs. */
static void choose_lane(struct prog *p, struct sim_qp *q)
{
	const struct sim_host *h = host_of(p, q);
	struct ur_tp *tp;

	q->nic = q->host;
	if (h->lanes == 1)
		return;
	if (q->svc == RC || q->svc == UC)
		q->nic = h->lane[below(p, h->lanes)];
	p->stats->further += q->nic != q->host;
	tp = nic_of(p, q)->tp;
	ur_cq_share(q->scq->cq, tp);
	ur_cq_share(q->rcq->cq, tp);
	if (q->rq->srq)
		ur_srq_share(q->rq->srq, tp);
}

bool qp_create(struct prog *p, struct sim_qp *q)
{
	struct sim_host *h = host_of(p, q);
	struct ur_qp_init init = {.type = type_of(q),
				  .pd = h->pd,
				  .send_cq = q->scq->cq,
				  .recv_cq = q->rcq->cq,
				  .context = q,
				  .event = on_event,
				  .sq_sig_all = q->sig_all};

	choose_lane(p, q);
	init.srq = q->svc == XRC ? NULL : q->rq->srq;
	init.xrcd = q->svc == XRC && q->receives ? h->xrcd : NULL;
	init.cap = (struct ibv_qp_cap){.max_send_wr = q->sends ? p->sq_wr : 0,
				       .max_recv_wr = p->rq_wr,
				       .max_send_sge = p->max_sge,
				       .max_recv_sge = p->max_sge,
				       .max_inline_data = 64};
	if (ur_qp_create(nic_of(p, q)->tp, &init, &q->qp))
		return false;
	q->cap = init.cap;
	q->qpn = ur_qp_num(q->qp);
	q->path = (struct ur_net_path){.owner = NULL};
	p->stats->services[q->svc]++;
	SAY(p, "qp %u: created in NIC %u, type %d, number %#x%s", q->index, q->nic, type_of(q), q->qpn, q->rq->srq ? ", with an SRQ" : "");
	return true;
}

static void new_epoch(struct sim_qp *q)
{
	q->epoch++;
	q->life = UP;
	q->causes = q->drained = q->judged = q->seen = 0;
	q->send_failed = q->recv_failed = q->sqd = q->frozen = q->unexplained = false;
	q->went_bad = NEVER;
	q->shead = q->stail = q->nrops = q->delivered = 0;
	q->own.head = q->own.tail = 0;
	q->fence = 0;
}

static int modify(struct prog *p, struct sim_qp *q, const struct ibv_qp_attr *a, int mask)
{
	return ur_nic_modify_qp(nic_of(p, q), q->qp, &q->path, a, mask | IBV_QP_STATE, p->w.now);
}

#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRY (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/* What the transitions require besides the state. */
static int rtr_mask(const struct sim_qp *q)
{
	if (q->svc == UD)
		return 0;
	return CONNECT | (reliable(q) && q->receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

static int rts_mask(const struct sim_qp *q)
{
	if (reliable(q))
		return IBV_QP_SQ_PSN | (q->sends ? RETRY : IBV_QP_TIMEOUT);
	return IBV_QP_SQ_PSN;
}

static bool to_rts(struct prog *p, struct sim_qp *q, uint32_t mine, uint32_t theirs)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)q->access, .qkey = q->qkey};

	if (modify(p, q, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (q->svc == UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = p->mtu,
				 .dest_qp_num = q->peer->qpn,
				 .rq_psn = theirs,
				 .max_dest_rd_atomic = q->peer->served,
				 .min_rnr_timer = q->min_rnr,
				 .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
	memcpy(a.ah_attr.grh.dgid.raw, p->w.gid[q->peer->host].raw, 16);
	if (modify(p, q, &a, rtr_mask(q)))
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				 .timeout = q->timeout,
				 .retry_cnt = q->retry_cnt,
				 .rnr_retry = q->rnr_retry,
				 .sq_psn = mine,
				 .max_rd_atomic = q->depth};
	if (modify(p, q, &a, rts_mask(q)))
		return false;
	if (q->svc == UD && one_in(p, 2))
		q->attached = !ur_nic_attach_mcast(nic_of(p, q), q->qp, &p->group);
	return true;
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

ur_time loaded_rtt(const struct prog *p)
{
	return fabric_rtt(&p->f, (uint64_t)p->nqp * 512 * (p->mtu_bytes + 120));
}

/* What one side of a connection asks for. */
static void random_attributes(struct prog *p, struct sim_qp *q)
{
	ur_time rtt = loaded_rtt(p);
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
	q->served = p->sins && q->depth > 1 && one_in(p, 8) ? (uint8_t)(1 + below(p, q->depth - 1u)) : q->depth;
	q->access = LW | RW | RR | RA;
	q->qkey = 0x11111111;
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
	    "qp %u and %u: connected; timeouts %u %u, retries %u %u, RNR retries %u %u, RNR timers %u %u, READs %u %u of %u %u, "
	    "access %#x %#x, PSNs %#x %#x",
	    q->index, o->index, q->timeout, o->timeout, q->retry_cnt, o->retry_cnt, q->rnr_retry, o->rnr_retry, q->min_rnr, o->min_rnr,
	    q->depth, o->depth, q->served, o->served, (unsigned)q->access, (unsigned)o->access, psn[0], psn[1]);
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
	if (q->sends)
		ur_cq_clean(q->scq->cq, q->qpn);
	if (q->receives && q->svc != XRC && (q->rcq != q->scq || !q->sends))
		ur_cq_clean(q->rcq->cq, q->qpn);
	host_of(p, q)->cleaned = true;
	q->scq->armed_empty = q->rcq->armed_empty = false;
}

/* What came out of an SRQ must be known before it is lost; one receive may be under way in the QP, and nobody hears of it again. */
static void before_the_end(struct prog *p, struct sim_qp *q)
{
	if (q->rq->srq) {
		do
			world_step(&p->w, p->w.now);
		while (p->w.mail[q->nic].waiting || nic_of(p, q)->loop.head);
		reap(p, q->rcq, UINT32_MAX);
		q->rq->lost++;
	}
	if (q->attached && ur_nic_detach_mcast(nic_of(p, q), q->qp, &p->group))
		broke(p, "qp %u: cannot be detached from its group", q->index);
	q->attached = false;
}

/* Unreliable QPs have no window: what they have sent may fill a link for long. */
ur_time in_flight_time(const struct prog *p)
{
	const ur_time until = ur_sim_queued_until(p->w.sim);

	return (until > p->w.now ? until - p->w.now : 0) + p->f.lifetime + loaded_rtt(p);
}

/* What it has sent may be under way for a while, and would be taken for something new if it were connected at once. */
static void is_down(struct prog *p, struct sim_qp *q)
{
	give_up(p, q);
	windows_lose_owner(p, q);
	q->life = DOWN;
	q->ready_at = p->w.now + in_flight_time(p);
}

void qp_reset(struct prog *p, struct sim_qp *q)
{
	before_the_end(p, q);
	if (qp_to(p, q, IBV_QPS_RESET))
		broke(p, "qp %u: cannot be reset", q->index);
	leaves(p, q);
	clean_cqs(p, q);
	is_down(p, q);
}

void qp_destroy(struct prog *p, struct sim_qp *q)
{
	before_the_end(p, q);
	SAY(p, "qp %u: destroy", q->index);
	leaves(p, q);
	if (ur_nic_destroy_qp(nic_of(p, q), q->qp, &q->path))
		broke(p, "qp %u: cannot be destroyed", q->index);
	q->qp = NULL;
	clean_cqs(p, q);
	is_down(p, q);
}
