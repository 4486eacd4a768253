/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP port 4791 of a host: shared with siblings, and one sentence about anybody else who has it. Interfaces by network and by pattern. Each
 * case is a child in a network namespace of its own, whose stderr the test reads.
 */
#define _GNU_SOURCE
#include <CUnit/CUnit.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/device/hostif.h"
#include "wire/frame.h"

void ur_suite_hostif(void);

#define CHILD_SECONDS 20
#define OTHER_USER 65534

static char said[1024];

/* Status of the child: 0 when all was as it should be, else the line of what was not. What it said on stderr is in `said`. */
static int in_own_host(int (*scene)(void))
{
	int fd[2], status = -1;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		alarm(CHILD_SECONDS);
		if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(255);
		dup2(fd[1], STDERR_FILENO);
		_exit(scene());
	}
	close(fd[1]);
	while ((n = read(fd[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(fd[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define WANT(x)                                                                                                                            \
	do {                                                                                                                               \
		if (!(x))                                                                                                                  \
			return __LINE__ % 250 + 1;                                                                                         \
	} while (0)

static bool is_one_line(void)
{
	const char *end = strchr(said, '\n');

	return end && !end[1];
}

/* Somebody who does not share, as the kernel's own sockets do not. */
static int take_port(int family)
{
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(UR_ROCE_PORT)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT)};
	int fd = socket(family, SOCK_DGRAM, 0);

	if (family == AF_INET6)
		return bind(fd, (struct sockaddr *)&any6, sizeof(any6));
	return bind(fd, (struct sockaddr *)&any4, sizeof(any4));
}

static int bring_up_loopback(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), r = fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &ifr);

	close(fd);
	return r;
}

static int scene_stranger(void)
{
	WANT(take_port(AF_INET) == 0);
	for (unsigned i = 0; i < 3; i++) {
		errno = 0;
		WANT(ur_hostif_silence(false) == -1 && errno == EADDRINUSE);
	}
	return 0;
}

static void silence__warns_once_of_a_stranger(void)
{
	CU_ASSERT_EQUAL(in_own_host(scene_stranger), 0);
	CU_ASSERT_TRUE(is_one_line());
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "UDP port 4791 is taken"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "rdma link del"));
}

static int scene_siblings(void)
{
	for (unsigned i = 0; i < 3; i++)
		WANT(ur_hostif_silence(false) >= 0);
	return 0;
}

static void silence__shares_with_siblings(void)
{
	CU_ASSERT_EQUAL(in_own_host(scene_siblings), 0);
	CU_ASSERT_STRING_EQUAL(said, "");
}

/* What the socket drops of a train of `n` packets to this host. */
static unsigned dropped_of_train(bool trains, unsigned n)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = ur_hostif_silence(trains), from = socket(AF_INET, SOCK_DGRAM, 0), size = 100;
	uint32_t info[SK_MEMINFO_VARS] = {0};
	static const char bytes[2000];
	socklen_t len = sizeof(info);

	if (setsockopt(from, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)) ||
	    sendto(from, bytes, n * 100, 0, (struct sockaddr *)&to, sizeof(to)) < 0 || getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return 0;
	close(fd);
	close(from);
	return info[SK_MEMINFO_DROPS];
}

static int scene_trains(void)
{
	WANT(bring_up_loopback() == 0);
	WANT(dropped_of_train(false, 20) == 20);
	WANT(dropped_of_train(true, 20) == 1);
	return 0;
}

/* For a port that takes trains in one piece the kernel cuts none only to drop what it has cut. */
static void silence__drops_trains_whole(void)
{
	CU_ASSERT_EQUAL(in_own_host(scene_trains), 0);
}

/* The kernel does not let the two share, and he who was first gets a copy of every packet, even if his is a process of uroce, too. */
static int scene_other_user(void)
{
	if (geteuid() == 0) {
		WANT(seteuid(OTHER_USER) == 0);
		WANT(ur_hostif_silence(false) >= 0);
		WANT(seteuid(0) == 0);
		WANT(ur_hostif_silence(false) == -1);
	}
	return 0;
}

static void silence__warns_of_another_user(void)
{
	char who[64];

	snprintf(who, sizeof(who), "belongs to a process of user %d, who can read", OTHER_USER);
	CU_ASSERT_EQUAL(in_own_host(scene_other_user), 0);
	if (geteuid())
		return; /* cannot be another */
	CU_ASSERT_TRUE(is_one_line());
	CU_ASSERT_PTR_NOT_NULL(strstr(said, who));
	CU_ASSERT_PTR_NULL(strstr(said, "rdma link"));
}

/* What it stands for, separated by commas; else the sentence. */
static const char *matched(const char *what)
{
	static char text[512];
	struct ur_hostif_names fit;

	if (ur_hostif_match(what, &fit, text, sizeof(text)))
		return text;
	*text = 0;
	for (unsigned i = 0; i < fit.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "", fit.name[i]);
	return text;
}

