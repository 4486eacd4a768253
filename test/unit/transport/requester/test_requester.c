/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/requester/requester.c, sge.c and schedule.c: what is sent, and when it is not. */
#include "tp_harness.h"
#include "transport/state/req_state.h"
#include "transport/state/wr_op.h"

static uint8_t opcode_at(const struct ur_wr_op *o, uint32_t k, uint32_t n)
{
	if (k + 1 == n)
		return k ? o->last : o->only;
	return k ? o->middle : o->first;
}

/* One message: every packet's opcode, PSN, length, headers, payload and AckReq. */
static void check_message(enum ibv_wr_opcode op, enum ibv_mtu mtu_code, uint32_t len, bool v6)
{
	static struct th h;
	struct th_opt o = th_default;
	uint32_t mtu = 128u << mtu_code, n = len ? (len + mtu - 1) / mtu : 1;
	struct th_pkt p;

	o.mtu = mtu_code;
	o.psn[0] = 0xfffffe; /* the PSN wraps inside the message */
	o.v6 = v6;
	th_open(&h, &o);
	CU_ASSERT_EQUAL(th_post(&h, 0, op, 1, 13, len, 77, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
	for (uint32_t k = 0; k < n; k++) {
		const struct ur_opcode_info *info;
		const uint8_t *ext;
		bool last = k + 1 == n;

		CU_ASSERT_FATAL(th_pull(&h, 0, &p));
		info = ur_opcode(p.p.bth.opcode);
		ext = p.p.data + p.p.bth_off + UR_BTH_LEN;
		CU_ASSERT_EQUAL(p.p.bth.opcode, opcode_at(&ur_wr_ops[op], k, n));
		CU_ASSERT_EQUAL(p.p.bth.psn, ur_psn_add(0xfffffe, k));
		CU_ASSERT_EQUAL(p.p.bth.dqpn, ur_qp_num(h.n[1].qp));
		CU_ASSERT_EQUAL(p.p.bth.pkey, 0xffff);
		CU_ASSERT_TRUE(p.p.bth.migreq);
		CU_ASSERT_EQUAL(p.p.bth.ackreq, last);
		CU_ASSERT_EQUAL(p.p.bth.se, last && op != IBV_WR_RDMA_WRITE);
		CU_ASSERT_EQUAL(p.p.payload_len, last ? len - k * mtu : mtu);
		CU_ASSERT_EQUAL(p.p.bth.pad, (4 - p.p.payload_len % 4) % 4);
		CU_ASSERT_EQUAL(memcmp(p.p.data + p.p.payload_off, h.n[0].mem + 13 + (size_t)k * mtu, p.p.payload_len), 0);
		if (info->flags & UR_OPF_RETH) {
			struct ur_reth r;

			ur_reth_get(ext + info->off_reth, &r);
			CU_ASSERT_EQUAL(r.va, (uintptr_t)h.n[1].mem + 77);
			CU_ASSERT_EQUAL(r.rkey, h.n[1].mr->rkey);
			CU_ASSERT_EQUAL(r.len, len);
		}
		if (info->flags & UR_OPF_IMM)
			CU_ASSERT_EQUAL(memcmp(ext + info->off_imm, &(uint32_t){0x11223344}, 4), 0);
		if (info->flags & UR_OPF_IETH)
			CU_ASSERT_EQUAL(ur_get32(ext + info->off_ieth), 0x11223344);
	}
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, ur_psn_add(0xfffffe, n - 1), ACK);
	CU_ASSERT_EQUAL(th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS).opcode, ur_wr_ops[op].wc);
	th_close(&h);
}

static void build__every_opcode_mtu_and_length(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_WRITE_WITH_IMM};

	for (unsigned o = 0; o < ur_array_size(ops); o++)
		for (unsigned m = IBV_MTU_256; m <= IBV_MTU_4096; m++) {
			uint32_t mtu = 128u << m;
			const uint32_t len[] = {0, 1, 2, 3, 4, 255, 256, 257, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1, 5 * mtu - 3};

			for (unsigned l = 0; l < ur_array_size(len); l++)
				check_message(ops[o], (enum ibv_mtu)m, len[l], l & 1);
		}
}

