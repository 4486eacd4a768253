/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/packet/txbuf.c: which packets are built in one train and what ends it, and memory or buffers that are missing. Whatever was
 * built is cut and parsed, ICRC included.
 */
#include <sys/mman.h>

#include "bursts.h"
#include "transport/loss/congest.h"
#include "twin.h"
#include "transport/packet/txbuf.h"

void ur_suite_txbuf(void);

/* --- what joins --- */

static void join__packets_of_a_message(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t len;
		unsigned count[3], entries;
	} t[] = {
		{IBV_WR_SEND, 10 * MTU, {10}, 1},
		{IBV_WR_SEND, 9 * MTU + 1, {10}, 1},
		{IBV_WR_SEND, MTU + 1, {2}, 1},
		{IBV_WR_SEND, MTU, {1}, 1},
		{IBV_WR_SEND, 0, {1}, 1},
		{IBV_WR_RDMA_WRITE, 10 * MTU, {2, 8}, 2}, /* a RETH makes the first the longest */
		{IBV_WR_RDMA_WRITE, 2 * MTU, {2}, 1},
		{IBV_WR_RDMA_WRITE, 3 * MTU, {2, 1}, 2},
		{IBV_WR_SEND_WITH_IMM, 10 * MTU, {9, 1}, 2}, /* and the immediate the last */
		{IBV_WR_SEND_WITH_IMM, 9 * MTU + 8, {10}, 1},
		{IBV_WR_RDMA_READ, 10 * MTU, {1}, 1},
	};

	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned i = 0; i < ur_array_size(t); i++) {
			struct th_opt o = th_default;
			struct burst b;
			struct th h;

			o.train = 64;
			o.v6 = v6;
			o.window = 1024;
			th_open(&h, &o);
			CU_ASSERT_EQUAL(th_post(&h, 0, t[i].op, 1, 0, t[i].len, 0, 0), 0);
			b = take(&h, 0, 64);
			expect_counts(&b, t[i].count, t[i].entries);
			for (unsigned k = 0; k < b.n; k++)
				CU_ASSERT_EQUAL(b.p[k].psn, 100 + k);
			th_close(&h);
		}
}

/* Messages follow one another in a train as long as none is longer than its first packet, and nothing follows a shorter one. */
static void join__messages(void)
{
	static const struct {
		uint32_t len[4];
		unsigned count[4], entries;
	} t[] = {
		{{100, 100, 100, 100}, {4}, 1},
		{{100, 99, 98, 97}, {4}, 1}, /* their pads make them as long */
		{{100, 96, 96, 96}, {2, 2}, 2},
		{{100, 104, 104, 108}, {1, 2, 1}, 3},
		{{97, 100, 0, 0}, {3, 1}, 2},
		{{2 * MTU, 2 * MTU, MTU, 10}, {6}, 1},
		{{2 * MTU + 1, MTU, 3 * MTU, 10}, {3, 5}, 2},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct burst b;
		struct th h;

		open(&h, 64, 0);
		for (unsigned k = 0; k < 4; k++)
			CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, k, k * 8192, t[i].len[k], 0, 0), 0);
		b = take(&h, 0, 64);
		expect_counts(&b, t[i].count, t[i].entries);
		th_close(&h);
	}
}

