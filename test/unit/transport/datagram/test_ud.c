/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/datagram/ud.c and ah.c: node 0 sends from PSN 100 through an address handle whose path the test holds; node 1 receives. */
#include <errno.h>

#include "tp_harness.h"

void ur_suite_ud(void);

#define QKEY 0x11111111u
#define UD(op) (UR_UD | UR_OP_##op)
#define GRH UR_GRH_LEN

static struct th h;
static unsigned retried, released;
static uint8_t data[8192];

static void on_retry(struct ur_ah *ah, ur_time now)
{
	(void)ah;
	(void)now;
	retried++;
}

/* It frees the handle, and with it the list of those that wait. */
static void on_release(struct ur_ah *ah)
{
	CU_ASSERT_TRUE(ur_list_empty(&ah->waiters));
	released++;
}

static void open_ud(bool v6)
{
	struct th_opt o = th_default;

	o.type = IBV_QPT_UD;
	o.qkey = QKEY;
	o.v6 = v6;
	retried = released = 0;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	th_open(&h, &o);
	ur_tp_set_port_mtu(h.n[0].tp, 1024);
	ur_tp_set_port_mtu(h.n[1].tp, 1024);
}

static void make_ah(struct ur_ah *ah)
{
	memset(ah, 0, sizeof(*ah));
	CU_ASSERT_EQUAL_FATAL(ur_ah_init(ah, h.n[0].pd, &h.n[0].path, on_retry, on_release), 0);
}

static int post_to(struct ur_ah *ah, uint64_t wr_id, uint32_t len, uint32_t qpn, uint32_t qkey, enum ibv_wr_opcode op, unsigned flags)
{
	struct th_node *n = &h.n[0];
	struct ibv_sge sge = {(uintptr_t)n->mem, len, n->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = len != 0, .opcode = op, .send_flags = flags}, *bad;
	int err;

	wr.imm_data = 0x11223344;
	wr.wr.ud.ah = ah ? &ah->api : NULL;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	err = ur_qp_post_send(n->qp, &wr, &bad);
	if (ur_qp_doorbell(n->qp))
		ur_qp_answer(n->qp, h.now);
	return err;
}

static int post(struct ur_ah *ah, uint64_t wr_id, uint32_t len)
{
	return post_to(ah, wr_id, len, ur_qp_num(h.n[1].qp), QKEY, IBV_WR_SEND, IBV_SEND_SIGNALED);
}

/* An application thread that gives a batch up may hold the last reference of its address handles: to let go of them is the NIC's. */
static void batch__given_up_after_its_address_handles(void)
{
	struct ur_ah ah[3], next;
	struct ur_wr_batch b;
	struct ur_qp *qp;

	open_ud(false);
	qp = h.n[0].qp;
	ur_wr_start(qp, &b);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_send_wr *wr = ur_wr_next(qp, &b);

		wr->opcode = IBV_WR_SEND;
		wr->send_flags = 0;
		wr->wr.ud.remote_qpn = 1;
		if (i == 3)
			break; /* it completes the third */
		make_ah(&ah[i]);
		wr->wr.ud.ah = &ah[i].api;
	}
	for (unsigned i = 0; i < 3; i++)
		ur_ah_destroy(&ah[i]);
	ur_wr_abort(qp, &b);
	CU_ASSERT_EQUAL(released, 0);
	make_ah(&next);
	CU_ASSERT_EQUAL(released, 3);
	/* Without another address handle they go with the QP. */
	ur_wr_start(qp, &b);
	ur_wr_next(qp, &b)->wr.ud.ah = &next.api;
	b.wr.opcode = IBV_WR_SEND;
	ur_wr_next(qp, &b);
	ur_ah_destroy(&next);
	ur_wr_abort(qp, &b);
	CU_ASSERT_EQUAL(released, 3);
	th_close(&h);
	CU_ASSERT_EQUAL(released, 4);
}

static void inject(uint32_t qkey, uint32_t sqpn, uint8_t opcode, uint32_t len)
{
	const struct th_hdr x = {.qkey = qkey, .sqpn = sqpn, .imm = 0x55667788};

	th_inject(&h, 1, opcode, 7, false, &x, data, len);
}

