/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/uc.c: node 0 sends from PSN 100, node 1 receives; the path MTU is 256. */
#include <errno.h>

#include "tp_harness.h"

void ur_suite_uc(void);

#define MTU 256
#define UC(op) (UR_UC | UR_OP_##op)

static uint8_t data[2 * MTU];

static void open_uc(struct th *h)
{
	struct th_opt o = th_default;

	o.type = IBV_QPT_UC;
	o.mtu = IBV_MTU_256;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	th_open(h, &o);
}

static uint64_t count(const struct th *h, enum ur_counter c)
{
	return h->n[1].c.v[c];
}

/* --- requester --- */

/* Done with the last packet, without an answer, a timer or a request for an acknowledgement. */
static void send__completes_with_its_last_packet(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t len;
		uint8_t opcodes[4];
	} t[] = {
		{IBV_WR_SEND, 0, {UC(SEND_ONLY)}},
		{IBV_WR_SEND, 256, {UC(SEND_ONLY)}},
		{IBV_WR_SEND_WITH_IMM, 1, {UC(SEND_ONLY_IMM)}},
		{IBV_WR_SEND, 1000, {UC(SEND_FIRST), UC(SEND_MIDDLE), UC(SEND_MIDDLE), UC(SEND_LAST)}},
		{IBV_WR_SEND_WITH_IMM, 257, {UC(SEND_FIRST), UC(SEND_LAST_IMM)}},
		{IBV_WR_RDMA_WRITE, 10, {UC(WRITE_ONLY)}},
		{IBV_WR_RDMA_WRITE, 600, {UC(WRITE_FIRST), UC(WRITE_MIDDLE), UC(WRITE_LAST)}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 300, {UC(WRITE_FIRST), UC(WRITE_LAST_IMM)}},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 3, {UC(WRITE_ONLY_IMM)}},
	};
	static struct th h;
	uint32_t psn = 100;

	open_uc(&h);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct th_pkt p;

		CU_ASSERT_EQUAL(th_post(&h, 0, t[i].op, i, 0, t[i].len, 0, IBV_SEND_SIGNALED), 0);
		for (unsigned k = 0; k < 4 && (t[i].opcodes[k] || !k); k++) {
			th_expect_no_wc(h.n[0].scq);
			CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
			CU_ASSERT_EQUAL(p.p.bth.opcode, t[i].opcodes[k]);
			CU_ASSERT_EQUAL(p.p.bth.psn, psn++);
			CU_ASSERT_FALSE(p.p.bth.ackreq);
		}
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
		th_expect_quiet(&h, 0);
	}
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_close(&h);
}

/* More than any window, as fast as packets are taken. */
static void send__needs_no_window(void)
{
	static struct th h;

	open_uc(&h);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 1000 * MTU, 0, 0), 0);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 1, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1001);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_close(&h);
}

/* The program may change its memory as soon as it has the completion: frames hold copies. */
static void send__copies_payload(void)
{
	static struct th h;
	struct ur_pkt *p;

	open_uc(&h);
	h.n[0].mem[10] = 1;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, MTU, 0, 0);
	h.n[0].qp->mtu = 4096; /* longer than what is copied in any case */
	h.n[0].qp->mtu_shift = 12;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 4000, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(ur_tp_tx(h.n[0].tp, &p, 1, h.now), 1);
		CU_ASSERT_EQUAL(p->nseg, 0);
		CU_ASSERT_EQUAL(atomic_load(&h.n[0].mr->frames.n), 0);
		h.n[0].tp->c.free(h.n[0].tp->c.ctx, &p, 1);
	}
	th_close(&h);
}

static void post__refuses_what_the_service_lacks(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		int err;
	} t[] = {
		{IBV_WR_SEND, 0},
		{IBV_WR_RDMA_WRITE, 0},
		{IBV_WR_RDMA_READ, EINVAL},
		{IBV_WR_ATOMIC_CMP_AND_SWP, EINVAL},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, EINVAL},
		{IBV_WR_SEND_WITH_INV, EINVAL},
	};
	static struct th h;

	open_uc(&h);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, t[i].op, i, 0, 8, 0, 0), t[i].err);
	th_close(&h);
}