static struct ur_pkt *build_one(struct th *h)
{
	struct ur_pkt *p = NULL;

	CU_ASSERT_FATAL(ur_tp_tx(h->n[0].tp, &p, 1, h->now) == 1);
	return p;
}

static void give_back(struct th *h, struct ur_pkt *p)
{
	h->n[0].tp->c.free(h->n[0].tp->c.ctx, &p, 1);
}

/* How many fragments make segments, and when the payload is copied. */
static void gather__segments_or_copy(void)
{
	static const struct {
		int nsge;
		uint32_t each;
		unsigned nseg;
	} t[] = {{1, 256, 0}, {1, 257, 1}, {2, 500, 2}, {4, 250, 4}, {5, 200, 0}, {32, 32, 0}, {4, 10, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_opt o = th_default;
		struct ibv_sge sge[UR_MAX_SGE];
		struct ur_pkt *p;
		uint32_t icrc;

		o.sge = UR_MAX_SGE;
		th_open(&h, &o);
		for (int k = 0; k < t[i].nsge; k++)
			sge[k] = (struct ibv_sge){(uintptr_t)(h.n[0].mem + 5000 * k), t[i].each, h.n[0].mr->lkey};
		th_post_sge(&h, 0, IBV_WR_SEND, 1, sge, t[i].nsge, 0, 0, 0);
		p = build_one(&h);
		CU_ASSERT_EQUAL(p->nseg, t[i].nseg);
		CU_ASSERT_EQUAL(atomic_load(&h.n[0].mr->frames.n), t[i].nseg);
		CU_ASSERT_EQUAL(p->payload_len, (uint32_t)t[i].nsge * t[i].each);
		icrc = p->flags & UR_PKT_COMPLETE ? UR_ICRC_LEN : 0; /* what is whole has it already */
		CU_ASSERT_EQUAL(icrc == 0, t[i].nseg != 0);
		CU_ASSERT_EQUAL(p->len - p->payload_off - icrc + t[i].nseg * t[i].each, p->payload_len);
		for (int k = 0; k < t[i].nsge; k++) {
			const uint8_t *at = t[i].nseg ? p->seg[k].data : p->data + p->payload_off + (uint32_t)k * t[i].each;

			CU_ASSERT_EQUAL(memcmp(at, h.n[0].mem + 5000 * k, t[i].each), 0);
		}
		give_back(&h, p);
		CU_ASSERT_EQUAL(atomic_load(&h.n[0].mr->frames.n), 0);
		th_close(&h);
	}
}

static void gather__uneven_list_over_many_packets(void)
{
	static struct th h;
	struct ibv_sge sge[4];
	static const uint32_t len[4] = {1000, 0, 3, 4096};
	uint8_t want[5099];
	uint32_t n = 0;

	th_open(&h, &th_default);
	for (unsigned k = 0; k < 4; k++) {
		sge[k] = (struct ibv_sge){(uintptr_t)(h.n[0].mem + 10000 * k), len[k], len[k] ? h.n[0].mr->lkey : 0};
		memcpy(want + n, h.n[0].mem + 10000 * k, len[k]);
		n += len[k];
	}
	th_post_sge(&h, 0, IBV_WR_RDMA_WRITE, 1, sge, 4, (uintptr_t)h.n[1].mem, h.n[1].mr->rkey, IBV_SEND_SIGNALED);
	h.lose = th_lose_mask;
	h.arg = (uint64_t[2]){1u << 3, 0}; /* goes back into the middle of the list */
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, want, n), 0);
	CU_ASSERT_TRUE(h.n[0].c.v[UR_C_RETRANSMIT] > 0);
	th_close(&h);
}

static void inline__copied_at_posting_and_resent(void)
{
	static struct th h;
	struct th_opt o = th_default;
	uint8_t buf[600], want[600];
	struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), 0xdeadbeef};

	o.mtu = IBV_MTU_256;
	o.inline_data = 600;
	th_open(&h, &o);
	memcpy(buf, h.n[0].mem, sizeof(buf));
	memcpy(want, buf, sizeof(buf));
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)h.n[1].mem, h.n[1].mr->rkey,
				    IBV_SEND_INLINE | IBV_SEND_SIGNALED),
			0);
	memset(buf, 0, sizeof(buf));
	h.lose = th_lose_mask;
	h.arg = (uint64_t[2]){2, 0};
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, want, sizeof(want)), 0);
	th_close(&h);
}

