/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/packet/atomic.c and what it shares with READs in requester and completer. Node 0 posts; it sends from PSN 100. */
#include "tp_harness.h"
#include "transport/state/req_state.h"

static const struct th_opt *with_atomics(uint8_t max_rd)
{
	static struct th_opt o;

	o = th_default;
	o.access = TH_ALL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC;
	o.max_rd = max_rd;
	o.sig_all = true;
	return &o;
}

static uint64_t word(const struct th_node *n, uint32_t off)
{
	uint64_t v;

	memcpy(&v, n->mem + off, sizeof(v));
	return v;
}

static void set_word(struct th_node *n, uint32_t off, uint64_t v)
{
	memcpy(n->mem + off, &v, sizeof(v));
}

/* The result goes to `off`; the target is at `roff`. */
static int post(struct th *h, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t roff, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = {(uintptr_t)(h->n[0].mem + off), 8, h->n[0].mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = op};

	wr.wr.atomic.remote_addr = (uintptr_t)(h->n[1].mem + roff);
	wr.wr.atomic.rkey = h->n[1].mr->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return th_post_wr(h, 0, &wr);
}

static void answer(struct th *h, uint32_t psn, uint64_t original)
{
	const struct th_hdr ext = {.syndrome = ACK, .original = original};

	th_inject(h, 0, UR_OP_ATOMIC_ACK, psn, false, &ext, NULL, 0);
}

static void atomic__request_and_result(void)
{
	static struct th h;
	struct ur_atomiceth a;
	struct th_pkt p;
	struct ibv_wc wc;

	th_open(&h, with_atomics(4));
	CU_ASSERT_EQUAL(post(&h, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, 64, 0x1111111122222222, 0x3333333344444444), 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_CMP_SWAP);
	CU_ASSERT_TRUE(p.p.bth.ackreq);
	CU_ASSERT_EQUAL(p.p.payload_len, 0);
	ur_atomiceth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	CU_ASSERT_EQUAL(a.va, (uintptr_t)h.n[1].mem + 64);
	CU_ASSERT_EQUAL(a.rkey, h.n[1].mr->rkey);
	CU_ASSERT_EQUAL(a.compare, 0x1111111122222222);
	CU_ASSERT_EQUAL(a.swap_add, 0x3333333344444444);
	set_word(&h.n[0], 8, 77);
	answer(&h, 100, 0x0102030405060708);
	wc = th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_COMP_SWAP);
	CU_ASSERT_EQUAL(wc.byte_len, 8);
	CU_ASSERT_EQUAL(word(&h.n[0], 0), 0x0102030405060708);
	CU_ASSERT_EQUAL(word(&h.n[0], 8), 77);
	CU_ASSERT_EQUAL(post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 64, 5, 99), 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_FETCH_ADD);
	ur_atomiceth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	CU_ASSERT_EQUAL(a.swap_add, 5);
	CU_ASSERT_EQUAL(a.compare, 0);
	answer(&h, 101, 1);
	wc = th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_FETCH_ADD);
	th_close(&h);
}