/* The send queue alone stops, and starts again when the program says so. */
static void send__error_leads_to_sqe(void)
{
	static struct th h;
	struct ibv_sge bad = {.addr = 0, .length = 10, .lkey = 0xffffffff};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};

	open_uc(&h);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 10, 0, 0);
	th_post_sge(&h, 0, IBV_WR_SEND, 2, &bad, 1, 0, 0, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 0, 10, 0, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_LOC_PROT_ERR);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_SQE);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 4, 0, 10, 0, 0), 0);
	th_expect_wc(h.n[0].scq, 4, IBV_WC_WR_FLUSH_ERR);
	/* It still receives. */
	th_recv(&h, 0, 9, 0, 64);
	th_inject(&h, 0, UC(SEND_ONLY), 200, false, NULL, data, 8);
	th_expect_wc(h.n[0].rcq, 9, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE, NULL, h.now), 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 5, 0, 10, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_wc(h.n[0].scq, 5, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[0].nevents, 0);
	th_close(&h);
}

/* What is posted in SQE without the NIC having seen it is flushed, even if the QP has left SQE by then. */
static void send__posted_in_sqe_is_never_sent(void)
{
	static struct th h;
	struct ibv_sge bad = {.addr = 0, .length = 10, .lkey = 0xffffffff};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS};
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_SEND}, *bad_wr;

	open_uc(&h);
	th_post_sge(&h, 0, IBV_WR_SEND, 1, &bad, 1, 0, 0, 0);
	th_drain(&h, 0);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ur_qp_post_send(h.n[0].qp, &wr, &bad_wr), 0);
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	th_expect_wc(h.n[0].scq, 7, IBV_WC_WR_FLUSH_ERR);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

static void send__drains(void)
{
	static struct th h;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct th_pkt p;

	open_uc(&h);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 2 * MTU, 0, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, MTU, 0, 0);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL, h.now), 0);
	CU_ASSERT_EQUAL(h.n[0].nevents, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_EQUAL_FATAL(h.n[0].nevents, 1);
	CU_ASSERT_EQUAL(h.n[0].event[0], IBV_EVENT_SQ_DRAINED);
	th_close(&h);
}

/* A next hop that nobody answers for loses what is sent, as hardware would. */
static void unreachable__completes_what_is_lost(void)
{
	static struct th h;

	open_uc(&h);
	h.n[0].path.ready = false;
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 3 * MTU, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_SEND, 2, 0, 10, 0, IBV_SEND_SIGNALED);
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	ur_qp_unreachable(h.n[0].qp);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_NEIGH], 2);
	h.n[0].path.ready = true;
	th_recv(&h, 1, 3, 0, MTU);
	th_post(&h, 0, IBV_WR_SEND, 3, 0, 10, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_SUCCESS);
	th_expect_wc(h.n[1].rcq, 3, IBV_WC_SUCCESS);
	th_close(&h);
}

/* Local operations need no wire: they are executed in their turn, and fail where they would. */
static void unreachable__executes_local_operations(void)
{
	static struct th h;
	struct ibv_send_wr bind = {.wr_id = 2, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr inv = {.wr_id = 3, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mr mr;
	struct ur_mw *mw;
	struct ibv_mw pub;

	open_uc(&h);
	CU_ASSERT_FATAL(ur_mw_alloc(h.n[0].tp, h.n[0].pd, IBV_MW_TYPE_2, &mw) == 0);
	pub = (struct ibv_mw){.rkey = ur_mw_rkey(mw), .type = IBV_MW_TYPE_2};
	mr = (struct ibv_mr){.lkey = h.n[0].mr->lkey};
	bind.bind_mw.mw = &pub;
	bind.bind_mw.rkey = ibv_inc_rkey(pub.rkey);
	bind.bind_mw.bind_info = (struct ibv_mw_bind_info){&mr, (uintptr_t)h.n[0].mem, 64, IBV_ACCESS_REMOTE_READ};
	inv.invalidate_rkey = ur_mw_rkey(mw); /* no longer its key when its turn comes */
	h.n[0].path.ready = false;
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 10, 0, IBV_SEND_SIGNALED);
	th_post_wr(&h, 0, &bind);
	th_post_wr(&h, 0, &inv);
	th_post(&h, 0, IBV_WR_SEND, 4, 0, 10, 0, IBV_SEND_SIGNALED);
	ur_qp_unreachable(h.n[0].qp);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[0].mr->windows, 1);
	CU_ASSERT_EQUAL(ur_mw_rkey(mw), bind.bind_mw.rkey);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_MW_BIND_ERR);
	th_expect_wc(h.n[0].scq, 4, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_SQE);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_NEIGH], 1);
	ur_mw_dealloc(mw);
	th_close(&h);
}