static void window__bounds_what_is_in_flight(void)
{
	static const unsigned windows[] = {1, 2, 5, 16, 256};

	for (unsigned i = 0; i < ur_array_size(windows); i++) {
		static struct th h;
		struct th_opt o = th_default;
		unsigned every = ur_min_u32(64, windows[i] < 4 ? 1 : windows[i] / 4), n = 0;
		struct th_pkt p;

		o.window = windows[i];
		o.mtu = IBV_MTU_256;
		th_open(&h, &o);
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 400 * 256, 0, IBV_SEND_SIGNALED);
		for (; th_pull(&h, 0, &p); n++)
			CU_ASSERT_EQUAL(p.p.bth.ackreq, (n + 1) % every == 0);
		CU_ASSERT_EQUAL(n, windows[i]);
		CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_WINDOW);
		th_ack(&h, 0, 100, ACK);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
		th_close(&h);
	}
}

static void read__limit_of_outstanding_and_fence(void)
{
	static struct th h;
	struct th_opt o = th_default;
	const struct th_hdr ack = {.syndrome = ACK};

	o.max_rd = 2;
	th_open(&h, &o);
	for (unsigned i = 0; i < 3; i++)
		th_post(&h, 0, IBV_WR_RDMA_READ, i, 0, 4, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 0, 4, 0, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_RD_LIMIT);
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, 100, false, &ack, "aaaa", 4);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_FENCE);
	CU_ASSERT_STRING_EQUAL(ur_req_state_name(ur_req_next(h.n[0].qp)), "FENCE");
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, 101, false, &ack, "bbbb", 4);
	th_expect_quiet(&h, 0);
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, 102, false, &ack, "cccc", 4);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	for (unsigned i = 0; i < 3; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	th_close(&h);
}

static void read__longer_than_the_window_goes_in_pieces(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_pkt p;
	struct ur_reth r;

	o.window = 16;
	o.mtu = IBV_MTU_256;
	o.max_rd = 1;
	th_open(&h, &o);
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 20 * 256 + 5, 1000, IBV_SEND_SIGNALED);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	ur_reth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &r);
	CU_ASSERT_EQUAL(r.len, 8 * 256);
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	th_feed(&h, 1, &p);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 1000, 20 * 256 + 5), 0);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_READ], 3);
	th_close(&h);
}

/* A peer as rdma_rxe is (MigReq 0) would never answer the first piece again once it has answered the second. */
static void read__pieces_sent_again_wait_for_one_another(void)
{
	static struct th h;
	struct th_opt o = th_default;
	const struct th_hdr ext = {.syndrome = ACK};
	struct th_pkt p;

	o.window = 16;
	o.mtu = IBV_MTU_256;
	o.max_rd = 4;
	th_open(&h, &o);
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 16 * 256, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	h.n[0].qp->req.scoreboard.one_hole = true; /* as its answers have told */
	th_sleep(&h, 2 * UR_NS_PER_MS);
	h.n[0].qp->req.window.size = 16;
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_RD_LIMIT);
	/* The timer has halved the window, and a piece is half of that. */
	for (uint32_t psn = 100; psn < 104; psn++) {
		th_expect_quiet(&h, 0);
		th_inject(&h, 0,
			  psn == 100   ? UR_OP_READ_RESP_FIRST
			  : psn == 103 ? UR_OP_READ_RESP_LAST
				       : UR_OP_READ_RESP_MIDDLE,
			  psn, false, &ext, h.n[1].mem, 256);
	}
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 104);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

enum bad { LKEY, RANGE, PD, TOO_LONG, READ_INTO_RO, NO_RD };

