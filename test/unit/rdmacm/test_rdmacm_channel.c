/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: event channels. Descriptors, threads, acknowledgements, destruction and migration; the events are made by hand. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#include "rdmacm/internal.h"
#include "verbs_fixture.h"

void ur_suite_rdmacm_channel(void);

static bool readable(const struct rdma_event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void nonblocking(struct rdma_event_channel *ch)
{
	CU_ASSERT_EQUAL_FATAL(fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK), 0);
}

static void nap_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static struct rdma_event_channel *make_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	CU_ASSERT_PTR_NOT_NULL_FATAL(ch);
	return ch;
}

static struct rdma_cm_id *make_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	return id;
}

static void raise_event(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	ur_event_send((struct ur_id *)id, type, 0);
}

static void expect(struct rdma_event_channel *ch, struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(ch, &ev), 0);
	CU_ASSERT_PTR_EQUAL(ev->id, id);
	CU_ASSERT_PTR_NULL(ev->listen_id);
	CU_ASSERT_EQUAL(ev->event, type);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(ev), 0);
}

static void expect_nothing(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev;

	errno = 0;
	CU_ASSERT_EQUAL(rdma_get_cm_event(ch, &ev), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
}

static void get__events_in_order(void)
{
	struct rdma_event_channel *ch = make_channel();
	struct rdma_cm_id *a = make_id(ch), *b = make_id(ch);

	nonblocking(ch);
	CU_ASSERT_FALSE(readable(ch));
	expect_nothing(ch);
	raise_event(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	raise_event(b, RDMA_CM_EVENT_REJECTED);
	raise_event(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CU_ASSERT_TRUE(readable(ch));
	expect(ch, a, RDMA_CM_EVENT_ADDR_RESOLVED);
	CU_ASSERT_TRUE(readable(ch));
	expect(ch, b, RDMA_CM_EVENT_REJECTED);
	expect(ch, a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CU_ASSERT_FALSE(readable(ch));
	expect_nothing(ch);
	CU_ASSERT_EQUAL(rdma_destroy_id(a), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(b), 0);
	rdma_destroy_event_channel(ch);
}

/* What the kernel has counted into an eventfd and nobody has read. */
static unsigned count_in(int fd)
{
	char path[64], line[128];
	unsigned n = 9999;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "eventfd-count: %x", &n);
	fclose(f);
	return n;
}

/* An event adds one, so that EPOLLET tells of each; a reader takes nothing while there are others. */
static void get__leaves_the_descriptor_alone(void)
{
	struct rdma_event_channel *ch = make_channel();
	struct rdma_cm_id *id = make_id(ch);

	nonblocking(ch);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 1; i <= 70; i++) {
			raise_event(id, RDMA_CM_EVENT_ADDR_RESOLVED);
			CU_ASSERT_EQUAL(count_in(ch->fd), i);
		}
		for (unsigned i = 1; i < 70; i++) {
			expect(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED);
			CU_ASSERT_EQUAL(count_in(ch->fd), 70);
		}
		expect(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED);
		CU_ASSERT_EQUAL(count_in(ch->fd), 0);
		expect_nothing(ch);
	}
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

static void get__bad_arguments(void)
{
	struct rdma_event_channel *ch = make_channel();
	struct rdma_cm_event *ev;

	CU_ASSERT_EQUAL(rdma_get_cm_event(NULL, &ev), -1);
	CU_ASSERT_EQUAL(rdma_get_cm_event(ch, NULL), -1);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(NULL), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(NULL);
}

static void create__without_descriptors(void)
{
	struct rlimit before, none;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	errno = 0;
	CU_ASSERT_PTR_NULL(rdma_create_event_channel());
	CU_ASSERT_EQUAL(errno, EMFILE);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void destroy_id__unread_events_vanish(void)
{
	struct rdma_event_channel *ch = make_channel();
	struct rdma_cm_id *a = make_id(ch), *b = make_id(ch);

	nonblocking(ch);
	raise_event(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	raise_event(b, RDMA_CM_EVENT_ADDR_ERROR);
	raise_event(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CU_ASSERT_EQUAL(rdma_destroy_id(a), 0);
	CU_ASSERT_TRUE(readable(ch));
	expect(ch, b, RDMA_CM_EVENT_ADDR_ERROR);
	raise_event(b, RDMA_CM_EVENT_ADDR_ERROR);
	CU_ASSERT_EQUAL(rdma_destroy_id(b), 0);
	CU_ASSERT_FALSE(readable(ch));
	expect_nothing(ch);
	rdma_destroy_event_channel(ch);
}

/* A request that nobody has read goes with its listener; one that was read stays. */
static void destroy_id__unread_requests_vanish(void)
{
	struct rdma_event_channel *ch = make_channel();
	struct rdma_cm_id *listener = make_id(ch), *seen = make_id(ch), *unseen = make_id(ch);
	struct rdma_cm_event *ev;

	nonblocking(ch);
	ur_event_push(ur_event_new(RDMA_CM_EVENT_CONNECT_REQUEST, (struct ur_id *)seen, (struct ur_id *)listener));
	ur_event_push(ur_event_new(RDMA_CM_EVENT_CONNECT_REQUEST, (struct ur_id *)unseen, (struct ur_id *)listener));
	raise_event(unseen, RDMA_CM_EVENT_REJECTED);
	CU_ASSERT_EQUAL(((struct ur_id *)listener)->unread_requests, 2);
	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(ch, &ev), 0);
	CU_ASSERT_PTR_EQUAL(ev->id, seen);
	CU_ASSERT_PTR_EQUAL(ev->listen_id, listener);
	CU_ASSERT_EQUAL(((struct ur_id *)listener)->unread_requests, 1);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen), 0); /* allowed before the acknowledgement, which the listener waits for */
	CU_ASSERT_EQUAL(rdma_ack_cm_event(ev), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(listener), 0);
	CU_ASSERT_FALSE(readable(ch));
	rdma_destroy_event_channel(ch);
}

/* --- threads --- */

struct worker {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct rdma_cm_event *ev;
	atomic_int done;
};

static void *destroy_thread(void *arg)
{
	struct worker *w = arg;

	rdma_destroy_id(w->id);
	atomic_store(&w->done, 1);
	return NULL;
}

static void destroy_id__waits_for_the_acknowledgement(void)
{
	struct worker w = {.ch = make_channel()};
	pthread_t t;

	w.id = make_id(w.ch);
	raise_event(w.id, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(w.ch, &w.ev), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, destroy_thread, &w), 0);
	nap_ms(50);
	CU_ASSERT_EQUAL(atomic_load(&w.done), 0);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(w.ev), 0);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(atomic_load(&w.done), 1);
	rdma_destroy_event_channel(w.ch);
}

