/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: many threads on a channel, epoll, migration in progress, destruction that waits, channels that go too early. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_threads(void);

/* --- clients and servers, several threads of each --- */

enum { CLIENT_THREADS = 3, SERVER_THREADS = 3, ROUNDS = 12 };

static atomic_uint ended, wrong_line;
static atomic_bool stop;
static struct rx_side listener;

static void *wrong(int line)
{
	atomic_store(&wrong_line, (unsigned)line);
	return NULL;
}

/* Does what an event asks for, acknowledges it, and in the end destroys the id, which other threads may hold events of. */
static int serve(struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;
	bool ends = ev->event == RDMA_CM_EVENT_DISCONNECTED;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		WANT_OK(rx_make_qp(id));
		WANT(!rdma_accept(id, NULL));
	}
	if (ends)
		WANT(!rdma_disconnect(id));
	WANT(!rdma_ack_cm_event(ev));
	if (ends) {
		rdma_destroy_qp(id);
		WANT(!rdma_destroy_id(id));
		atomic_fetch_add(&ended, 1);
	}
	return 0;
}

static void *server_thread(void *arg)
{
	struct pollfd p = {.fd = listener.ch->fd, .events = POLLIN};
	struct rdma_cm_event *ev;

	(void)arg;
	while (!atomic_load(&stop)) {
		if (poll(&p, 1, 10) != 1)
			continue;
		if (rdma_get_cm_event(listener.ch, &ev)) {
			if (errno != EAGAIN) /* another thread was faster */
				return wrong(__LINE__);
		} else {
			int line = serve(ev);

			if (line)
				return wrong(line);
		}
	}
	return NULL;
}

static int client_rounds(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rx_side c;

		WANT_OK(rx_connect(&c, RX_PORT));
		WANT_OK(rx_next(&c, RDMA_CM_EVENT_ESTABLISHED));
		WANT(!rdma_disconnect(c.id));
		if (i % 2)
			WANT_OK(rx_next(&c, RDMA_CM_EVENT_DISCONNECTED));
		WANT_OK(rx_close(&c));
	}
	return 0;
}

static void *client_thread(void *arg)
{
	int line = client_rounds();

	(void)arg;
	return line ? wrong(line) : NULL;
}

static int several_on_one_channel(void)
{
	pthread_t c[CLIENT_THREADS], s[SERVER_THREADS];

	WANT_OK(rx_listen(&listener, RX_PORT, 0));
	WANT(!fcntl(listener.ch->fd, F_SETFL, O_NONBLOCK));
	for (unsigned i = 0; i < SERVER_THREADS; i++)
		WANT(!pthread_create(&s[i], NULL, server_thread, NULL));
	for (unsigned i = 0; i < CLIENT_THREADS; i++)
		WANT(!pthread_create(&c[i], NULL, client_thread, NULL));
	for (unsigned i = 0; i < CLIENT_THREADS; i++)
		pthread_join(c[i], NULL);
	for (unsigned i = 0; i < 2000 && atomic_load(&ended) < CLIENT_THREADS * ROUNDS && !atomic_load(&wrong_line); i++)
		usleep(10000);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < SERVER_THREADS; i++)
		pthread_join(s[i], NULL);
	WANT(!atomic_load(&wrong_line) || !fprintf(stderr, "line %u\n", atomic_load(&wrong_line)));
	WANT(atomic_load(&ended) == CLIENT_THREADS * ROUNDS);
	return rx_close(&listener);
}

/* --- migration while events come and are read --- */

enum { EVENTS = 2000 };

static struct rdma_event_channel *two[2];
static struct rdma_cm_id *wanderer;