/* What had begun is lost, and the queue has drained; what had not waits for RTS. */
static void unreachable__drains(void)
{
	static struct th h;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct th_pkt p;

	open_uc(&h);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 2 * MTU, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, MTU, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	h.n[0].path.ready = false;
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL, h.now), 0);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(h.n[0].nevents, 0);
	ur_qp_unreachable(h.n[0].qp);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL_FATAL(h.n[0].nevents, 1);
	CU_ASSERT_EQUAL(h.n[0].event[0], IBV_EVENT_SQ_DRAINED);
	h.n[0].path.ready = true;
	a.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_close(&h);
}

/* --- responder --- */

enum { F = 1, M, L, O }; /* FIRST, MIDDLE, LAST, ONLY */

/*
 * Packets of SENDs: kind and PSN relative to the first one. Each FIRST and MIDDLE brings MTU bytes, each LAST and ONLY five. `got` are the
 * lengths of the messages that arrive, in order; there are two receive WQEs.
 */
static void receive__sequences(void)
{
	static const struct {
		const char *what;
		struct {
			uint8_t kind;
			int32_t psn;
		} p[6];
		uint32_t got[2];
		unsigned out_of_seq, rest, left; /* receive WQEs that are left */
	} t[] = {
		{"whole", {{F, 0}, {M, 1}, {L, 2}, {O, 3}}, {517, 5}, 0, 0, 0},
		{"middle lost", {{F, 0}, {L, 2}, {O, 3}}, {5, 0}, 1, 0, 1},
		{"middle lost, more follow", {{F, 0}, {M, 2}, {M, 3}, {L, 4}, {F, 5}, {L, 6}}, {261, 0}, 1, 2, 1},
		{"last lost", {{F, 0}, {M, 1}, {F, 3}, {L, 4}}, {261, 0}, 0, 0, 1},
		{"last lost, only follows", {{F, 0}, {O, 2}, {O, 3}}, {5, 5}, 0, 0, 0},
		{"first lost", {{M, 1}, {L, 2}, {O, 3}}, {5, 0}, 0, 2, 1},
		{"message lost between", {{O, 0}, {O, 9}}, {5, 5}, 0, 0, 0},
		{"first without last in sequence", {{F, 0}, {F, 1}, {L, 2}}, {261, 0}, 0, 0, 1},
		{"middle twice", {{F, 0}, {M, 1}, {M, 1}, {L, 2}}, {0, 0}, 1, 1, 2},
		{"turned round", {{F, 0}, {L, 2}, {M, 1}}, {0, 0}, 1, 1, 2},
		{"last without first", {{L, 0}, {O, 1}}, {5, 0}, 0, 1, 1},
		{"earlier PSN begins anew", {{O, 5}, {O, 0}}, {5, 5}, 0, 0, 0},
	};
	static const uint8_t ops[] = {[F] = UC(SEND_FIRST), [M] = UC(SEND_MIDDLE), [L] = UC(SEND_LAST), [O] = UC(SEND_ONLY)};
	static struct th h;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		unsigned n = 0;

		open_uc(&h);
		for (unsigned k = 0; k < 2; k++)
			th_recv(&h, 1, k, k * 1024, 1024);
		for (unsigned k = 0; k < 6 && t[i].p[k].kind; k++)
			th_inject(&h, 1, ops[t[i].p[k].kind], (uint32_t)(100 + t[i].p[k].psn), false, NULL, data,
				  t[i].p[k].kind < L ? MTU : 5);
		for (; n < 2 && t[i].got[n]; n++)
			CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, n, IBV_WC_SUCCESS).byte_len, t[i].got[n]);
		th_expect_no_wc(h.n[1].rcq);
		CU_ASSERT_EQUAL(count(&h, UR_C_DROP_OUT_OF_SEQ), t[i].out_of_seq);
		CU_ASSERT_EQUAL(count(&h, UR_C_DROP_UC_MESSAGE), t[i].rest);
		CU_ASSERT_EQUAL(n + t[i].left, 2);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
		th_expect_quiet(&h, 1); /* no NAK, no ACK */
		/* What is left still works. */
		for (unsigned k = 0; k < t[i].left; k++) {
			th_inject(&h, 1, UC(SEND_ONLY), 5000 + k, true, NULL, data, 3);
			CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, n + k, IBV_WC_SUCCESS).byte_len, 3);
		}
		th_expect_quiet(&h, 1);
		th_close(&h);
	}
}

