/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of short requests that are alike, which the requester builds after one another (requester.c: build_row; txbuf.c: ur_txbuf_like):
 * each is what it would be alone, and what is not alike, or cannot be sent, ends the row.
 */
#include <sys/mman.h>

#include "engine/catch.h"
#include "transport/loss/rewind.h"
#include "transport/memory/mr.h"
#include "transport/state/req_state.h"
#include "twin.h"

void ur_suite_req_row(void);

#define MOST 64

static struct th h;
static struct ur_pkt *pkts[MOST];
static unsigned n;

static void open(bool v6)
{
	struct th_opt o = th_default;

	o.v6 = v6;
	o.window = 1024;
	th_open(&h, &o);
	for (unsigned i = 0; i < 4096; i++)
		h.n[0].mem[i] = (uint8_t)(i * 3 + i / 256);
}

static void close_all(void)
{
	th_free(&h, 0, pkts, n);
	th_close(&h);
}

static void build(void)
{
	n = ur_tp_tx(h.n[0].tp, pkts, MOST, h.now);
}

/* Packet i is the whole of a request of `len` bytes from `off` on, for `roff` of the peer's memory; its ICRC is right. */
static void expect(unsigned i, enum ibv_wr_opcode op, uint32_t off, uint32_t len, uint32_t roff, bool ackreq)
{
	struct ur_train_cursor at = {0};
	struct th_pkt one;

	CU_ASSERT_TRUE_FATAL(i < n && th_wire(pkts[i], &at, &one));
	CU_ASSERT_EQUAL(one.p.bth.opcode, op == IBV_WR_SEND ? UR_OP_SEND_ONLY : UR_OP_WRITE_ONLY);
	CU_ASSERT_EQUAL(one.p.bth.psn, 100 + i);
	CU_ASSERT_EQUAL(one.p.bth.ackreq, ackreq);
	CU_ASSERT_EQUAL(one.p.bth.pad, -len & 3);
	CU_ASSERT_EQUAL(one.p.bth.dqpn, ur_qp_num(h.n[1].qp));
	CU_ASSERT_EQUAL_FATAL(one.p.payload_len, len);
	CU_ASSERT_EQUAL(memcmp(one.p.data + one.p.payload_off, h.n[0].mem + off, len), 0);
	CU_ASSERT_TRUE(pkts[i]->bth.psn == one.p.bth.psn && pkts[i]->bth.ackreq == ackreq && pkts[i]->payload_len == len);
	if (op == IBV_WR_RDMA_WRITE) {
		struct ur_reth r;

		ur_reth_get(one.p.data + one.p.bth_off + UR_BTH_LEN, &r);
		CU_ASSERT_TRUE(r.va == (uintptr_t)h.n[1].mem + roff && r.len == len && r.rkey == h.n[1].mr->rkey);
	}
}

static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE};

static void row__each_is_what_it_would_be_alone(void)
{
	static const uint32_t lens[] = {1, 2, 3, 4, 8, 31, 64, 255, 256};

	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned o = 0; o < ur_array_size(ops); o++)
			for (unsigned l = 0; l < ur_array_size(lens); l++) {
				open(v6);
				for (uint32_t i = 0; i < 40; i++)
					th_post(&h, 0, ops[o], i, i * 11, lens[l], i * 300, i == 7 ? IBV_SEND_SIGNALED : 0);
				build();
				CU_ASSERT_EQUAL(n, 40);
				for (uint32_t i = 0; i < 40; i++) /* 64 places: a quarter of them asks, too */
					expect(i, ops[o], i * 11, lens[l], i * 300, i == 7 || i == 23 || i == 39);
				CU_ASSERT_EQUAL(h.n[0].qp->n.tx_bytes, 40 * lens[l]);
				CU_ASSERT_EQUAL(h.n[0].qp->n.tx_packets, 40);
				th_ack(&h, 0, 139, ACK);
				th_expect_wc(h.n[0].scq, 7, IBV_WC_SUCCESS);
				CU_ASSERT_EQUAL(h.n[0].qp->req.head, 40);
				close_all();
			}
}

