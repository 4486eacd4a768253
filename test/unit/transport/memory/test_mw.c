/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/memory/mw.c: what binding checks, and what windows let through. Node 1 owns the windows; node 0 comes from PSN 100. */
#include <errno.h>

#include "tp_harness.h"
#include "transport/memory/mr.h"
#include "transport/memory/mw.h"

#define RW (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static uint8_t data[1024];

/* As programs see them. */
struct win {
	struct ur_mw *tp;
	struct ibv_mw pub;
};

static const struct th_opt *with_atomics(void)
{
	static struct th_opt o;

	o = th_default;
	o.access = TH_ALL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC | UR_ACCESS_FLUSH;
	o.sig_all = true;
	return &o;
}

static void alloc(struct th *h, struct win *w, enum ibv_mw_type type)
{
	CU_ASSERT_FATAL(ur_mw_alloc(h->n[1].tp, h->n[1].pd, type, &w->tp) == 0);
	w->pub = (struct ibv_mw){.rkey = ur_mw_rkey(w->tp), .type = type};
}

static int bind(struct th *h, struct win *w, const struct ur_mr *mr, uint64_t addr, uint64_t len, unsigned access)
{
	struct ibv_mr pub = {.lkey = mr ? mr->lkey : 0};
	struct ibv_send_wr wr = {.wr_id = 50, .opcode = IBV_WR_BIND_MW};
	int err;

	wr.bind_mw.mw = &w->pub;
	wr.bind_mw.rkey = ibv_inc_rkey(w->pub.rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr ? &pub : NULL, addr, len, access};
	err = th_post_wr(h, 1, &wr);
	th_pump(h);
	return err;
}

/* Binds to part of the node's MR. */
static void bind_ok(struct th *h, struct win *w, uint32_t off, uint32_t len, unsigned access)
{
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(bind(h, w, h->n[1].mr, (uintptr_t)h->n[1].mem + off, len, access), 0);
	wc = th_expect_wc(h->n[1].scq, 50, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_BIND_MW);
	CU_ASSERT_EQUAL(ur_mw_rkey(w->tp), w->pub.rkey);
}

/* A WRITE of 8 bytes by the peer. */
static void write_through(struct th *h, uint32_t psn, uint32_t rkey, uint64_t va)
{
	const struct th_hdr ext = {.va = va, .rkey = rkey, .len = 8};

	th_inject(h, 1, UR_OP_WRITE_ONLY, psn, true, &ext, data, 8);
}

static void alloc__types_and_pd(void)
{
	static struct th h;
	struct ur_mw *mw;
	struct ur_pd *pd;

	th_open(&h, with_atomics());
	CU_ASSERT_FATAL(ur_pd_create(h.n[1].tp, &pd) == 0);
	CU_ASSERT_EQUAL(ur_mw_alloc(h.n[1].tp, pd, (enum ibv_mw_type)0, &mw), EINVAL);
	CU_ASSERT_EQUAL(ur_mw_alloc(h.n[1].tp, pd, (enum ibv_mw_type)3, &mw), EINVAL);
	CU_ASSERT_EQUAL(ur_mw_alloc(h.n[1].tp, pd, IBV_MW_TYPE_1, &mw), 0);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), EBUSY);
	ur_mw_dealloc(mw);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
	th_close(&h);
}

/* --- binding --- */

enum mrkind { FULL, NO_BIND, NO_WRITE, OTHER_PD, BASED };