static uint64_t count(enum ur_counter c)
{
	return h.n[1].c.v[c];
}

/* --- posting --- */

static void post__arguments(void)
{
	struct ur_ah ah, foreign;
	struct ur_pd *pd;
	const struct {
		struct ur_ah *ah;
		uint32_t qpn;
		enum ibv_wr_opcode op;
		int err;
	} t[] = {
		{&ah, 0xffffff, IBV_WR_SEND, 0},    {&ah, 5, IBV_WR_SEND_WITH_IMM, 0},      {NULL, 5, IBV_WR_SEND, EINVAL},
		{&foreign, 5, IBV_WR_SEND, EINVAL}, {&ah, 0x1000000, IBV_WR_SEND, EINVAL},  {&ah, 5, IBV_WR_RDMA_WRITE, EINVAL},
		{&ah, 5, IBV_WR_RDMA_READ, EINVAL}, {&ah, 5, IBV_WR_SEND_WITH_INV, EINVAL}, {&ah, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, EINVAL},
	};

	open_ud(false);
	make_ah(&ah);
	CU_ASSERT_EQUAL_FATAL(ur_pd_create(h.n[0].tp, &pd), 0);
	CU_ASSERT_EQUAL_FATAL(ur_ah_init(&foreign, pd, &h.n[0].path, on_retry, on_release), 0);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_ASSERT_EQUAL(post_to(t[i].ah, i, 8, t[i].qpn, QKEY, t[i].op, 0), t[i].err);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), EBUSY); /* the address handle belongs to it */
	ur_ah_destroy(&foreign);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
	ur_ah_destroy(&ah);
	CU_ASSERT_EQUAL(released, 2);
	th_close(&h);
}

/* --- sending --- */

static void send__packet(void)
{
	static const struct {
		uint32_t len, qkey, want;
		enum ibv_wr_opcode op;
		unsigned flags;
		uint8_t opcode;
	} t[] = {
		{0, 5, 5, IBV_WR_SEND, 0, UD(SEND_ONLY)},
		{1, 0x7fffffff, 0x7fffffff, IBV_WR_SEND, IBV_SEND_SOLICITED, UD(SEND_ONLY)},
		{1024, 0x80000000, QKEY, IBV_WR_SEND_WITH_IMM, 0, UD(SEND_ONLY_IMM)},
		{999, 0xffffffff, QKEY, IBV_WR_SEND_WITH_IMM, IBV_SEND_SOLICITED, UD(SEND_ONLY_IMM)},
		{13, QKEY, QKEY, IBV_WR_SEND, IBV_SEND_INLINE, UD(SEND_ONLY)},
	};
	struct ur_deth d;
	struct ur_ah ah;
	struct th_pkt p;

	open_ud(false);
	make_ah(&ah);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const uint8_t *ext;

		CU_ASSERT_EQUAL(post_to(&ah, i, t[i].len, 0x123456, t[i].qkey, t[i].op, t[i].flags | IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
		CU_ASSERT_EQUAL(p.p.bth.opcode, t[i].opcode);
		CU_ASSERT_EQUAL(p.p.bth.psn, 100 + i);
		CU_ASSERT_EQUAL(p.p.bth.dqpn, 0x123456);
		CU_ASSERT_EQUAL(p.p.bth.se, (t[i].flags & IBV_SEND_SOLICITED) != 0);
		CU_ASSERT_FALSE(p.p.bth.ackreq);
		CU_ASSERT_EQUAL(p.p.payload_len, t[i].len);
		CU_ASSERT_EQUAL(memcmp(p.p.data + p.p.payload_off, h.n[0].mem, t[i].len), 0);
		ext = p.p.data + p.p.bth_off + UR_BTH_LEN;
		ur_deth_get(ext, &d);
		CU_ASSERT_EQUAL(d.qkey, t[i].want);
		CU_ASSERT_EQUAL(d.sqpn, ur_qp_num(h.n[0].qp));
		if (t[i].op == IBV_WR_SEND_WITH_IMM)
			CU_ASSERT_EQUAL(memcmp(ext + 8, &(uint32_t){0x11223344}, 4), 0);
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	}
	ur_ah_destroy(&ah);
	th_close(&h);
}

/* One byte more than a packet holds, and a bad key: the request fails, those behind it are flushed, the QP goes to SQE. */
static void send__errors(void)
{
	static const struct {
		uint32_t len, key_xor;
		enum ibv_wc_status st;
	} t[] = {{1025, 0, IBV_WC_LOC_LEN_ERR}, {1u << 20, 0, IBV_WC_LOC_LEN_ERR}, {10, 1, IBV_WC_LOC_PROT_ERR}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct ur_ah ah;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		open_ud(false);
		make_ah(&ah);
		post(&ah, 1, 1024);
		post(&ah, 2, t[i].len);
		ur_sq_at(h.n[0].qp, 1)->sge[0].lkey ^= t[i].key_xor;
		post(&ah, 3, 10);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		th_expect_wc(h.n[0].scq, 2, t[i].st);
		th_expect_wc(h.n[0].scq, 3, IBV_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_SQE);
		CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &rts, IBV_QP_STATE, NULL, h.now), 0);
		post(&ah, 4, 10);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
		th_expect_wc(h.n[0].scq, 4, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(atomic_load(&ah.refs), 1);
		ur_ah_destroy(&ah);
		th_close(&h);
	}
}

