/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one process and what it shares with others: the progress thread opens the port while applications bind and listen. */
#define _GNU_SOURCE
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/internal.h"
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
		    ur_engine_port_bind(e, TCP, &ur_gid_all, true, &port) != EADDRINUSE)
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

/* The CPUs of the thread behind one name in /proc/self/task; false when it is none of ours. */
static bool cpus_of_ours(const char *tid, cpu_set_t *set)
{
	char path[300], name[32] = "";
	FILE *in;

	snprintf(path, sizeof(path), "/proc/self/task/%.200s/comm", tid);
	in = fopen(path, "re");
	if (in && !fgets(name, sizeof(name), in))
		name[0] = 0;
	if (in)
		fclose(in);
	return !strncmp(name, "uroce", 5) && sched_getaffinity((pid_t)atoi(tid), sizeof(*set), set) == 0;
}

/* How many threads of ours there are, -1 when one may run on other CPUs than these. */
static int ours_run_on(const cpu_set_t *cpus)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	cpu_set_t set;
	int n = 0;

	while (dir && (d = readdir(dir)) && n >= 0)
		if (cpus_of_ours(d->d_name, &set))
			n = CPU_EQUAL(&set, cpus) ? n + 1 : -1;
	if (dir)
		closedir(dir);
	return n;
}

/* The application binds itself to one CPU before it opens the device, as a reactor does; or the setting binds our threads to that one. */
static int start_when_bound(int fd, uint64_t setting)
{
	struct ur_engine *e;
	cpu_set_t given, one;
	char text[16];
	size_t cpu = 0;

	(void)fd;
	sched_getaffinity(0, sizeof(given), &given);
	while (!CPU_ISSET(cpu, &given))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	snprintf(text, sizeof(text), "%zu", cpu);
	if (!setting && sched_setaffinity(0, sizeof(one), &one))
		return 1;
	unsetenv("UROCE_VDEV");
	unsetenv("UROCE_IP");
	if (setenv("UROCE_DEV", "lo", 1) || setenv("UROCE_PORT", "udp", 1) || (setting && setenv("UROCE_CPUS", text, 1)) ||
	    ur_engine_open(&e) || ur_engine_start(e))
		return 2;
	return ours_run_on(setting ? &one : &given) > 1 ? 0 : 3;
}

/* More than one of them; on a machine of one CPU there is nothing to see. */
static void start__not_where_the_caller_is_bound(void)
{
	CU_ASSERT_EQUAL(proc_wait(proc_start(start_when_bound, 0)), 0);
}

static void start__where_the_setting_says(void)
{
	CU_ASSERT_EQUAL(proc_wait(proc_start(start_when_bound, 1)), 0);
}

static int start_on_no_cpu(int fd, uint64_t unused)
{
	struct ur_engine *e;

	(void)fd;
	(void)unused;
	if (setenv("UROCE_CPUS", "1023", 1) || ur_engine_open(&e) != EINVAL)
		return 1;
	return strstr(ur_engine_error(), "setting cpus is '1023', but") ? 0 : 2;
}

static void start__not_on_a_cpu_that_is_not_there(void)
{
	CU_ASSERT_EQUAL(proc_wait(proc_start(start_on_no_cpu, 0)), 0);
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
	CU_ADD_TEST(s, start__not_where_the_caller_is_bound);
	CU_ADD_TEST(s, start__where_the_setting_says);
	CU_ADD_TEST(s, start__not_on_a_cpu_that_is_not_there);
	CU_ADD_TEST(s, config__from_two_threads);
}
