/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom the registry lets in and whom not: other users, containers, processes that are stopped or that lie. What has to be another user is
 * left out when we are not the superuser.
 */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "registry_harness.h"
#include "siblings/registry_priv.h"
#include "stranger_harness.h"

void ur_suite_registry_trust(void);

static bool comes_to_know_there(struct proc *p, uint8_t slot)
{
	for (unsigned i = 0; i < 10000 && !knows_there(p, slot); i++)
		usleep(1000);
	return knows_there(p, slot);
}

/* How often this thread has slept, and how long it has computed: whatever else the machine has to do. */
static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- other users --- */

static void trust__other_user(void)
{
	uint8_t slot;
	struct proc *p;
	struct ur_registry *r;

	if (geteuid())
		return;
	p = start_as(child_of_nobody, key, &slot);
	r = join_here();
	CU_ASSERT_NOT_EQUAL(slot, ur_registry_slot(r));
	CU_ASSERT_TRUE(ur_registry_alive(r, slot));
	CU_ASSERT_FALSE(knows(r, slot));
	CU_ASSERT_FALSE(knows_there(p, ur_registry_slot(r)));
	/* What is bound is each user's own. */
	CU_ASSERT_EQUAL(bind_there(p, TCP, &x, false, 7000), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &(uint16_t){7000}), 0);
	/* What is listened on is not, and who listens is seen. */
	CU_ASSERT_EQUAL(listen_there(p, TCP, &x, 7000, true), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(r, TCP, &x, 7000, true), EADDRINUSE);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7000, &x));
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7000, &y));
	CU_ASSERT_EQUAL(listen_there(p, TCP, &x, 7000, false), 0);
	CU_ASSERT_EQUAL(ur_registry_listen(r, TCP, &x, 7000, true), 0);
	CU_ASSERT_TRUE(elsewhere_there(p, 7000));
	/* Neither speaks for the other's dead. */
	ask(p, (struct request){.op = OP_STARTED});
	CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 7009, &x));
	proc_kill(p);
	CU_ASSERT_FALSE(ur_registry_alive(r, slot));
}

