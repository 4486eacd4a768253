/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs: completion channels and asynchronous events; blocking, polling, signals, cancellation, acknowledgements. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "verbs_fixture.h"

void ur_suite_verbs_event(void);

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void nonblocking(int fd)
{
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void get_and_ack(struct verbs_fixture *f)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	CU_ASSERT_EQUAL_FATAL(ibv_get_cq_event(f->ch, &cq, &context), 0);
	CU_ASSERT_PTR_EQUAL(cq, f->cq);
	CU_ASSERT_PTR_EQUAL(context, f);
	ibv_ack_cq_events(cq, 1);
}

/* Back to INIT with nothing queued, so that the next flush completes n receives. */
static void complete(struct verbs_fixture *f, unsigned n)
{
	verbs_fixture_state(f->qp, IBV_QPS_RESET);
	verbs_fixture_to_init(f->qp);
	verbs_fixture_post(f->qp, n);
	verbs_fixture_flush(f->qp);
}

static void get_cq_event__one_for_each_arming(void)
{
	struct verbs_fixture f;
	struct ibv_cq *cq;
	void *context;

	verbs_fixture_make(&f);
	nonblocking(f.ch->fd);
	CU_ASSERT_EQUAL(ibv_get_cq_event(f.ch, &cq, &context), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	complete(&f, 1);
	CU_ASSERT_FALSE(readable(f.ch->fd)); /* not armed */
	CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
	complete(&f, 3);
	CU_ASSERT_TRUE(readable(f.ch->fd));
	get_and_ack(&f);
	CU_ASSERT_FALSE(readable(f.ch->fd));
	CU_ASSERT_EQUAL(ibv_get_cq_event(f.ch, &cq, &context), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	verbs_fixture_unmake(&f);
}

static void get_cq_event__several_wait(void)
{
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	nonblocking(f.ch->fd);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, i & 1), 0); /* a failed completion counts as solicited */
		complete(&f, 1);
	}
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(readable(f.ch->fd));
		get_and_ack(&f);
	}
	CU_ASSERT_FALSE(readable(f.ch->fd));
	verbs_fixture_unmake(&f);
}

static void destroy_cq__unread_events_vanish(void)
{
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
	complete(&f, 1);
	CU_ASSERT_TRUE(readable(f.ch->fd));
	CU_ASSERT_EQUAL(ibv_destroy_qp(f.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f.cq), 0);
	CU_ASSERT_FALSE(readable(f.ch->fd));
	f.cq = ibv_create_cq(f.ctx, 15, &f, f.ch, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f.cq);
	f.qp = verbs_fixture_qp(f.pd, f.cq, 16);
	verbs_fixture_unmake(&f);
}

/* --- threads --- */

struct waiter {
	struct verbs_fixture *f;
	pthread_t thread;
	atomic_int result, error;
	atomic_bool done;
};

static void *wait_main(void *arg)
{
	struct waiter *w = arg;
	struct ibv_cq *cq;
	void *context;

	w->result = ibv_get_cq_event(w->f->ch, &cq, &context);
	w->error = errno;
	if (!w->result)
		ibv_ack_cq_events(cq, 1);
	atomic_store(&w->done, true);
	return NULL;
}

static void waiter_start(struct waiter *w, struct verbs_fixture *f)
{
	w->f = f;
	w->result = -2;
	atomic_store(&w->done, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_main, w), 0);
	nap_ms(20);
	CU_ASSERT_FALSE(atomic_load(&w->done));
}

static void get_cq_event__blocks_and_wakes(void)
{
	struct waiter w[2];
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (int i = 0; i < 2; i++)
		waiter_start(&w[i], &f);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
		complete(&f, 1);
	}
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(pthread_join(w[i].thread, NULL), 0);
		CU_ASSERT_EQUAL(w[i].result, 0);
	}
	CU_ASSERT_FALSE(readable(f.ch->fd));
	verbs_fixture_unmake(&f);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void get_cq_event__signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal}, old;
	struct verbs_fixture f;
	struct waiter w;

	verbs_fixture_make(&f);
	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &sa, &old), 0);
	waiter_start(&w, &f);
	pthread_kill(w.thread, SIGUSR1);
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.result, -1);
	CU_ASSERT_EQUAL(w.error, EINTR);

	sa.sa_flags = SA_RESTART;
	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &sa, NULL), 0);
	waiter_start(&w, &f);
	pthread_kill(w.thread, SIGUSR1);
	nap_ms(20);
	CU_ASSERT_FALSE(atomic_load(&w.done));
	CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
	complete(&f, 1);
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(w.result, 0);
	sigaction(SIGUSR1, &old, NULL);
	verbs_fixture_unmake(&f);
}

/* rping cancels its completion thread in this call. */
static void get_cq_event__cancelled(void)
{
	struct verbs_fixture f;
	struct waiter w;

	verbs_fixture_make(&f);
	waiter_start(&w, &f);
	CU_ASSERT_EQUAL(pthread_cancel(w.thread), 0);
	CU_ASSERT_EQUAL(pthread_join(w.thread, NULL), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
	complete(&f, 1);
	CU_ASSERT_TRUE(readable(f.ch->fd));
	get_and_ack(&f);
	CU_ASSERT_FALSE(readable(f.ch->fd));
	verbs_fixture_unmake(&f);
}

static void *ack_later(void *arg)
{
	struct waiter *w = arg;

	nap_ms(30);
	atomic_store(&w->done, true);
	ibv_ack_cq_events(w->f->cq, 2);
	return NULL;
}

static void destroy_cq__waits_for_acknowledgements(void)
{
	struct verbs_fixture f;
	struct waiter w = {.f = &f};
	struct ibv_cq *cq;
	void *context;

	verbs_fixture_make(&f);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(ibv_req_notify_cq(f.cq, 0), 0);
		complete(&f, 1);
		CU_ASSERT_EQUAL_FATAL(ibv_get_cq_event(f.ch, &cq, &context), 0);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(f.qp), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w.thread, NULL, ack_later, &w), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f.cq), 0);
	CU_ASSERT_TRUE(atomic_load(&w.done));
	pthread_join(w.thread, NULL);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(f.ch), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(f.pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(f.ctx), 0);
}

