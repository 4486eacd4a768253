/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Child processes for tests of what processes share. A child answers requests over a socket until it is told to end or is killed; an alarm
 * and the death of its parent end it as well. procs_end belongs into the suite's teardown, which runs after a fatal failure too;
 * a setup cannot fail so, thus no child is started there.
 */
#ifndef UR_PROC_HARNESS_H
#define UR_PROC_HARNESS_H

#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCS_MAX 4
#define PROC_SECONDS 30

static struct proc {
	pid_t pid; /* 0: none */
	int fd;
} procs[PROCS_MAX];

/* Runs fn in a child; what it returns is the child's exit status. */
static inline struct proc *proc_start(int (*fn)(int fd, uint64_t arg), uint64_t arg)
{
	const struct timeval patience = {.tv_sec = PROC_SECONDS};
	struct proc *p = procs;
	int sv[2];

	while (p < procs + PROCS_MAX && p->pid)
		p++;
	CU_ASSERT_FATAL(p < procs + PROCS_MAX);
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	p->pid = fork();
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(PROC_SECONDS);
		close(sv[0]);
		for (struct proc *o = procs; o < procs + PROCS_MAX; o++)
			if (o->pid)
				close(o->fd);
		_exit(fn(sv[1], arg));
	}
	close(sv[1]);
	p->fd = sv[0];
	if (p->pid < 0) {
		close(sv[0]);
		p->pid = 0;
		CU_FAIL_FATAL("fork failed");
	}
	return p;
}

static inline void proc_ask(struct proc *p, const void *req, size_t req_len, void *reply, size_t reply_len)
{
	CU_ASSERT_EQUAL_FATAL(send(p->fd, req, req_len, MSG_NOSIGNAL), (ssize_t)req_len);
	CU_ASSERT_EQUAL_FATAL(recv(p->fd, reply, reply_len, 0), (ssize_t)reply_len);
}

/* As a crash ends it; when this returns the kernel has given back what it held. */
static inline void proc_kill(struct proc *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->fd);
	p->pid = 0;
}

/* When this returns none of its threads runs. */
static inline void proc_stop(struct proc *p)
{
	int status = 0;

	kill(p->pid, SIGSTOP);
	waitpid(p->pid, &status, WUNTRACED);
	CU_ASSERT_TRUE(WIFSTOPPED(status));
}

/* Waits for it to end by itself. */
static inline int proc_wait(struct proc *p)
{
	int status = -1;

	waitpid(p->pid, &status, 0);
	close(p->fd);
	p->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void procs_end(void)
{
	for (struct proc *p = procs; p < procs + PROCS_MAX; p++)
		if (p->pid)
			proc_kill(p);
}

/* Names a device that nothing else on this host has. */
static inline uint64_t proc_random_key(void)
{
	uint64_t key = 0;

	CU_ASSERT_EQUAL(getrandom(&key, sizeof(key), 0), (ssize_t)sizeof(key));
	return key;
}

#endif