static void bind__checks(void)
{
	static const struct {
		enum ibv_mw_type type;
		enum mrkind mr;
		uint64_t off, len;
		unsigned access;
		enum ibv_wc_status status;
	} t[] = {
		{IBV_MW_TYPE_1, FULL, 0, 4096, RW | IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_2, FULL, 0, 4096, RW | IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_1, FULL, 4095, 1, 0, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_2, FULL, 0, 8, RW | IBV_ACCESS_LOCAL_WRITE, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_2, FULL, 0, 4096, RW | IBV_ACCESS_ZERO_BASED, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_1, FULL, 0, 4097, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, FULL, 1, 4096, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, FULL, UINT64_MAX, 2, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, FULL, 8, UINT64_MAX, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_1, NO_BIND, 0, 8, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, NO_BIND, 0, 8, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_1, NO_WRITE, 0, 8, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_1, NO_WRITE, 0, 8, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, NO_WRITE, 0, 8, IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_1, OTHER_PD, 0, 8, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, OTHER_PD, 0, 8, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_1, FULL, 0, 0, RW, IBV_WC_SUCCESS},
		{IBV_MW_TYPE_2, FULL, 0, 0, RW, IBV_WC_MW_BIND_ERR},
		{IBV_MW_TYPE_2, BASED, 0, 16, RW, IBV_WC_SUCCESS},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static const int access[] = {[FULL] = TH_MR_ACCESS,
					     [NO_BIND] = TH_ALL_ACCESS,
					     [NO_WRITE] = IBV_ACCESS_MW_BIND,
					     [OTHER_PD] = TH_MR_ACCESS,
					     [BASED] = TH_MR_ACCESS};
		enum mrkind k = t[i].mr;
		static struct th h;
		struct th_node *n = &h.n[1];
		struct ur_pd *pd;
		struct ur_mr *mr;
		struct win w;

		th_open(&h, with_atomics());
		CU_ASSERT_FATAL(ur_pd_create(n->tp, &pd) == 0);
		CU_ASSERT_FATAL(ur_mr_reg(n->tp, k == OTHER_PD ? pd : n->pd, n->mem, 4096, k == BASED ? 0 : 0x9000, access[k], &mr) == 0);
		alloc(&h, &w, t[i].type);
		CU_ASSERT_EQUAL(bind(&h, &w, mr, mr->iova + t[i].off, t[i].len, t[i].access), 0);
		th_expect_wc(n->scq, 50, t[i].status);
		CU_ASSERT_EQUAL(ur_qp_state(n->qp), t[i].status ? IBV_QPS_ERR : IBV_QPS_RTS);
		CU_ASSERT_EQUAL(ur_mw_rkey(w.tp) == w.pub.rkey, !t[i].status);
		CU_ASSERT_EQUAL(mr->windows, !t[i].status && t[i].len);
		ur_mw_dealloc(w.tp);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
		th_close(&h);
	}
}

static void bind__post_errors(void)
{
	static struct th h;
	struct ibv_mr pub;
	struct win w;
	struct ibv_send_wr good = {.wr_id = 1, .opcode = IBV_WR_BIND_MW}, wr;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_2);
	pub = (struct ibv_mr){.lkey = h.n[1].mr->lkey};
	good.bind_mw.mw = &w.pub;
	good.bind_mw.rkey = ibv_inc_rkey(w.pub.rkey);
	good.bind_mw.bind_info = (struct ibv_mw_bind_info){&pub, (uintptr_t)h.n[1].mem, 64, RW};
	wr = good;
	wr.bind_mw.mw = NULL;
	CU_ASSERT_EQUAL(th_post_wr(&h, 1, &wr), EINVAL);
	wr = good;
	wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_MW_BIND;
	CU_ASSERT_EQUAL(th_post_wr(&h, 1, &wr), EINVAL);
	wr = good;
	wr.bind_mw.bind_info.mr = NULL;
	CU_ASSERT_EQUAL(th_post_wr(&h, 1, &wr), EINVAL);
	CU_ASSERT_EQUAL(th_post_wr(&h, 1, &good), 0);
	ur_mw_dealloc(w.tp);
	th_close(&h);
}

/* The objects may be gone when the request is executed. */
static void bind__what_has_gone(void)
{
	for (unsigned gone = 0; gone < 2; gone++) {
		static struct th h;
		struct th_node *n = &h.n[1];
		struct ibv_mr pub;
		struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW}, *bad;
		struct ur_mr *mr;
		struct win w;

		th_open(&h, with_atomics());
		CU_ASSERT_FATAL(ur_mr_reg(n->tp, n->pd, n->mem, 4096, 0, TH_MR_ACCESS, &mr) == 0);
		alloc(&h, &w, IBV_MW_TYPE_2);
		pub = (struct ibv_mr){.lkey = mr->lkey};
		wr.bind_mw.mw = &w.pub;
		wr.bind_mw.rkey = ibv_inc_rkey(w.pub.rkey);
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){&pub, 0, 64, RW};
		CU_ASSERT_EQUAL(ur_qp_post_send(n->qp, &wr, &bad), 0);
		if (!gone)
			ur_mw_dealloc(w.tp);
		CU_ASSERT_EQUAL(gone ? ur_mr_dereg(mr) : 0, 0);
		ur_qp_answer(n->qp, h.now);
		th_pump(&h);
		th_expect_wc(n->scq, 1, IBV_WC_MW_BIND_ERR);
		if (gone)
			ur_mw_dealloc(w.tp);
		CU_ASSERT_EQUAL(gone ? 0 : ur_mr_dereg(mr), 0);
		th_close(&h);
	}
}