#define EVENTS 4000
#define READERS 4

static void *read_thread(void *arg)
{
	struct worker *w = arg;
	struct rdma_cm_event *ev;
	bool last = false;

	while (!last && !rdma_get_cm_event(w->ch, &ev)) {
		last = ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		if (!last)
			atomic_fetch_add(&w->done, 1);
		rdma_ack_cm_event(ev);
	}
	return NULL;
}

static void get__many_readers(void)
{
	struct worker w = {.ch = make_channel()};
	pthread_t t[READERS];

	w.id = make_id(w.ch);
	for (unsigned i = 0; i < READERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, read_thread, &w), 0);
	for (unsigned i = 0; i < EVENTS; i++)
		raise_event(w.id, RDMA_CM_EVENT_ADDR_RESOLVED);
	for (unsigned i = 0; i < READERS; i++)
		raise_event(w.id, RDMA_CM_EVENT_DEVICE_REMOVAL);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(t[i], NULL);
	CU_ASSERT_EQUAL(atomic_load(&w.done), EVENTS);
	CU_ASSERT_FALSE(readable(w.ch));
	CU_ASSERT_EQUAL(rdma_destroy_id(w.id), 0);
	rdma_destroy_event_channel(w.ch);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void *interrupt_thread(void *arg)
{
	struct worker *w = arg;
	struct rdma_cm_event *ev;

	atomic_store(&w->done, rdma_get_cm_event(w->ch, &ev) ? errno : -1);
	return NULL;
}