/* The result may be scattered, and a list may be longer than the result. */
static void atomic__lists(void)
{
	static const struct {
		uint32_t len[3];
		enum ibv_wc_status status;
	} t[] = {
		{{8, 0, 0}, IBV_WC_SUCCESS},  {{3, 0, 5}, IBV_WC_SUCCESS},     {{1, 6, 1}, IBV_WC_SUCCESS},
		{{16, 4, 0}, IBV_WC_SUCCESS}, {{4, 3, 0}, IBV_WC_LOC_LEN_ERR}, {{0, 0, 0}, IBV_WC_LOC_LEN_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		static const uint64_t original = 0x0807060504030201;
		struct ibv_sge sge[3];
		struct ibv_send_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
		uint8_t got[8];
		struct ibv_wc wc;
		uint32_t n = 0;

		th_open(&h, with_atomics(4));
		set_word(&h.n[1], 0, original);
		for (unsigned k = 0; k < 3; k++)
			sge[k] = (struct ibv_sge){(uintptr_t)(h.n[0].mem + k * 64), t[i].len[k], h.n[0].mr->lkey};
		wr.wr.atomic.remote_addr = (uintptr_t)h.n[1].mem;
		wr.wr.atomic.rkey = h.n[1].mr->rkey;
		CU_ASSERT_EQUAL(th_post_wr(&h, 0, &wr), 0);
		th_pump(&h);
		wc = th_expect_wc(h.n[0].scq, 1, t[i].status);
		CU_ASSERT_EQUAL(wc.byte_len, 8);
		for (unsigned k = 0; k < 3; k++)
			for (uint32_t b = 0; b < t[i].len[k] && n < 8; b++)
				got[n++] = h.n[0].mem[k * 64 + b];
		if (t[i].status == IBV_WC_SUCCESS)
			CU_ASSERT_EQUAL(memcmp(got, &original, 8), 0);
		th_close(&h);
	}
}

static void atomic__local_errors(void)
{
	enum fault { READ_ONLY, KEY, NO_RD };
	static const enum ibv_wc_status t[] = {
		[READ_ONLY] = IBV_WC_LOC_PROT_ERR, [KEY] = IBV_WC_LOC_PROT_ERR, [NO_RD] = IBV_WC_LOC_QP_OP_ERR};

	for (unsigned f = 0; f < ur_array_size(t); f++) {
		static struct th h;
		struct ibv_sge sge = {.length = 8};
		struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
		struct ur_mr *ro;

		th_open(&h, with_atomics(f == NO_RD ? 0 : 4));
		CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, h.n[0].mem, 64, (uintptr_t)h.n[0].mem, 0, &ro) == 0);
		sge.addr = (uintptr_t)h.n[0].mem;
		sge.lkey = f == READ_ONLY ? ro->lkey : f == KEY ? 77 : h.n[0].mr->lkey;
		CU_ASSERT_EQUAL(th_post_wr(&h, 0, &wr), 0);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, t[f]);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
		CU_ASSERT_EQUAL(h.sent[0], 0);
		CU_ASSERT_EQUAL(ur_mr_dereg(ro), 0);
		th_close(&h);
	}
}

static void atomic__remote_errors(void)
{
	static const struct {
		uint32_t roff;
		bool key, allowed;
		enum ibv_wc_status status;
	} t[] = {
		{4, false, true, IBV_WC_REM_INV_REQ_ERR},
		{0, true, true, IBV_WC_REM_ACCESS_ERR},
		{TH_MEM, false, true, IBV_WC_REM_ACCESS_ERR},
		{0, false, false, IBV_WC_REM_INV_REQ_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_opt o = *with_atomics(4);

		o.access = t[i].allowed ? o.access : TH_ALL_ACCESS;
		th_open(&h, &o);
		h.n[1].mr->rkey ^= t[i].key;
		post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, t[i].roff, 1, 0);
		post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 0, 1, 0);
		h.n[1].mr->rkey ^= t[i].key;
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, t[i].status);
		th_expect_wc(h.n[0].scq, 2, IBV_WC_WR_FLUSH_ERR);
		th_close(&h);
	}
}

/* READs and atomics together never exceed max_rd_atomic. */
static void limit__counts_reads_and_atomics(void)
{
	static struct th h;

	th_open(&h, with_atomics(2));
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 64, 8, 64, 0);
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 8, 0, 1, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_RD_LIMIT);
	answer(&h, 100, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_EQUAL(h.n[0].qp->req.rd_out, 2);
	th_close(&h);
}

