/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of libibverbs that came with releases of rdma-core after 44, up to 65: uroce is built with headers that may not declare them,
 * and must define them, because the system's would follow private pointers of a context that has none. The declarations are those of the
 * newer headers, so a build that has these sees each of them twice.
 */
#ifndef UR_NEWER_H
#define UR_NEWER_H

#include <infiniband/verbs.h>

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* The layout of struct ibv_mr_init_attr, and what its comp_mask says of it. What no bit names may lie behind the end of a program's. */
struct uv_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd; /* of a DMA-BUF, like the next */
	uint64_t fd_offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};
enum {
	UV_REG_MR_IOVA = 1 << 0,
	UV_REG_MR_ADDR = 1 << 1,
	UV_REG_MR_FD = 1 << 2,
	UV_REG_MR_FD_OFFSET = 1 << 3,
	UV_REG_MR_BUF = 1 << 5,
};

/* IBVERBS_1.15 */
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
/* IBVERBS_1.16 */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed);
/* IBVERBS_1.17 */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
/* IBVERBS_1.18 */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): rdma-core's name */
int _ibv_query_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t size);
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *ctx, struct ibv_comp_cntr_init_attr *attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter, struct ibv_qp_attach_comp_cntr_attr *attr);
int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);

/* 0 when such a part of a buffer may be registered in that protection domain, else EINVAL. */
int uv_buf_check(const struct ibv_buf *buf, const struct ibv_pd *pd, const void *addr, size_t length);

#endif
