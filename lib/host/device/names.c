/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/device/names.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t address(const char *name, struct sockaddr_un *sa)
{
	size_t len = strnlen(name, UR_NAME_MAX);

	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(sa->sun_path + 1, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static int closed(int fd)
{
	int err = errno;

	close(fd);
	errno = err;
	return -1;
}

/*
 * Connected to itself, a datagram socket takes nothing from anybody else (unix(7): EPERM). It is shut down because until it is connected it
 * would: a descriptor that somebody sent at that moment would be closed with the name, which may take as long as its sender wished.
 */
int ur_name_hold(const char *name)
{
	struct sockaddr_un sa;
	socklen_t len = address(name, &sa);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && (shutdown(fd, SHUT_RD) || bind(fd, (struct sockaddr *)&sa, len) || connect(fd, (struct sockaddr *)&sa, len)))
		return closed(fd);
	return fd;
}

int ur_name_probe(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* EPERM says that it is there. One that lets itself be connected to is not ours, but has the name as well. */
bool ur_name_held(int probe, const char *name)
{
	struct sockaddr_un sa;
	socklen_t len = address(name, &sa);

	return !connect(probe, (struct sockaddr *)&sa, len) || errno != ECONNREFUSED;
}

int ur_name_socket(const char *name, bool hold)
{
	struct sockaddr_un sa;
	socklen_t len = address(name, &sa);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && (hold ? bind : connect)(fd, (struct sockaddr *)&sa, len))
		return closed(fd);
	return fd;
}
