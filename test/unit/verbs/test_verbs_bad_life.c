/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs: ends of objects that come too early, twice, from two threads at once, or not at all before the context's. (lib/verbs/live.c:
 * which handles are alive.)
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

void ur_suite_verbs_bad_life(void);

/* --- one object of each kind, and what keeps it --- */

enum kind { PD, MR, MW, AH, CHANNEL, CQ, CQ_EX, QP, SRQ, XRCD, TD, PARENT, DM, DM_MR, IMPORTED_PD, NULL_MR, KINDS };

static const char *const names[] = {"PD",  "MR",   "MW", "AH",     "channel", "CQ",   "extended CQ", "QP",
				    "SRQ", "XRCD", "TD", "parent", "DM",      "DM's", "imported PD", "null MR"};

struct world { /* what objects are made in */
	struct verbs_fixture f;
	struct ibv_context *twin;
	struct ibv_pd *pd;
	struct ibv_dm *dm;
};

static char memory[4096];

static void world_make(struct world *w)
{
	struct ibv_alloc_dm_attr a = {.length = 4096};

	verbs_fixture_make(&w->f);
	w->twin = ibv_import_device(fcntl(w->f.ctx->cmd_fd, F_DUPFD_CLOEXEC, 0));
	w->pd = ibv_alloc_pd(w->f.ctx);
	w->dm = ibv_alloc_dm(w->f.ctx, &a);
	CU_ASSERT_TRUE_FATAL(w->twin && w->pd && w->dm);
}

static void world_unmake(struct world *w)
{
	CU_ASSERT_EQUAL(ibv_free_dm(w->dm), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(w->pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(w->twin), 0);
	verbs_fixture_unmake(&w->f);
}

static struct ibv_ah *make_ah(struct ibv_pd *pd)
{
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
	union ibv_gid own;

	CU_ASSERT_EQUAL_FATAL(ibv_query_gid(pd->context, 1, 0, &own), 0);
	a.grh.dgid = own;
	return ibv_create_ah(pd, &a);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr ia = {.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	return ibv_create_qp(pd, &ia);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = 4, .max_sge = 1}};

	return ibv_create_srq(pd, &a);
}

static void *make(struct world *w, enum kind k)
{
	struct ibv_context *ctx = w->f.ctx;
	struct ibv_cq_init_attr_ex cq = {.cqe = 4};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = w->pd};
	struct ibv_alloc_dm_attr dm = {.length = 64};

	switch (k) {
	case PD: return ibv_alloc_pd(ctx);
	case MR: return ibv_reg_mr(w->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	case MW: return ibv_alloc_mw(w->pd, IBV_MW_TYPE_1);
	case AH: return make_ah(w->pd);
	case CHANNEL: return ibv_create_comp_channel(ctx);
	case CQ: return ibv_create_cq(ctx, 4, NULL, NULL, 0);
	case CQ_EX: return ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &cq));
	case QP: return make_qp(w->pd, w->f.cq, NULL);
	case SRQ: return make_srq(w->pd);
	case XRCD: return ibv_open_xrcd(ctx, &xrcd);
	case TD: return ibv_alloc_td(ctx, &td);
	case PARENT: return ibv_alloc_parent_domain(ctx, &parent);
	case DM: return ibv_alloc_dm(ctx, &dm);
	case DM_MR: return ibv_reg_dm_mr(w->pd, w->dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	case IMPORTED_PD: return ibv_import_pd(w->twin, w->pd->handle);
	case NULL_MR: return ibv_alloc_null_mr(w->pd);
	case KINDS: break;
	}
	return NULL;
}

static int end(enum kind k, void *o)
{
	switch (k) {
	case PD:
	case PARENT: return ibv_dealloc_pd(o);
	case MR:
	case NULL_MR:
	case DM_MR: return ibv_dereg_mr(o);
	case MW: return uv_dealloc_mw(o); /* ibv_dealloc_mw follows the pointer before it calls us */
	case AH: return ibv_destroy_ah(o);
	case CHANNEL: return ibv_destroy_comp_channel(o);
	case CQ:
	case CQ_EX: return ibv_destroy_cq(o);
	case QP: return ibv_destroy_qp(o);
	case SRQ: return ibv_destroy_srq(o);
	case XRCD: return uv_close_xrcd(o);
	case TD: return uv_dealloc_td(o);
	case DM: return uv_free_dm(o);
	case IMPORTED_PD: ibv_unimport_pd(o); return 0;
	case KINDS: break;
	}
	return -1;
}

