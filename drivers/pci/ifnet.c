/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of an interface, over netlink: read before its driver goes, and given back to the interface that comes. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/os/netlink.h"
#include "drivers/pci/bind.h"

#define DUMP_TRIES 20

/* --- attributes --- */

static size_t ip_len(int family)
{
	return family == AF_INET ? 4 : 16;
}

static struct ur_pci_ip ip_of(const struct nlattr *a, int family)
{
	struct ur_pci_ip ip = {.family = 0};

	if (mnl_attr_get_payload_len(a) == ip_len(family)) {
		ip.family = family;
		memcpy(ip.raw, mnl_attr_get_payload(a), ip_len(family));
	}
	return ip;
}

static uint32_t number_of(const struct nlattr *a)
{
	return mnl_attr_validate(a, MNL_TYPE_U32) < 0 ? 0 : mnl_attr_get_u32(a);
}

static void put_ip(struct nlmsghdr *nlh, uint16_t type, const struct ur_pci_ip *ip)
{
	if (ip->family)
		mnl_attr_put(nlh, type, ip_len(ip->family), ip->raw);
}

static bool is_ip(int family)
{
	return family == AF_INET || family == AF_INET6;
}

/* --- reading --- */

struct reading {
	unsigned index;
	struct ur_pci_if *nif;
};

static int read_address(const struct nlmsghdr *nlh, void *data)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct reading *rd = data;
	struct ur_pci_ip ip = {.family = 0}, local = {.family = 0};
	struct nlattr *a;

	if (ifa->ifa_index != rd->index || !is_ip(ifa->ifa_family) || rd->nif->naddr == UR_PCI_IF_ADDRS)
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(*ifa))
	{
		if (mnl_attr_get_type(a) == IFA_ADDRESS)
			ip = ip_of(a, ifa->ifa_family);
		else if (mnl_attr_get_type(a) == IFA_LOCAL)
			local = ip_of(a, ifa->ifa_family);
	}
	if (local.family)
		ip = local; /* IFA_ADDRESS is the peer's on point-to-point links */
	if (!ip.family)
		return MNL_CB_OK;
	rd->nif->addr[rd->nif->naddr].ip = ip;
	rd->nif->addr[rd->nif->naddr++].len = ifa->ifa_prefixlen;
	return MNL_CB_OK;
}

static bool in_main_table(const struct rtmsg *rtm)
{
	return rtm->rtm_type == RTN_UNICAST && rtm->rtm_table == RT_TABLE_MAIN && is_ip(rtm->rtm_family);
}

static int read_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct reading *rd = data;
	unsigned n = rd->nif->nroute, oif = 0;
	struct nlattr *a;

	/* The kernel makes those that go with the addresses, and a router's advertisements bring their own. */
	if (!in_main_table(rtm) || rtm->rtm_protocol == RTPROT_KERNEL || rtm->rtm_protocol == RTPROT_RA || n == UR_PCI_IF_ROUTES)
		return MNL_CB_OK;
	memset(&rd->nif->route[n], 0, sizeof(rd->nif->route[n]));
	rd->nif->route[n].len = rtm->rtm_dst_len;
	rd->nif->route[n].dst.family = rtm->rtm_family;
	mnl_attr_for_each(a, nlh, sizeof(*rtm))
	{
		switch (mnl_attr_get_type(a)) {
		case RTA_DST: rd->nif->route[n].dst = ip_of(a, rtm->rtm_family); break;
		case RTA_GATEWAY: rd->nif->route[n].gateway = ip_of(a, rtm->rtm_family); break;
		case RTA_PREFSRC: rd->nif->route[n].src = ip_of(a, rtm->rtm_family); break;
		case RTA_PRIORITY: rd->nif->route[n].metric = number_of(a); break;
		case RTA_OIF: oif = number_of(a); break;
		default: break;
		}
	}
	if (oif == rd->index)
		rd->nif->nroute++;
	return MNL_CB_OK;
}