static void join__limits_of_the_port(void)
{
	static const uint32_t stride = UR_BTH_LEN + MTU + UR_ICRC_LEN;
	static const struct {
		unsigned pkts;
		uint32_t bytes;
		unsigned each; /* 20 packets */
	} t[] = {
		{64, 65000, 20},     {20, 65000, 20},       {19, 65000, 19},
		{7, 65000, 7},       {2, 65000, 2},         {1, 65000, 1},
		{0, 65000, 1},       {64, 20 * stride, 20}, {64, 20 * stride - 1, 19},
		{64, 5 * stride, 5}, {3, 5 * stride, 3},    {64, 2 * stride - 1, 1},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct burst b;
		struct th h;

		open(&h, t[i].pkts, t[i].bytes);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, 1, 0, 20 * MTU, 0, 0), 0);
		b = take(&h, 0, 64);
		CU_ASSERT_EQUAL(b.n, 20);
		for (unsigned k = 0; k < b.entries; k++)
			CU_ASSERT_EQUAL(b.count[k], k + 1 < b.entries ? t[i].each : 20 - (b.entries - 1) * t[i].each);
		CU_ASSERT_EQUAL(b.entries, (20 + t[i].each - 1) / t[i].each);
		th_close(&h);
	}
}

/* Trains do not make a burst longer than was asked for. */
static void join__as_many_as_asked_for(void)
{
	for (unsigned n = 1; n < 40; n++) {
		unsigned all = 0;
		struct th h;

		open(&h, 64, 0);
		th_post(&h, 0, IBV_WR_SEND, 1, 0, 64 * MTU, 0, 0);
		for (struct burst b; (b = take(&h, 0, n)).n; all += b.n)
			CU_ASSERT_EQUAL(b.n, ur_min_u32(n, 64 - all));
		CU_ASSERT_EQUAL(all, 64);
		th_close(&h);
	}
}

/* --- what goes another way --- */

/* Another QP's packets join when all that stands before the BTH is the same, and do not otherwise. */
static void way__of_another_qp(void)
{
	for (unsigned other = 0; other < 2; other++) {
		struct ur_path path;
		struct ur_qp *qp;
		struct burst b;
		struct th h;

		open(&h, 64, 0);
		qp = second_qp(&h, &path, other);
		th_post(&h, 0, IBV_WR_SEND, 1, 0, 3 * MTU, 0, 0);
		send_on(&h, qp, 4 * MTU);
		b = take(&h, 0, 64);
		CU_ASSERT_EQUAL(b.n, 7);
		CU_ASSERT_EQUAL(b.entries, other ? 2 : 1);
		for (unsigned i = 0; i < 7; i++) {
			CU_ASSERT_EQUAL(b.p[i].dqpn, i < 3 ? ur_qp_num(h.n[1].qp) : 0x20777);
			CU_ASSERT_EQUAL(b.p[i].psn, i < 3 ? 100 + i : 500 + i - 3);
		}
		CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
		th_close(&h);
	}
}

/* What stays on this host is delivered in packets. */
static void way__on_this_host(void)
{
	struct burst b;
	struct th h;

	open(&h, 64, 0);
	h.n[0].path.local = true;
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 5 * MTU, 0, 0);
	b = take(&h, 0, 64);
	CU_ASSERT_TRUE(b.n == 5 && b.entries == 5 && b.trains == 0);
	th_close(&h);
}

/* A notification has a traffic class of its own: it is alone, and nothing follows it in its train. */
static void way__of_a_congestion_notification(void)
{
	struct burst b;
	struct th h;

	open(&h, 64, 0);
	th_post(&h, 1, IBV_WR_RDMA_READ, 1, 0, 4 * MTU, 0, 0);
	th_pump(&h);
	th_post(&h, 1, IBV_WR_RDMA_READ, 2, 0, 4 * MTU, 0, 0);
	b = take(&h, 1, 64);
	CU_ASSERT_EQUAL(b.n, 1);
	th_inject(&h, 0, UR_OP_READ_REQ, 204, true, &(struct th_hdr){.va = (uintptr_t)h.n[0].mem, .rkey = h.n[0].mr->rkey, .len = 4 * MTU},
		  NULL, 0);
	ur_cc_marked(h.n[0].qp, h.now);
	h.n[0].qp->cc.cnp_due = true;
	b = take(&h, 0, 64);
	CU_ASSERT_EQUAL_FATAL(b.n, 5);
	CU_ASSERT_EQUAL(b.p[0].opcode, UR_OP_CNP);
	CU_ASSERT_NOT_EQUAL(b.p[0].tos, b.p[1].tos);
	CU_ASSERT_EQUAL(b.count[0], 1);
	for (unsigned i = 1; i < 5; i++)
		CU_ASSERT_TRUE(b.p[i].entry > 0 && b.p[i].tos == b.p[1].tos);
	th_close(&h);
}

