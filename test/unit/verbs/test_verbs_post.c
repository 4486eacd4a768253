/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a post or a poll costs besides its own work: doorbells, readings of the clock, and a place in a row of posts
 * (engine/policy/coalesce.h).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "calloc.h"
#include "engine/internal.h"
#include "transport/state/qp_priv.h"
#include "verbs_fixture.h"

void ur_suite_verbs_post(void);

#define QP_BYTES_MOST 4480 /* of an RC QP with 16 sends, 16 receives and one SGE each */

/* Of all layers, and without what connecting and READs bring. */
static void create_qp__takes_little_memory(void)
{
	struct verbs_fixture f;
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
	struct ibv_qp *qp;
	size_t before;

	verbs_fixture_make(&f);
	ia.send_cq = ia.recv_cq = f.cq;
	before = bytes_asked_for;
	qp = ibv_create_qp(f.pd, &ia);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_TRUE(bytes_asked_for - before <= QP_BYTES_MOST);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

#define POSTS 64

/* --- counting --- */

static __thread unsigned readings; /* of a clock, by this thread */

typedef int clock_reader(clockid_t id, struct timespec *ts);

/* In front of the C library's, for the whole program. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	static clock_reader *real;
	clock_reader *f = __atomic_load_n(&real, __ATOMIC_RELAXED);

	if (!f) {
		void *found = dlsym(RTLD_NEXT, "clock_gettime");

		memcpy(&f, &found, sizeof(f));
		__atomic_store_n(&real, f, __ATOMIC_RELAXED);
	}
	readings++;
	return f(id, ts);
}

static unsigned take_readings(void)
{
	unsigned n = readings;

	readings = 0;
	return n;
}

/* --- QPs --- */

static struct ur_engine *engine_of(const struct ibv_qp *qp)
{
	return uv_context(qp->context)->engine;
}

/* In RTS by hand: without a path nothing is sent, and requests stay where they are. */
static struct ibv_qp *ready_qp(struct verbs_fixture *f)
{
	struct ibv_qp_init_attr ia = {.send_cq = f->cq,
				      .recv_cq = f->cq,
				      .qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = POSTS, .max_recv_wr = POSTS, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &ia);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	atomic_store(&ur_verbs_qp(qp)->state, IBV_QPS_RTS);
	return qp;
}

static void post_send(struct ibv_qp *qp, unsigned n)
{
	struct ibv_send_wr wrs[POSTS] = {{0}}, *bad;

	for (unsigned i = 0; i < n; i++) {
		wrs[i].opcode = IBV_WR_SEND;
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
	}
	CU_ASSERT_EQUAL_FATAL(ibv_post_send(qp, wrs, &bad), 0);
}

static void poll_nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(ibv_poll_cq(cq, 1, &wc), 0);
}

/* --- receives --- */

static void post_recv__has_nothing_to_send(void)
{
	struct verbs_fixture f;
	struct ur_coalesce *c;

	verbs_fixture_make(&f);
	c = ur_engine_coalesce(engine_of(f.qp));
	atomic_store(&c->row, 0);
	atomic_store(&c->posted, 0);
	take_readings();
	verbs_fixture_post(f.qp, 8);
	CU_ASSERT_EQUAL(take_readings(), 0);
	CU_ASSERT_EQUAL(atomic_load(&c->row), 0);
	CU_ASSERT_EQUAL(atomic_load(&c->posted), 0);
	verbs_fixture_unmake(&f);
}

static void pass_time(ur_time ns)
{
	ur_time until = ur_engine_now() + ns;

	while (ur_engine_now() < until)
		continue;
}

