/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one process and what it shares with others: the progress thread opens the port while applications bind and listen. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "proc_harness.h"
#include "uroce/uroce.h"
#include "wire/gid_set.h"

void ur_suite_engine_threads(void);

#define TCP 0x106
#define SIBLINGS 2

static atomic_bool stop;
static atomic_uint wrong;

/* What is bound stays so, whatever other threads do. */
static void *bind_and_listen(void *arg)
{
	struct ur_engine *e = arg;

	while (!atomic_load(&stop)) {
		uint16_t port = 0;

		ur_engine_lock(e);
		if (ur_engine_port_bind(e, TCP, &ur_gid_all, false, &port) || ur_engine_port_listen(e, TCP, &ur_gid_all, port, true) ||
		    ur_engine_port_bind(e, TCP, &ur_gid_all, true, &port) != EADDRNOTAVAIL)
			atomic_fetch_add(&wrong, 1);
		ur_engine_port_release(e, TCP, &ur_gid_all, port);
		ur_engine_unlock(e);
	}
	return NULL;
}

/* A process on interface lo, over UDP sockets, which all of them share. Exit status 0: nothing was wrong. */
static int start_while_binding(int fd, uint64_t unused)
{
	struct ur_engine *e;
	pthread_t thread;
	char end;
	int r;

	(void)unused;
	unsetenv("UROCE_VDEV");
	unsetenv("UROCE_IP");
	if (setenv("UROCE_DEV", "lo", 1) || setenv("UROCE_PORT", "udp", 1) || ur_engine_open(&e))
		return 1;
	if (pthread_create(&thread, NULL, bind_and_listen, e))
		return 2;
	r = ur_engine_start(e);
	if (r)
		return 3;
	if (send(fd, "", 1, MSG_NOSIGNAL) != 1 || recv(fd, &end, 1, 0) != 1)
		return 4;
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	return atomic_load(&wrong) ? 5 : 0;
}

static void start__while_others_bind(void)
{
	struct proc *p[SIBLINGS];
	char ready;

	for (unsigned i = 0; i < SIBLINGS; i++)
		p[i] = proc_start(start_while_binding, 0);
	for (unsigned i = 0; i < SIBLINGS; i++)
		CU_ASSERT_EQUAL(recv(p[i]->fd, &ready, 1, 0), 1);
	usleep(100000);
	for (unsigned i = 0; i < SIBLINGS; i++) {
		CU_ASSERT_EQUAL(send(p[i]->fd, "", 1, MSG_NOSIGNAL), 1);
		CU_ASSERT_EQUAL(proc_wait(p[i]), 0);
	}
}

static void *configure(void *unused)
{
	(void)unused;
	for (int i = 0; i < 200000; i++)
		if (uroce_config("log", i % 2 ? "info" : "error") || uroce_config("eal", i % 2 ? "--log-level=8" : ""))
			atomic_fetch_add(&wrong, 1);
	return NULL;
}

/* In a process of its own, which has not opened an engine. */
static int configure_twice(int fd, uint64_t unused)
{
	pthread_t thread;

	(void)fd;
	(void)unused;
	if (pthread_create(&thread, NULL, configure, NULL))
		return 1;
	configure(NULL);
	pthread_join(thread, NULL);
	return atomic_load(&wrong) ? 2 : 0;
}

static void config__from_two_threads(void)
{
	CU_ASSERT_EQUAL(proc_wait(proc_start(configure_twice, 0)), 0);
}

void ur_suite_engine_threads(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("engine_threads", NULL, NULL, NULL, procs_end);

	CU_ADD_TEST(s, start__while_others_bind);
	CU_ADD_TEST(s, config__from_two_threads);
}
