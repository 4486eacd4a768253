/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits that ibv_query_device promises, reached: message length, inline data, scatter/gather elements, no data, queue pairs. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tp_harness.h"

/* --- 2^31 bytes --- */

#define PIECE (4u << 20)

/* 2^31 bytes of addresses with PIECE bytes of memory behind them, again and again. */
static uint8_t *map_again_and_again(void)
{
	int fd = memfd_create("limits", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, UR_MAX_MSG, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, PIECE) == 0 && at != MAP_FAILED);
	for (uint64_t off = 0; off < UR_MAX_MSG; off += PIECE)
		CU_ASSERT_FATAL(mmap(at + off, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at + off);
	close(fd);
	return at;
}

struct large {
	struct th h;
	uint8_t *mem[2];
	struct ur_mr *mr[2];
};

static void open_large(struct large *l)
{
	struct th_opt o = th_default;

	o.mtu = IBV_MTU_4096;
	o.sge = UR_MAX_SGE;
	o.psn[0] = o.psn[1] = UR_PSN_MASK - 1000; /* the PSN wraps on the way */
	o.timeout = 14;
	th_open(&l->h, &o);
	for (unsigned i = 0; i < 2; i++) {
		struct th_node *n = &l->h.n[i];

		l->mem[i] = map_again_and_again();
		for (uint32_t k = 0; k < PIECE; k += 4)
			memcpy(l->mem[i] + k, &(uint32_t){i ? 0 : k * 2654435761u}, 4);
		CU_ASSERT_EQUAL_FATAL(ur_mr_reg(n->tp, n->pd, l->mem[i], UR_MAX_MSG, 0, TH_ALL_ACCESS, &l->mr[i]), 0);
	}
}

static void close_large(struct large *l)
{
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(ur_mr_dereg(l->mr[i]), 0);
		munmap(l->mem[i], UR_MAX_MSG);
	}
	th_close(&l->h);
}