static void fail__local_errors_keep_their_place(void)
{
	static const struct {
		enum bad what;
		enum ibv_wr_opcode op;
		enum ibv_wc_status status;
	} t[] = {
		{LKEY, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR},        {LKEY, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR},
		{RANGE, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR}, {PD, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR},
		{TOO_LONG, IBV_WR_SEND, IBV_WC_LOC_LEN_ERR},     {READ_INTO_RO, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR},
		{NO_RD, IBV_WR_RDMA_READ, IBV_WC_LOC_QP_OP_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++)
		for (unsigned before = 0; before < 2; before++) {
			static struct th h;
			struct th_opt o = th_default;
			struct ur_mr *mr;
			struct ur_pd *pd;
			struct ibv_sge sge[2];
			int n = 1;

			o.max_rd = t[i].what == NO_RD ? 0 : 4;
			th_open(&h, &o);
			ur_pd_create(h.n[0].tp, &pd);
			ur_mr_reg(h.n[0].tp, t[i].what == PD ? pd : h.n[0].pd, h.n[0].mem, 100, (uintptr_t)h.n[0].mem, 0, &mr);
			sge[0] = (struct ibv_sge){(uintptr_t)h.n[0].mem, 50, mr->lkey};
			if (t[i].what == LKEY)
				sge[0].lkey ^= 1;
			if (t[i].what == RANGE)
				sge[0].length = 101;
			if (t[i].what == NO_RD)
				sge[0].lkey = h.n[0].mr->lkey;
			if (t[i].what == TOO_LONG) {
				n = 2;
				sge[0].length = UR_MAX_MSG;
				sge[1] = (struct ibv_sge){(uintptr_t)h.n[0].mem, 1, mr->lkey};
			}
			if (before)
				th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 2000, 0, IBV_SEND_SIGNALED);
			CU_ASSERT_EQUAL(th_post_sge(&h, 0, t[i].op, 2, sge, n, (uintptr_t)h.n[1].mem, h.n[1].mr->rkey, 0), 0);
			th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, IBV_SEND_SIGNALED);
			CU_ASSERT_EQUAL(th_drain(&h, 0), 2 * before);
			if (before) {
				CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_HALT);
				th_expect_no_wc(h.n[0].scq);
				th_ack(&h, 0, 101, ACK);
				th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
			}
			th_expect_wc(h.n[0].scq, 2, t[i].status);
			th_expect_wc(h.n[0].scq, 3, IBV_WC_WR_FLUSH_ERR);
			CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
			CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
			CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
			th_close(&h);
		}
}

/* The segment of the good entry was not held yet when the bad one was found: it may not be let go of either. */
static void fail__bad_entry_leaves_the_good_one_alone(void)
{
	static struct th h;
	struct ur_mr *mr;
	struct ibv_sge sge[2];

	th_open(&h, &th_default);
	ur_mr_reg(h.n[0].tp, h.n[0].pd, h.n[0].mem, 5000, 0, 0, &mr);
	sge[0] = (struct ibv_sge){0, 500, mr->lkey};
	sge[1] = (struct ibv_sge){0, 500, mr->lkey ^ 1};
	th_post_sge(&h, 0, IBV_WR_RDMA_WRITE, 1, sge, 2, (uintptr_t)h.n[1].mem, h.n[1].mr->rkey, 0);
	th_expect_quiet(&h, 0);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
}

static void fail__mr_gone_in_the_middle(void)
{
	static struct th h;
	struct ur_mr *mr;
	struct ibv_sge sge;

	th_open(&h, &th_default);
	ur_mr_reg(h.n[0].tp, h.n[0].pd, h.n[0].mem, 5000, 0, 0, &mr);
	sge = (struct ibv_sge){0, 5000, mr->lkey};
	th_post_sge(&h, 0, IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)h.n[1].mem, h.n[1].mr->rkey, 0);
	give_back(&h, build_one(&h));
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_expect_quiet(&h, 0);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	th_close(&h);
}

