/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/share.c, and what pd.c, mr.c and dm.c import. */
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"
#include "verbs/internal.h"

void ur_suite_verbs_import(void);

static char buf[4096];

static struct ibv_context *import(const struct ibv_context *ctx)
{
	int fd = dup(ctx->cmd_fd);
	struct ibv_context *other;

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	other = ibv_import_device(fd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	CU_ASSERT_EQUAL(other->cmd_fd, fd);
	CU_ASSERT_PTR_EQUAL(other->device, ctx->device);
	return other;
}

/* The descriptor is the context's own from then on. */
static void device__descriptors(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *stranger = verbs_fixture_open(), *other;
	int fd, pipes[2];

	CU_ASSERT_TRUE_FATAL(ctx->cmd_fd >= 0 && pipe(pipes) == 0);
	CU_ASSERT_PTR_NULL(ibv_import_device(-1));
	CU_ASSERT_EQUAL(errno, EBADF);
	CU_ASSERT_PTR_NULL(ibv_import_device(pipes[0]));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	other = import(ctx);
	fd = other->cmd_fd;
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(dup(fd), -1);
	/* The first may be closed before those that came from it. */
	other = import(ctx);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
	ctx = import(other);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(stranger), 0);
	close(pipes[0]);
	close(pipes[1]);
}

static void pd_and_mr__by_handle(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *stranger = verbs_fixture_open(), *other = import(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *twin, *elsewhere = ibv_alloc_pd(other);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE), *same;

	CU_ASSERT_TRUE_FATAL(pd && elsewhere && mr && pd->handle != elsewhere->handle);
	CU_ASSERT_PTR_NULL(ibv_import_pd(stranger, pd->handle));
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_PTR_NULL(ibv_import_pd(other, pd->handle + 1000));
	twin = ibv_import_pd(other, pd->handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(twin);
	CU_ASSERT_PTR_EQUAL(twin->context, other);
	CU_ASSERT_PTR_NULL(ibv_import_mr(elsewhere, mr->handle)); /* of another domain */
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_PTR_NULL(ibv_import_mr(twin, mr->handle + 1));
	same = ibv_import_mr(twin, mr->handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(same);
	CU_ASSERT_EQUAL(same->lkey, mr->lkey);
	CU_ASSERT_EQUAL(same->rkey, mr->rkey);
	CU_ASSERT_EQUAL(same->length, mr->length);
	CU_ASSERT_PTR_NULL(same->addr);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(twin), EBUSY);
	ibv_unimport_mr(same);
	ibv_unimport_pd(twin);
	/* Nothing has become of what was imported. */
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_PTR_NULL(ibv_import_pd(other, 0));
	CU_ASSERT_EQUAL(ibv_dealloc_pd(elsewhere), 0);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(stranger), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* Either side may destroy; what is left then is to be unimported. */
static void import__destroys(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *other = import(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *twin = ibv_import_pd(other, pd->handle);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE), *same;

	same = twin && mr ? ibv_import_mr(twin, mr->handle) : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(same);
	CU_ASSERT_EQUAL(ibv_rereg_mr(same, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf + 8, 64, 0), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(same), 0);
	ibv_unimport_mr(mr);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(twin), 0);
	CU_ASSERT_PTR_NULL(ibv_import_pd(ctx, pd->handle));
	ibv_unimport_pd(pd);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* What stands on one of the two keeps the other from destroying what both are. */
static void import__busy(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *other = import(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *twin = ibv_import_pd(other, pd->handle);
	struct ibv_parent_domain_init_attr a = {.pd = pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &a);
	struct ibv_mr *mr;

	CU_ASSERT_PTR_NOT_NULL_FATAL(parent);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(twin), EBUSY);
	mr = ibv_reg_mr(parent, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(twin), EBUSY);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(parent), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(twin), 0);
	ibv_unimport_pd(pd);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void dm__by_handle(void)
{
	struct ibv_context *ctx = verbs_fixture_open(), *other = import(ctx);
	struct ibv_alloc_dm_attr a = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &a), *twin;
	uint32_t v = 0x12345678, w = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(dm);
	twin = ibv_import_dm(other, dm->handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(twin);
	CU_ASSERT_EQUAL(ibv_memcpy_to_dm(dm, 8, &v, 4), 0);
	CU_ASSERT_EQUAL(ibv_memcpy_from_dm(&w, twin, 8, 4), 0);
	CU_ASSERT_EQUAL(w, v);
	CU_ASSERT_EQUAL(ibv_free_dm(twin), 0);
	CU_ASSERT_PTR_NULL(ibv_import_dm(other, dm->handle));
	CU_ASSERT_EQUAL(errno, ENOENT);
	ibv_unimport_dm(dm);
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* A thread of the parent was about to import something when the child was made. */
static void child__gives_imports_back(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_alloc_dm_attr a = {.length = 64};
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *twin = ibv_import_pd(ctx, pd->handle);
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &a), *same = ibv_import_dm(ctx, dm->handle);
	int status = -1;
	pid_t pid;

	CU_ASSERT_TRUE_FATAL(twin && same);
	pthread_mutex_lock(&uv_context(ctx)->share->lock);
	pid = fork();
	if (!pid) {
		alarm(5);
		ibv_unimport_pd(twin);
		ibv_unimport_dm(same);
		_exit(0);
	}
	pthread_mutex_unlock(&uv_context(ctx)->share->lock);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	ibv_unimport_pd(twin);
	ibv_unimport_dm(same);
	CU_ASSERT_EQUAL(ibv_free_dm(dm), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* A child has its parent's descriptor, and nothing behind it. */
static void child__imports_nothing(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(ibv_import_device(ctx->cmd_fd) || errno != EOPNOTSUPP || ibv_import_pd(ctx, pd->handle) || errno != EIO ||
		      ibv_import_mr(pd, 0) || ibv_import_dm(ctx, 0));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_import(void)
{
	CU_pSuite s = CU_add_suite("verbs_import", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, device__descriptors);
	CU_ADD_TEST(s, pd_and_mr__by_handle);
	CU_ADD_TEST(s, import__destroys);
	CU_ADD_TEST(s, import__busy);
	CU_ADD_TEST(s, dm__by_handle);
	CU_ADD_TEST(s, child__imports_nothing);
	CU_ADD_TEST(s, child__gives_imports_back);
}
