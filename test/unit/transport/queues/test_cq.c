/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/queues/cq.c. */
#include <errno.h>
#include <stdio.h>

#include "tp_harness.h"
#include "transport/queues/cq.h"

static unsigned notified, overruns;
static struct ur_tp nobody = {.keys = &(struct ur_keys){.lanes = 0}}; /* of CQs that no QP uses */

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

	return ur_cq_push(cq, ur_cq_lane(cq), &e, solicited);
}

static struct ur_cq *make(unsigned cqe)
{
	struct ur_cq *cq = NULL;

	notified = overruns = 0;
	CU_ASSERT_FATAL(ur_cq_create(&nobody, cqe, &notified, count_notify, &cq) == 0);
	return cq;
}

static void cq_create__sizes(void)
{
	static const struct {
		unsigned asked;
	} t[] = {{1}, {2}, {3}, {4}, {128}, {255}, {4095}, {65535}};
	struct ur_cq *cq;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		cq = make(t[i].asked);
		CU_ASSERT_EQUAL(ur_cq_size(cq), t[i].asked);
		for (unsigned k = 0; k < t[i].asked; k++)
			CU_ASSERT_TRUE(push(cq, k, 1, false));
		CU_ASSERT_FALSE(push(cq, 0, 1, false));
		CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	}
	CU_ASSERT_EQUAL(ur_cq_create(&nobody, 0, NULL, NULL, &cq), EINVAL);
	CU_ASSERT_EQUAL(ur_cq_create(&nobody, UR_MAX_CQE + 1, NULL, NULL, &cq), EINVAL);
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
	ur_cq_push(cq, ur_cq_lane(cq), &e, false);
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

			ur_cq_push(cq, ur_cq_lane(cq), &e, *c == 'S');
		}
		CU_ASSERT_EQUAL(notified, t[i].calls);
		CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	}
}

