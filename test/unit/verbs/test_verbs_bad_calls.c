/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs: calls with arguments that their manual pages forbid, a row each, over all the calls that test_verbs_errno.c and the tests of
 * the single objects leave out; after each row the object is as it was.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "verbs/newer.h"
#include "verbs_fixture.h"

void ur_suite_verbs_bad_calls(void);

struct stage {
	struct verbs_fixture f;
	struct ibv_context *other; /* the same device, opened again: its objects are strangers */
	struct ibv_pd *other_pd;
	struct ibv_cq *other_cq;
	struct ibv_qp *ud;
	struct ibv_mr *mr, *plain; /* all rights, and no right at all */
	struct ibv_mw *mw;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_dm *dm;
};

static char memory[8192];

static struct ibv_ah_attr own_route(struct ibv_context *ctx)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};

	CU_ASSERT_EQUAL_FATAL(ibv_query_gid(ctx, 1, 0, &a.grh.dgid), 0);
	return a;
}

static void stage_make(struct stage *s)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_alloc_dm_attr da = {.length = 4096};
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 0}};
	struct ibv_ah_attr aa;

	verbs_fixture_make(&s->f);
	aa = own_route(s->f.ctx);
	s->other = verbs_fixture_open();
	s->other_pd = ibv_alloc_pd(s->other);
	s->other_cq = ibv_create_cq(s->other, 4, NULL, NULL, 0);
	ia.send_cq = ia.recv_cq = s->f.cq;
	s->ud = ibv_create_qp(s->f.pd, &ia);
	s->mr = ibv_reg_mr(s->f.pd, memory, sizeof(memory), all);
	s->plain = ibv_reg_mr(s->f.pd, memory, sizeof(memory), 0);
	s->mw = ibv_alloc_mw(s->f.pd, IBV_MW_TYPE_1);
	s->srq = ibv_create_srq(s->f.pd, &sa);
	s->ah = ibv_create_ah(s->f.pd, &aa);
	s->dm = ibv_alloc_dm(s->f.ctx, &da);
	CU_ASSERT_TRUE_FATAL(s->other_pd && s->other_cq && s->ud && s->mr && s->plain && s->mw && s->srq && s->ah && s->dm);
}