static void get__interrupted_without_restart(void)
{
	struct sigaction sa = {.sa_handler = on_alarm}, old;
	struct worker w = {.ch = make_channel()};
	pthread_t t;

	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &sa, &old), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, interrupt_thread, &w), 0);
	for (int i = 0; i < 200 && !atomic_load(&w.done); i++) {
		pthread_kill(t, SIGUSR1);
		nap_ms(5);
	}
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(atomic_load(&w.done), EINTR);
	sigaction(SIGUSR1, &old, NULL);
	rdma_destroy_event_channel(w.ch);
}

/* It may be cancelled on its way into read(2), in it, or when that has just taken the count: the descriptor tells the truth. */
static void get__cancelled(void)
{
	for (unsigned i = 0; i < 300; i++) {
		struct worker w = {.ch = make_channel()};
		pthread_t t;

		w.id = make_id(w.ch);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, read_thread, &w), 0);
		if (i % 3)
			nanosleep(&(struct timespec){.tv_nsec = i * 1000}, NULL);
		raise_event(w.id, RDMA_CM_EVENT_ADDR_RESOLVED);
		pthread_cancel(t);
		pthread_join(t, NULL);
		CU_ASSERT_EQUAL(readable(w.ch), !ur_list_empty(&((struct ur_channel *)w.ch)->queue));
		raise_event(w.id, RDMA_CM_EVENT_ADDR_RESOLVED);
		CU_ASSERT_TRUE(readable(w.ch));
		while (readable(w.ch))
			expect(w.ch, w.id, RDMA_CM_EVENT_ADDR_RESOLVED);
		CU_ASSERT_EQUAL_FATAL(((struct ur_id *)w.id)->unacked, 0);
		CU_ASSERT_EQUAL(rdma_destroy_id(w.id), 0);
		rdma_destroy_event_channel(w.ch);
	}
}

/* --- migration --- */

static void migrate__takes_unread_events_along(void)
{
	struct rdma_event_channel *a = make_channel(), *b = make_channel();
	struct rdma_cm_id *id = make_id(a), *other = make_id(a);

	nonblocking(a);
	raise_event(id, RDMA_CM_EVENT_ADDR_RESOLVED);
	raise_event(other, RDMA_CM_EVENT_ADDR_ERROR);
	CU_ASSERT_EQUAL(rdma_migrate_id(id, b), 0);
	CU_ASSERT_PTR_EQUAL(id->channel, b);
	expect(a, other, RDMA_CM_EVENT_ADDR_ERROR);
	CU_ASSERT_FALSE(readable(a));
	expect(b, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(other), 0);
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

/* Its requests and what they turn into are the new channel's, whatever becomes of the old one. */
static void migrate__takes_unread_requests_along(void)
{
	struct rdma_event_channel *a = make_channel(), *b = make_channel();
	struct rdma_cm_id *listener = make_id(a), *child = make_id(a);
	struct rdma_cm_event *ev;

	nonblocking(b);
	ur_event_push(ur_event_new(RDMA_CM_EVENT_CONNECT_REQUEST, (struct ur_id *)child, (struct ur_id *)listener));
	CU_ASSERT_EQUAL(rdma_migrate_id(listener, b), 0);
	rdma_destroy_event_channel(a);
	CU_ASSERT_EQUAL(((struct ur_id *)listener)->unread_requests, 1);
	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(b, &ev), 0);
	CU_ASSERT_PTR_EQUAL_FATAL(ev->id, child);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(ev), 0);
	CU_ASSERT_PTR_EQUAL(child->channel, b);
	raise_event(child, RDMA_CM_EVENT_ESTABLISHED);
	expect(b, child, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL(rdma_destroy_id(child), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(b);
}

static void migrate__to_synchronous_and_back(void)
{
	struct rdma_event_channel *ch = make_channel();
	struct rdma_cm_id *id = make_id(ch);

	CU_ASSERT_EQUAL(rdma_migrate_id(id, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(id->channel);
	CU_ASSERT_PTR_NOT_EQUAL(id->channel, ch);
	raise_event(id, RDMA_CM_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(ur_id_complete((struct ur_id *)id), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id->event);
	CU_ASSERT_EQUAL(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(rdma_migrate_id(id, ch), 0); /* acknowledges id->event */
	CU_ASSERT_PTR_NULL(id->event);
	raise_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	expect(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

/* Nobody else reads the channel of a synchronous id: there is no reader to wait for. */
#define SYNC_IDS 100

static void *make_synchronous(void *arg)
{
	struct rdma_cm_id **ids = arg;

	for (unsigned i = 0; i < SYNC_IDS; i++) {
		if (rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP))
			return NULL;
		raise_event(ids[i], RDMA_CM_EVENT_ADDR_RESOLVED);
		if (ur_id_complete((struct ur_id *)ids[i]))
			return NULL;
	}
	return arg;
}

static void destroy_id__synchronous_at_once(void)
{
	struct rdma_cm_id *ids[SYNC_IDS];
	struct rusage before, after;
	pthread_t t;
	void *ret;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, make_synchronous, ids), 0);
	pthread_join(t, &ret);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ret);
	getrusage(RUSAGE_THREAD, &before);
	for (unsigned i = 0; i < SYNC_IDS; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(ids[i]), 0);
	getrusage(RUSAGE_THREAD, &after);
	CU_ASSERT_TRUE(after.ru_nvcsw - before.ru_nvcsw < SYNC_IDS / 2); /* how often it has slept, perhaps for a lock */
}

static void complete__status_becomes_errno(void)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status, err;
	} cases[] = {
		{RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, ETIMEDOUT},
		{RDMA_CM_EVENT_REJECTED, UR_CM_REJ_CONSUMER_DEFINED, ECONNREFUSED},
		{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ETIMEDOUT},
		{RDMA_CM_EVENT_CONNECT_ERROR, 3, EIO},
	};
	struct rdma_cm_id *id = make_id(NULL);

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		ur_event_send((struct ur_id *)id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0); /* passed over */
		ur_event_send((struct ur_id *)id, cases[i].type, cases[i].status);
		CU_ASSERT_EQUAL(ur_id_complete((struct ur_id *)id), -1);
		CU_ASSERT_EQUAL(errno, cases[i].err);
		CU_ASSERT_EQUAL(id->event->event, cases[i].type);
	}
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0); /* with id->event still there */
}