static int read_addresses(struct reading *rd)
{
	const struct ifaddrmsg any = {.ifa_family = AF_UNSPEC};
	int rc = EINTR;

	for (unsigned i = 0; i < DUMP_TRIES && rc == EINTR; i++) {
		rd->nif->naddr = 0;
		rc = ur_netlink_dump(NETLINK_ROUTE, RTM_GETADDR, &any, sizeof(any), read_address, rd);
	}
	return rc;
}

static int read_routes(struct reading *rd)
{
	const struct rtmsg any = {.rtm_family = AF_UNSPEC};
	int rc = EINTR;

	for (unsigned i = 0; i < DUMP_TRIES && rc == EINTR; i++) {
		rd->nif->nroute = 0;
		rc = ur_netlink_dump(NETLINK_ROUTE, RTM_GETROUTE, &any, sizeof(any), read_route, rd);
	}
	return rc;
}

static int if_ioctl(const char *ifname, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	if (ioctl(fd, request, ifr))
		rc = errno;
	close(fd);
	return rc;
}

int ur_pci_if_save(const char *ifname, struct ur_pci_if *nif)
{
	struct reading rd = {.index = if_nametoindex(ifname), .nif = nif};
	struct ifreq ifr = {.ifr_flags = 0};
	int rc = rd.index ? 0 : ENODEV;

	memset(nif, 0, sizeof(*nif));
	snprintf(nif->name, sizeof(nif->name), "%s", ifname);
	rc = rc ? rc : if_ioctl(ifname, SIOCGIFHWADDR, &ifr);
	memcpy(nif->mac, ifr.ifr_hwaddr.sa_data, sizeof(nif->mac));
	rc = rc ? rc : if_ioctl(ifname, SIOCGIFMTU, &ifr);
	nif->mtu = (unsigned)ifr.ifr_mtu;
	rc = rc ? rc : if_ioctl(ifname, SIOCGIFFLAGS, &ifr);
	nif->up = ifr.ifr_flags & IFF_UP;
	rc = rc ? rc : read_addresses(&rd);
	return rc ? rc : read_routes(&rd);
}

/* --- giving back --- */

#define NEW (NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK)

static int add_address(unsigned index, const struct ur_pci_if *nif, unsigned i)
{
	const struct ifaddrmsg ifa = {
		.ifa_family = (uint8_t)nif->addr[i].ip.family,
		.ifa_prefixlen = (uint8_t)nif->addr[i].len,
		.ifa_index = index,
	};
	struct nlmsghdr *nlh = ur_netlink_begin(RTM_NEWADDR, NEW, &ifa, sizeof(ifa));

	if (nlh) {
		put_ip(nlh, IFA_LOCAL, &nif->addr[i].ip);
		put_ip(nlh, IFA_ADDRESS, &nif->addr[i].ip);
	}
	return ur_netlink_end(NETLINK_ROUTE, nlh, NULL, NULL);
}

static int add_route(unsigned index, const struct ur_pci_if *nif, unsigned i)
{
	const bool near = !nif->route[i].gateway.family && nif->route[i].dst.family != AF_INET6;
	const struct rtmsg rtm = {
		.rtm_family = (uint8_t)nif->route[i].dst.family,
		.rtm_dst_len = (uint8_t)nif->route[i].len,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = near ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_UNICAST,
	};
	struct nlmsghdr *nlh = ur_netlink_begin(RTM_NEWROUTE, NEW, &rtm, sizeof(rtm));

	if (nlh) {
		if (nif->route[i].len)
			put_ip(nlh, RTA_DST, &nif->route[i].dst);
		put_ip(nlh, RTA_GATEWAY, &nif->route[i].gateway);
		put_ip(nlh, RTA_PREFSRC, &nif->route[i].src);
		mnl_attr_put_u32(nlh, RTA_OIF, index);
		if (nif->route[i].metric)
			mnl_attr_put_u32(nlh, RTA_PRIORITY, nif->route[i].metric);
	}
	return ur_netlink_end(NETLINK_ROUTE, nlh, NULL, NULL);
}

