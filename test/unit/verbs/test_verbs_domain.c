/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/parent_domain.c: thread domains, parent domains and their allocators. */
#include "verbs_fixture.h"

void ur_suite_verbs_domain(void);

enum how { OWN, DEFAULT, REFUSE, MISALIGNED };

struct arena {
	enum how how;
	struct ibv_pd *pd;
	unsigned given, back;
	uint64_t types;
	size_t bytes;
};

static void *give(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type)
{
	struct arena *a = context;
	uint8_t *p;

	a->pd = pd;
	a->types |= 1ull << (type & 63);
	if (a->how == DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (a->how == REFUSE)
		return NULL;
	CU_ASSERT_EQUAL(alignment, UR_RING_ALIGN);
	p = aligned_alloc(alignment, size + alignment);
	memset(p, 0, size);
	a->given++;
	a->bytes += size;
	return p + (a->how == MISALIGNED ? 8 : 0);
}

static void take_back(struct ibv_pd *pd, void *context, void *at, uint64_t type)
{
	struct arena *a = context;

	CU_ASSERT_PTR_EQUAL(pd, a->pd);
	CU_ASSERT_TRUE(a->types & 1ull << (type & 63));
	a->back++;
	free((uint8_t *)at - (a->how == MISALIGNED ? 8 : 0));
}

static struct ibv_pd *make(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_td *td, struct arena *arena)
{
	struct ibv_parent_domain_init_attr a = {.pd = pd, .td = td};

	if (arena) {
		a.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		a.alloc = give;
		a.free = take_back;
		a.pd_context = arena;
	}
	return ibv_alloc_parent_domain(ctx, &a);
}

static void arguments__table(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *other = verbs_fixture_open();
	struct ibv_td_init_attr ta = {0}, bad = {.comp_mask = 1};
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *foreign = ibv_alloc_pd(other);
	struct ibv_td *td = ibv_alloc_td(ctx, &ta), *foreign_td = ibv_alloc_td(other, &ta);
	const struct ibv_parent_domain_init_attr t[] = {
		{.pd = NULL},
		{.pd = foreign},
		{.pd = pd, .td = foreign_td},
		{.pd = pd, .comp_mask = 1u << 2},
		{.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS},
		{.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, .alloc = give},
		{.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, .free = take_back},
	};

	CU_ASSERT_TRUE_FATAL(pd && foreign && td && foreign_td);
	CU_ASSERT_PTR_NULL(ibv_alloc_td(ctx, &bad));
	CU_ASSERT_EQUAL(errno, EINVAL);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_parent_domain_init_attr a = t[i];

		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_alloc_parent_domain(ctx, &a));
		CU_ASSERT_EQUAL(errno, EINVAL);
	}
	CU_ASSERT_EQUAL(ibv_dealloc_td(td), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_td(foreign_td), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(foreign), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* What stands on something else keeps it. */
static void lifetimes__busy(void)
{
	struct verbs_fixture f;
	struct ibv_td_init_attr ta = {0};
	struct ibv_pd *pd, *parent, *grand;
	struct ibv_td *td;
	struct ibv_mr *mr;
	static char buf[64];

	verbs_fixture_make(&f);
	pd = ibv_alloc_pd(f.ctx);
	td = ibv_alloc_td(f.ctx, &ta);
	parent = make(f.ctx, pd, td, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(parent);
	CU_ASSERT_EQUAL(ibv_dealloc_td(td), EBUSY);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	grand = make(f.ctx, parent, NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(grand);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), EBUSY);
	mr = ibv_reg_mr(grand, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_PTR_EQUAL(mr->pd, grand);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(grand), EBUSY);
	/* Moved to what it stands on. */
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(grand), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_td(td), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	verbs_fixture_unmake(&f);
}

/* Windows and address handles are users as well. */
static void lifetimes__small_objects(void)
{
	struct verbs_fixture f;
	struct ibv_ah_attr aa = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
	struct ibv_pd *parent;
	struct ibv_mw *mw;
	struct ibv_ah *ah;

	verbs_fixture_make(&f);
	parent = make(f.ctx, f.pd, NULL, NULL);
	mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mw);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), EBUSY);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	memcpy(aa.grh.dgid.raw, peer, sizeof(peer));
	ah = ibv_create_ah(parent, &aa);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ah);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), 0);
	verbs_fixture_unmake(&f);
}

struct made {
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp, *with_srq;
};

