/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of a process with itself, over its own address, for tests of lib/rdmacm. The port is a null device: what is for somebody else
 * goes nowhere. Each test is a function that runs in a child, which has an engine of its own; it returns 0, or the line of its first wrong
 * statement, which WANT sees to.
 */
#ifndef UR_RDMACM_FIXTURE_H
#define UR_RDMACM_FIXTURE_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdmacm/internal.h"
#include "verbs_fixture.h"

#define RX_SECONDS 60
#define RX_PORT 7471
#define RX_HERE "10.0.0.1"
#define RX_NOBODY "10.0.0.2" /* on the same network, and never answers */

#define WANT(x) \
	do { \
		if (!(x)) \
			return __LINE__; \
	} while (0)
/* A helper's line is not ours, but says more. */
#define WANT_OK(call) \
	do { \
		int line_ = (call); \
		if (line_) { \
			fprintf(stderr, "line %d of %s\n", line_, #call); \
			return __LINE__; \
		} \
	} while (0)
#define WANT_ERRNO(call, err) \
	do { \
		errno = 0; \
		if ((call) != -1 || errno != (err)) { \
			fprintf(stderr, "errno %d (%s) instead of %d\n", errno, strerror(errno), err); \
			return __LINE__; \
		} \
	} while (0)

/* There with the address sanitizer: children end without what it does at exit. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static inline int rx_child(const char *file, int (*test)(void))
{
	int fd[2], line = -1, status;
	pid_t pid;

	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		alarm(RX_SECONDS);
		setenv("UROCE_IP", "fd00::1/64,10.0.0.1/24", 1); /* not the parent's device: the two do not share its ports */
		line = test();
		if (!line && __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
			line = -1;
		if (write(fd[1], &line, sizeof(line)) != sizeof(line))
			_exit(1);
		_exit(0);
	}
	close(fd[1]);
	if (read(fd[0], &line, sizeof(line)) != sizeof(line))
		line = -1; /* it crashed or took too long */
	close(fd[0]);
	if (waitpid(pid, &status, 0) != pid || status)
		line = line ? line : -1; /* a sanitizer has said something */
	if (line)
		fprintf(stderr, "\n%s:%d\n", file, line);
	return line;
}

/* The CUnit function for a test and its place in the suite. */
#define RX_DEFINE(function, name) \
	static void function##__##name(void) \
	{ \
		CU_ASSERT_EQUAL(rx_child(__FILE__, name), 0); \
	}
#define RX_ADD(function, name) CU_add_test(s, #function "__" #name, function##__##name);

