/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long IP packets towards an address may be, by what the administrator, or a router of the link, has set: the route's own MTU, the
 * interface's now, and what it has for IPv6. The kernel's cached path MTU (IP_MTU) is no source, since anybody lowers it by an ICMP error
 * that quotes two addresses and two ports; so the route is asked for as it stands in the table (RTM_F_FIB_MATCH), without exceptions.
 */
#include <stdio.h>
#include <string.h>

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "drivers/os/netlink.h"
#include "drivers/udp/internal.h"
#include "wire/frame.h"

static void take_metrics(const struct nlattr *metrics, uint32_t *mtu)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, metrics)
	{
		if (mnl_attr_get_type(a) == RTAX_MTU && mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			*mtu = mnl_attr_get_u32(a);
	}
}

static int take_route(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(struct rtmsg))
	{
		if (mnl_attr_get_type(a) == RTA_METRICS)
			take_metrics(a, data);
	}
	return MNL_CB_OK;
}

/* Of the route to `dst`; 0: it sets none, or there is no route. */
static uint32_t route_mtu(const struct ur_udp *u, const struct ur_gid *dst)
{
	const bool v4 = ur_gid_is_v4(dst);
	const struct rtmsg ask = {.rtm_family = v4 ? AF_INET : AF_INET6, .rtm_dst_len = v4 ? 32 : 128, .rtm_flags = RTM_F_FIB_MATCH};
	struct nlmsghdr *nlh = ur_netlink_begin(RTM_GETROUTE, 0, &ask, sizeof(ask));
	uint32_t mtu = 0;

	if (!nlh)
		return 0;
	mnl_attr_put(nlh, RTA_DST, v4 ? 4 : 16, v4 ? dst->raw + 12 : dst->raw);
	mnl_attr_put_u32(nlh, RTA_OIF, (uint32_t)u->ifindex);
	return ur_netlink_end(NETLINK_ROUTE, nlh, take_route, &mtu) ? 0 : mtu;
}

/* A router of the link may announce it (RFC 4861, 4.6.4), but nobody from beyond. 0: it cannot be read. */
static uint32_t ipv6_mtu(const struct ur_udp *u)
{
	char path[128];
	uint32_t mtu = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/mtu", u->port.name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%u", &mtu) != 1)
		mtu = 0;
	fclose(f);
	return mtu;
}

/* It may have been lowered since the port was opened. 0: it cannot be read. */
static uint32_t device_mtu(const struct ur_udp *u)
{
	struct ifreq ifr = {.ifr_mtu = 0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.*s", IFNAMSIZ - 1, u->port.name);
	return ioctl(u->fd, SIOCGIFMTU, &ifr) || ifr.ifr_mtu < 0 ? 0 : (uint32_t)ifr.ifr_mtu;
}

uint16_t ur_udp_path_mtu(struct ur_port *p, const struct ur_gid *dst)
{
	const struct ur_udp *u = ur_udp_of(p);
	const uint32_t bounds[] = {device_mtu(u), route_mtu(u, dst), ur_gid_is_v4(dst) ? 0 : ipv6_mtu(u)};
	uint32_t mtu = p->mtu;

	for (unsigned i = 0; i < ur_array_size(bounds); i++)
		if (bounds[i] && bounds[i] < mtu)
			mtu = bounds[i];
	return (uint16_t)mtu;
}
