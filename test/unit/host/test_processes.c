/* SPDX-License-Identifier: BSD-3-Clause */
/* What an onlooker sees of the processes of a device, while they live, when they have died, and while they come and go. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/processes.h"
#include "registry_harness.h"
#include "wire/frame.h"

void ur_suite_processes(void);

static struct ur_processes *look(void)
{
	struct ur_processes *v = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_processes_list(key, &v), 0);
	return v;
}

static const struct ur_process *seen(const struct ur_processes *v, uint8_t slot)
{
	for (unsigned i = 0; i < v->count; i++)
		if (v->processes[i].slot == slot)
			return &v->processes[i];
	return NULL;
}

enum port_state { GONE, BOUND, LISTENS };

/* Of a port of the process in that slot. */
static enum port_state look_port(uint8_t slot, uint16_t ps, const struct ur_gid *gid, uint16_t port)
{
	struct ur_processes *v = look();
	const struct ur_process *p = seen(v, slot);
	enum port_state state = GONE;

	for (unsigned i = 0; p && i < p->port_count; i++)
		if (p->ports[i].port_space == ps && p->ports[i].port == port && ur_gid_eq(&p->ports[i].gid, gid))
			state = p->ports[i].listening ? LISTENS : BOUND;
	free(v);
	return state;
}

static void processes__nobody(void)
{
	struct ur_processes *v = look();

	CU_ASSERT_EQUAL(v->count, 0);
	free(v);
}

/* The onlooker is none of the processes that it sees. */
static void processes__processes(void)
{
	uint8_t a, b;
	struct proc *pa = start(key, &a), *pb = start(key, &b);
	struct ur_processes *v;

	ask(pb, (struct request){.op = OP_STARTED});
	v = look();
	CU_ASSERT_EQUAL_FATAL(v->count, 2);
	CU_ASSERT_TRUE(v->processes[0].slot < v->processes[1].slot);
	CU_ASSERT_FATAL(seen(v, a) && seen(v, b));
	CU_ASSERT_TRUE(seen(v, a)->known && seen(v, b)->known);
	CU_ASSERT_EQUAL(seen(v, a)->pid, pa->pid);
	CU_ASSERT_EQUAL(seen(v, a)->uid, geteuid());
	CU_ASSERT_FALSE(seen(v, a)->started);
	CU_ASSERT_EQUAL(seen(v, a)->port_count, 0);
	CU_ASSERT_EQUAL(seen(v, b)->pid, pb->pid);
	CU_ASSERT_TRUE(seen(v, b)->started);
	CU_ASSERT_STRING_EQUAL(seen(v, b)->kind, "udp");
	free(v);
}

/* What the other has written is root's to see, not to obey. */
static void processes__odd_kind(void)
{
	uint8_t slot;
	struct proc *p = start(key, &slot);
	struct ur_processes *v;

	ask(p, (struct request){.op = OP_STARTED, .on = true});
	v = look();
	CU_ASSERT_FATAL(v->count == 1 && v->processes[0].known);
	CU_ASSERT_STRING_EQUAL(v->processes[0].kind, "?[8mx");
	free(v);
}

static void processes__ports(void)
{
	uint8_t a, b;
	struct proc *pa = start(key, &a), *pb = start(key, &b);

	CU_ASSERT_EQUAL(bind_there(pa, TCP, &x, false, 7000), 0);
	CU_ASSERT_EQUAL(bind_there(pb, TCP, &y, false, 7000), 0);
	CU_ASSERT_EQUAL(bind_there(pa, UDP, &any, false, 4000), 0);
	listen_there(pa, TCP, &x, 7000, true);
	CU_ASSERT_EQUAL(look_port(a, TCP, &x, 7000), LISTENS);
	CU_ASSERT_EQUAL(look_port(a, UDP, &any, 4000), BOUND);
	CU_ASSERT_EQUAL(look_port(a, TCP, &y, 7000), GONE);
	CU_ASSERT_EQUAL(look_port(b, TCP, &y, 7000), BOUND);
	CU_ASSERT_EQUAL(look_port(b, TCP, &x, 7000), GONE);
	listen_there(pa, TCP, &x, 7000, false);
	CU_ASSERT_EQUAL(look_port(a, TCP, &x, 7000), BOUND);
	ask(pa, (struct request){.op = OP_RELEASE, .port_space = TCP, .gid = x, .port = 7000});
	CU_ASSERT_EQUAL(look_port(a, TCP, &x, 7000), GONE);
}

/* A killed process is gone at once; who gets its slot later does not get its ports. */
static void processes__dead(void)
{
	uint8_t a, b;
	struct proc *pa = start(key, &a);
	struct ur_processes *v;

	start(key, &b);
	ask(pa, (struct request){.op = OP_STARTED});
	CU_ASSERT_EQUAL(bind_there(pa, TCP, &x, false, 7000), 0);
	listen_there(pa, TCP, &x, 7000, true);
	proc_kill(pa);
	v = look();
	CU_ASSERT_EQUAL(v->count, 1);
	CU_ASSERT_PTR_NULL(seen(v, a));
	CU_ASSERT_PTR_NOT_NULL(seen(v, b));
	free(v);
}