/* A completion may have come between the last poll and the arming: who arms hears of it at once. */
static void cq_arm__with_completions_in_it(void)
{
	/* Pushes ("p"lain, "S"olicited, "E"rror), polls of one ("o"), armings ("a"ny, "s"olicited only), events fetched ("f"); and
	 * the notifications after each. */
	static const struct {
		const char *steps, *calls;
	} t[] = {
		{"pa", "01"}, {"Ss", "01"}, {"Es", "01"}, {"ps", "00"}, {"psS", "001"}, {"poa", "000"}, {"Spos", "0000"}, {"ppoa", "0001"},
		{"pSos", "0001"}, {"apoaap", "011112"}, {"apa", "012"}, {"paa", "012"}, {"pppa", "0001"}, {"pap", "011"}, {"pspa", "0001"},
		/* What an event has told of needs no second one. */
		{"apfa", "0111"}, {"apfao", "01111"}, {"apfpa", "01112"}, {"apfopa", "011112"}, {"apfaop", "011112"}, {"aSfs", "0111"},
		{"aSfpsS", "011112"}, {"aSfSs", "01112"}, {"apfoaopoa", "011111222"},
		/* It tells of one, the oldest, if there is any: those behind it have an event each, polled before an arming or after. */
		{"apppfaofaofao", "0111122233333"}, {"apppfoafoafoa", "0111112223333"}, {"sSSfsofso", "011122222"},
		{"apfpaoofpa", "0111222223"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_cq *cq = make(3);
		struct ibv_wc wc = {0};

		for (unsigned k = 0; t[i].steps[k]; k++) {
			const struct ur_cqe e = {.status = t[i].steps[k] == 'E' ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS};

			switch (t[i].steps[k]) {
			case 'a': ur_cq_arm(cq, false); break;
			case 's': ur_cq_arm(cq, true); break;
			case 'o': ur_cq_poll(cq, 1, &wc); break;
			case 'f': ur_cq_event_fetched(cq); break;
			default: ur_cq_push(cq, ur_cq_lane(cq), &e, t[i].steps[k] == 'S'); break;
			}
			if (notified != (unsigned)(t[i].calls[k] - '0'))
				printf("%s: after %u steps %u\n", t[i].steps, k + 1, notified);
			CU_ASSERT_EQUAL(notified, (unsigned)(t[i].calls[k] - '0'));
			CU_ASSERT_EQUAL(wc.wc_flags, 0);
		}
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

static void cq_overrun__of_receives_takes_the_qp_down(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.cqe = 1;
	th_open(&h, &o);
	overruns = 0;
	ur_cq_on_overrun(h.n[1].rcq, count_overrun);
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(th_recv(&h, 1, i, 0, 8), 0);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
	}
	th_pump(&h);
	CU_ASSERT_EQUAL(overruns, 1);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(h.n[1].nevents, 1);
	CU_ASSERT_EQUAL(h.n[1].event[0], IBV_EVENT_QP_FATAL);
	th_close(&h);
}

/* --- resizing --- */

static void cq_resize__sizes(void)
{
	static const struct {
		unsigned asked, queued, resized;
		int err;
		unsigned granted;
	} t[] = {
		{7, 0, 100, 0, 100},
		{7, 7, 8, 0, 8},
		{100, 0, 1, 0, 1},
		{100, 5, 5, 0, 5},
		{100, 7, 7, 0, 7},
		{100, 90, 128, 0, 128}, /* with the same slots */
		{100, 6, 5, EINVAL, 100},
		{100, 1, 0, EINVAL, 100},
		{7, 3, UR_MAX_CQE, 0, UR_MAX_CQE},
		{7, 3, UR_MAX_CQE + 1, EINVAL, 7},
		{7, 3, 5, 0, 5},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_cq *cq = make(t[i].asked);
		struct ibv_wc wc;

		for (unsigned k = 0; k < t[i].queued; k++)
			push(cq, k, 1, false);
		CU_ASSERT_EQUAL(ur_cq_resize(cq, t[i].resized), t[i].err);
		CU_ASSERT_EQUAL(ur_cq_size(cq), t[i].granted);
		for (unsigned k = t[i].queued; k < t[i].granted; k++)
			CU_ASSERT_TRUE(push(cq, k, 1, false));
		CU_ASSERT_FALSE(push(cq, 0, 1, false));
		CU_ASSERT_EQUAL(ur_cq_poll(cq, 1, &wc), -1);
		CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	}
}

/* Random pushes, polls and sizes; what comes out is what went in, and as much fits as the size says. */
static void cq_resize__in_the_middle_of_use(void)
{
	struct ur_cq *cq = make(3);
	struct ur_rng r = {42};
	uint64_t in = 0, out = 0;
	struct ibv_wc wc[64];

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t n = ur_rng_u32(&r) % 64;
		int got;

		for (; n && in - out < ur_cq_size(cq); n--)
			CU_ASSERT_TRUE(push(cq, in++, 1, false));
		n = ur_rng_u32(&r) % 64;
		got = ur_cq_poll(cq, (int)n, wc);
		CU_ASSERT_EQUAL(got, (int)(n < in - out ? n : in - out));
		for (int k = 0; k < got; k++)
			CU_ASSERT_EQUAL(wc[k].wr_id, out++);
		n = 1 + ur_rng_u32(&r) % 200;
		CU_ASSERT_EQUAL(ur_cq_resize(cq, n), n < in - out ? EINVAL : 0);
	}
	CU_ASSERT_TRUE(in > 100000);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
}

static void cq_resize__under_a_qp(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.cqe = 3;
	th_open(&h, &o);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	CU_ASSERT_EQUAL(ur_cq_resize(h.n[0].scq, 40), 0);
	for (unsigned i = 3; i < 40; i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	CU_ASSERT_EQUAL(ur_cq_resize(h.n[0].scq, 39), EINVAL);
	for (unsigned i = 0; i < 40; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_cq_resize(h.n[0].scq, 1), 0);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 40, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 40, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

/* --- overruns that are ignored --- */

static void cq_ignore_overrun__loses_and_goes_on(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ur_cq *cq;

	o.cqe = 3;
	th_open(&h, &o);
	cq = h.n[0].scq;
	ur_cq_ignore_overrun(cq);
	ur_cq_on_overrun(cq, count_overrun);
	overruns = 0;
	for (unsigned i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	for (unsigned i = 0; i < 3; i++)
		th_expect_wc(cq, i, IBV_WC_SUCCESS);
	th_expect_no_wc(cq);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 8, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	th_expect_wc(cq, 8, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_CQE_LOST], 5);
	CU_ASSERT_EQUAL(overruns, 0);
	CU_ASSERT_EQUAL(h.n[0].nevents, 0);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

static void push_row(struct ur_cq *cq, uint32_t n, uint64_t wr_id, bool solicited)
{
	for (uint32_t i = 0; i < n; i++)
		*ur_cq_ahead(cq, i) = (struct ur_cqe){.wr_id = wr_id + i, .qpn = 1};
	ur_cq_push_ahead(cq, n, solicited);
}

/* They do not show before they are complete, and tell as often as those that come one by one. */
static void cq_push_ahead__as_one_by_one(void)
{
	struct ur_cq *cq = make(5);
	struct ibv_wc wc[5];

	for (unsigned round = 0; round < 20; round++) { /* and round the ring */
		ur_cq_arm(cq, round & 1);
		*ur_cq_ahead(cq, 0) = (struct ur_cqe){.wr_id = 99};
		CU_ASSERT_TRUE(ur_cq_is_empty(cq));
		push_row(cq, 3, round * 10, round & 2);
		CU_ASSERT_EQUAL(notified, !(round & 1) || round & 2);
		CU_ASSERT_EQUAL(ur_cq_room(cq, 9), 2);
		push_row(cq, 2, round * 10 + 3, true);
		CU_ASSERT_EQUAL(notified, 1);
		CU_ASSERT_EQUAL_FATAL(ur_cq_poll(cq, 5, wc), 5);
		for (unsigned i = 0; i < 5; i++)
			CU_ASSERT_EQUAL(wc[i].wr_id, round * 10 + i);
		ur_cq_event_fetched(cq);
		notified = 0;
	}
	while (push(cq, 0, 1, false))
		continue;
	CU_ASSERT_EQUAL(ur_cq_room(cq, 9), 0); /* it has overrun */
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
}

/* --- timestamps --- */

static void expect_taken(struct ur_cq *cq, uint64_t wr_id, ur_time when)
{
	struct ibv_wc wc = {0};
	ur_time at = 0;

	CU_ASSERT_EQUAL(ur_cq_take(cq, &wc, &at), 1);
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
	CU_ASSERT_EQUAL(at, when);
}

static void cq_stamp__the_time_of_the_call_that_completed(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ur_cq *cq;
	struct ibv_wc wc;
	ur_time t[4], at = 7;

	o.cqe = 3;
	th_open(&h, &o);
	cq = h.n[0].scq;
	CU_ASSERT_EQUAL(ur_cq_stamp(cq), 0);
	for (unsigned i = 0; i < 3; i++) {
		h.now += 100 * UR_NS_PER_US;
		th_post(&h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, IBV_SEND_SIGNALED);
		th_pump(&h);
		t[i] = h.now;
	}
	h.now += UR_NS_PER_MS;
	CU_ASSERT_EQUAL(ur_cq_resize(cq, 20), 0);
	expect_taken(cq, 0, t[0]);
	expect_taken(cq, 1, t[1]);
	CU_ASSERT_EQUAL(ur_cq_resize(cq, 1), 0);
	expect_taken(cq, 2, t[2]);
	CU_ASSERT_EQUAL(ur_cq_take(cq, &wc, &at), 0);
	CU_ASSERT_EQUAL(at, 7);
	/* A flush has the time of the call that moved the QP; an unreachable peer that of the timer. */
	CU_ASSERT_EQUAL(ur_cq_resize(cq, 20), 0);
	h.lose = th_lose_mask;
	h.arg = (uint64_t[]){UINT64_MAX, UINT64_MAX};
	h.sent[0] = 0;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, IBV_SEND_SIGNALED);
	t[3] = h.now;
	th_run(&h, UR_NS_PER_S);
	CU_ASSERT_EQUAL(ur_cq_take(cq, &wc, &at), 1);
	CU_ASSERT_EQUAL(wc.status, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_TRUE(at > t[3] + UR_NS_PER_MS && at <= h.now);
	h.now += UR_NS_PER_MS;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0);
	expect_taken(cq, 4, h.now);
	th_close(&h);
}

static void cq_stamp__stays_with_its_completion_when_others_go(void)
{
	static struct th h;
	struct ur_cq *cq;

	th_open(&h, &th_default);
	cq = h.n[0].scq;
	CU_ASSERT_EQUAL(ur_cq_stamp(cq), 0);
	h.n[0].tp->now = 990;
	push_row(cq, 2, 70, false);
	expect_taken(cq, 70, 990);
	expect_taken(cq, 71, 990);
	for (unsigned i = 0; i < 9; i++) {
		h.n[0].tp->now = 1000 + i;
		push(cq, i, i % 3, false);
	}
	ur_cq_clean(cq, 1);
	for (unsigned i = 0; i < 9; i++)
		if (i % 3 != 1)
			expect_taken(cq, i, 1000 + i);
	th_close(&h);
}

static void cq_take__without_stamps_and_after_an_overrun(void)
{
	struct ur_cq *cq = make(1);
	struct ibv_wc wc;
	ur_time at = 5;

	push(cq, 9, 1, false);
	CU_ASSERT_EQUAL(ur_cq_take(cq, &wc, &at), 1);
	CU_ASSERT_EQUAL(wc.wr_id, 9);
	CU_ASSERT_EQUAL(at, 5);
	push(cq, 9, 1, false);
	push(cq, 9, 1, false);
	CU_ASSERT_EQUAL(ur_cq_take(cq, &wc, &at), -1);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
}

/* --- moderation --- */

static void cq_moderate__count_or_period(void)
{
	/*
	 * "a"rm, arm for "s"olicited only; push a "p"lain or a "S"olicited one, "2" at once; "t": 11 us pass; "o"ff. And what was notified.
	 */
	static const struct {
		uint16_t count, period;
		const char *steps, *notified;
	} t[] = {
		{0, 0, "appap", "01112"},
		{1, 50, "apap", "0112"},
		{3, 0, "apap", "0112"}, /* no limit in time is no moderation */
		{0, 50, "apap", "0112"},
		{3, 50, "appp", "0001"},
		{3, 50, "apppppapppp", "00011111122"},
		{3, 50, "aptttttt", "00000011"},
		{3, 50, "atttttttp", "000000000"}, /* the clock starts with the first completion */
		{3, 50, "attttpttttttttap", "0000000000111111"},
		{3, 50, "sppppSSS", "00000001"},
		{3, 50, "sSatttttttpp", "000000011111"},
		{3, 50, "ppppappp", "00000001"}, /* what comes before the arming does not count */
		{3, 50, "apo", "001"},
		{0, 0, "a2a2", "0112"},
		{3, 50, "a222a2p", "0011112"},
		{3, 50, "apoap", "00112"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct ibv_wc wc[16];
		struct ur_cq *cq;

		th_open(&h, &th_default);
		cq = h.n[0].scq;
		ur_cq_moderate(cq, t[i].count, t[i].period);
		for (unsigned k = 0; t[i].steps[k]; k++) {
			h.n[0].tp->now = h.now;
			switch (t[i].steps[k]) {
			case 'a': ur_cq_poll(cq, 16, wc), ur_cq_arm(cq, false); break; /* an empty one: others tell at once */
			case 's': ur_cq_poll(cq, 16, wc), ur_cq_arm(cq, true); break;
			case 'p': push(cq, k, 1, false); break;
			case 'S': push(cq, k, 1, true); break;
			case '2': push_row(cq, 2, k, false); break;
			case 't': th_sleep(&h, 11 * UR_NS_PER_US); break;
			case 'o': ur_cq_moderate(cq, 0, 0); break;
			}
			if (h.n[0].notified != (unsigned)(t[i].notified[k] - '0'))
				printf("%s: after %u steps %u\n", t[i].steps, k + 1, h.n[0].notified);
			CU_ASSERT_EQUAL(h.n[0].notified, (unsigned)(t[i].notified[k] - '0'));
		}
		th_close(&h);
	}
}

/* Neither a CQ that goes nor one that overruns leaves its timer behind. */
static void cq_moderate__held_back_at_the_end(void)
{
	static struct th h;
	struct ur_cq *cq;

	th_open(&h, &th_default);
	notified = overruns = 0;
	CU_ASSERT_FATAL(ur_cq_create(h.n[0].tp, 1, &notified, count_notify, &cq) == 0);
	ur_cq_moderate(cq, 9, 50);
	ur_cq_arm(cq, false);
	push(cq, 1, 1, false);
	CU_ASSERT_NOT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	CU_ASSERT_FALSE(push(cq, 2, 1, false));
	CU_ASSERT_EQUAL(notified, 1);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	CU_ASSERT_FATAL(ur_cq_create(h.n[0].tp, 1, &notified, count_notify, &cq) == 0);
	ur_cq_moderate(cq, 9, 50);
	ur_cq_arm(cq, false);
	push(cq, 1, 1, false);
	CU_ASSERT_EQUAL(ur_cq_destroy(cq), 0);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_close(&h);
}

void ur_suite_cq(void);

void ur_suite_cq(void)
{
	CU_pSuite s = CU_add_suite("cq", NULL, NULL);

	CU_ADD_TEST(s, cq_create__sizes);
	CU_ADD_TEST(s, cq_poll__order_fields_and_wrap);
	CU_ADD_TEST(s, cq_arm__any_solicited_error);
	CU_ADD_TEST(s, cq_arm__with_completions_in_it);
	CU_ADD_TEST(s, cq_clean__removes_one_qp_in_place);
	CU_ADD_TEST(s, cq_overrun__reported_once);
	CU_ADD_TEST(s, cq_overrun__takes_the_qp_down);
	CU_ADD_TEST(s, cq_overrun__of_receives_takes_the_qp_down);
	CU_ADD_TEST(s, cq_resize__sizes);
	CU_ADD_TEST(s, cq_resize__in_the_middle_of_use);
	CU_ADD_TEST(s, cq_resize__under_a_qp);
	CU_ADD_TEST(s, cq_ignore_overrun__loses_and_goes_on);
	CU_ADD_TEST(s, cq_push_ahead__as_one_by_one);
	CU_ADD_TEST(s, cq_stamp__the_time_of_the_call_that_completed);
	CU_ADD_TEST(s, cq_stamp__stays_with_its_completion_when_others_go);
	CU_ADD_TEST(s, cq_take__without_stamps_and_after_an_overrun);
	CU_ADD_TEST(s, cq_moderate__count_or_period);
	CU_ADD_TEST(s, cq_moderate__held_back_at_the_end);
}