static void send__waits_for_the_path(void)
{
	struct ur_ah ah;

	open_ud(false);
	make_ah(&ah);
	h.n[0].path.ready = false;
	for (unsigned i = 0; i < 3; i++)
		post(&ah, i, 10);
	th_expect_quiet(&h, 0);
	post(&ah, 3, 10);
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	h.n[0].path.ready = true;
	ur_ah_changed(&ah, true);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 4);
	for (unsigned i = 0; i < 4; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(retried, 0);
	ur_ah_destroy(&ah);
	th_close(&h);
}

/* To a dead next hop datagrams are lost at once; others are not held up. */
static void send__dead_next_hop(void)
{
	struct ur_path dead;
	struct ur_ah ah, gone;

	open_ud(false);
	make_ah(&ah);
	dead = h.n[0].path;
	dead.ready = false;
	CU_ASSERT_EQUAL_FATAL(ur_ah_init(&gone, h.n[0].pd, &dead, on_retry, on_release), 0);
	post(&gone, 1, 10);
	post(&ah, 2, 10);
	th_expect_quiet(&h, 0);
	ur_ah_changed(&gone, false);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_NEIGH], 1);
	CU_ASSERT_EQUAL(retried, 1);
	post(&gone, 3, 10);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(retried, 2);
	dead.ready = true;
	ur_ah_changed(&gone, true);
	post(&gone, 4, 10);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	ur_ah_destroy(&ah);
	ur_ah_destroy(&gone);
	th_close(&h);
}

/* Every way in which a queued request ends gives up its reference. */
static void ah__outlives_its_requests(void)
{
	static const enum { SENT, FLUSHED, RESET, DESTROYED } ways[] = {SENT, FLUSHED, RESET, DESTROYED};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	struct ur_ah ah;

	for (unsigned i = 0; i < ur_array_size(ways); i++) {
		open_ud(false);
		make_ah(&ah);
		h.n[0].path.ready = false; /* so that they wait, on the handle's list */
		post(&ah, 1, 10);
		post(&ah, 2, 10);
		th_expect_quiet(&h, 0);
		ur_ah_destroy(&ah);
		CU_ASSERT_EQUAL(released, 0);
		if (ways[i] == SENT) {
			h.n[0].path.ready = true;
			ur_ah_changed(&ah, true);
			CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
		} else if (ways[i] == DESTROYED) {
			th_close(&h);
		} else {
			a.qp_state = ways[i] == RESET ? IBV_QPS_RESET : IBV_QPS_ERR;
			CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
		}
		CU_ASSERT_EQUAL(released, 1);
		if (ways[i] != DESTROYED)
			th_close(&h);
		CU_ASSERT_EQUAL(released, 1);
	}
}

static void send__drains(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ur_ah ah;

	open_ud(false);
	make_ah(&ah);
	post(&ah, 1, 10);
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL, h.now), 0);
	CU_ASSERT_EQUAL(h.n[0].nevents, 1);
	th_expect_quiet(&h, 0); /* what was not begun waits */
	a.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	ur_ah_destroy(&ah);
	th_close(&h);
}

