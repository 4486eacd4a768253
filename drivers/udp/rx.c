/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: datagrams, and trains of them that the kernel has not cut (UDP_GRO) or has put together. One system call fetches several; each
 * is handed on in one piece.
 */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "drivers/udp/internal.h"
#include "wire/frame.h"
#include "wire/train.h"

/* --- fetching --- */

/* What stays the same from call to call. */
void ur_udp_rx_init(struct ur_udp *u)
{
	for (unsigned i = 0; i < UR_UDP_RX_MSGS; i++) {
		u->rx_iov[i].iov_len = UR_UDP_ROOM;
		u->rx_msg[i].msg_hdr = (struct msghdr){
			.msg_name = &u->rx_name[i], .msg_iov = &u->rx_iov[i], .msg_iovlen = 1, .msg_control = &u->rx_control[i]};
	}
}

/* Lets the kernel fill as many buffers as we ask for and have, and returns their number. */
static unsigned arm(struct ur_udp *u)
{
	unsigned n = 0;

	for (; n <= u->ask_more; n++) {
		struct msghdr *h = &u->rx_msg[n].msg_hdr;

		if (!u->armed[n]) {
			u->armed[n] = ur_udp_alloc_train(&u->queue);
			if (ur_unlikely(!u->armed[n]))
				break;
			u->rx_iov[n].iov_base = u->armed[n]->data;
		}
		h->msg_namelen = sizeof(u->rx_name[n]);
		h->msg_controllen = sizeof(u->rx_control[n]);
	}
	return n;
}

/*
 * How many datagrams the kernel has lost on this socket so far, because nobody fetched them in time. What a packet says of it is as old as
 * the packet.
 */
static void missed(struct ur_udp *u, uint32_t drops)
{
	const uint32_t more = drops - u->kernel_drops;

	if (more > INT32_MAX)
		return;
	u->queue.rx_missed += more;
	u->kernel_drops = drops;
}

void ur_udp_missed(struct ur_port *p)
{
	struct ur_udp *u = ur_udp_of_queue(p->queue);
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	if (getsockopt(u->fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 && len > SK_MEMINFO_DROPS * sizeof(*info))
		missed(u, info[SK_MEMINFO_DROPS]);
}

static void take_control4(struct ur_pkt *t, const struct cmsghdr *c)
{
	struct in_pktinfo info;
	int value;

	if (c->cmsg_type == IP_TOS) {
		t->tos = *(const uint8_t *)CMSG_DATA(c);
	} else if (c->cmsg_type == IP_PKTINFO) {
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		t->dst = ur_gid_from_v4(info.ipi_addr.s_addr);
	} else if (c->cmsg_type == IP_TTL) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		t->ttl = (uint8_t)value;
	}
}

static void take_control6(struct ur_pkt *t, const struct cmsghdr *c)
{
	struct in6_pktinfo info;
	int value;

	if (c->cmsg_type == IPV6_TCLASS) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		t->tos = (uint8_t)value;
	} else if (c->cmsg_type == UR_IPV6_FLOWINFO) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		t->flow_label = ntohl((uint32_t)value) & 0xfffff;
	} else if (c->cmsg_type == IPV6_PKTINFO) { /* an IPv4 address comes in the form that it has in a GID */
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(t->dst.raw, &info.ipi6_addr, 16);
	} else if (c->cmsg_type == IPV6_HOPLIMIT) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		t->ttl = (uint8_t)value;
	}
}

/* Of a train: that of one of its packets. */
static void take_stamp(struct ur_pkt *t, const struct cmsghdr *c)
{
	struct timespec ts;

	memcpy(&ts, CMSG_DATA(c), sizeof(ts));
	t->when = (ur_time)ts.tv_sec * UR_NS_PER_S + (ur_time)ts.tv_nsec;
}

/* The kernel puts them one after another, each as long as it says: all that has to be found is the end. */
static void take_control(struct ur_udp *u, struct ur_pkt *t, const struct msghdr *h)
{
	const uint8_t *at = h->msg_control, *end = at + h->msg_controllen;

	while (end - at >= (ptrdiff_t)CMSG_SPACE(1)) {
		const struct cmsghdr *c = (const struct cmsghdr *)(const void *)at;
		uint32_t value;

		memcpy(&value, CMSG_DATA(c), sizeof(value));
		if (c->cmsg_level == IPPROTO_IP)
			take_control4(t, c);
		else if (c->cmsg_level == IPPROTO_IPV6)
			take_control6(t, c);
		else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			t->stride = value;
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			missed(u, value);
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
			take_stamp(t, c);
		at += CMSG_ALIGN(c->cmsg_len);
	}
}

static void take_source(const struct ur_udp *u, struct ur_pkt *t, const struct sockaddr_in6 *name)
{
	struct sockaddr_in v4;

	t->sport = ntohs(name->sin6_port); /* in the same place in both families */
	if (u->v6) {
		memcpy(t->src.raw, &name->sin6_addr, 16);
		return;
	}
	memcpy(&v4, name, sizeof(v4));
	t->src = ur_gid_from_v4(v4.sin_addr.s_addr);
}

static void take_datagram(struct ur_udp *u, struct ur_pkt *t, unsigned i)
{
	struct msghdr *h = &u->rx_msg[i].msg_hdr;

	t->len = t->room = u->rx_msg[i].msg_len;
	t->flags = UR_PKT_BARE;
	t->ttl = UR_UDP_HOPS; /* the kernel would say, for a cost; nobody relies on it */
	take_source(u, t, &u->rx_name[i]);
	take_control(u, t, h); /* without it nobody is the destination */
	t->ip_version = ur_gid_is_v4(&t->src) ? 4 : 6;
	if (t->stride >= t->len)
		t->stride = 0;
	if (ur_unlikely(h->msg_flags & MSG_TRUNC))
		t->stride = t->len = 0; /* nothing that could be a packet */
}

/* From now on the kernel says when datagrams come, or no more. */
static void set_stamping(struct ur_udp *u)
{
	const int on = u->queue.stamp;

	u->stamping = on;
	setsockopt(u->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
}

/*
 * The kernel looks for one datagram more than there are, unless no more are asked for. So who finds the socket empty, or with one datagram
 * at a time, asks for one; who gets all that he asked for asks for twice as many.
 */
static bool fetch(struct ur_udp *u)
{
	unsigned n = arm(u);
	int got;

	if (ur_unlikely(u->stamping != u->queue.stamp))
		set_stamping(u);
	got = n ? recvmmsg(u->fd, u->rx_msg, n, MSG_DONTWAIT, NULL) : 0;

	if (got <= 0) {
		u->ask_more = 0;
		if (ur_unlikely(got < 0 && errno != EAGAIN && errno != EINTR))
			ur_udp_errors(u);
		return false;
	}
	u->ask_more = (unsigned)got < n ? (unsigned)got - 1 : ur_min_u32(2 * n, UR_UDP_RX_MSGS) - 1;
	for (int i = 0; i < got; i++) {
		u->got[i] = u->armed[i];
		u->armed[i] = NULL;
		take_datagram(u, u->got[i], (unsigned)i);
	}
	u->ngot = (unsigned)got;
	u->given = 0;
	return true;
}

unsigned ur_udp_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);
	unsigned out = 0, all = 0;

	if (u->given == u->ngot && !fetch(u))
		return 0;
	while (all < n) {
		pkts[out] = u->got[u->given++];
		if (u->given == u->ngot)
			return out + 1;
		all += ur_train_count(pkts[out++]);
	}
	return out;
}
