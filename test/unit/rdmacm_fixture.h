/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of lib/rdmacm in which a process talks to itself, over its own address. The port is a null device: what is for somebody else
 * goes nowhere. Each test runs in a child, which has an engine of its own and starts it.
 */
#ifndef RDMACM_FIXTURE_H
#define RDMACM_FIXTURE_H

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdmacm/rdmacm_priv.h"
#include "verbs_fixture.h"

#define RDMACM_TEST_SECONDS 60
/* In the child: the line of the first wrong statement is the test's result. */
#define WANT(x)                                                                                                                            \
	do {                                                                                                                               \
		if (!(x))                                                                                                                  \
			return __LINE__;                                                                                                   \
	} while (0)
#define WANT_ERRNO(call, err)                                                                                                              \
	do {                                                                                                                               \
		errno = 0;                                                                                                                 \
		if ((call) != -1 || errno != (err))                                                                                        \
			return __LINE__;                                                                                                   \
	} while (0)

static inline int rdmacm_run_child(const char *file, int (*test)(void))
{
	int fd[2], line = -1;
	pid_t pid;

	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		alarm(RDMACM_TEST_SECONDS);
		setenv("UROCE_IP", "fd00::1/64,10.0.0.1/24", 1); /* not the parent's device: the two do not share its ports */
		line = test();
		if (write(fd[1], &line, sizeof(line)) != sizeof(line))
			_exit(1);
		_exit(0);
	}
	close(fd[1]);
	if (read(fd[0], &line, sizeof(line)) != sizeof(line))
		line = -1; /* it crashed or took too long */
	close(fd[0]);
	waitpid(pid, NULL, 0);
	if (line)
		fprintf(stderr, "\n%s:%d\n", file, line);
	return line;
}

struct side {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct rdma_cm_event *ev;
};

static inline struct sockaddr *address(const char *text, uint16_t port)
{
	static struct sockaddr_storage ss;
	struct ur_gid gid;
	struct in_addr v4;

	memset(&gid, 0, sizeof(gid));
	if (inet_pton(AF_INET, text, &v4) == 1) {
		memset(gid.raw + 10, 0xff, 2);
		memcpy(gid.raw + 12, &v4, 4);
	} else {
		inet_pton(AF_INET6, text, gid.raw);
	}
	ur_sa_put(&ss, &gid, port);
	return (struct sockaddr *)&ss;
}

/* The next event, which stays in s->ev until the call after. */
static inline int next(struct side *s, enum rdma_cm_event_type type)
{
	if (s->ev)
		WANT(!rdma_ack_cm_event(s->ev));
	s->ev = NULL;
	WANT(!rdma_get_cm_event(s->ch, &s->ev));
	if (s->ev->event != type)
		fprintf(stderr, "%s (%d) instead of %s\n", rdma_event_str(s->ev->event), s->ev->status, rdma_event_str(type));
	WANT(s->ev->event == type);
	return 0;
}

static inline int close_side(struct side *s)
{
	if (s->ev)
		WANT(!rdma_ack_cm_event(s->ev));
	if (s->id) {
		if (s->id->qp)
			rdma_destroy_qp(s->id);
		WANT(!rdma_destroy_id(s->id));
	}
	rdma_destroy_event_channel(s->ch);
	return 0;
}

#endif
