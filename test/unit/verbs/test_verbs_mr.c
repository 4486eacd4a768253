/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/mr.c: registering again; lib/verbs/objects/odp.c: on-demand regions, advice, null regions. */
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/newer.h"
#include "verbs_fixture.h"

void ur_suite_verbs_mr(void);

static char a_buf[4096], b_buf[8192];

static const struct ur_mr *tp(struct ibv_mr *mr)
{
	return ur_container_of(mr, struct uv_mr, mr)->tp;
}

/* Memory is registered with the rights that it has; a file's only as far as the file goes. */
static void reg__by_access(void)
{
	static const struct {
		int prot, access, err;
		bool short_file;
	} t[] = {
		{PROT_READ | PROT_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0, false},
		{PROT_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, EFAULT, false},
		{PROT_READ, IBV_ACCESS_LOCAL_WRITE, EFAULT, false},
		{PROT_READ, IBV_ACCESS_REMOTE_READ, 0, false},
		{PROT_READ, 0, 0, false},
		{PROT_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, 0, false},
		{PROT_NONE, IBV_ACCESS_REMOTE_READ, EFAULT, false},
		{PROT_NONE, 0, EFAULT, false},
		{PROT_NONE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND, 0, false},
		{PROT_READ | PROT_WRITE, 0, EFAULT, true},
		{PROT_READ | PROT_WRITE, IBV_ACCESS_LOCAL_WRITE, EFAULT, true},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		int fd = memfd_create("region", MFD_CLOEXEC);
		struct ibv_mr *mr;
		void *at;

		CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, t[i].short_file ? 4096 : 8192) == 0);
		at = mmap(NULL, 8192, t[i].prot, MAP_SHARED, fd, 0);
		errno = 0;
		mr = ibv_reg_mr(f.pd, at, 8192, t[i].access);
		CU_ASSERT_EQUAL(mr ? 0 : errno, t[i].err);
		if (mr) {
			CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		} else {
			/* Nor can a region be moved there. */
			mr = ibv_reg_mr(f.pd, a_buf, sizeof(a_buf), t[i].access);
			CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
			CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, 8192, 0), IBV_REREG_MR_ERR_INPUT);
			CU_ASSERT_PTR_EQUAL(mr->addr, a_buf);
			CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		}
		munmap(at, 8192);
		close(fd);
	}
	verbs_fixture_unmake(&f);
}

/* A right that is added later needs memory that has it. */
static void rereg__memory_without_the_right(void)
{
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct verbs_fixture f;
	struct ibv_mr *mr;

	verbs_fixture_make(&f);
	mr = ibv_reg_mr(f.pd, at, 4096, IBV_ACCESS_REMOTE_READ);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(errno, EFAULT);
	CU_ASSERT_EQUAL(mprotect(at, 4096, PROT_READ | PROT_WRITE), 0);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	munmap(at, 4096);
	verbs_fixture_unmake(&f);
}

static void rereg__each_property(void)
{
	struct verbs_fixture f;
	struct ibv_pd *pd2;
	struct ibv_mr *mr;
	uint32_t lkey, rkey;

	verbs_fixture_make(&f);
	pd2 = ibv_alloc_pd(f.ctx);
	mr = ibv_reg_mr_iova(f.pd, a_buf, sizeof(a_buf), 0x1000, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_TRUE_FATAL(pd2 && mr);
	lkey = mr->lkey;
	rkey = mr->rkey;
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ), 0);
	CU_ASSERT_EQUAL(tp(mr)->access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CU_ASSERT_EQUAL(tp(mr)->iova, 0x1000);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd2, NULL, 0, 0), 0);
	CU_ASSERT_PTR_EQUAL(mr->pd, pd2);
	CU_ASSERT_EQUAL(tp(mr)->access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd2), EBUSY);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b_buf, sizeof(b_buf), 0), 0);
	CU_ASSERT_PTR_EQUAL(mr->addr, b_buf);
	CU_ASSERT_EQUAL(mr->length, sizeof(b_buf));
	CU_ASSERT_EQUAL(tp(mr)->iova, (uintptr_t)b_buf);
	CU_ASSERT_PTR_EQUAL(tp(mr)->addr, b_buf);
	/* All at once. */
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, 7, f.pd, a_buf, 64, IBV_ACCESS_ZERO_BASED), 0);
	CU_ASSERT_EQUAL(tp(mr)->iova, 0);
	CU_ASSERT_EQUAL(tp(mr)->length, 64);
	CU_ASSERT_EQUAL(tp(mr)->access, 0);
	CU_ASSERT_EQUAL(mr->lkey, lkey);
	CU_ASSERT_EQUAL(mr->rkey, rkey);
	CU_ASSERT_EQUAL(tp(mr)->lkey, lkey);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd2), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	verbs_fixture_unmake(&f);
}