/* --- twice --- */

static void destroy__twice(void)
{
	struct world w;

	world_make(&w);
	for (enum kind k = 0; k < KINDS; k++) {
		void *o = make(&w, k);
		int again;

		CU_ASSERT_PTR_NOT_NULL_FATAL(o);
		CU_ASSERT_EQUAL(end(k, o), 0);
		errno = 0;
		again = end(k, o);
		CU_ASSERT_EQUAL(again, k == IMPORTED_PD ? 0 : EINVAL);
		CU_ASSERT_EQUAL(errno, k == IMPORTED_PD ? 0 : EINVAL);
		if (again != (k == IMPORTED_PD ? 0 : EINVAL))
			printf("\n    %s: %d", names[k], again);
		CU_ASSERT_TRUE(k == IMPORTED_PD || end(k, NULL) == EINVAL);
		CU_ASSERT_TRUE(k == IMPORTED_PD || end(k, memory) == EINVAL);
	}
	world_unmake(&w);
}

static void close_device__twice(void)
{
	struct ibv_context *ctx = verbs_fixture_open();

	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
	errno = 0;
	CU_ASSERT_EQUAL(ibv_close_device(ctx), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
}

/* --- from several threads at once: one succeeds --- */

#define THREADS 3
#define ROUNDS 30

struct race {
	enum kind kind;
	void *object;
	pthread_barrier_t *start;
	int result;
};

static void *race(void *arg)
{
	struct race *r = arg;

	pthread_barrier_wait(r->start);
	r->result = end(r->kind, r->object);
	return NULL;
}

static void destroy__from_threads(void)
{
	pthread_barrier_t start;
	struct world w;

	world_make(&w);
	pthread_barrier_init(&start, NULL, THREADS);
	for (unsigned n = 0; n < ROUNDS * KINDS; n++) {
		enum kind k = n % KINDS;
		void *o = make(&w, k);
		struct race r[THREADS];
		pthread_t t[THREADS];
		unsigned won = 0;

		CU_ASSERT_PTR_NOT_NULL_FATAL(o);
		for (unsigned i = 0; i < THREADS; i++) {
			r[i] = (struct race){k, o, &start, -1};
			CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, race, &r[i]), 0);
		}
		for (unsigned i = 0; i < THREADS; i++) {
			pthread_join(t[i], NULL);
			won += r[i].result == 0;
			CU_ASSERT_TRUE(r[i].result == 0 || r[i].result == EINVAL || r[i].result == EBUSY);
		}
		CU_ASSERT_TRUE(won == 1 || k == IMPORTED_PD);
	}
	pthread_barrier_destroy(&start);
	world_unmake(&w);
}

/* While one thread waits for the acknowledgement of an event, the object is not another's to destroy. */
static void *destroy_cq(void *cq)
{
	return (void *)(intptr_t)ibv_destroy_cq(cq);
}

static int users_of(struct ibv_comp_channel *channel)
{
	struct uv_channel *ch = ur_container_of(channel, struct uv_channel, channel);
	int n;

	pthread_mutex_lock(&ch->evq.lock);
	n = channel->refcnt;
	pthread_mutex_unlock(&ch->evq.lock);
	return n;
}

static void destroy_cq__while_another_waits(void)
{
	struct verbs_fixture f;
	struct ibv_cq *cq, *got;
	struct ibv_qp *qp;
	void *context, *result;
	pthread_t t;

	verbs_fixture_make(&f);
	cq = ibv_create_cq(f.ctx, 4, NULL, f.ch, 0);
	qp = verbs_fixture_qp(f.pd, cq, 4);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(cq, 0), 0);
	verbs_fixture_post(qp, 1);
	verbs_fixture_flush(qp);
	CU_ASSERT_EQUAL_FATAL(ibv_get_cq_event(f.ch, &got, &context), 0);
	CU_ASSERT_PTR_EQUAL(got, cq);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, destroy_cq, cq), 0);
	while (users_of(f.ch) > 1)
		sched_yield(); /* until the thread has taken its CQ from the channel: f.cq alone is left */
	CU_ASSERT_EQUAL(ibv_destroy_cq(cq), EBUSY);
	ibv_ack_cq_events(cq, 1);
	pthread_join(t, &result);
	CU_ASSERT_PTR_NULL(result);
	CU_ASSERT_EQUAL(ibv_destroy_cq(cq), EINVAL);
	verbs_fixture_unmake(&f);
}

/* --- what is in use --- */

