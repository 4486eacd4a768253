/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/base/touch.c and lib/engine/catch.c: accesses that find nothing come back, and all other faults are the program's. What ends a
 * process is tried in a child.
 */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/touch.h"
#include "engine/catch.h"
#include "engine/populate.h"

void ur_suite_touch(void);

#define RW (PROT_READ | PROT_WRITE)

static size_t page;
static uint8_t *at; /* two pages; what lies behind gives no access, and is kept so that no other thread maps anything there */
static uint8_t buf[16384];

static void setup(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	at = mmap(NULL, 3 * page, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
	mprotect(at + 2 * page, page, PROT_NONE);
	memset(buf, 7, sizeof(buf));
	CU_ASSERT_TRUE_FATAL(ur_catch_start());
	ur_catch_again();
	ur_catch_admit();
}

static void teardown(void)
{
	munmap(at, 3 * page);
}

/* --- accesses --- */

static void copy__of_every_length_up_to_the_edge(void)
{
	for (size_t n = 0; n <= 2 * page; n += n < 600 ? 1 : 97) {
		uint8_t *edge = at + 2 * page;

		memset(at, 0, 2 * page);
		CU_ASSERT_TRUE(ur_touch_copy(edge - n, buf, n));
		CU_ASSERT_EQUAL(memcmp(edge - n, buf, n), 0);
		CU_ASSERT_TRUE(ur_touch_copy(buf, edge - n, n));
		CU_ASSERT_TRUE(ur_touch_copy_end_last(edge - n, buf, n));
		if (!n)
			continue;
		CU_ASSERT_FALSE(ur_touch_copy(edge - n + 1, buf, n));
		CU_ASSERT_FALSE(ur_touch_copy(buf, edge - n + 1, n));
		CU_ASSERT_FALSE(ur_touch_copy_end_last(edge - n + 1, buf, n));
		CU_ASSERT_FALSE(ur_touch_pending(ur_touch_mine()));
	}
}

static void copy__without_the_right(void)
{
	mprotect(at, page, PROT_READ);
	CU_ASSERT_TRUE(ur_touch_copy(buf, at, 100));
	CU_ASSERT_FALSE(ur_touch_copy(at, buf, 100));
	mprotect(at, page, PROT_NONE);
	CU_ASSERT_FALSE(ur_touch_copy(buf, at, 100));
	mprotect(at, page, RW);
	CU_ASSERT_TRUE(ur_touch_copy(at, buf, 100));
	CU_ASSERT_FALSE(ur_touch_copy((void *)8, buf, 8));
	CU_ASSERT_FALSE(ur_touch_copy((void *)(uintptr_t)0xdead000000000000, buf, 8)); /* not even an address */
}

/* SIGBUS in place of SIGSEGV. */
static void copy__beyond_the_end_of_a_file(void)
{
	int fd = memfd_create("touch", MFD_CLOEXEC);
	uint8_t *file;

	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)(2 * page)) == 0);
	file = mmap(NULL, 2 * page, RW, MAP_SHARED, fd, 0);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(file, MAP_FAILED);
	CU_ASSERT_TRUE(ur_touch_copy(file, buf, 2 * page));
	CU_ASSERT_EQUAL(ftruncate(fd, (off_t)page), 0);
	CU_ASSERT_FALSE(ur_touch_copy(file, buf, 2 * page));
	CU_ASSERT_FALSE(ur_touch_copy(buf, file + page, 1));
	CU_ASSERT_TRUE(ur_touch_copy(buf, file, page));
	munmap(file, 2 * page);
	close(fd);
}

struct steps {
	volatile unsigned done;
	bool inner;
};

static void walk(void *arg)
{
	struct steps *s = arg;

	for (s->done = 0; s->done < 100; s->done++)
		*(volatile uint8_t *)(at + s->done * (page / 10)) = 1;
}

static void nest(void *arg)
{
	struct steps *s = arg;

	s->inner = ur_touch_copy(at + 2 * page, buf, 8);
	walk(arg);
}

static void call__left_in_the_middle(void)
{
	struct steps s = {.inner = true};

	CU_ASSERT_FALSE(ur_touch_call(walk, &s));
	CU_ASSERT_EQUAL(s.done, 2 * page / (page / 10) + (2 * page % (page / 10) != 0));
	/* Another within: it comes back to its own place, and what follows to the outer one. */
	CU_ASSERT_FALSE(ur_touch_call(nest, &s));
	CU_ASSERT_FALSE(s.inner);
	CU_ASSERT_EQUAL(s.done, 2 * page / (page / 10) + (2 * page % (page / 10) != 0));
	CU_ASSERT_FALSE(ur_touch_pending(ur_touch_mine()));
}

static void *blocked_thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	ur_catch_admit();
	for (unsigned i = 0; i < 1000; i++)
		if (ur_touch_copy(at + 2 * page, buf, 8) || !ur_touch_copy(at, buf, 8))
			*(bool *)arg = false;
	return NULL;
}

