/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface that is meant where none is named, and what there is where none can be chosen. */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "drivers/os/netlink.h"
#include "host/device/hostif.h"

#define CANDIDATES 1024
#define DUMP_TRIES 5
#define LIST_LEN 200 /* of what a sentence lists */

struct candidate {
	int ifindex;
	unsigned flags; /* IFF_UP ... */
	bool has_addr;
	char name[IF_NAMESIZE];
};

struct choice {
	struct candidate c[CANDIDATES];
	unsigned n;
	int default_route; /* ifindex, 0 for none */
	uint32_t metric;
};

/* --- what the kernel has --- */

static int take_link(const struct nlmsghdr *nlh, void *data)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct choice *ch = data;
	struct candidate *c = &ch->c[ch->n];
	struct nlattr *a;

	if (ch->n == CANDIDATES)
		return MNL_CB_OK;
	*c = (struct candidate){.ifindex = ifi->ifi_index, .flags = ifi->ifi_flags};
	mnl_attr_for_each(a, nlh, sizeof(*ifi))
	{
		if (mnl_attr_get_type(a) == IFLA_IFNAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) >= 0)
			snprintf(c->name, sizeof(c->name), "%s", mnl_attr_get_str(a));
	}
	ch->n++;
	return MNL_CB_OK;
}

static int take_addr(const struct nlmsghdr *nlh, void *data)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct choice *ch = data;

	for (unsigned i = 0; i < ch->n; i++)
		if (ch->c[i].ifindex == (int)ifa->ifa_index && (ifa->ifa_family == AF_INET || ifa->ifa_family == AF_INET6))
			ch->c[i].has_addr = true;
	return MNL_CB_OK;
}

static int take_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct choice *ch = data;
	struct nlattr *a;
	uint32_t metric = 0;
	int oif = 0;

	if (rtm->rtm_dst_len || rtm->rtm_type != RTN_UNICAST || rtm->rtm_table != RT_TABLE_MAIN)
		return MNL_CB_OK;
	mnl_attr_for_each(a, nlh, sizeof(*rtm))
	{
		if (mnl_attr_get_type(a) == RTA_OIF && mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			oif = (int)mnl_attr_get_u32(a);
		if (mnl_attr_get_type(a) == RTA_PRIORITY && mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			metric = mnl_attr_get_u32(a);
	}
	if (oif && (!ch->default_route || metric < ch->metric)) {
		ch->default_route = oif;
		ch->metric = metric;
	}
	return MNL_CB_OK;
}

static int read_all(struct choice *ch)
{
	const struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	const struct ifaddrmsg addr = {.ifa_family = AF_UNSPEC};
	const struct rtmsg route = {.rtm_family = AF_INET};
	int err = ur_netlink_dump(NETLINK_ROUTE, RTM_GETLINK, &link, sizeof(link), take_link, ch);

	err = err ? err : ur_netlink_dump(NETLINK_ROUTE, RTM_GETADDR, &addr, sizeof(addr), take_addr, ch);
	return err ? err : ur_netlink_dump(NETLINK_ROUTE, RTM_GETROUTE, &route, sizeof(route), take_route, ch);
}

/* --- which of it --- */

/* Why it is not chosen unless it is named; NULL: it may be. */
static const char *unfitness(const struct candidate *c)
{
	if (c->flags & IFF_LOOPBACK)
		return "is the loopback";
	if (!(c->flags & IFF_UP))
		return "is down";
	if (c->flags & IFF_POINTOPOINT)
		return "is a point-to-point link";
	return c->has_addr ? NULL : "has no address";
}

/* "eth0 is down, tun0 is a point-to-point link" of those that are not fit, or "eth0, eth1" of those that are; "..." for the rest. */
static void list(const struct choice *ch, bool fit, char text[LIST_LEN])
{
	size_t at = 0;

	text[0] = 0;
	for (unsigned i = 0; i < ch->n; i++) {
		const char *why = unfitness(&ch->c[i]);
		char item[IF_NAMESIZE + 32];

		if (!why != fit || (ch->c[i].flags & IFF_LOOPBACK))
			continue;
		snprintf(item, sizeof(item), "%s%s%s%s", at ? ", " : "", ch->c[i].name, why ? " " : "", why ? why : "");
		if (at + strlen(item) + sizeof(", ...") > LIST_LEN) {
			strcpy(text + at, ", ...");
			return;
		}
		strcpy(text + at, item);
		at += strlen(item);
	}
}

static int pick(const struct choice *ch, char name[IF_NAMESIZE], char *err, size_t errlen)
{
	const struct candidate *found = NULL;
	char names[LIST_LEN];
	unsigned usable = 0;

	for (unsigned i = 0; i < ch->n; i++) {
		if (unfitness(&ch->c[i]))
			continue;
		usable++;
		if (!found || ch->c[i].ifindex == ch->default_route)
			found = &ch->c[i];
	}
	if (found && (usable == 1 || found->ifindex == ch->default_route)) {
		strcpy(name, found->name);
		return 0;
	}
	list(ch, usable, names);
	if (usable)
		snprintf(err, errlen, "%u network interfaces are up (%s), but none has the default route: choose one with --dev", usable,
			 names);
	else
		snprintf(err, errlen,
			 "no network interface that leads to other hosts is up and has an address (%s): bring one up, name another with "
			 "--dev or --vdev, or use --dev lo where all programs are on this host",
			 *names ? names : "there is only the loopback");
	return ENODEV;
}

int ur_hostif_choose(char name[IF_NAMESIZE], char *err, size_t errlen)
{
	struct choice *ch = calloc(1, sizeof(*ch));
	int r = ch ? EINTR : ENOMEM;

	for (int tries = 0; r == EINTR && tries < DUMP_TRIES; tries++) { /* they changed while they were listed */
		memset(ch, 0, sizeof(*ch));
		r = read_all(ch);
	}
	if (r)
		snprintf(err, errlen, "cannot list the network interfaces: name one with --dev");
	else
		r = pick(ch, name, err, errlen);
	free(ch);
	return r ? ENODEV : 0;
}