/* The old registration holds. */
static void rereg__refused(void)
{
	enum { CT = IBV_REREG_MR_CHANGE_TRANSLATION, CP = IBV_REREG_MR_CHANGE_PD, CA = IBV_REREG_MR_CHANGE_ACCESS };
	struct verbs_fixture f, other;
	const struct {
		int flags;
		struct ibv_pd **pd;
		void *addr;
		size_t len;
		int access, err;
	} t[] = {
		{0, NULL, NULL, 0, 0, EINVAL},
		{8, NULL, NULL, 0, 0, EINVAL},
		{CT, NULL, NULL, 64, 0, EINVAL},
		{CT, NULL, b_buf, 0, 0, EINVAL},
		{CT, NULL, b_buf, SIZE_MAX, 0, EINVAL},
		{CT, NULL, (void *)4096, 64, 0, EFAULT},
		{CT, NULL, b_buf, 64, IBV_ACCESS_LOCAL_WRITE, EINVAL},
		{CA, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{CA, NULL, NULL, 0, 1 << 15, EOPNOTSUPP},
		{CP, NULL, NULL, 0, 0, EINVAL},
		{CP, &other.pd, NULL, 0, 0, EINVAL},
	};
	struct ibv_mr *mr;

	verbs_fixture_make(&f);
	verbs_fixture_make(&other);
	mr = ibv_reg_mr(f.pd, a_buf, sizeof(a_buf), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const struct ur_mr *was = tp(mr);

		errno = 0;
		CU_ASSERT_EQUAL(ibv_rereg_mr(mr, t[i].flags, t[i].pd ? *t[i].pd : NULL, t[i].addr, t[i].len, t[i].access),
				IBV_REREG_MR_ERR_INPUT);
		CU_ASSERT_EQUAL(errno, t[i].err);
		CU_ASSERT_PTR_EQUAL(tp(mr), was);
		CU_ASSERT_PTR_EQUAL(mr->addr, a_buf);
		CU_ASSERT_PTR_EQUAL(mr->pd, f.pd);
	}
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	verbs_fixture_unmake(&other);
	verbs_fixture_unmake(&f);
}

/* ibv_reg_mr_ex(3) of rdma-core 59: a struct in place of arguments. */
static void reg_mr_ex__as_its_mask_says(void)
{
	enum { IOVA = 1, ADDR = 2, DESCRIPTOR = 4, OFFSET = 8, DMAH = 16, BUF = 32 };
	static const struct {
		uint64_t mask, iova; /* where the region begins then, for users of its key */
		int err;
	} t[] = {
		{ADDR, 0, 0},
		{ADDR | IOVA, 0x1000, 0},
		{IOVA, 0, EINVAL},
		{0, 0, EINVAL},
		{DESCRIPTOR | OFFSET, 0, EOPNOTSUPP},
		{ADDR | DMAH, 0, EOPNOTSUPP},
		{ADDR | BUF, 0, EINVAL}, /* there is none */
		{ADDR | BUF | DESCRIPTOR, 0, EINVAL},
		{ADDR | 1ull << 63, 0, EOPNOTSUPP},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct uv_mr_init_attr a = {
			.length = 100, .access = IBV_ACCESS_LOCAL_WRITE, .comp_mask = t[i].mask, .iova = 0x1000, .addr = b_buf + 8};
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr_ex(f.pd, (struct ibv_mr_init_attr *)&a);
		CU_ASSERT_EQUAL(mr ? 0 : errno, t[i].err);
		if (!mr)
			continue;
		CU_ASSERT_TRUE(mr->addr == b_buf + 8 && mr->length == 100);
		CU_ASSERT_EQUAL(tp(mr)->iova, t[i].iova ? t[i].iova : (uintptr_t)b_buf + 8);
		CU_ASSERT_EQUAL(tp(mr)->access, IBV_ACCESS_LOCAL_WRITE);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	verbs_fixture_unmake(&f);
}

/* --- buffers (ibv_alloc_buf(3) of rdma-core 64) --- */

static void alloc_buf__memory_of_the_program(void)
{
	static const size_t sizes[] = {1, 4096, 100000};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(sizes); i++) {
		struct ibv_buf *buf = NULL;
		char *p = ibv_alloc_buf(f.pd, sizes[i], &buf);
		struct ibv_mr *mr;

		CU_ASSERT_FATAL(p != NULL && buf != NULL);
		CU_ASSERT_EQUAL((uintptr_t)p % 4096, 0);
		memset(p, 1, sizes[i]);
		mr = ibv_reg_buf_mr(f.pd, buf, p, sizes[i], IBV_ACCESS_LOCAL_WRITE);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		CU_ASSERT_TRUE(mr->addr == p && mr->length == sizes[i] && tp(mr)->iova == (uintptr_t)p);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		errno = 0;
		CU_ASSERT_EQUAL(ibv_export_buf_dmabuf_fd(buf), -1);
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP); /* it is no DMA-BUF */
		ibv_free_buf(buf);
		ibv_free_buf(buf); /* and perhaps again */
		CU_ASSERT_EQUAL(ibv_export_buf_dmabuf_fd(buf), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
	}
	ibv_free_buf(NULL);
	verbs_fixture_unmake(&f);
}

static void *alloc(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	errno = 0;
	return ibv_alloc_buf(pd, size, buf);
}

static void alloc_buf__errors(void)
{
	struct verbs_fixture f;
	struct ibv_buf *buf;

	verbs_fixture_make(&f);
	CU_ASSERT_TRUE(!alloc(NULL, 1, &buf) && errno == EINVAL);
	CU_ASSERT_TRUE(!alloc(f.pd, 0, &buf) && errno == EINVAL);
	CU_ASSERT_TRUE(!alloc(f.pd, 1, NULL) && errno == EINVAL);
	CU_ASSERT_TRUE(!alloc(f.pd, SIZE_MAX, &buf) && errno == ENOMEM);
	CU_ASSERT_TRUE(!alloc(f.pd, SIZE_MAX / 2 + 1, &buf) && errno == ENOMEM);
	verbs_fixture_unmake(&f);
}

/* A region is of the buffer's protection domain, and does not leave it; ibv_reg_mr_ex(3) says the same. */
static void reg_buf_mr__within_the_buffer(void)
{
	enum { SIZE = 10000, ADDR = 2, BUF = 32 };
	static const struct {
		size_t at, length;
		bool other_pd, ok;
	} t[] = {
		{0, SIZE, false, true},        {SIZE - 1, 1, false, true},  {100, 200, false, true},
		{0, SIZE, true, false},        {0, SIZE + 1, false, false}, {SIZE - 1, 2, false, false},
		{(size_t)-1, 2, false, false}, {1, SIZE_MAX, false, false}, {SIZE + 1, 0, false, false},
	};
	struct verbs_fixture f;
	struct ibv_buf *buf;
	struct ibv_pd *other;
	char *p;

	verbs_fixture_make(&f);
	other = ibv_alloc_pd(f.ctx);
	p = ibv_alloc_buf(f.pd, SIZE, &buf);
	CU_ASSERT_FATAL(other && p);
	for (unsigned i = 0; i < 2 * ur_array_size(t); i++) {
		unsigned k = i / 2;
		void *at = (void *)((uintptr_t)p + t[k].at);
		struct uv_mr_init_attr a = {.length = t[k].length, .comp_mask = ADDR | BUF, .addr = at, .buf = buf};
		struct ibv_pd *pd = t[k].other_pd ? other : f.pd;
		struct ibv_mr *mr;

		errno = 0;
		mr = i & 1 ? ibv_reg_buf_mr(pd, buf, at, t[k].length, 0) : ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)&a);
		CU_ASSERT_EQUAL(mr != NULL, t[k].ok);
		CU_ASSERT_EQUAL(errno, t[k].ok ? 0 : EINVAL);
		if (mr)
			CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	ibv_free_buf(buf);
	CU_ASSERT_TRUE(!ibv_reg_buf_mr(f.pd, buf, p, 1, 0) && errno == EINVAL);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(other), 0);
	verbs_fixture_unmake(&f);
}