/* One that is stopped is seen and not heard. */
static void processes__stopped(void)
{
	uint8_t slot;
	struct proc *p = start(key, &slot);
	struct ur_processes *v;

	proc_stop(p);
	alarm(PROC_SECONDS);
	v = look();
	alarm(0);
	CU_ASSERT_EQUAL_FATAL(v->count, 1);
	CU_ASSERT_EQUAL(v->processes[0].pid, p->pid);
	CU_ASSERT_FALSE(v->processes[0].known);
	CU_ASSERT_EQUAL(v->processes[0].port_count, 0);
	free(v);
}

/* What somebody sees who is not the superuser: 0 if all is as it should be. */
static int look_as_nobody(int fd, uint64_t k)
{
	struct ur_processes *v;
	bool right;

	(void)fd;
	if (setresuid(NOBODY, NOBODY, NOBODY) || ur_processes_list(k, &v))
		return 1;
	right = v->count == 1 && !v->processes[0].known && !v->processes[0].uid && !v->processes[0].port_count;
	free(v);
	return right ? 0 : 2;
}

static void processes__other_users(void)
{
	uint8_t slot;

	if (geteuid())
		return; /* cannot be another */
	start(key, &slot);
	CU_ASSERT_EQUAL(proc_wait(proc_start(look_as_nobody, key)), 0);
	procs_end();
	CU_ASSERT_EQUAL(bind_there(start_as(child_of_nobody, key, &slot), TCP, &x, false, 7000), 0);
	CU_ASSERT_EQUAL(look_port(slot, TCP, &x, 7000), BOUND); /* the superuser sees all */
}

/* A process with several slots is one, with the ports of whichever has some. */
static void processes__lanes(void)
{
	struct ur_registry *first = open_here(), *further;
	struct ur_processes *v;
	uint16_t port = 7000;

	CU_ASSERT_EQUAL_FATAL(ur_registry_open_further(key, &further), 0);
	CU_ASSERT(ur_registry_slot(further) >= 128 && ur_registry_slot(further) != ur_registry_slot(first));
	CU_ASSERT_EQUAL(ur_registry_join(first), 0);
	CU_ASSERT_EQUAL(ur_registry_join(further), 0);
	CU_ASSERT_EQUAL(ur_registry_bind(further, TCP, &x, false, &port), 0);
	v = look();
	CU_ASSERT_EQUAL_FATAL(v->count, 1);
	CU_ASSERT_EQUAL(v->processes[0].pid, getpid());
	CU_ASSERT_EQUAL(v->processes[0].lanes, 1);
	CU_ASSERT_EQUAL(v->processes[0].slot + v->processes[0].further[0], ur_registry_slot(first) + ur_registry_slot(further));
	CU_ASSERT_EQUAL_FATAL(v->processes[0].port_count, 1);
	CU_ASSERT_EQUAL(v->processes[0].ports[0].port, 7000);
	free(v);
	ur_registry_close(further);
}

/* While others come, bind, listen and go, each process is seen whole: it has its port or not, but never another's. */
static int come_and_go(int fd, uint64_t k)
{
	struct ur_registry *r;
	char end;

	while (recv(fd, &end, 1, MSG_DONTWAIT) < 0) {
		uint16_t port;

		if (ur_registry_open(k, &r))
			return 1;
		port = (uint16_t)(7000 + ur_registry_slot(r)); /* a port has one listener */
		if (ur_registry_bind(r, TCP, &any, false, &port) || ur_registry_listen(r, TCP, &any, port, true))
			return 1;
		ur_registry_close(r);
	}
	return 0;
}

static void processes__meanwhile(void)
{
	struct proc *p[2] = {proc_start(come_and_go, key), proc_start(come_and_go, key)};
	unsigned listening = 0, wrong = 0;

	CU_ASSERT_EQUAL(ur_registry_join(open_here()), 0);
	for (unsigned i = 0; i < 100000 && listening < 50; i++) {
		struct ur_processes *v = look();

		wrong += v->count < 1;
		for (unsigned k = 0; k < v->count; k++) {
			const struct ur_process *q = &v->processes[k];

			wrong += q->pid == getpid() ? q->port_count : (q->pid != p[0]->pid && q->pid != p[1]->pid) || q->port_count > 1;
			listening += q->port_count == 1 && q->ports[0].listening;
		}
		free(v);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(listening >= 50);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(send(p[i]->fd, "", 1, MSG_NOSIGNAL), 1);
		CU_ASSERT_EQUAL(proc_wait(p[i]), 0);
	}
}

void ur_suite_processes(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("processes", NULL, NULL, registry_setup, registry_teardown);

	CU_ADD_TEST(s, processes__nobody);
	CU_ADD_TEST(s, processes__processes);
	CU_ADD_TEST(s, processes__odd_kind);
	CU_ADD_TEST(s, processes__ports);
	CU_ADD_TEST(s, processes__dead);
	CU_ADD_TEST(s, processes__stopped);
	CU_ADD_TEST(s, processes__other_users);
	CU_ADD_TEST(s, processes__lanes);
	CU_ADD_TEST(s, processes__meanwhile);
}
