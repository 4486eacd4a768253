/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/device/hostif.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "drivers/os/fail.h"
#include "drivers/os/holder.h"
#include "drivers/os/netlink.h"
#include "wire/frame.h"

#define DUMP_TRIES 5
#define LOWER_UP 0x10000 /* IFF_LOWER_UP of <linux/if.h>, beside which <net/if.h> does not compile: there is a carrier */

/* --- one netlink dump --- */

static int dump(uint16_t type, unsigned char family, mnl_cb_t cb, void *data)
{
	const union {
		struct rtgenmsg family;
		struct rtmsg route;
		struct ifaddrmsg addr;
	} header = {.family = {family}};
	const size_t len = type == RTM_GETROUTE ? sizeof(header.route) : sizeof(header.addr);

	return ur_netlink_dump(NETLINK_ROUTE, type, &header, len, cb, data);
}

static struct ur_gid gid_of_attr(const struct nlattr *a, unsigned char family)
{
	struct ur_gid g = {{0}};
	uint32_t v4;

	if (family == AF_INET && mnl_attr_get_payload_len(a) == 4) {
		memcpy(&v4, mnl_attr_get_payload(a), 4);
		return ur_gid_from_v4(v4);
	}
	if (family == AF_INET6 && mnl_attr_get_payload_len(a) == 16)
		memcpy(g.raw, mnl_attr_get_payload(a), 16);
	return g;
}

/* --- what it is --- */

static uint32_t link_speed(int fd, struct ifreq *ifr)
{
	struct ethtool_cmd cmd = {.cmd = ETHTOOL_GSET};
	uint32_t speed;

	ifr->ifr_data = (char *)&cmd;
	if (ioctl(fd, SIOCETHTOOL, ifr))
		return 0;
	speed = ethtool_cmd_speed(&cmd);
	return speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}

/* For an interface that has none, such as a tunnel: one that is this host's alone. UDP sockets do not put it on any wire. */
static void invent_mac(struct ur_hostif *h)
{
	char name[256] = "";
	uint64_t v;

	gethostname(name, sizeof(name) - 1);
	v = ur_hash_bytes(UR_HASH_BEGIN, name, strlen(name));
	v = ur_hash_bytes(v, h->name, strlen(h->name));
	memcpy(h->mac.b, &v, 6);
	h->mac.b[0] = 0x02;
}

static int take_flags(const struct nlmsghdr *nlh, void *data)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct ur_hostif *h = data;

	if (nlh->nlmsg_type != RTM_NEWLINK || nlh->nlmsg_len < MNL_ALIGN(sizeof(*nlh)) + sizeof(*ifi) || ifi->ifi_index != h->ifindex)
		return MNL_CB_OK;
	h->enabled = ifi->ifi_flags & IFF_UP;
	h->up = h->enabled && (ifi->ifi_flags & LOWER_UP);
	return MNL_CB_OK;
}

/*
 * As rdma_rxe sees it: up, with a carrier. Not IFF_RUNNING, the operational state of RFC 2863: that follows the carrier by up to a second,
 * and says more than that, for example whether somebody has to authenticate first.
 */
static int read_flags(struct ur_hostif *h)
{
	const struct ifinfomsg ifi = {.ifi_family = AF_UNSPEC, .ifi_index = h->ifindex};

	return ur_netlink_end(NETLINK_ROUTE, ur_netlink_begin(RTM_GETLINK, 0, &ifi, sizeof(ifi)), take_flags, h);
}

static int describe(int fd, struct ur_hostif *h, char *err, size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};

	strcpy(ifr.ifr_name, h->name);
	if (ioctl(fd, SIOCGIFINDEX, &ifr))
		return ur_port_fail_no_interface(err, errlen, h->name);
	h->ifindex = ifr.ifr_ifindex;
	if (ioctl(fd, SIOCGIFHWADDR, &ifr))
		return errno;
	if (ifr.ifr_hwaddr.sa_family == 1 /* ARPHRD_ETHER */)
		memcpy(h->mac.b, ifr.ifr_hwaddr.sa_data, 6);
	else
		invent_mac(h);
	if (ioctl(fd, SIOCGIFMTU, &ifr))
		return errno;
	h->whole_mtu = (unsigned)ifr.ifr_mtu;
	h->mtu = (uint16_t)(ifr.ifr_mtu > 9600 ? 9600 : ifr.ifr_mtu);
	h->speed_mbps = link_speed(fd, &ifr);
	return read_flags(h);
}

static int match_one(const char *what, char name[IF_NAMESIZE], char *err, size_t errlen)
{
	struct ur_hostif_names fit;
	int r = ur_hostif_match(what, &fit, err, errlen);

	if (r)
		return r;
	strcpy(name, fit.name[0]);
	return fit.n == 1 ? 0 : ur_hostif_ambiguous(what, &fit, err, errlen);
}