static void stage_unmake(struct stage *s)
{
	CU_ASSERT_EQUAL(ibv_free_dm(s->dm), 0);
	CU_ASSERT_EQUAL(ibv_destroy_ah(s->ah), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(s->srq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(s->mw), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(s->plain), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(s->mr), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(s->ud), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(s->other_cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(s->other_pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(s->other), 0);
	verbs_fixture_unmake(&s->f);
}

/* Of a call that makes something: its errno, or 0. */
#define MADE(call) (errno = 0, (call) ? 0 : errno)
/* Of one that returns -1 and sets errno. */
#define MINUS(call) (errno = 0, (call) == -1 ? errno : 0)

typedef int (*row_fn)(struct stage *s);

struct row {
	const char *what;
	row_fn call;
	int err;
};

#define ROW(name, expression)                                                                                                              \
	static int name(struct stage *s)                                                                                                   \
	{                                                                                                                                  \
		(void)s;                                                                                                                   \
		return expression;                                                                                                         \
	}

static void run(const struct row *rows, unsigned n)
{
	struct stage s;

	stage_make(&s);
	for (unsigned i = 0; i < n; i++) {
		int err = rows[i].call(&s);

		CU_ASSERT_EQUAL(err, rows[i].err);
		if (err != rows[i].err)
			printf("\n    %s: errno %d instead of %d", rows[i].what, err, rows[i].err);
	}
	stage_unmake(&s);
}

/* --- memory --- */

ROW(mr_rights, MADE(ibv_reg_mr(s->f.pd, memory, 64, IBV_ACCESS_REMOTE_WRITE)))
ROW(mr_atomic, MADE(ibv_reg_mr(s->f.pd, memory, 64, IBV_ACCESS_REMOTE_ATOMIC)))
ROW(mr_flags, MADE(ibv_reg_mr(s->f.pd, memory, 64, 1 << 19)))
ROW(mr_wraps, MADE(ibv_reg_mr(s->f.pd, memory, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE)))
ROW(mr_unmapped, MADE(ibv_reg_mr(s->f.pd, (void *)4096, 4096, IBV_ACCESS_LOCAL_WRITE)))
ROW(mr_iova_wraps, MADE(ibv_reg_mr_iova(s->f.pd, memory, 4096, UINT64_MAX - 5, IBV_ACCESS_LOCAL_WRITE)))
ROW(mr_dmabuf, MADE(ibv_reg_dmabuf_mr(s->f.pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE)))

static int rereg(struct stage *s, int flags, struct ibv_pd *pd, void *at, size_t n, int access)
{
	uint32_t lkey = s->mr->lkey;
	int err;

	errno = 0;
	err = ibv_rereg_mr(s->mr, flags, pd, at, n, access);
	CU_ASSERT_TRUE(s->mr->lkey == lkey && s->mr->pd == s->f.pd && s->mr->addr == memory && s->mr->length == sizeof(memory));
	return err == IBV_REREG_MR_ERR_INPUT ? errno : err;
}
ROW(rereg_nothing, rereg(s, 0, NULL, NULL, 0, 0))
ROW(rereg_flags, rereg(s, 1 << 6, NULL, NULL, 0, 0))
ROW(rereg_pd, rereg(s, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0))
ROW(rereg_stranger, rereg(s, IBV_REREG_MR_CHANGE_PD, s->other_pd, NULL, 0, 0))
ROW(rereg_nowhere, rereg(s, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 4096, 0))
ROW(rereg_unmapped, rereg(s, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 4096, 0))
ROW(rereg_rights, rereg(s, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE))
ROW(rereg_access, rereg(s, IBV_REREG_MR_CHANGE_PD, s->f.pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE))
ROW(rereg_unknown, rereg(s, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1 << 19))

ROW(mw_type, MADE(ibv_alloc_mw(s->f.pd, (enum ibv_mw_type)0)))
ROW(mw_type_high, MADE(ibv_alloc_mw(s->f.pd, (enum ibv_mw_type)3)))

static int bind(struct stage *s, struct ibv_mr *mr, uint64_t off, uint64_t n, unsigned access)
{
	struct ibv_mw_bind b = {
		.bind_info = {.mr = mr, .addr = mr ? (uintptr_t)memory + off : off, .length = n, .mw_access_flags = access}};
	uint32_t rkey = s->mw->rkey;
	int err = ibv_bind_mw(s->f.qp, s->mw, &b);

	CU_ASSERT_EQUAL(s->mw->rkey, rkey);
	return err;
}
ROW(bind_nothing, bind(s, NULL, 8, 8, IBV_ACCESS_REMOTE_READ))
ROW(bind_too_early, bind(s, s->mr, 0, 64, IBV_ACCESS_REMOTE_READ))

/* Advice names a region that is on demand. */
static int advise(struct stage *s, uint32_t lkey, enum ibv_advise_mr_advice advice, uint32_t flags, uint32_t n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 64, .lkey = lkey};

	return ibv_advise_mr(s->f.pd, advice, flags, &sge, n);
}
ROW(advise_none, advise(s, s->mr->lkey, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, 0))
ROW(advise_flags, advise(s, s->mr->lkey, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, 1))
ROW(advise_what, advise(s, s->mr->lkey, (enum ibv_advise_mr_advice)99, 0, 1))
ROW(advise_pinned, advise(s, s->mr->lkey, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, 1))
ROW(advise_key, advise(s, s->mr->lkey + 1, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, 1))
ROW(advise_window, advise(s, s->mw->rkey, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, 1))

static int dm(struct stage *s, size_t n, uint32_t log_align, uint32_t mask)
{
	struct ibv_alloc_dm_attr a = {.length = n, .log_align_req = log_align, .comp_mask = mask};

	return MADE(ibv_alloc_dm(s->f.ctx, &a));
}
ROW(dm_empty, dm(s, 0, 0, 0))
ROW(dm_large, dm(s, UV_MAX_DM + 1ul, 0, 0))
ROW(dm_align, dm(s, 64, 60, 0))
ROW(dm_mask, dm(s, 64, 0, 1))
ROW(dm_beyond, ibv_memcpy_to_dm(s->dm, 4096, memory, 4))
ROW(dm_wraps, ibv_memcpy_to_dm(s->dm, 8, memory, SIZE_MAX - 3))
ROW(dm_from_beyond, ibv_memcpy_from_dm(memory, s->dm, 4092, 8))
ROW(dm_odd, ibv_memcpy_to_dm(s->dm, 0, memory, 3))
ROW(dm_mr_base, MADE(ibv_reg_dm_mr(s->f.pd, s->dm, 0, 64, IBV_ACCESS_LOCAL_WRITE)))
ROW(dm_mr_beyond, MADE(ibv_reg_dm_mr(s->f.pd, s->dm, 4096, 64, IBV_ACCESS_ZERO_BASED)))
ROW(dm_mr_stranger, MADE(ibv_reg_dm_mr(s->other_pd, s->dm, 0, 64, IBV_ACCESS_ZERO_BASED)))

static void memory__table(void)
{
	static const struct row rows[] = {
		{"ibv_reg_mr: remote write without local", mr_rights, EINVAL},
		{"ibv_reg_mr: remote atomics without local write", mr_atomic, EINVAL},
		{"ibv_reg_mr: unknown flag", mr_flags, EOPNOTSUPP},
		{"ibv_reg_mr: past the end of memory", mr_wraps, EINVAL},
		{"ibv_reg_mr: not mapped", mr_unmapped, EFAULT},
		{"ibv_reg_mr_iova: past the end of addresses", mr_iova_wraps, EINVAL},
		{"ibv_reg_dmabuf_mr", mr_dmabuf, EOPNOTSUPP},
		{"ibv_rereg_mr: no flag", rereg_nothing, EINVAL},
		{"ibv_rereg_mr: unknown flag", rereg_flags, EINVAL},
		{"ibv_rereg_mr: no PD", rereg_pd, EINVAL},
		{"ibv_rereg_mr: PD of another context", rereg_stranger, EINVAL},
		{"ibv_rereg_mr: no address", rereg_nowhere, EINVAL},
		{"ibv_rereg_mr: not mapped", rereg_unmapped, EFAULT},
		{"ibv_rereg_mr: remote write without local", rereg_rights, EINVAL},
		{"ibv_rereg_mr: access not asked for", rereg_access, EINVAL},
		{"ibv_rereg_mr: unknown access", rereg_unknown, EOPNOTSUPP},
		{"ibv_alloc_mw: type 0", mw_type, EINVAL},
		{"ibv_alloc_mw: type 3", mw_type_high, EINVAL},
		{"ibv_bind_mw: an address of no MR", bind_nothing, EINVAL},
		{"ibv_bind_mw: before RTS", bind_too_early, EINVAL},
		{"ibv_advise_mr: no element", advise_none, EINVAL},
		{"ibv_advise_mr: unknown flag", advise_flags, EINVAL},
		{"ibv_advise_mr: unknown advice", advise_what, EOPNOTSUPP},
		{"ibv_advise_mr: region not on demand", advise_pinned, EINVAL},
		{"ibv_advise_mr: key of nothing", advise_key, ENOENT},
		{"ibv_advise_mr: key of a window", advise_window, ENOENT},
		{"ibv_alloc_dm: no byte", dm_empty, EINVAL},
		{"ibv_alloc_dm: more than there is", dm_large, ENOMEM},
		{"ibv_alloc_dm: alignment", dm_align, EINVAL},
		{"ibv_alloc_dm: mask", dm_mask, EINVAL},
		{"ibv_memcpy_to_dm: beyond", dm_beyond, EFAULT},
		{"ibv_memcpy_to_dm: length that wraps", dm_wraps, EFAULT},
		{"ibv_memcpy_from_dm: beyond", dm_from_beyond, EFAULT},
		{"ibv_memcpy_to_dm: odd length", dm_odd, EINVAL},
		{"ibv_reg_dm_mr: not zero based", dm_mr_base, EINVAL},
		{"ibv_reg_dm_mr: beyond", dm_mr_beyond, EINVAL},
		{"ibv_reg_dm_mr: PD of another context", dm_mr_stranger, EINVAL},
	};

	run(rows, ur_array_size(rows));
}

/* --- queues --- */

static int cq_ex(struct stage *s, uint32_t cqe, uint32_t vector, uint64_t wc_flags, uint32_t mask, uint32_t flags)
{
	struct ibv_cq_init_attr_ex a = {.cqe = cqe, .comp_vector = vector, .wc_flags = wc_flags, .comp_mask = mask, .flags = flags};

	return MADE(ibv_create_cq_ex(s->f.ctx, &a));
}
ROW(cq_none, MADE(ibv_create_cq(s->f.ctx, 0, NULL, NULL, 0)))
ROW(cq_negative, MADE(ibv_create_cq(s->f.ctx, -1, NULL, NULL, 0)))
ROW(cq_large, MADE(ibv_create_cq(s->f.ctx, UR_MAX_CQE + 1, NULL, NULL, 0)))
ROW(cq_vector, MADE(ibv_create_cq(s->f.ctx, 4, NULL, NULL, s->f.ctx->num_comp_vectors)))
ROW(cq_vector_negative, MADE(ibv_create_cq(s->f.ctx, 4, NULL, NULL, -1)))
ROW(cq_channel, MADE(ibv_create_cq(s->other, 4, NULL, s->f.ch, 0)))
ROW(cq_ex_none, cq_ex(s, 0, 0, 0, 0, 0))
ROW(cq_ex_vector, cq_ex(s, 4, 1, 0, 0, 0))
ROW(cq_ex_fields, cq_ex(s, 4, 0, 1ull << 40, 0, 0))
ROW(cq_ex_mask, cq_ex(s, 4, 0, 0, 1u << 20, 0))
ROW(cq_ex_flags, cq_ex(s, 4, 0, 0, IBV_CQ_INIT_ATTR_MASK_FLAGS, 1u << 20))
ROW(resize_none, ibv_resize_cq(s->f.cq, 0))
ROW(resize_large, ibv_resize_cq(s->f.cq, UR_MAX_CQE + 1))
ROW(modify_cq_mask, ibv_modify_cq(s->f.cq, &(struct ibv_modify_cq_attr){.attr_mask = 1u << 5}))

static int srq(struct stage *s, uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = wr, .max_sge = sge}};

	return MADE(ibv_create_srq(s->f.pd, &a));
}
ROW(srq_none, srq(s, 0, 1))
ROW(srq_large, srq(s, UR_MAX_SRQ_WR + 1, 1))
ROW(srq_sge, srq(s, 4, UR_MAX_SGE + 1))
ROW(srq_modify_mask, ibv_modify_srq(s->srq, &(struct ibv_srq_attr){.max_wr = 8}, 1 << 7))
ROW(srq_modify_limit, ibv_modify_srq(s->srq, &(struct ibv_srq_attr){.srq_limit = 1u << 20}, IBV_SRQ_LIMIT))
ROW(srq_modify_size, ibv_modify_srq(s->srq, &(struct ibv_srq_attr){.max_wr = UR_MAX_SRQ_WR + 1}, IBV_SRQ_MAX_WR))

