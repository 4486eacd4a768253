/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State transitions of queue pairs (IBTA volume 1, 11.2.5.2, table 91; ibv_modify_qp(3)): one table says which exist for which service,
 * what each requires and what it allows; one list of setters checks and takes over the attributes.
 */
#include <errno.h>

#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/failure/retry.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/qp.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"

#define HELLO_PSNS 64     /* while so many are sent, a new connection says hello */
#define HELLO_MOST 512    /* the end of those that do so because others were lost */
#define HELLO_WITHIN 1024 /* packets: who has not said hello then does not say it */

/* --- the table --- */

enum { RC, UC, UD, XS, XR, SERVICES }; /* XS, XR: the requester's and the responder's half of XRC */

struct transition {
	unsigned services; /* bits 1 << RC ... */
	int required[SERVICES], optional[SERVICES];
};

#define ALL (1u << RC | 1u << UC | 1u << UD | 1u << XS | 1u << XR)
#define STATES (IBV_QPS_ERR + 1)

#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define ACCESS IBV_QP_ACCESS_FLAGS
#define QKEY IBV_QP_QKEY
#define CUR IBV_QP_CUR_STATE
#define ALT IBV_QP_ALT_PATH
#define MIG IBV_QP_PATH_MIG_STATE
#define MINRNR IBV_QP_MIN_RNR_TIMER
#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define PPA (PKEY | PORT | ACCESS)
#define CAM (CUR | ALT | ACCESS | MIG)
#define RETRY (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)

#define ANY_TO_RESET_OR_ERR [IBV_QPS_RESET] = {.services = ALL}, [IBV_QPS_ERR] = {.services = ALL}

static const struct transition transitions[STATES][STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {.services = ALL},
			[IBV_QPS_INIT] = {ALL, .required = {[RC] = PPA, [UC] = PPA, [UD] = PKEY | PORT | QKEY, [XS] = PPA, [XR] = PPA}},
		},
	[IBV_QPS_INIT] =
		{
			ANY_TO_RESET_OR_ERR,
			[IBV_QPS_INIT] = {ALL, .optional = {[RC] = PPA, [UC] = PPA, [UD] = PKEY | PORT | QKEY, [XS] = PPA, [XR] = PPA}},
			[IBV_QPS_RTR] = {ALL,
					 .required = {[RC] = CONNECT | IBV_QP_MAX_DEST_RD_ATOMIC | MINRNR,
						      [UC] = CONNECT,
						      [XS] = CONNECT,
						      [XR] = CONNECT | IBV_QP_MAX_DEST_RD_ATOMIC | MINRNR},
					 .optional = {[RC] = ALT | ACCESS | PKEY,
						      [UC] = ALT | ACCESS | PKEY,
						      [UD] = PKEY | QKEY,
						      [XS] = ALT | ACCESS | PKEY,
						      [XR] = ALT | ACCESS | PKEY}},
		},
	[IBV_QPS_RTR] =
		{
			ANY_TO_RESET_OR_ERR,
			[IBV_QPS_RTS] = {ALL,
					 .required = {[RC] = RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
						      [UC] = IBV_QP_SQ_PSN,
						      [UD] = IBV_QP_SQ_PSN,
						      [XS] = RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
						      [XR] = IBV_QP_TIMEOUT | IBV_QP_SQ_PSN},
					 .optional = {[RC] = CAM | MINRNR, [UC] = CAM, [UD] = CUR | QKEY, [XS] = CAM, [XR] = CAM | MINRNR}},
		},
	[IBV_QPS_RTS] =
		{
			ANY_TO_RESET_OR_ERR,
			[IBV_QPS_RTS] = {ALL,
					 .optional = {[RC] = CAM | MINRNR, [UC] = CAM, [UD] = CUR | QKEY, [XS] = CAM, [XR] = CAM | MINRNR}},
			[IBV_QPS_SQD] = {ALL, .optional = {[RC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
							   [UC] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
							   [UD] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
							   [XS] = IBV_QP_EN_SQD_ASYNC_NOTIFY,
							   [XR] = IBV_QP_EN_SQD_ASYNC_NOTIFY}},
		},
	[IBV_QPS_SQD] =
		{
			ANY_TO_RESET_OR_ERR,
			[IBV_QPS_RTS] = {ALL,
					 .optional = {[RC] = CAM | MINRNR, [UC] = CAM, [UD] = CUR | QKEY, [XS] = CAM, [XR] = CAM | MINRNR}},
			[IBV_QPS_SQD] = {ALL, .optional = {[RC] = PORT | IBV_QP_AV | RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
								  IBV_QP_MAX_DEST_RD_ATOMIC | ALT | ACCESS | PKEY | MINRNR | MIG,
							   [UC] = IBV_QP_AV | ALT | ACCESS | PKEY | MIG,
							   [UD] = PKEY | QKEY,
							   [XS] = PORT | IBV_QP_AV | RETRY | IBV_QP_MAX_QP_RD_ATOMIC | ALT | ACCESS |
								  PKEY | MIG,
							   [XR] = PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | ALT |
								  ACCESS | PKEY | MINRNR | MIG}},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {.services = 1u << UC | 1u << UD},
			[IBV_QPS_ERR] = {.services = 1u << UC | 1u << UD},
			[IBV_QPS_RTS] = {1u << UC | 1u << UD, .optional = {[UC] = CUR | ACCESS, [UD] = CUR | QKEY}},
		},
	[IBV_QPS_ERR] = {ANY_TO_RESET_OR_ERR},
};