static void *raising_thread(void *arg)
{
	struct ur_id *u = (struct ur_id *)wanderer;

	(void)arg;
	for (unsigned i = 0; i < EVENTS; i++) {
		ur_id_lock(u);
		ur_event_send(u, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		ur_id_unlock(u);
	}
	return NULL;
}

static void *reading_thread(void *arg)
{
	struct rdma_event_channel *ch = arg;
	struct rdma_cm_event *ev;

	while (!atomic_load(&stop)) {
		if (rdma_get_cm_event(ch, &ev)) {
			usleep(100);
			continue;
		}
		if (ev->id != wanderer || ev->event != RDMA_CM_EVENT_ADDR_CHANGE)
			wrong(__LINE__);
		rdma_ack_cm_event(ev);
		atomic_fetch_add(&ended, 1);
	}
	return NULL;
}

/* No event is lost, none comes twice, though the page tells programs not to do this. */
static int migrated_all_the_time(void)
{
	pthread_t raising, reading[2];

	for (unsigned i = 0; i < 2; i++) {
		two[i] = rdma_create_event_channel();
		WANT(two[i] && !fcntl(two[i]->fd, F_SETFL, O_NONBLOCK));
	}
	WANT(!rdma_create_id(two[0], &wanderer, NULL, RDMA_PS_TCP));
	WANT(!pthread_create(&raising, NULL, raising_thread, NULL));
	for (unsigned i = 0; i < 2; i++)
		WANT(!pthread_create(&reading[i], NULL, reading_thread, two[i]));
	for (unsigned i = 0; atomic_load(&ended) < EVENTS && !atomic_load(&wrong_line); i++)
		WANT(!rdma_migrate_id(wanderer, two[i % 2]));
	pthread_join(raising, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(reading[i], NULL);
	WANT(!atomic_load(&wrong_line) && atomic_load(&ended) == EVENTS);
	WANT(!rdma_destroy_id(wanderer));
	for (unsigned i = 0; i < 2; i++)
		rdma_destroy_event_channel(two[i]);
	return 0;
}

/* --- calls that wait for an acknowledgement --- */

static struct rdma_cm_event *held;
static atomic_bool done;

static void *destroying_thread(void *arg)
{
	if (rdma_destroy_id(arg))
		wrong(__LINE__);
	atomic_store(&done, true);
	return NULL;
}

static void *migrating_thread(void *arg)
{
	if (rdma_migrate_id(arg, two[1]))
		wrong(__LINE__);
	atomic_store(&done, true);
	return NULL;
}

static int wait_for_the_acknowledgement(void)
{
	void *(*const waiting[])(void *) = {migrating_thread, destroying_thread};

	for (unsigned i = 0; i < 2; i++)
		two[i] = rdma_create_event_channel();
	WANT(!rdma_create_id(two[0], &wanderer, NULL, RDMA_PS_TCP));
	for (unsigned i = 0; i < 2; i++) {
		pthread_t t;

		atomic_store(&done, false);
		ur_event_send((struct ur_id *)wanderer, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		WANT(!rdma_get_cm_event(wanderer->channel, &held));
		WANT(!pthread_create(&t, NULL, waiting[i], wanderer));
		usleep(50000);
		WANT(!atomic_load(&done));
		WANT(!rdma_ack_cm_event(held));
		pthread_join(t, NULL);
		WANT(atomic_load(&done) && !atomic_load(&wrong_line));
	}
	for (unsigned i = 0; i < 2; i++)
		rdma_destroy_event_channel(two[i]);
	return 0;
}

/* --- descriptors --- */

static int epoll_with(struct rdma_event_channel *ch, unsigned flags)
{
	struct epoll_event e = {.events = EPOLLIN | flags};
	int fd = epoll_create1(0);

	return epoll_ctl(fd, EPOLL_CTL_ADD, ch->fd, &e) ? -1 : fd;
}

static bool ready(int epfd)
{
	struct epoll_event e;

	return epoll_wait(epfd, &e, 1, 0) == 1;
}

static int take(struct rx_side *s)
{
	WANT_OK(rx_next(s, RDMA_CM_EVENT_ADDR_CHANGE));
	return rx_ack(s);
}

/* Level-triggered: ready while there are events. Edge-triggered: told of each event that comes when all had been read. */
static int level_and_edge(void)
{
	struct rx_side s;
	int level, edge;

	WANT_OK(rx_open(&s));
	level = epoll_with(s.ch, 0);
	edge = epoll_with(s.ch, EPOLLET);
	WANT(level >= 0 && edge >= 0 && !ready(level) && !ready(edge));
	for (unsigned round = 0; round < 3; round++) {
		ur_event_send((struct ur_id *)s.id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		ur_event_send((struct ur_id *)s.id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		WANT(ready(level) && ready(edge) && ready(level) && !ready(edge));
		WANT_OK(take(&s));
		WANT(ready(level));
		WANT_OK(take(&s));
		WANT(!ready(level));
		while (ready(edge)) /* reading may touch the descriptor */
			continue;
	}
	close(level);
	close(edge);
	return rx_close(&s);
}

/* --- channels and ids that go too early --- */

/* Ids outlive their channel: their calls still work or fail in good order, and they can be destroyed. */
static int destroyed_before_its_ids(void)
{
	struct rx_side l, c, s;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_establish(&l, &c, &s));
	WANT(!rx_ack(&c) && !rx_ack(&l));
	rdma_destroy_event_channel(c.ch);
	rdma_destroy_event_channel(l.ch);
	WANT(!rdma_disconnect(s.id));
	usleep(20000); /* events come that nobody can read */
	rdma_destroy_qp(c.id);
	rdma_destroy_qp(s.id);
	WANT(!rdma_destroy_id(c.id) && !rdma_destroy_id(s.id) && !rdma_destroy_id(l.id));
	WANT_ERRNO(rdma_destroy_id(c.id), EINVAL);
	return 0;
}

/* To another channel, after its own has gone. */
static int moved_from_a_dead_channel(void)
{
	struct rx_side s;

	WANT_OK(rx_open(&s));
	ur_event_send((struct ur_id *)s.id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	rdma_destroy_event_channel(s.ch);
	s.ch = rdma_create_event_channel();
	WANT(!rdma_migrate_id(s.id, s.ch));
	WANT_OK(take(&s));
	return rx_close(&s);
}

/* As a program that makes its channel, becomes a daemon, and goes on in the child. */
static int made_before_a_fork(void)
{
	struct rx_side l, c;
	int status;
	pid_t pid;

	memset(&c, 0, sizeof(c));
	c.ch = rdma_create_event_channel();
	WANT(c.ch);
	pid = fork();
	if (!pid) {
		if (rx_listen(&l, RX_PORT, 0) || rdma_create_id(c.ch, &c.id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(c.id, NULL, rx_address(RX_HERE, RX_PORT), 1000) || rx_next(&c, RDMA_CM_EVENT_ADDR_RESOLVED))
			_exit(1);
		_exit(rx_close(&c) || rx_close(&l));
	}
	WANT(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	rdma_destroy_event_channel(c.ch);
	return 0;
}

/* An id of the parent is none of the child's: EIO, and the parent's goes on as before. */
static int left_alone_by_a_child(void)
{
	struct rx_side l, c, s;
	int status;
	pid_t pid;

	WANT_OK(rx_listen(&l, RX_PORT, 0));
	WANT_OK(rx_establish(&l, &c, &s));
	pid = fork();
	if (!pid) {
		bool good = rdma_disconnect(c.id) == -1 && errno == EIO;

		good = good && rdma_destroy_id(c.id) == -1 && errno == EIO;
		good = good && rdma_listen(l.id, 1) == -1 && errno == EIO;
		_exit(!good);
	}
	WANT(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	WANT(!rdma_disconnect(c.id));
	WANT_OK(rx_next(&l, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rx_ack(&l));
	WANT_OK(rx_close(&s));
	WANT_OK(rx_close(&c));
	return rx_close(&l);
}

#define TESTS(T)                                                                                                                           \
	T(threads, several_on_one_channel)                                                                                                 \
	T(migrate_id, migrated_all_the_time)                                                                                               \
	T(threads, wait_for_the_acknowledgement)                                                                                           \
	T(epoll, level_and_edge)                                                                                                           \
	T(channel, destroyed_before_its_ids)                                                                                               \
	T(channel, made_before_a_fork)                                                                                                     \
	T(ids, left_alone_by_a_child)                                                                                                      \
	T(channel, moved_from_a_dead_channel)

TESTS(RX_DEFINE)

void ur_suite_rdmacm_threads(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_threads", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
