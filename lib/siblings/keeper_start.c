/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program must not notice its keeper: no SIGCHLD, nothing that wait(2) finds. So a child of ours without a signal (it is a "clone
 * child", which wait(2) passes over) starts the keeper and ends at once, and the keeper belongs to init (adopter.h: where that is not so,
 * none is started). A keeper that stays a child cannot be hidden: execve(2) makes it one that wait(2) finds, and without execve(2) it would
 * have this process's memory, or a copy of it. Neither copies this process's memory: the thread that calls stands still until the new
 * program runs in memory of its own.
 */
#include "siblings/keeper_start.h"

#include <errno.h>

#ifdef UR_HAVE_KEEPER

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/file_limit.h"
#include "keeper/farewell_page.h"
#include "keeper/keeper_bytes.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif
#define STACK 32768
#define ABOVE 16 /* descriptors are put here first, out of the way of the numbers that they should have */

struct start {
	char *stack; /* two of them */
	int program, page, pipe, pid;
	char text[16]; /* our process id */
	char ifname[IF_NAMESIZE];
	int err;
};

/* From here on in a child that shares our memory: system calls alone, past libraries that replace functions of libc. */
static void dup_fd(struct start *s, int fd, int at)
{
	if (fd >= 0 && syscall(SYS_dup3, fd, at, 0) >= 0)
		return;
	if (at != UR_KEEPER_PID)
		s->err = errno;
	syscall(SYS_close, at);
}

static int high(struct start *s, int fd)
{
	long up = fd < 0 ? -1 : syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, ABOVE);

	if (fd >= 0 && up < 0)
		s->err = errno;
	return (int)up;
}

static int become_keeper(void *arg)
{
	struct start *s = arg;
	char *argv[] = {(char[]){UR_KEEPER_NAME}, s->text, s->ifname, NULL}, *none[] = {NULL};
	int program = high(s, s->program), page = high(s, s->page), alive = high(s, s->pipe), pid = high(s, s->pid);

	dup_fd(s, page, UR_KEEPER_PAGE);
	dup_fd(s, alive, UR_KEEPER_PIPE);
	dup_fd(s, pid, UR_KEEPER_PID);
	if (!s->err) {
		/* Before the process goes on: names that it gives up must not live on here. */
		syscall(SYS_close_range, UR_KEEPER_PID + 1, program - 1, 0);
		syscall(SYS_close_range, program + 1, ~0u, 0);
		syscall(SYS_execveat, program, "", argv, none, AT_EMPTY_PATH);
		s->err = errno;
	}
	syscall(SYS_exit_group, 0);
	return 0;
}

static int between(void *arg)
{
	struct start *s = arg;

	if (clone(become_keeper, s->stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, s) < 0)
		s->err = errno;
	syscall(SYS_exit_group, 0);
	return 0;
}

/* --- in the process itself --- */

/* How many are being started, and above that by which process: a child that is forked meanwhile starts none of them. */
static _Atomic uint64_t starting;

#define STARTED_BY(pid) ((uint64_t)(uint32_t)(pid) << 32)

bool ur_keeper_is_starting(void)
{
	const uint64_t seen = atomic_load(&starting);

	return (uint32_t)seen && seen >> 32 == STARTED_BY(getpid()) >> 32;
}

static void begin_starting(void)
{
	const uint64_t ours = STARTED_BY(getpid());
	uint64_t seen = atomic_load(&starting);

	while (!atomic_compare_exchange_weak(&starting, &seen, (seen >> 32 == ours >> 32 ? seen : ours) + 1))
		;
}

static int spawn_keeper(struct start *s)
{
	int child;

	s->stack = malloc((size_t)2 * STACK);
	if (!s->stack)
		return ENOMEM;
	begin_starting();
	child = clone(between, s->stack + 2 * STACK, CLONE_VM | CLONE_VFORK, s);
	if (child < 0)
		s->err = errno;
	else
		waitpid(child, NULL, __WCLONE);
	atomic_fetch_sub(&starting, 1);
	free(s->stack);
	return s->err;
}

/* The program as a file without a name: the library may be anywhere, or linked into the program. */
static int program_file(void)
{
	int fd = memfd_create(UR_KEEPER_NAME, MFD_CLOEXEC | MFD_EXEC), err;
	struct ur_file_limit limit;
	ssize_t n;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(UR_KEEPER_NAME, MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	ur_file_limit_begin(&limit);
	n = write(fd, keeper_program, sizeof(keeper_program));
	ur_file_limit_end(&limit);
	if (n == (ssize_t)sizeof(keeper_program))
		return fd;
	err = n < 0 ? errno : EFBIG;
	close(fd);
	errno = err;
	return -1;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int ur_keeper_start(int page, const char *ifname, int *alive)
{
	struct start s = {.page = page};
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	s.pipe = ends[0];
	s.program = program_file();
	err = s.program < 0 ? errno : 0;
	s.pid = (int)syscall(SYS_pidfd_open, getpid(), 0); /* Linux 5.3 */
	snprintf(s.text, sizeof(s.text), "%d", (int)getpid());
	snprintf(s.ifname, sizeof(s.ifname), "%s", ifname);
	if (!err)
		err = spawn_keeper(&s);
	close_fd(s.pid);
	close_fd(s.program);
	close(ends[0]);
	if (err)
		close(ends[1]);
	else
		*alive = ends[1];
	return err;
}

#else

bool ur_keeper_is_starting(void)
{
	return false;
}

int ur_keeper_start(int page, const char *ifname, int *alive)
{
	(void)page;
	(void)ifname;
	(void)alive;
	return ENOSYS;
}

#endif
