/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/memory/memory.c: on-demand regions with a hole in them, and null regions. Node 0 sends from PSN 100. */
#include <errno.h>

#include "tp_harness.h"

void ur_suite_memory(void);

#define LEN 8192u
#define HOLE 4096u /* where the second half of a region begins, in which nothing can be mapped */
#define ATOMICS (TH_ALL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC)

static uint8_t *hole;
static unsigned asked, asked_to_write;

static bool populate(void *at, uint64_t len, bool write)
{
	uint8_t *from = at;

	asked++;
	asked_to_write += write;
	return from + len <= hole || from >= hole + LEN - HOLE;
}

static bool copy(void *to, const void *from, uint64_t len, bool write)
{
	if (!populate(write ? to : (void *)(uintptr_t)from, len, write))
		return false;
	memcpy(to, from, len);
	return true;
}

/* An on-demand region over the first LEN bytes of each node's memory, the second half of node `holed`'s missing. */
static void open_on_demand(struct th *h, struct ur_mr *mr[2], unsigned holed)
{
	struct th_opt o = th_default;

	o.access = ATOMICS;
	o.sig_all = true;
	th_open(h, &o);
	hole = h->n[holed].mem + HOLE;
	asked = asked_to_write = 0;
	for (unsigned i = 0; i < 2; i++) {
		struct th_node *n = &h->n[i];

		CU_ASSERT_EQUAL(ur_mr_reg(n->tp, n->pd, n->mem, LEN, 0, TH_MR_ACCESS | IBV_ACCESS_ON_DEMAND, &mr[i]), EOPNOTSUPP);
		n->tp->c.populate = populate;
		n->tp->c.copy = copy;
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(n->tp, n->pd, n->mem, LEN, 0, TH_MR_ACCESS | IBV_ACCESS_ON_DEMAND, &mr[i]), 0);
	}
}

static void close_on_demand(struct th *h, struct ur_mr *mr[2])
{
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ur_mr_dereg(mr[i]), 0);
	th_close(h);
}

static int post(struct th *h, struct ur_mr *mr[2], enum ibv_wr_opcode op, uint64_t off, uint32_t len, uint64_t roff)
{
	struct ibv_sge sge = {off, len, mr[0]->lkey};
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = roff;
		wr.wr.atomic.rkey = mr[1]->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = roff;
		wr.wr.rdma.rkey = mr[1]->rkey;
	}
	return th_post_wr(h, 0, &wr);
}

static void receive(struct th *h, struct ur_mr *mr[2], uint64_t off)
{
	struct ibv_sge sge = {off, 2048, mr[1]->lkey};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;

	CU_ASSERT_EQUAL(ur_qp_post_recv(h->n[1].qp, &wr, &bad), 0);
}

/* Up to the hole all is well; what lies in it, or reaches into it, is no memory. */
static void on_demand__each_operation(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t off, len, roff;
		unsigned holed;
		enum ibv_wc_status status;
	} t[] = {
		{IBV_WR_RDMA_WRITE, 0, 2000, HOLE - 2000, 1, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_WRITE, 0, 2000, HOLE - 1999, 1, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_WRITE, HOLE - 2000, 2000, 0, 0, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_WRITE, HOLE - 1999, 2000, 0, 0, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_READ, 0, 2000, HOLE - 2000, 1, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_READ, 0, 10, HOLE - 9, 1, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_RDMA_READ, HOLE - 2000, 2000, 0, 0, IBV_WC_SUCCESS},
		{IBV_WR_RDMA_READ, HOLE - 1999, 2000, 0, 0, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_SEND, 0, 2000, HOLE - 2000, 1, IBV_WC_SUCCESS},
		{IBV_WR_SEND, 0, 2000, HOLE - 1999, 1, IBV_WC_REM_OP_ERR},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, HOLE - 8, 1, IBV_WC_SUCCESS},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, HOLE, 1, IBV_WC_REM_ACCESS_ERR},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, HOLE - 8, 8, 0, 0, IBV_WC_SUCCESS},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, HOLE, 8, 0, 0, IBV_WC_LOC_PROT_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		bool read = t[i].op == IBV_WR_RDMA_READ;
		static struct th h;
		struct ur_mr *mr[2];

		open_on_demand(&h, mr, t[i].holed);
		receive(&h, mr, t[i].roff);
		CU_ASSERT_EQUAL(post(&h, mr, t[i].op, t[i].off, t[i].len, t[i].roff), 0);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, t[i].status);
		CU_ASSERT_TRUE(asked > 0);
		CU_ASSERT_TRUE(asked_to_write > 0 || t[i].status != IBV_WC_SUCCESS);
		if (t[i].status == IBV_WC_SUCCESS && t[i].op != IBV_WR_ATOMIC_FETCH_AND_ADD)
			CU_ASSERT_EQUAL(memcmp(h.n[read].mem + (read ? t[i].roff : t[i].off),
					       h.n[!read].mem + (read ? t[i].off : t[i].roff), t[i].len),
					0);
		close_on_demand(&h, mr);
	}
}

