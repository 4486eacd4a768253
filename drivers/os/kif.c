/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An interface of the kernel's: its checks, MAC address, MTU and link, multicast memberships, and the filter without which every frame of
 * the kernel's own traffic would be copied into a packet socket's ring.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include "base/bytes.h"
#include "drivers/os/fail.h"
#include "drivers/os/kif.h"

#define ROCE_UDP_PORT 4791

int ur_kif_ioctl(const struct ur_kif *k, unsigned long req, struct ifreq *ifr)
{
	memcpy(ifr->ifr_name, k->name, IFNAMSIZ);
	return ioctl(k->ctl, req, ifr) ? errno : 0;
}

/* A packet socket of protocol 0 receives nothing; it is good for ioctls and memberships. */
static int control_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static int check_type(struct ur_kif *k, char *err, size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};
	int rc = ur_kif_ioctl(k, SIOCGIFHWADDR, &ifr);

	if (rc)
		return ur_port_fail(err, errlen, rc, "interface '%s' has no MAC address: %s", k->name, strerror(rc));
	k->loopback = ifr.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	if (ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER && !k->loopback)
		return ur_port_fail(err, errlen, EOPNOTSUPP, "interface '%s' is not Ethernet: choose one with link/ether in ip link",
				    k->name);
	memcpy(k->mac.b, ifr.ifr_hwaddr.sa_data, 6);
	return 0;
}

static int check_flags(struct ur_kif *k, char *err, size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};
	int rc = ur_kif_ioctl(k, SIOCGIFFLAGS, &ifr);

	if (rc)
		return ur_port_fail(err, errlen, rc, "interface '%s' cannot be read: %s", k->name, strerror(rc));
	if (!(ifr.ifr_flags & IFF_UP))
		return ur_port_fail(err, errlen, ENETDOWN, "interface '%s' is down: ip link set %s up", k->name, k->name);
	return 0;
}

static int check_mtu(struct ur_kif *k, char *err, size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};
	int rc = ur_kif_ioctl(k, SIOCGIFMTU, &ifr);

	if (rc)
		return ur_port_fail(err, errlen, rc, "interface '%s' has no MTU: %s", k->name, strerror(rc));
	k->mtu = (uint16_t)(ifr.ifr_mtu < UINT16_MAX ? ifr.ifr_mtu : UINT16_MAX);
	return 0;
}

int ur_kif_open(struct ur_kif *k, const char *name, char *err, size_t errlen)
{
	int rc;

	*k = (struct ur_kif){.ctl = -1};
	k->index = (int)if_nametoindex(name);
	if (!k->index)
		return ur_port_fail_index(err, errlen, name);
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->ctl = control_socket();
	if (k->ctl < 0 && (errno == EPERM || errno == EACCES))
		return ur_port_fail(err, errlen, EPERM, "a packet socket on %s needs CAP_NET_RAW: run as root or with that capability",
				    name);
	if (k->ctl < 0)
		return ur_port_fail(err, errlen, errno, "cannot open a raw socket for %s: %s", name, strerror(errno));
	rc = check_type(k, err, errlen);
	rc = rc ? rc : check_flags(k, err, errlen);
	rc = rc ? rc : check_mtu(k, err, errlen);
	if (rc)
		ur_kif_close(k);
	return rc;
}

int ur_kif_open_for_mcast(struct ur_kif *k, const char *name)
{
	*k = (struct ur_kif){.ctl = -1, .index = (int)if_nametoindex(name)};
	if (!k->index)
		return ENODEV;
	k->ctl = control_socket();
	return k->ctl < 0 ? errno : 0;
}

void ur_kif_close(struct ur_kif *k)
{
	if (k->ctl >= 0)
		close(k->ctl);
	free(k->mcast);
	k->mcast = NULL;
	k->nmcast = 0;
	k->ctl = -1;
}

bool ur_kif_running(const struct ur_kif *k)
{
	struct ifreq ifr = {.ifr_flags = 0};

	return ur_kif_ioctl(k, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP) && (ifr.ifr_flags & IFF_RUNNING);
}

uint32_t ur_kif_speed(const struct ur_kif *k)
{
	char path[64 + IFNAMSIZ];
	int mbps = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", k->name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &mbps) != 1 || mbps < 0)
		mbps = 0;
	fclose(f);
	return (uint32_t)mbps;
}

/* --- multicast memberships: the kernel counts them for each socket, and forgets them with it --- */

static int change_membership(const struct ur_kif *k, int what, const struct ur_mac *mac)
{
	struct packet_mreq mr = {.mr_ifindex = k->index, .mr_type = PACKET_MR_MULTICAST, .mr_alen = 6};

	memcpy(mr.mr_address, mac->b, 6);
	return setsockopt(k->ctl, SOL_PACKET, what, &mr, sizeof(mr)) ? errno : 0;
}

static int compare_macs(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ur_mac));
}

static bool has_mac(const struct ur_mac *list, unsigned n, const struct ur_mac *mac)
{
	return n && bsearch(mac, list, n, sizeof(*list), compare_macs);
}

/* Does `what` to those of the first `until` of the list that the other one has not; both are sorted. Ends at an error: *done are done. */
static int change_difference(const struct ur_kif *k, int what, const struct ur_mac *list, unsigned until, const struct ur_mac *other,
			     unsigned nother, unsigned *done)
{
	int rc = 0;

	for (*done = 0; *done < until && !rc; ++*done)
		if (!has_mac(other, nother, &list[*done]))
			rc = change_membership(k, what, &list[*done]);
	if (rc)
		--*done;
	return rc;
}