/* One of everything that may take memory from it. */
static void make_objects(struct ibv_context *ctx, struct ibv_pd *parent, struct made *m)
{
	struct ibv_cq_init_attr_ex ca = {.cqe = 100, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_qp_init_attr qa = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

	memset(m, 0, sizeof(*m));
	m->cq = ibv_create_cq_ex(ctx, &ca);
	m->srq = ibv_create_srq(parent, &sa);
	if (!m->cq || !m->srq)
		return;
	qa.send_cq = qa.recv_cq = ibv_cq_ex_to_cq(m->cq);
	m->qp = ibv_create_qp(parent, &qa);
	qa.srq = m->srq;
	m->with_srq = ibv_create_qp(parent, &qa);
}

static void unmake_objects(struct made *m)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(m->qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(m->with_srq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(m->srq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(m->cq)), 0);
}

/* All queues lie in the program's memory, and it gets back what it gave. */
static void allocator__queues(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct arena arena = {.how = OWN};
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent = make(ctx, pd, NULL, &arena);
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad;
	struct ibv_wc wc;
	struct made m;

	CU_ASSERT_PTR_NOT_NULL_FATAL(parent);
	make_objects(ctx, parent, &m);
	CU_ASSERT_TRUE_FATAL(m.cq && m.srq && m.qp && m.with_srq);
	CU_ASSERT_EQUAL(arena.given, 5); /* the CQ, the SRQ, two queues of the first QP and one of the second */
	CU_ASSERT_TRUE(arena.bytes >= 100 * 32 + 3 * 16 * 48);
	CU_ASSERT_EQUAL(arena.types, 1 << UV_RES_SQ | 1 << UV_RES_RQ | 1 << UV_RES_SRQ | 1 << UV_RES_CQ);
	CU_ASSERT_PTR_EQUAL(arena.pd, parent);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), EBUSY);
	verbs_fixture_to_init(m.qp);
	CU_ASSERT_EQUAL(ibv_post_recv(m.qp, &wr, &bad), 0);
	verbs_fixture_flush(m.qp);
	CU_ASSERT_EQUAL(ibv_poll_cq(ibv_cq_ex_to_cq(m.cq), 1, &wc), 1);
	CU_ASSERT_EQUAL(wc.wr_id, 5);
	CU_ASSERT_EQUAL(ibv_resize_cq(ibv_cq_ex_to_cq(m.cq), 1000), 0);
	unmake_objects(&m);
	CU_ASSERT_EQUAL(arena.back, 5);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void allocator__leaves_it_to_us(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct arena arena = {.how = DEFAULT};
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent = make(ctx, pd, NULL, &arena);
	struct made m;

	make_objects(ctx, parent, &m);
	CU_ASSERT_TRUE_FATAL(m.cq && m.srq && m.qp && m.with_srq);
	CU_ASSERT_NOT_EQUAL(arena.types, 0);
	unmake_objects(&m);
	CU_ASSERT_EQUAL(arena.back, 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* Without memory, or with memory that cannot be used, there is no object, and nothing is kept. */
static void allocator__fails(void)
{
	static const struct {
		enum how how;
		int err;
	} t[] = {{REFUSE, ENOMEM}, {MISALIGNED, EINVAL}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct arena arena = {.how = t[i].how};
		struct verbs_fixture f;
		struct ibv_pd *parent;
		struct ibv_cq_init_attr_ex ca = {.cqe = 100, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
		struct ibv_srq_init_attr sa = {.attr = {.max_wr = 16, .max_sge = 1}};
		struct ibv_qp_init_attr qa = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};

		verbs_fixture_make(&f);
		parent = make(f.ctx, f.pd, NULL, &arena);
		ca.parent_domain = parent;
		qa.send_cq = qa.recv_cq = f.cq;
		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_create_cq_ex(f.ctx, &ca));
		CU_ASSERT_EQUAL(errno, t[i].err);
		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_create_srq(parent, &sa));
		CU_ASSERT_EQUAL(errno, t[i].err);
		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_create_qp(parent, &qa));
		CU_ASSERT_EQUAL(errno, t[i].err);
		CU_ASSERT_EQUAL(arena.given, arena.back);
		CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), 0);
		verbs_fixture_unmake(&f);
	}
}

/* A CQ takes a parent domain of its own context, and nothing else that is a PD. */
static void cq__wants_a_parent_domain(void)
{
	struct verbs_fixture f, other;
	struct ibv_cq_init_attr_ex ca = {.cqe = 100, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
	struct ibv_pd *foreign;

	verbs_fixture_make(&f);
	verbs_fixture_make(&other);
	foreign = make(other.ctx, other.pd, NULL, NULL);
	ca.parent_domain = f.pd;
	CU_ASSERT_PTR_NULL(ibv_create_cq_ex(f.ctx, &ca));
	CU_ASSERT_EQUAL(errno, EINVAL);
	ca.parent_domain = foreign;
	CU_ASSERT_PTR_NULL(ibv_create_cq_ex(f.ctx, &ca));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(foreign), 0);
	verbs_fixture_unmake(&other);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_domain(void)
{
	CU_pSuite s = CU_add_suite("verbs_domain", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, arguments__table);
	CU_ADD_TEST(s, lifetimes__busy);
	CU_ADD_TEST(s, lifetimes__small_objects);
	CU_ADD_TEST(s, allocator__queues);
	CU_ADD_TEST(s, allocator__leaves_it_to_us);
	CU_ADD_TEST(s, allocator__fails);
	CU_ADD_TEST(s, cq__wants_a_parent_domain);
}
