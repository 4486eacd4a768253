/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "apps/uroce/between/script/script.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/userns.h"
#include "drivers/os/netlink.h"

#define CARRIER_MS 2000
#define ADDR_GEN_MODE_NONE 1 /* IN6_ADDR_GEN_MODE_NONE of linux/if_link.h */

static bool cannot_do(const char *what, int err)
{
	ur_cmd_fail(0, "cannot %s: %s", what, strerror(err));
	return false;
}

/* --- namespaces --- */

/* Each process may make some when it is root in its user namespace, if need be in one of its own. */
static bool may_make(void)
{
	const char *file;
	int err;

	if (unshare(CLONE_NEWNET) == 0)
		return true;
	if (errno != EPERM)
		return cannot_do("make a network namespace", errno);
	err = ur_userns_enter(CLONE_NEWNET, &file);
	if (!err)
		return true;
	if (file)
		return cannot_do(file, err);
	ur_cmd_fail(0, "cannot make a network namespace, nor a user namespace (%s): run it as root, or allow user namespaces",
		    strerror(err));
	return false;
}

static int this_namespace(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* --- interfaces --- */

static int send_request(struct nlmsghdr *request)
{
	return ur_netlink_end(NETLINK_ROUTE, request, NULL, NULL);
}

/* Two interfaces that lead to one another: `name` here, and that of a host in its namespace. */
static int make_pair(const char *name, int ns)
{
	const struct ifinfomsg ifi = {.ifi_family = AF_UNSPEC};
	struct nlmsghdr *r = ur_netlink_begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &ifi, sizeof(ifi));
	struct nlattr *info, *data, *peer;

	if (!r)
		return ENOMEM;
	mnl_attr_put_strz(r, IFLA_IFNAME, name);
	info = mnl_attr_nest_start(r, IFLA_LINKINFO);
	mnl_attr_put_strz(r, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(r, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(r, VETH_INFO_PEER);
	memset(mnl_nlmsg_put_extra_header(r, sizeof(ifi)), 0, sizeof(ifi));
	mnl_attr_put_strz(r, IFLA_IFNAME, UR_BETWEEN_HOST_IF);
	mnl_attr_put_u32(r, IFLA_NET_NS_FD, (uint32_t)ns);
	mnl_attr_nest_end(r, peer);
	mnl_attr_nest_end(r, data);
	mnl_attr_nest_end(r, info);
	return send_request(r);
}

/* Without addresses that the kernel makes by itself it sends nothing by itself, either. A kernel without IPv6 does not know the question.
 */
static void stay_quiet(unsigned index)
{
	const struct ifinfomsg ifi = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
	struct nlmsghdr *r = ur_netlink_begin(RTM_NEWLINK, NLM_F_ACK, &ifi, sizeof(ifi));
	struct nlattr *spec, *v6;

	if (!r)
		return;
	spec = mnl_attr_nest_start(r, IFLA_AF_SPEC);
	v6 = mnl_attr_nest_start(r, AF_INET6);
	mnl_attr_put_u8(r, IFLA_INET6_ADDR_GEN_MODE, ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(r, v6);
	mnl_attr_nest_end(r, spec);
	send_request(r);
}

static int set_up(unsigned index)
{
	const struct ifinfomsg ifi = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

	return send_request(ur_netlink_begin(RTM_NEWLINK, NLM_F_ACK, &ifi, sizeof(ifi)));
}

static int add_address(unsigned index, const char *text, bool v6)
{
	const struct ifaddrmsg ifa = {.ifa_family = v6 ? AF_INET6 : AF_INET,
				      .ifa_prefixlen = v6 ? 64 : 24,
				      .ifa_flags = v6 ? IFA_F_NODAD : 0,
				      .ifa_index = index};
	struct nlmsghdr *r = ur_netlink_begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &ifa, sizeof(ifa));
	uint8_t address[16];

	if (!r)
		return ENOMEM;
	inet_pton(ifa.ifa_family, text, address);
	mnl_attr_put(r, IFA_LOCAL, v6 ? 16 : 4, address);
	mnl_attr_put(r, IFA_ADDRESS, v6 ? 16 : 4, address);
	return send_request(r);
}

/* The interface of that name is up; with an address, if there is one. */
static int bring_up(const char *name, const char *address, bool v6)
{
	const unsigned index = if_nametoindex(name);
	int err;

	if (!index)
		return ENODEV;
	if (!v6)
		stay_quiet(index);
	err = set_up(index);
	return err || !address ? err : add_address(index, address, v6);
}

/* The kernel finds out by and by that the other end is up, too. */
static int await_carrier(const char *name)
{
	const struct timespec wait = {.tv_nsec = (long)UR_NS_PER_MS};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};
	int err = fd < 0 ? errno : ENETDOWN;

	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	for (unsigned i = 0; i < CARRIER_MS && err == ENETDOWN; i++) {
		if (ioctl(fd, SIOCGIFFLAGS, &ifr))
			err = errno;
		else if (ifr.ifr_flags & IFF_RUNNING)
			err = 0;
		else
			nanosleep(&wait, NULL);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* --- the two --- */

static bool make_cable(struct ur_between_hosts *h, const char *const leads[2])
{
	for (unsigned i = 0; i < 2; i++) {
		int err = make_pair(leads[i], h->ns[i]);

		err = err ? err : bring_up(leads[i], NULL, false);
		if (err)
			return cannot_do("make a pair of interfaces (veth)", err);
	}
	return true;
}

static bool configure(struct ur_between_hosts *h, bool v6)
{
	const int here = this_namespace();
	int err = here < 0 ? errno : 0;

	for (unsigned i = 0; i < 2 && !err; i++) {
		snprintf(h->address[i], sizeof(h->address[i]), v6 ? "fd00::%u" : "10.0.0.%u", i + 1);
		err = setns(h->ns[i], CLONE_NEWNET) ? errno : bring_up("lo", NULL, true);
		err = err ? err : bring_up(UR_BETWEEN_HOST_IF, h->address[i], v6);
		err = err ? err : await_carrier(UR_BETWEEN_HOST_IF);
	}
	if (!err && setns(here, CLONE_NEWNET))
		err = errno;
	if (here >= 0)
		close(here);
	return err ? cannot_do("configure the interface of a host", err) : true;
}

bool ur_between_hosts_make(struct ur_between_hosts *h, const char *const leads[2], bool v6)
{
	h->ns[0] = h->ns[1] = -1;
	if (!may_make())
		return false;
	for (unsigned i = 0; i < 2; i++) {
		h->ns[i] = this_namespace();
		if (h->ns[i] < 0 || unshare(CLONE_NEWNET))
			return cannot_do("make a network namespace", errno);
	}
	return make_cable(h, leads) && configure(h, v6);
}

bool ur_between_hosts_enter(const struct ur_between_hosts *h, unsigned i)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (setns(h->ns[i], CLONE_NEWNET))
		return false;
	/* the kernel permits no more than what is there */
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
		if (mount("sysfs", "/sys", "sysfs", flags, NULL))
			mount("sysfs", "/sys", "sysfs", flags | MS_RDONLY, NULL);
	return true;
}
