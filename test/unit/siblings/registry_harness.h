/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of the registry: a device that nothing else on this host has, registries that this process opens, and child processes that do
 * with theirs what they are asked to.
 */
#ifndef UR_REGISTRY_HARNESS_H
#define UR_REGISTRY_HARNESS_H

#include <sys/resource.h>
#include <stdio.h>

#include "proc_harness.h"
#include "siblings/registry.h"
#include "slots_harness.h"

#define OPEN_MAX_HERE 256
#define TCP 0x106
#define UDP 0x111

static uint64_t key;
static struct ur_registry *here[OPEN_MAX_HERE]; /* of this process; each counts as a process of its own */
static unsigned here_n;

static const struct ur_gid any;
static const struct ur_gid x = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct ur_gid y = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};

static inline void registry_setup(void)
{
	key = proc_random_key();
	here_n = 0;
}

static inline void registry_teardown(void)
{
	procs_end();
	while (here_n)
		ur_registry_close(here[--here_n]);
}

static inline struct ur_registry *open_here(void)
{
	CU_ASSERT_FATAL(here_n < OPEN_MAX_HERE);
	CU_ASSERT_EQUAL_FATAL(ur_registry_open(key, &here[here_n]), 0);
	return here[here_n++];
}

static inline void close_here(void)
{
	ur_registry_close(here[--here_n]);
}

static inline struct ur_registry *join_here(void)
{
	struct ur_registry *r = open_here();

	CU_ASSERT_EQUAL(ur_registry_join(r), 0);
	return r;
}

/* How often this thread has slept. */
static inline long sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/* --- the other process --- */

enum op { OP_SLOT, OP_BIND, OP_RELEASE, OP_LISTEN, OP_OTHER_ANSWERS, OP_STARTED, OP_KNOWS, OP_CLOSE };

struct request {
	enum op op;
	uint16_t port_space, port;
	bool on; /* reuse, or listening */
	struct ur_gid gid;
};

struct reply {
	int result;
	uint16_t port;
};

static inline struct reply serve(struct ur_registry *r, const struct request *q)
{
	struct reply a = {.port = q->port};

	switch (q->op) {
	case OP_SLOT: a.result = ur_registry_slot(r); break;
	case OP_BIND: a.result = ur_registry_bind(r, q->port_space, &q->gid, q->on, &a.port); break;
	case OP_RELEASE: ur_registry_release(r, q->port_space, &q->gid, q->port); break;
	case OP_LISTEN: a.result = ur_registry_listen(r, q->port_space, &q->gid, q->port, q->on); break;
	case OP_OTHER_ANSWERS: a.result = ur_registry_other_answers(r, q->port_space, q->port, &q->gid); break;
	case OP_STARTED: ur_registry_started(r, q->on ? "\033[8mx" : "udp"); break; /* `on`: what a terminal would obey */
	case OP_KNOWS:
		ur_registry_meet(r);
		a.result = ur_registry_sibling(r, (uint8_t)q->port) != NULL;
		break;
	case OP_CLOSE: ur_registry_close(r); break;
	}
	return a;
}

static inline int child(int fd, uint64_t k)
{
	struct ur_registry *r;
	struct request q;

	if (ur_registry_open(k, &r) || ur_registry_join(r))
		return 1;
	while (recv(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		struct reply a = serve(r, &q);

		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			return 2;
		if (q.op == OP_CLOSE)
			return 0;
	}
	return 3;
}

#define NOBODY 65534

/* As a process of another user; of this one when we are not the superuser. */
static inline int child_of_nobody(int fd, uint64_t k)
{
	return setresuid(NOBODY, NOBODY, NOBODY) ? 4 : child(fd, k);
}

static inline struct reply ask(struct proc *p, struct request q)
{
	struct reply a = {0};

	proc_ask(p, &q, sizeof(q), &a, sizeof(a));
	return a;
}

static inline struct proc *start_as(int (*fn)(int fd, uint64_t k), uint64_t k, uint8_t *slot)
{
	struct proc *p = proc_start(fn, k);

	*slot = (uint8_t)ask(p, (struct request){.op = OP_SLOT}).result;
	return p;
}

static inline struct proc *start(uint64_t k, uint8_t *slot)
{
	return start_as(child, k, slot);
}

static inline bool knows_there(struct proc *p, uint8_t slot)
{
	return ask(p, (struct request){.op = OP_KNOWS, .port = slot}).result;
}

static inline int bind_there(struct proc *p, uint16_t ps, const struct ur_gid *gid, bool reuse, uint16_t port)
{
	return ask(p, (struct request){.op = OP_BIND, .port_space = ps, .gid = *gid, .on = reuse, .port = port}).result;
}

static inline int listen_there(struct proc *p, uint16_t ps, const struct ur_gid *gid, uint16_t port, bool on)
{
	return ask(p, (struct request){.op = OP_LISTEN, .port_space = ps, .gid = *gid, .on = on, .port = port}).result;
}

static inline bool elsewhere_there(struct proc *p, uint16_t port)
{
	return ask(p, (struct request){.op = OP_OTHER_ANSWERS, .port_space = TCP, .gid = x, .port = port}).result;
}

static inline void close_there(struct proc *p)
{
	ask(p, (struct request){.op = OP_CLOSE});
	CU_ASSERT_EQUAL(proc_wait(p), 0);
}

#endif
