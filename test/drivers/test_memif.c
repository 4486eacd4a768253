/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes, each with one end of a memif, that close at the same moment: EAL's service thread sees the peer go while the port is being
 * closed. DPDK's driver (22.11) takes no lock there and would free its rings twice.
 */
#define _GNU_SOURCE
#include <CUnit/Basic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/ethdev/internal.h"
#include "test/drivers/port_util.h"

#define ROUNDS 20
#define SLOW_MS 6

static char dir[] = "/tmp/test_memif.XXXXXX";

static bool linked(struct ur_port *p)
{
	uint64_t end = now_ms() + 5000;

	while (!p->ops->link_up(p))
		if (now_ms() > end)
			return false;
	return true;
}

static void sleep_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* The driver's way through its rings takes this long for each of them, so that those of two threads overlap whenever they can. */
int __real_munmap(void *addr, size_t len);
int __wrap_munmap(void *addr, size_t len);
int __wrap_munmap(void *addr, size_t len)
{
	int rc = __real_munmap(addr, len);

	sleep_ms(SLOW_MS);
	return rc;
}

/* Waits until the other one is here, too. */
static bool meet(int other)
{
	char c;

	return write(other, "", 1) == 1 && read(other, &c, 1) == 1;
}

/* Opens and closes an end. 0, or what failed. */
static int run_end(const char *role, int other, bool late)
{
	char vdev[128];

	snprintf(vdev, sizeof(vdev), "net_memif0,role=%s,socket=%s/socket,socket-abstract=no", role, dir);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ur_port *p;

		if (ur_ethdev_open(&(struct ur_ethdev_config){.vdev = vdev}, &p, err, sizeof(err))) {
			fprintf(stderr, "round %u, %s: %s\n", i, role, err);
			return 1;
		}
		if (!linked(p))
			return 2;
		if (!meet(other))
			return 3;
		if (late == (i & 1))
			sleep_ms(SLOW_MS / 2); /* the peer has gone when this one begins, and was seen to go */
		p->ops->close(p);
		if (ur_eal_has_logged("Invalid memory")) /* what rte_free says of memory that was freed before */
			return 4;
		if (!meet(other))
			return 5;
	}
	return 0;
}

static pid_t start_end(const char *role, int other, int close_me, bool late)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(close_me);
	alarm(60);
	_exit(run_end(role, other, late));
}

static void close__both_at_once(void)
{
	pid_t pid[2];
	int fd[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	pid[0] = start_end("server", fd[0], fd[1], false);
	pid[1] = start_end("client", fd[1], fd[0], true);
	close(fd[0]);
	close(fd[1]);
	for (unsigned i = 0; i < 2; i++) {
		int status = -1;

		CU_ASSERT_EQUAL(waitpid(pid[i], &status, 0), pid[i]);
		if (WIFSIGNALED(status))
			fprintf(stderr, "end %u: %s\n", i, strsignal(WTERMSIG(status)));
		else if (WEXITSTATUS(status))
			fprintf(stderr, "end %u: failed in step %d\n", i, WEXITSTATUS(status));
		CU_ASSERT_EQUAL(status, 0);
	}
}

int main(void)
{
	unsigned failed;

	alarm(90);
	if (!mkdtemp(dir) || CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_add_test(CU_add_suite("memif", NULL, NULL), "close__both_at_once", close__both_at_once);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	rmdir(dir);
	return failed != 0;
}