static void bind__type_1_again_and_to_nothing(void)
{
	static struct th h;
	uint32_t first;
	struct win w;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_1);
	bind_ok(&h, &w, 0, 64, RW);
	first = w.pub.rkey;
	write_through(&h, 100, first, (uintptr_t)h.n[1].mem);
	th_expect_ack(&h, 1, 100, ACK);
	bind_ok(&h, &w, 4096, 64, RW);
	CU_ASSERT_NOT_EQUAL(w.pub.rkey, first);
	CU_ASSERT_EQUAL(h.n[1].mr->windows, 1);
	write_through(&h, 101, w.pub.rkey, (uintptr_t)h.n[1].mem + 4096);
	th_expect_ack(&h, 1, 101, ACK);
	CU_ASSERT_EQUAL(bind(&h, &w, NULL, 0, 0, 0), 0);
	th_expect_wc(h.n[1].scq, 50, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(h.n[1].mr->windows, 0);
	write_through(&h, 102, w.pub.rkey, (uintptr_t)h.n[1].mem + 4096);
	th_expect_refused(&h, 1, 102, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	ur_mw_dealloc(w.tp);
	th_close(&h);
}

static void bind__type_1_old_key_is_dead(void)
{
	static struct th h;
	struct win w;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_1);
	bind_ok(&h, &w, 0, 64, RW);
	bind_ok(&h, &w, 0, 64, RW);
	write_through(&h, 100, w.pub.rkey - 1, (uintptr_t)h.n[1].mem);
	th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	ur_mw_dealloc(w.tp);
	th_close(&h);
}

static void bind__type_2_twice_is_refused(void)
{
	static struct th h;
	struct win w;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_2);
	bind_ok(&h, &w, 0, 64, RW);
	CU_ASSERT_EQUAL(bind(&h, &w, h.n[1].mr, (uintptr_t)h.n[1].mem, 64, RW), 0);
	th_expect_wc(h.n[1].scq, 50, IBV_WC_MW_BIND_ERR);
	ur_mw_dealloc(w.tp);
	th_close(&h);
}

/* --- access --- */

static void access__table(void)
{
	enum op { WRITE, READ, ADD, FLUSH };
	static const struct {
		unsigned window; /* what it grants over bytes [64, 128) of the MR */
		enum op op;
		int64_t at; /* of the first of 8 bytes, against the window's first */
		bool ok;
	} t[] = {
		{IBV_ACCESS_REMOTE_WRITE, WRITE, 0, true},
		{IBV_ACCESS_REMOTE_WRITE, WRITE, 56, true},
		{IBV_ACCESS_REMOTE_WRITE, WRITE, 57, false},
		{IBV_ACCESS_REMOTE_WRITE, WRITE, -1, false},
		{IBV_ACCESS_REMOTE_WRITE, READ, 0, false},
		{IBV_ACCESS_REMOTE_WRITE, ADD, 0, false},
		{IBV_ACCESS_REMOTE_READ, READ, 0, true},
		{IBV_ACCESS_REMOTE_READ, READ, 64, false},
		{IBV_ACCESS_REMOTE_READ, WRITE, 0, false},
		{IBV_ACCESS_REMOTE_ATOMIC, ADD, 8, true},
		{IBV_ACCESS_REMOTE_ATOMIC, WRITE, 8, false},
		{UR_ACCESS_FLUSH_GLOBAL, FLUSH, 0, true},
		{RW, FLUSH, 0, false},
		{0, READ, 0, false},
	};
	static const uint8_t opcodes[] = {
		[WRITE] = UR_OP_WRITE_ONLY, [READ] = UR_OP_READ_REQ, [ADD] = UR_OP_FETCH_ADD, [FLUSH] = UR_OP_FLUSH};

	for (unsigned i = 0; i < 4 * ur_array_size(t); i++) {
		enum ibv_mw_type type = i & 1 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
		bool based = i & 2, write = t[i / 4].op == WRITE;
		static struct th h;
		struct th_hdr ext = {.len = 8, .swap_add = 1, .feth = {1, 0}};
		struct win w;

		th_open(&h, with_atomics());
		alloc(&h, &w, type);
		bind_ok(&h, &w, 64, 64, t[i / 4].window | (based ? IBV_ACCESS_ZERO_BASED : 0));
		ext.va = (based ? 0 : (uintptr_t)h.n[1].mem + 64) + (uint64_t)t[i / 4].at;
		ext.rkey = w.pub.rkey;
		memset(data, 0xa5, 8);
		th_inject(&h, 1, opcodes[t[i / 4].op], 100, true, &ext, data, write ? 8 : 0);
		if (!t[i / 4].ok) {
			th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		} else {
			CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
			CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
			if (write)
				CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 64 + t[i / 4].at, data, 8), 0);
		}
		ur_mw_dealloc(w.tp);
		th_close(&h);
	}
}