static inline struct ur_gid rx_gid(const char *text)
{
	struct ur_gid gid = {{[10] = 0xff, 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		inet_pton(AF_INET6, text, gid.raw);
	return gid;
}

static inline struct sockaddr *rx_address(const char *text, uint16_t port)
{
	static __thread struct sockaddr_storage ss;
	struct ur_gid gid = rx_gid(text);

	ur_sa_put(&ss, &gid, port);
	return (struct sockaddr *)&ss;
}

/* An id, the channel where its events come, and the event read last. The id of a request has its listener's channel. */
struct rx_side {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct rdma_cm_event *ev;
	bool shared;
};

static inline int rx_ack(struct rx_side *s)
{
	struct rdma_cm_event *ev = s->ev;

	s->ev = NULL;
	return ev ? rdma_ack_cm_event(ev) : 0;
}

/* The next event of the channel, which stays in s->ev until the call after. */
static inline int rx_next(struct rx_side *s, enum rdma_cm_event_type type)
{
	WANT(!rx_ack(s));
	WANT(!rdma_get_cm_event(s->ch, &s->ev));
	if (s->ev->event != type)
		fprintf(stderr, "%s (%d) instead of %s\n", rdma_event_str(s->ev->event), s->ev->status, rdma_event_str(type));
	WANT(s->ev->event == type);
	return 0;
}

static inline bool rx_quiet(const struct rx_side *s, int ms)
{
	struct pollfd p = {.fd = s->ch->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 0;
}

static inline int rx_open_in(struct rx_side *s, enum rdma_port_space ps)
{
	memset(s, 0, sizeof(*s));
	s->ch = rdma_create_event_channel();
	WANT(s->ch && !rdma_create_id(s->ch, &s->id, s, ps));
	return 0;
}

static inline int rx_open(struct rx_side *s)
{
	return rx_open_in(s, RDMA_PS_TCP);
}

static inline int rx_close(struct rx_side *s)
{
	WANT(!rx_ack(s));
	if (s->id) {
		if (s->id->qp)
			rdma_destroy_qp(s->id);
		if (s->id->srq)
			rdma_destroy_srq(s->id);
		WANT(!rdma_destroy_id(s->id));
	}
	if (!s->shared)
		rdma_destroy_event_channel(s->ch);
	memset(s, 0, sizeof(*s));
	return 0;
}

static inline int rx_listen_at(struct rx_side *l, enum rdma_port_space ps, struct sockaddr *at, int backlog)
{
	WANT_OK(rx_open_in(l, ps));
	WANT(!rdma_bind_addr(l->id, at));
	WANT(!rdma_listen(l->id, backlog));
	return 0;
}

static inline int rx_listen(struct rx_side *l, uint16_t port, int backlog)
{
	return rx_listen_at(l, RDMA_PS_TCP, rx_address(RX_HERE, port), backlog);
}

static inline int rx_make_qp_of(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {.qp_type = type, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	return rdma_create_qp(id, NULL, &attr);
}

static inline int rx_make_qp(struct rdma_cm_id *id)
{
	return rx_make_qp_of(id, IBV_QPT_RC);
}

static inline int rx_resolve_addr_of(struct rx_side *c, enum rdma_port_space ps, struct sockaddr *to)
{
	WANT_OK(rx_open_in(c, ps));
	WANT(!rdma_resolve_addr(c->id, NULL, to, 2000));
	WANT_OK(rx_next(c, RDMA_CM_EVENT_ADDR_RESOLVED));
	return 0;
}

static inline int rx_resolve_addr(struct rx_side *c, uint16_t port)
{
	return rx_resolve_addr_of(c, RDMA_PS_TCP, rx_address(RX_HERE, port));
}

static inline int rx_resolve_to(struct rx_side *c, enum rdma_port_space ps, struct sockaddr *to)
{
	WANT_OK(rx_resolve_addr_of(c, ps, to));
	WANT(!rdma_resolve_route(c->id, 2000));
	WANT_OK(rx_next(c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return 0;
}

static inline int rx_resolve(struct rx_side *c, uint16_t port)
{
	return rx_resolve_to(c, RDMA_PS_TCP, rx_address(RX_HERE, port));
}

static inline int rx_connect(struct rx_side *c, uint16_t port)
{
	struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

	WANT_OK(rx_resolve(c, port));
	WANT_OK(rx_make_qp(c->id));
	WANT(!rdma_connect(c->id, &p));
	return 0;
}

/* The new id of a request goes on in `s`, on the listener's channel. */
static inline int rx_request(struct rx_side *l, struct rx_side *s)
{
	WANT_OK(rx_next(l, RDMA_CM_EVENT_CONNECT_REQUEST));
	WANT(l->ev->listen_id == l->id && l->ev->id != l->id && l->ev->id->context == l->id->context);
	*s = (struct rx_side){.id = l->ev->id, .ch = l->ch, .shared = true};
	return 0;
}

/* A whole connection with QPs; both ESTABLISHED events have been read. */
static inline int rx_establish(struct rx_side *l, struct rx_side *c, struct rx_side *s)
{
	WANT_OK(rx_connect(c, RX_PORT));
	WANT_OK(rx_request(l, s));
	WANT_OK(rx_make_qp(s->id));
	WANT(!rdma_accept(s->id, NULL));
	WANT_OK(rx_next(c, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_next(l, RDMA_CM_EVENT_ESTABLISHED));
	WANT(l->ev->id == s->id);
	return 0;
}

/* As rx_request, but the id is to have a channel of its own, where rx_take puts it. */
static inline int rx_request_apart(struct rx_side *l, struct rx_side *s)
{
	WANT_OK(rx_request(l, s));
	*s = (struct rx_side){.id = s->id, .ch = rdma_create_event_channel()};
	WANT(s->ch);
	return 0;
}

/* Acknowledges the request, so that the id may move. */
static inline int rx_take(struct rx_side *l, struct rx_side *s)
{
	WANT(!rx_ack(l) && !rdma_migrate_id(s->id, s->ch));
	return 0;
}

/* A whole connection of the resolved id `c` to `l`, with QPs of these types and the new id on a channel of its own. */
static inline int rx_join(struct rx_side *l, struct rx_side *c, struct rx_side *s, enum ibv_qp_type active, enum ibv_qp_type passive)
{
	struct rdma_conn_param p = {.responder_resources = 2, .initiator_depth = 2, .retry_count = 5, .rnr_retry_count = 6};

	WANT(!rx_make_qp_of(c->id, active) && !rdma_connect(c->id, &p));
	WANT_OK(rx_request_apart(l, s));
	WANT_OK(rx_take(l, s));
	WANT(!rx_make_qp_of(s->id, passive) && !rdma_accept(s->id, &p));
	WANT_OK(rx_next(c, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_next(s, RDMA_CM_EVENT_ESTABLISHED));
	return 0;
}

static inline int rx_part(struct rx_side *c, struct rx_side *s)
{
	WANT(!rdma_disconnect(c->id) && !rx_next(s, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rdma_disconnect(s->id) && !rx_next(c, RDMA_CM_EVENT_DISCONNECTED));
	WANT(!rx_next(c, RDMA_CM_EVENT_TIMEWAIT_EXIT) && !rx_next(s, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	return 0;
}

#endif
