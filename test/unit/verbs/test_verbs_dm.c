/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/dm.c: device memory. */
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

void ur_suite_verbs_dm(void);

static void alloc_dm__sizes(void)
{
	static const struct {
		struct ibv_alloc_dm_attr a;
		int err;
	} t[] = {
		{{.length = 1}, 0},
		{{.length = UV_MAX_DM}, 0},
		{{.length = 100, .log_align_req = 21}, 0},
		{{.length = 0}, EINVAL},
		{{.length = 100, .log_align_req = 22}, EINVAL},
		{{.length = 100, .log_align_req = UINT32_MAX}, EINVAL},
		{{.length = 100, .comp_mask = 1}, EINVAL},
		{{.length = UV_MAX_DM + 1}, ENOMEM},
		{{.length = SIZE_MAX}, ENOMEM},
	};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr_ex attr;

	CU_ASSERT_EQUAL(ibv_query_device_ex(ctx, NULL, &attr), 0);
	CU_ASSERT_EQUAL(attr.max_dm_size, UV_MAX_DM);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_alloc_dm_attr a = t[i].a;
		struct ibv_dm *dm;

		errno = 0;
		dm = ibv_alloc_dm(ctx, &a);
		CU_ASSERT_EQUAL(dm ? 0 : errno, t[i].err);
		if (dm)
			CU_ASSERT_EQUAL(ibv_free_dm(dm), 0);
	}
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* There is as much of it as the device says, and no more until some is given back. */
static void alloc_dm__all_of_it(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *other = verbs_fixture_open();
	struct ibv_alloc_dm_attr half = {.length = UV_MAX_DM / 2}, one = {.length = 1};
	struct ibv_dm *a = ibv_alloc_dm(ctx, &half), *b = ibv_alloc_dm(other, &half);

	CU_ASSERT_TRUE_FATAL(a && b);
	CU_ASSERT_PTR_NULL(ibv_alloc_dm(ctx, &one));
	CU_ASSERT_EQUAL(errno, ENOMEM);
	CU_ASSERT_EQUAL(ibv_free_dm(b), 0);
	b = ibv_alloc_dm(ctx, &one);
	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	CU_ASSERT_EQUAL(ibv_free_dm(b), 0);
	CU_ASSERT_EQUAL(ibv_free_dm(a), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void memcpy_dm__bounds(void)
{
	static const struct {
		uint64_t off;
		size_t n;
		int err;
	} t[] = {
		{0, 100, 0},      {96, 4, 0},       {100, 0, 0},           {0, 104, EFAULT},
		{104, 0, EFAULT}, {100, 4, EFAULT}, {4, SIZE_MAX, EFAULT}, {UINT64_MAX - 3, 4, EFAULT},
		{1, 4, EINVAL},   {4, 1, EINVAL},   {2, 2, EINVAL},
	};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_alloc_dm_attr a = {.length = 100};
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &a);
	char from[104], to[104];

	CU_ASSERT_PTR_NOT_NULL_FATAL(dm);
	memset(to, 1, sizeof(to));
	CU_ASSERT_EQUAL(ibv_memcpy_from_dm(to, dm, 0, 100), 0);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(to[i], 0); /* no secrets of an earlier owner */
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		memset(from, (int)i + 1, sizeof(from));
		memset(to, 0, sizeof(to));
		CU_ASSERT_EQUAL(ibv_memcpy_to_dm(dm, t[i].off, from, t[i].n), t[i].err);
		CU_ASSERT_EQUAL(ibv_memcpy_from_dm(to, dm, t[i].off, t[i].n), t[i].err);
		if (!t[i].err)
			CU_ASSERT_EQUAL(memcmp(from, to, t[i].n), 0);
	}
	CU_ASSERT_EQUAL(ibv_free_dm(dm), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void reg_dm_mr__cases(void)
{
	static const struct {
		uint64_t off;
		size_t n;
		unsigned access;
		int err;
	} t[] = {
		{0, 100, IBV_ACCESS_LOCAL_WRITE, 0},
		{40, 60, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0},
		{100, 0, 0, 0},
		{0, 101, 0, EINVAL},
		{96, 5, 0, EINVAL},
		{UINT64_MAX, 1, 0, EINVAL},
		{4, SIZE_MAX, 0, EINVAL},
		{0, 8, IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{0, 8, 1u << 15, EOPNOTSUPP},
	};
	struct verbs_fixture f;
	struct ibv_alloc_dm_attr a = {.length = 100};
	struct ibv_dm *dm;

	verbs_fixture_make(&f);
	dm = ibv_alloc_dm(f.ctx, &a);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dm);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dm_mr(f.pd, dm, t[i].off, t[i].n, t[i].access | IBV_ACCESS_ZERO_BASED);
		CU_ASSERT_EQUAL(mr ? 0 : errno, t[i].err);
		if (!mr)
			continue;
		CU_ASSERT_PTR_NULL(mr->addr);
		CU_ASSERT_EQUAL(mr->length, t[i].n);
		CU_ASSERT_EQUAL(ibv_free_dm(dm), EBUSY);
		CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_reg_dm_mr(f.pd, dm, 0, 8, IBV_ACCESS_LOCAL_WRITE)); /* not zero-based */
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_free_dm(dm), 0);
	verbs_fixture_unmake(&f);
}

/* It needs no engine: a child has as much of it as its parent. */
static void alloc_dm__in_a_child(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_alloc_dm_attr a = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &a);
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		struct ibv_dm *own = ibv_alloc_dm(ctx, &a);
		uint32_t v = 7, w = 0;

		_exit(!own || ibv_memcpy_to_dm(own, 60, &v, 4) || ibv_memcpy_from_dm(&w, own, 60, 4) || v != w || ibv_free_dm(own) ||
		      ibv_free_dm(dm));
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(ibv_free_dm(dm), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_dm(void)
{
	CU_pSuite s = CU_add_suite("verbs_dm", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, alloc_dm__sizes);
	CU_ADD_TEST(s, alloc_dm__all_of_it);
	CU_ADD_TEST(s, memcpy_dm__bounds);
	CU_ADD_TEST(s, reg_dm_mr__cases);
	CU_ADD_TEST(s, alloc_dm__in_a_child);
}