static int srq_number(struct stage *s)
{
	uint32_t n;

	return ibv_get_srq_num(s->srq, &n);
}

static int post_srq(struct stage *s)
{
	struct ibv_recv_wr wr = {.num_sge = 2}, *bad = NULL;
	int err = ibv_post_srq_recv(s->srq, &wr, &bad);

	CU_ASSERT_PTR_EQUAL(bad, &wr);
	return err;
}

static int qp(struct stage *s, struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv, int type, struct ibv_srq *with)
{
	struct ibv_qp_init_attr a = {.send_cq = send, .recv_cq = recv, .srq = with, .cap = {1, 1, 1, 1, 0}};

	(void)s;
	a.qp_type = (enum ibv_qp_type)type;
	return MADE(ibv_create_qp(pd, &a));
}
ROW(qp_no_cqs, qp(s, s->f.pd, NULL, NULL, IBV_QPT_RC, NULL))
ROW(qp_no_recv_cq, qp(s, s->f.pd, s->f.cq, NULL, IBV_QPT_RC, NULL))
ROW(qp_strange_cq, qp(s, s->f.pd, s->f.cq, s->other_cq, IBV_QPT_RC, NULL))
ROW(qp_strange_pd, qp(s, s->other_pd, s->f.cq, s->f.cq, IBV_QPT_RC, NULL))
ROW(qp_strange_srq, qp(s, s->other_pd, s->other_cq, s->other_cq, IBV_QPT_RC, s->srq))