static void send__waits_for_buffers(void)
{
	struct ur_ah ah;

	open_ud(false);
	make_ah(&ah);
	h.n[0].room = 0;
	post(&ah, 1, 10);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_expect_no_wc(h.n[0].scq);
	h.n[0].room = 64;
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	ur_ah_destroy(&ah);
	th_close(&h);
}

/* --- receiving --- */

static void receive__completion_and_grh(void)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const uint8_t *m;
		struct ibv_wc wc;

		open_ud(v6);
		th_recv(&h, 1, 5, 0, GRH + 100);
		memset(h.n[1].mem, 0xee, GRH + 101);
		inject(QKEY, 0x654321, UD(SEND_ONLY_IMM), 99);
		wc = th_expect_wc(h.n[1].rcq, 5, IBV_WC_SUCCESS);
		m = h.n[1].mem;
		CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
		CU_ASSERT_EQUAL(wc.byte_len, GRH + 99);
		CU_ASSERT_EQUAL(wc.src_qp, 0x654321);
		CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(h.n[1].qp));
		CU_ASSERT_EQUAL(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
		CU_ASSERT_EQUAL(wc.imm_data, 0x55667788);
		CU_ASSERT_EQUAL(wc.sl, v6 ? 9 : 10); /* UDP over IPv6, over IPv4 */
		CU_ASSERT_EQUAL(wc.slid | wc.pkey_index, 0);
		CU_ASSERT_EQUAL(memcmp(m + GRH, data, 99), 0);
		CU_ASSERT_EQUAL(m[GRH + 99], 0xee);
		if (v6) {
			CU_ASSERT_EQUAL(m[0] >> 4, 6);
			CU_ASSERT_EQUAL(memcmp(m + 8, h.n[1].path.dgid.raw, 16), 0);
			CU_ASSERT_EQUAL(memcmp(m + 24, h.n[1].path.sgid.raw, 16), 0);
		} else {
			static const uint8_t none[20];

			CU_ASSERT_EQUAL(memcmp(m, none, 20), 0);
			CU_ASSERT_EQUAL(m[20], 0x45);
			CU_ASSERT_EQUAL(ur_csum_fold(ur_csum_add(0, m + 20, 20)), 0);
			CU_ASSERT_EQUAL(memcmp(m + 32, h.n[1].path.dgid.raw + 12, 4), 0);
			CU_ASSERT_EQUAL(memcmp(m + 36, h.n[1].path.sgid.raw + 12, 4), 0);
		}
		th_close(&h);
	}
}

/* Silence, a counter, and the receive WQE stays. */
static void receive__drops(void)
{
	static const struct {
		const char *what;
		uint32_t qkey, len, recv;
		bool to_group;
		enum ur_counter counter;
	} t[] = {
		{"Q_Key", QKEY ^ 1, 8, 100, false, UR_C_DROP_QKEY},
		{"Q_Key with the high bit", QKEY | 0x80000000, 8, 100, false, UR_C_DROP_QKEY},
		{"no receive", QKEY, 8, 0, false, UR_C_DROP_NO_RECV},
		{"too long", QKEY, 9, GRH + 8, false, UR_C_DROP_RECV_SHORT},
		{"no room for the GRH", QKEY, 0, GRH - 1, false, UR_C_DROP_RECV_SHORT},
		{"longer than the MTU", QKEY, 1028, 4096, false, UR_C_DROP_RECV_SHORT},
		{"a group's address, but this QP's number", QKEY, 8, 100, true, UR_C_DROP_QPN},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const struct th_hdr x = {.qkey = t[i].qkey, .sqpn = 9};
		struct th_pkt p;

		open_ud(false);
		if (t[i].recv)
			th_recv(&h, 1, 1, 0, t[i].recv);
		th_make(&h, 1, &p, UD(SEND_ONLY), 7, false, &x, data, t[i].len);
		if (t[i].to_group)
			p.p.dst.raw[12] = 0xe1;
		th_feed(&h, 1, &p);
		CU_ASSERT_EQUAL(count(t[i].counter), 1);
		CU_ASSERT_EQUAL(count(UR_C_RX_SEND), 0);
		th_expect_no_wc(h.n[1].rcq);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
		th_expect_quiet(&h, 1);
		if (!t[i].recv)
			th_recv(&h, 1, 1, 0, 100);
		if (t[i].recv >= GRH || !t[i].recv) {
			inject(QKEY, 9, UD(SEND_ONLY), 4);
			th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
		}
		th_close(&h);
	}
}

