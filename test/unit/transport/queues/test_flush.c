/* SPDX-License-Identifier: BSD-3-Clause */
/* FLUSH in lib/transport/responder/resp_atomic.c. Node 1 is the responder; its peer sends from PSN 100. */
#include <sys/mman.h>

#include "tp_harness.h"
#include "transport/pending/rd_table.h"
#include "transport/responder/resp_atomic.h"

#define GLOBAL 1
#define PERSISTENT 2
#define RANGE 0
#define WHOLE 1

static const struct th_opt *with_access(int access)
{
	static struct th_opt o;

	o = th_default;
	o.access = TH_ALL_ACCESS | access;
	return &o;
}

static void expect_response(struct th *h, uint32_t psn, uint32_t msn)
{
	struct th_pkt p;
	struct ur_aeth a;

	CU_ASSERT_TRUE_FATAL(th_pull(h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_ONLY);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	CU_ASSERT_EQUAL(p.p.payload_len, 0);
	ur_aeth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	CU_ASSERT_EQUAL(a.syndrome, ACK);
	CU_ASSERT_EQUAL(a.msn, msn);
}

static void flush__table(void)
{
	static const struct {
		uint8_t placement, selectivity;
		int qp, mr; /* access flags */
		uint64_t off;
		uint32_t len;
		int nak, event;
	} t[] = {
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_GLOBAL, 0, 4096, -1, -1},
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_GLOBAL, 4095, 1, -1, -1},
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_GLOBAL, 7, 0, -1, -1},
		{PERSISTENT, RANGE, UR_ACCESS_FLUSH_PERSISTENT, UR_ACCESS_FLUSH_PERSISTENT, 1, 4000, -1, -1},
		{GLOBAL | PERSISTENT, RANGE, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 64, -1, -1},
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_GLOBAL, 0, 4097, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_GLOBAL, UINT64_MAX, 2, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_PERSISTENT, 0, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{GLOBAL | PERSISTENT, RANGE, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH_GLOBAL, 0, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{GLOBAL, RANGE, UR_ACCESS_FLUSH_PERSISTENT, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{GLOBAL | PERSISTENT, RANGE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{0, RANGE, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{4, RANGE, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{GLOBAL | 8, RANGE, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{GLOBAL, 2, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{GLOBAL, 3, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		/* The whole region: address and length of the request do not count. */
		{GLOBAL, WHOLE, UR_ACCESS_FLUSH_GLOBAL, UR_ACCESS_FLUSH_GLOBAL, 0x123456789, 77777, -1, -1},
		{PERSISTENT, WHOLE, UR_ACCESS_FLUSH, UR_ACCESS_FLUSH, 0, 0, -1, -1},
		{GLOBAL, WHOLE, UR_ACCESS_FLUSH, 0, 0, 0, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct ur_mr *mr;
		struct th_hdr ext = {.va = 0x7000 + t[i].off, .len = t[i].len, .feth = {t[i].placement, t[i].selectivity}};

		th_open(&h, with_access(t[i].qp));
		CU_ASSERT_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 4096, 0x7000, t[i].mr, &mr) == 0);
		ext.rkey = mr->rkey;
		th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
		if (t[i].nak < 0)
			expect_response(&h, 100, 1);
		else
			th_expect_refused(&h, 1, 100, (enum ur_nak_code)t[i].nak, t[i].event);
		CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_FLUSH], t[i].nak < 0);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		th_close(&h);
	}
}

static void flush__unknown_key_is_refused_at_any_level(void)
{
	for (uint8_t level = RANGE; level <= WHOLE; level++) {
		static struct th h;
		struct th_hdr ext = {.feth = {GLOBAL, level}, .rkey = 0xdead00};

		th_open(&h, with_access(UR_ACCESS_FLUSH));
		th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
		th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		th_close(&h);
	}
}

/* Behind the READ that came before it, before the acknowledgement of what came after; a duplicate is answered again. */
static void flush__order_and_duplicate(void)
{
	static struct th h;
	struct th_hdr ext;
	struct th_pkt p;

	th_open(&h, with_access(UR_ACCESS_FLUSH));
	ext = th_reth(&h, 1, 0, 8);
	ext.feth.placement = GLOBAL;
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	th_inject(&h, 1, UR_OP_FLUSH, 101, true, &ext, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 102, true, NULL, NULL, 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	expect_response(&h, 101, 2);
	th_expect_ack(&h, 1, 102, ACK);
	th_inject(&h, 1, UR_OP_FLUSH, 101, true, &ext, NULL, 0);
	expect_response(&h, 101, 2);
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_FLUSH], 1);
	th_close(&h);
}

/* A region that is much address and little memory. */
static uint8_t *map_sparse(size_t len)
{
	uint8_t *at = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
	return at;
}

/* How many calls of ur_tp_tx there are until one has something to send. */
static unsigned calls_until(struct th *h, struct th_pkt *p)
{
	unsigned n = 1;

	while (ur_tp_tx_pending(h->n[1].tp) && !th_pull(h, 1, p))
		n++;
	return n;
}

/* What takes long is done bit by bit, and others have their turns. */
static void flush__in_slices(void)
{
	const unsigned slices = 50;
	const size_t len = slices * (size_t)UR_FLUSH_SLICE - 100;
	static struct th h;
	uint8_t *at = map_sparse(len);
	struct th_hdr ext = {.len = (uint32_t)len, .feth = {PERSISTENT, RANGE}}, w;
	struct ur_mr *mr;
	struct th_pkt p;

	th_open(&h, with_access(UR_ACCESS_FLUSH));
	CU_ASSERT_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, at, len, 0, UR_ACCESS_FLUSH, &mr) == 0);
	ext.rkey = mr->rkey;
	th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
	CU_ASSERT_FALSE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_FLUSH], 0);
	/* It goes on receiving and sending. */
	w = th_reth(&h, 1, 0, 8);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 101, true, &w, at, 8);
	CU_ASSERT_EQUAL(th_post(&h, 1, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0), 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_WRITE_ONLY);
	/* Asked again in the meantime it begins nothing anew. */
	th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(calls_until(&h, &p), slices - 2);
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_ONLY);
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	th_expect_ack(&h, 1, 101, ACK);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_FLUSH], 1);
	/* And afterwards it is answered at once. */
	th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(calls_until(&h, &p), 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
	munmap(at, len);
}