/* Another user asks root's process for its page, with and without one of his own. `arg`: the key, and the slot in its lowest byte. */
static int ask_as_nobody(int fd, uint64_t slot)
{
	int fds[2] = {memfd_create("x", MFD_ALLOW_SEALING), eventfd(0, 0)};
	size_t control;

	(void)fd;
	if (setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	for (unsigned i = 0; i < 2; i++) {
		int c = connect_to(asked_key, (uint8_t)slot);

		if (c < 0)
			return 2;
		greet(c, 9, 9, fds, i ? 2 : 0); /* it may have hung up already */
		if (hear(c, &control) > 0 || control)
			return 3;
		close(c);
	}
	return 0;
}

static void trust__nothing_for_strangers(void)
{
	struct ur_registry *r;

	if (geteuid())
		return;
	r = join_here();
	asked_key = key;
	CU_ASSERT_EQUAL(proc_wait(proc_start(ask_as_nobody, ur_registry_slot(r))), 0);
	CU_ASSERT_FALSE(knows(r, 9));
}

/* Another user waits at the names of slots for somebody to introduce himself. Exit status 0: nobody said anything. */
static int wait_as_nobody(int fd, uint64_t k)
{
	char name[UR_NAME_MAX], go;
	size_t control;
	int l, c;

	if (setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	ur_slot_name(k, 9, name);
	l = ur_name_socket(name, true);
	if (l < 0 || listen(l, 9) || send(fd, "", 1, 0) != 1 || recv(fd, &go, 1, 0) != 1)
		return 2;
	while ((c = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0)
		if (hear(c, &control) > 0 || control)
			return 3;
	return 0;
}

static void trust__nothing_for_impostors(void)
{
	struct proc *p;
	char ready;

	if (geteuid())
		return;
	p = proc_start(wait_as_nobody, key);
	CU_ASSERT_EQUAL_FATAL(recv(p->fd, &ready, 1, 0), 1);
	CU_ASSERT_FALSE(knows(join_here(), 9));
	CU_ASSERT_EQUAL(send(p->fd, "", 1, MSG_NOSIGNAL), 1);
	CU_ASSERT_EQUAL(proc_wait(p), 0);
}

/* --- containers --- */

/* Its own /dev/shm, /proc and process numbers, but the same network. */
static int in_a_container(int fd, uint64_t k)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") || mount("tmpfs", "/proc", "tmpfs", 0, "size=64k"))
		return 5;
	return child(fd, k);
}

static void trust__container(void)
{
	uint8_t slot;
	struct proc *p;
	struct ur_registry *r;

	if (geteuid())
		return;
	p = start_as(in_a_container, key, &slot);
	r = join_here();
	CU_ASSERT_NOT_EQUAL(slot, ur_registry_slot(r));
	CU_ASSERT_TRUE(comes_to_know(r, slot));
	CU_ASSERT_TRUE(comes_to_know_there(p, ur_registry_slot(r)));
	CU_ASSERT_EQUAL(bind_there(p, TCP, &x, false, 7000), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &(uint16_t){7000}), EADDRINUSE);
	CU_ASSERT_EQUAL(listen_there(p, TCP, &x, 7000, true), 0);
	CU_ASSERT_TRUE(ur_registry_other_answers(r, TCP, 7000, &x));
}

/* As 65534 in a user namespace, where all whom it does not map are 65534 to us. Exit status 0: we refuse; 1: there is no such namespace. */
static int nobody_in_a_namespace(int fd, uint64_t k)
{
	struct ur_registry *r;
	char map[64];
	int f, n = snprintf(map, sizeof(map), "%d %u 1", NOBODY, (unsigned)geteuid());

	(void)fd;
	if (unshare(CLONE_NEWUSER) || (f = open("/proc/self/uid_map", O_WRONLY)) < 0 || write(f, map, (size_t)n) != n)
		return 1;
	return geteuid() == NOBODY && !ur_registry_open(k, &r) && ur_registry_join(r) == EPERM ? 0 : 2;
}

static void trust__users_without_a_number(void)
{
	int status = proc_wait(proc_start(nobody_in_a_namespace, key));

	CU_ASSERT_TRUE(status == 0 || status == 1); /* the thread sanitizer's thread forbids it */
}

/* Nothing is left in the file system, where anybody could have put something else. */
static void trust__no_files(void)
{
	uint8_t slot;
	char path[64];
	glob_t g;

	bind_there(start(key, &slot), TCP, &x, false, 7000);
	snprintf(path, sizeof(path), "/dev/shm/*%016llx*", (unsigned long long)key);
	CU_ASSERT_EQUAL(glob(path, 0, NULL, &g), GLOB_NOMATCH);
}

/* --- processes that are stopped --- */

static void trust__stopped_sibling(void)
{
	uint8_t slot, late;
	struct proc *p = start(key, &slot);
	struct ur_registry *r = join_here();
	long before;

	CU_ASSERT_TRUE(comes_to_know(r, slot));
	CU_ASSERT_EQUAL(bind_there(p, TCP, &x, false, 7000), 0);
	proc_stop(p);
	before = sleeps();
	for (unsigned i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, true, &(uint16_t){0}), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &(uint16_t){7000}), EADDRINUSE); /* it lives */
	ur_registry_sharers_begin(r, (uint8_t[256]){0}, false);
	ur_registry_sharers_end(r, true);
	CU_ASSERT_TRUE(sleeps() - before < 100);
	/* A newcomer waits a moment for it, and gets to know it when it goes on: he whom it answers, after it has come to know him. */
	start(key, &late);
	CU_ASSERT_TRUE(comes_to_know(r, late));
	kill(p->pid, SIGCONT);
	CU_ASSERT_TRUE(comes_to_know_there(p, late) && comes_to_know_there(&procs[1], slot));
	CU_ASSERT_EQUAL(bind_there(&procs[1], TCP, &x, false, 7000), EADDRINUSE);
}

static int share(int fd, uint64_t k)
{
	struct ur_registry *r;
	char end;

	if (ur_registry_open(k, &r) || ur_registry_join(r))
		return 1;
	ur_registry_sharers_begin(r, (uint8_t[256]){0}, false);
	ur_registry_sharers_end(r, true);
	return send(fd, (char[]){(char)ur_registry_slot(r)}, 1, 0) == 1 && recv(fd, &end, 1, 0) == 1 ? 0 : 1;
}