/* A FLUSH makes no pages, except those that it is to write back. */
static void on_demand__flush(void)
{
	enum { GLOBAL = 1, PERSISTENT = 2, RANGE = 0, WHOLE = 1 };
	const struct {
		uint8_t placement, selectivity;
		uint64_t from, len; /* of the region, counted from the hole */
		unsigned asked;
		bool refused;
	} t[] = {
		{GLOBAL, WHOLE, -(uint64_t)HOLE, LEN, 0, false},      {GLOBAL, RANGE, 0, 8, 0, false},
		{PERSISTENT, WHOLE, -(uint64_t)HOLE, HOLE, 1, false}, {PERSISTENT, RANGE, 0, 8, 1, true},
		{PERSISTENT, WHOLE, LEN, 1ull << 40, 0, true},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_opt o = th_default;
		struct th_hdr x = {.va = 0, .len = 8, .feth = {t[i].placement, t[i].selectivity}};
		struct ur_mr *mr;
		struct th_pkt p;

		o.access = ATOMICS | UR_ACCESS_FLUSH;
		th_open(&h, &o);
		hole = h.n[1].mem + HOLE;
		asked = 0;
		h.n[1].tp->c.populate = populate;
		h.n[1].tp->c.copy = copy;
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, (void *)((uintptr_t)hole + t[i].from), t[i].len, 0,
						UR_ACCESS_FLUSH | IBV_ACCESS_ON_DEMAND, &mr),
				      0);
		x.rkey = mr->rkey;
		th_inject(&h, 1, UR_OP_FLUSH, 100, true, &x, NULL, 0);
		if (t[i].refused)
			th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		else
			CU_ASSERT_TRUE(th_pull(&h, 1, &p));
		CU_ASSERT_EQUAL(asked, t[i].asked);
		CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_FLUSH], !t[i].refused);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		th_close(&h);
	}
}

/* Frames hold copies: by the time that they leave, the pages may have gone. */
static void on_demand__payload_is_copied(void)
{
	for (unsigned responses = 0; responses < 2; responses++) {
		static struct th h;
		struct ur_mr *mr[2];
		struct th_hdr x;
		struct ur_pkt *p;

		open_on_demand(&h, mr, 1);
		x = (struct th_hdr){.rkey = mr[1]->rkey, .len = 1024};
		if (responses)
			th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &x, NULL, 0);
		else
			post(&h, mr, IBV_WR_RDMA_WRITE, 0, 1024, 0);
		CU_ASSERT_EQUAL_FATAL(ur_tp_tx(h.n[responses].tp, &p, 1, h.now), 1);
		CU_ASSERT_EQUAL(p->nseg, 0);
		CU_ASSERT_EQUAL(p->payload_len, 1024);
		CU_ASSERT_EQUAL(memcmp(p->data + p->payload_off, h.n[responses].mem, 1024), 0);
		h.n[responses].tp->c.free(h.n[responses].tp->c.ctx, &p, 1);
		close_on_demand(&h, mr);
	}
}

/* An element of each kind in one packet. */
static void lists__of_all_kinds(void)
{
	static struct th h;
	struct ur_mr *mr[2], *null;
	struct ibv_sge sge[4];
	const uint8_t zeros[100] = {0};

	open_on_demand(&h, mr, 1);
	CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE | UR_ACCESS_NULL, &null), 0);
	sge[0] = (struct ibv_sge){(uintptr_t)h.n[0].mem + 300, 300, h.n[0].mr->lkey};
	sge[1] = (struct ibv_sge){1000, 300, mr[0]->lkey};
	sge[2] = (struct ibv_sge){12345, 100, null->lkey};
	sge[3] = (struct ibv_sge){(uintptr_t)h.n[0].mem + 5000, 300, h.n[0].mr->lkey};
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_RDMA_WRITE, 1, sge, 4, 0, mr[1]->rkey, 0), 0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, h.n[0].mem + 300, 300), 0);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 300, h.n[0].mem + 1000, 300), 0);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 600, zeros, 100), 0);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 700, h.n[0].mem + 5000, 300), 0);
	CU_ASSERT_EQUAL(ur_mr_dereg(null), 0);
	close_on_demand(&h, mr);
}