/* The key of a window does not open anything for this side's own requests. */
static void access__no_local_key(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (unsigned i = 0; i < ur_array_size(ops); i++) {
		static struct th h;
		struct ibv_sge sge = {.length = 8};
		struct win w;

		th_open(&h, with_atomics());
		alloc(&h, &w, IBV_MW_TYPE_1);
		bind_ok(&h, &w, 0, 64, RW);
		sge.addr = (uintptr_t)h.n[1].mem;
		sge.lkey = w.pub.rkey;
		th_post_sge(&h, 1, ops[i], 1, &sge, 1, (uintptr_t)h.n[0].mem, h.n[0].mr->rkey, 0);
		th_pump(&h);
		th_expect_wc(h.n[1].scq, 1, IBV_WC_LOC_PROT_ERR);
		ur_mw_dealloc(w.tp);
		th_close(&h);
	}
}

/* Another QP of the same PD: a window of type 1 is open to it, one of type 2 is not. */
static void access__through_another_qp(void)
{
	for (unsigned type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		static struct th h;
		struct th_node *n = &h.n[1];
		struct ur_qp_init init = {.type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
		struct ur_qp *other;
		struct ur_mr *mr;
		struct win w;

		th_open(&h, with_atomics());
		init.pd = n->pd;
		init.send_cq = n->scq;
		init.recv_cq = n->rcq;
		CU_ASSERT_FATAL(ur_qp_create(n->tp, &init, &other) == 0);
		alloc(&h, &w, (enum ibv_mw_type)type);
		bind_ok(&h, &w, 0, 64, RW);
		CU_ASSERT_PTR_EQUAL(ur_mr_at(n->qp, w.pub.rkey, (uintptr_t)n->mem, 8, IBV_ACCESS_REMOTE_READ, &mr), n->mem);
		CU_ASSERT_PTR_EQUAL(mr, n->mr);
		CU_ASSERT_EQUAL(ur_mr_at(other, w.pub.rkey, (uintptr_t)n->mem, 8, IBV_ACCESS_REMOTE_READ, &mr) != NULL,
				type == IBV_MW_TYPE_1);
		CU_ASSERT_FALSE(ur_mw_invalidate(other, w.pub.rkey));
		CU_ASSERT_EQUAL(ur_qp_destroy(other), 0);
		CU_ASSERT_EQUAL(n->mr->windows, 1);
		ur_mw_dealloc(w.tp);
		th_close(&h);
	}
}

/* --- ends --- */

static void mr_dereg__not_under_a_window(void)
{
	static struct th h;
	struct th_node *n = &h.n[1];
	struct ur_mr *mr;
	struct win w;
	uint32_t key;

	th_open(&h, with_atomics());
	CU_ASSERT_FATAL(ur_mr_reg(n->tp, n->pd, n->mem, 4096, 0, TH_MR_ACCESS, &mr) == 0);
	alloc(&h, &w, IBV_MW_TYPE_1);
	CU_ASSERT_EQUAL(bind(&h, &w, mr, 0, 64, RW), 0);
	key = mr->rkey;
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), EBUSY);
	CU_ASSERT_PTR_EQUAL(ur_mr_find(n->tp, key), mr); /* it lives on */
	write_through(&h, 100, w.pub.rkey, 0);
	th_expect_ack(&h, 1, 100, ACK);
	ur_mw_dealloc(w.tp);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
}