static int qp_without_pd(struct stage *s)
{
	struct ibv_qp_init_attr_ex a = {.send_cq = s->f.cq, .recv_cq = s->f.cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	return MADE(ibv_create_qp_ex(s->f.ctx, &a));
}

static int send_on(struct ibv_qp *qp, enum ibv_wr_opcode op)
{
	struct ibv_send_wr wr = {.opcode = op}, *bad = NULL;
	int err = ibv_post_send(qp, &wr, &bad);

	CU_ASSERT_PTR_EQUAL(bad, &wr);
	return err;
}
ROW(send_early, send_on(s->f.qp, IBV_WR_SEND))
ROW(send_reset, send_on(s->ud, IBV_WR_SEND))

static int recv_reset(struct stage *s)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad = NULL;

	return ibv_post_recv(s->ud, &wr, &bad);
}

static int poll_negative(struct stage *s)
{
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(ibv_poll_cq(s->f.cq, 0, &wc), 0);
	return ibv_poll_cq(s->f.cq, 1, &wc);
}

static void queues__table(void)
{
	static const struct row rows[] = {
		{"ibv_create_cq: no entry", cq_none, EINVAL},
		{"ibv_create_cq: negative", cq_negative, EINVAL},
		{"ibv_create_cq: too many", cq_large, EINVAL},
		{"ibv_create_cq: vector that is not there", cq_vector, EINVAL},
		{"ibv_create_cq: negative vector", cq_vector_negative, EINVAL},
		{"ibv_create_cq: channel of another context", cq_channel, EBADF},
		{"ibv_create_cq_ex: no entry", cq_ex_none, EINVAL},
		{"ibv_create_cq_ex: vector", cq_ex_vector, EINVAL},
		{"ibv_create_cq_ex: unknown field", cq_ex_fields, EOPNOTSUPP},
		{"ibv_create_cq_ex: mask", cq_ex_mask, EOPNOTSUPP},
		{"ibv_create_cq_ex: flag", cq_ex_flags, EOPNOTSUPP},
		{"ibv_resize_cq: no entry", resize_none, EINVAL},
		{"ibv_resize_cq: too many", resize_large, EINVAL},
		{"ibv_modify_cq: mask", modify_cq_mask, EINVAL},
		{"ibv_create_srq: no request", srq_none, EINVAL},
		{"ibv_create_srq: too many", srq_large, EINVAL},
		{"ibv_create_srq: elements", srq_sge, EINVAL},
		{"ibv_modify_srq: mask", srq_modify_mask, EINVAL},
		{"ibv_modify_srq: limit above its size", srq_modify_limit, EINVAL},
		{"ibv_modify_srq: too large", srq_modify_size, EINVAL},
		{"ibv_get_srq_num: of a basic one", srq_number, EINVAL},
		{"ibv_post_srq_recv: more elements than it takes", post_srq, EINVAL},
		{"ibv_create_qp: no CQ", qp_no_cqs, EINVAL},
		{"ibv_create_qp: no receive CQ", qp_no_recv_cq, EINVAL},
		{"ibv_create_qp: CQ of another context", qp_strange_cq, EINVAL},
		{"ibv_create_qp: PD of another context", qp_strange_pd, EINVAL},
		{"ibv_create_qp: SRQ of another context", qp_strange_srq, EINVAL},
		{"ibv_create_qp_ex: no PD", qp_without_pd, EINVAL},
		{"ibv_post_send: before RTS", send_early, EINVAL},
		{"ibv_post_send: in RESET", send_reset, EINVAL},
		{"ibv_post_recv: in RESET", recv_reset, EINVAL},
		{"ibv_poll_cq: nothing", poll_negative, 0},
	};

	run(rows, ur_array_size(rows));
}