/* Those of several QPs take turns: one slice in a call, whoever has it. */
static void flush__of_several_in_turn(void)
{
	enum { QPS = 3 };
	const size_t len = 10 * (size_t)UR_FLUSH_SLICE;
	static struct th h;
	uint8_t *at = map_sparse(len);
	struct th_hdr ext = {.len = (uint32_t)len, .feth = {PERSISTENT, RANGE}};
	struct ur_qp *qp[QPS];
	struct th_node *n = &h.n[1];
	struct ur_mr *mr;
	struct th_pkt p;

	th_open(&h, with_access(UR_ACCESS_FLUSH));
	CU_ASSERT_FATAL(ur_mr_reg(n->tp, n->pd, at, len, 0, UR_ACCESS_FLUSH, &mr) == 0);
	ext.rkey = mr->rkey;
	qp[0] = n->qp;
	for (unsigned i = 1; i < QPS; i++) {
		struct ur_qp_init init = {
			.type = IBV_QPT_RC, .pd = n->pd, .send_cq = n->scq, .recv_cq = n->rcq, .context = n, .cap = {8, 8, 1, 1, 0}};

		CU_ASSERT_FATAL(ur_qp_create(n->tp, &init, &qp[i]) == 0);
		n->qp = qp[i];
		th_connect(&h, 1);
	}
	for (unsigned i = 0; i < QPS; i++) {
		n->qp = qp[i];
		th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
	}
	for (unsigned calls = 0; calls < 2 * QPS; calls++)
		CU_ASSERT_FALSE(th_pull(&h, 1, &p));
	for (unsigned i = 0; i < QPS; i++)
		CU_ASSERT_EQUAL(qp[i]->resp.rd[0].result, len - 2 * UR_FLUSH_SLICE);
	/* One goes, the others go on. */
	CU_ASSERT_EQUAL(ur_qp_destroy(qp[1]), 0);
	CU_ASSERT_EQUAL(calls_until(&h, &p), 2 * 8 - 1);
	CU_ASSERT_EQUAL(calls_until(&h, &p), 1);
	CU_ASSERT_FALSE(ur_tp_tx_pending(n->tp));
	CU_ASSERT_EQUAL(ur_qp_destroy(qp[2]), 0);
	n->qp = qp[0];
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
	munmap(at, len);
}

/* Its region goes in the middle of it. */
static void flush__of_a_region_that_goes(void)
{
	const size_t len = 10 * (size_t)UR_FLUSH_SLICE;
	static struct th h;
	uint8_t *at = map_sparse(len);
	struct th_hdr ext = {.len = (uint32_t)len, .feth = {PERSISTENT, WHOLE}};
	struct ur_mr *mr;
	struct th_pkt p;

	th_open(&h, with_access(UR_ACCESS_FLUSH));
	CU_ASSERT_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, at, len, 0, UR_ACCESS_FLUSH, &mr) == 0);
	ext.rkey = mr->rkey;
	th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
	CU_ASSERT_FALSE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_FLUSH], 0);
	th_close(&h);
	munmap(at, len);
}

static void flush__needs_a_resource(void)
{
	static struct th h;
	struct th_opt o = *with_access(UR_ACCESS_FLUSH);
	struct th_hdr ext;

	o.max_rd = 0;
	th_open(&h, &o);
	ext = th_reth(&h, 1, 0, 8);
	ext.feth.placement = GLOBAL;
	th_inject(&h, 1, UR_OP_FLUSH, 100, true, &ext, NULL, 0);
	th_expect_refused(&h, 1, 100, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
	th_close(&h);
}

void ur_suite_flush(void);

void ur_suite_flush(void)
{
	CU_pSuite s = CU_add_suite("flush", NULL, NULL);

	CU_ADD_TEST(s, flush__table);
	CU_ADD_TEST(s, flush__unknown_key_is_refused_at_any_level);
	CU_ADD_TEST(s, flush__order_and_duplicate);
	CU_ADD_TEST(s, flush__in_slices);
	CU_ADD_TEST(s, flush__of_several_in_turn);
	CU_ADD_TEST(s, flush__of_a_region_that_goes);
	CU_ADD_TEST(s, flush__needs_a_resource);
}