/* A ping-pong: its SENDs are alone, and none waits for the poll. */
static void post_recv__before_a_send_is_no_row(void)
{
	struct verbs_fixture f;
	struct ur_coalesce *c;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = ready_qp(&f);
	c = ur_engine_coalesce(engine_of(qp));
	poll_nothing(f.cq);
	for (unsigned i = 0; i < POSTS; i++) {
		verbs_fixture_post(qp, 1);
		post_send(qp, 1);
		CU_ASSERT_EQUAL(atomic_load(&c->waiting), 0);
		poll_nothing(f.cq);
		pass_time(UR_COSTS_SEND_MAX / 2); /* until the answer arrives: on no machine are posts of a row as far apart */
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

#define THREADS 8 /* of which one at least has a place that the first thread of the program does not have */

static struct {
	pthread_barrier_t all;
	struct ibv_qp *qp;
	struct ur_coalesce *first;
	atomic_uint posts, wait;
} others;

static void *post_once(void *unused)
{
	struct ur_coalesce *c = ur_engine_coalesce(engine_of(others.qp));

	(void)unused;
	pthread_barrier_wait(&others.all); /* none ends before all have begun: each has its own stack */
	if (c == others.first || atomic_fetch_add(&others.posts, 1))
		return NULL;
	post_send(others.qp, 1);
	atomic_store(&others.wait, atomic_load(&c->waiting));
	return NULL;
}

/* A thread that posts next to one that streams does not wait for the other's poll. */
static void post_send__is_in_no_row_of_another_thread(void)
{
	struct verbs_fixture f;
	pthread_t threads[THREADS];
	struct ur_coalesce *c;
	struct ibv_qp *a;

	verbs_fixture_make(&f);
	a = ready_qp(&f);
	others.qp = ready_qp(&f);
	others.first = c = ur_engine_coalesce(engine_of(a));
	pthread_barrier_init(&others.all, NULL, THREADS);
	atomic_store(&c->polls.turns, 64);
	poll_nothing(f.cq);
	post_send(a, 1);
	atomic_store(&c->posted, UR_TIME_NEVER / 2); /* a moment ago, for as long as this takes */
	poll_nothing(f.cq);
	for (unsigned i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, post_once, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_TRUE(atomic_load(&others.posts) > 0);
	CU_ASSERT_EQUAL(atomic_load(&others.wait), 0);
	atomic_store(&c->posted, 0);
	pthread_barrier_destroy(&others.all);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(others.qp), 0);
	verbs_fixture_unmake(&f);
}

/* Nobody calls for the NIC after it: the call itself has it flush them. */
static void post_recv__in_error_is_flushed(void)
{
	struct verbs_fixture f;
	struct ibv_wc wc;

	verbs_fixture_make(&f);
	verbs_fixture_flush(f.qp);
	CU_ASSERT_EQUAL(ur_cq_poll(ur_container_of(f.cq, struct uv_cq, cq)->tp, 1, &wc), 0);
	verbs_fixture_post(f.qp, 1);
	CU_ASSERT_EQUAL(ur_cq_poll(ur_container_of(f.cq, struct uv_cq, cq)->tp, 1, &wc), 1);
	CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
	verbs_fixture_unmake(&f);
}

/* --- one doorbell, one clock --- */

/* The end of a sending is measured now and then; not now. */
static void let_it_estimate(struct ibv_qp *qp)
{
	atomic_store(&ur_engine_coalesce(engine_of(qp))->sent, 1);
}

static void post_send__chain_rings_once(void)
{
	struct verbs_fixture f;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	qp = ready_qp(&f);
	atomic_store(&ur_engine_coalesce(engine_of(qp))->row, 0);
	let_it_estimate(qp);
	take_readings();
	post_send(qp, 16);
	CU_ASSERT_EQUAL(take_readings(), 1);
	CU_ASSERT_EQUAL(atomic_load(&ur_engine_coalesce(engine_of(qp))->sent), 2);
	CU_ASSERT_EQUAL(atomic_load(&ur_engine_coalesce(engine_of(qp))->row), 1);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

static void wr_complete__rings_once(void)
{
	struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_RC,
					 .cap = {.max_send_wr = 16, .max_send_sge = 1},
					 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					 .send_ops_flags = IBV_QP_EX_WITH_SEND};
	struct verbs_fixture f;
	struct ibv_qp_ex *x;
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	ex.pd = f.pd;
	ex.send_cq = ex.recv_cq = f.cq;
	qp = ibv_create_qp_ex(f.ctx, &ex);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	atomic_store(&ur_verbs_qp(qp)->state, IBV_QPS_RTS);
	x = ibv_qp_to_qp_ex(qp);
	atomic_store(&ur_engine_coalesce(engine_of(qp))->row, 0);
	let_it_estimate(qp);
	take_readings();
	ibv_wr_start(x);
	for (unsigned i = 0; i < 16; i++)
		ibv_wr_send(x);
	CU_ASSERT_EQUAL(take_readings(), 0);
	CU_ASSERT_EQUAL(ibv_wr_complete(x), 0);
	CU_ASSERT_EQUAL(take_readings(), 1);
	CU_ASSERT_EQUAL(atomic_load(&ur_engine_coalesce(engine_of(qp))->sent), 2);
	CU_ASSERT_EQUAL(atomic_load(&ur_engine_coalesce(engine_of(qp))->row), 1);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

static void poll_cq__reads_one_clock(void)
{
	struct verbs_fixture f;
	struct ibv_wc wc[2];

	verbs_fixture_make(&f);
	poll_nothing(f.cq); /* after a poll that followed ibv_req_notify_cq */
	take_readings();
	poll_nothing(f.cq);
	CU_ASSERT_EQUAL(take_readings(), 1);
	verbs_fixture_post(f.qp, 2);
	verbs_fixture_flush(f.qp);
	take_readings();
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 2, wc), 2);
	CU_ASSERT_EQUAL(take_readings(), 0);
	verbs_fixture_unmake(&f);
}

/* What there is to see, the thread that has the NIC sees: this one has nothing to do, and neither waits nor reads a clock. */
static void poll_cq__leaves_a_taken_nic_alone(void)
{
	struct verbs_fixture f;
	struct ur_engine *e;

	verbs_fixture_make(&f);
	e = engine_of(f.qp);
	pthread_mutex_lock(&e->nic_lock);
	take_readings();
	poll_nothing(f.cq);
	CU_ASSERT_EQUAL(take_readings(), 0);
	pthread_mutex_unlock(&e->nic_lock);
	verbs_fixture_unmake(&f);
}

/* The next thread that has the NIC counts that another one found it taken. */
static void post_send__that_finds_the_nic_taken_is_counted(void)
{
	struct verbs_fixture f;
	struct ur_engine *e;
	struct ibv_qp *qp;
	uint64_t before;

	verbs_fixture_make(&f);
	qp = ready_qp(&f);
	e = engine_of(qp);
	poll_nothing(f.cq);
	before = e->nic->counters.v[UR_C_LOCK_WAITS];
	pthread_mutex_lock(&e->nic_lock);
	post_send(qp, 1);
	pthread_mutex_unlock(&e->nic_lock);
	poll_nothing(f.cq);
	CU_ASSERT_EQUAL(e->nic->counters.v[UR_C_LOCK_WAITS], before + 1);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* A poll that has nothing to take does not ask for the lock of those that take. */
static void poll_cq__empty_takes_no_lock_of_the_queue(void)
{
	struct verbs_fixture f;
	struct uv_cq *u;

	verbs_fixture_make(&f);
	u = ur_container_of(f.cq, struct uv_cq, cq);
	uv_spin_lock(&u->lock);
	poll_nothing(f.cq); /* it would wait for ever */
	uv_spin_unlock(&u->lock);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_post(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("verbs_post", verbs_fixture_init, NULL, NULL, NULL);

	CU_ADD_TEST(s, post_recv__has_nothing_to_send);
	CU_ADD_TEST(s, post_recv__before_a_send_is_no_row);
	CU_ADD_TEST(s, post_send__is_in_no_row_of_another_thread);
	CU_ADD_TEST(s, post_recv__in_error_is_flushed);
	CU_ADD_TEST(s, post_send__chain_rings_once);
	CU_ADD_TEST(s, wr_complete__rings_once);
	CU_ADD_TEST(s, poll_cq__reads_one_clock);
	CU_ADD_TEST(s, poll_cq__leaves_a_taken_nic_alone);
	CU_ADD_TEST(s, post_send__that_finds_the_nic_taken_is_counted);
	CU_ADD_TEST(s, poll_cq__empty_takes_no_lock_of_the_queue);
	CU_ADD_TEST(s, create_qp__takes_little_memory);
}
