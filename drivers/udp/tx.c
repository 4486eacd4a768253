/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: a burst is packets and trains (UDP_SEGMENT), which leave with one system call. The kernel has copied all of it when the call
 * returns.
 */
#include <errno.h>
#include <time.h> /* before errqueue.h, which lacks it */

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/bytes.h"
#include "drivers/os/sock.h"
#include "drivers/udp/internal.h"
#include "wire/frame.h"
#include "wire/msg/icmp.h"
#include "wire/train.h"

#define PATIENCE 16 /* sends of one datagram that find errors of others */

/* --- what the kernel is told of a train --- */

static void put_cmsg(struct msghdr *h, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)((uint8_t *)h->msg_control + h->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	h->msg_controllen += CMSG_SPACE(len);
}

static void put_addresses4(const struct ur_udp *u, struct msghdr *h, const uint8_t *ip)
{
	struct in_pktinfo from = {.ipi_ifindex = 0};
	uint32_t dst;

	memcpy(&from.ipi_spec_dst, ip + 12, 4);
	memcpy(&dst, ip + 16, 4);
	put_cmsg(h, IPPROTO_IP, IP_PKTINFO, &from, sizeof(from));
	if (u->v6) {
		struct ur_gid mapped = ur_gid_from_v4(dst);
		struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(UR_ROCE_PORT)};

		memcpy(&to.sin6_addr, mapped.raw, 16);
		memcpy(h->msg_name, &to, sizeof(to));
		h->msg_namelen = sizeof(to);
	} else {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT), .sin_addr = {dst}};

		memcpy(h->msg_name, &to, sizeof(to));
		h->msg_namelen = sizeof(to);
	}
}

static void put_addresses6(const struct ur_udp *u, struct msghdr *h, const uint8_t *ip)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(UR_ROCE_PORT)};
	struct in6_pktinfo from = {.ipi6_ifindex = (unsigned)u->ifindex};

	to.sin6_flowinfo = htonl(ur_get32(ip) & 0xfffff);
	memcpy(&from.ipi6_addr, ip + 8, 16);
	memcpy(&to.sin6_addr, ip + 24, 16);
	if ((ip[24] == 0xfe && (ip[25] & 0xc0) == 0x80) || ip[24] == 0xff)
		to.sin6_scope_id = (unsigned)u->ifindex;
	put_cmsg(h, IPPROTO_IPV6, IPV6_PKTINFO, &from, sizeof(from));
	memcpy(h->msg_name, &to, sizeof(to));
	h->msg_namelen = sizeof(to);
}

