/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester whose path to the peer is not known yet, or no longer. */
#include "tp_harness.h"

void ur_suite_unready_path(void);

/* Nothing can be sent, so nothing can be answered: the requests still fail when the retries are used up, and no sooner. */
static void timeout__counts_without_a_path(void)
{
	struct th_opt o = th_default;
	struct th h;

	o.retry_cnt = 3;
	th_open(&h, &o);
	h.n[0].path.ready = false;
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, 1, 0, 10, 0, IBV_SEND_SIGNALED), 0);
	th_run(&h, 9 * (4096ull << o.timeout)); /* of 10 */
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(h.sent[0], 0);
	th_run(&h, 2 * (4096ull << o.timeout));
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
	th_close(&h);
}

/* A path that comes late is in time. */
static void timeout__path_comes_late(void)
{
	struct th h;

	th_open(&h, &th_default);
	h.n[0].path.ready = false;
	CU_ASSERT_EQUAL(th_recv(&h, 1, 7, 0, 100), 0);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, 1, 0, 10, 0, IBV_SEND_SIGNALED), 0);
	th_run(&h, 3 * (4096ull << th_default.timeout));
	h.n[0].path.ready = true;
	ur_qp_kick(h.n[0].qp, h.now);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[1].rcq, 7, IBV_WC_SUCCESS);
	th_close(&h);
}

void ur_suite_unready_path(void)
{
	CU_pSuite s = CU_add_suite("unready_path", NULL, NULL);

	CU_ADD_TEST(s, timeout__counts_without_a_path);
	CU_ADD_TEST(s, timeout__path_comes_late);
}
