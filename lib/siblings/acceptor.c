/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/device/names.h"
#include "host/hang_up.h"
#include "host/limits.h"
#include "host/thread.h"

#define BACKLOG 512      /* two of each slot */
#define NEWCOMERS 64     /* whose greeting we wait for */
#define NEWCOMER_MS 1000 /* how long */
#define RETRY_MS 100     /* where too many waited to be let in */
#define END_MS 500       /* more than UR_HANG_UP_MS */
#define STACK (256 * 1024)
#define OVERFLOW_UID 65534 /* /proc/sys/kernel/overflowuid */

struct newcomer {
	int fd;
	int64_t until; /* ms */
};

struct ur_acceptor {
	uint64_t key;
	const struct ur_own_page *own;
	uid_t uid;
	int listener, stop_fd;
	pthread_t thread;
	_Atomic(struct ur_sibling *) came[UR_SLOTS];
	atomic_bool changed;
	/* the thread's: */
	uint32_t met[UR_SLOTS]; /* ids of those that we have */
	int asked[UR_SLOTS];    /* connections to those that have not answered yet; -1: none */
	bool again[UR_SLOTS];   /* to be connected to once more */
	struct newcomer newcomer[NEWCOMERS];
	unsigned newcomers;
	bool lacks, told; /* a descriptor to accept or to ask with; that has been said */
	struct ur_hang_ups refused;
	/* for the threads that open and close it: */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool all_answered, ended;
};

/*
 * In a user namespace the kernel shows all unmapped users as user 65534: to a process with that user ID they all look like its own user.
 * The initial namespace maps every user to itself, so no user is unmapped there.
 */
static bool can_tell_users(uid_t uid)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE *f = uid == OVERFLOW_UID ? fopen("/proc/self/uid_map", "re") : NULL;

	if (f && fscanf(f, "%u %u %u", &inside, &outside, &count) != 3)
		count = 0;
	if (f)
		fclose(f);
	return uid != OVERFLOW_UID || (!inside && !outside && count == UINT32_MAX);
}

/* --- acquaintances --- */

/* Is something lacking that may be there the next time? Says so, once: nobody else would say why two programs do not find each other. */
static bool note_failure(struct ur_acceptor *g)
{
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		return false;
	g->lacks = true;
	if (!g->told)
		fprintf(stderr, "uroce: this process cannot meet all others that use the device: %s\n", ur_limit_reason(errno));
	g->told = true;
	return true;
}

static void wake_poller(const struct ur_own_page *own)
{
	const uint64_t one = 1;

	(void)!write(own->wake_fd, &one, sizeof(one)); /* the thread that polls: it may sleep */
}

/* Both descriptors are taken. */
static void meet(struct ur_acceptor *g, const struct ur_handshake *who, const int fds[2], pid_t pid)
{
	struct ur_sibling *s = ur_sibling_map(g->own, fds[0], fds[1], who->id, who->slot, pid);

	if (s && g->met[s->slot] != s->id) {
		g->met[s->slot] = s->id;
		s = atomic_exchange(&g->came[s->slot], s);
		atomic_store(&g->changed, true);
		wake_poller(g->own);
	}
	if (s)
		ur_sibling_free(s); /* one that we know, or that nobody took over */
}

/* The processes of this user, and the superuser as an onlooker. */
static bool may_enter(const struct ur_acceptor *g, int fd)
{
	struct ucred c;

	return ur_handshake_peer(fd, &c) && (c.uid == g->uid || c.uid == 0);
}

static void welcome(struct ur_acceptor *g, int fd)
{
	struct ur_handshake who;
	struct ucred c;
	int fds[2];

	if (!ur_handshake_receive(fd, &who, fds, &g->refused)) {
		note_failure(g);
		return;
	}
	if (!ur_handshake_peer(fd, &c))
		return;
	if (who.slot && c.uid == g->uid)
		meet(g, &who, fds, c.pid); /* before we answer: who is answered is known to us */
	else if (fds[1] >= 0)
		ur_hang_up(&g->refused, fds[0]), ur_hang_up(&g->refused, fds[1]);
	if (!who.slot || c.uid == g->uid)
		ur_handshake_send(fd, g->own);
}