static void threads__each_for_itself(void)
{
	bool ok[4] = {true, true, true, true};
	pthread_t t[4];

	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, blocked_thread, &ok[i]), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		CU_ASSERT_TRUE(ok[i]);
	}
}

/* The mask is as before, so the next fault is caught too. */
static void mask__is_restored(void)
{
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_FALSE(ur_touch_copy(at + 2 * page, buf, 8));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int s = 1; s < 32; s++)
		CU_ASSERT_EQUAL(sigismember(&before, s), sigismember(&after, s));
}

static void reach__by_touch(void)
{
	memset(at, 5, 2 * page);
	CU_ASSERT_TRUE(ur_populate_by_touch(at, 2 * page, true));
	CU_ASSERT_TRUE(at[0] == 5 && at[page] == 5);
	CU_ASSERT_TRUE(ur_populate_by_touch(at + 2 * page - 1, 1, true));
	CU_ASSERT_FALSE(ur_populate_by_touch(at + 2 * page - 1, 2, false));
	mprotect(at + page, page, PROT_READ);
	CU_ASSERT_TRUE(ur_populate_by_touch(at, 2 * page, false));
	CU_ASSERT_FALSE(ur_populate_by_touch(at, 2 * page, true));
	CU_ASSERT_TRUE(ur_populate_all(at, 2 * page, false));
	CU_ASSERT_FALSE(ur_populate_all(at, 2 * page, true));
	CU_ASSERT_FALSE(ur_populate_all(at, 2 * page + 1, false));
	CU_ASSERT_TRUE(ur_populate_all(NULL, 0, true));
}

/* --- the program's own faults --- */

enum { BY_HANDLER = 42 };
static struct sigaction saved;
static sigjmp_buf back;
static volatile unsigned calls;

static void fault(void)
{
	*(volatile uint8_t *)(at + 2 * page) = 1;
}

static void set(int sig, void (*fn)(int), int flags)
{
	struct sigaction a = {.sa_handler = fn, .sa_flags = flags};

	sigaction(sig, &a, &saved);
}

static void leave(int sig)
{
	(void)sig;
	_exit(BY_HANDLER);
}

static void leave_if_sent(int sig, siginfo_t *info, void *ucontext)
{
	(void)ucontext;
	_exit(sig == SIGSEGV && info->si_code == SI_USER && info->si_pid == getpid() ? BY_HANDLER : 1);
}

static void jump_back(int sig)
{
	(void)sig;
	calls++;
	siglongjmp(back, 1);
}

static void call_saved(int sig, siginfo_t *info, void *ucontext)
{
	calls++;
	if (calls > 3)
		_exit(1); /* they call one another for ever */
	if (saved.sa_flags & SA_SIGINFO)
		saved.sa_sigaction(sig, info, ucontext);
}

static void no_handler(void)
{
	set(SIGSEGV, SIG_DFL, 0);
	ur_catch_again();
	fault();
}

static void ignored(void)
{
	set(SIGSEGV, SIG_IGN, 0);
	ur_catch_again();
	raise(SIGSEGV); /* that is ignored, */
	fault();        /* this cannot be */
}

static void later_handler(void)
{
	set(SIGSEGV, leave, 0);
	ur_catch_again();
	if (ur_touch_copy(at + 2 * page, buf, 8))
		_exit(1);
	fault();
}

static void sent_signal(void)
{
	struct sigaction a = {.sa_sigaction = leave_if_sent, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &a, NULL);
	ur_catch_again();
	kill(getpid(), SIGSEGV);
}

static void jumping_handler(void)
{
	set(SIGSEGV, jump_back, 0);
	ur_catch_again();
	for (unsigned i = 0; i < 100; i++) {
		if (!sigsetjmp(back, 1))
			fault();
		if (calls != i + 1 || ur_touch_copy(at + 2 * page, buf, 8))
			_exit(1);
	}
	_exit(BY_HANDLER);
}

static void chaining_handler(void)
{
	struct sigaction a = {.sa_sigaction = call_saved, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &a, &saved); /* saves ours */
	ur_catch_again();
	fault();
}

static void others__go_to_the_program(void)
{
	static const struct {
		void (*run)(void);
		bool killed;
	} t[] = {{no_handler, true},   {ignored, true},          {later_handler, false},
		 {sent_signal, false}, {jumping_handler, false}, {chaining_handler, true}};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			alarm(20);
			t[i].run();
			_exit(2);
		}
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		if (t[i].killed)
			CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
		else
			CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == BY_HANDLER);
	}
}

void ur_suite_touch(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("touch", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, copy__of_every_length_up_to_the_edge);
	CU_ADD_TEST(s, copy__without_the_right);
	CU_ADD_TEST(s, copy__beyond_the_end_of_a_file);
	CU_ADD_TEST(s, call__left_in_the_middle);
	CU_ADD_TEST(s, threads__each_for_itself);
	CU_ADD_TEST(s, mask__is_restored);
	CU_ADD_TEST(s, reach__by_touch);
	CU_ADD_TEST(s, others__go_to_the_program);
}
