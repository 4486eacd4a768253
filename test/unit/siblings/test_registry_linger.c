/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers who make a process wait: what they send lingers when it is closed, and nothing that others depend on closes it. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <time.h>

#include "host/hang_up.h"
#include "stranger_harness.h"

void ur_suite_registry_linger(void);

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#define LINGER 20.0

/* A connection over which more was sent than the other side reads: to close it takes LINGER seconds. */
static int socket_that_lingers(void)
{
	const struct linger on = {.l_onoff = 1, .l_linger = (int)LINGER};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);
	int l = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	static char much[65536];

	if (bind(l, (struct sockaddr *)&sa, len) || listen(l, 1) || getsockname(l, (struct sockaddr *)&sa, &len))
		return -1;
	(void)connect(fd, (struct sockaddr *)&sa, len);
	if (accept(l, NULL, NULL) < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)))
		return -1;
	while (send(fd, much, sizeof(much), 0) > 0)
		continue;
	fcntl(fd, F_SETFL, 0);
	return fd;
}

/* Sends the last references of so many sockets to that name, and says so. It keeps their other ends, which read nothing. */
static int linger_at(int fd, const char *name, unsigned times)
{
	char end;

	if (!geteuid() && setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	for (unsigned i = 0; i < times; i++) {
		int c = ur_name_socket(name, false), s = socket_that_lingers();

		if (c < 0 || s < 0 || !greet(c, 9, 9, &s, 1) || close(s) || close(c))
			return 2;
	}
	return send(fd, "", 1, 0) != 1 || recv(fd, &end, 1, 0) < 0 ? 3 : 0;
}

static int guest_that_lingers(int fd, uint64_t slot)
{
	char name[UR_NAME_MAX];

	ur_slot_name(asked_key, (uint8_t)slot, name);
	return linger_at(fd, name, 1);
}

/* The last close of a stranger's descriptor may wait for LINGER seconds; neither calls nor newcomers nor onlookers wait for it. */
static void trust__guest_that_keeps_waiting(void)
{
	uint8_t slot;
	struct proc *victim = start(key, &slot), *guest;
	double begin;
	char ready;

	asked_key = key;
	proc_stop(victim); /* so that it comes upon everything at once */
	guest = proc_start(guest_that_lingers, slot);
	CU_ASSERT_EQUAL_FATAL(recv(guest->fd, &ready, 1, 0), 1);
	kill(victim->pid, SIGCONT);
	usleep(100000);
	begin = seconds();
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(bind_there(victim, TCP, &x, false, 0), 0);
	CU_ASSERT_TRUE(comes_to_know(join_here(), slot));
	close_there(victim);
	CU_ASSERT_TRUE(seconds() - begin < LINGER / 4);
}

/* Holds the name of slot 9, and answers who asks there with a page that is none and lingers. */
static int host_that_lingers(int fd, uint64_t k)
{
	char name[UR_NAME_MAX], end;
	int l, c, fds[2] = {socket_that_lingers(), eventfd(0, 0)};

	if ((!geteuid() && setresuid(NOBODY, NOBODY, NOBODY)) || fds[0] < 0)
		return 1;
	ur_slot_name(k, 9, name);
	l = ur_name_socket(name, true);
	if (l < 0 || listen(l, 9) || fcntl(l, F_SETFL, 0) || send(fd, "", 1, 0) != 1 || (c = accept(l, NULL, NULL)) < 0)
		return 2;
	return !greet(c, 9, 9, fds, 2) || close(fds[0]) || recv(fd, &end, 1, 0) < 0 ? 3 : 0;
}

static void trust__host_that_keeps_waiting(void)
{
	struct proc *p = proc_start(host_that_lingers, key);
	struct ur_slot_user user[UR_SLOTS];
	double begin;
	char ready;

	CU_ASSERT_EQUAL_FATAL(recv(p->fd, &ready, 1, 0), 1);
	begin = seconds();
	ur_handshake_ask(key, user);
	CU_ASSERT_TRUE(seconds() - begin < LINGER / 4);
	CU_ASSERT_EQUAL(user[9].uid, geteuid() ? geteuid() : NOBODY);
	CU_ASSERT_EQUAL(user[9].memfd, -1);
}

#define GUESTS 16

static int guests_that_linger(int fd, uint64_t slot)
{
	char name[UR_NAME_MAX];

	ur_slot_name(asked_key, (uint8_t)slot, name);
	return linger_at(fd, name, GUESTS);
}

/* Whom nobody has let in before the process ends is hung up on, too. */
static void trust__guests_at_the_end(void)
{
	const struct request end = {.op = OP_CLOSE};
	uint8_t slot;
	struct proc *victim = start(key, &slot), *guests;
	double begin;
	char ready;

	asked_key = key;
	proc_stop(victim);
	CU_ASSERT_EQUAL(send(victim->fd, &end, sizeof(end), MSG_NOSIGNAL), (ssize_t)sizeof(end));
	guests = proc_start(guests_that_linger, slot);
	CU_ASSERT_EQUAL_FATAL(recv(guests->fd, &ready, 1, 0), 1);
	begin = seconds();
	kill(victim->pid, SIGCONT);
	CU_ASSERT_EQUAL(proc_wait(victim), 0);
	CU_ASSERT_TRUE(seconds() - begin < LINGER / 4);
}

static int guest_of_the_turn(int fd, uint64_t uid)
{
	char name[UR_NAME_MAX], go;

	if (recv(fd, &go, 1, 0) != 1)
		return 4;
	snprintf(name, sizeof(name), "uroce-%016llx-turn-%u", (unsigned long long)asked_key, (unsigned)uid);
	return linger_at(fd, name, 2);
}

/* Whoever has the turn lets everybody connect to its name, and gives it back under the NIC's lock. */
static void trust__guest_of_the_turn(void)
{
	struct ur_registry *r = join_here(), *other = join_here();
	struct proc *guest;
	uint8_t slots[256];
	double begin;
	char ready;

	asked_key = key;
	for (unsigned closes = 0; closes < 2; closes++) {
		guest = proc_start(guest_of_the_turn, geteuid()); /* before, so that it has no copy of what we close */
		ur_registry_sharers_begin(r, slots, false);
		proc_ask(guest, "", 1, &ready, 1);
		begin = seconds();
		if (closes) {
			ur_registry_close(r);
			here[0] = other;
			here_n = 1;
		} else {
			ur_registry_sharers_end(r, true);
		}
		CU_ASSERT_TRUE(seconds() - begin < LINGER / 4);
		while (!ur_registry_turn(other) && seconds() - begin < LINGER / 4)
			usleep(1000);
		CU_ASSERT_TRUE(seconds() - begin < LINGER / 4); /* it is free */
		ur_registry_sharers_end(other, false);
		proc_kill(guest);
	}
}

/* Sends a descriptor to the name of a port as often as it can, until it is killed. */
static int sends_at_a_name(int fd, uint64_t k)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	socklen_t len;

	snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "uroce-%016llx-taken", (unsigned long long)k);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(sa.sun_path + 1));
	for (send(fd, "", 1, 0); getppid() != 1;)
		sendto(s, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&sa, len);
	return 0;
}

