/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is to join or leave those that share a port: siblings take turns, and nobody else keeps them waiting. */
#include <CUnit/CUnit.h>
#include <stddef.h>
#include <sys/un.h>

#include "registry_harness.h"

void ur_suite_registry_turn(void);

static int hold_the_turn(int fd, uint64_t k)
{
	struct ur_registry *r;
	char end;

	if (ur_registry_open(k, &r) || ur_registry_join(r))
		return 1;
	ur_registry_sharers_begin(r, (uint8_t[256]){0}, false);
	return send(fd, "", 1, 0) == 1 && recv(fd, &end, 1, 0) == 1 ? 0 : 1;
}

/* One that is stopped between joining a socket's port and saying so. */
static void trust__stopped_in_its_turn(void)
{
	struct proc *p = proc_start(hold_the_turn, key);
	uint8_t slots[256];
	struct ur_registry *r;
	long before;
	char ready;

	CU_ASSERT_EQUAL_FATAL(recv(p->fd, &ready, 1, 0), 1);
	r = join_here();
	proc_stop(p);
	before = sleeps();
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(r, slots, false), 0);
	ur_registry_sharers_end(r, true);
	CU_ASSERT_TRUE(sleeps() - before < 1000);
	proc_kill(p);
	before = sleeps();
	CU_ASSERT_EQUAL(ur_registry_sharers_begin(r, slots, true), 0); /* its death gave it back */
	ur_registry_sharers_end(r, false);
	CU_ASSERT_TRUE(sleeps() - before < 100);
}

/* Another user who holds the name by which our processes take turns, and lets himself be connected to or not. */
static int squat(int fd, uint64_t k, bool listens)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n;
	socklen_t len;
	char end;

	n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "uroce-%016llx-turn-%u", (unsigned long long)k, (unsigned)geteuid());
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	if (bind(s, (struct sockaddr *)&sa, len) || (listens && listen(s, 0)))
		return 1;
	return send(fd, "", 1, 0) == 1 && recv(fd, &end, 1, 0) == 1 ? 0 : 1;
}

static int squat_silently(int fd, uint64_t k)
{
	return squat(fd, k, false);
}

static int squat_listening(int fd, uint64_t k)
{
	return squat(fd, k, true);
}

/* He keeps nobody waiting, at any look. */
static void trust__strangers_hold_the_turn(void)
{
	static int (*const squats[])(int fd, uint64_t k) = {squat_silently, squat_listening};

	if (geteuid())
		return; /* there is no other user to become */
	for (unsigned i = 0; i < ur_array_size(squats); i++) {
		struct proc *p = proc_start(squats[i], key);
		struct ur_registry *r;
		unsigned refused = 0;
		uint8_t slots[256];
		long before;
		char ready;

		CU_ASSERT_EQUAL_FATAL(recv(p->fd, &ready, 1, 0), 1);
		r = join_here();
		before = sleeps();
		for (unsigned k = 0; k < 300; k++)
			refused += !ur_registry_turn(r);
		CU_ASSERT_TRUE(refused <= 200); /* one in three looks goes on without */
		ur_registry_sharers_begin(r, slots, false);
		ur_registry_sharers_end(r, true);
		CU_ASSERT_TRUE(sleeps() - before < 20); /* a lock of the kernel's, or of a sanitizer, may make one or two */
		close_here();
		proc_kill(p);
	}
}

/* A sibling's turn is respected, and its death ends it. */
static void trust__turn_of_a_sibling(void)
{
	struct proc *p = proc_start(hold_the_turn, key);
	struct ur_registry *r;
	char ready;

	CU_ASSERT_EQUAL_FATAL(recv(p->fd, &ready, 1, 0), 1);
	r = join_here();
	CU_ASSERT_FALSE(ur_registry_turn(r));
	CU_ASSERT_FALSE(ur_registry_turn(r));
	proc_kill(p);
	CU_ASSERT_TRUE(ur_registry_turn(r));
	CU_ASSERT_TRUE(ur_registry_turn(r)); /* ours until the end */
	ur_registry_sharers_end(r, false);
}

void ur_suite_registry_turn(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("registry_turn", NULL, NULL, registry_setup, registry_teardown);

	CU_ADD_TEST(s, trust__stopped_in_its_turn);
	CU_ADD_TEST(s, trust__strangers_hold_the_turn);
	CU_ADD_TEST(s, trust__turn_of_a_sibling);
}
