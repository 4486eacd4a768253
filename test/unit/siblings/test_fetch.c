/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose memory a copy comes from (siblings/fetch.h): a process id that names another process, or other memory, gives nothing. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proc_harness.h"
#include "siblings/fetch.h"
#include "siblings/local.h"

void ur_suite_fetch(void);

#define LEN 64

enum what { LOOK, FORK, EXECUTE };

struct answer {
	uint8_t slot;
	pid_t forked;
};

/* At one address in this process and all its children, and never the same in two of them, except for one and what it forked. */
static uint8_t memory[LEN];

/* --- the owner of the memory --- */

static pid_t fork_one(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PROC_SECONDS);
	for (;;)
		pause();
}

static int child(int fd, uint64_t k)
{
	struct ur_registry *r;
	struct ur_local *l;
	enum what what;

	memset(memory, 1, sizeof(memory));
	if (ur_registry_open(k, &r) || ur_registry_join(r) || ur_local_open(r, &l))
		return 1;
	ur_local_announce(l);
	while (recv(fd, &what, sizeof(what), 0) == (ssize_t)sizeof(what)) {
		const struct answer a = {.slot = ur_registry_slot(r), .forked = what == FORK ? fork_one() : 0};

		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			return 2;
		if (what == EXECUTE)
			execl("/bin/sleep", "sleep", "30", (char *)NULL); /* the alarm stays */
	}
	return 3;
}

/* --- who copies --- */

static struct ur_registry *registry;
static struct ur_local *local;
static struct proc *owner;
static struct answer told;
static uint8_t copied[LEN];

static struct answer ask(enum what what)
{
	struct answer a = {0};

	proc_ask(owner, &what, sizeof(what), &a, sizeof(a));
	return a;
}

static void setup(void)
{
	local = NULL;
	registry = NULL;
}

static void begin(void)
{
	const uint64_t key = proc_random_key();
	struct ur_pkt *none[1];

	owner = proc_start(child, key);
	CU_ASSERT_EQUAL_FATAL(ur_registry_open(key, &registry), 0);
	told = ask(LOOK); /* it has joined */
	CU_ASSERT_EQUAL_FATAL(ur_registry_join(registry), 0);
	CU_ASSERT_EQUAL_FATAL(ur_local_open(registry, &local), 0);
	ur_queue_rx(ur_local_inbox(local), none, 0);
}

static void teardown(void)
{
	procs_end();
	if (local)
		ur_local_close(local);
	if (registry)
		ur_registry_close(registry);
}

static enum ur_fetched_by fetch(uint64_t at)
{
	const struct ur_piece to[] = {{copied, 7}, {copied + 7, LEN - 7}};
	const struct ur_bulk_seg from = {.at = at, .len = LEN};

	memset(copied, 0, LEN);
	return ur_local_fetch(local, told.slot, to, ur_array_size(to), &from, 1);
}

/* Without asking whose memory it is. */
static bool is_readable(pid_t pid, uint64_t at)
{
	const struct iovec to = {copied, LEN}, from = {(void *)(uintptr_t)at, LEN};

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == LEN;
}

static void fetch__from_its_owner(void)
{
	begin();
	CU_ASSERT_EQUAL(fetch((uintptr_t)memory), UR_FETCHED_BY_KERNEL);
	CU_ASSERT_TRUE(copied[0] == 1 && !memcmp(copied, copied + 1, LEN - 1));
}

/* The id is the same, the memory another. The first mapping of a program is there to be read. */
static void fetch__from_a_process_that_executes_another_program(void)
{
	unsigned long long at = 0;
	char path[64], none;
	FILE *f;

	begin();
	ask(EXECUTE);
	CU_ASSERT_EQUAL_FATAL(recv(owner->fd, &none, 1, 0), 0); /* it has: this was to be closed then */
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)owner->pid);
	f = fopen(path, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fscanf(f, "%llx", &at), 1);
	fclose(f);
	CU_ASSERT_TRUE_FATAL(is_readable(owner->pid, at));
	CU_ASSERT_EQUAL(fetch(at), UR_FETCHED_NOT);
}

/* The id now names a child that its owner forked: the bytes are of the time when it did. */
static void fetch__from_a_child_of_its_owner(void)
{
	const struct ur_piece to = {copied, LEN};
	const struct ur_bulk_seg from = {.at = (uintptr_t)memory, .len = LEN};
	struct ur_sibling s;
	struct ur_owner o;

	begin();
	s = *ur_registry_sibling(registry, told.slot);
	CU_ASSERT_TRUE(ur_fetch(&s, &to, 1, &from, 1));
	s.pid = ask(FORK).forked;
	CU_ASSERT_TRUE_FATAL(s.pid > 0 && is_readable(s.pid, from.at));
	CU_ASSERT_FALSE(ur_fetch(&s, &to, 1, &from, 1));
	o = ur_owner_of(&s);
	CU_ASSERT_FALSE(ur_owner_is_there(&o));
}

/* A process with that id, which the superuser may choose. -1: this user may not, or the kernel cannot. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args a = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
	long child = syscall(SYS_clone3, &a, sizeof(a));

	if (child)
		return (pid_t)child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PROC_SECONDS);
	for (;;)
		pause();
}

/* What the owner has sent before it ended is copied from nobody else. */
static void fetch__from_who_has_its_id_now(void)
{
	pid_t pid, next;

	begin();
	memset(memory, 2, sizeof(memory));
	pid = owner->pid;
	proc_kill(owner);
	next = fork_as(pid);
	if (next < 0) {
		CU_ASSERT_TRUE(errno == EPERM || errno == ENOSYS || errno == EINVAL || errno == EEXIST);
		return;
	}
	CU_ASSERT_EQUAL(next, pid);
	CU_ASSERT_TRUE(is_readable(pid, (uintptr_t)memory));
	CU_ASSERT_EQUAL(fetch((uintptr_t)memory), UR_FETCHED_NOT);
	kill(next, SIGKILL);
	waitpid(next, NULL, 0);
}

/* One number for all of a process's engines: none takes from another what it shows. */
static void offer__twice(void)
{
	struct ur_own_page a, b;

	CU_ASSERT_EQUAL_FATAL(ur_page_create(&a, 1), 0);
	CU_ASSERT_EQUAL_FATAL(ur_page_create(&b, 2), 0);
	ur_fetch_offer(&a);
	ur_fetch_offer(&b);
	CU_ASSERT_TRUE(a.page->proof && a.page->proof == *(const uint64_t *)(uintptr_t)a.page->proof_at);
	CU_ASSERT_TRUE(a.page->proof == b.page->proof && a.page->proof_at == b.page->proof_at);
	ur_page_close(&a);
	ur_page_close(&b);
}

void ur_suite_fetch(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("fetch", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, fetch__from_its_owner);
	CU_ADD_TEST(s, fetch__from_a_process_that_executes_another_program);
	CU_ADD_TEST(s, fetch__from_a_child_of_its_owner);
	CU_ADD_TEST(s, fetch__from_who_has_its_id_now);
	CU_ADD_TEST(s, offer__twice);
}
