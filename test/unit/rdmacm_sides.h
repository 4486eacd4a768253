/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of lib/rdmacm that connect a process with itself, over its own address. The port is a null device: what is for somebody else
 * goes nowhere. Each test runs in a child, which has an engine of its own and starts it, and returns the line of the first wrong statement.
 */
#ifndef UR_RDMACM_SIDES_H
#define UR_RDMACM_SIDES_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdmacm/rdmacm_priv.h"
#include "verbs_fixture.h"

#define SIDES_SECONDS 60
#define SIDES_PORT 7471

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

static inline int sides_run(int (*test)(void), const char *file)
{
	int fd[2], line = -1;
	pid_t pid;

	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		alarm(SIDES_SECONDS);
		setenv("UROCE_IP", "fd00::1/64,10.0.0.1/24", 1); /* not the parent's device: the two do not share its ports */
		line = test();
		_exit(write(fd[1], &line, sizeof(line)) != sizeof(line));
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
	struct rdma_cm_event *ev; /* the latest, acknowledged by the next */
};

static inline struct ur_gid sides_gid(const char *text)
{
	struct ur_gid gid = {{[10] = 0xff, 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		inet_pton(AF_INET6, text, gid.raw);
	return gid;
}

static inline struct sockaddr *sides_ip(const char *text, uint16_t port)
{
	static struct sockaddr_storage ss;
	struct ur_gid gid = sides_gid(text);

	ur_sa_put(&ss, &gid, port);
	return (struct sockaddr *)&ss;
}

static inline int side_next(struct side *s, enum rdma_cm_event_type type)
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

static inline int side_open(struct side *s, enum rdma_port_space ps)
{
	memset(s, 0, sizeof(*s));
	s->ch = rdma_create_event_channel();
	WANT(s->ch && !rdma_create_id(s->ch, &s->id, s, ps));
	return 0;
}

static inline int side_close(struct side *s)
{
	if (s->ev)
		WANT(!rdma_ack_cm_event(s->ev));
	if (s->id)
		rdma_destroy_ep(s->id);
	rdma_destroy_event_channel(s->ch);
	memset(s, 0, sizeof(*s));
	return 0;
}

static inline int side_listen(struct side *l, enum rdma_port_space ps, struct sockaddr *at)
{
	WANT(!side_open(l, ps));
	WANT(!rdma_bind_addr(l->id, at) && !rdma_listen(l->id, 0));
	return 0;
}

static inline int side_resolve(struct side *c, enum rdma_port_space ps, struct sockaddr *to)
{
	WANT(!side_open(c, ps));
	WANT(!rdma_resolve_addr(c->id, NULL, to, 2000) && !side_next(c, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!rdma_resolve_route(c->id, 2000) && !side_next(c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return 0;
}

static inline int side_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {.qp_type = type, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	return rdma_create_qp(id, NULL, &attr);
}

/* The id of the listener's next request moves to a channel of its own. */
static inline int side_request(struct side *l, struct side *s)
{
	memset(s, 0, sizeof(*s));
	WANT(!side_next(l, RDMA_CM_EVENT_CONNECT_REQUEST));
	WANT(l->ev->listen_id == l->id);
	s->id = l->ev->id;
	s->ch = rdma_create_event_channel();
	WANT(s->ch);
	return 0;
}

/* Acknowledges the request, so that the id may move. */
static inline int side_take(struct side *l, struct side *s)
{
	WANT(!rdma_ack_cm_event(l->ev) && !rdma_migrate_id(s->id, s->ch));
	l->ev = NULL;
	return 0;
}

/* A whole connection: `c` to `l`'s address with QPs of these types. */
static inline int sides_connect(struct side *l, struct side *c, struct side *s, enum ibv_qp_type active, enum ibv_qp_type passive)
{
	struct rdma_conn_param p = {.responder_resources = 2, .initiator_depth = 2, .retry_count = 5, .rnr_retry_count = 6};

	WANT(!side_qp(c->id, active) && !rdma_connect(c->id, &p));
	WANT(!side_request(l, s) && !side_take(l, s));
	WANT(!side_qp(s->id, passive) && !rdma_accept(s->id, &p));
	WANT(!side_next(c, RDMA_CM_EVENT_ESTABLISHED) && !side_next(s, RDMA_CM_EVENT_ESTABLISHED));
	return 0;
}

static inline int sides_disconnect(struct side *c, struct side *s)
{
	WANT(!rdma_disconnect(c->id) && !side_next(s, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_disconnect(s->id) && !side_next(c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!side_next(c, RDMA_CM_EVENT_TIMEWAIT_EXIT) && !side_next(s, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	return 0;
}

#endif
