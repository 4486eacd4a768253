/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/mw.c: errno values and lifetimes. What windows do is the transport's, and tested there. */
#include "verbs_fixture.h"

static int init(void)
{
	return verbs_fixture_init();
}

static void query_device__windows_and_atomics(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr a;

	CU_ASSERT_EQUAL(ibv_query_device(ctx, &a), 0);
	CU_ASSERT_TRUE(a.max_mw > 0);
	CU_ASSERT_EQUAL(a.atomic_cap, IBV_ATOMIC_HCA);
	CU_ASSERT_EQUAL(ibv_query_device_ex(ctx, NULL, &ex), 0);
	CU_ASSERT_EQUAL(ex.pci_atomic_caps.fetch_add, IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP);
	CU_ASSERT_EQUAL(ex.pci_atomic_caps.compare_swap, IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP);
	CU_ASSERT_EQUAL(ex.pci_atomic_caps.swap, 0);
	CU_ASSERT_TRUE(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	CU_ASSERT_TRUE(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	CU_ASSERT_FALSE(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	/* SEND with invalidate and local invalidate, of windows: what else belongs to it is not the business of programs. */
	CU_ASSERT_TRUE(a.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void alloc_mw__types(void)
{
	static const struct {
		int type, err;
	} t[] = {{IBV_MW_TYPE_1, 0}, {IBV_MW_TYPE_2, 0}, {0, EINVAL}, {3, EINVAL}};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_mw *mw;

		errno = 0;
		mw = ibv_alloc_mw(pd, (enum ibv_mw_type)t[i].type);
		CU_ASSERT_EQUAL(mw ? 0 : errno, t[i].err);
		if (!mw)
			continue;
		CU_ASSERT_PTR_EQUAL(mw->pd, pd);
		CU_ASSERT_PTR_EQUAL(mw->context, ctx);
		CU_ASSERT_EQUAL((int)mw->type, t[i].type);
		CU_ASSERT_NOT_EQUAL(mw->rkey, 0);
		CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
		CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	}
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* An object keeps its context alive. */
static void dealloc_mw__after_close(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mw);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static void bind_mw__errors(void)
{
	enum what { GOOD, TYPE_2, OTHER_PD, FLAGS, ACCESS, NO_MR, INIT };
	static const int want[] = {
		[GOOD] = 0, [TYPE_2] = EINVAL, [OTHER_PD] = EPERM, [FLAGS] = EINVAL, [ACCESS] = EINVAL, [NO_MR] = EINVAL, [INIT] = EINVAL};
	static char buf[64];
	struct verbs_fixture f;
	struct ibv_pd *pd;

	verbs_fixture_make(&f);
	pd = ibv_alloc_pd(f.ctx);
	for (unsigned w = 0; w < ur_array_size(want); w++) {
		struct ibv_mr *mr = ibv_reg_mr(w == OTHER_PD ? pd : f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		struct ibv_mw *mw = ibv_alloc_mw(f.pd, w == TYPE_2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		struct ibv_mw_bind b = {.wr_id = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.bind_info = {mr, (uintptr_t)buf, sizeof(buf), IBV_ACCESS_REMOTE_READ}};
		uint32_t key = mw->rkey;

		b.send_flags |= w == FLAGS ? IBV_SEND_INLINE : 0;
		b.bind_info.mw_access_flags |= w == ACCESS ? IBV_ACCESS_MW_BIND : 0;
		b.bind_info.mr = w == NO_MR ? NULL : mr;
		/* In ERR a request is taken, and flushed: the errors are those of the call. INIT takes none. */
		verbs_fixture_state(f.qp, IBV_QPS_RESET);
		verbs_fixture_to_init(f.qp);
		if (w != INIT)
			verbs_fixture_flush(f.qp);
		CU_ASSERT_EQUAL(ibv_bind_mw(f.qp, mw, &b), want[w]);
		/* The new key is told at once. */
		CU_ASSERT_EQUAL(mw->rkey, want[w] ? key : ibv_inc_rkey(key));
		if (w == GOOD) {
			struct ibv_wc wc;

			CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 1, &wc), 1);
			CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
		CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	verbs_fixture_unmake(&f);
}

/* ibv_dereg_mr(3): fails while a window is bound; and at once, because waiting would change nothing. */
static void dereg_mr__under_a_window(void)
{
	static char buf[64];
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_MW_BIND);
	struct uv_mr *u = ur_container_of(mr, struct uv_mr, mr);

	u->tp->windows++; /* as binding does */
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), EBUSY);
	u->tp->windows--;
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_mw(void);

void ur_suite_verbs_mw(void)
{
	CU_pSuite s = CU_add_suite("verbs_mw", init, NULL);

	CU_ADD_TEST(s, query_device__windows_and_atomics);
	CU_ADD_TEST(s, alloc_mw__types);
	CU_ADD_TEST(s, dealloc_mw__after_close);
	CU_ADD_TEST(s, bind_mw__errors);
	CU_ADD_TEST(s, dereg_mr__under_a_window);
}