/* One packet that is refused: silence, a counter, and the next message is received. */
static void receive__refusals(void)
{
	static const struct {
		const char *what;
		uint8_t opcode;
		uint32_t len, dma_len, off; /* of the RETH */
		uint32_t rkey_xor;
		int access;
		uint32_t recv; /* length of the receive WQE; 0 for none */
		enum ur_counter counter;
	} t[] = {
		{"no receive", UC(SEND_ONLY), 8, 0, 0, 0, TH_ALL_ACCESS, 0, UR_C_DROP_NO_RECV},
		{"write with immediate, no receive", UC(WRITE_ONLY_IMM), 8, 8, 0, 0, TH_ALL_ACCESS, 0, UR_C_DROP_NO_RECV},
		{"too long", UC(SEND_ONLY), 9, 0, 0, 0, TH_ALL_ACCESS, 8, UR_C_DROP_RECV_SHORT},
		{"longer than the MTU", UC(SEND_ONLY), MTU + 4, 0, 0, 0, TH_ALL_ACCESS, 1024, UR_C_REMOTE_INV},
		{"first shorter than the MTU", UC(SEND_FIRST), 8, 0, 0, 0, TH_ALL_ACCESS, 1024, UR_C_REMOTE_INV},
		{"wrong key", UC(WRITE_ONLY), 8, 8, 0, 1, TH_ALL_ACCESS, 64, UR_C_REMOTE_ACCESS},
		{"beyond the region", UC(WRITE_ONLY), 8, 8, TH_MEM - 7, 0, TH_ALL_ACCESS, 64, UR_C_REMOTE_ACCESS},
		{"no access", UC(WRITE_ONLY), 8, 8, 0, 0, IBV_ACCESS_LOCAL_WRITE, 64, UR_C_REMOTE_INV},
		{"less than announced", UC(WRITE_ONLY), 8, 9, 0, 0, TH_ALL_ACCESS, 64, UR_C_REMOTE_INV},
		{"more than a message holds", UC(WRITE_FIRST), MTU, UR_MAX_MSG + 1, 0, 0, TH_ALL_ACCESS, 64, UR_C_REMOTE_INV},
	};
	static struct th h;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct th_hdr x;
		uint64_t before;

		open_uc(&h);
		h.n[1].qp->access = t[i].access;
		x = th_reth(&h, 1, t[i].off, t[i].dma_len);
		x.rkey ^= t[i].rkey_xor;
		if (t[i].recv)
			th_recv(&h, 1, 1, 2048, t[i].recv);
		before = count(&h, t[i].counter);
		th_inject(&h, 1, t[i].opcode, 100, true, &x, data, t[i].len);
		CU_ASSERT_EQUAL(count(&h, t[i].counter), before + 1);
		th_expect_no_wc(h.n[1].rcq);
		th_expect_quiet(&h, 1);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
		CU_ASSERT_EQUAL(h.n[1].nevents, 0);
		if (!t[i].recv)
			th_recv(&h, 1, 1, 2048, 64);
		th_inject(&h, 1, UC(SEND_ONLY), 101, false, NULL, data, 8);
		th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
		th_close(&h);
	}
}

