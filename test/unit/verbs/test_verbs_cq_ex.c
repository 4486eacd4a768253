/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/objects/cq_ex.c, and what lib/verbs/objects/cq.c has for ibv_resize_cq(3) and ibv_modify_cq(3). */
#include <pthread.h>
#include <time.h>

#include "verbs_fixture.h"

void ur_suite_verbs_cq_ex(void);

static struct ibv_cq_ex *make(struct ibv_context *ctx, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex a = {.cqe = 31, .wc_flags = wc_flags, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = flags};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &a);

	CU_ASSERT_PTR_NOT_NULL_FATAL(cq);
	return cq;
}

/* `n` completions of one QP, which is handed back. */
static struct ibv_qp *flushed(struct verbs_fixture *f, struct ibv_cq *cq, unsigned n)
{
	struct ibv_qp *qp = verbs_fixture_qp(f->pd, cq, 32);

	verbs_fixture_post(qp, n);
	verbs_fixture_flush(qp);
	return qp;
}

static void create_cq_ex__cases(void)
{
	static const struct {
		struct ibv_cq_init_attr_ex a;
		int err;
	} cases[] = {
		{{.cqe = 1}, 0},
		{{.cqe = UR_MAX_CQE, .wc_flags = IBV_WC_STANDARD_FLAGS}, 0},
		{{.cqe = 1, .wc_flags = UV_WC_STAMPS}, 0},
		{{.cqe = 1, .comp_mask = 1, .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN}, 0},
		{{.cqe = 1, .flags = 1u << 20}, 0}, /* not in comp_mask */
		{{.cqe = 1, .comp_mask = 1, .flags = 1u << 2}, EOPNOTSUPP},
		{{.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD}, EINVAL}, /* and no parent domain */
		{{.cqe = 1, .comp_mask = 1u << 2}, EOPNOTSUPP},
		{{.cqe = 1, .wc_flags = IBV_WC_EX_WITH_CVLAN}, EOPNOTSUPP},
		{{.cqe = 1, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG}, EOPNOTSUPP},
		{{.cqe = 1, .wc_flags = IBV_WC_EX_WITH_TM_INFO}, EOPNOTSUPP},
		{{.cqe = 1, .wc_flags = 1ull << 40}, EOPNOTSUPP},
		{{.cqe = 0}, EINVAL},
		{{.cqe = UR_MAX_CQE + 1}, EINVAL},
		{{.cqe = 1, .comp_vector = 1}, EINVAL},
		{{.cqe = 1, .comp_vector = UINT32_MAX}, EINVAL},
	};
	struct ibv_context *ctx = verbs_fixture_open();

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_cq_init_attr_ex a = cases[i].a;
		struct ibv_cq_ex *cq;

		errno = 0;
		cq = ibv_create_cq_ex(ctx, &a);
		CU_ASSERT_EQUAL(cq ? 0 : errno, cases[i].err);
		if (!cq)
			continue;
		CU_ASSERT_TRUE(cq->cqe >= (int)a.cqe);
		CU_ASSERT_PTR_EQUAL(cq->context, ctx);
		CU_ASSERT_PTR_EQUAL(ibv_cq_ex_to_cq(cq)->cq_context, a.cq_context);
		CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void create_cq_ex__readers_of_what_was_asked_for(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_cq_ex *cq = make(ctx, IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);

	CU_ASSERT_PTR_NOT_NULL(cq->read_opcode);
	CU_ASSERT_PTR_NOT_NULL(cq->read_vendor_err);
	CU_ASSERT_PTR_NOT_NULL(cq->read_wc_flags);
	CU_ASSERT_PTR_NOT_NULL(cq->read_imm_data);
	CU_ASSERT_PTR_NOT_NULL(cq->read_completion_ts);
	CU_ASSERT_PTR_NULL(cq->read_byte_len);
	CU_ASSERT_PTR_NULL(cq->read_completion_wallclock_ns);
	CU_ASSERT_PTR_NULL(cq->read_cvlan);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static void iterate(struct ibv_cq_ex *cq, const struct ibv_qp *qp, unsigned n)
{
	struct ibv_poll_cq_attr attr = {0};

	CU_ASSERT_EQUAL_FATAL(ibv_start_poll(cq, &attr), 0);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(cq->wr_id, i);
		CU_ASSERT_EQUAL(cq->status, IBV_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		CU_ASSERT_EQUAL(ibv_wc_read_qp_num(cq), qp->qp_num);
		CU_ASSERT_EQUAL(ibv_wc_read_wc_flags(cq), 0);
		CU_ASSERT_EQUAL(ibv_wc_read_sl(cq) + ibv_wc_read_slid(cq) + ibv_wc_read_dlid_path_bits(cq), 0);
		CU_ASSERT_EQUAL(ibv_next_poll(cq), i + 1 < n ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
}

static void start_poll__iterates(void)
{
	static const uint32_t flags[] = {0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(flags); i++) {
		struct ibv_cq_ex *cq = make(f.ctx, IBV_WC_STANDARD_FLAGS, flags[i]);
		struct ibv_poll_cq_attr attr = {.comp_mask = 1};
		struct ibv_qp *qp;

		CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), EINVAL);
		attr.comp_mask = 0;
		CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), ENOENT);
		qp = flushed(&f, ibv_cq_ex_to_cq(cq), 20);
		iterate(cq, qp, 20);
		CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), ENOENT); /* and the lock is free */
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
		CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
	verbs_fixture_unmake(&f);
}