static void dealloc__ends_access(void)
{
	static struct th h;
	struct win w;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_2);
	bind_ok(&h, &w, 0, 64, RW);
	ur_mw_dealloc(w.tp);
	CU_ASSERT_EQUAL(h.n[1].mr->windows, 0);
	write_through(&h, 100, w.pub.rkey, (uintptr_t)h.n[1].mem);
	th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	th_close(&h);
}

/* No window gets a key that another one had, as allocated or as bound. */
static void dealloc__keys_do_not_come_back_soon(void)
{
	static struct ur_mw *mw[4096];
	static struct th h;
	struct win w;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_1);
	for (unsigned i = 0; i < 10; i++)
		bind_ok(&h, &w, 0, 64, RW);
	ur_mw_dealloc(w.tp);
	for (unsigned i = 0; i < ur_array_size(mw); i++) {
		CU_ASSERT_FATAL(ur_mw_alloc(h.n[1].tp, h.n[1].pd, IBV_MW_TYPE_1, &mw[i]) == 0);
		CU_ASSERT_NOT_EQUAL(ur_mw_rkey(mw[i]) >> 8, w.pub.rkey >> 8);
	}
	for (unsigned i = 0; i < ur_array_size(mw); i++)
		ur_mw_dealloc(mw[i]);
	th_close(&h);
}

static void qp_destroy__unbinds_type_2(void)
{
	static struct th h;
	struct th_node *n = &h.n[1];
	struct ur_qp_init init = {.type = IBV_QPT_RC, .cap = {4, 1, 1, 1, 0}};
	struct win one, two;
	struct ur_mr *mr;

	th_open(&h, with_atomics());
	alloc(&h, &one, IBV_MW_TYPE_1);
	alloc(&h, &two, IBV_MW_TYPE_2);
	bind_ok(&h, &one, 0, 64, RW);
	bind_ok(&h, &two, 0, 64, RW);
	CU_ASSERT_EQUAL(ur_qp_destroy(n->qp), 0);
	init.pd = n->pd;
	init.send_cq = n->scq;
	init.recv_cq = n->rcq;
	CU_ASSERT_FATAL(ur_qp_create(n->tp, &init, &n->qp) == 0);
	CU_ASSERT_EQUAL(n->mr->windows, 1);
	CU_ASSERT_PTR_NOT_NULL(ur_mr_at(n->qp, one.pub.rkey, (uintptr_t)n->mem, 8, IBV_ACCESS_REMOTE_READ, &mr));
	CU_ASSERT_PTR_NULL(ur_mr_at(n->qp, two.pub.rkey, (uintptr_t)n->mem, 8, IBV_ACCESS_REMOTE_READ, &mr));
	ur_mw_dealloc(one.tp);
	ur_mw_dealloc(two.tp);
	th_close(&h);
}

/* --- SEND with invalidate --- */