static void fence__waits_for_atomics(void)
{
	static struct th h;

	th_open(&h, with_atomics(4));
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 64, 8, 64, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 64, 8, 64, IBV_SEND_FENCE);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_FENCE);
	answer(&h, 100, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_ack(&h, 0, 102, ACK);
	for (uint64_t id = 1; id <= 3; id++)
		th_expect_wc(h.n[0].scq, id, IBV_WC_SUCCESS);
	th_close(&h);
}

static void answers__that_do_not_fit(void)
{
	enum what { AS_READ, AS_READ_DATA, NAK_INSIDE, TO_READ, PLAIN_ACK, EARLY };
	static const struct {
		enum what what;
		int status; /* -1: nothing completes, and the request is sent again */
		enum ur_counter counter;
	} t[] = {
		{AS_READ, IBV_WC_BAD_RESP_ERR, UR_C_REQ_CQE_ERR},
		{AS_READ_DATA, IBV_WC_BAD_RESP_ERR, UR_C_REQ_CQE_ERR},
		{NAK_INSIDE, IBV_WC_BAD_RESP_ERR, UR_C_REQ_CQE_ERR},
		{TO_READ, IBV_WC_BAD_RESP_ERR, UR_C_REQ_CQE_ERR},
		{PLAIN_ACK, -1, UR_C_IMPLIED_NAK}, /* acknowledges without the result */
		{EARLY, -1, UR_C_IMPLIED_NAK},     /* the second's, before the first's */
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		static const uint64_t data = 5;
		enum what w = t[i].what;
		struct th_hdr ext = {.syndrome = w == NAK_INSIDE ? NAK(1) : ACK};
		uint8_t opcode = w == AS_READ || w == AS_READ_DATA ? UR_OP_READ_RESP_ONLY : w == PLAIN_ACK ? UR_OP_ACK : UR_OP_ATOMIC_ACK;

		th_open(&h, with_atomics(4));
		if (w == TO_READ)
			th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 0, 0, 0); /* of no bytes, as an ATOMIC_ACK has none */
		else
			post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0);
		post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 0, 1, 0);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
		th_inject(&h, 0, opcode, w == EARLY ? 101 : 100, false, &ext, &data, w == AS_READ_DATA ? 8 : 0);
		CU_ASSERT_EQUAL(h.n[0].c.v[t[i].counter] > 0, true);
		if (t[i].status >= 0) {
			th_expect_wc(h.n[0].scq, 1, (enum ibv_wc_status)t[i].status);
			th_expect_wc(h.n[0].scq, 2, IBV_WC_WR_FLUSH_ERR);
		} else {
			th_expect_no_wc(h.n[0].scq);
			CU_ASSERT_EQUAL(th_drain(&h, 0), 1); /* the first alone */
		}
		th_close(&h);
	}
}

static void answers__late_ones_are_dropped(void)
{
	static struct th h;

	th_open(&h, with_atomics(4));
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	answer(&h, 100, 7);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	answer(&h, 100, 8);
	answer(&h, 101, 9);
	CU_ASSERT_EQUAL(word(&h.n[0], 0), 7);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_RESPONSE], 2);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 64, 8, 64, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	answer(&h, 101, 9); /* fits no WRITE */
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_RESPONSE], 3);
	th_close(&h);
}

/* Named case: the atomic was executed, its answer is lost. The retry gets the result of the first time. */
static void lost_atomic_ack(void)
{
	static uint64_t mask[2] = {0, 1};
	static struct th h;

	th_open(&h, with_atomics(4));
	h.lose = th_lose_mask;
	h.arg = mask;
	set_word(&h.n[1], 0, 1000);
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(word(&h.n[0], 0), 1000);
	CU_ASSERT_EQUAL(word(&h.n[1], 0), 1001);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 1);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DUPLICATE], 1);
	th_close(&h);
}

#define MAP_LAP UR_SPAN /* PSNs after which the map of answers that came early begins again */