/* What goes into it is forgotten, and what comes behind it arrives all the same. */
static void null__forgets(void)
{
	static struct th h;
	struct ur_mr *null;
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = sge, .num_sge = 2}, *bad;
	struct ibv_wc wc;

	th_open(&h, &th_default);
	CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE | UR_ACCESS_NULL, &null), 0);
	sge[0] = (struct ibv_sge){UINT64_MAX - 1500, 1500, null->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)h.n[1].mem, 2000, h.n[1].mr->lkey};
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	wc = th_expect_wc(h.n[1].rcq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.byte_len, 3000);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, h.n[0].mem + 1500, 1500), 0);
	CU_ASSERT_EQUAL(ur_mr_dereg(null), 0);
	th_close(&h);
}

/* Addresses count from 0, which is as good as any other; several packets go through one element. */
static void null__from_zero(void)
{
	static struct th h;
	struct ur_mr *null[2];
	struct ibv_sge from = {0, 3000, 0}, to = {0, 3000, 0};
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &to, .num_sge = 1}, *bad;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[i].tp, h.n[i].pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE | UR_ACCESS_NULL, &null[i]),
				      0);
	from.lkey = null[0]->lkey;
	to.lkey = null[1]->lkey;
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, &from, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, 2, IBV_WC_SUCCESS).byte_len, 3000);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ur_mr_dereg(null[i]), 0);
	th_close(&h);
}

/* A peer has no right in it, whatever it guesses. */
static void null__is_no_remote_memory(void)
{
	static const uint8_t opcodes[] = {UR_OP_WRITE_ONLY, UR_OP_READ_REQ, UR_OP_FETCH_ADD};
	static const uint8_t data[8];

	for (unsigned i = 0; i < ur_array_size(opcodes); i++) {
		static struct th h;
		struct th_opt o = th_default;
		struct ur_mr *null;
		struct th_hdr x = {.va = 0x1000, .len = 8};

		o.access = ATOMICS;
		th_open(&h, &o);
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE | UR_ACCESS_NULL, &null),
				      0);
		x.rkey = null->rkey;
		th_inject(&h, 1, opcodes[i], 100, true, &x, data, opcodes[i] == UR_OP_WRITE_ONLY ? 8 : 0);
		th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		CU_ASSERT_EQUAL(ur_mr_dereg(null), 0);
		th_close(&h);
	}
}

/* One region of the whole address space. */
static void on_demand__of_everything(void)
{
	static struct th h;
	struct ur_mr *mr[2], *all;
	struct th_hdr x;

	open_on_demand(&h, mr, 1);
	CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, NULL, SIZE_MAX, 0, TH_MR_ACCESS | IBV_ACCESS_ON_DEMAND, &all), 0);
	x = (struct th_hdr){.va = (uintptr_t)h.n[1].mem, .rkey = all->rkey, .len = 8};
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, &x, "12345678", 8);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, "12345678", 8), 0);
	th_expect_ack(&h, 1, 100, ACK);
	x.va = (uintptr_t)hole;
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 101, true, &x, "12345678", 8);
	th_expect_refused(&h, 1, 101, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	CU_ASSERT_EQUAL(ur_mr_dereg(all), 0);
	close_on_demand(&h, mr);
}

void ur_suite_memory(void)
{
	CU_pSuite s = CU_add_suite("memory", NULL, NULL);

	CU_ADD_TEST(s, on_demand__each_operation);
	CU_ADD_TEST(s, on_demand__flush);
	CU_ADD_TEST(s, on_demand__payload_is_copied);
	CU_ADD_TEST(s, on_demand__of_everything);
	CU_ADD_TEST(s, lists__of_all_kinds);
	CU_ADD_TEST(s, null__forgets);
	CU_ADD_TEST(s, null__from_zero);
	CU_ADD_TEST(s, null__is_no_remote_memory);
}
