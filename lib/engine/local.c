/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/local.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/engine.h"

#define MAILBOX_FRAMES 512u /* a power of two */
#define SLOTS 256
#define LOCK_SPINS 1000
#define LOCK_PATIENCE (50 * UR_NS_PER_MS) /* a sender that was stopped with the lock must not stop the others */

struct frame {
	uint32_t len;
	uint8_t data[UR_PKT_ROOM];
};

/* Many senders under a lock that survives the death of its holder, one receiver. */
struct mailbox {
	pthread_mutex_t senders;
	_Atomic uint32_t tail; /* written by senders */
	atomic_bool asleep;
	_Alignas(64) _Atomic uint32_t head; /* written by the receiver */
	_Alignas(64) struct frame frame[MAILBOX_FRAMES];
};

struct peer {
	struct mailbox *box;
	uint32_t lease; /* of the slot's owner whose mailbox it is */
};

struct ur_local {
	struct ur_registry *registry;
	struct mailbox *box;
	int memfd, wake_fd;
	struct peer peer[SLOTS];
};

/* --- waking: an abstract datagram socket for each slot --- */

static socklen_t wake_addr(const struct ur_registry *r, uint8_t slot, struct sockaddr_un *sa)
{
	int n;

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "uroce-%016llx-%u", (unsigned long long)ur_registry_key(r), slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int wake_open(const struct ur_registry *r)
{
	struct sockaddr_un sa;
	socklen_t len = wake_addr(r, ur_registry_slot(r), &sa);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, len)) {
		int err = errno;

		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

static void wake_peer(struct ur_local *l, uint8_t slot)
{
	struct sockaddr_un sa;
	socklen_t len = wake_addr(l->registry, slot, &sa);

	/* A full socket has woken it already, a missing one has nobody to wake. */
	(void)!sendto(l->wake_fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)&sa, len);
}

/* --- our mailbox --- */

