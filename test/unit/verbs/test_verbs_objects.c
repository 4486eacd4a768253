/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs: devices, contexts, queries, protection domains, memory regions, completion queues, queue pairs, and what a forked
 * child may do with them.
 */
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs_fixture.h"

void ur_suite_verbs_objects(void);

#define GUARD 0x5a

/* --- devices and contexts --- */

static void device_list__one_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(list[0]);
	CU_ASSERT_PTR_NULL(list[1]);
	CU_ASSERT_STRING_EQUAL(ibv_get_device_name(list[0]), "uroce0");
	CU_ASSERT_EQUAL(ibv_get_device_index(list[0]), -1);
	CU_ASSERT_NOT_EQUAL(ibv_get_device_guid(list[0]), 0);
	CU_ASSERT_EQUAL(list[0]->transport_type, IBV_TRANSPORT_IB);
	CU_ASSERT_EQUAL(list[0]->node_type, IBV_NODE_CA);
	ibv_free_device_list(list);
}

static void device_list__freed_while_open(void)
{
	struct ibv_device **a = ibv_get_device_list(NULL), **b;
	struct ibv_context *ctx = ibv_open_device(a[0]);

	CU_ASSERT_PTR_NOT_NULL_FATAL(ctx);
	ibv_free_device_list(a);
	CU_ASSERT_STRING_EQUAL(ctx->device->name, "uroce0");
	b = ibv_get_device_list(NULL);
	CU_ASSERT_PTR_EQUAL(b[0], ctx->device);
	ibv_free_device_list(b);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* The objects outlive it and can still be destroyed. */
static void close_device__before_its_objects(void)
{
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_close_device(f.ctx), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(f.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f.cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(f.pd), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(f.ch), 0);
}

static void shared_context__is_one_and_has_a_pd(void)
{
	struct ibv_context *ctx = ur_verbs_context(0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(ctx);
	CU_ASSERT_PTR_EQUAL(ur_verbs_context(0), ctx);
	CU_ASSERT_PTR_NOT_NULL(ur_verbs_engine(ctx));
	CU_ASSERT_PTR_NOT_NULL_FATAL(ur_verbs_default_pd(ctx));
	CU_ASSERT_PTR_EQUAL(ur_verbs_default_pd(ctx), ur_verbs_default_pd(ctx));
}

/* --- queries --- */

static void query_device__agrees_with_itself(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr a;
	struct ibv_device_attr_ex ex;

	CU_ASSERT_EQUAL(ibv_query_device(ctx, &a), 0);
	CU_ASSERT_EQUAL(ibv_query_device_ex(ctx, NULL, &ex), 0);
	CU_ASSERT_EQUAL(memcmp(&a, &ex.orig_attr, offsetof(struct ibv_device_attr, phys_port_cnt) + 1), 0); /* the rest is padding */
	CU_ASSERT_EQUAL(a.max_sge, UR_MAX_SGE);
	CU_ASSERT_EQUAL(a.phys_port_cnt, 1);
	CU_ASSERT_EQUAL(a.node_guid, ibv_get_device_guid(ctx->device));
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void query_device_ex__respects_the_size(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	const size_t len = offsetof(struct ibv_device_attr_ex, tso_caps);
	struct ibv_device_attr_ex ex;

	memset(&ex, GUARD, sizeof(ex));
	CU_ASSERT_EQUAL(verbs_get_ctx(ctx)->query_device_ex(ctx, NULL, &ex, len), 0);
	CU_ASSERT_EQUAL(((uint8_t *)&ex)[len], GUARD);
	CU_ASSERT_EQUAL(verbs_get_ctx(ctx)->query_device_ex(ctx, NULL, &ex, 8), EINVAL);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void query_port__both_abis(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	const size_t old_len = offsetof(struct ibv_port_attr, flags);
	struct ibv_port_attr now, old;

	CU_ASSERT_EQUAL(___ibv_query_port(ctx, 1, &now), 0);
	CU_ASSERT_EQUAL(now.link_layer, IBV_LINK_LAYER_ETHERNET);
	CU_ASSERT_EQUAL(now.gid_tbl_len, UR_NET_GIDS);
	CU_ASSERT_EQUAL(now.active_mtu, IBV_MTU_4096); /* known of net_null before it is open */
	CU_ASSERT_EQUAL(now.flags, IBV_QPF_GRH_REQUIRED);
	memset(&old, GUARD, sizeof(old));
	CU_ASSERT_EQUAL(ibv_query_port(ctx, 1, (struct _compat_ibv_port_attr *)&old), 0);
	CU_ASSERT_EQUAL(memcmp(&now, &old, old_len), 0);
	CU_ASSERT_EQUAL(((uint8_t *)&old)[old_len], GUARD);
	CU_ASSERT_EQUAL(___ibv_query_port(ctx, 0, &now), EINVAL);
	CU_ASSERT_EQUAL(___ibv_query_port(ctx, 2, &now), EINVAL);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void query_gid__table(void)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_gid_entry e, all[4];
	enum uv_gid_type_sysfs type;
	union ibv_gid gid;

	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, 0, &gid), 0);
	CU_ASSERT_EQUAL(memcmp(gid.raw, v4, 16), 0);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, UR_NET_GIDS - 1, &gid), 0);
	CU_ASSERT_EQUAL(gid.global.subnet_prefix | gid.global.interface_id, 0);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, UR_NET_GIDS, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 2, 0, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, -1, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_gid_ex(ctx, 1, 0, &e, 0), 0);
	CU_ASSERT_EQUAL(e.gid_type, IBV_GID_TYPE_ROCE_V2);
	CU_ASSERT_EQUAL(memcmp(e.gid.raw, v4, 16), 0);
	CU_ASSERT_EQUAL(ibv_query_gid_ex(ctx, 1, UR_NET_GIDS - 1, &e, 0), ENODATA);
	CU_ASSERT_EQUAL(ibv_query_gid_ex(ctx, 1, UR_NET_GIDS, &e, 0), EINVAL);
	CU_ASSERT_EQUAL(ibv_query_gid_table(ctx, all, 4, 0), 2);
	CU_ASSERT_EQUAL(all[1].gid_index, 1);
	CU_ASSERT_EQUAL(ibv_query_gid_table(ctx, all, 2, 0), 2);
	CU_ASSERT_EQUAL(ibv_query_gid_table(ctx, all, 1, 0), -EINVAL);
	CU_ASSERT_EQUAL(ibv_query_gid_type(ctx, 1, 0, &type), 0);
	CU_ASSERT_EQUAL(type, UV_GID_TYPE_SYSFS_ROCE_V2);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void query_pkey__default_alone(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	uint16_t pkey = 0;

	CU_ASSERT_EQUAL(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
	CU_ASSERT_EQUAL(pkey, 0xffff);
	CU_ASSERT_EQUAL(ibv_query_pkey(ctx, 1, 1, &pkey), -1);
	CU_ASSERT_EQUAL(ibv_get_pkey_index(ctx, 1, 0xffff), 0);
	CU_ASSERT_EQUAL(ibv_get_pkey_index(ctx, 1, htons(0x8001)), -1);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* --- protection domains and memory regions --- */

static void dealloc_pd__busy(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* As many as there may be come and go, and none of them looks at the others. */
static void dealloc_pd__all_of_them(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr a;
	struct ibv_pd **pds;
	clock_t start;
	int n = 0;

	CU_ASSERT_EQUAL_FATAL(ibv_query_device(ctx, &a), 0);
	pds = calloc((size_t)a.max_pd, sizeof(*pds));
	start = clock();
	while (n < a.max_pd && (pds[n] = ibv_alloc_pd(ctx)))
		n++;
	CU_ASSERT_TRUE(n >= a.max_pd - 8); /* the device's own, and those of other tests */
	CU_ASSERT_TRUE(n == a.max_pd || errno == ENOMEM);
	while (n)
		CU_ASSERT_EQUAL_FATAL(ibv_dealloc_pd(pds[--n]), 0);
	CU_ASSERT_TRUE((double)(clock() - start) / CLOCKS_PER_SEC < 2);
	free(pds);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void reg_mr__cases(void)
{
	static char buf[4096];
	const struct {
		void *addr;
		size_t length;
		unsigned access;
		int err;
	} cases[] = {
		{buf, sizeof(buf), 0, 0},
		{buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC, 0},
		{buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, 0},
		{buf, 0, IBV_ACCESS_LOCAL_WRITE, 0},
		{buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{buf, SIZE_MAX, 0, EINVAL},
		{buf, sizeof(buf), IBV_ACCESS_ON_DEMAND, 0},
		{NULL, 4096, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE, 0},     /* nothing there, yet */
		{NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE, 0}, /* implicit: everything */
		{buf, sizeof(buf), IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED, 0},
		{buf, sizeof(buf), UR_ACCESS_FLUSH, 0},
		{buf, sizeof(buf), IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
		{buf, sizeof(buf), 1u << 10, EOPNOTSUPP},
		{NULL, 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT},
	};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr_iova2(pd, cases[i].addr, cases[i].length, (uintptr_t)cases[i].addr, cases[i].access);
		CU_ASSERT_EQUAL(mr ? 0 : errno, cases[i].err);
		if (!mr)
			continue;
		CU_ASSERT_PTR_EQUAL(mr->addr, cases[i].addr);
		CU_ASSERT_EQUAL(mr->length, cases[i].length);
		CU_ASSERT_PTR_EQUAL(mr->pd, pd);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* A hole in the middle of a range that is larger than one look at the page table. */
static void reg_mr__hole(void)
{
	const size_t len = 64u << 20;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	CU_ASSERT_NOT_EQUAL_FATAL(p, MAP_FAILED);
	mr = ibv_reg_mr(pd, p, len, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(munmap(p + len / 2 + (1 << 20), 4096), 0);
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_reg_mr(pd, p, len, IBV_ACCESS_LOCAL_WRITE));
	CU_ASSERT_EQUAL(errno, EFAULT);
	munmap(p, len);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* --- completion queues --- */

static void create_cq__bounds(void)
{
	static const struct {
		int cqe, vector, err;
	} cases[] = {
		{1, 0, 0},       {UR_MAX_CQE, 0, 0}, {0, 0, EINVAL}, {-1, 0, EINVAL}, {UR_MAX_CQE + 1, 0, EINVAL},
		{1, -1, EINVAL}, {1, 1, EINVAL},
	};
	struct ibv_context *ctx = verbs_fixture_open();

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_cq *cq;

		errno = 0;
		cq = ibv_create_cq(ctx, cases[i].cqe, NULL, NULL, cases[i].vector);
		CU_ASSERT_EQUAL(cq ? 0 : errno, cases[i].err);
		if (!cq)
			continue;
		CU_ASSERT_TRUE(cq->cqe >= cases[i].cqe);
		CU_ASSERT_EQUAL(ibv_destroy_cq(cq), 0);
	}
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void poll_cq__flushed_receives_in_order(void)
{
	struct verbs_fixture f;
	struct ibv_wc wc[8];

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 8, wc), 0);
	verbs_fixture_post(f.qp, 10);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 8, wc), 0);
	verbs_fixture_flush(f.qp);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 8, wc), 8);
	for (unsigned i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(wc[i].wr_id, i);
		CU_ASSERT_EQUAL(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(wc[i].qp_num, f.qp->qp_num);
	}
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 8, wc), 2);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 8, wc), 0);
	verbs_fixture_unmake(&f);
}