/* All of it, from 32 elements of 64 MB each. */
static void message__of_two_gigabytes(void)
{
	static struct large l;
	struct ibv_sge sge[UR_MAX_SGE];

	open_large(&l);
	for (unsigned i = 0; i < UR_MAX_SGE; i++)
		sge[i] = (struct ibv_sge){(uint64_t)i * (UR_MAX_MSG / UR_MAX_SGE), UR_MAX_MSG / UR_MAX_SGE, l.mr[0]->lkey};
	CU_ASSERT_EQUAL(th_post_sge(&l.h, 0, IBV_WR_RDMA_WRITE, 1, sge, UR_MAX_SGE, 0, l.mr[1]->rkey, IBV_SEND_SIGNALED), 0);
	th_pump(&l.h);
	th_expect_wc(l.h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(l.h.sent[0], UR_MAX_MSG / 4096);
	CU_ASSERT_EQUAL(memcmp(l.mem[0], l.mem[1], PIECE), 0);
	/* One byte more is one too many. */
	sge[0].length++;
	CU_ASSERT_EQUAL(th_post_sge(&l.h, 0, IBV_WR_RDMA_WRITE, 2, sge, UR_MAX_SGE, 0, l.mr[1]->rkey, 0), 0);
	th_pump(&l.h);
	th_expect_wc(l.h.n[0].scq, 2, IBV_WC_LOC_LEN_ERR);
	close_large(&l);
}

/* The arithmetic of a SEND and of a READ that long: what they begin with, and where the responder is when it has agreed. */
static void message__of_two_gigabytes_begins_rightly(void)
{
	static struct large l;
	const struct th_hdr ask = {.rkey = 0, .len = UR_MAX_MSG};
	struct ibv_sge sge = {0, UR_MAX_MSG, 0};
	struct ibv_recv_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1}, *bad;
	struct th_hdr x = ask;
	struct th_pkt p;

	open_large(&l);
	sge.lkey = l.mr[0]->lkey;
	CU_ASSERT_EQUAL(ur_qp_post_recv(l.h.n[0].qp, &wr, &bad), 0);
	sge.lkey = l.mr[1]->lkey;
	CU_ASSERT_EQUAL(th_post_sge(&l.h, 1, IBV_WR_SEND, 5, &sge, 1, 0, 0, 0), 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&l.h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_SEND_FIRST);
	CU_ASSERT_EQUAL(ur_sq_at(l.h.n[1].qp, 0)->npkts, UR_MAX_MSG / 4096);
	th_feed(&l.h, 0, &p);
	CU_ASSERT_EQUAL(l.h.n[0].qp->resp.got, 4096);
	CU_ASSERT_EQUAL(l.h.n[0].qp->resp.expect, UR_OPF_SEND);
	x.rkey = l.mr[1]->rkey;
	th_inject(&l.h, 1, UR_OP_READ_REQ, l.h.opt.psn[0], true, &x, NULL, 0);
	CU_ASSERT_EQUAL(l.h.n[1].qp->resp.epsn, (l.h.opt.psn[0] + UR_MAX_MSG / 4096) & UR_PSN_MASK);
	CU_ASSERT_TRUE_FATAL(th_pull(&l.h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_FIRST);
	CU_ASSERT_EQUAL(p.p.payload_len, 4096);
	sge.lkey = l.mr[0]->lkey;
	CU_ASSERT_EQUAL(th_post_sge(&l.h, 0, IBV_WR_RDMA_READ, 3, &sge, 1, 0, l.mr[1]->rkey, 0), 0);
	CU_ASSERT_TRUE_FATAL(th_pull(&l.h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_REQ);
	CU_ASSERT_EQUAL(ur_sq_at(l.h.n[0].qp, 0)->npkts, UR_MAX_MSG / 4096);
	CU_ASSERT_EQUAL(ur_sq_at(l.h.n[0].qp, 0)->length, UR_MAX_MSG);
	close_large(&l);
}

/* --- inline data, elements, no data --- */

static void inline__up_to_the_limit(void)
{
	static const uint32_t lengths[] = {0, 1, 15, 16, 17, 255, 256, 257, 511, 512, 513, UR_MAX_INLINE - 1, UR_MAX_INLINE};
	static const enum ibv_mtu mtus[] = {IBV_MTU_256, IBV_MTU_4096};

	for (unsigned i = 0; i < ur_array_size(lengths) * ur_array_size(mtus); i++) {
		static struct th h;
		static uint8_t copy[UR_MAX_INLINE];
		struct th_opt o = th_default;
		uint32_t len = lengths[i / 2];
		struct ibv_wc wc;

		o.inline_data = UR_MAX_INLINE;
		o.mtu = mtus[i % 2];
		th_open(&h, &o);
		memcpy(copy, h.n[0].mem, sizeof(copy));
		th_recv(&h, 1, 1, 0, UR_MAX_INLINE);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, 1, 0, len, 0, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
		memset(h.n[0].mem, 0, sizeof(copy)); /* the buffer is the program's again */
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		wc = th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.byte_len, len);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem, copy, len), 0);
		th_close(&h);
	}
}

/* 32 elements at either end, of lengths that never meet; every seventh is empty. */
static unsigned lay_out(const struct th_node *n, struct ibv_sge *sge, uint32_t step)
{
	unsigned sum = 0;

	for (uint32_t i = 0; i < UR_MAX_SGE; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)n->mem + 4096 * i + i, i % 7 == 3 ? 0 : 100 + i * step, n->mr->lkey};
		sum += sge[i].length;
	}
	return sum;
}

static void flatten(const struct ibv_sge *sge, uint8_t *to)
{
	for (unsigned i = 0; i < UR_MAX_SGE; to += sge[i++].length)
		memcpy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
}

static void elements__as_many_as_there_may_be(void)
{
	static uint8_t from[65536], to[65536];
	struct ibv_sge out[UR_MAX_SGE], in[UR_MAX_SGE];
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = in, .num_sge = UR_MAX_SGE}, *bad;
	static struct th h;
	struct th_opt o = th_default;
	struct ibv_wc wc;
	unsigned len;

	o.sge = UR_MAX_SGE;
	th_open(&h, &o);
	len = lay_out(&h.n[0], out, 37);
	CU_ASSERT_TRUE_FATAL(lay_out(&h.n[1], in, 41) >= len);
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, out, UR_MAX_SGE, 0, 0, IBV_SEND_SIGNALED), 0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	wc = th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.byte_len, len);
	flatten(out, from);
	flatten(in, to);
	CU_ASSERT_EQUAL(memcmp(from, to, len), 0);
	/* A READ into all of them. */
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_RDMA_READ, 2, out, UR_MAX_SGE, (uintptr_t)h.n[1].mem + 500000, h.n[1].mr->rkey,
				    IBV_SEND_SIGNALED),
			0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	flatten(out, from);
	CU_ASSERT_EQUAL(memcmp(from, h.n[1].mem + 500000, len), 0);
	th_close(&h);
}

