/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

static void lo_up(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		perror("unit: interface lo stays down");
	if (fd >= 0)
		close(fd);
}

/* An ordinary user gets a network namespace where the kernel gives him a user namespace. He is number 1000 there: as 65534, whom the kernel
 * calls everybody who has no number in it, he could not tell himself from others. */
static bool own_network_of_user(void)
{
	char uid[40], gid[40];

	snprintf(uid, sizeof(uid), "1000 %u 1", geteuid());
	snprintf(gid, sizeof(gid), "1000 %u 1", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	if (!put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", uid) || !put("/proc/self/gid_map", gid))
		perror("unit: a user namespace without its user");
	lo_up();
	return true;
}

/* Held until this process ends. */
static void wait_for_turn(void)
{
	static const char name[] = "\0uroce unit tests";
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sa.sun_path, name, sizeof(name));
	while (fd >= 0 && bind(fd, (struct sockaddr *)&sa, offsetof(struct sockaddr_un, sun_path) + sizeof(name)))
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

void private_network(void)
{
	if (unshare(CLONE_NEWNET) == 0)
		lo_up();
	else if (!own_network_of_user())
		wait_for_turn();
}