int ur_qp_modify_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	static const uint8_t column[] = {
		[IBV_QPT_RC] = RC, [IBV_QPT_UC] = UC, [IBV_QPT_UD] = UD, [IBV_QPT_XRC_SEND] = XS, [IBV_QPT_XRC_RECV] = XR};
	unsigned svc = column[type];
	const struct transition *t;

	if ((unsigned)from >= STATES || (unsigned)to >= STATES)
		return EINVAL;
	t = &transitions[from][to];
	mask &= ~IBV_QP_STATE;
	if (!(t->services & 1u << svc) || (mask & t->required[svc]) != t->required[svc] || mask & ~(t->required[svc] | t->optional[svc]))
		return EINVAL;
	return 0;
}

/* --- values --- */

/* Flags that say how memory is registered give a peer no right, but programs use one set for their MRs and QPs. */
#define ACCESS_OF_MEMORY (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define ACCESS_ALL                                                                                                                         \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND |       \
	 UR_ACCESS_FLUSH | ACCESS_OF_MEMORY)

static bool values_ok(const struct ur_qp *qp, const struct ibv_qp_attr *a, int mask, const struct ur_path *path)
{
	const struct {
		int attr;
		bool ok;
	} checks[] = {
		{IBV_QP_CUR_STATE, a->cur_qp_state == ur_qp_st(qp)},
		{IBV_QP_PKEY_INDEX, a->pkey_index == 0},
		{IBV_QP_PORT, a->port_num == 1},
		{IBV_QP_ACCESS_FLAGS, !(a->qp_access_flags & ~(unsigned)ACCESS_ALL)},
		{IBV_QP_AV, path != NULL},
		{IBV_QP_PATH_MTU, a->path_mtu >= IBV_MTU_256 && a->path_mtu <= IBV_MTU_4096},
		{IBV_QP_DEST_QPN, a->dest_qp_num <= 0xffffff},
		{IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic <= UR_MAX_RD_ATOMIC},
		{IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic <= UR_MAX_RD_ATOMIC},
		{IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer <= 31},
		{IBV_QP_TIMEOUT, a->timeout <= 31},
		{IBV_QP_RETRY_CNT, a->retry_cnt <= 7},
		{IBV_QP_RNR_RETRY, a->rnr_retry <= 7},
	};

	for (unsigned i = 0; i < ur_array_size(checks); i++)
		if (mask & checks[i].attr && !checks[i].ok)
			return false;
	return true;
}

static int check_values(const struct ur_qp *qp, const struct ibv_qp_attr *a, int mask, const struct ur_path *path)
{
	/* No automatic path migration: the only state is MIGRATED and there is no alternate path. */
	if (mask & IBV_QP_ALT_PATH || (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state != IBV_MIG_MIGRATED))
		return EOPNOTSUPP;
	return values_ok(qp, a, mask, path) ? 0 : EINVAL;
}

/* The MTU is known: a new window. */
static void open_window(struct ur_qp *qp)
{
	if (qp->path && qp->path->local && qp->type == IBV_QPT_RC)
		ur_window_open_local(&qp->req.window, qp->tp->c.window, qp->req.una);
	else
		ur_window_open(&qp->req.window, qp->tp->window_bytes >> qp->mtu_shift, qp->tp->c.window, qp->req.una);
	ur_qp_cwnd_open(qp);
	ur_comp_trace_window(qp);
}

/* --- taking over --- */

