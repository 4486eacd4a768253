/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters that a process leaves behind: what the file says, and that a signal does not keep it from being written. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/counters_file.h"

void ur_suite_counters_file(void);

#define OWN_STATUS 7

static char path[] = "/tmp/uroce-counters-XXXXXX";
static char text[4096];
static struct ur_counters some;

static int setup(void)
{
	int fd;

	strcpy(strrchr(path, '-') + 1, "XXXXXX");
	fd = mkstemp(path);
	memset(&some, 0, sizeof(some));
	some.v[0] = 18446744073709551615ull;
	some.v[UR_C_COUNT - 1] = 10;
	return fd < 0 || close(fd);
}

static int teardown(void)
{
	return unlink(path);
}

static const char *contents(void)
{
	FILE *f = fopen(path, "r");

	text[f ? fread(text, 1, sizeof(text) - 1, f) : 0] = 0;
	if (f)
		fclose(f);
	return text;
}

static const char *expected(void)
{
	static char want[256];

	snprintf(want, sizeof(want), "%-32s %s\n%-32s 10\n", ur_counter_name(0), "18446744073709551615", ur_counter_name(UR_C_COUNT - 1));
	return want;
}

static void counters_write__names_and_values(void)
{
	CU_ASSERT_EQUAL(ur_counters_write(path, NULL, &some), 0);
	CU_ASSERT_STRING_EQUAL(contents(), expected());
	CU_ASSERT_EQUAL(ur_counters_write(path, NULL, &(struct ur_counters){{0}}), 0);
	CU_ASSERT_STRING_EQUAL(contents(), "");
}

static void counters_write__errors(void)
{
	CU_ASSERT_EQUAL(ur_counters_write("/no/such/directory/f", NULL, &some), ENOENT);
	CU_ASSERT_EQUAL(ur_counters_write("/dev/full", NULL, &some), ENOSPC);
}

/* --- signals: each scene is a child, whose status is returned --- */

static int in_child(void (*scene)(int sig), int sig)
{
	int status = -1;
	pid_t pid;

	ur_counters_write(path, NULL, &(struct ur_counters){{0}});
	pid = fork();
	if (!pid) {
		alarm(20);
		signal(sig, SIG_DFL); /* a shell has programs that it starts in the background ignore SIGINT, and nohup SIGHUP */
		scene(sig);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void end_by(int sig)
{
	ur_counters_on_signal(0, path, NULL, &some);
	raise(sig);
}

static void counters_on_signal__written_and_ended(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM};

	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		int status = in_child(end_by, signals[i]);

		CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
		CU_ASSERT_STRING_EQUAL(contents(), expected());
	}
}

static void leave(int sig)
{
	(void)sig;
	_exit(OWN_STATUS);
}

static void own_action_before(int sig)
{
	signal(sig, leave);
	end_by(sig);
}

static void own_action_after(int sig)
{
	ur_counters_on_signal(0, path, NULL, &some);
	signal(sig, leave);
	raise(sig);
}

static void ignored(int sig)
{
	signal(sig, SIG_IGN);
	end_by(sig);
}

static void counters_on_signal__programs_own_action(void)
{
	CU_ASSERT_EQUAL(WEXITSTATUS(in_child(own_action_before, SIGTERM)), OWN_STATUS);
	CU_ASSERT_EQUAL(WEXITSTATUS(in_child(own_action_after, SIGTERM)), OWN_STATUS);
	CU_ASSERT_EQUAL(in_child(ignored, SIGINT), 0);
	CU_ASSERT_STRING_EQUAL(contents(), "");
}