/* The rest of a message that was refused is dropped as well. */
static void receive__rest_of_a_refused_write(void)
{
	static struct th h;
	struct th_hdr x;

	open_uc(&h);
	x = th_reth(&h, 1, 0, 2 * MTU + 4);
	x.rkey ^= 1;
	th_inject(&h, 1, UC(WRITE_FIRST), 100, false, &x, data, MTU);
	th_inject(&h, 1, UC(WRITE_MIDDLE), 101, false, NULL, data, MTU);
	th_inject(&h, 1, UC(WRITE_LAST), 102, false, NULL, data, 4);
	CU_ASSERT_EQUAL(count(&h, UR_C_REMOTE_ACCESS), 1);
	CU_ASSERT_EQUAL(count(&h, UR_C_DROP_UC_MESSAGE), 2);
	CU_ASSERT_EQUAL(count(&h, UR_C_RX_WRITE), 0);
	th_close(&h);
}

/* MIDDLE and LAST must be of the kind that the FIRST began. */
static void receive__kinds_do_not_mix(void)
{
	static struct th h;

	open_uc(&h);
	th_recv(&h, 1, 1, 0, 1024);
	th_inject(&h, 1, UC(SEND_FIRST), 100, false, NULL, data, MTU);
	th_inject(&h, 1, UC(WRITE_LAST), 101, false, NULL, data, 4);
	CU_ASSERT_EQUAL(count(&h, UR_C_DROP_UC_MESSAGE), 1);
	th_inject(&h, 1, UC(SEND_LAST), 102, false, NULL, data, 4);
	th_expect_no_wc(h.n[1].rcq);
	th_close(&h);
}

/* A receive WQE whose memory is not there is the program's own mistake. */
static void receive__bad_receive_wqe(void)
{
	static struct th h;
	struct ibv_sge sge = {.addr = 0, .length = 64, .lkey = 0xffffffff};
	struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;

	open_uc(&h);
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
	th_inject(&h, 1, UC(SEND_ONLY), 100, false, NULL, data, 8);
	th_expect_wc(h.n[1].rcq, 5, IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_ERR);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

/* A WQE that a broken message left is flushed once. */
static void receive__flush_after_a_broken_message(void)
{
	static struct th h;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	open_uc(&h);
	th_recv(&h, 1, 1, 0, 1024);
	th_recv(&h, 1, 2, 0, 1024);
	th_inject(&h, 1, UC(SEND_FIRST), 100, false, NULL, data, MTU);
	th_inject(&h, 1, UC(SEND_LAST), 102, false, NULL, data, 4);
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[1].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_WR_FLUSH_ERR);
	th_expect_wc(h.n[1].rcq, 2, IBV_WC_WR_FLUSH_ERR);
	th_expect_no_wc(h.n[1].rcq);
	th_close(&h);
}

static void receive__what_is_not_its_own(void)
{
	static const struct {
		uint8_t opcode;
		uint8_t src_xor;
		uint16_t pkey;
		enum ur_counter counter;
	} t[] = {
		{UR_OP_SEND_ONLY, 0, 0xffff, UR_C_DROP_OPCODE}, {UR_UD | UR_OP_SEND_ONLY, 0, 0xffff, UR_C_DROP_OPCODE},
		{UR_OP_ACK, 0, 0xffff, UR_C_DROP_OPCODE},       {UC(SEND_ONLY), 1, 0xffff, UR_C_DROP_SOURCE},
		{UC(SEND_ONLY), 0, 0x8001, UR_C_DROP_PKEY},
	};
	static struct th h;
	struct th_pkt p;

	open_uc(&h);
	th_recv(&h, 1, 1, 0, 64);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint64_t before = count(&h, t[i].counter);

		th_make(&h, 1, &p, UC(SEND_ONLY), 100, false, NULL, data, 8);
		p.p.bth.opcode = t[i].opcode;
		p.p.bth.pkey = t[i].pkey;
		p.p.src.raw[15] ^= t[i].src_xor;
		th_feed(&h, 1, &p);
		CU_ASSERT_EQUAL(count(&h, t[i].counter), before + 1);
	}
	th_expect_no_wc(h.n[1].rcq);
	th_close(&h);
}