/* One that is stopped has its place among those that share a port, also for a newcomer, who cannot get to know it. */
static void trust__stopped_sharer(void)
{
	struct proc *p = proc_start(share, key);
	uint8_t slots[256], slot;
	struct ur_registry *r;

	CU_ASSERT_EQUAL_FATAL(recv(p->fd, &slot, 1, 0), 1);
	proc_stop(p);
	r = join_here();
	CU_ASSERT_FALSE(knows(r, slot));
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(r, slots, false), 1);
	CU_ASSERT_EQUAL(slots[0], slot);
	ur_registry_sharers_end(r, true);
	join_here();
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(here[1], slots, false), 2);
	CU_ASSERT_TRUE(slots[0] == slot && slots[1] == ur_registry_slot(r));
	ur_registry_sharers_end(here[1], false);
	proc_kill(p);
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(here[1], slots, false), 1);
	CU_ASSERT_EQUAL(slots[0], ur_registry_slot(r));
	ur_registry_sharers_end(here[1], false);
}

/* --- siblings that lie --- */

/* What may be handed over as a page, and which of it is taken. */
static int page_with(off_t size, int seals)
{
	int fd = memfd_create("lie", MFD_ALLOW_SEALING);

	CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, size) && (!seals || !fcntl(fd, F_ADD_SEALS, seals)));
	return fd;
}

static void trust__pages_that_are_none(void)
{
	const off_t size = (off_t)ur_page_bytes(UR_MAILRING_BYTES);
	const int both = F_SEAL_SHRINK | F_SEAL_GROW;
	struct ur_registry *r = join_here();
	uint8_t s = (uint8_t)(ur_registry_slot(r) % 255 + 1);
	int pipes[2];

	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	{
		const struct {
			int fds[3];
			unsigned n;
			bool taken;
		} t[] = {
			{{page_with(size, 0), eventfd(0, 0)}, 2, false}, /* may shrink: whoever reads it would die */
			{{page_with(size, F_SEAL_GROW), eventfd(0, 0)}, 2, false},
			{{page_with(4096, both), eventfd(0, 0)}, 2, false},
			{{open("/dev/zero", O_RDONLY), eventfd(0, 0)}, 2, false},
			{{pipes[0], eventfd(0, 0)}, 2, false},
			{{page_with(size, both), dup(pipes[1])}, 2, false}, /* writing might wait, or raise SIGPIPE */
			{{page_with(size, both), page_with(size, both)}, 2, false},
			{{page_with(size, both)}, 1, false},
			{{page_with(size, both), eventfd(0, 0), dup(pipes[1])}, 3, true}, /* the third is not even received */
			{{page_with(size, both), eventfd(0, 0)}, 2, true},
		};

		for (unsigned i = 0; i < ur_array_size(t); i++) {
			int c = connect_to(key, ur_registry_slot(r));
			size_t control;

			CU_ASSERT_TRUE(greet(c, s, i + 1, t[i].fds, t[i].n));
			hear(c, &control); /* when it has answered or hung up it has made up its mind */
			close(c);
			CU_ASSERT_EQUAL(knows(r, s), t[i].taken);
			ur_registry_forget(r, s); /* nobody lives there */
			for (unsigned k = 0; k < t[i].n; k++)
				close(t[i].fds[k]);
		}
	}
	signal(SIGPIPE, SIG_IGN);
	CU_ASSERT_EQUAL(write(pipes[1], "", 1), -1); /* the other end was closed by all who got it */
	signal(SIGPIPE, SIG_DFL);
	close(pipes[1]);
}