struct use {
	const char *what;
	enum kind kind; /* of what is kept */
	void *(*use)(struct world *w, void *object);
	int (*unuse)(void *user);
};

static void *mr_of_pd(struct world *w, void *o)
{
	(void)w;
	return ibv_reg_mr(o, memory, 64, 0);
}
static void *ah_of_pd(struct world *w, void *o)
{
	(void)w;
	return make_ah(o);
}
static void *mw_of_pd(struct world *w, void *o)
{
	(void)w;
	return ibv_alloc_mw(o, IBV_MW_TYPE_2);
}
static void *srq_of_pd(struct world *w, void *o)
{
	(void)w;
	return make_srq(o);
}
static void *qp_of_pd(struct world *w, void *o)
{
	return make_qp(o, w->f.cq, NULL);
}
static void *qp_of_cq(struct world *w, void *o)
{
	return make_qp(w->pd, o, NULL);
}
static void *qp_of_srq(struct world *w, void *o)
{
	return make_qp(w->pd, w->f.cq, o);
}
static void *null_of_pd(struct world *w, void *o)
{
	(void)w;
	return ibv_alloc_null_mr(o);
}
static void *cq_of_channel(struct world *w, void *o)
{
	return ibv_create_cq(w->f.ctx, 4, NULL, o, 0);
}
static void *mr_of_dm(struct world *w, void *o)
{
	return ibv_reg_dm_mr(w->pd, o, 0, 64, IBV_ACCESS_ZERO_BASED);
}

static void *parent_of_pd(struct world *w, void *o)
{
	struct ibv_parent_domain_init_attr a = {.pd = o};

	return ibv_alloc_parent_domain(w->f.ctx, &a);
}

static void *parent_of_td(struct world *w, void *o)
{
	struct ibv_parent_domain_init_attr a = {.pd = w->pd, .td = o};

	return ibv_alloc_parent_domain(w->f.ctx, &a);
}

static void *cq_of_parent(struct world *w, void *o)
{
	struct ibv_cq_init_attr_ex a = {.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = o};

	return ibv_cq_ex_to_cq(ibv_create_cq_ex(w->f.ctx, &a));
}

static void *srq_of_xrcd(struct world *w, void *o)
{
	struct ibv_srq_init_attr_ex a = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
						      IBV_SRQ_INIT_ATTR_CQ,
					 .srq_type = IBV_SRQT_XRC,
					 .pd = w->pd,
					 .xrcd = o,
					 .cq = w->f.cq,
					 .attr = {.max_wr = 4, .max_sge = 1}};

	return ibv_create_srq_ex(w->f.ctx, &a);
}

static void *qp_of_xrcd(struct world *w, void *o)
{
	struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = o};

	return ibv_create_qp_ex(w->f.ctx, &a);
}

static int end_mr(void *o)
{
	return ibv_dereg_mr(o);
}
static int end_ah(void *o)
{
	return ibv_destroy_ah(o);
}
static int end_mw(void *o)
{
	return ibv_dealloc_mw(o);
}
static int end_srq(void *o)
{
	return ibv_destroy_srq(o);
}
static int end_qp(void *o)
{
	return ibv_destroy_qp(o);
}
static int end_cq(void *o)
{
	return ibv_destroy_cq(o);
}
static int end_pd(void *o)
{
	return ibv_dealloc_pd(o);
}

static const struct use uses[] = {
	{"PD with an MR", PD, mr_of_pd, end_mr},
	{"PD with a null MR", PD, null_of_pd, end_mr},
	{"PD with an AH", PD, ah_of_pd, end_ah},
	{"PD with a window", PD, mw_of_pd, end_mw},
	{"PD with an SRQ", PD, srq_of_pd, end_srq},
	{"PD with a QP", PD, qp_of_pd, end_qp},
	{"PD with a parent domain", PD, parent_of_pd, end_pd},
	{"parent domain with an MR", PARENT, mr_of_pd, end_mr},
	{"parent domain with an AH", PARENT, ah_of_pd, end_ah},
	{"parent domain with a window", PARENT, mw_of_pd, end_mw},
	{"parent domain with a QP", PARENT, qp_of_pd, end_qp},
	{"parent domain with an SRQ", PARENT, srq_of_pd, end_srq},
	{"parent domain with a CQ", PARENT, cq_of_parent, end_cq},
	{"parent domain with a parent domain", PARENT, parent_of_pd, end_pd},
	{"thread domain with a parent domain", TD, parent_of_td, end_pd},
	{"CQ with a QP", CQ, qp_of_cq, end_qp},
	{"extended CQ with a QP", CQ_EX, qp_of_cq, end_qp},
	{"SRQ with a QP", SRQ, qp_of_srq, end_qp},
	{"XRCD with an SRQ", XRCD, srq_of_xrcd, end_srq},
	{"XRCD with a QP", XRCD, qp_of_xrcd, end_qp},
	{"channel with a CQ", CHANNEL, cq_of_channel, end_cq},
	{"device memory with an MR", DM, mr_of_dm, end_mr},
};