/* --- addresses and tables of the port --- */

static int ah(struct stage *s, uint8_t port, uint8_t index, bool global, uint8_t first)
{
	struct ibv_ah_attr a = own_route(s->f.ctx);

	a.port_num = port;
	a.is_global = global;
	a.grh.sgid_index = index;
	a.dlid = global ? 0 : 7;
	if (first)
		a.grh.dgid.raw[0] = first;
	return MADE(ibv_create_ah(s->f.pd, &a));
}
ROW(ah_port, ah(s, 2, 0, true, 0))
ROW(ah_index, ah(s, 1, 255, true, 0))
ROW(ah_lid, ah(s, 1, 0, false, 0))

static int ah_wc(struct stage *s, uint8_t port, unsigned flags)
{
	struct ibv_wc wc = {.wc_flags = flags};
	struct ibv_grh grh;
	struct ibv_ah_attr a;

	memset(&grh, 0xee, sizeof(grh));
	CU_ASSERT_PTR_NULL(ibv_create_ah_from_wc(s->f.pd, &wc, &grh, port));
	return MINUS(ibv_init_ah_from_wc(s->f.ctx, port, &wc, &grh, &a));
}
ROW(ah_wc_port, ah_wc(s, 0, IBV_WC_GRH))
ROW(ah_wc_no_grh, ah_wc(s, 1, 0))
ROW(ah_wc_stranger, ah_wc(s, 1, IBV_WC_GRH))