int ur_hostif_find(const char *name, struct ur_hostif *h, char *err, size_t errlen)
{
	int fd, r;

	memset(h, 0, sizeof(*h));
	if (!*name || ur_hostif_is_pattern(name)) {
		r = *name ? match_one(name, h->name, err, errlen) : ur_hostif_choose(h->name, err, errlen);
		if (r)
			return r;
	} else if ((size_t)snprintf(h->name, sizeof(h->name), "%s", name) >= sizeof(h->name)) {
		return ur_port_fail_no_interface(err, errlen, name);
	}
	snprintf(err, errlen, "cannot read the settings of interface '%s': check that it still exists with 'ip link'", h->name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	r = describe(fd, h, err, errlen);
	close(fd);
	return r;
}

/* --- its addresses and routes --- */

struct sync {
	const struct ur_hostif *h;
	struct ur_net *net;
	struct ur_net_addr addr[UR_NET_GIDS];
	unsigned addr_n;
};

static int sync_addr(const struct nlmsghdr *nlh, void *data)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct sync *s = data;
	struct ur_gid gid = {{0}}, local = {{0}};
	uint32_t flags = ifa->ifa_flags;
	struct nlattr *a;

	if ((int)ifa->ifa_index != s->h->ifindex || s->addr_n == UR_NET_GIDS)
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(*ifa))
	{
		if (mnl_attr_get_type(a) == IFA_ADDRESS)
			gid = gid_of_attr(a, ifa->ifa_family);
		else if (mnl_attr_get_type(a) == IFA_LOCAL)
			local = gid_of_attr(a, ifa->ifa_family);
		else if (mnl_attr_get_type(a) == IFA_FLAGS && mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			flags = mnl_attr_get_u32(a);
	}
	if (!ur_gid_is_zero(&local))
		gid = local; /* IFA_ADDRESS is the peer's on point-to-point links */
	if (!ur_gid_is_zero(&gid) && !(flags & IFA_F_DADFAILED))
		s->addr[s->addr_n++] = (struct ur_net_addr){.gid = gid, .prefix_len = ifa->ifa_prefixlen};
	return MNL_CB_OK;
}

static bool sync_has(const struct sync *s, const struct ur_gid *gid)
{
	for (unsigned i = 0; i < s->addr_n; i++)
		if (ur_gid_eq(&s->addr[i].gid, gid))
			return true;
	return false;
}

/* GID 0 should be what a newcomer wants: IPv4 first, then global IPv6, then link-local. */
static int addr_rank(const struct ur_net_addr *a)
{
	return ur_gid_is_v4(&a->gid) ? 0 : (a->gid.raw[0] == 0xfe && (a->gid.raw[1] & 0xc0) == 0x80) ? 2 : 1;
}

static void sync_apply_addrs(struct sync *s)
{
	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *old = ur_net_gid(s->net, i);
		struct ur_gid gid;

		if (!old || sync_has(s, &old->gid))
			continue;
		gid = old->gid;
		ur_net_addr_del(s->net, &gid);
	}
	for (int rank = 0; rank <= 2; rank++)
		for (unsigned i = 0; i < s->addr_n; i++)
			if (addr_rank(&s->addr[i]) == rank)
				ur_net_addr_add(s->net, &s->addr[i]); /* EEXIST for those that stay */
}

static void sync_nexthop(struct ur_net_route *r, int *oif, const struct nlattr *a, unsigned char family)
{
	const struct rtnexthop *nh = mnl_attr_get_payload(a);
	size_t left = mnl_attr_get_payload_len(a);

	/* A multipath route: the first of its hops. */
	if (left < sizeof(*nh) || nh->rtnh_len < sizeof(*nh) || nh->rtnh_len > left)
		return;
	*oif = nh->rtnh_ifindex;
	left = nh->rtnh_len - sizeof(*nh);
	for (const struct nlattr *n = (const struct nlattr *)(nh + 1); mnl_attr_ok(n, (int)left);
	     left -= MNL_ALIGN(n->nla_len), n = mnl_attr_next(n))
		if (mnl_attr_get_type(n) == RTA_GATEWAY)
			r->gateway = gid_of_attr(n, family);
}

static int sync_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct sync *s = data;
	struct ur_net_route r = {.prefix_len = rtm->rtm_dst_len};
	struct nlattr *a;
	int oif = 0;

	if (rtm->rtm_protocol == RTPROT_KERNEL) /* on-link routes: each address brings its own */
		return MNL_CB_OK;
	if (rtm->rtm_type != RTN_UNICAST || rtm->rtm_table != RT_TABLE_MAIN || (rtm->rtm_family != AF_INET && rtm->rtm_family != AF_INET6))
		return MNL_CB_OK;
	if (rtm->rtm_family == AF_INET)
		r.dst = ur_gid_from_v4(0);
	mnl_attr_for_each(a, nlh, sizeof(*rtm))
	{
		switch (mnl_attr_get_type(a)) {
		case RTA_DST: r.dst = gid_of_attr(a, rtm->rtm_family); break;
		case RTA_GATEWAY: r.gateway = gid_of_attr(a, rtm->rtm_family); break;
		case RTA_PREFSRC: r.src = gid_of_attr(a, rtm->rtm_family); break;
		case RTA_PRIORITY: r.metric = mnl_attr_get_u32(a); break;
		case RTA_OIF: oif = (int)mnl_attr_get_u32(a); break;
		case RTA_MULTIPATH: sync_nexthop(&r, &oif, a, rtm->rtm_family); break;
		}
	}
	if (oif == s->h->ifindex)
		ur_net_route_add(s->net, &r);
	return MNL_CB_OK;
}