/* Resetting or destroying a QP takes its completions out of the CQ and leaves the others. */
static void poll_cq__reset_takes_completions_along(void)
{
	struct verbs_fixture f;
	struct ibv_wc wc[16];
	struct ibv_qp *other;

	verbs_fixture_make(&f);
	other = verbs_fixture_qp(f.pd, f.cq, 8);
	verbs_fixture_post(f.qp, 3);
	verbs_fixture_post(other, 2);
	verbs_fixture_flush(f.qp);
	verbs_fixture_flush(other);
	verbs_fixture_state(f.qp, IBV_QPS_RESET);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 16, wc), 2);
	CU_ASSERT_EQUAL(wc[0].qp_num, other->qp_num);
	verbs_fixture_to_init(f.qp);
	verbs_fixture_post(f.qp, 3);
	verbs_fixture_flush(f.qp);
	CU_ASSERT_EQUAL(ibv_destroy_qp(other), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 16, wc), 3);
	verbs_fixture_unmake(&f);
}

/* --- queue pairs --- */

static void create_qp__cases(void)
{
	const struct {
		enum ibv_qp_type type;
		bool no_cq;
		struct ibv_qp_cap cap;
		int err;
	} cases[] = {
		{IBV_QPT_RC, false, {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}, 0},
		{IBV_QPT_RC, false, {.max_send_wr = UR_MAX_QP_WR, .max_send_sge = UR_MAX_SGE, .max_inline_data = UR_MAX_INLINE}, 0},
		{IBV_QPT_RC, false, {.max_send_wr = UR_MAX_QP_WR + 1}, EINVAL},
		{IBV_QPT_RC, false, {.max_recv_sge = UR_MAX_SGE + 1}, EINVAL},
		{IBV_QPT_RC, false, {.max_inline_data = UR_MAX_INLINE + 1}, EINVAL},
		{IBV_QPT_RC, true, {.max_send_wr = 1}, EINVAL},
		{IBV_QPT_UC, false, {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}, 0},
		{IBV_QPT_UD, false, {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}, 0},
		{IBV_QPT_UD, false, {.max_send_wr = UR_MAX_QP_WR + 1}, EINVAL},
		{IBV_QPT_UC, true, {.max_send_wr = 1}, EINVAL},
		{IBV_QPT_RAW_PACKET, false, {.max_send_wr = 1}, EOPNOTSUPP},
		{IBV_QPT_XRC_SEND, false, {.max_send_wr = 1}, 0},
		{IBV_QPT_XRC_RECV, false, {.max_send_wr = 1}, EINVAL}, /* it needs a domain */
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_qp_init_attr ia = {
			.send_cq = f.cq, .recv_cq = cases[i].no_cq ? NULL : f.cq, .qp_type = cases[i].type, .cap = cases[i].cap};
		struct ibv_qp *qp;

		errno = 0;
		qp = ibv_create_qp(f.pd, &ia);
		CU_ASSERT_EQUAL(qp ? 0 : errno, cases[i].err);
		if (!qp)
			continue;
		CU_ASSERT_TRUE(ia.cap.max_send_wr >= cases[i].cap.max_send_wr && ia.cap.max_inline_data >= cases[i].cap.max_inline_data);
		CU_ASSERT_EQUAL(qp->state, IBV_QPS_RESET);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	}
	verbs_fixture_unmake(&f);
}