/* A name that is held takes nothing, from its first moment on: what it took would be closed with it. */
static void trust__names_take_nothing(void)
{
	struct proc *p = proc_start(sends_at_a_name, key);
	char ready, name[UR_NAME_MAX], taken_in;
	unsigned took = 0;

	snprintf(name, sizeof(name), "uroce-%016llx-taken", (unsigned long long)key);
	CU_ASSERT_EQUAL_FATAL(recv(p->fd, &ready, 1, 0), 1);
	for (unsigned i = 0; i < 50000; i++) {
		int fd = ur_name_hold(name);

		CU_ASSERT_FATAL(fd >= 0);
		took += recv(fd, &taken_in, 1, MSG_DONTWAIT) == 1;
		close(fd);
	}
	CU_ASSERT_EQUAL(took, 0);
}

/* More strangers than there are threads for them: each close is interrupted. */
static void trust__many_that_keep_waiting(void)
{
	struct ur_hang_ups h = {.n = 0};
	double begin = seconds();

	for (unsigned i = 0; i < UR_HANG_UPS + 1; i++) {
		int fd = socket_that_lingers();

		CU_ASSERT_FATAL(fd >= 0);
		ur_hang_up(&h, fd);
	}
	ur_hang_ups_end(&h);
	CU_ASSERT_EQUAL(h.n, 0);
	CU_ASSERT_TRUE(seconds() - begin < LINGER / 2);
}

void ur_suite_registry_linger(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("registry_linger", NULL, NULL, registry_setup, registry_teardown);

	CU_ADD_TEST(s, trust__guest_that_keeps_waiting);
	CU_ADD_TEST(s, trust__host_that_keeps_waiting);
	CU_ADD_TEST(s, trust__many_that_keep_waiting);
	CU_ADD_TEST(s, trust__guests_at_the_end);
	CU_ADD_TEST(s, trust__guest_of_the_turn);
	CU_ADD_TEST(s, trust__names_take_nothing);
}