static void destroy__in_use(void)
{
	struct world w;

	world_make(&w);
	for (unsigned i = 0; i < ur_array_size(uses); i++) {
		const struct use *u = &uses[i];
		void *o = make(&w, u->kind), *user = o ? u->use(&w, o) : NULL;
		int busy, free_now;

		CU_ASSERT_PTR_NOT_NULL_FATAL(user);
		errno = 0;
		busy = end(u->kind, o);
		CU_ASSERT_EQUAL(busy, EBUSY);
		CU_ASSERT_EQUAL(errno, EBUSY);
		CU_ASSERT_EQUAL(end(u->kind, o), EBUSY); /* it stays as it was */
		CU_ASSERT_EQUAL(u->unuse(user), 0);
		free_now = end(u->kind, o);
		CU_ASSERT_EQUAL(free_now, 0);
		if (busy != EBUSY || free_now)
			printf("\n    %s: %d, then %d", u->what, busy, free_now);
	}
	world_unmake(&w);
}

/* --- a context that is closed first; what is left lives on, and may be destroyed in its turn --- */

static void close_device__with_objects(void)
{
	for (enum kind k = 0; k < KINDS; k++) {
		struct world w;
		void *o;

		if (k == IMPORTED_PD)
			continue;
		world_make(&w);
		o = make(&w, k);
		CU_ASSERT_PTR_NOT_NULL_FATAL(o);
		CU_ASSERT_EQUAL(ibv_close_device(w.f.ctx), 0);
		CU_ASSERT_EQUAL(end(k, o), 0);
		CU_ASSERT_EQUAL(ibv_free_dm(w.dm), 0);
		CU_ASSERT_EQUAL(ibv_dealloc_pd(w.pd), 0);
		CU_ASSERT_EQUAL(ibv_destroy_qp(w.f.qp), 0);
		CU_ASSERT_EQUAL(ibv_destroy_cq(w.f.cq), 0);
		CU_ASSERT_EQUAL(ibv_dealloc_pd(w.f.pd), 0);
		CU_ASSERT_EQUAL(ibv_close_device(w.twin), 0);
		CU_ASSERT_EQUAL(ibv_destroy_comp_channel(w.f.ch), 0); /* the last that kept it */
	}
}

/* A channel whose events nobody acknowledged goes once its CQ is gone, and that waits: so it says EBUSY until then. */
static void destroy_comp_channel__unread_events(void)
{
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
	verbs_fixture_post(f.qp, 4);
	verbs_fixture_flush(f.qp);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(f.ch), EBUSY);
	verbs_fixture_unmake(&f); /* the unread one goes with the CQ */
}

/* The parent's objects are not a child's to destroy, and stay as they are. */
static void destroy__in_a_child(void)
{
	struct world w;
	void *o[KINDS];
	int status;
	pid_t child;

	world_make(&w);
	for (enum kind k = 0; k < KINDS; k++)
		o[k] = k == IMPORTED_PD ? NULL : make(&w, k);
	child = fork();
	if (!child) {
		int bad = 0;

		for (enum kind k = 0; k < KINDS; k++)
			if (o[k] && k != TD && k != DM && k != PARENT && end(k, o[k]) != EIO)
				bad = 1 + (int)k;
		_exit(bad);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	for (enum kind k = KINDS; k-- > 0;)
		CU_ASSERT_TRUE(!o[k] || end(k, o[k]) == 0);
	world_unmake(&w);
}

void ur_suite_verbs_bad_life(void)
{
	CU_pSuite s = CU_add_suite("verbs_bad_life", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, destroy__twice);
	CU_ADD_TEST(s, close_device__twice);
	CU_ADD_TEST(s, destroy__from_threads);
	CU_ADD_TEST(s, destroy_cq__while_another_waits);
	CU_ADD_TEST(s, destroy__in_use);
	CU_ADD_TEST(s, close_device__with_objects);
	CU_ADD_TEST(s, destroy_comp_channel__unread_events);
	CU_ADD_TEST(s, destroy__in_a_child);
}