static void create_qp_ex__needs_its_pd_and_knows_its_flags(void)
{
	struct verbs_fixture f;
	struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	ex.send_cq = ex.recv_cq = f.cq;
	ex.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(f.ctx, &ex));
	CU_ASSERT_EQUAL(errno, EINVAL);
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	ex.pd = f.pd;
	ex.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(f.ctx, &ex));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	ex.create_flags = 0;
	qp = ibv_create_qp_ex(f.ctx, &ex);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_PTR_NULL(ibv_qp_to_qp_ex(qp)); /* made without send_ops_flags */
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

static void query_qp__tells_state_and_capacities(void)
{
	struct ibv_qp_init_attr ia;
	struct verbs_fixture f;
	struct ibv_qp_attr a;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_query_qp(f.qp, &a, IBV_QP_STATE, &ia), 0);
	CU_ASSERT_EQUAL(a.qp_state, IBV_QPS_INIT);
	CU_ASSERT_EQUAL(a.port_num, 1);
	CU_ASSERT_PTR_EQUAL(ia.send_cq, f.cq);
	CU_ASSERT_EQUAL(ia.qp_type, IBV_QPT_RC);
	CU_ASSERT_TRUE(ia.cap.max_recv_wr >= 16);
	verbs_fixture_unmake(&f);
}

