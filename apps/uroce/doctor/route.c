/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: the address of the peer, the kernel's route to it, and why it may not answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/uroce/doctor/doctor.h"
#include "drivers/os/netlink.h"
#include "host/clock.h"

#define ROCE_PORT 4791
#define ICMP_MS 1100 /* that an answer of ICMP may take; a host gives one a second when it was asked often */
#define ICMP_TRIES 2

static bool is_v4(const struct sockaddr_in6 *a)
{
	return IN6_IS_ADDR_V4MAPPED(&a->sin6_addr);
}

static void address_text(const struct sockaddr_in6 *a, char *text, size_t len)
{
	if (is_v4(a))
		inet_ntop(AF_INET, a->sin6_addr.s6_addr + 12, text, (socklen_t)len);
	else
		inet_ntop(AF_INET6, &a->sin6_addr, text, (socklen_t)len);
}

/* --- addresses --- */

static bool is_listed(const struct ur_doctor_targets *t, const struct in6_addr *a)
{
	for (unsigned i = 0; i < t->count; i++)
		if (IN6_ARE_ADDR_EQUAL(&t->at[i].addr.sin6_addr, a))
			return true;
	return false;
}

static void add_target(struct ur_doctor_targets *t, const struct in6_addr *a, uint32_t scope)
{
	if (t->count == UR_DOCTOR_GIDS || is_listed(t, a))
		return;
	t->at[t->count].addr = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = *a, .sin6_scope_id = scope};
	t->count++;
}

static void resolve(const char *name, struct ur_doctor_targets *t)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	struct addrinfo *list = NULL;

	if (getaddrinfo(name, NULL, &hints, &list))
		return;
	for (const struct addrinfo *i = list; i; i = i->ai_next) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)i->ai_addr;
		struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

		if (i->ai_family == AF_INET6) {
			add_target(t, &in6->sin6_addr, in6->sin6_scope_id);
		} else if (i->ai_family == AF_INET) {
			memcpy(a.s6_addr + 12, &((const struct sockaddr_in *)(const void *)i->ai_addr)->sin_addr, 4);
			add_target(t, &a, 0);
		}
	}
	freeaddrinfo(list);
}

/* --- what rtnetlink says --- */

static int take_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct ur_doctor_peer *p = data;
	struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWROUTE || nlh->nlmsg_len < MNL_ALIGN(sizeof(*nlh)) + sizeof(*rtm))
		return MNL_CB_OK;
	p->self = rtm->rtm_type == RTN_LOCAL;
	p->routed = rtm->rtm_type == RTN_UNICAST || p->self;
	mnl_attr_for_each(a, nlh, sizeof(*rtm))
	{
		if (mnl_attr_get_type(a) == RTA_OIF && mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			if_indextoname(mnl_attr_get_u32(a), p->dev);
		if (mnl_attr_get_type(a) == RTA_GATEWAY && mnl_attr_get_payload_len(a) == (rtm->rtm_family == AF_INET ? 4 : 16))
			inet_ntop(rtm->rtm_family, mnl_attr_get_payload(a), p->via, sizeof(p->via));
	}
	return MNL_CB_OK;
}

static void find_route(struct ur_doctor_peer *p, const struct sockaddr_in6 *to)
{
	const struct rtmsg body = {.rtm_family = is_v4(to) ? AF_INET : AF_INET6, .rtm_dst_len = is_v4(to) ? 32 : 128};
	struct nlmsghdr *nlh = ur_netlink_begin(RTM_GETROUTE, 0, &body, sizeof(body));

	if (nlh) {
		mnl_attr_put(nlh, RTA_DST, is_v4(to) ? 4 : 16, to->sin6_addr.s6_addr + (is_v4(to) ? 12 : 0));
		if (to->sin6_scope_id)
			mnl_attr_put_u32(nlh, RTA_OIF, to->sin6_scope_id);
	}
	ur_netlink_end(NETLINK_ROUTE, nlh, take_route, p);
}

/* --- who else has its MAC address --- */

struct neighbours {
	struct ur_doctor_targets *t;
	const struct in6_addr *of;
	uint8_t mac[6];
	int ifindex;
	bool found;
};

struct neighbour {
	struct in6_addr addr;
	uint8_t mac[6];
	int ifindex;
};

static bool take_neighbour(const struct nlmsghdr *nlh, struct neighbour *n)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(nlh);
	bool has_addr = false, has_mac = false;
	struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWNEIGH || nlh->nlmsg_len < MNL_ALIGN(sizeof(*nlh)) + sizeof(*nd) || (nd->ndm_flags & NTF_ROUTER) ||
	    (nd->ndm_family != AF_INET && nd->ndm_family != AF_INET6))
		return false;
	*n = (struct neighbour){.addr = {.s6_addr = {[10] = 0xff, [11] = 0xff}}, .ifindex = nd->ndm_ifindex};
	mnl_attr_for_each(a, nlh, sizeof(*nd))
	{
		unsigned len = mnl_attr_get_payload_len(a);

		if (mnl_attr_get_type(a) == NDA_LLADDR && len == 6) {
			memcpy(n->mac, mnl_attr_get_payload(a), 6);
			has_mac = true;
		} else if (mnl_attr_get_type(a) == NDA_DST && len == (nd->ndm_family == AF_INET ? 4 : 16)) {
			memcpy(n->addr.s6_addr + 16 - len, mnl_attr_get_payload(a), len);
			has_addr = true;
		}
	}
	return has_addr && has_mac;
}