static void no_data__with_every_operation(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		bool recv;
	} t[] = {
		{IBV_WR_SEND, true},        {IBV_WR_SEND_WITH_IMM, true},       {IBV_WR_SEND_WITH_INV, true},
		{IBV_WR_RDMA_WRITE, false}, {IBV_WR_RDMA_WRITE_WITH_IMM, true}, {IBV_WR_RDMA_READ, false},
	};
	/* Without a list, with an empty element, inline. */
	static const struct {
		int elements;
		unsigned flags;
	} ways[] = {{0, 0}, {1, 0}, {0, IBV_SEND_INLINE}};

	for (unsigned i = 0; i < ur_array_size(t) * ur_array_size(ways); i++) {
		enum ibv_wr_opcode op = t[i / 3].op;
		static struct th h;
		struct ibv_sge sge = {0, 0, 0};
		struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .opcode = op, .num_sge = ways[i % 3].elements};
		struct ur_mw *mw;

		if (op == IBV_WR_RDMA_READ && ways[i % 3].flags)
			continue;
		th_open(&h, &th_default);
		CU_ASSERT_EQUAL_FATAL(ur_mw_alloc(h.n[1].tp, h.n[1].pd, IBV_MW_TYPE_2, &mw), 0);
		wr.send_flags = ways[i % 3].flags | IBV_SEND_SIGNALED;
		if (op == IBV_WR_SEND_WITH_INV)
			wr.invalidate_rkey = ur_mw_rkey(mw);
		th_recv(&h, 1, 2, 0, 0);
		CU_ASSERT_EQUAL(th_post_wr(&h, 0, &wr), 0);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		if (t[i / 3].recv)
			CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, 2, IBV_WC_SUCCESS).byte_len, 0);
		th_expect_no_wc(h.n[1].rcq);
		ur_mw_dealloc(mw);
		th_close(&h);
	}
}

/* --- many queue pairs --- */

#define MANY 10000

static struct ur_qp *qps[MANY];

static void create(struct th *h, unsigned n, uint32_t wr)
{
	struct ur_qp_init init = {
		.type = IBV_QPT_RC, .pd = h->n[1].pd, .send_cq = h->n[1].scq, .recv_cq = h->n[1].rcq, .context = &h->n[1]};

	for (unsigned i = 0; i < n; i++) {
		init.cap = (struct ibv_qp_cap){wr, wr, 1, 1, 0};
		CU_ASSERT_FATAL(ur_qp_create(h->n[1].tp, &init, &qps[i]) == 0);
		h->n[1].qp = qps[i];
		th_connect(h, 1);
	}
}

/* Each of them takes a WRITE of its own and acknowledges it to its peer. */
static void queue_pairs__ten_thousand(void)
{
	static struct th h;
	struct ur_qp *own;
	struct th_hdr ext;

	th_open(&h, &th_default);
	own = h.n[1].qp;
	create(&h, MANY, 16);
	for (unsigned i = 0; i < MANY; i++) {
		h.n[1].qp = qps[i];
		ext = th_reth(&h, 1, 8 * i, 8);
		th_inject(&h, 1, UR_OP_WRITE_ONLY, h.opt.psn[0], true, &ext, &(uint64_t){i + 1}, 8);
	}
	CU_ASSERT_EQUAL(th_drain(&h, 1), MANY);
	for (uint64_t i = 0; i < MANY; i++)
		CU_ASSERT_FATAL(memcmp(h.n[1].mem + 8 * i, &(uint64_t){i + 1}, 8) == 0);
	for (unsigned i = 0; i < MANY; i++)
		CU_ASSERT_FATAL(ur_qp_destroy(qps[i]) == 0);
	h.n[1].qp = own;
	th_close(&h);
}

