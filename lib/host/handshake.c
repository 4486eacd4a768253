/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/handshake.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/device/names.h"
#include "host/hang_up.h"

void ur_slot_name(uint64_t key, uint8_t slot, char *name)
{
	snprintf(name, UR_NAME_MAX, "uroce-%016llx-%u", (unsigned long long)key, slot);
}

bool ur_handshake_peer(int fd, struct ucred *c)
{
	socklen_t len = sizeof(*c);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, c, &len) && len == sizeof(*c);
}

union control {
	struct cmsghdr align;
	uint8_t bytes[CMSG_SPACE(2 * sizeof(int))];
};

bool ur_handshake_send(int fd, const struct ur_own_page *own)
{
	struct ur_handshake g = {.magic = UR_HANDSHAKE_MAGIC, .id = own ? own->id : 0, .slot = own ? own->slot : 0};
	struct iovec iov = {&g, sizeof(g)};
	union control c = {.bytes = {0}};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (own) {
		const int fds[2] = {own->memfd, own->wake_fd};
		struct cmsghdr *h;

		m.msg_control = c.bytes;
		m.msg_controllen = sizeof(c.bytes);
		h = CMSG_FIRSTHDR(&m);
		*h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fds))};
		memcpy(CMSG_DATA(h), fds, sizeof(fds));
	}
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(g);
}

/* The two descriptors of a message, or -1; none of any other number is kept. */
static void take_descriptors(struct msghdr *m, int fds[2], struct ur_hang_ups *refused)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	size_t n;

	fds[0] = fds[1] = -1;
	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return;
	n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(h), (n < 2 ? n : 2) * sizeof(int));
	if (n == 2)
		return;
	if (n == 1)
		ur_hang_up(refused, fds[0]);
	fds[0] = -1;
}

bool ur_handshake_receive(int fd, struct ur_handshake *g, int fds[2], struct ur_hang_ups *refused)
{
	struct iovec iov = {g, sizeof(*g)};
	union control c;
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	fds[0] = fds[1] = -1;
	if (n < 0)
		return false;
	take_descriptors(&m, fds, refused);
	errno = m.msg_flags & MSG_CTRUNC ? EMFILE : 0;
	if (n == (ssize_t)sizeof(*g) && g->magic == UR_HANDSHAKE_MAGIC && (g->slot == 0 || fds[1] >= 0))
		return true;
	if (fds[1] >= 0) {
		ur_hang_up(refused, fds[0]);
		ur_hang_up(refused, fds[1]);
		fds[0] = fds[1] = -1;
	}
	return false;
}

/* --- looking from outside --- */

/* A connection on which an answer will come, or -1. */
static int ask_slot(uint64_t key, uint8_t slot, struct ur_slot_user *user, struct ur_hang_ups *refused)
{
	char name[UR_NAME_MAX];
	struct ucred c;
	int fd;

	*user = (struct ur_slot_user){.pid = -1, .uid = (uid_t)-1, .memfd = -1};
	ur_slot_name(key, slot, name);
	fd = ur_name_socket(name, false);
	if (fd < 0)
		return -1;
	if (ur_handshake_peer(fd, &c)) {
		user->pid = c.pid;
		user->uid = c.uid;
		if ((c.uid == geteuid() || geteuid() == 0) && ur_handshake_send(fd, NULL))
			return fd;
	}
	ur_hang_up(refused, fd);
	return -1;
}

static void take_answer(int fd, uint8_t slot, struct ur_slot_user *user, struct ur_hang_ups *refused)
{
	struct ur_handshake who;
	int fds[2];

	if (!ur_handshake_receive(fd, &who, fds, refused) || fds[1] < 0)
		return;
	ur_hang_up(refused, fds[1]);
	if (who.slot == slot && ur_page_check(fds[0]))
		user->memfd = fds[0];
	else
		ur_hang_up(refused, fds[0]);
}

struct asked {
	int fd;
	uint8_t slot;
};

/* Waits for answers until then; leaves those that have not come. poll(2) refuses more entries than the process may have descriptors. */
static unsigned await_answers(struct asked *a, unsigned n, int64_t until, struct ur_slot_user *user, struct ur_hang_ups *refused)
{
	struct pollfd p[UR_SLOTS];

	for (int64_t now = ur_clock_ms(); n && now < until; now = ur_clock_ms()) {
		for (unsigned i = 0; i < n; i++)
			p[i] = (struct pollfd){.fd = a[i].fd, .events = POLLIN};
		if (poll(p, n, (int)(until - now)) <= 0)
			break;
		for (unsigned i = n; i-- > 0;) {
			if (!p[i].revents)
				continue;
			take_answer(a[i].fd, a[i].slot, &user[a[i].slot], refused);
			ur_hang_up(refused, a[i].fd);
			a[i] = a[--n];
		}
	}
	return n;
}

void ur_handshake_ask(uint64_t key, struct ur_slot_user *user)
{
	const int64_t until = ur_clock_ms() + UR_HANDSHAKE_MS;
	struct ur_hang_ups refused = {.n = 0};
	struct asked asked[UR_SLOTS];
	unsigned n = 0;

	user[0] = (struct ur_slot_user){.pid = -1, .uid = (uid_t)-1, .memfd = -1};
	for (unsigned s = 1; s < UR_SLOTS; s++) {
		asked[n] = (struct asked){ask_slot(key, (uint8_t)s, &user[s], &refused), (uint8_t)s};
		n += asked[n].fd >= 0;
	}
	n = await_answers(asked, n, until, user, &refused);
	while (n > 0)
		ur_hang_up(&refused, asked[--n].fd);
	ur_hang_ups_end(&refused);
}