/* --- asynchronous events --- */

static void async__overrun_is_an_event_of_the_cq(void)
{
	struct ibv_async_event ev;
	struct verbs_fixture f;
	struct ibv_wc wc;

	verbs_fixture_make(&f);
	nonblocking(f.ctx->async_fd);
	CU_ASSERT_EQUAL(ibv_get_async_event(f.ctx, &ev), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	verbs_fixture_post(f.qp, 16); /* one more than the CQ holds */
	verbs_fixture_flush(f.qp);
	CU_ASSERT_EQUAL(ibv_poll_cq(f.cq, 1, &wc), -1);
	CU_ASSERT_TRUE(readable(f.ctx->async_fd));
	CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(f.ctx, &ev), 0);
	CU_ASSERT_EQUAL(ev.event_type, IBV_EVENT_CQ_ERR);
	CU_ASSERT_PTR_EQUAL(ev.element.cq, f.cq);
	ibv_ack_async_event(&ev);
	verbs_fixture_unmake(&f);
}

static void *ack_async_later(void *arg)
{
	struct ibv_async_event ev = {.event_type = IBV_EVENT_COMM_EST};
	struct waiter *w = arg;

	nap_ms(30);
	ev.element.qp = w->f->qp;
	atomic_store(&w->done, true);
	ibv_ack_async_event(&ev);
	return NULL;
}

static void async__destroy_qp_waits_and_drops(void)
{
	struct ibv_async_event ev;
	struct verbs_fixture f;
	struct waiter w = {.f = &f};

	verbs_fixture_make(&f);
	uv_async_raise(uv_context(f.ctx), IBV_EVENT_COMM_EST, f.qp);
	uv_async_raise(uv_context(f.ctx), IBV_EVENT_QP_LAST_WQE_REACHED, f.qp);
	CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(f.ctx, &ev), 0);
	CU_ASSERT_EQUAL(ev.event_type, IBV_EVENT_COMM_EST);
	CU_ASSERT_PTR_EQUAL(ev.element.qp, f.qp);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w.thread, NULL, ack_async_later, &w), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(f.qp), 0);
	CU_ASSERT_TRUE(atomic_load(&w.done));
	pthread_join(w.thread, NULL);
	CU_ASSERT_FALSE(readable(f.ctx->async_fd)); /* the second one went with its QP */
	f.qp = verbs_fixture_qp(f.pd, f.cq, 16);
	verbs_fixture_unmake(&f);
}

static void *async_wait_main(void *arg)
{
	struct ibv_context *ctx = arg;
	struct ibv_async_event ev;

	CU_ASSERT_EQUAL(ibv_get_async_event(ctx, &ev), 0);
	CU_ASSERT_EQUAL(ev.event_type, IBV_EVENT_PORT_ERR);
	CU_ASSERT_EQUAL(ev.element.port_num, 1);
	ibv_ack_async_event(&ev);
	return NULL;
}

static void async__closed_while_a_thread_waits(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct uv_context *c = uv_context(ctx);
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, async_wait_main, ctx), 0);
	nap_ms(20);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
	uv_async_raise(c, IBV_EVENT_PORT_ERR, NULL); /* the waiting thread holds the context */
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
}

static void async__unread_at_close(void)
{
	struct ibv_context *ctx = verbs_fixture_open();

	uv_async_raise(uv_context(ctx), IBV_EVENT_PORT_ACTIVE, NULL);
	CU_ASSERT_TRUE(readable(ctx->async_fd));
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_event(void)
{
	CU_pSuite s = CU_add_suite("verbs_event", verbs_fixture_init, NULL);

	CU_add_test(s, "get_cq_event__one_for_each_arming", get_cq_event__one_for_each_arming);
	CU_add_test(s, "get_cq_event__several_wait", get_cq_event__several_wait);
	CU_add_test(s, "destroy_cq__unread_events_vanish", destroy_cq__unread_events_vanish);
	CU_add_test(s, "get_cq_event__blocks_and_wakes", get_cq_event__blocks_and_wakes);
	CU_add_test(s, "get_cq_event__signals", get_cq_event__signals);
	CU_add_test(s, "get_cq_event__cancelled", get_cq_event__cancelled);
	CU_add_test(s, "destroy_cq__waits_for_acknowledgements", destroy_cq__waits_for_acknowledgements);
	CU_add_test(s, "async__overrun_is_an_event_of_the_cq", async__overrun_is_an_event_of_the_cq);
	CU_add_test(s, "async__destroy_qp_waits_and_drops", async__destroy_qp_waits_and_drops);
	CU_add_test(s, "async__closed_while_a_thread_waits", async__closed_while_a_thread_waits);
	CU_add_test(s, "async__unread_at_close", async__unread_at_close);
}