static int mailbox_create(struct ur_local *l)
{
	pthread_mutexattr_t ma;
	void *m;

	l->memfd = memfd_create("uroce-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->memfd < 0 || ftruncate(l->memfd, sizeof(struct mailbox)) || fcntl(l->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return errno;
	m = mmap(NULL, sizeof(struct mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, l->memfd, 0);
	if (m == MAP_FAILED)
		return errno;
	l->box = m;
	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&ma, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&l->box->senders, &ma);
	pthread_mutexattr_destroy(&ma);
	return 0;
}

int ur_local_open(struct ur_registry *r, struct ur_local **out)
{
	struct ur_local *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return ENOMEM;
	l->registry = r;
	l->memfd = -1;
	l->wake_fd = wake_open(r);
	err = l->wake_fd < 0 ? errno : mailbox_create(l);
	if (err) {
		ur_local_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void ur_local_announce(struct ur_local *l)
{
	ur_registry_announce(l->registry, getpid(), l->memfd);
}

void ur_local_close(struct ur_local *l)
{
	for (unsigned s = 0; s < SLOTS; s++)
		if (l->peer[s].box)
			munmap(l->peer[s].box, sizeof(struct mailbox));
	if (l->box)
		munmap(l->box, sizeof(struct mailbox));
	if (l->memfd >= 0)
		close(l->memfd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	free(l);
}

/* --- sending --- */

static struct mailbox *mailbox_map(pid_t pid, int fd)
{
	char path[64];
	void *m;
	int f;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	f = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f < 0)
		return NULL;
	m = lseek(f, 0, SEEK_END) == (off_t)sizeof(struct mailbox)
		    ? mmap(NULL, sizeof(struct mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, f, 0)
		    : MAP_FAILED;
	close(f);
	return m == MAP_FAILED ? NULL : m;
}

static struct mailbox *peer_mailbox(struct ur_local *l, uint8_t slot)
{
	struct peer *p = &l->peer[slot];
	uint32_t lease;
	pid_t pid;
	int fd;

	if (!ur_registry_find(l->registry, slot, &lease, &pid, &fd))
		return NULL;
	if (p->lease == lease)
		return p->box; /* NULL when it could not be had */
	if (p->box)
		munmap(p->box, sizeof(struct mailbox));
	p->box = ur_registry_alive(l->registry, slot) ? mailbox_map(pid, fd) : NULL;
	p->lease = lease;
	return p->box;
}

/* The holder has it for one copy; when it was descheduled meanwhile, it needs the CPU more than we do. */
static bool lock_senders(struct mailbox *box)
{
	ur_time begin = 0;
	unsigned tries;
	int r;

	for (tries = 0; (r = pthread_mutex_trylock(&box->senders)) == EBUSY; tries++) {
		if (tries < LOCK_SPINS)
			continue;
		if (!begin)
			begin = ur_engine_now();
		else if (ur_engine_now() - begin > LOCK_PATIENCE)
			return false;
		sched_yield();
	}
	if (r == EOWNERDEAD)
		pthread_mutex_consistent(&box->senders); /* it had not published its frame: nothing to mend */
	return !r || r == EOWNERDEAD;
}

/* False when the frame is lost, though somebody should have had it. */
static bool send_to(struct ur_local *l, uint8_t slot, const struct ur_pkt *p)
{
	struct mailbox *box = peer_mailbox(l, slot);
	uint32_t tail;
	bool room;

	if (!box || p->len > UR_PKT_ROOM)
		return true;
	if (!lock_senders(box))
		return false;
	tail = atomic_load_explicit(&box->tail, memory_order_relaxed);
	room = tail - atomic_load_explicit(&box->head, memory_order_acquire) < MAILBOX_FRAMES;
	if (room) {
		struct frame *f = &box->frame[tail % MAILBOX_FRAMES];

		f->len = p->len;
		memcpy(f->data, p->data, p->len);
		atomic_store(&box->tail, tail + 1);
	}
	pthread_mutex_unlock(&box->senders);
	if (atomic_exchange(&box->asleep, false))
		wake_peer(l, slot);
	return room;
}

bool ur_local_send(struct ur_local *l, uint8_t slot, const struct ur_pkt *p)
{
	bool all = true;

	if (slot)
		return send_to(l, slot, p);
	for (unsigned s = 1; s < SLOTS; s++)
		if (s != ur_registry_slot(l->registry))
			all &= send_to(l, (uint8_t)s, p);
	return all;
}

/* --- receiving --- */

unsigned ur_local_recv(struct ur_local *l, struct ur_port *port, struct ur_pkt **pkts, unsigned n)
{
	uint32_t head = atomic_load_explicit(&l->box->head, memory_order_relaxed);
	uint32_t waiting = atomic_load_explicit(&l->box->tail, memory_order_acquire) - head;
	unsigned got;

	if (ur_likely(!waiting))
		return 0;
	got = ur_queue_alloc(port->queue, pkts, ur_min_u32(n, ur_min_u32(waiting, MAILBOX_FRAMES)));
	for (unsigned i = 0; i < got; i++) {
		const struct frame *f = &l->box->frame[(head + i) % MAILBOX_FRAMES];
		uint32_t len = ur_min_u32(f->len, UR_PKT_ROOM); /* shared memory: whatever stands there must do no harm */

		memcpy(pkts[i]->data, f->data, len);
		pkts[i]->len = len;
	}
	atomic_store_explicit(&l->box->head, head + got, memory_order_release);
	return got;
}

int ur_local_fd(const struct ur_local *l)
{
	return l->wake_fd;
}

bool ur_local_sleep(struct ur_local *l, bool asleep)
{
	char drained[16];

	atomic_store(&l->box->asleep, asleep);
	if (asleep)
		return atomic_load(&l->box->tail) == atomic_load_explicit(&l->box->head, memory_order_relaxed);
	while (recv(l->wake_fd, drained, sizeof(drained), 0) > 0)
		continue;
	return true;
}
