/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the unit tests. suites.h is made by the build from the list in meson.build.
 *
 *   unit [-v] [MODULE...]     all modules, or those named; -v names every test
 *
 * Exit status 0 when at least one test ran and none failed.
 */
#include <CUnit/Basic.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "suites.h"

#define SUITE(module) void ur_suite_##module(void);
UR_UNIT_SUITES(SUITE)
#undef SUITE

static const struct {
	const char *module;
	void (*add)(void);
} suites[] = {
#define SUITE(module) {#module, ur_suite_##module},
	UR_UNIT_SUITES(SUITE)
#undef SUITE
};

#define SUITES (sizeof(suites) / sizeof(suites[0]))

static bool named(const char *module, char **names, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], module) == 0)
			return true;
	return n == 0;
}

static bool known(const char *name)
{
	for (unsigned i = 0; i < SUITES; i++)
		if (strcmp(suites[i].module, name) == 0)
			return true;
	fprintf(stderr, "unit: there is no module '%s'\n", name);
	return false;
}

/* Every module must bring at least one test: a suite that could not be registered is a failure, not a gap. */
static bool add_suite(unsigned i)
{
	unsigned before = CU_get_registry()->uiNumberOfTests;

	suites[i].add();
	if (CU_get_error() == CUE_SUCCESS && CU_get_registry()->uiNumberOfTests > before)
		return true;
	fprintf(stderr, "unit: module %s registered no test (%s)\n", suites[i].module, CU_get_error_msg());
	return false;
}

/* Another run at the same time must not meet this one: devices are known by names in a network namespace. Without the right to make one
 * both share it. */
static void private_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		perror("unit: interface lo stays down");
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0, good = true;
	char **names = argv + 1 + verbose;
	int n = argc - 1 - verbose;

	for (int i = 0; i < n; i++)
		if (!known(names[i]))
			return 2;
	private_network();
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	for (unsigned i = 0; i < SUITES; i++)
		if (named(suites[i].module, names, n))
			good &= add_suite(i);
	CU_basic_set_mode(verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
	good &= CU_basic_run_tests() == CUE_SUCCESS;
	good &= CU_get_number_of_tests_run() > 0 && CU_get_number_of_failure_records() == 0 && CU_get_number_of_suites_failed() == 0;
	CU_cleanup_registry();
	return good ? 0 : 1;
}