static int find_mac(const struct nlmsghdr *nlh, void *data)
{
	struct neighbours *who = data;
	struct neighbour n;

	if (!take_neighbour(nlh, &n) || !IN6_ARE_ADDR_EQUAL(&n.addr, who->of))
		return MNL_CB_OK;
	memcpy(who->mac, n.mac, 6);
	who->ifindex = n.ifindex;
	who->found = true;
	return MNL_CB_OK;
}

static int find_same(const struct nlmsghdr *nlh, void *data)
{
	const struct neighbours *who = data;
	struct neighbour n;

	if (take_neighbour(nlh, &n) && n.ifindex == who->ifindex && !memcmp(n.mac, who->mac, 6))
		add_target(who->t, &n.addr, IN6_IS_ADDR_LINKLOCAL(&n.addr) ? (uint32_t)n.ifindex : 0);
	return MNL_CB_OK;
}

/* A link-local address is mostly made of the MAC address (RFC 4291, appendix A). */
static void guess(struct neighbours *who)
{
	const uint8_t *m = who->mac;
	const struct in6_addr a = {.s6_addr = {0xfe, 0x80, [8] = m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}};
	unsigned before = who->t->count;

	add_target(who->t, &a, (uint32_t)who->ifindex);
	if (who->t->count > before)
		who->t->at[before].guessed = true;
}

void ur_doctor_read_neighbours(struct ur_doctor_targets *t)
{
	const struct ndmsg body = {.ndm_family = AF_UNSPEC};
	const struct in6_addr first = t->at[0].addr.sin6_addr;
	struct neighbours who = {.t = t, .of = &first};

	ur_netlink_dump(NETLINK_ROUTE, RTM_GETNEIGH, &body, sizeof(body), find_mac, &who);
	if (!who.found)
		return;
	ur_netlink_dump(NETLINK_ROUTE, RTM_GETNEIGH, &body, sizeof(body), find_same, &who);
	guess(&who);
}

/* --- what ICMP says --- */

static enum ur_doctor_cm meaning(const struct sock_extended_err *e)
{
	if (e->ee_origin == SO_EE_ORIGIN_ICMP && e->ee_type == ICMP_DEST_UNREACH)
		return e->ee_code == ICMP_PORT_UNREACH ? UR_DOCTOR_CM_REFUSED
		       : e->ee_code == ICMP_NET_ANO || e->ee_code == ICMP_HOST_ANO || e->ee_code == ICMP_PKT_FILTERED
			       ? UR_DOCTOR_CM_PROHIBITED
			       : UR_DOCTOR_CM_SILENT;
	if (e->ee_origin == SO_EE_ORIGIN_ICMP6 && e->ee_type == ICMP6_DST_UNREACH)
		return e->ee_code == ICMP6_DST_UNREACH_NOPORT  ? UR_DOCTOR_CM_REFUSED
		       : e->ee_code == ICMP6_DST_UNREACH_ADMIN ? UR_DOCTOR_CM_PROHIBITED
							       : UR_DOCTOR_CM_SILENT;
	return UR_DOCTOR_CM_SILENT;
}

static enum ur_doctor_cm read_error(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[512];
	} control;
	struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof(control)};

	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return UR_DOCTOR_CM_SILENT;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct sock_extended_err e;

		if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		return meaning(&e);
	}
	return UR_DOCTOR_CM_SILENT;
}

/* Four bytes, which no RoCE device takes for anything. */
static enum ur_doctor_cm knock(const struct sockaddr_in6 *to)
{
	struct sockaddr_in6 port = *to;
	enum ur_doctor_cm said = UR_DOCTOR_CM_SILENT;
	const uint8_t nothing[4] = {0};
	struct pollfd p = {.fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
	int one = 1, zero = 0;

	port.sin6_port = htons(ROCE_PORT);
	if (p.fd < 0)
		return said;
	setsockopt(p.fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	setsockopt(p.fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one));
	setsockopt(p.fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
	if (connect(p.fd, (struct sockaddr *)&port, sizeof(port)) == 0 && send(p.fd, nothing, sizeof(nothing), 0) >= 0 &&
	    poll(&p, 1, ICMP_MS) > 0)
		said = read_error(p.fd);
	close(p.fd);
	return said;
}

void ur_doctor_read_route(struct ur_doctor_facts *f, struct ur_doctor_targets *t)
{
	struct ur_doctor_peer *p = &f->peer;

	resolve(p->name, t);
	if (!t->count)
		return;
	p->v6 = !is_v4(&t->at[0].addr);
	address_text(&t->at[0].addr, p->address, sizeof(p->address));
	find_route(p, &t->at[0].addr);
}

void ur_doctor_read_refusal(struct ur_doctor_facts *f, const struct ur_doctor_targets *t)
{
	for (int i = 0; i < ICMP_TRIES && f->peer.cm == UR_DOCTOR_CM_SILENT; i++)
		f->peer.cm = knock(&t->at[0].addr);
}