int ur_hostif_sync(const struct ur_hostif *h, struct ur_net *net)
{
	struct sync *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return ENOMEM;
	s->h = h;
	s->net = net;
	for (int tries = 0; tries < DUMP_TRIES; tries++) { /* EINTR: the addresses changed while they were listed */
		s->addr_n = 0;
		err = dump(RTM_GETADDR, AF_UNSPEC, sync_addr, s);
		if (err != EINTR)
			break;
	}
	if (!err) {
		sync_apply_addrs(s);
		ur_net_route_clear(net);
		for (int tries = 0; tries < DUMP_TRIES && (err = dump(RTM_GETROUTE, AF_UNSPEC, sync_route, s)) == EINTR; tries++)
			continue; /* a route listed twice is one route */
	}
	free(s);
	return err;
}

/* --- changes --- */

int ur_hostif_monitor(void)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
				 .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
					      RTMGRP_IPV6_ROUTE | RTMGRP_NEIGH};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		int err = errno;

		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

struct changes {
	int ifindex;
	bool changed;
	void (*failed)(void *ctx, const struct ur_gid *neighbour);
	void *ctx;
};

static int take_change(const struct nlmsghdr *nlh, void *data)
{
	const struct ndmsg *nd = mnl_nlmsg_get_payload(nlh);
	struct changes *changes = data;
	struct nlattr *a;
	struct ur_gid gid;

	if (nlh->nlmsg_type != RTM_NEWNEIGH && nlh->nlmsg_type != RTM_DELNEIGH) {
		changes->changed = true;
		return MNL_CB_OK;
	}
	if (nlh->nlmsg_type != RTM_NEWNEIGH || nlh->nlmsg_len < MNL_ALIGN(sizeof(*nlh)) + sizeof(*nd) || !(nd->ndm_state & NUD_FAILED) ||
	    nd->ndm_ifindex != changes->ifindex)
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(*nd))
	{
		if (mnl_attr_get_type(a) != NDA_DST)
			continue;
		gid = gid_of_attr(a, nd->ndm_family);
		if (!ur_gid_is_zero(&gid))
			changes->failed(changes->ctx, &gid);
	}
	return MNL_CB_OK;
}

bool ur_hostif_changed(int monitor, int ifindex, void (*failed)(void *ctx, const struct ur_gid *neighbour), void *ctx)
{
	struct changes changes = {.ifindex = ifindex, .failed = failed, .ctx = ctx};
	union {
		struct nlmsghdr align;
		char bytes[8192];
	} buf;

	for (;;) {
		ssize_t n = recv(monitor, &buf, sizeof(buf), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != ENOBUFS)
			return changes.changed;
		if (n < 0) /* messages were lost, so something changed */
			changes.changed = true;
		else
			mnl_cb_run(&buf, (size_t)n, 0, 0, take_change, &changes);
	}
}

/* --- UDP port 4791 --- */

static int silence(int family, const struct sockaddr *sa, socklen_t len, bool trains)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = {.len = 1, .filter = &drop};
	int one = 1, zero = 0, err;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (trains)
		setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof(one));
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) && !bind(fd, sa, len))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* Our siblings share the port, and the kernel lets those of one user do so. So if the port is taken, another user has it, or the kernel. */
static void warn_of_stranger(void)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;
	unsigned uid;

	if (atomic_flag_test_and_set(&warned))
		return;
	if (ur_udp_holder(UR_ROCE_PORT, &uid) == UR_UDP_HOLDER_OTHER)
		fprintf(stderr,
			"uroce: UDP port %d belongs to a process of user %u, who can read all RoCEv2 packets that come to this host and "
			"may answer them: end it unless you trust that user ('ss -uap sport = :%d' shows it)\n",
			UR_ROCE_PORT, uid, UR_ROCE_PORT);
	else
		fprintf(stderr,
			"uroce: UDP port %d is taken on this host, perhaps by rdma_rxe: packets may be answered twice; "
			"remove it with 'rdma link del'\n",
			UR_ROCE_PORT);
}

int ur_hostif_silence(bool trains)
{
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(UR_ROCE_PORT)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT)};
	int fd = silence(AF_INET6, (struct sockaddr *)&any6, sizeof(any6), trains); /* both families */
	bool taken = fd < 0 && errno == EADDRINUSE;
	int err;

	if (fd < 0)
		fd = silence(AF_INET, (struct sockaddr *)&any4, sizeof(any4), trains);
	err = errno;
	if (taken || (fd < 0 && err == EADDRINUSE))
		warn_of_stranger();
	errno = err;
	return fd;
}