static void modify_qp__refusals(void)
{
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS}, mtu = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_modify_qp(f.qp, &rts, IBV_QP_STATE), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(f.qp, &mtu, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL); /* more than the port carries */
	CU_ASSERT_EQUAL(f.qp->state, IBV_QPS_INIT);
	verbs_fixture_unmake(&f);
}

static void destroy__busy(void)
{
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f.cq), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(f.ch), EBUSY);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(f.pd), EBUSY);
	verbs_fixture_unmake(&f);
}

/* --- fork --- */

/* Which call went wrong in the child, or 0. No assertions: the child must not write the parent's report. */
static int child_checks(struct verbs_fixture *f)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad = NULL;
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_wc wc;
	int n = 0;

	if (ibv_alloc_pd(f->ctx) || errno != EIO)
		return 1;
	if (ibv_destroy_qp(f->qp) != EIO || ibv_destroy_cq(f->cq) != EIO)
		return 2;
	if (ibv_post_recv(f->qp, &wr, &bad) != EIO || bad != &wr)
		return 3;
	if (ibv_poll_cq(f->cq, 1, &wc) != 0 || ibv_req_notify_cq(f->cq, 0) != EIO)
		return 4;
	list = ibv_get_device_list(&n);
	if (n != 1 || list[0] == f->ctx->device)
		return 5;
	ctx = ibv_open_device(list[0]);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd || ur_verbs_context(0) == NULL || ur_verbs_engine(ctx) == ur_verbs_engine(f->ctx))
		return 6;
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return 0;
}

