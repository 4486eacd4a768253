/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: instances that have regions and windows in common, and queues that QPs of several instances use. */
#include <errno.h>

#include "srq_harness.h"
#include "tp_harness.h"
#include "transport/memory/mr.h"
#include "transport/memory/mw.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/state/token.h"

void ur_suite_lanes(void);

#define FIRST(h) ((h)->n[0].tp)

/* Another instance like the first node's. */
static struct ur_tp *open_lane(struct th *h)
{
	struct ur_tp_config c = FIRST(h)->c;
	struct ur_tp *lane = NULL;

	c.slot = 9;
	CU_ASSERT_FATAL(ur_tp_create(&c, &lane) == 0);
	return lane;
}

static struct ur_tp *join(struct th *h)
{
	struct ur_tp *lane = open_lane(h);

	CU_ASSERT_EQUAL_FATAL(ur_tp_join(lane, FIRST(h)), 0);
	return lane;
}

static struct ur_qp *make_qp(struct th *h, struct ur_tp *tp, struct ur_srq *srq)
{
	struct ur_qp_init init = {.type = IBV_QPT_RC,
				  .pd = h->n[0].pd,
				  .send_cq = h->n[0].scq,
				  .recv_cq = h->n[0].rcq,
				  .srq = srq,
				  .cap = {.max_send_wr = 4, .max_recv_wr = srq ? 0 : 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ur_qp *qp = NULL;

	ur_cq_share(init.send_cq, tp);
	ur_cq_share(init.recv_cq, tp);
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(tp, &init, &qp), 0);
	return qp;
}

static void join__limit(void)
{
	struct ur_tp *lane[UR_LANES];
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 1; i < UR_LANES; i++)
		lane[i] = join(&h);
	lane[0] = open_lane(&h);
	CU_ASSERT_EQUAL(ur_tp_join(lane[0], FIRST(&h)), ENOSPC);
	for (unsigned i = 0; i < UR_LANES; i++)
		ur_tp_destroy(lane[i]);
	th_close(&h);
}

static void join__regions_are_common(void)
{
	static uint8_t buf[64];
	struct ur_mr *mr, *later;
	struct ur_tp *lane;
	static struct th h;
	uint64_t token;
	uint32_t at;

	th_open(&h, &th_default);
	CU_ASSERT_FATAL(ur_mr_reg(FIRST(&h), h.n[0].pd, buf, 64, 0, 0, &mr) == 0);
	lane = join(&h);
	at = ur_region_token_at(mr->number);
	token = ur_token_of(lane, at);
	CU_ASSERT_NOT_EQUAL(token, 0);
	CU_ASSERT_PTR_EQUAL(ur_mr_find(lane, mr->lkey), mr);
	CU_ASSERT_FATAL(ur_mr_reg(FIRST(&h), h.n[0].pd, buf, 64, 0, 0, &later) == 0);
	CU_ASSERT_PTR_EQUAL(ur_mr_find(lane, later->lkey), later);
	CU_ASSERT_NOT_EQUAL(ur_token_of(lane, ur_region_token_at(later->number)), 0);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	CU_ASSERT_NOT_EQUAL(ur_token_of(lane, at), token); /* who copies from it by this lane sees that it has gone */
	CU_ASSERT_EQUAL(ur_mr_dereg(later), 0);
	ur_tp_destroy(lane);
	th_close(&h);
}

/* While it is bound through one lane, a window of type 1 lets packets of all in, and one of type 2 only those of its QP. */
static void windows__through_another_lane(void)
{
	static const struct {
		enum ibv_mw_type type;
		bool ok;
	} t[] = {{IBV_MW_TYPE_1, true}, {IBV_MW_TYPE_2, false}};
	static struct th_opt o;
	static struct th h;

	o = th_default;
	o.access = TH_ALL_ACCESS;
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_bind bind = {.length = 16, .access = IBV_ACCESS_REMOTE_READ};
		struct ur_qp *qp;
		struct ur_tp *lane;
		struct ur_mr *mr;
		struct ur_mw *mw;

		th_open(&h, &o);
		lane = join(&h);
		qp = make_qp(&h, lane, NULL);
		CU_ASSERT_FATAL(ur_mw_alloc(FIRST(&h), h.n[0].pd, t[i].type, &mw) == 0);
		bind.addr = (uintptr_t)h.n[0].mem;
		bind.lkey = h.n[0].mr->lkey;
		bind.rkey = ibv_inc_rkey(ur_mw_rkey(mw));
		CU_ASSERT_EQUAL(ur_mw_bind(h.n[0].qp, &bind), IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(ur_mr_dereg(h.n[0].mr), EBUSY);
		CU_ASSERT_PTR_NOT_NULL(ur_mr_at(h.n[0].qp, bind.rkey, bind.addr, 16, IBV_ACCESS_REMOTE_READ, &mr));
		CU_ASSERT_EQUAL(ur_mr_at(qp, bind.rkey, bind.addr, 16, IBV_ACCESS_REMOTE_READ, &mr) != NULL, t[i].ok);
		CU_ASSERT_FALSE(ur_mw_invalidate(qp, bind.rkey));
		ur_mw_dealloc(mw);
		CU_ASSERT_PTR_NULL(ur_mr_at(qp, bind.rkey, bind.addr, 16, IBV_ACCESS_REMOTE_READ, &mr));
		CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
		ur_tp_destroy(lane);
		th_close(&h);
	}
}

/* --- CQs --- */