/* Between start_poll and end_poll a program may do what waits for the CQ's lock: poll it otherwise, reset its QP, resize it. */
static void start_poll__holds_nobody_up(void)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq;
	struct verbs_fixture f;
	struct ibv_qp *a, *b;
	struct ibv_wc wc;

	verbs_fixture_make(&f);
	cq = make(f.ctx, IBV_WC_STANDARD_FLAGS, 0);
	a = flushed(&f, ibv_cq_ex_to_cq(cq), 3);
	b = flushed(&f, ibv_cq_ex_to_cq(cq), 4);
	CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	CU_ASSERT_EQUAL(wc.wr_id, 1);
	CU_ASSERT_EQUAL(cq->wr_id, 0);
	CU_ASSERT_EQUAL(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 5), 0);
	CU_ASSERT_EQUAL(cq->cqe, 5);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a), 0);
	CU_ASSERT_EQUAL(cq->wr_id, 0); /* the one in progress stays readable */
	CU_ASSERT_EQUAL(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(ibv_next_poll(cq), 0);
		CU_ASSERT_EQUAL(cq->wr_id, i);
		CU_ASSERT_EQUAL(ibv_wc_read_qp_num(cq), b->qp_num);
	}
	CU_ASSERT_EQUAL(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	CU_ASSERT_EQUAL(ibv_destroy_qp(b), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	verbs_fixture_unmake(&f);
}

static void start_poll__after_an_overrun(void)
{
	struct ibv_cq_init_attr_ex a = {.cqe = 1};
	struct ibv_poll_cq_attr attr = {0};
	struct verbs_fixture f;
	struct ibv_async_event ev;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	cq = ibv_create_cq_ex(f.ctx, &a);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cq);
	qp = flushed(&f, ibv_cq_ex_to_cq(cq), 3);
	CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), EIO);
	CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), EIO);
	CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(f.ctx, &ev), 0);
	CU_ASSERT_EQUAL(ev.event_type, IBV_EVENT_CQ_ERR);
	ibv_ack_async_event(&ev);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	a.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq = ibv_create_cq_ex(f.ctx, &a);
	CU_ASSERT_PTR_NOT_NULL_FATAL(cq);
	qp = flushed(&f, ibv_cq_ex_to_cq(cq), 3);
	CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), 0);
	CU_ASSERT_EQUAL(cq->wr_id, 0);
	CU_ASSERT_EQUAL(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	verbs_fixture_unmake(&f);
}

/*
 * --- threads that share a CQ, while completions come and its size changes: each completion goes to one of them, and nobody sees half a
 * batch of another ---
 */

#define SHARED 3000
#define QUEUED 20 /* at most: less than the smaller of the two sizes */

struct sharer {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	atomic_uint *got; /* by wr_id */
	atomic_uint total;
};