static unsigned sort_unique(struct ur_mac *list, unsigned n)
{
	unsigned kept = 0;

	if (n)
		qsort(list, n, sizeof(*list), compare_macs);
	for (unsigned i = 0; i < n; i++)
		if (!kept || compare_macs(&list[kept - 1], &list[i]))
			list[kept++] = list[i];
	return kept;
}

/* What is new is added before what is gone is dropped; when something cannot be added, nothing has changed. */
int ur_kif_set_mcast(struct ur_kif *k, const struct ur_mac *macs, unsigned n)
{
	struct ur_mac *want = malloc((n + 1) * sizeof(*want));
	unsigned done;
	int rc;

	if (!want)
		return ENOMEM;
	if (n)
		memcpy(want, macs, n * sizeof(*want));
	n = sort_unique(want, n);
	rc = change_difference(k, PACKET_ADD_MEMBERSHIP, want, n, k->mcast, k->nmcast, &done);
	if (rc) {
		change_difference(k, PACKET_DROP_MEMBERSHIP, want, done, k->mcast, k->nmcast, &done);
		free(want);
		return rc;
	}
	change_difference(k, PACKET_DROP_MEMBERSHIP, k->mcast, k->nmcast, want, n, &done);
	free(k->mcast);
	k->mcast = want;
	k->nmcast = n;
	return 0;
}

/*
 * What reaches the ring: ARP, ICMP, IGMP, ICMPv6 (also after hop-by-hop options, as MLD is), frames with a VLAN tag still in
 * place, UDP to the RoCEv2 port, and RoCEv1, to be counted. Of the frames that this host sends, only RoCEv2 to our own MAC or to a group:
 * another process that shares the interface sent them, and no wire returns them. (A loopback interface does return them.)
 */
int ur_kif_filter(const struct ur_kif *k, int fd)
{
	enum { TYPE = 2, IP4 = TYPE + 7, IP6 = IP4 + 9, CTRL = IP6 + 6, ROCE = CTRL + 2, DROP = ROCE + 8, PASS, END };
	const uint32_t mac_hi = ur_get32(k->mac.b), mac_lo = ur_get16(k->mac.b + 4);
#define LOAD(size, off) BPF_STMT(BPF_LD | (size) | BPF_ABS, off)
#define IF(here, op, value, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, value, (uint8_t)((yes) - (here)-1), (uint8_t)((no) - (here)-1))
	struct sock_filter f[] = {
		LOAD(BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_STMT(BPF_ST, 0),
		/* TYPE */
		LOAD(BPF_H, 12),
		IF(TYPE + 1, BPF_JEQ, ETH_P_IP, IP4, TYPE + 2),
		IF(TYPE + 2, BPF_JEQ, ETH_P_IPV6, IP6, TYPE + 3),
		IF(TYPE + 3, BPF_JEQ, ETH_P_ARP, CTRL, TYPE + 4),
		IF(TYPE + 4, BPF_JEQ, ETH_P_8021Q, CTRL, TYPE + 5),
		IF(TYPE + 5, BPF_JEQ, ETH_P_8021AD, CTRL, TYPE + 6),
		IF(TYPE + 6, BPF_JEQ, ETH_P_IBOE, CTRL, DROP),
		/* IP4: the port is in the first fragment alone */
		LOAD(BPF_B, 14 + 9),
		IF(IP4 + 1, BPF_JEQ, IPPROTO_ICMP, CTRL, IP4 + 2),
		IF(IP4 + 2, BPF_JEQ, IPPROTO_IGMP, CTRL, IP4 + 3),
		IF(IP4 + 3, BPF_JEQ, IPPROTO_UDP, IP4 + 4, DROP),
		LOAD(BPF_H, 14 + 6),
		IF(IP4 + 5, BPF_JSET, 0x1fff, DROP, IP4 + 6),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14 + 2),
		IF(IP4 + 8, BPF_JEQ, ROCE_UDP_PORT, ROCE, DROP),
		/* IP6 */
		LOAD(BPF_B, 14 + 6),
		IF(IP6 + 1, BPF_JEQ, IPPROTO_ICMPV6, CTRL, IP6 + 2),
		IF(IP6 + 2, BPF_JEQ, IPPROTO_HOPOPTS, CTRL, IP6 + 3),
		IF(IP6 + 3, BPF_JEQ, IPPROTO_UDP, IP6 + 4, DROP),
		LOAD(BPF_H, 14 + 40 + 2),
		IF(IP6 + 5, BPF_JEQ, ROCE_UDP_PORT, ROCE, DROP),
		/* CTRL */
		BPF_STMT(BPF_LD | BPF_MEM, 0),
		IF(CTRL + 1, BPF_JEQ, PACKET_OUTGOING, DROP, PASS),
		/* ROCE */
		BPF_STMT(BPF_LD | BPF_MEM, 0),
		IF(ROCE + 1, BPF_JEQ, PACKET_OUTGOING, k->loopback ? DROP : ROCE + 2, PASS),
		LOAD(BPF_B, 0),
		IF(ROCE + 3, BPF_JSET, 1, PASS, ROCE + 4),
		LOAD(BPF_W, 0),
		IF(ROCE + 5, BPF_JEQ, mac_hi, ROCE + 6, DROP),
		LOAD(BPF_H, 4),
		IF(ROCE + 7, BPF_JEQ, mac_lo, PASS, DROP),
		/* DROP, PASS */
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
#undef LOAD
#undef IF
	struct sock_fprog prog = {.len = ur_array_size(f), .filter = f};

	_Static_assert(ur_array_size(f) == END, "the labels must match the program");
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? errno : 0;
}
