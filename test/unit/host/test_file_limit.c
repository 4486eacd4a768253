/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that may not grow (ulimit -f): no signal comes, the page becomes smaller, and what cannot be written is said. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/output.h"
#include "host/limits.h"
#include "host/page.h"

void ur_suite_file_limit(void);

/* The number of the first expectation that was not met, in a process whose files have at most that many bytes; 0, or more than 255 by a
 * signal. */
static int with_files_of(size_t most, int (*run)(void))
{
	const struct rlimit limit = {most, most};
	int status = -1;
	pid_t child = fork();

	if (!child) {
		signal(SIGXFSZ, SIG_DFL);
		_exit(setrlimit(RLIMIT_FSIZE, &limit) ? 255 : run());
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + status;
}

static int make_page(void)
{
	struct ur_own_page own;

	if (ur_page_create(&own, 1))
		return 1;
	if (own.ring_bytes >= UR_MAILRING_BYTES || ur_page_check(own.memfd) != own.ring_bytes)
		return 2;
	if (!ur_page_open_ring(&own, 255))
		return 3;
	memset(ur_page_ring(&own, 255), 1, own.ring_bytes);
	ur_page_close(&own);
	return 0;
}

static int make_none(void)
{
	struct ur_own_page own;
	sigset_t set;

	if (ur_page_create(&own, 1) != EFBIG || own.page)
		return 1;
	ur_page_close(&own);
	return sigpending(&set) || sigismember(&set, SIGXFSZ) ? 2 : 0;
}

static void page__is_as_large_as_files_may_be(void)
{
	CU_ASSERT_EQUAL(with_files_of(100u << 20, make_page), 0);
	CU_ASSERT_EQUAL(with_files_of(11u << 20, make_page), 0); /* as uroce(7) says */
	CU_ASSERT_EQUAL(with_files_of(1u << 20, make_none), 0);
}

static int write_much(void)
{
	static const char bytes[10000];
	int fd = memfd_create("much", 0);
	sigset_t set;

	if (ur_output_write(fd, bytes, sizeof(bytes)) != 4096 || errno != EFBIG)
		return 1;
	if (ur_output_write(fd, bytes, sizeof(bytes)) != 0 || errno != EFBIG)
		return 2;
	if (sigprocmask(SIG_BLOCK, NULL, &set) || sigismember(&set, SIGXFSZ))
		return 3;
	return sigpending(&set) || sigismember(&set, SIGXFSZ) ? 4 : 0;
}

/* A program that blocks the signal itself keeps it blocked, finds none of ours, and keeps one of its own. */
static int write_blocked(void)
{
	static const char bytes[10000];
	int fd = memfd_create("much", 0);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (ur_output_write(fd, bytes, sizeof(bytes)) != 4096)
		return 1;
	if (sigprocmask(SIG_BLOCK, NULL, &set) || !sigismember(&set, SIGXFSZ))
		return 2;
	if (sigpending(&set) || sigismember(&set, SIGXFSZ))
		return 3;
	raise(SIGXFSZ);
	if (ur_output_write(fd, bytes, sizeof(bytes)) != 0)
		return 4;
	return sigpending(&set) || !sigismember(&set, SIGXFSZ) ? 5 : 0;
}

static void output__ends_at_the_limit(void)
{
	CU_ASSERT_EQUAL(with_files_of(4096, write_much), 0);
	CU_ASSERT_EQUAL(with_files_of(4096, write_blocked), 0);
}

static void reason__says_which_limit(void)
{
	CU_ASSERT_PTR_NOT_NULL(strstr(ur_limit_reason(EFBIG), "ulimit -f"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ur_limit_reason(EMFILE), "ulimit -n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ur_limit_reason(ENOSYS), "memfd_create"));
	CU_ASSERT_STRING_EQUAL(ur_limit_reason(ENOENT), strerror(ENOENT));
}

void ur_suite_file_limit(void)
{
	CU_pSuite s = CU_add_suite("file_limit", NULL, NULL);

	CU_ADD_TEST(s, page__is_as_large_as_files_may_be);
	CU_ADD_TEST(s, output__ends_at_the_limit);
	CU_ADD_TEST(s, reason__says_which_limit);
}