/* A page of a sibling that lives, which we can write: what it says is our choice. */
static struct ur_page *liar(struct ur_registry *r)
{
	struct ur_registry *other = open_here();
	struct ur_sibling *s = calloc(1, sizeof(*s));
	struct ur_page *page = mmap(NULL, UR_PAGE_SHOWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *ring = mmap(NULL, UR_MAILRING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(s && page != MAP_FAILED && ring != MAP_FAILED);
	*s = (struct ur_sibling){.page = page,
				 .ring = ring,
				 .ring_bytes = UR_MAILRING_BYTES,
				 .wake_fd = eventfd(0, 0),
				 .id = 7,
				 .slot = ur_registry_slot(other)};
	r->sibling[s->slot] = s;
	return page;
}

/* Wherever the links lead, and whatever an entry says: calls end, soon, and what is our own stays right. */
static void trust__tables_that_lie(void)
{
	static const uint32_t links[] = {1, 2, UR_PORTS, UR_PORTS + 1, UINT32_MAX}; /* the first two are circles */
	struct ur_registry *r = join_here();
	struct ur_page *page = liar(r);

	page->ports.changes = 1; /* for ever */
	for (unsigned i = 0; i < ur_array_size(links); i++) {
		double begin = cpu_seconds();

		for (unsigned c = 0; c < UR_PORT_CHAINS; c++)
			page->ports.chain[c] = links[i];
		page->ports.entry[0].next = page->ports.entry[1].next = links[i];
		page->ports.entry[UR_PORTS - 1].next = UR_PORTS;
		CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, true, &(uint16_t){500}), 0);
		CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &(uint16_t){500}), EADDRINUSE);
		CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &y, false, &(uint16_t){0}), 0);
		CU_ASSERT_FALSE(ur_registry_other_answers(r, TCP, 500, &x));
		ur_registry_release(r, TCP, &x, 500);
		CU_ASSERT_TRUE(cpu_seconds() - begin < 1);
	}
}

/* One that tries for ever to get every port there is, and never says whether it did. */
static void trust__sibling_that_never_decides(void)
{
	struct ur_registry *r = join_here();
	struct ur_page *page = liar(r);
	double begin = cpu_seconds();
	long before = sleeps();

	for (unsigned port = 0; port < UR_PORTS; port++) {
		uint32_t *head = &page->ports.chain[(port ^ TCP * 0x9e5u) & (UR_PORT_CHAINS - 1)];

		page->ports.entry[port] = (struct ur_port_entry){
			.next = *head, .port_space = TCP, .port = (uint16_t)port, .state = UR_PORT_TRYING, .gid = any};
		*head = port + 1;
	}
	CU_ASSERT_EQUAL(ur_registry_bind(r, TCP, &x, false, &(uint16_t){500}), EADDRINUSE);
	ur_registry_bind(r, TCP, &x, false, &(uint16_t){0});
	CU_ASSERT_EQUAL(ur_registry_bind(r, UDP, &x, false, &(uint16_t){500}), 0);
	CU_ASSERT_TRUE(cpu_seconds() - begin < 2 && sleeps() - before < 10000);
}

/* Whatever a sibling says of who shares the port. */
static void trust__sharers_that_lie(void)
{
	struct ur_registry *r = join_here();
	struct ur_page *page = liar(r);
	uint8_t slots[256];

	page->sharers.turn = UINT32_MAX;
	page->sharers.n = UINT32_MAX;
	for (unsigned i = 0; i < 256; i++)
		page->sharers.slot[i] = (uint8_t)(255 - i);
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(r, slots, false), 0); /* nobody holds the name */
	ur_registry_sharers_end(r, true);
	memset(page->sharers.slot, ur_registry_slot(here[1]), 256);
	ur_registry_sharers_begin(here[1], slots, false);
	ur_registry_sharers_end(here[1], true);
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(r, slots, true), 1);
	CU_ASSERT_EQUAL(slots[0], ur_registry_slot(here[1]));
	ur_registry_sharers_end(r, true);
}

void ur_suite_registry_trust(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("registry_trust", NULL, NULL, registry_setup, registry_teardown);

	CU_ADD_TEST(s, trust__other_user);
	CU_ADD_TEST(s, trust__nothing_for_strangers);
	CU_ADD_TEST(s, trust__nothing_for_impostors);
	CU_ADD_TEST(s, trust__container);
	CU_ADD_TEST(s, trust__users_without_a_number);
	CU_ADD_TEST(s, trust__no_files);
	CU_ADD_TEST(s, trust__stopped_sibling);
	CU_ADD_TEST(s, trust__stopped_sharer);
	CU_ADD_TEST(s, trust__pages_that_are_none);
	CU_ADD_TEST(s, trust__tables_that_lie);
	CU_ADD_TEST(s, trust__sibling_that_never_decides);
	CU_ADD_TEST(s, trust__sharers_that_lie);
}