static int set_flags(const char *ifname, const struct ur_pci_if *nif)
{
	struct ifreq ifr = {.ifr_mtu = (int)nif->mtu};
	int rc = if_ioctl(ifname, SIOCSIFMTU, &ifr);

	if (!nif->up)
		return rc;
	memset(&ifr, 0, sizeof(ifr));
	rc = rc ? rc : if_ioctl(ifname, SIOCGIFFLAGS, &ifr);
	ifr.ifr_flags = (short)(ifr.ifr_flags | IFF_UP);
	return rc ? rc : if_ioctl(ifname, SIOCSIFFLAGS, &ifr);
}

int ur_pci_if_restore(const char *ifname, const struct ur_pci_if *nif)
{
	unsigned index = if_nametoindex(ifname);
	int first = 0, rc;

	if (!index)
		return ENODEV;
	first = set_flags(ifname, nif);
	for (unsigned i = 0; i < nif->naddr; i++) {
		rc = add_address(index, nif, i);
		first = first || rc == EEXIST ? first : rc;
	}
	/* Those to gateways need the routes to them. */
	for (unsigned gateways = 0; gateways < 2; gateways++)
		for (unsigned i = 0; i < nif->nroute; i++) {
			if ((nif->route[i].gateway.family != 0) != gateways)
				continue;
			rc = add_route(index, nif, i);
			first = first || rc == EEXIST ? first : rc;
		}
	return first;
}

int ur_pci_if_rename(const char *ifname, const char *name)
{
	struct ifreq ifr = {.ifr_flags = 0};

	snprintf(ifr.ifr_newname, sizeof(ifr.ifr_newname), "%s", name);
	return if_ioctl(ifname, SIOCSIFNAME, &ifr);
}

/* --- the default route --- */

struct search {
	unsigned index;
	bool found;
};

static int find_default(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct search *s = data;
	struct nlattr *a;

	if (rtm->rtm_dst_len || rtm->rtm_type != RTN_UNICAST || !is_ip(rtm->rtm_family))
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(*rtm))
	{
		if (mnl_attr_get_type(a) == RTA_OIF)
			s->found |= number_of(a) == s->index;
		if (mnl_attr_get_type(a) != RTA_MULTIPATH || mnl_attr_get_payload_len(a) < sizeof(struct rtnexthop))
			continue;
		for (const struct rtnexthop *nh = mnl_attr_get_payload(a);
		     (const char *)(nh + 1) <= (const char *)mnl_attr_get_payload(a) + mnl_attr_get_payload_len(a) &&
		     nh->rtnh_len >= sizeof(*nh);
		     nh = (const struct rtnexthop *)(const void *)((const char *)nh + MNL_ALIGN(nh->rtnh_len)))
			s->found |= (unsigned)nh->rtnh_ifindex == s->index;
	}
	return MNL_CB_OK;
}

#define STORIES 8 /* VLAN on bridge on bond on interface, and some more */

static bool search_up(const struct ur_pci_roots *r, const char *ifname, unsigned story)
{
	const struct rtmsg any = {.rtm_family = AF_UNSPEC};
	struct search s = {.index = if_nametoindex(ifname)};
	char path[UR_PCI_PATH];
	int rc = s.index ? EINTR : 0;
	struct dirent *e;
	DIR *d;

	for (unsigned i = 0; i < DUMP_TRIES && rc == EINTR; i++)
		rc = ur_netlink_dump(NETLINK_ROUTE, RTM_GETROUTE, &any, sizeof(any), find_default, &s);
	if (rc)
		return true; /* nobody knows: better be told twice */
	if (s.found || story == STORIES || !ur_pci_path(path, r->sys, "/class/net/%s", ifname) || !(d = opendir(path)))
		return s.found;
	while (!s.found && (e = readdir(d)))
		if (!strncmp(e->d_name, "upper_", 6))
			s.found = search_up(r, e->d_name + 6, story + 1);
	closedir(d);
	return s.found;
}

bool ur_pci_if_default_route(const struct ur_pci_roots *r, const char *ifname)
{
	return search_up(r, ifname, 0);
}