static void put_way4(const struct ur_udp *u, struct msghdr *h, const uint8_t *ip)
{
	int tos = ip[1], ttl = ip[8];

	put_addresses4(u, h, ip);
	if (tos)
		put_cmsg(h, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	if (ttl && (u->hops || ttl != UR_UDP_HOPS || (ip[16] & 0xf0) == 0xe0))
		put_cmsg(h, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
}

static void put_way6(const struct ur_udp *u, struct msghdr *h, const uint8_t *ip)
{
	int tclass = (ip[0] & 15) << 4 | ip[1] >> 4, hops = ip[7];

	put_addresses6(u, h, ip);
	if (tclass)
		put_cmsg(h, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof(tclass));
	if (u->hops || hops != UR_UDP_HOPS || ip[24] == 0xff)
		put_cmsg(h, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
}

/* --- a burst --- */

/* The kernel accepts it without an error, and sends nothing. */
static bool stays_here(const struct ur_udp *u, const struct ur_pkt *p)
{
	const uint8_t *ip = p->data + p->l3_off;

	return p->ip_version == 6 && ip[24] == 0xff && (ip[25] & 15) <= 1 && (u->queue.caps & UR_QUEUE_LOCAL_SCOPE);
}

void ur_udp_tx_init(struct ur_udp *u)
{
	for (unsigned i = 0; i < UR_UDP_TX_MSGS; i++)
		u->tx_msg[i].msg_hdr = (struct msghdr){.msg_name = &u->tx_name[i], .msg_control = &u->tx_control[i]};
}

/* Does a packet with that IP header go the way of the last one that was message `m`? Length, identification and checksum may differ. */
static bool is_way(const struct ur_udp_way *w, const uint8_t *ip, uint8_t version)
{
	if (w->ip_version != version)
		return false;
	if (version == 4)
		return memcmp(w->ip + 12, ip + 12, 8) == 0 && w->ip[1] == ip[1] && w->ip[8] == ip[8];
	return memcmp(w->ip, ip, 4) == 0 && w->ip[7] == ip[7] && memcmp(w->ip + 8, ip + 8, 32) == 0;
}

static void put_way(const struct ur_udp *u, struct ur_udp_way *w, struct msghdr *h, const uint8_t *ip, uint8_t version)
{
	h->msg_controllen = 0;
	if (version == 4)
		put_way4(u, h, ip);
	else
		put_way6(u, h, ip);
	memcpy(w->ip, ip, version == 4 ? UR_IP4_LEN : UR_IP6_LEN);
	w->ip_version = version;
	w->controllen = h->msg_controllen;
}

/* Message number m of the call: a packet or a train. What the kernel is told of its way stays for the next call. */
static void put_message(struct ur_udp *u, unsigned m, struct ur_pkt *p, struct iovec **iov)
{
	struct msghdr *h = &u->tx_msg[m].msg_hdr;
	struct ur_udp_way *w = &u->tx_way[m];
	const uint8_t *ip = p->data + p->l3_off;
	uint16_t stride = (uint16_t)p->stride;

	h->msg_iov = *iov;
	h->msg_iovlen = ur_sock_pieces(*iov, p, p->bth_off);
	*iov += h->msg_iovlen;
	if (ur_likely(is_way(w, ip, p->ip_version)))
		h->msg_controllen = w->controllen;
	else
		put_way(u, w, h, ip, p->ip_version);
	if (stride)
		put_cmsg(h, SOL_UDP, UDP_SEGMENT, &stride, sizeof(stride));
	u->tx_lost[m] = stays_here(u, p) ? (uint8_t)ur_train_count(p) : 0;
}

/*
 * A send fails for its datagram's own sake, or with the error of an earlier one, which the kernel tells once: so for each ICMP error that
 * was there it is tried again, but not for ever, since they may come faster than that.
 */
static bool is_refused(struct ur_udp *u, unsigned tries)
{
	const bool other = ur_udp_errors(u);

	return tries >= (other ? PATIENCE : 1);
}

/* Of `m` messages; returns how many are gone, sent or refused. */
static unsigned send_all(struct ur_udp *u, struct ur_pkt *const *pkts, unsigned m)
{
	unsigned done = 0, tries = 0;

	while (done < m) {
		int sent = sendmmsg(u->fd, u->tx_msg + done, m - done, MSG_DONTWAIT);

		if (ur_unlikely(sent <= 0)) {
			if (ur_sock_is_full(errno))
				break;
			if (!is_refused(u, tries++))
				continue;
			u->tx_lost[done] = (uint8_t)ur_train_count(pkts[done]);
			sent = 1;
		}
		tries = 0;
		for (int i = 0; i < sent; i++)
			u->queue.tx_refused += u->tx_lost[done++];
	}
	return done;
}

unsigned ur_udp_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);
	unsigned done = 0;

	while (done < n) {
		struct iovec *iov = u->tx_iov;
		unsigned m = ur_min_u32(n - done, UR_UDP_TX_MSGS), gone;

		for (unsigned i = 0; i < m; i++)
			put_message(u, i, pkts[done + i], &iov);
		gone = send_all(u, pkts + done, m);
		ur_udp_release(q, pkts + done, gone);
		done += gone;
		if (gone < m)
			break;
	}
	return done;
}

/* --- ICMP errors --- */

static bool is_icmp(const struct sock_extended_err *e)
{
	return e->ee_origin == SO_EE_ORIGIN_ICMP || e->ee_origin == SO_EE_ORIGIN_ICMP6;
}

/* The GID of an address that the kernel gives; zero for none. */
static struct ur_gid gid_of(const struct sockaddr *sa)
{
	struct ur_gid gid = {{0}};

	if (sa->sa_family == AF_INET)
		gid = ur_gid_from_v4(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr);
	else if (sa->sa_family == AF_INET6)
		memcpy(gid.raw, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, sizeof(gid.raw));
	return gid;
}

/* `from`: who sent the error. */
static void report_undelivered(struct ur_udp *u, const struct msghdr *h, const struct sock_extended_err *e, const struct ur_gid *from,
			       const uint8_t *quote, unsigned len)
{
	const bool v4 = e->ee_origin == SO_EE_ORIGIN_ICMP;
	const bool too_long = v4 ? e->ee_type == ICMP_DEST_UNREACH && e->ee_code == ICMP_FRAG_NEEDED : e->ee_type == ICMP6_PACKET_TOO_BIG;
	const struct ur_undelivered said = {.dst = gid_of(h->msg_name),
					    .from = *from,
					    .why = ur_icmp_why(v4, e->ee_code),
					    .hop_mtu = too_long ? ur_icmp_hop_mtu(v4, e->ee_info) : 0,
					    .quote = quote,
					    .len = len};

	/* That one lived too long, or had something wrong about it, does not mean that none would arrive. */
	if (!u->port.undelivered || !is_icmp(e) || (too_long ? !said.hop_mtu : e->ee_type != (v4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH)))
		return;
	u->port.undelivered(&u->port, &said);
}

bool ur_udp_errors(struct ur_udp *u)
{
	bool any = false;

	for (int i = 0; i < 64; i++) {
		struct sockaddr_in6 name = {.sin6_family = 0};
		union ur_udp_control control;
		uint8_t quote[UR_QUOTE_LEN]; /* of the datagram's payload, if the error had as much */
		struct iovec v = {.iov_base = quote, .iov_len = sizeof(quote)};
		struct msghdr h = {.msg_name = &name,
				   .msg_namelen = sizeof(name),
				   .msg_iov = &v,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = sizeof(control)};
		ssize_t len = recvmsg(u->fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT);

		if (len < 0)
			break;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
			struct sock_extended_err e;
			struct sockaddr_in6 offender = {.sin6_family = AF_UNSPEC}; /* follows it, of either family */
			struct ur_gid from;

			if (c->cmsg_len < CMSG_LEN(sizeof(e)) || (c->cmsg_type != IP_RECVERR && c->cmsg_type != IPV6_RECVERR))
				continue;
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			memcpy(&offender, CMSG_DATA(c) + sizeof(e),
			       ur_min_u32((uint32_t)(c->cmsg_len - CMSG_LEN(sizeof(e))), sizeof(offender)));
			from = gid_of((const struct sockaddr *)&offender);
			any = any || is_icmp(&e);
			report_undelivered(u, &h, &e, &from, quote, (unsigned)len);
		}
	}
	return any;
}