static void *share(void *arg)
{
	struct sharer *s = arg;
	struct ibv_poll_cq_attr attr = {0};

	while (atomic_load(&s->total) < SHARED) {
		if (ibv_start_poll(s->cq, &attr)) {
			sched_yield(); /* the thread that holds the batch may wait for this CPU */
			continue;
		}
		do {
			uint64_t id = s->cq->wr_id;

			sched_yield();
			if (id == s->cq->wr_id && id < SHARED)
				atomic_fetch_add(&s->got[id], 1);
			atomic_fetch_add(&s->total, 1);
		} while (ibv_next_poll(s->cq) == 0);
		ibv_end_poll(s->cq);
	}
	return NULL;
}

/* What is posted to a QP in ERR completes at once. */
static void *post_flushed(void *arg)
{
	struct sharer *s = arg;
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	while (wr.wr_id < SHARED) {
		if (wr.wr_id - atomic_load(&s->total) >= QUEUED || ibv_post_recv(s->qp, &wr, &bad))
			sched_yield();
		else
			wr.wr_id++;
	}
	return NULL;
}

static void start_poll__threads(void)
{
	static atomic_uint got[SHARED];
	struct verbs_fixture f;
	struct sharer s = {.got = got};
	pthread_t t[3];

	verbs_fixture_make(&f);
	s.cq = make(f.ctx, UV_WC_STAMPS, 0);
	s.qp = flushed(&f, ibv_cq_ex_to_cq(s.cq), 0);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, i ? share : post_flushed, &s), 0);
	for (unsigned i = 0; atomic_load(&s.total) < SHARED; i++)
		CU_ASSERT_EQUAL(ibv_resize_cq(ibv_cq_ex_to_cq(s.cq), i % 2 ? 31 : 200), 0);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < SHARED; i++)
		CU_ASSERT_EQUAL(atomic_exchange(&got[i], 0), 1);
	CU_ASSERT_EQUAL(ibv_destroy_qp(s.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(s.cq)), 0);
	verbs_fixture_unmake(&f);
}

/* --- clocks --- */

static uint64_t wall_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * UR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void timestamps__lie_between_the_clocks_around_them(void)
{
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 9}, after = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	const struct timespec nap = {.tv_nsec = 2000000};
	struct ibv_poll_cq_attr attr = {0};
	uint64_t wall[2], raw[2];
	struct verbs_fixture f;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	cq = make(f.ctx, UV_WC_STAMPS, 0);
	CU_ASSERT_EQUAL(ibv_query_rt_values_ex(f.ctx, &before), 0);
	CU_ASSERT_EQUAL(before.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	wall[0] = wall_clock();
	qp = flushed(&f, ibv_cq_ex_to_cq(cq), 1);
	CU_ASSERT_EQUAL(ibv_query_rt_values_ex(f.ctx, &after), 0);
	wall[1] = wall_clock();
	nanosleep(&nap, NULL); /* what is read later has the same time */
	CU_ASSERT_EQUAL_FATAL(ibv_start_poll(cq, &attr), 0);
	raw[0] = (uint64_t)before.raw_clock.tv_sec * UR_NS_PER_S + (uint64_t)before.raw_clock.tv_nsec;
	raw[1] = (uint64_t)after.raw_clock.tv_sec * UR_NS_PER_S + (uint64_t)after.raw_clock.tv_nsec;
	CU_ASSERT_TRUE(raw[0] && raw[0] <= ibv_wc_read_completion_ts(cq) && ibv_wc_read_completion_ts(cq) <= raw[1]);
	/* The two clocks are read one after the other, so they may disagree by a preemption. */
	CU_ASSERT_TRUE(wall[0] <= ibv_wc_read_completion_wallclock_ns(cq) + UR_NS_PER_S);
	CU_ASSERT_TRUE(ibv_wc_read_completion_wallclock_ns(cq) <= wall[1] + UR_NS_PER_S);
	ibv_end_poll(cq);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	verbs_fixture_unmake(&f);
}

/* On the wall clock completions are as far apart as on the device's, within a batch and from one batch to the next. */
static void completion_wallclock__keeps_the_distance(void)
{
	struct ibv_poll_cq_attr attr = {0};
	struct verbs_fixture f;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	uint64_t ahead = 0;

	verbs_fixture_make(&f);
	cq = make(f.ctx, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 0);
	qp = flushed(&f, ibv_cq_ex_to_cq(cq), 12);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t now;

		CU_ASSERT_EQUAL_FATAL(i % 4 ? ibv_next_poll(cq) : ibv_start_poll(cq, &attr), 0);
		now = ibv_wc_read_completion_wallclock_ns(cq) - ibv_wc_read_completion_ts(cq);
		CU_ASSERT_EQUAL(ibv_wc_read_completion_wallclock_ns(cq) - ibv_wc_read_completion_ts(cq), now);
		CU_ASSERT_EQUAL(now, i ? ahead : now);
		ahead = now;
		if (i % 4 == 3)
			ibv_end_poll(cq);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	verbs_fixture_unmake(&f);
}