/* Nobody holds a place for long. */
static void accept_newcomer(struct ur_acceptor *g)
{
	int fd = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		note_failure(g);
		return;
	}
	if (!may_enter(g, fd))
		ur_hang_up(&g->refused, fd);
	else if (g->newcomers == NEWCOMERS)
		close(fd);
	else
		g->newcomer[g->newcomers++] = (struct newcomer){fd, ur_clock_ms() + NEWCOMER_MS};
}

static void receive_answer(struct ur_acceptor *g, uint8_t slot)
{
	struct ur_handshake who;
	struct ucred c = {.pid = 0};
	int fds[2], fd = g->asked[slot];

	g->asked[slot] = -1;
	errno = 0;
	if (ur_handshake_receive(fd, &who, fds, &g->refused) && fds[1] >= 0) {
		if (who.slot == slot && ur_handshake_peer(fd, &c))
			meet(g, &who, fds, c.pid);
		else
			ur_hang_up(&g->refused, fds[0]), ur_hang_up(&g->refused, fds[1]);
	} else {
		g->again[slot] = note_failure(g);
	}
	close(fd);
}

/* Where `again` is set later, that is because too many others wait there, or something is lacking. */
static void introduce(struct ur_acceptor *g, uint8_t slot)
{
	char name[UR_NAME_MAX];
	struct ucred c;
	int fd;

	ur_slot_name(g->key, slot, name);
	fd = ur_name_socket(name, false);
	g->again[slot] = fd < 0 && (errno == EAGAIN || note_failure(g));
	if (fd < 0)
		return;
	if (ur_handshake_peer(fd, &c) && c.uid == g->uid && ur_handshake_send(fd, g->own))
		g->asked[slot] = fd;
	else
		ur_hang_up(&g->refused, fd);
}

/* --- the thread --- */

/* Signals the thread that waits for it. */
static void signal_waiter(struct ur_acceptor *g, bool *what)
{
	pthread_mutex_lock(&g->lock);
	*what = true;
	pthread_cond_signal(&g->cond);
	pthread_mutex_unlock(&g->lock);
}

static void signal_if_answered(struct ur_acceptor *g)
{
	for (unsigned s = 0; s < UR_SLOTS; s++)
		if (g->asked[s] >= 0 || g->again[s])
			return;
	signal_waiter(g, &g->all_answered);
}

static int try_again(struct ur_acceptor *g)
{
	bool any = g->newcomers != 0;

	for (unsigned s = 1; s < UR_SLOTS; s++)
		if (g->again[s]) {
			introduce(g, (uint8_t)s);
			any |= g->again[s];
		}
	return any || g->lacks ? RETRY_MS : -1;
}

static void serve_newcomers(struct ur_acceptor *g, const struct pollfd *p, unsigned n)
{
	int64_t now = ur_clock_ms();

	for (unsigned i = n; i-- > 0;) {
		if (p[i].revents)
			welcome(g, g->newcomer[i].fd);
		if (!p[i].revents && now < g->newcomer[i].until)
			continue;
		close(g->newcomer[i].fd);
		g->newcomer[i] = g->newcomer[--g->newcomers];
	}
}

/* Those that have been asked and have not answered. */
static unsigned list_asked(const struct ur_acceptor *g, uint8_t slots[UR_SLOTS])
{
	unsigned n = 0;

	for (unsigned s = 0; s < UR_SLOTS; s++)
		if (g->asked[s] >= 0)
			slots[n++] = (uint8_t)s;
	return n;
}