/* On-demand memory that is to be plain memory must be there. */
static void rereg__from_on_demand(void)
{
	struct verbs_fixture f;
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	verbs_fixture_make(&f);
	CU_ASSERT_FATAL(p != MAP_FAILED && munmap(p + 4096, 4096) == 0);
	mr = ibv_reg_mr(f.pd, p, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(errno, EFAULT);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p + 4096, 4096, 0), 0);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p, 4096, 0), 0);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	munmap(p, 4096);
	verbs_fixture_unmake(&f);
}

/* --- on demand --- */

static void odp__capabilities(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr_ex a;
	const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			    IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	CU_ASSERT_EQUAL(ibv_query_device_ex(ctx, NULL, &a), 0);
	CU_ASSERT_EQUAL(a.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	CU_ASSERT_EQUAL(a.odp_caps.per_transport_caps.rc_odp_caps, rc);
	CU_ASSERT_EQUAL(a.xrc_odp_caps, rc);
	CU_ASSERT_EQUAL(a.odp_caps.per_transport_caps.uc_odp_caps, rc & ~(uint32_t)(IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC));
	CU_ASSERT_FALSE(a.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_WRITE);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* Four pages: two that can be written, one that can be read, one that is not there. */
static void advise__table(void)
{
	enum {
		P = 4096,
		WR = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		RD = IBV_ADVISE_MR_ADVICE_PREFETCH,
		NF = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
	};
	enum key { ODP, PLAIN, READONLY, OTHER_PD, NOBODY };
	static const struct {
		enum key key;
		unsigned advice;
		uint32_t flags, off, len;
		int err;
	} t[] = {
		{ODP, RD, 0, 0, 2 * P, 0},
		{ODP, WR, IBV_ADVISE_MR_FLAG_FLUSH, 100, P, 0},
		{ODP, RD, IBV_ADVISE_MR_FLAG_FLUSH, 0, 3 * P, 0},
		{ODP, WR, 0, 0, 3 * P, EFAULT},
		{ODP, RD, 0, 3 * P - 1, 2, EFAULT},
		{ODP, NF, 0, 0, 4 * P, 0},
		{ODP, NF, 0, 0, 4 * P + 1, EFAULT},
		{ODP, RD, 0, 4 * P, 1, EFAULT},
		{ODP, WR, 0, 4 * P, 0, 0},
		{ODP, RD, 2, 0, P, EINVAL},
		{ODP, 3, 0, 0, P, EOPNOTSUPP},
		{PLAIN, RD, 0, 0, P, EINVAL},
		{READONLY, RD, 0, 0, P, 0},
		{READONLY, WR, 0, 0, P, EPERM},
		{OTHER_PD, RD, 0, 0, P, ENOENT},
		{NOBODY, RD, 0, 0, P, ENOENT},
	};
	char *p = mmap(NULL, 4 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct verbs_fixture f;
	struct ibv_pd *pd2;
	struct ibv_mr *mr[4];
	struct ibv_sge none;

	CU_ASSERT_FATAL(p != MAP_FAILED && mprotect(p + 2 * P, P, PROT_READ) == 0 && munmap(p + 3 * P, P) == 0);
	verbs_fixture_make(&f);
	pd2 = ibv_alloc_pd(f.ctx);
	mr[ODP] = ibv_reg_mr(f.pd, p, 4 * P, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	mr[PLAIN] = ibv_reg_mr(f.pd, p, 2 * P, IBV_ACCESS_LOCAL_WRITE);
	mr[READONLY] = ibv_reg_mr(f.pd, p, 4 * P, IBV_ACCESS_ON_DEMAND);
	mr[OTHER_PD] = ibv_reg_mr(pd2, p, 4 * P, IBV_ACCESS_ON_DEMAND);
	CU_ASSERT_TRUE_FATAL(mr[0] && mr[1] && mr[2] && mr[3]);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_sge s = {(uintptr_t)p + t[i].off, t[i].len, t[i].key == NOBODY ? mr[0]->lkey ^ 1 : mr[t[i].key]->lkey};

		CU_ASSERT_EQUAL(ibv_advise_mr(f.pd, (enum ibv_advise_mr_advice)t[i].advice, t[i].flags, &s, 1), t[i].err);
	}
	CU_ASSERT_EQUAL(ibv_advise_mr(f.pd, (enum ibv_advise_mr_advice)RD, 0, &none, 0), EINVAL);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr[i]), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd2), 0);
	munmap(p, 3 * P);
	verbs_fixture_unmake(&f);
}

static void null_mr__attributes(void)
{
	struct verbs_fixture f;
	struct ibv_mr *mr;

	verbs_fixture_make(&f);
	mr = ibv_alloc_null_mr(f.pd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(mr->length, SIZE_MAX);
	CU_ASSERT_EQUAL(mr->rkey, 0);
	CU_ASSERT_NOT_EQUAL(mr->lkey, 0);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_mr(void)
{
	CU_pSuite s = CU_add_suite("verbs_mr", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, reg__by_access);
	CU_ADD_TEST(s, reg_mr_ex__as_its_mask_says);
	CU_ADD_TEST(s, alloc_buf__memory_of_the_program);
	CU_ADD_TEST(s, alloc_buf__errors);
	CU_ADD_TEST(s, reg_buf_mr__within_the_buffer);
	CU_ADD_TEST(s, rereg__memory_without_the_right);
	CU_ADD_TEST(s, rereg__each_property);
	CU_ADD_TEST(s, rereg__refused);
	CU_ADD_TEST(s, rereg__from_on_demand);
	CU_ADD_TEST(s, odp__capabilities);
	CU_ADD_TEST(s, advise__table);
	CU_ADD_TEST(s, null_mr__attributes);
}
