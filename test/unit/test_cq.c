/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/cq.c. */
#include <errno.h>

#include "tp_harness.h"

static unsigned notified, overruns;

static void count_notify(struct ur_cq *cq)
{
	(void)cq;
	notified++;
}

static void count_overrun(struct ur_cq *cq)
{
	(void)cq;
	overruns++;
}

static bool push(struct ur_cq *cq, uint64_t wr_id, uint32_t qpn, bool solicited)
{
	const struct ur_cqe e = {.wr_id = wr_id, .qpn = qpn};

	return ur_cq_push(cq, &e, solicited);
}

static struct ur_cq *make(unsigned cqe)
{
	struct ur_cq *cq = NULL;

	notified = overruns = 0;
	CU_ASSERT_FATAL(ur_cq_create(NULL, cqe, &notified, count_notify, &cq) == 0);
	return cq;
}

static void cq_create__sizes(void)
{
	static const struct {
		unsigned asked, granted;
	} t[] = {{1, 1}, {2, 3}, {3, 3}, {4, 7}, {128, 255}, {255, 255}, {65535, 65535}};
	struct ur_cq *cq;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		cq = make(t[i].asked);
		CU_ASSERT_EQUAL(ur_cq_size(cq), t[i].granted);
		for (unsigned k = 0; k < t[i].granted; k++)
			CU_ASSERT_TRUE(push(cq, k, 1, false));
		CU_ASSERT_FALSE(push(cq, 0, 1, false));
		CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	}
	CU_ASSERT_EQUAL(ur_cq_create(NULL, 0, NULL, NULL, &cq), EINVAL);
	CU_ASSERT_EQUAL(ur_cq_create(NULL, UR_MAX_CQE + 1, NULL, NULL, &cq), EINVAL);
}

static void cq_poll__order_fields_and_wrap(void)
{
	struct ur_cq *cq = make(7);
	const struct ur_cqe e = {
		.wr_id = 1ull << 40,
		.byte_len = 5,
		.imm = 0xaabbccdd,
		.qpn = 0x10002,
		.src_qp = 0x20003,
		.status = IBV_WC_REM_ACCESS_ERR,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.wc_flags = IBV_WC_WITH_IMM,
		.vendor_err = 0x62,
	};
	struct ibv_wc wc[8];

	for (uint64_t i = 0; i < 100; i++) {
		push(cq, 2 * i, 1, false);
		push(cq, 2 * i + 1, 1, false);
		CU_ASSERT_EQUAL(ur_cq_poll(cq, 8, wc), 2);
		CU_ASSERT_EQUAL(wc[0].wr_id, 2 * i);
		CU_ASSERT_EQUAL(wc[1].wr_id, 2 * i + 1);
	}
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 8, wc), 0);
	ur_cq_push(cq, &e, false);
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 0, wc), 0);
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 1, wc), 1);
	CU_ASSERT_EQUAL(wc[0].wr_id, 1ull << 40);
	CU_ASSERT_EQUAL(wc[0].byte_len, 5);
	CU_ASSERT_EQUAL(wc[0].imm_data, 0xaabbccdd);
	CU_ASSERT_EQUAL(wc[0].qp_num, 0x10002);
	CU_ASSERT_EQUAL(wc[0].src_qp, 0x20003);
	CU_ASSERT_EQUAL(wc[0].status, IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CU_ASSERT_EQUAL(wc[0].wc_flags, IBV_WC_WITH_IMM);
	CU_ASSERT_EQUAL(wc[0].vendor_err, 0x62);
	CU_ASSERT_PTR_EQUAL(ur_cq_context(cq), &notified);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
}

static void cq_arm__any_solicited_error(void)
{
	/* Arming calls ("a"ny, "s"olicited only), then pushes ("p"lain, "S"olicited, "E"rror), and how often `notify` is called. */
	static const struct {
		const char *arm, *push;
		unsigned calls;
	} t[] = {
		{"", "pSE", 0}, {"a", "p", 1},  {"a", "ppp", 1}, {"s", "p", 0},     {"s", "pS", 1}, {"s", "E", 1},
		{"as", "p", 1}, {"sa", "p", 1}, {"aa", "pp", 1}, {"ss", "ppSS", 1}, {"a", "E", 1},  {"a", "", 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_cq *cq = make(15);

		for (const char *c = t[i].arm; *c; c++)
			ur_cq_arm(cq, *c == 's');
		for (const char *c = t[i].push; *c; c++) {
			const struct ur_cqe e = {.status = *c == 'E' ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS};

			ur_cq_push(cq, &e, *c == 'S');
		}
		CU_ASSERT_EQUAL(notified, t[i].calls);
		CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	}
}

static void cq_clean__removes_one_qp_in_place(void)
{
	struct ur_cq *cq = make(15);
	struct ibv_wc wc[16];
	uint64_t next = 0;

	for (uint64_t i = 0; i < 11; i++) { /* so that the ring wraps below */
		push(cq, i, 1, false);
		ur_cq_poll(cq, 1, wc);
	}
	for (uint64_t i = 0; i < 15; i++)
		push(cq, i, i % 3 == 0 ? 7 : 8, false);
	ur_cq_clean(cq, 7);
	push(cq, 15, 8, false);
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 16, wc), 11);
	for (unsigned i = 0; i < 11; i++, next++) {
		next += next % 3 == 0 && next != 15;
		CU_ASSERT_EQUAL(wc[i].qp_num, 8);
		CU_ASSERT_EQUAL(wc[i].wr_id, next);
	}
	ur_cq_clean(cq, 7);
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 16, wc), 0);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
}

static void cq_overrun__reported_once(void)
{
	struct ur_cq *cq = make(1);
	struct ibv_wc wc;

	ur_cq_on_overrun(cq, count_overrun);
	ur_cq_arm(cq, true);
	CU_ASSERT_TRUE(push(cq, 1, 1, false));
	CU_ASSERT_FALSE(push(cq, 2, 1, false));
	CU_ASSERT_FALSE(push(cq, 3, 1, false));
	CU_ASSERT_EQUAL(overruns, 1);
	CU_ASSERT_EQUAL(notified, 1);
	CU_ASSERT_EQUAL(ur_cq_poll(cq, 1, &wc), -1);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
}

static void cq_overrun__takes_the_qp_down(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ibv_wc wc;

	o.cqe = 1;
	th_open(&h, &o);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(h.n[0].nevents, 1);
	CU_ASSERT_EQUAL(h.n[0].event[0], IBV_EVENT_QP_FATAL);
	CU_ASSERT_EQUAL(ur_cq_poll(h.n[0].scq, 1, &wc), -1);
	CU_ASSERT_EQUAL(ur_cq_destroy(h.n[0].scq), EBUSY);
	th_close(&h);
}

void ur_suite_cq(void);

void ur_suite_cq(void)
{
	CU_pSuite s = CU_add_suite("cq", NULL, NULL);

	CU_ADD_TEST(s, cq_create__sizes);
	CU_ADD_TEST(s, cq_poll__order_fields_and_wrap);
	CU_ADD_TEST(s, cq_arm__any_solicited_error);
	CU_ADD_TEST(s, cq_clean__removes_one_qp_in_place);
	CU_ADD_TEST(s, cq_overrun__reported_once);
	CU_ADD_TEST(s, cq_overrun__takes_the_qp_down);
}