/* Ends with 0 when its own child ended by the signal. */
static void forks(int sig)
{
	int status = 0;
	pid_t pid;

	ur_counters_on_signal(0, path, NULL, &some);
	pid = fork();
	if (!pid) {
		raise(sig);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	_exit(!(WIFSIGNALED(status) && WTERMSIG(status) == sig));
}

static void counters_on_signal__not_by_a_forked_child(void)
{
	CU_ASSERT_EQUAL(in_child(forks, SIGTERM), 0);
	CU_ASSERT_STRING_EQUAL(contents(), "");
}

/* --- renewed while the process runs --- */

static bool comes_to_be(const char *want)
{
	for (unsigned i = 0; i < 2000 && strcmp(contents(), want) != 0; i++)
		usleep(10000);
	return strcmp(text, want) == 0;
}

static void raise_one(void)
{
	__atomic_store_n(&some.v[0], 7, __ATOMIC_RELAXED);
}

static void killed(int sig)
{
	static char want[256];

	ur_counters_on_signal(0, path, NULL, &some);
	if (ur_counters_renew(0) || !comes_to_be(expected()))
		_exit(1);
	raise_one();
	snprintf(want, sizeof(want), "%-32s 7\n%-32s 10\n", ur_counter_name(0), ur_counter_name(UR_C_COUNT - 1));
	if (!comes_to_be(want))
		_exit(2);
	raise(sig);
}

static void counters_renew__there_when_killed(void)
{
	int status = in_child(killed, SIGKILL);

	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CU_ASSERT_STRING_EQUAL(contents() + strlen(text) - 3, "10\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " 7\n"));
}

/* What is written after the end of that stays. */
static void ended(int sig)
{
	(void)sig;
	ur_counters_on_signal(0, path, NULL, &some);
	if (ur_counters_renew(0) || !comes_to_be(expected()))
		_exit(1);
	ur_counters_renew_end(0);
	ur_counters_write(path, NULL, &(struct ur_counters){{0}});
	raise_one();
	usleep(600000);
	_exit(strcmp(contents(), "") != 0);
}

static void counters_renew__not_behind_the_end(void)
{
	CU_ASSERT_EQUAL(in_child(ended, 0), 0);
}

/* Two devices have a file each, and a signal finds both. */
static void two_devices(int sig)
{
	static char other[sizeof(path) + 8];

	snprintf(other, sizeof(other), "%s.uroce1", path);
	ur_counters_on_signal(0, path, NULL, &some);
	ur_counters_on_signal(1, other, NULL, &some);
	raise(sig);
}

static void counters_on_signal__two_devices(void)
{
	char other[sizeof(path) + 8];
	int status = in_child(two_devices, SIGTERM);

	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CU_ASSERT_STRING_EQUAL(contents(), expected());
	snprintf(other, sizeof(other), "%s.uroce1", path);
	CU_ASSERT_EQUAL(rename(other, path), 0);
	CU_ASSERT_STRING_EQUAL(contents(), expected());
}

/* A signal while the thread may be at it. */
static void ended_by_signal(int sig)
{
	ur_counters_on_signal(0, path, NULL, &some);
	if (ur_counters_renew(0) || !comes_to_be(expected()))
		_exit(1);
	raise_one();
	usleep(240000);
	raise(sig);
}

static void counters_renew__and_a_signal(void)
{
	int status = in_child(ended_by_signal, SIGTERM);

	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(contents(), " 7\n"));
}

void ur_suite_counters_file(void)
{
	CU_pSuite s = CU_add_suite("counters_file", setup, teardown);

	CU_ADD_TEST(s, counters_write__names_and_values);
	CU_ADD_TEST(s, counters_write__errors);
	CU_ADD_TEST(s, counters_on_signal__written_and_ended);
	CU_ADD_TEST(s, counters_on_signal__programs_own_action);
	CU_ADD_TEST(s, counters_on_signal__not_by_a_forked_child);
	CU_ADD_TEST(s, counters_renew__there_when_killed);
	CU_ADD_TEST(s, counters_renew__not_behind_the_end);
	CU_ADD_TEST(s, counters_renew__and_a_signal);
	CU_ADD_TEST(s, counters_on_signal__two_devices);
}
