/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing the socket, its options, multicast groups and the link. */
#include <errno.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/os/fail.h"
#include "drivers/os/holder.h"
#include "drivers/os/sock.h"
#include "drivers/udp/internal.h"
#include "wire/frame.h"

#define BUFFER (16 << 20) /* requested for received packets; without CAP_NET_ADMIN the limit is net.core.rmem_max */

/* --- options --- */

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? errno : 0;
}

/*
 * Those without which the port does not work. A datagram is never cut: the ICRC covers what the kernel writes then. Nor is one refused
 * because it is longer than the path MTU that the kernel remembers, to which anybody may have lowered it by a forged ICMP error.
 */
static int set_needed(const struct ur_udp *u, bool alone)
{
	struct ip_mreqn on = {.imr_ifindex = u->ifindex};
	int err = set(u->fd, SOL_SOCKET, SO_REUSEPORT, !alone);

	err = err ? err : set(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	err = err ? err : set(u->fd, IPPROTO_IP, IP_RECVTOS, 1);
	if (!err && setsockopt(u->fd, IPPROTO_IP, IP_MULTICAST_IF, &on, sizeof(on)))
		err = errno;
	err = err ? err : set(u->fd, IPPROTO_IP, IP_MULTICAST_LOOP, 0); /* our own copy is made by the NIC */
	if (!u->v6)
		return err ? err : set(u->fd, IPPROTO_IP, IP_PKTINFO, 1);
	err = err ? err : set(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	err = err ? err : set(u->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	err = err ? err : set(u->fd, SOL_UDP, UDP_NO_CHECK6_RX, 1); /* RoCEv2 has the ICRC: rdma_rxe and NICs send none */
	err = err ? err : set(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	err = err ? err : set(u->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	err = err ? err : set(u->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, u->ifindex);
	return err ? err : set(u->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0);
}

static int set_hops(const struct ur_udp *u)
{
	int err = set(u->fd, IPPROTO_IP, IP_RECVTTL, 1);

	return err || !u->v6 ? err : set(u->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

static void set_wanted(struct ur_udp *u)
{
	u->queue.rx_bytes = ur_sock_widen(u->fd, SO_RCVBUFFORCE, SO_RCVBUF, BUFFER) / 4 * 3; /* the kernel counts its own structures too */
	ur_sock_widen(u->fd, SO_SNDBUFFORCE, SO_SNDBUF, BUFFER);
	set(u->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	set(u->fd, IPPROTO_IP, IP_RECVERR, 1);
	set(u->fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	if (u->v6) {
		set(u->fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
		set(u->fd, IPPROTO_IPV6, UR_IPV6_FLOWINFO, 1);
		set(u->fd, IPPROTO_IPV6, UR_IPV6_FLOWINFO_SEND, 1);
		set(u->fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	}
	set(u->fd, SOL_UDP, UDP_GRO, 1);
	if (set(u->fd, SOL_UDP, UDP_SEGMENT, 0) == 0) { /* none by itself; each train says how long its packets are */
		u->queue.train_pkts = UR_UDP_TRAIN_PKTS;
		u->queue.train_bytes = UR_UDP_TRAIN_BYTES;
	}
}

/* --- opening --- */

static int bind_port(struct ur_udp *u)
{
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(UR_ROCE_PORT)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(UR_ROCE_PORT)};

	if (u->v6)
		return bind(u->fd, (struct sockaddr *)&any6, sizeof(any6)) ? errno : 0;
	return bind(u->fd, (struct sockaddr *)&any4, sizeof(any4)) ? errno : 0;
}

/* Processes of one user share the port; only uroce's do, so one of the same user may be in the way, too. */
static int fail_held(const char *ifname, char *err, size_t errlen)
{
	const char *kernel = "";
	char holder[64];
	unsigned uid;

	switch (ur_udp_holder(UR_ROCE_PORT, &uid)) {
	case UR_UDP_HOLDER_OTHER: snprintf(holder, sizeof(holder), "another user's process (user %u)", uid); break;
	case UR_UDP_HOLDER_OWN: snprintf(holder, sizeof(holder), "another process of this user that does not share it"); break;
	default: snprintf(holder, sizeof(holder), "a process that is not visible from here"); uid = 0;
	}
	if (!uid)
		kernel = ", or to rdma_rxe ('rdma link' shows its devices)";
	return ur_port_fail(err, errlen, EADDRINUSE,
			    "UDP port %d of interface '%s' belongs to %s%s: end that ('ss -uapn sport = :%d' shows who has the port), or "
			    "choose --port packet as root",
			    UR_ROCE_PORT, ifname, holder, kernel, UR_ROCE_PORT);
}

static int open_socket(struct ur_udp *u, const char *ifname, bool alone, char *err, size_t errlen)
{
	int r;

	u->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	u->v6 = u->fd >= 0;
	if (!u->v6)
		u->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0)
		return ur_port_fail(err, errlen, errno, "cannot open a UDP socket: %s", strerror(errno));
	if (setsockopt(u->fd, SOL_SOCKET, SO_BINDTODEVICE, ifname, (socklen_t)strlen(ifname) + 1))
		return ur_port_fail(err, errlen, errno,
				    "a UDP socket cannot be bound to interface '%s': %s (without CAP_NET_RAW that needs Linux 5.7)", ifname,
				    strerror(errno));
	r = set_needed(u, alone);
	r = r || !u->hops ? r : set_hops(u);
	if (r)
		return ur_port_fail(err, errlen, r, "the UDP sockets of this kernel cannot carry RoCEv2: %s", strerror(r));
	set_wanted(u);
	r = bind_port(u);
	if (r == EADDRINUSE)
		return fail_held(ifname, err, errlen);
	return r ? ur_port_fail(err, errlen, r, "UDP port %d of interface '%s' is not available: %s", UR_ROCE_PORT, ifname, strerror(r))
		 : 0;
}

/* --- groups --- */

static bool is_among(const struct ur_gid *list, unsigned n, const struct ur_gid *g)
{
	for (unsigned i = 0; i < n; i++)
		if (ur_gid_eq(&list[i], g))
			return true;
	return false;
}

static int membership(const struct ur_udp *u, const struct ur_gid *g, bool join)
{
	struct ip_mreqn m4 = {.imr_ifindex = u->ifindex};
	struct ipv6_mreq m6 = {.ipv6mr_interface = (unsigned)u->ifindex};
	int r;

	if (ur_gid_is_v4(g)) {
		memcpy(&m4.imr_multiaddr, g->raw + 12, 4);
		r = setsockopt(u->fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &m4, sizeof(m4));
	} else {
		memcpy(&m6.ipv6mr_multiaddr, g->raw, 16);
		r = setsockopt(u->fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &m6, sizeof(m6));
	}
	return r && errno != EADDRINUSE ? errno : 0;
}

/* What is new is joined before what is gone is left; when something cannot be joined, nothing has changed. */
static int set_groups(struct ur_port *p, const struct ur_gid *groups, unsigned n)
{
	struct ur_udp *u = ur_udp_of(p);
	unsigned i;
	int r = 0;

	if (n > ur_array_size(u->groups))
		return ENOSPC;
	for (i = 0; i < n && !r; i++)
		if (!is_among(u->groups, u->ngroups, &groups[i]))
			r = membership(u, &groups[i], true);
	if (r) {
		while (i-- > 0)
			if (!is_among(u->groups, u->ngroups, &groups[i]))
				membership(u, &groups[i], false);
		return r;
	}
	for (i = 0; i < u->ngroups; i++)
		if (!is_among(groups, n, &u->groups[i]))
			membership(u, &u->groups[i], false);
	if (n)
		memcpy(u->groups, groups, n * sizeof(*groups));
	u->ngroups = n;
	return 0;
}

/* --- the rest --- */

/* Of the interface; none when it is gone. */
static int flags_of(const struct ur_udp *u)
{
	struct ifreq ifr = {.ifr_flags = 0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.15s", u->port.name);
	return ioctl(u->fd, SIOCGIFFLAGS, &ifr) == 0 ? ifr.ifr_flags : 0;
}

static bool link_up(struct ur_port *p)
{
	return (flags_of(ur_udp_of(p)) & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static void close_port(struct ur_port *p)
{
	struct ur_udp *u = ur_udp_of(p);

	if (u->fd >= 0)
		close(u->fd);
	if (u->memory)
		munmap(u->memory, u->memory_len);
	free(u);
}

/* As long as anybody has the socket open it is in the group, and the kernel gives it packets that nobody fetches. */
static void forsake(struct ur_port *p)
{
	struct ur_udp *u = ur_udp_of(p);

	close(u->fd);
	u->fd = -1;
}

static int wake_fd(struct ur_queue *q)
{
	return ur_udp_of_queue(q)->fd;
}

static void take_error(struct ur_queue *q)
{
	ur_udp_errors(ur_udp_of_queue(q));
}

static const struct ur_queue_ops queue_ops = {
	.rx = ur_udp_rx,
	.tx = ur_udp_tx,
	.alloc = ur_udp_alloc,
	.alloc_train = ur_udp_alloc_train,
	.release = ur_udp_release,
	.wake_fd = wake_fd,
	.take_error = take_error,
};

static const struct ur_port_ops ops = {
	.set_groups = set_groups,
	.link_up = link_up,
	.path_mtu = ur_udp_path_mtu,
	.steer = ur_udp_steer,
	.forsake = forsake,
	.close = close_port,
};

int ur_udp_open(const struct ur_udp_config *cfg, struct ur_port **out, char *err, size_t errlen)
{
	struct ur_udp *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return ur_port_fail(err, errlen, ENOMEM, "out of memory or address space: free some, or raise the limit with 'ulimit -v'");
	u->fd = -1;
	u->queue.ops = &queue_ops;
	u->queue.caps = UR_QUEUE_BARE | UR_QUEUE_STEERED | UR_QUEUE_CALLS;
	ur_udp_rx_init(u);
	ur_udp_tx_init(u);
	u->port = (struct ur_port){.ops = &ops, .queue = &u->queue, .mac = cfg->mac, .mtu = cfg->mtu, .speed_mbps = cfg->speed_mbps};
	snprintf(u->port.name, sizeof(u->port.name), "%s", cfg->ifname);
	u->hops = cfg->hops;
	u->ifindex = (int)if_nametoindex(cfg->ifname);
	if (!u->ifindex)
		r = ur_port_fail_index(err, errlen, cfg->ifname);
	else if ((r = ur_udp_memory(u)))
		ur_port_fail(err, errlen, r, "out of memory or address space: free some, or raise the limit with 'ulimit -v'");
	else
		r = open_socket(u, cfg->ifname, cfg->alone, err, errlen);
	if (r) {
		close_port(&u->port);
		return r;
	}
	if (!(flags_of(u) & IFF_LOOPBACK))
		u->queue.caps |= UR_QUEUE_LOCAL_SCOPE;
	*out = &u->port;
	return 0;
}