static int attach(struct ibv_qp *qp, uint8_t first)
{
	union ibv_gid g = {.raw = {first, 0x0e, [15] = 9}};

	return ibv_attach_mcast(qp, &g, 0);
}
ROW(attach_rc, attach(s->f.qp, 0xff))
ROW(attach_unicast, attach(s->ud, 0x20))
ROW(detach_absent, ibv_detach_mcast(s->ud, &(union ibv_gid){.raw = {0xff, 0x0e, [15] = 9}}, 0))

static int port_query(struct stage *s, uint8_t port)
{
	struct ibv_port_attr a;

	return ibv_query_port(s->f.ctx, port, (struct _compat_ibv_port_attr *)&a);
}
ROW(port_0, port_query(s, 0))
ROW(port_2, port_query(s, 2))

static uint64_t port_speed;

ROW(port_speed_0, ibv_query_port_speed(s->f.ctx, 0, &port_speed))
ROW(port_speed_2, ibv_query_port_speed(s->f.ctx, 2, &port_speed))

static union ibv_gid gid;
static __be16 pkey;
ROW(gid_port, MINUS(ibv_query_gid(s->f.ctx, 2, 0, &gid)))
ROW(gid_negative, MINUS(ibv_query_gid(s->f.ctx, 1, -1, &gid)))
ROW(gid_high, MINUS(ibv_query_gid(s->f.ctx, 1, UR_NET_GIDS, &gid)))
ROW(gid_last, MINUS(ibv_query_gid(s->f.ctx, 1, UR_NET_GIDS - 1, &gid)))
ROW(pkey_port, MINUS(ibv_query_pkey(s->f.ctx, 0, 0, &pkey)))
ROW(pkey_high, MINUS(ibv_query_pkey(s->f.ctx, 1, 1, &pkey)))
ROW(pkey_index_port, MINUS(ibv_get_pkey_index(s->f.ctx, 2, htobe16(0xffff))))
ROW(pkey_index_none, MINUS(ibv_get_pkey_index(s->f.ctx, 1, htobe16(0x1234))))

static int gid_ex(struct stage *s, uint32_t port, uint32_t index, uint32_t flags)
{
	struct ibv_gid_entry e;

	return ibv_query_gid_ex(s->f.ctx, port, index, &e, flags);
}
ROW(gid_ex_port, gid_ex(s, 0, 0, 0))
ROW(gid_ex_high, gid_ex(s, 1, UR_NET_GIDS, 0))
ROW(gid_ex_empty, gid_ex(s, 1, UR_NET_GIDS - 1, 0))
ROW(gid_ex_flags, gid_ex(s, 1, 0, 1))

static int gid_table(struct stage *s, size_t max, uint32_t flags)
{
	struct ibv_gid_entry e[UR_NET_GIDS];
	ssize_t n = ibv_query_gid_table(s->f.ctx, e, max, flags);

	return n < 0 ? (int)-n : 0;
}
ROW(table_small, gid_table(s, 1, 0))
ROW(table_flags, gid_table(s, UR_NET_GIDS, 1))