/* The same behind packets of others: it does not change their traffic class. */
static void way__of_a_notification_behind_others(void)
{
	struct ur_pkt *pkts[4];
	struct ur_qp *qp;
	struct ur_tp *tp;
	struct th h;

	open(&h, 64, 0);
	qp = h.n[0].qp;
	tp = h.n[0].tp;
	ur_txbuf_reset(&tp->tx, pkts);
	for (unsigned i = 0; i < 4; i++) {
		struct ur_pkt *p;

		if (i == 2) {
			CU_ASSERT_TRUE(ur_cc_build_cnp(qp, h.now));
			continue;
		}
		p = ur_txbuf_begin(tp, &h.n[0].path, UR_BTH_LEN + 64 + UR_ICRC_LEN);
		p->bth.opcode = UR_OP_SEND_MIDDLE;
		ur_pkt_begin(qp, p, ur_opcode(UR_OP_SEND_MIDDLE));
		memset(p->data + p->len, 0, 64);
		p->len += 64;
		ur_txbuf_end(qp, p);
	}
	CU_ASSERT_EQUAL_FATAL(tp->tx.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		struct ur_train_cursor at = {0};
		struct th_pkt one;

		CU_ASSERT_EQUAL(ur_train_count(pkts[i]), i ? 1 : 2);
		while (th_wire(pkts[i], &at, &one))
			CU_ASSERT_TRUE((one.p.bth.opcode == UR_OP_CNP) == (i == 1) && (one.p.tos != 0) == (i == 1));
	}
	th_free(&h, 0, pkts, 3);
	th_close(&h);
}

/* What is for a group is alone: members on this host get copies of packets. */
static void way__to_a_group(void)
{
	struct ur_pkt *pkts[4];
	struct ur_tp *tp;
	struct th h;

	open(&h, 64, 0);
	tp = h.n[0].tp;
	ur_txbuf_reset(&tp->tx, pkts);
	for (unsigned i = 0; i < 4; i++) {
		struct ur_pkt *p = ur_txbuf_begin(tp, &h.n[0].path, UR_BTH_LEN + UR_ICRC_LEN);

		p->bth.opcode = UR_OP_SEND_MIDDLE;
		ur_pkt_begin(h.n[0].qp, p, ur_opcode(UR_OP_SEND_MIDDLE));
		if (i == 1)
			p->flags |= UR_PKT_GROUP;
		ur_txbuf_end(h.n[0].qp, p);
	}
	CU_ASSERT_EQUAL(tp->tx.n, 2);
	CU_ASSERT_TRUE(ur_train_count(pkts[0]) == 2 && ur_train_count(pkts[1]) == 2);
	th_free(&h, 0, pkts, 2);
	th_close(&h);
}

/* --- what is missing --- */

/* All packets before the hole leave, and the request fails there once they are acknowledged. */
static void missing__fails_the_request_there(void)
{
	for (unsigned k = 0; k < 8; k++) {
		const uint32_t edge = k * 4096;
		uint8_t *mem = holed(edge);
		struct ur_mr *mr;
		struct ibv_sge s;
		struct burst b;
		struct th h;

		open(&h, 64, 0);
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, mem, HOLED, (uintptr_t)mem, TH_MR_ACCESS, &mr), 0);
		s = (struct ibv_sge){(uintptr_t)mem, HOLED, mr->lkey};
		th_post_sge(&h, 0, IBV_WR_SEND, 9, &s, 1, 0, 0, IBV_SEND_SIGNALED);
		b = take(&h, 0, 64);
		CU_ASSERT_EQUAL(b.n, edge / MTU);
		CU_ASSERT_EQUAL(b.trains, edge > 0);
		if (b.n)
			th_ack(&h, 0, 100 + b.n - 1, 0);
		CU_ASSERT_EQUAL(take(&h, 0, 64).n, 0);
		th_expect_wc(h.n[0].scq, 9, IBV_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(ur_qp_st(h.n[0].qp), IBV_QPS_ERR);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		munmap(mem, HOLED);
		th_close(&h);
	}
}