/* One round; false when it is to end. poll(2) refuses more entries than the process may have descriptors, even unused ones. */
static bool serve(struct ur_acceptor *g, int timeout)
{
	struct pollfd p[2 + NEWCOMERS + UR_SLOTS] = {{.fd = g->stop_fd, .events = POLLIN}, {.fd = g->listener, .events = POLLIN}};
	uint8_t slots[UR_SLOTS];
	unsigned n = 2, newcomers = g->newcomers, asked = list_asked(g, slots);

	if (g->lacks) /* it stays readable, but cannot be accepted from */
		p[1].fd = -1;
	g->lacks = false;
	for (unsigned i = 0; i < newcomers; i++)
		p[n++] = (struct pollfd){.fd = g->newcomer[i].fd, .events = POLLIN};
	for (unsigned i = 0; i < asked; i++)
		p[n++] = (struct pollfd){.fd = g->asked[slots[i]], .events = POLLIN};
	if (poll(p, n, timeout) < 0)
		return errno == EINTR;
	if (p[0].revents)
		return false;
	serve_newcomers(g, p + 2, newcomers);
	for (unsigned i = 0; i < asked; i++)
		if (p[2 + newcomers + i].revents)
			receive_answer(g, slots[i]);
	if (p[1].revents)
		accept_newcomer(g);
	return true;
}

static void *acceptor_main(void *arg)
{
	struct ur_acceptor *g = arg;

	for (unsigned s = 1; s < UR_SLOTS; s++)
		if (s != g->own->slot)
			introduce(g, (uint8_t)s);
	do
		signal_if_answered(g);
	while (serve(g, try_again(g)));
	for (unsigned i = 0; i < g->newcomers; i++)
		close(g->newcomer[i].fd);
	g->newcomers = 0;
	ur_hang_up_waiting(&g->refused, g->listener);
	ur_hang_ups_end(&g->refused);
	signal_waiter(g, &g->ended);
	return NULL;
}

/* --- opening and closing --- */

static bool wait_until(struct ur_acceptor *g, const bool *what, unsigned ms)
{
	const struct timespec until = ur_timespec(ur_clock_now() + ms * UR_NS_PER_MS);
	bool is_so;

	pthread_mutex_lock(&g->lock);
	while (!*what && !pthread_cond_clockwait(&g->cond, &g->lock, CLOCK_MONOTONIC, &until))
		continue;
	is_so = *what;
	pthread_mutex_unlock(&g->lock);
	return is_so;
}

int ur_acceptor_open(uint64_t key, const struct ur_own_page *own, int listener, struct ur_acceptor **out)
{
	struct ur_acceptor *g;
	int err;

	if (!can_tell_users(geteuid()))
		return EPERM;
	g = calloc(1, sizeof(*g));
	if (!g)
		return ENOMEM;
	g->key = key;
	g->own = own;
	g->uid = geteuid();
	g->listener = listener;
	for (unsigned s = 0; s < UR_SLOTS; s++)
		g->asked[s] = -1;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->cond, NULL);
	g->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = g->stop_fd < 0 || listen(listener, BACKLOG) ? errno : ur_thread_start(&g->thread, "uroce-acceptor", STACK, acceptor_main, g);
	if (err) {
		if (g->stop_fd >= 0)
			close(g->stop_fd);
		free(g);
		return err;
	}
	wait_until(g, &g->all_answered, UR_HANDSHAKE_MS);
	*out = g;
	return 0;
}

void ur_acceptor_abandon(struct ur_acceptor *g)
{
	for (unsigned s = 0; s < UR_SLOTS; s++) {
		struct ur_sibling *came = atomic_exchange(&g->came[s], NULL);

		if (came)
			ur_sibling_free(came);
		if (g->asked[s] >= 0)
			close(g->asked[s]);
	}
	for (unsigned i = 0; i < g->newcomers; i++)
		close(g->newcomer[i].fd);
	close(g->listener);
	close(g->stop_fd);
	free(g);
}

bool ur_acceptor_close(struct ur_acceptor *g)
{
	const uint64_t one = 1;

	(void)!write(g->stop_fd, &one, sizeof(one));
	if (!wait_until(g, &g->ended, END_MS))
		return false;
	pthread_join(g->thread, NULL);
	ur_acceptor_abandon(g);
	return true;
}

bool ur_acceptor_changed(struct ur_acceptor *g)
{
	return ur_unlikely(atomic_load_explicit(&g->changed, memory_order_relaxed)) && atomic_exchange(&g->changed, false);
}

struct ur_sibling *ur_acceptor_take(struct ur_acceptor *g, uint8_t slot)
{
	return atomic_exchange(&g->came[slot], NULL);
}
