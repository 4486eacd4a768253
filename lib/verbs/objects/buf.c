/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers whose kind the device chooses: ibv_alloc_buf(3) and its like, of rdma-core 64. There is memory that a device of a confidential
 * guest cannot reach; here all of a program's can be reached, so it is a program's own, in whole pages, and no DMA-BUF.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/internal.h"
#include "verbs/newer.h"

struct ibv_buf {
	struct ur_live live;
	struct ibv_pd *pd;
	void *addr;
	size_t size;
};

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_buf *b;

	if (!pd || !buf || !size)
		return uv_null(EINVAL);
	if (size > PTRDIFF_MAX - page) /* no object is larger */
		return uv_null(ENOMEM);
	b = calloc(1, sizeof(*b));
	if (!b)
		return uv_null(ENOMEM);
	b->addr = aligned_alloc(page, (size + page - 1) & ~(page - 1));
	if (!b->addr) {
		free(b);
		return uv_null(ENOMEM);
	}
	b->pd = pd;
	b->size = size;
	ur_live_add(&b->live, b);
	*buf = b;
	return b->addr;
}

static int release(void *handle)
{
	struct ibv_buf *b = handle;

	ur_live_del(b);
	free(b->addr);
	free(b);
	return 0;
}

void ibv_free_buf(struct ibv_buf *buf)
{
	if (buf)
		uv_destroy(buf, release);
}

int uv_buf_check(const struct ibv_buf *buf, const struct ibv_pd *pd, const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr, from;

	if (!buf || !ur_live_has(buf) || buf->pd != pd)
		return EINVAL;
	from = (uintptr_t)buf->addr;
	return at < from || at - from > buf->size || length > buf->size - (at - from) ? EINVAL : 0;
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
	int err = uv_buf_check(buf, pd, addr, length);

	return err ? uv_null(err) : ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

/* A descriptor, or -1. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	errno = buf && ur_live_has(buf) ? EOPNOTSUPP : EINVAL;
	return -1;
}