/* Once each: the answer of the atomic, and the READ responses a lap behind it and behind the one that came early. */
static bool lose_early(struct th *h, unsigned from, const struct ur_pkt *p)
{
	bool *lost = h->arg;
	uint32_t which = p->bth.opcode == UR_OP_ATOMIC_ACK ? 2 : (p->bth.psn - 100 - MAP_LAP) & UR_PSN_MASK;

	if (from != 1 || which > 2 || lost[which])
		return false;
	lost[which] = true;
	return true;
}

/* A READ response that comes before the answer of an atomic is kept, and nothing is remembered of it once it is complete. */
static void answers__early_read_behind_an_atomic(void)
{
	enum { READS = 16, LEN = 256 * (MAP_LAP / READS + 13), AT = 1024 };
	struct th_opt o = *with_atomics(4);
	bool lost[3] = {false, false, false};
	static struct th h;

	o.mtu = IBV_MTU_256;
	th_open(&h, &o);
	th_fill(&h.n[1], 5);
	h.lose = lose_early;
	h.arg = lost;
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 64, 64, 64, 0);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	for (unsigned i = 3; i < 3 + READS; i++) {
		memset(h.n[0].mem + AT, 0, LEN);
		th_post(&h, 0, IBV_WR_RDMA_READ, i, AT, LEN, AT, 0);
		th_run(&h, UR_NS_PER_S);
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem + AT, h.n[1].mem + AT, LEN), 0);
	}
	CU_ASSERT_TRUE(lost[0] && lost[1] && lost[2]);
	th_close(&h);
}

/*
 * READ, atomic, WRITE: the READ's first response is lost, those behind it come, the WRITE is acknowledged. When the hole is filled all is
 * complete: the atomic's early answer was kept.
 */
static void answers__atomic_behind_a_repaired_read(void)
{
	static uint64_t mask[2] = {0, 1};
	static struct th h;

	th_open(&h, with_atomics(4));
	th_fill(&h.n[1], 5);
	set_word(&h.n[1], 0, 41);
	h.lose = th_lose_mask;
	h.arg = mask;
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 64, 2048, 64, 0);
	post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 0, 1, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 4096, 8, 4096, 0);
	th_pump(&h); /* at standing time */
	for (uint64_t id = 1; id <= 3; id++)
		th_expect_wc(h.n[0].scq, id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(word(&h.n[0], 0), 41);
	CU_ASSERT_EQUAL(word(&h.n[1], 0), 42);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 64, h.n[1].mem + 64, 2048), 0);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DUPLICATE], 1); /* the part of the READ */
	th_close(&h);
}

static bool lose_some(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)from;
	(void)p;
	return ur_rng_u64(h->arg) % 10 == 0;
}

/* Counters that are added to over a lossy wire, across the end of the PSNs, between READs and WRITEs: each exactly once and in order. */
static void lossy__each_exactly_once(void)
{
	enum { ROUNDS = 300 };
	struct ur_rng rng = {42};
	struct th_opt o = *with_atomics(3);
	static struct th h;
	uint64_t done = 0;

	o.psn[0] = 0xffffff - 150;
	th_open(&h, &o);
	h.lose = lose_some;
	h.arg = &rng;
	set_word(&h.n[1], 0, 0);
	for (uint32_t i = 0; i < ROUNDS; i += 15) {
		for (uint32_t k = 0; k < 15; k++) {
			CU_ASSERT_EQUAL(post(&h, IBV_WR_ATOMIC_FETCH_AND_ADD, i + k, 8 * k, 0, 1, 0), 0);
			CU_ASSERT_EQUAL(th_post(&h, 0, k & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1000, 4096, 1500, 4096, 0), 0);
		}
		th_run(&h, 10 * UR_NS_PER_S);
		for (uint32_t k = 0; k < 15; k++) {
			th_expect_wc(h.n[0].scq, i + k, IBV_WC_SUCCESS);
			th_expect_wc(h.n[0].scq, 1000, IBV_WC_SUCCESS);
			CU_ASSERT_EQUAL(word(&h.n[0], 8 * k), done++);
		}
	}
	CU_ASSERT_EQUAL(word(&h.n[1], 0), ROUNDS);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_ATOMIC], ROUNDS);
	CU_ASSERT_TRUE(h.n[1].c.v[UR_C_DUPLICATE] > 0);
	th_close(&h);
}

