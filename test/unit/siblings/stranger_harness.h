/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the registry with strangers: what another user's process can do at the names of ours. */
#ifndef UR_STRANGER_HARNESS_H
#define UR_STRANGER_HARNESS_H

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "registry_harness.h"

static uint64_t asked_key; /* the key of the device, for a child whose argument is a slot */

static inline bool knows(struct ur_registry *r, uint8_t slot)
{
	ur_registry_meet(r);
	return ur_registry_sibling(r, slot) != NULL;
}

/* A newcomer waits for the others only for a moment; on a busy machine their answers may come later. */
static inline bool comes_to_know(struct ur_registry *r, uint8_t slot)
{
	for (unsigned i = 0; i < 10000 && !knows(r, slot); i++)
		usleep(1000);
	return knows(r, slot);
}

static inline int connect_to(uint64_t k, uint8_t slot)
{
	char name[UR_NAME_MAX];

	ur_slot_name(k, slot, name);
	return ur_name_socket(name, false);
}

/* Sends so many descriptors and 16 bytes of a greeting for that slot. */
static inline bool greet(int fd, uint8_t slot, uint32_t id, const int *fds, unsigned n)
{
	struct {
		uint64_t magic;
		uint32_t id;
		uint8_t slot, zero[3];
	} g = {UR_HANDSHAKE_MAGIC, id, slot, {0}};
	union {
		struct cmsghdr h;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} c = {.bytes = {0}};
	struct iovec iov = {&g, sizeof(g)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n) {
		m.msg_control = c.bytes;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c.h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
	}
	memcpy(CMSG_DATA(&c.h), fds, n * sizeof(int));
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(g);
}

/* How many bytes and descriptors come back. */
static inline ssize_t hear(int fd, size_t *control)
{
	char bytes[64], c[CMSG_SPACE(8 * sizeof(int))];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof(c)};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n = poll(&p, 1, 5000) == 1 ? recvmsg(fd, &m, MSG_DONTWAIT) : -2;

	*control = n < 0 ? 0 : m.msg_controllen;
	return n < 0 && errno == ECONNRESET ? 0 : n;
}

#endif