/* What stands between them goes its own way, and what comes after it begins a row of its own. */
static void row__others_in_between(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t len;
		int flags;
	} others[] = {
		{IBV_WR_RDMA_WRITE, 8, 0},
		{IBV_WR_SEND, 9, 0},
		{IBV_WR_SEND, 0, 0},
		{IBV_WR_SEND, 300, 0},
		{IBV_WR_SEND, 5000, 0},
		{IBV_WR_SEND, 8, IBV_SEND_SOLICITED},
		{IBV_WR_SEND, 8, IBV_SEND_FENCE},
	};

	for (unsigned i = 0; i < ur_array_size(others); i++) {
		const unsigned packets = others[i].len > 1024 ? 5 : 1;
		struct ur_train_cursor at = {0};
		struct th_pkt one;

		open(false);
		for (uint32_t k = 0; k < 5; k++)
			th_post(&h, 0, IBV_WR_SEND, k, k, 8, 0, 0);
		th_post(&h, 0, others[i].op, 5, 5, others[i].len, 0, others[i].flags);
		for (uint32_t k = 0; k < 5; k++)
			th_post(&h, 0, IBV_WR_SEND, 6 + k, 6 + k, 8, 0, 0);
		build();
		CU_ASSERT_EQUAL(n, 10 + packets);
		for (uint32_t k = 0; k < 5; k++)
			expect(k, IBV_WR_SEND, k, 8, 0, false);
		CU_ASSERT_TRUE(th_wire(pkts[5], &at, &one));
		CU_ASSERT_EQUAL(one.p.bth.se, others[i].flags == IBV_SEND_SOLICITED);
		CU_ASSERT_EQUAL(one.p.payload_len, ur_min_u32(others[i].len, 1024));
		for (uint32_t k = 0; k < 5; k++)
			expect(5 + packets + k, IBV_WR_SEND, 6 + k, 8, 0, k == 4);
		close_all();
	}
}

static void row__ends_with_the_window(void)
{
	open(false);
	h.n[0].qp->req.window.size = 10;
	for (uint32_t k = 0; k < 20; k++)
		th_post(&h, 0, IBV_WR_SEND, k, k, 8, 0, 0);
	build();
	CU_ASSERT_EQUAL(n, 10);
	CU_ASSERT_EQUAL(h.n[0].qp->req.next, 110);
	CU_ASSERT_EQUAL(h.n[0].qp->req.fresh, 10);
	close_all();
}

static void row__ends_with_the_buffers(void)
{
	open(false);
	h.n[0].room = 7;
	for (uint32_t k = 0; k < 20; k++)
		th_post(&h, 0, IBV_WR_SEND, k, k, 8, 0, 0);
	build();
	CU_ASSERT_EQUAL(n, 7);
	for (uint32_t k = 0; k < 7; k++)
		expect(k, IBV_WR_SEND, k, 8, 0, false);
	close_all();
}

/* A wrong key, or memory that has gone, in the middle: what is before leaves, and the request fails when that is acknowledged. */
static void row__request_that_fails(void)
{
	for (unsigned gone = 0; gone < 2; gone++) {
		uint8_t *mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct ur_mr *mr;
		struct ibv_sge s;

		CU_ASSERT_PTR_NOT_EQUAL_FATAL(mem, MAP_FAILED);
		open(false);
		CU_ASSERT_TRUE_FATAL(ur_catch_start());
		ur_catch_again();
		ur_catch_admit();
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, mem, 8192, (uintptr_t)mem, TH_MR_ACCESS, &mr), 0);
		CU_ASSERT_EQUAL(mprotect(mem + 4096, 4096, PROT_NONE), 0);
		for (uint32_t k = 0; k < 5; k++)
			th_post(&h, 0, IBV_WR_SEND, k, k, 8, 0, 0);
		s = (struct ibv_sge){(uintptr_t)mem + 4096, 8, mr->lkey + !gone};
		th_post_sge(&h, 0, IBV_WR_SEND, 5, &s, 1, 0, 0, 0);
		th_post(&h, 0, IBV_WR_SEND, 6, 6, 8, 0, 0);
		build();
		CU_ASSERT_TRUE(n >= 5);
		for (uint32_t k = 0; k < 5; k++)
			expect(k, IBV_WR_SEND, k, 8, 0, false);
		th_ack(&h, 0, 104, ACK);
		th_expect_wc(h.n[0].scq, 5, IBV_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(ur_qp_st(h.n[0].qp), IBV_QPS_ERR);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		munmap(mem, 8192);
		close_all();
	}
}

/* What was lost is sent again, and what is new follows. */
static void row__after_a_loss(void)
{
	open(false);
	for (uint32_t k = 0; k < 10; k++)
		th_post(&h, 0, IBV_WR_SEND, k, k, 8, 0, 0);
	build();
	CU_ASSERT_EQUAL(n, 10);
	th_free(&h, 0, pkts, n);
	for (uint32_t k = 10; k < 20; k++)
		th_post(&h, 0, IBV_WR_SEND, k, k, 8, 0, 0);
	ur_req_rewind(h.n[0].qp);
	ur_req_schedule(h.n[0].qp);
	build();
	CU_ASSERT_EQUAL(n, 20);
	for (uint32_t k = 0; k < 20; k++)
		expect(k, IBV_WR_SEND, k, 8, 0, pkts[k]->bth.ackreq);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_RETRANSMIT], 10);
	close_all();
}

void ur_suite_req_row(void)
{
	CU_pSuite s = CU_add_suite("req_row", NULL, NULL);

	CU_ADD_TEST(s, row__each_is_what_it_would_be_alone);
	CU_ADD_TEST(s, row__others_in_between);
	CU_ADD_TEST(s, row__ends_with_the_window);
	CU_ADD_TEST(s, row__ends_with_the_buffers);
	CU_ADD_TEST(s, row__request_that_fails);
	CU_ADD_TEST(s, row__after_a_loss);
}