static void send_inv__table(void)
{
	enum what { BOUND, MULTI, TYPE_1, STALE, REGION, NOBODY };
	static const struct {
		enum what what;
		bool ok;
	} t[] = {{BOUND, true}, {MULTI, true}, {TYPE_1, false}, {STALE, false}, {REGION, false}, {NOBODY, false}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_node *n = &h.n[1];
		enum what what = t[i].what;
		uint32_t last = what == MULTI ? 101 : 100;
		struct th_hdr ext = {0};
		struct ibv_wc wc;
		struct win w;

		th_open(&h, with_atomics());
		alloc(&h, &w, what == TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		bind_ok(&h, &w, 0, 64, RW);
		ext.ieth = what == REGION ? n->mr->rkey : what == NOBODY ? 0xabcdef00 : w.pub.rkey - (what == STALE);
		th_recv(&h, 1, 7, 4096, 4096);
		if (what == MULTI) {
			th_inject(&h, 1, UR_OP_SEND_FIRST, 100, false, NULL, data, 1024);
			th_inject(&h, 1, UR_OP_SEND_LAST_INV, 101, true, &ext, data, 8);
		} else {
			th_inject(&h, 1, UR_OP_SEND_ONLY_INV, 100, true, &ext, data, 8);
		}
		wc = th_expect_wc(n->rcq, 7, t[i].ok ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
		CU_ASSERT_EQUAL(n->mr->windows, !t[i].ok);
		if (t[i].ok) {
			CU_ASSERT_EQUAL(wc.wc_flags, IBV_WC_WITH_INV);
			CU_ASSERT_EQUAL(wc.invalidated_rkey, w.pub.rkey);
			CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
			th_expect_ack(&h, 1, last, ACK);
			/* It can be bound again, and not be written through before. */
			bind_ok(&h, &w, 0, 64, RW);
			write_through(&h, last + 1, w.pub.rkey - 1, (uintptr_t)n->mem);
			th_expect_refused(&h, 1, last + 1, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		} else {
			/* Class J: the peer hears nothing, not even an acknowledgement. */
			th_expect_quiet(&h, 1);
			CU_ASSERT_EQUAL(ur_qp_state(n->qp), IBV_QPS_ERR);
			CU_ASSERT_EQUAL(n->c.v[UR_C_REMOTE_ACCESS], 1);
		}
		ur_mw_dealloc(w.tp);
		th_close(&h);
	}
}

/* The peer's own WRITE stream, cut off by what it invalidates itself; and a READ whose window goes while responses are left. */
static void invalidate__in_the_middle(void)
{
	static struct th h;
	struct th_hdr ext = {.len = 3000};
	struct th_pkt p;
	struct win w;

	th_open(&h, with_atomics());
	alloc(&h, &w, IBV_MW_TYPE_2);
	bind_ok(&h, &w, 0, 4096, RW);
	ext.va = (uintptr_t)h.n[1].mem;
	ext.rkey = w.pub.rkey;
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_FIRST);
	CU_ASSERT_TRUE(ur_mw_invalidate(h.n[1].qp, w.pub.rkey));
	th_expect_refused(&h, 1, 101, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	ur_mw_dealloc(w.tp);
	th_close(&h);
}

/* Zero copy through a window holds the region, as it does without one. */
static void read__holds_the_region(void)
{
	static struct th h;
	struct th_node *n = &h.n[1];
	struct th_hdr ext = {.len = 1024};
	struct ur_mr *mr;
	struct ur_pkt *p;
	struct win w;

	th_open(&h, with_atomics());
	CU_ASSERT_FATAL(ur_mr_reg(n->tp, n->pd, n->mem, 4096, 0, TH_MR_ACCESS, &mr) == 0);
	alloc(&h, &w, IBV_MW_TYPE_1);
	CU_ASSERT_EQUAL(bind(&h, &w, mr, 0, 2048, RW), 0);
	ext.rkey = w.pub.rkey;
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL_FATAL(ur_tp_tx(n->tp, &p, 1, h.now), 1);
	ur_mw_dealloc(w.tp);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), EBUSY);
	n->tp->c.free(n, &p, 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
}

void ur_suite_mw(void);

void ur_suite_mw(void)
{
	CU_pSuite s = CU_add_suite("mw", NULL, NULL);

	CU_ADD_TEST(s, alloc__types_and_pd);
	CU_ADD_TEST(s, bind__checks);
	CU_ADD_TEST(s, bind__post_errors);
	CU_ADD_TEST(s, bind__what_has_gone);
	CU_ADD_TEST(s, bind__type_1_again_and_to_nothing);
	CU_ADD_TEST(s, bind__type_1_old_key_is_dead);
	CU_ADD_TEST(s, bind__type_2_twice_is_refused);
	CU_ADD_TEST(s, access__table);
	CU_ADD_TEST(s, access__no_local_key);
	CU_ADD_TEST(s, access__through_another_qp);
	CU_ADD_TEST(s, mr_dereg__not_under_a_window);
	CU_ADD_TEST(s, dealloc__ends_access);
	CU_ADD_TEST(s, dealloc__keys_do_not_come_back_soon);
	CU_ADD_TEST(s, qp_destroy__unbinds_type_2);
	CU_ADD_TEST(s, send_inv__table);
	CU_ADD_TEST(s, invalidate__in_the_middle);
	CU_ADD_TEST(s, read__holds_the_region);
}