static void receive__other_services(void)
{
	static const uint8_t ops[] = {UR_OP_SEND_ONLY, UR_UC | UR_OP_SEND_ONLY, UR_OP_ACK, UR_OP_CNP};
	struct th_pkt p;

	open_ud(false);
	for (unsigned i = 0; i < ur_array_size(ops); i++) {
		th_make(&h, 1, &p, UD(SEND_ONLY), 7, false, NULL, data, 8);
		p.p.bth.opcode = ops[i];
		th_feed(&h, 1, &p);
		CU_ASSERT_EQUAL(count(UR_C_DROP_OPCODE), i + 1);
	}
	th_close(&h);
}

/* From whatever address, in whatever order, and in RTR already. */
static void receive__from_anybody(void)
{
	const struct th_hdr x = {.qkey = QKEY, .sqpn = 9};
	struct th_opt o = th_default;
	struct th_pkt p;

	o.type = IBV_QPT_UD;
	o.qkey = QKEY;
	o.stay_rtr = true;
	th_open(&h, &o);
	for (unsigned i = 0; i < 5; i++) {
		th_recv(&h, 1, i, 0, 100);
		th_make(&h, 1, &p, UD(SEND_ONLY), 1000 - 37 * i, false, &x, data, 8);
		p.p.src.raw[15] = (uint8_t)(100 + i);
		th_feed(&h, 1, &p);
		th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(h.n[1].nevents, 0); /* no connection, no event */
	th_close(&h);
}

static void receive__scatters_over_elements(void)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3}, *bad;
	uint8_t *m;

	open_ud(false);
	m = h.n[1].mem;
	for (unsigned i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)m + 1000 * i, i ? 30 : 38, h.n[1].mr->lkey};
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
	inject(QKEY, 1, UD(SEND_ONLY), 58);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(m[20], 0x45);
	CU_ASSERT_EQUAL(memcmp(m + 1002, data, 28), 0);
	CU_ASSERT_EQUAL(memcmp(m + 2000, data + 28, 30), 0);
	th_close(&h);
}

static void receive__bad_receive_wqe(void)
{
	struct ibv_sge sge = {.addr = 0, .length = 64, .lkey = 0xffffffff};
	struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;

	open_ud(false);
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
	inject(QKEY, 1, UD(SEND_ONLY), 8);
	th_expect_wc(h.n[1].rcq, 5, IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_ERR);
	th_close(&h);
}

static void both__ping(void)
{
	struct ur_ah ah;

	open_ud(true);
	make_ah(&ah);
	for (unsigned i = 0; i < 40; i++) {
		th_recv(&h, 1, i, 0, GRH + 1024);
		post(&ah, i, i * 26);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS).byte_len, GRH + i * 26);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + GRH, h.n[0].mem, i * 26), 0);
	}
	ur_ah_destroy(&ah);
	th_close(&h);
}

void ur_suite_ud(void)
{
	CU_pSuite s = CU_add_suite("ud", NULL, NULL);

	CU_ADD_TEST(s, batch__given_up_after_its_address_handles);
	CU_ADD_TEST(s, post__arguments);
	CU_ADD_TEST(s, send__packet);
	CU_ADD_TEST(s, send__errors);
	CU_ADD_TEST(s, send__waits_for_the_path);
	CU_ADD_TEST(s, send__dead_next_hop);
	CU_ADD_TEST(s, ah__outlives_its_requests);
	CU_ADD_TEST(s, send__drains);
	CU_ADD_TEST(s, send__waits_for_buffers);
	CU_ADD_TEST(s, receive__completion_and_grh);
	CU_ADD_TEST(s, receive__drops);
	CU_ADD_TEST(s, receive__other_services);
	CU_ADD_TEST(s, receive__from_anybody);
	CU_ADD_TEST(s, receive__scatters_over_elements);
	CU_ADD_TEST(s, receive__bad_receive_wqe);
	CU_ADD_TEST(s, both__ping);
}