/* --- both --- */

static void both__first_packet_in_rtr_brings_the_event(void)
{
	struct th_opt o = th_default;
	static struct th h;

	o.type = IBV_QPT_UC;
	o.stay_rtr = true;
	th_open(&h, &o);
	th_recv(&h, 1, 1, 0, 64);
	for (unsigned i = 0; i < 2; i++)
		th_inject(&h, 1, UC(SEND_ONLY), 100 + i, false, NULL, data, 8);
	CU_ASSERT_EQUAL_FATAL(h.n[1].nevents, 1);
	CU_ASSERT_EQUAL(h.n[1].event[0], IBV_EVENT_COMM_EST);
	th_close(&h);
}

/* Of messages of two to four packets with losses, those that lost nothing arrive, in order and right; the receives are used one by one. */
static void both__random_loss(void)
{
	static struct th h;
	struct ur_rng rng = {7};

	for (unsigned run = 0; run < 200; run++) {
		uint64_t mask[2] = {ur_rng_u64(&rng) & ur_rng_u64(&rng), 0};
		uint32_t len[16], psn = 0, arrived = 0;

		open_uc(&h);
		h.lose = th_lose_mask;
		h.arg = mask;
		for (unsigned i = 0; i < 16; i++)
			th_recv(&h, 1, i, 4096 * i, 4096);
		for (unsigned i = 0; i < 16; i++) {
			len[i] = 1 + ur_rng_below(&rng, 4 * MTU);
			th_post(&h, 0, IBV_WR_SEND, i, 8192 * i, len[i], 0, IBV_SEND_SIGNALED);
		}
		th_pump(&h);
		for (unsigned i = 0; i < 16; i++) {
			uint32_t n = (len[i] + MTU - 1) / MTU;

			th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
			if (!(mask[0] >> psn & ((1u << n) - 1))) {
				CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, arrived, IBV_WC_SUCCESS).byte_len, len[i]);
				CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 4096 * arrived, h.n[0].mem + 8192 * i, len[i]), 0);
				arrived++;
			}
			psn += n;
		}
		th_expect_no_wc(h.n[1].rcq);
		th_close(&h);
	}
}

void ur_suite_uc(void)
{
	CU_pSuite s = CU_add_suite("uc", NULL, NULL);

	CU_ADD_TEST(s, send__completes_with_its_last_packet);
	CU_ADD_TEST(s, send__needs_no_window);
	CU_ADD_TEST(s, send__copies_payload);
	CU_ADD_TEST(s, post__refuses_what_the_service_lacks);
	CU_ADD_TEST(s, send__error_leads_to_sqe);
	CU_ADD_TEST(s, send__posted_in_sqe_is_never_sent);
	CU_ADD_TEST(s, send__drains);
	CU_ADD_TEST(s, unreachable__completes_what_is_lost);
	CU_ADD_TEST(s, unreachable__executes_local_operations);
	CU_ADD_TEST(s, unreachable__drains);
	CU_ADD_TEST(s, receive__sequences);
	CU_ADD_TEST(s, receive__refusals);
	CU_ADD_TEST(s, receive__rest_of_a_refused_write);
	CU_ADD_TEST(s, receive__kinds_do_not_mix);
	CU_ADD_TEST(s, receive__bad_receive_wqe);
	CU_ADD_TEST(s, receive__flush_after_a_broken_message);
	CU_ADD_TEST(s, receive__what_is_not_its_own);
	CU_ADD_TEST(s, both__first_packet_in_rtr_brings_the_event);
	CU_ADD_TEST(s, both__random_loss);
}
