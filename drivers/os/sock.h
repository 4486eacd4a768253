/* SPDX-License-Identifier: BSD-3-Clause */
/* What the drivers over the kernel's sockets have in common: the pieces of a packet, a kernel without room, and larger buffers. */
#ifndef UR_SOCK_H
#define UR_SOCK_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "wire/pkt.h"

#define UR_SOCK_SHORT 512 /* up to here a packet becomes one piece: the kernel looks at each piece */

/* The pieces of a finished packet from its byte `off` on; returns how many, at most UR_PKT_SEGS + 2. */
static inline unsigned ur_sock_pieces(struct iovec *v, struct ur_pkt *p, uint32_t off)
{
	const unsigned behind = p->nseg + p->tail_len;
	unsigned n = 1;

	if (behind && (p->nseg == 0 || ur_pkt_frame_len(p) <= UR_SOCK_SHORT))
		ur_pkt_linearise(p);
	v[0] = (struct iovec){.iov_base = p->data + off, .iov_len = p->len - off};
	if (!behind)
		return n;
	for (unsigned i = 0; i < p->nseg; i++)
		v[n++] = (struct iovec){.iov_base = p->seg[i].data, .iov_len = p->seg[i].len};
	if (p->tail_len)
		v[n++] = (struct iovec){.iov_base = p->tail, .iov_len = p->tail_len};
	return n;
}

/* Has the kernel no room at present? */
static inline bool ur_sock_is_full(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == ENOMEM || err == EINTR;
}

/* A buffer of that size: by force where we may (CAP_NET_ADMIN), else as much as everybody may have. Returns what it has come to, or 0. */
static inline uint32_t ur_sock_widen(int fd, int force, int option, int bytes)
{
	socklen_t len = sizeof(bytes);

	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
	return getsockopt(fd, SOL_SOCKET, option, &bytes, &len) || bytes < 0 ? 0 : (uint32_t)bytes;
}

#endif