static void cq__moves_until_it_is_used(void)
{
	struct ur_tp *lane;
	static struct th h;
	struct ur_cq *cq;

	th_open(&h, &th_default);
	lane = join(&h);
	CU_ASSERT_FATAL(ur_cq_create(FIRST(&h), 8, NULL, NULL, &cq) == 0);
	ur_cq_share(cq, lane);
	CU_ASSERT_PTR_EQUAL(ur_cq_lane(cq), lane);
	CU_ASSERT_EQUAL(ur_cq_room(cq, 4), 4); /* it is one lane's still */
	ur_cq_use(cq, 1);
	ur_cq_share(cq, FIRST(&h));
	CU_ASSERT_PTR_EQUAL(ur_cq_lane(cq), lane);
	CU_ASSERT_EQUAL(ur_cq_room(cq, 4), 0);
	ur_cq_use(cq, -1);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	ur_tp_destroy(lane);
	th_close(&h);
}

static void cq__completions_of_two_lanes(void)
{
	const struct ur_cqe e = {.wr_id = 1};
	struct ibv_wc wc[4];
	ur_time at = 0;
	struct ur_tp *lane;
	static struct th h;
	struct ur_cq *cq;

	th_open(&h, &th_default);
	lane = join(&h);
	CU_ASSERT_FATAL(ur_cq_create(FIRST(&h), 3, NULL, NULL, &cq) == 0);
	CU_ASSERT_FATAL(ur_cq_stamp(cq) == 0);
	ur_cq_use(cq, 1);
	ur_cq_share(cq, lane);
	FIRST(&h)->now = 5;
	lane->now = 7;
	CU_ASSERT(ur_cq_push(cq, FIRST(&h), &e, false));
	CU_ASSERT(ur_cq_push(cq, lane, &e, false));
	CU_ASSERT_EQUAL(ur_cq_take(cq, wc, &at), 1);
	CU_ASSERT_EQUAL(at, 5);
	CU_ASSERT_EQUAL(ur_cq_take(cq, wc, &at), 1);
	CU_ASSERT_EQUAL(at, 7);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT(ur_cq_push(cq, i & 1 ? FIRST(&h) : lane, &e, false));
	CU_ASSERT_FALSE(ur_cq_push(cq, lane, &e, false));
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 4, wc), -1);
	ur_cq_use(cq, -1);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	ur_tp_destroy(lane);
	th_close(&h);
}

static unsigned notifications;

static void count_notify(struct ur_cq *cq)
{
	(void)cq;
	notifications++;
}

/* What was held back when it came to be shared is told, and nothing is held back any more. */
static void cq__is_not_moderated_when_shared(void)
{
	const struct ur_cqe e = {.wr_id = 1};
	struct ur_tp *lane;
	static struct th h;
	struct ur_cq *cq;

	th_open(&h, &th_default);
	lane = join(&h);
	notifications = 0;
	CU_ASSERT_FATAL(ur_cq_create(FIRST(&h), 8, NULL, count_notify, &cq) == 0);
	ur_cq_use(cq, 1);
	ur_cq_moderate(cq, 4, 1000);
	ur_cq_arm(cq, false);
	CU_ASSERT(ur_cq_push(cq, FIRST(&h), &e, false));
	CU_ASSERT_EQUAL(notifications, 0);
	ur_cq_share(cq, lane);
	CU_ASSERT_EQUAL(notifications, 1);
	ur_cq_event_fetched(cq);
	ur_cq_arm(cq, false);
	CU_ASSERT(ur_cq_push(cq, lane, &e, false));
	CU_ASSERT_EQUAL(notifications, 2);
	ur_cq_use(cq, -1);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	ur_tp_destroy(lane);
	th_close(&h);
}

/* --- SRQs --- */

/* A request that needs a receive has it once it is known to be there: no other lane can take it in between. */
static void srq__ready_is_taken(void)
{
	struct sh_events e = {0};
	struct ur_srq *srq;
	struct ur_qp *a, *b;
	struct ur_tp *lane;
	static struct th h;
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad;

	th_open(&h, &th_default);
	lane = join(&h);
	srq = sh_srq(&h.n[0], 4, &e);
	ur_srq_share(srq, lane);
	a = make_qp(&h, FIRST(&h), srq);
	b = make_qp(&h, lane, srq);
	CU_ASSERT_EQUAL(ur_srq_post(srq, &wr, &bad), 0);
	CU_ASSERT_TRUE(ur_recv_ready(a));
	CU_ASSERT_FALSE(ur_recv_ready(b));
	CU_ASSERT_FALSE(ur_recv_take(b));
	CU_ASSERT_TRUE(ur_recv_take(a));
	CU_ASSERT_EQUAL(a->resp.w->wr_id, 5);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), EBUSY);
	CU_ASSERT_EQUAL(ur_qp_destroy(a), 0);
	CU_ASSERT_EQUAL(ur_qp_destroy(b), 0);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	ur_tp_destroy(lane);
	th_close(&h);
}

void ur_suite_lanes(void)
{
	CU_pSuite s = CU_add_suite("lanes", NULL, NULL);

	CU_ADD_TEST(s, join__limit);
	CU_ADD_TEST(s, join__regions_are_common);
	CU_ADD_TEST(s, windows__through_another_lane);
	CU_ADD_TEST(s, cq__moves_until_it_is_used);
	CU_ADD_TEST(s, cq__completions_of_two_lanes);
	CU_ADD_TEST(s, cq__is_not_moderated_when_shared);
	CU_ADD_TEST(s, srq__ready_is_taken);
}