static void set_addressing(struct ur_qp *qp, const struct ibv_qp_attr *a, int mask, const struct ur_path *path)
{
	if (mask & IBV_QP_PKEY_INDEX)
		qp->attr.pkey_index = a->pkey_index;
	if (mask & IBV_QP_PORT)
		qp->attr.port_num = a->port_num;
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->access = (int)a->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		qp->attr.qkey = a->qkey;
	if (mask & IBV_QP_AV) {
		qp->attr.ah_attr = a->ah_attr;
		qp->path = path;
	}
	if (mask & IBV_QP_PATH_MTU) {
		qp->attr.path_mtu = a->path_mtu;
		qp->mtu_shift = 7 + (uint32_t)a->path_mtu; /* IBV_MTU_256 is 1 */
		qp->mtu = 1u << qp->mtu_shift;
		open_window(qp);
	}
	if (mask & IBV_QP_DEST_QPN)
		qp->dqpn = a->dest_qp_num;
}

/* Requests come from now on. */
static void open_responder(struct ur_qp *qp, uint32_t psn)
{
	struct ur_responder *r = &qp->resp;

	r->paced_from = r->epsn = psn & UR_PSN_MASK; /* programs pass 32 random bits, and hardware takes 24 */
	r->slow_path = UR_RESP_NEW | (qp->tp->reorder && ur_qp_acked(qp) ? UR_RESP_AWAITS_HELLO : 0);
	r->listens = HELLO_WITHIN;
	r->ack_syndrome = ur_syndrome(UR_AETH_NAK, 0); /* so it has acknowledged nothing */
}

static void set_responder(struct ur_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ur_responder *r = &qp->resp;

	if (mask & IBV_QP_RQ_PSN)
		open_responder(qp, a->rq_psn);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		qp->attr.max_dest_rd_atomic = a->max_dest_rd_atomic;
		r->rd_n = a->max_dest_rd_atomic;
		r->rd_count = ur_min_u32(r->rd_count, r->rd_n);
	}
	if (mask & IBV_QP_MIN_RNR_TIMER)
		qp->attr.min_rnr_timer = r->min_rnr = a->min_rnr_timer;
}

static void set_requester(struct ur_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ur_requester *r = &qp->req;

	if (mask & IBV_QP_SQ_PSN) {
		r->first = r->una = r->next = r->max = r->restart = r->packets_until = a->sq_psn & UR_PSN_MASK;
		ur_scoreboard_open(&r->scoreboard, r->una);
		r->cwnd.seen = r->probe.earned = r->una;
		r->hello = qp->tp->c.selective_repeat && ur_qp_acked(qp) && !qp->path->local;
		r->hello_end = ur_psn_add(r->una, HELLO_PSNS);
		r->hello_most = ur_psn_add(r->una, r->hello ? HELLO_MOST : 0);
		r->rtt.resent = r->window.grow_from = r->una;
	}
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = r->max_rd = a->max_rd_atomic;
	if (mask & IBV_QP_TIMEOUT) {
		qp->attr.timeout = a->timeout;
		r->timeout = r->wait = a->timeout ? 4096ull << a->timeout : 0;
	}
	if (mask & IBV_QP_RETRY_CNT)
		qp->attr.retry_cnt = r->retry_cnt = r->retry_left = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		qp->attr.rnr_retry = r->rnr_cnt = r->rnr_left = a->rnr_retry;
}

static void enter(struct ur_qp *qp, enum ibv_qp_state to, ur_time now)
{
	qp->tp->now = now;
	if (to == IBV_QPS_RESET) {
		ur_qp_to_reset(qp);
	} else if (to == IBV_QPS_ERR) {
		ur_qp_to_err(qp);
		return;
	} else if (ur_qp_st(qp) == IBV_QPS_SQE) {
		ur_qp_kick(qp, now); /* what was posted before is flushed, not sent */
	}
	ur_qp_set_state(qp, to);
	ur_qp_sqd_check(qp);
	ur_qp_kick(qp, now);
}

int ur_qp_modify(struct ur_qp *qp, const struct ibv_qp_attr *attr, int mask, const struct ur_path *path, ur_time now)
{
	enum ibv_qp_state from = ur_qp_st(qp), to = mask & IBV_QP_STATE ? attr->qp_state : from;
	int err = ur_qp_modify_check((enum ibv_qp_type)qp->type, from, to, mask);

	if (!err)
		err = check_values(qp, attr, mask, path);
	if (err)
		return err;
	set_addressing(qp, attr, mask, path);
	set_responder(qp, attr, mask);
	set_requester(qp, attr, mask);
	if (to == IBV_QPS_SQD && qp->req.cur == qp->req.fresh)
		ur_tail_probe_last(qp);
	if (from != IBV_QPS_SQD || to != IBV_QPS_SQD)
		qp->sqd_notify = to == IBV_QPS_SQD && mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify;
	enter(qp, to, now);
	return 0;
}
