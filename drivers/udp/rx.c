/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: datagrams, and trains of them that the kernel has not cut (UDP_GRO) or has put together. One system call fetches several; each
 * is cut into the packets that it holds, which are views of its buffer.
 */
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#include "drivers/udp/internal.h"
#include "wire/frame.h"

/* --- fetching --- */

/* Lets the kernel fill as many buffers as we ask for and have, and returns their number. */
static unsigned arm(struct ur_udp *u)
{
	unsigned n = 0;

	for (; n <= u->ask_more; n++) {
		struct msghdr *h = &u->rx_msg[n].msg_hdr;

		if (!u->armed[n])
			u->armed[n] = ur_udp_buf_get(u);
		if (ur_unlikely(!u->armed[n]))
			break;
		u->rx_iov[n] = (struct iovec){.iov_base = u->armed[n]->mem, .iov_len = UR_UDP_ROOM};
		h->msg_name = &u->rx_name[n];
		h->msg_namelen = sizeof(u->rx_name[n]);
		h->msg_iov = &u->rx_iov[n];
		h->msg_iovlen = 1;
		h->msg_control = &u->rx_control[n];
		h->msg_controllen = sizeof(u->rx_control[n]);
	}
	return n;
}

/* How many datagrams the kernel has lost on this socket so far, because nobody fetched them in time. */
static void missed(struct ur_udp *u, uint32_t drops)
{
	u->queue.rx_missed += (uint32_t)(drops - u->kernel_drops);
	u->kernel_drops = drops;
}

static void take_control4(struct ur_udp_train *t, const struct cmsghdr *c)
{
	struct in_pktinfo info;

	if (c->cmsg_type == IP_TOS) {
		t->tos = *(const uint8_t *)CMSG_DATA(c);
	} else if (c->cmsg_type == IP_PKTINFO) {
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		t->dst = ur_gid_from_v4(info.ipi_addr.s_addr);
	}
}

static void take_control6(struct ur_udp_train *t, const struct cmsghdr *c)
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
	}
}

static void take_control(struct ur_udp *u, struct ur_udp_train *t, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		uint32_t value;

		memcpy(&value, CMSG_DATA(c), sizeof(value));
		if (c->cmsg_level == IPPROTO_IP)
			take_control4(t, c);
		else if (c->cmsg_level == IPPROTO_IPV6)
			take_control6(t, c);
		else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			t->size = value;
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			missed(u, value);
	}
}

static void take_source(const struct ur_udp *u, struct ur_udp_train *t, const struct sockaddr_in6 *name)
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

static void take_datagram(struct ur_udp *u, struct ur_udp_train *t, unsigned i)
{
	struct msghdr *h = &u->rx_msg[i].msg_hdr;

	t->buf = u->armed[i];
	u->armed[i] = NULL;
	t->len = t->size = u->rx_msg[i].msg_len;
	t->off = 0;
	t->dst = (struct ur_gid){{0}}; /* nobody, should the kernel not say */
	t->tos = t->place = 0;
	t->flow_label = 0;
	take_source(u, t, &u->rx_name[i]);
	take_control(u, t, h);
	t->ip_version = ur_gid_is_v4(&t->src) ? 4 : 6;
	if (ur_unlikely(!t->size || h->msg_flags & MSG_TRUNC))
		t->size = t->len = 0; /* nothing that could be a packet */
}

/*
 * The kernel looks for one datagram more than there are, unless no more are asked for. So who finds the socket empty, or with one datagram
 * at a time, asks for one; who gets all that he asked for asks for twice as many.
 */
static bool fetch(struct ur_udp *u)
{
	unsigned n = arm(u);
	int got = n ? recvmmsg(u->fd, u->rx_msg, n, MSG_DONTWAIT, NULL) : 0;

	if (got <= 0) {
		u->ask_more = 0;
		if (ur_unlikely(got < 0 && errno != EAGAIN && errno != EINTR))
			ur_udp_errors(u);
		return false;
	}
	u->ask_more = (unsigned)got < n ? (unsigned)got - 1 : ur_min_u32(2 * n, UR_UDP_RX_MSGS) - 1;
	for (int i = 0; i < got; i++)
		take_datagram(u, &u->got[i], (unsigned)i);
	u->ngot = (unsigned)got;
	u->cutting = 0;
	return true;
}

/* --- cutting --- */

static void cut(struct ur_udp *u, struct ur_udp_train *t, struct ur_udp_view *v)
{
	struct ur_pkt *p = &v->pkt;

	p->data = t->buf->mem + t->off;
	p->len = ur_min_u32(t->size, t->len - t->off);
	p->room = p->len;
	p->nseg = 0;
	p->tail_len = 0;
	p->flags = UR_PKT_BARE;
	p->place = t->place++;
	p->ip_version = t->ip_version;
	p->ttl = UR_UDP_HOPS; /* the kernel would say, for a cost; nobody relies on it */
	p->tos = t->tos;
	p->sport = t->sport;
	p->flow_label = t->flow_label;
	p->src = t->src;
	p->dst = t->dst;
	p->when = 0;
	p->next = NULL;
	p->home = &u->queue;
	t->off += p->len;
}

unsigned ur_udp_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);
	unsigned out = 0;

	if (u->cutting == u->ngot && !fetch(u))
		return 0;
	for (; u->cutting < u->ngot; u->cutting++) {
		struct ur_udp_train *t = &u->got[u->cutting];

		while (t->off < t->len) {
			struct ur_udp_view *v = out < n ? ur_udp_view_get(u, t->buf) : NULL;

			if (!v)
				return out;
			cut(u, t, v);
			pkts[out++] = &v->pkt;
		}
		ur_udp_buf_put(u, t->buf);
	}
	return out;
}