/* A new host has the loopback alone, which is down and has no address at first. */
static int scene_match(void)
{
	static const char *const fit[] = {"127.0.0.0/8", "127.0.0.0/9", "127.0.0.1/32", "0.0.0.0/0", "l*", "?o", "[kl]o", "127.0.0.1"};
	static const char *const no_fit[] = {"127.128.0.0/9", "127.0.0.2/32", "126.0.0.0/8", "fd00::/8",
					     "eth*",          "o*",           "127.0.0.2",   "fd00::1"};
	static const char *const nonsense[] = {"127.0.0.0/", "127.0.0.0/33", "127.0.0.0/8x", "/8",
					       "127.0.0/8",  "::/129",       "127.0.0.0/ 8", "a/b"};

	WANT(strstr(matched("l*"), "no network interface that is up"));
	WANT(bring_up_loopback() == 0);
	for (unsigned i = 0; i < sizeof(fit) / sizeof(fit[0]); i++)
		WANT(ur_hostif_is_pattern(fit[i]) && !strcmp(matched(fit[i]), "lo"));
	for (unsigned i = 0; i < sizeof(no_fit) / sizeof(no_fit[0]); i++)
		WANT(ur_hostif_is_pattern(no_fit[i]) && strstr(matched(no_fit[i]), "no network interface that is up"));
	for (unsigned i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		WANT(ur_hostif_is_pattern(nonsense[i]) && strstr(matched(nonsense[i]), "is not a network: write it as"));
	WANT(!ur_hostif_is_pattern("lo") && !ur_hostif_is_pattern("eth0") && !ur_hostif_is_pattern("127.0.0"));
	return 0;
}

static void match__takes_networks_and_patterns(void)
{
	CU_ASSERT_EQUAL(in_own_host(scene_match), 0);
}

/* As above, where none is named. */
static const char *chosen(char name[IF_NAMESIZE])
{
	static char err[512];
	struct ur_hostif h;

	*err = 0;
	if (ur_hostif_find("", &h, err, sizeof(err)))
		return err;
	strcpy(name, h.name);
	return "";
}

/* A link by netlink would be long: the test has ip(8) do it. */
static bool ip(const char *words)
{
	char command[256];

	snprintf(command, sizeof(command), "ip %s", words);
	return system(command) == 0;
}

static int scene_choose(void)
{
	char name[IF_NAMESIZE];

	WANT(strstr(chosen(name), "(there is only the loopback)") && strstr(chosen(name), "use --dev lo"));
	WANT(bring_up_loopback() == 0);
	WANT(strstr(chosen(name), "(there is only the loopback)"));
	WANT(ip("link add eth0 type veth peer name eth1") && ip("link set eth0 addrgenmode none") &&
	     ip("link set eth1 up addrgenmode none"));
	WANT(strstr(chosen(name), "eth0 is down") && strstr(chosen(name), "eth1 has no address"));
	WANT(access("/dev/net/tun", R_OK | W_OK) ||
	     (ip("tuntap add tun0 mode tun") && ip("link set tun0 up") && strstr(chosen(name), "tun0 is a point-to-point link")));
	WANT(strstr(chosen(name), "use --dev lo"));
	WANT(ip("addr add 10.9.0.1/24 dev eth0") && ip("link set eth0 up") && !*chosen(name) && !strcmp(name, "eth0"));
	WANT(ip("addr add 10.9.1.1/24 dev eth1"));
	WANT(strstr(chosen(name), "2 network interfaces are up (") && strstr(chosen(name), "eth0") && strstr(chosen(name), "eth1"));
	WANT(ip("route add default via 10.9.1.2 dev eth1") && !*chosen(name) && !strcmp(name, "eth1"));
	return 0;
}

static int scene_many(void)
{
	char name[IF_NAMESIZE], words[64];

	for (int i = 0; i < 10; i++) {
		snprintf(words, sizeof(words), "link add interface-%d type veth peer name peer-%d", i, i);
		WANT(ip(words));
	}
	WANT(strstr(chosen(name), "is down, ...): bring one up") && strstr(chosen(name), "on this host"));
	return 0;
}

static void choose__says_what_there_is(void)
{
	CU_ASSERT_EQUAL(in_own_host(scene_choose), 0);
}

static void choose__lists_as_many_as_fit(void)
{
	CU_ASSERT_EQUAL(in_own_host(scene_many), 0);
}

void ur_suite_hostif(void)
{
	CU_pSuite s = CU_add_suite("hostif", NULL, NULL);

	CU_ADD_TEST(s, silence__warns_once_of_a_stranger);
	CU_ADD_TEST(s, silence__shares_with_siblings);
	CU_ADD_TEST(s, silence__drops_trains_whole);
	CU_ADD_TEST(s, silence__warns_of_another_user);
	CU_ADD_TEST(s, match__takes_networks_and_patterns);
	CU_ADD_TEST(s, choose__says_what_there_is);
	CU_ADD_TEST(s, choose__lists_as_many_as_fit);
}