/* A request that fails after others leaves theirs in the train, and nothing of its own. The last of theirs goes out again, and asks. */
static void undo__keeps_what_was_before(void)
{
	static const uint32_t lens[] = {600, 590};

	for (unsigned first = 0; first < 2; first++)
		for (unsigned i = 0; i < ur_array_size(lens); i++) {
			struct ibv_sge s;
			struct burst b;
			struct th h;

			open(&h, 64, 0);
			s = (struct ibv_sge){(uintptr_t)h.n[0].mem, lens[i], h.n[0].mr->lkey + 1}; /* no such key */
			if (!first) {
				th_post(&h, 0, IBV_WR_SEND, 1, 0, 600, 0, 0);
				th_post(&h, 0, IBV_WR_SEND, 2, 0, 600, 0, 0);
			}
			th_post_sge(&h, 0, IBV_WR_SEND, 3, &s, 1, 0, 0, 0);
			b = take(&h, 0, 64);
			CU_ASSERT_EQUAL(b.n, first ? 0 : 3);
			CU_ASSERT_EQUAL(b.entries, first ? 0 : 1);
			th_close(&h);
		}
}

/* Without a buffer for a train packets go alone; without one for packets nothing is built, and it goes on later. */
static void buffers__of_trains_run_out(void)
{
	struct burst b;
	struct th h;

	open(&h, 4, 0);
	h.n[0].trains = 2;
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 20 * MTU, 0, 0);
	b = take(&h, 0, 64);
	CU_ASSERT_EQUAL(b.n, 20);
	CU_ASSERT_TRUE(b.trains == 2 && b.count[0] == 4 && b.count[1] == 4);
	CU_ASSERT_EQUAL(b.entries, 2 + 12);
	th_close(&h);
}

static void buffers__of_all_kinds_run_out(void)
{
	struct burst b;
	struct th h;

	open(&h, 4, 0);
	h.n[0].trains = 1;
	h.n[0].room = 0;
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 20 * MTU, 0, 0);
	b = take(&h, 0, 64);
	CU_ASSERT_TRUE(b.n == 4 && b.trains == 1);
	h.n[0].room = 1000;
	b = take(&h, 0, 64);
	CU_ASSERT_EQUAL(b.n, 16);
	CU_ASSERT_TRUE(b.trains == 1 && b.p[0].psn == 104);
	th_close(&h);
}

void ur_suite_txbuf(void)
{
	CU_pSuite s = CU_add_suite("txbuf", NULL, NULL);

	CU_ADD_TEST(s, join__packets_of_a_message);
	CU_ADD_TEST(s, join__messages);
	CU_ADD_TEST(s, join__limits_of_the_port);
	CU_ADD_TEST(s, join__as_many_as_asked_for);
	CU_ADD_TEST(s, way__of_another_qp);
	CU_ADD_TEST(s, way__on_this_host);
	CU_ADD_TEST(s, way__of_a_congestion_notification);
	CU_ADD_TEST(s, way__of_a_notification_behind_others);
	CU_ADD_TEST(s, way__to_a_group);
	CU_ADD_TEST(s, missing__fails_the_request_there);
	CU_ADD_TEST(s, undo__keeps_what_was_before);
	CU_ADD_TEST(s, buffers__of_trains_run_out);
	CU_ADD_TEST(s, buffers__of_all_kinds_run_out);
}