static void tx__no_buffers(void)
{
	static struct th h;
	struct ur_pkt *p;

	th_open(&h, &th_default);
	h.n[0].room = 0;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 5000, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(ur_tp_tx(h.n[0].tp, &p, 1, h.now), 0);
	CU_ASSERT_TRUE(ur_tp_tx_pending(h.n[0].tp));
	h.n[0].room = 3;
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

static void tx__takes_turns(void)
{
	static struct th h;
	struct ur_qp_init init = {.type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ur_pkt *p[64];
	struct ur_qp *first, *second;
	uint32_t seen[2] = {0};
	unsigned n;

	th_open(&h, &th_default);
	first = h.n[0].qp;
	init.pd = h.n[0].pd;
	init.send_cq = h.n[0].scq;
	init.recv_cq = h.n[0].rcq;
	init.context = &h.n[0];
	CU_ASSERT_EQUAL(ur_qp_create(h.n[0].tp, &init, &second), 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 100000, 0, 0);
	h.n[0].qp = second;
	th_connect(&h, 0);
	second->dqpn = 0x123456;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 100000, 0, 0);
	h.n[0].qp = first;
	n = ur_tp_tx(h.n[0].tp, p, 64, h.now);
	CU_ASSERT_EQUAL(n, 64);
	for (unsigned i = 0; i < n; i++) {
		seen[p[i]->bth.dqpn == 0x123456]++;
		CU_ASSERT_EQUAL(p[i]->bth.dqpn == 0x123456, i / 16 % 2);
		give_back(&h, p[i]);
	}
	CU_ASSERT_EQUAL(seen[0], seen[1]);
	CU_ASSERT_EQUAL(ur_qp_destroy(second), 0);
	th_close(&h);
}

static void local_path__is_flagged(void)
{
	static struct th h;
	struct ur_pkt *p;

	th_open(&h, &th_default);
	h.n[0].path.local = true;
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 8, 0, 0);
	p = build_one(&h);
	CU_ASSERT_EQUAL(p->flags, UR_PKT_LOCAL | UR_PKT_COMPLETE);
	give_back(&h, p);
	th_close(&h);
}

void ur_suite_requester(void);

/* A NIC that reads the memory by itself gets a copy of what is sent again. */
static void again__is_marked(void)
{
	static struct th h;
	struct ur_pkt *p[8];
	unsigned n;

	th_open(&h, &th_default);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL_FATAL(n = ur_tp_tx(h.n[0].tp, p, 8, h.now), 4);
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_FALSE(p[i]->flags & UR_PKT_AGAIN);
	h.n[0].tp->c.free(h.n[0].tp->c.ctx, p, n);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 1000, 0, IBV_SEND_SIGNALED), 0);
	th_ack(&h, 0, ur_psn_add(th_default.psn[0], 2), SEQ_NAK);
	CU_ASSERT_EQUAL_FATAL(n = ur_tp_tx(h.n[0].tp, p, 8, h.now), 3);
	CU_ASSERT_TRUE(p[0]->flags & UR_PKT_AGAIN && p[1]->flags & UR_PKT_AGAIN);
	CU_ASSERT_FALSE(p[2]->flags & UR_PKT_AGAIN); /* it was not there the first time */
	h.n[0].tp->c.free(h.n[0].tp->c.ctx, p, n);
	th_ack(&h, 0, ur_psn_add(th_default.psn[0], 4), ACK);
	th_close(&h);
}

void ur_suite_requester(void)
{
	CU_pSuite s = CU_add_suite("requester", NULL, NULL);

	CU_ADD_TEST(s, again__is_marked);
	CU_ADD_TEST(s, build__every_opcode_mtu_and_length);
	CU_ADD_TEST(s, gather__segments_or_copy);
	CU_ADD_TEST(s, gather__uneven_list_over_many_packets);
	CU_ADD_TEST(s, inline__copied_at_posting_and_resent);
	CU_ADD_TEST(s, window__bounds_what_is_in_flight);
	CU_ADD_TEST(s, read__limit_of_outstanding_and_fence);
	CU_ADD_TEST(s, read__longer_than_the_window_goes_in_pieces);
	CU_ADD_TEST(s, read__pieces_sent_again_wait_for_one_another);
	CU_ADD_TEST(s, fail__local_errors_keep_their_place);
	CU_ADD_TEST(s, fail__bad_entry_leaves_the_good_one_alone);
	CU_ADD_TEST(s, fail__mr_gone_in_the_middle);
	CU_ADD_TEST(s, tx__no_buffers);
	CU_ADD_TEST(s, tx__takes_turns);
	CU_ADD_TEST(s, local_path__is_flagged);
}