static void event_str__names(void)
{
	CU_ASSERT_STRING_EQUAL(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
	CU_ASSERT_STRING_EQUAL(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	CU_ASSERT_STRING_EQUAL(rdma_event_str((enum rdma_cm_event_type)(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)), "UNKNOWN EVENT");
	CU_ASSERT_STRING_EQUAL(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}

void ur_suite_rdmacm_channel(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_channel", verbs_fixture_init, NULL);

	CU_add_test(s, "get__events_in_order", get__events_in_order);
	CU_add_test(s, "get__leaves_the_descriptor_alone", get__leaves_the_descriptor_alone);
	CU_add_test(s, "get__bad_arguments", get__bad_arguments);
	CU_add_test(s, "create__without_descriptors", create__without_descriptors);
	CU_add_test(s, "get__many_readers", get__many_readers);
	CU_add_test(s, "get__interrupted_without_restart", get__interrupted_without_restart);
	CU_add_test(s, "get__cancelled", get__cancelled);
	CU_add_test(s, "destroy_id__unread_events_vanish", destroy_id__unread_events_vanish);
	CU_add_test(s, "destroy_id__unread_requests_vanish", destroy_id__unread_requests_vanish);
	CU_add_test(s, "destroy_id__waits_for_the_acknowledgement", destroy_id__waits_for_the_acknowledgement);
	CU_add_test(s, "migrate__takes_unread_events_along", migrate__takes_unread_events_along);
	CU_add_test(s, "migrate__takes_unread_requests_along", migrate__takes_unread_requests_along);
	CU_add_test(s, "migrate__to_synchronous_and_back", migrate__to_synchronous_and_back);
	CU_add_test(s, "destroy_id__synchronous_at_once", destroy_id__synchronous_at_once);
	CU_add_test(s, "complete__status_becomes_errno", complete__status_becomes_errno);
	CU_add_test(s, "event_str__names", event_str__names);
}