static void query_device_ex__completions(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr_ex ex;

	CU_ASSERT_EQUAL(ibv_query_device_ex(ctx, NULL, &ex), 0);
	CU_ASSERT_EQUAL(ex.completion_timestamp_mask, UINT64_MAX);
	CU_ASSERT_EQUAL(ex.hca_core_clock, 1000000); /* kHz: a tick is a nanosecond */
	CU_ASSERT_EQUAL(ex.cq_mod_caps.max_cq_count, UINT16_MAX);
	CU_ASSERT_EQUAL(ex.cq_mod_caps.max_cq_period, UINT16_MAX);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* --- ibv_resize_cq, ibv_modify_cq --- */

static void resize_cq__cases(void)
{
	static const struct {
		int cqe, err, granted;
	} cases[] = {
		{0, EINVAL, 15}, {-1, EINVAL, 15}, {UR_MAX_CQE + 1, EINVAL, 15}, {9, EINVAL, 15},
		{10, 0, 10},     {16, 0, 16},      {UR_MAX_CQE, 0, UR_MAX_CQE},  {9, EINVAL, UR_MAX_CQE},
		{10, 0, 10},
	};
	struct verbs_fixture f;
	struct ibv_wc wc[16];

	verbs_fixture_make(&f);
	verbs_fixture_post(f.qp, 10);
	verbs_fixture_flush(f.qp);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		errno = 0;
		CU_ASSERT_EQUAL(ibv_resize_cq(f.cq, cases[i].cqe), cases[i].err);
		CU_ASSERT_EQUAL(errno, cases[i].err);
		CU_ASSERT_EQUAL(f.cq->cqe, cases[i].granted);
	}
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 16, wc), 10);
	CU_ASSERT_EQUAL(wc[9].wr_id, 9);
	CU_ASSERT_EQUAL(ibv_resize_cq(f.cq, 1), 0);
	CU_ASSERT_EQUAL(f.cq->cqe, 1);
	verbs_fixture_unmake(&f);
}

/* Ten completions come at once: as many notifications as the moderation says, the remainder after its time. */
static void modify_cq__moderates_the_channel(void)
{
	struct ibv_modify_cq_attr a = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 1000, .cq_period = UINT16_MAX}};
	struct ibv_modify_cq_attr bad = {.attr_mask = IBV_CQ_ATTR_RESERVED}, none = {.attr_mask = 0};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_modify_cq(f.cq, &bad), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_cq(f.cq, &none), 0);
	CU_ASSERT_EQUAL(ibv_modify_cq(f.cq, &a), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
	verbs_fixture_post(f.qp, 10);
	verbs_fixture_flush(f.qp);
	CU_ASSERT_EQUAL(ur_container_of(f.cq, struct uv_cq, cq)->pending, 0);
	a.moderate.cq_count = 0;
	CU_ASSERT_EQUAL(ibv_modify_cq(f.cq, &a), 0); /* what is held back comes now */
	CU_ASSERT_EQUAL(ur_container_of(f.cq, struct uv_cq, cq)->pending, 1);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_cq_ex(void)
{
	CU_pSuite s = CU_add_suite("verbs_cq_ex", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, create_cq_ex__cases);
	CU_ADD_TEST(s, create_cq_ex__readers_of_what_was_asked_for);
	CU_ADD_TEST(s, start_poll__iterates);
	CU_ADD_TEST(s, start_poll__holds_nobody_up);
	CU_ADD_TEST(s, start_poll__after_an_overrun);
	CU_ADD_TEST(s, start_poll__threads);
	CU_ADD_TEST(s, timestamps__lie_between_the_clocks_around_them);
	CU_ADD_TEST(s, completion_wallclock__keeps_the_distance);
	CU_ADD_TEST(s, query_device_ex__completions);
	CU_ADD_TEST(s, resize_cq__cases);
	CU_ADD_TEST(s, modify_cq__moderates_the_channel);
}