/* --- ATOMIC WRITE --- */

static void atomic_write__whole_way(void)
{
	static uint64_t mask[2] = {1, 2};
	static struct th h;
	struct th_opt o = *with_atomics(2);
	struct ibv_wc wc;

	o.inline_data = 64;
	th_open(&h, &o);
	h.lose = th_lose_mask;
	h.arg = mask;
	for (unsigned i = 0; i < 4; i++) {
		set_word(&h.n[0], 8 * i, 0x1000 + i);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_ATOMIC_WRITE, i, 8 * i, 8, 64 * i, i & 1 ? IBV_SEND_INLINE : 0), 0);
		if (i & 1)
			set_word(&h.n[0], 8 * i, 0); /* inline: it has been copied */
	}
	th_run(&h, UR_NS_PER_S);
	for (unsigned i = 0; i < 4; i++) {
		wc = th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.opcode, IBV_WC_ATOMIC_WRITE);
		CU_ASSERT_EQUAL(word(&h.n[1], 64 * i), 0x1000 + i);
	}
	CU_ASSERT_EQUAL(h.n[0].qp->req.rd_out, 0);
	CU_ASSERT_EQUAL(h.n[0].qp->req.rd_wqes, 0);
	th_close(&h);
}

static void atomic_write__errors(void)
{
	static const struct {
		uint32_t len, roff;
		bool dereg;
		enum ibv_wc_status status;
	} t[] = {
		{7, 0, false, IBV_WC_LOC_LEN_ERR},     {9, 0, false, IBV_WC_LOC_LEN_ERR},         {8, 0, true, IBV_WC_LOC_PROT_ERR},
		{8, 3, false, IBV_WC_REM_INV_REQ_ERR}, {8, TH_MEM, false, IBV_WC_REM_ACCESS_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct ur_mr *mr;
		struct ibv_sge sge = {.length = t[i].len};

		th_open(&h, with_atomics(4));
		CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, h.n[0].mem, 64, (uintptr_t)h.n[0].mem, 0, &mr) == 0);
		sge.addr = (uintptr_t)h.n[0].mem;
		sge.lkey = mr->lkey;
		if (t[i].dereg)
			CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		th_post_sge(&h, 0, IBV_WR_ATOMIC_WRITE, 1, &sge, 1, (uintptr_t)h.n[1].mem + t[i].roff, h.n[1].mr->rkey, 0);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, t[i].status);
		if (!t[i].dereg)
			CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		th_close(&h);
	}
}

void ur_suite_atomic(void);

void ur_suite_atomic(void)
{
	CU_pSuite s = CU_add_suite("atomic", NULL, NULL);

	CU_ADD_TEST(s, atomic__request_and_result);
	CU_ADD_TEST(s, atomic__lists);
	CU_ADD_TEST(s, atomic__local_errors);
	CU_ADD_TEST(s, atomic__remote_errors);
	CU_ADD_TEST(s, limit__counts_reads_and_atomics);
	CU_ADD_TEST(s, fence__waits_for_atomics);
	CU_ADD_TEST(s, answers__that_do_not_fit);
	CU_ADD_TEST(s, answers__late_ones_are_dropped);
	CU_ADD_TEST(s, answers__early_read_behind_an_atomic);
	CU_ADD_TEST(s, answers__atomic_behind_a_repaired_read);
	CU_ADD_TEST(s, lost_atomic_ack);
	CU_ADD_TEST(s, lossy__each_exactly_once);
	CU_ADD_TEST(s, atomic_write__whole_way);
	CU_ADD_TEST(s, atomic_write__errors);
}