static void fork__child_has_its_own_engine(void)
{
	struct verbs_fixture f;
	int status = -1;
	pid_t pid;

	verbs_fixture_make(&f);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (!pid)
		_exit(child_checks(&f));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	verbs_fixture_post(f.qp, 1); /* the parent's objects took no harm */
	verbs_fixture_unmake(&f);
}

#define KEYS 8

/* The keys of regions that live for a moment each. */
static bool take_keys(struct ibv_pd *pd, uint32_t keys[KEYS])
{
	static uint8_t memory[64];

	for (unsigned i = 0; i < KEYS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);

		if (!mr)
			return false;
		keys[i] = mr->rkey;
		ibv_dereg_mr(mr);
	}
	return true;
}

static int child_tells_keys(int to)
{
	uint32_t keys[KEYS];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;

	return pd && take_keys(pd, keys) && write(to, keys, sizeof(keys)) == sizeof(keys) ? 0 : 1;
}

/* What the parent knows of its own numbers tells it nothing of the child's: neither those before the fork nor those after it. */
static void fork__child_has_its_own_random_numbers(void)
{
	uint32_t before[KEYS], after[KEYS], child[KEYS];
	struct verbs_fixture f;
	int fd[2], status = -1;
	pid_t pid;

	verbs_fixture_make(&f);
	CU_ASSERT_FATAL(take_keys(f.pd, before) && pipe(fd) == 0);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (!pid)
		_exit(child_tells_keys(fd[1]));
	CU_ASSERT_EQUAL(read(fd[0], child, sizeof(child)), (ssize_t)sizeof(child));
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_TRUE(take_keys(f.pd, after));
	for (unsigned i = 0; i < KEYS * KEYS; i++) {
		CU_ASSERT_NOT_EQUAL(child[i / KEYS], before[i % KEYS]);
		CU_ASSERT_NOT_EQUAL(child[i / KEYS], after[i % KEYS]);
	}
	close(fd[0]);
	close(fd[1]);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_objects(void)
{
	CU_pSuite s = CU_add_suite("verbs_objects", verbs_fixture_init, NULL);

	CU_add_test(s, "device_list__one_device", device_list__one_device);
	CU_add_test(s, "device_list__freed_while_open", device_list__freed_while_open);
	CU_add_test(s, "close_device__before_its_objects", close_device__before_its_objects);
	CU_add_test(s, "shared_context__is_one_and_has_a_pd", shared_context__is_one_and_has_a_pd);
	CU_add_test(s, "query_device__agrees_with_itself", query_device__agrees_with_itself);
	CU_add_test(s, "query_device_ex__respects_the_size", query_device_ex__respects_the_size);
	CU_add_test(s, "query_port__both_abis", query_port__both_abis);
	CU_add_test(s, "query_gid__table", query_gid__table);
	CU_add_test(s, "query_pkey__default_alone", query_pkey__default_alone);
	CU_add_test(s, "dealloc_pd__busy", dealloc_pd__busy);
	CU_add_test(s, "dealloc_pd__all_of_them", dealloc_pd__all_of_them);
	CU_add_test(s, "reg_mr__cases", reg_mr__cases);
	CU_add_test(s, "reg_mr__hole", reg_mr__hole);
	CU_add_test(s, "create_cq__bounds", create_cq__bounds);
	CU_add_test(s, "poll_cq__flushed_receives_in_order", poll_cq__flushed_receives_in_order);
	CU_add_test(s, "poll_cq__reset_takes_completions_along", poll_cq__reset_takes_completions_along);
	CU_add_test(s, "create_qp__cases", create_qp__cases);
	CU_add_test(s, "create_qp_ex__needs_its_pd_and_knows_its_flags", create_qp_ex__needs_its_pd_and_knows_its_flags);
	CU_add_test(s, "query_qp__tells_state_and_capacities", query_qp__tells_state_and_capacities);
	CU_add_test(s, "modify_qp__refusals", modify_qp__refusals);
	CU_add_test(s, "destroy__busy", destroy__busy);
	CU_add_test(s, "fork__child_has_its_own_engine", fork__child_has_its_own_engine);
	CU_add_test(s, "fork__child_has_its_own_random_numbers", fork__child_has_its_own_random_numbers);
}