static void port__table(void)
{
	static const struct row rows[] = {
		{"ibv_create_ah: port", ah_port, EINVAL},
		{"ibv_create_ah: GID index", ah_index, EINVAL},
		{"ibv_create_ah: a LID alone", ah_lid, EINVAL},
		{"ibv_init_ah_from_wc: port", ah_wc_port, EINVAL},
		{"ibv_init_ah_from_wc: no GRH", ah_wc_no_grh, EINVAL},
		{"ibv_init_ah_from_wc: not to us", ah_wc_stranger, EADDRNOTAVAIL},
		{"ibv_attach_mcast: RC", attach_rc, EINVAL},
		{"ibv_attach_mcast: no group", attach_unicast, EINVAL},
		{"ibv_detach_mcast: not attached", detach_absent, EINVAL},
		{"ibv_query_port: 0", port_0, EINVAL},
		{"ibv_query_port: 2", port_2, EINVAL},
		{"ibv_query_port_speed: 0", port_speed_0, EINVAL},
		{"ibv_query_port_speed: 2", port_speed_2, EINVAL},
		{"ibv_query_gid: port", gid_port, EINVAL},
		{"ibv_query_gid: negative", gid_negative, EINVAL},
		{"ibv_query_gid: past the table", gid_high, EINVAL},
		{"ibv_query_gid: the last", gid_last, 0},
		{"ibv_query_pkey: port", pkey_port, EINVAL},
		{"ibv_query_pkey: past the table", pkey_high, EINVAL},
		{"ibv_get_pkey_index: port", pkey_index_port, EINVAL},
		{"ibv_get_pkey_index: another key", pkey_index_none, EINVAL},
		{"ibv_query_gid_ex: port", gid_ex_port, EINVAL},
		{"ibv_query_gid_ex: past the table", gid_ex_high, EINVAL},
		{"ibv_query_gid_ex: empty entry", gid_ex_empty, ENODATA},
		{"ibv_query_gid_ex: flags", gid_ex_flags, EOPNOTSUPP},
		{"ibv_query_gid_table: too small", table_small, EINVAL},
		{"ibv_query_gid_table: flags", table_flags, EOPNOTSUPP},
	};

	run(rows, ur_array_size(rows));
}

/* What query_port says of tables is how far the other queries go. */
static void query_port__tables_are_as_long_as_it_says(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_port_attr a;
	uint64_t speed = 0;

	CU_ASSERT_EQUAL_FATAL(uv_query_port(ctx, 1, &a, sizeof(a)), 0);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, a.gid_tbl_len - 1, &gid), 0);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, a.gid_tbl_len, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_pkey(ctx, 1, a.pkey_tbl_len - 1, &pkey), 0);
	CU_ASSERT_EQUAL(ibv_query_pkey(ctx, 1, a.pkey_tbl_len, &pkey), -1);
	CU_ASSERT_EQUAL(ibv_get_pkey_index(ctx, 1, pkey), 0);
	CU_ASSERT_EQUAL(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	CU_ASSERT_TRUE(a.flags & IBV_QPF_GRH_REQUIRED);
	CU_ASSERT_TRUE(a.active_speed && a.active_width && a.active_mtu <= a.max_mtu);
	CU_ASSERT_EQUAL(ibv_query_port_speed(ctx, 1, &speed), 0);
	CU_ASSERT_TRUE(a.active_width == 1 && a.active_speed == 1 && speed == 25); /* 2.5 Gbit/s, since the driver says nothing */
	CU_ASSERT_EQUAL(a.max_msg_sz, UR_MAX_MSG);
	CU_ASSERT_TRUE(!a.lid && !a.sm_lid && !a.lmc && !a.sm_sl); /* there is no subnet manager */
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_bad_calls(void)
{
	CU_pSuite s = CU_add_suite("verbs_bad_calls", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, memory__table);
	CU_ADD_TEST(s, queues__table);
	CU_ADD_TEST(s, port__table);
	CU_ADD_TEST(s, query_port__tables_are_as_long_as_it_says);
}