/* Sanitizers have allocators of their own, of which mallinfo2 knows nothing. */
#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* All that the allocator hands out for a connected QP, whatever it is for. */
static void queue_pairs__are_small_when_idle(void)
{
	static struct th h;
	const unsigned n = 256;
	struct mallinfo2 before, after;
	struct ur_qp *own;
	size_t each;

	th_open(&h, &th_default);
	own = h.n[1].qp;
	before = mallinfo2();
	create(&h, n, 128);
	after = mallinfo2();
	each = (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / n;
	if (!SANITIZED)
		CU_ASSERT_TRUE(each > sizeof(struct ur_qp));
	CU_ASSERT_TRUE(each < 32768);
	if (getenv("UROCE_TEST_PRINT"))
		printf("\n    %zu bytes for an idle connected QP with queues of 128\n", each);
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL(ur_qp_destroy(qps[i]), 0);
	h.n[1].qp = own;
	th_close(&h);
}

/* --- as many as there may be, and not one more --- */

static int make_pd(struct th *h, void **out)
{
	return ur_pd_create(h->n[1].tp, (struct ur_pd **)out);
}

static int make_cq(struct th *h, void **out)
{
	return ur_cq_create(h->n[1].tp, 1, NULL, NULL, (struct ur_cq **)out);
}

static int make_mr(struct th *h, void **out)
{
	return ur_mr_reg(h->n[1].tp, h->n[1].pd, h->n[1].mem, 1, 0, 0, (struct ur_mr **)out);
}

static int make_mw(struct th *h, void **out)
{
	return ur_mw_alloc(h->n[1].tp, h->n[1].pd, IBV_MW_TYPE_2, (struct ur_mw **)out);
}

static void release_ah(struct ur_ah *ah)
{
	free(ah);
}

static int make_ah(struct th *h, void **out)
{
	struct ur_ah *ah = calloc(1, sizeof(*ah));
	int err = ur_ah_init(ah, h->n[1].pd, &h->n[1].path, NULL, release_ah);

	if (err)
		free(ah);
	*out = ah;
	return err;
}

static void end_pd(void *o)
{
	CU_ASSERT_FATAL(ur_pd_destroy(o) == 0);
}

static void end_cq(void *o)
{
	CU_ASSERT_FATAL(ur_cq_destroy(o) == 0);
}

static void end_mr(void *o)
{
	CU_ASSERT_FATAL(ur_mr_dereg(o) == 0);
}

static void end_mw(void *o)
{
	ur_mw_dealloc(o);
}

static void end_ah(void *o)
{
	ur_ah_destroy(o);
}

static void objects__as_many_as_are_promised(void)
{
	static const struct {
		int (*make)(struct th *h, void **out);
		void (*end)(void *o);
		unsigned most, there;
	} t[] = {{make_pd, end_pd, UR_MAX_PD, 1},
		 {make_cq, end_cq, UR_MAX_CQ, 2},
		 {make_mr, end_mr, UR_MAX_MR, 1},
		 {make_mw, end_mw, UR_MAX_MW, 0},
		 {make_ah, end_ah, UR_MAX_AH, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		unsigned n = t[i].most - t[i].there;
		void **o = calloc(n + 1, sizeof(*o));
		static struct th h;
		unsigned made = 0;

		th_open(&h, &th_default);
		while (made <= n && !t[i].make(&h, &o[made]))
			made++;
		CU_ASSERT_EQUAL(made, n);
		CU_ASSERT_EQUAL(t[i].make(&h, &o[n]), ENOMEM);
		/* One goes, and there is room for one. */
		t[i].end(o[0]);
		CU_ASSERT_EQUAL_FATAL(t[i].make(&h, &o[0]), 0);
		while (made)
			t[i].end(o[--made]);
		th_close(&h);
		free(o);
	}
}

void ur_suite_limits(void);

void ur_suite_limits(void)
{
	CU_pSuite s = CU_add_suite("limits", NULL, NULL);

	CU_ADD_TEST(s, message__of_two_gigabytes);
	CU_ADD_TEST(s, message__of_two_gigabytes_begins_rightly);
	CU_ADD_TEST(s, inline__up_to_the_limit);
	CU_ADD_TEST(s, elements__as_many_as_there_may_be);
	CU_ADD_TEST(s, no_data__with_every_operation);
	CU_ADD_TEST(s, objects__as_many_as_are_promised);
	CU_ADD_TEST(s, queue_pairs__ten_thousand);
	CU_ADD_TEST(s, queue_pairs__are_small_when_idle);
}
