/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/net: addresses and GIDs, routes, neighbours (ARP, RFC 826; neighbour discovery, RFC 4861), ICMP echo and multicast membership (IGMP,
 * MLD), without I/O. It fills the paths that packets are built from and keeps their MAC addresses current.
 *
 * Shared mode: the kernel owns the addresses; uroce asks (ARP, NS) but never answers. Owned mode: uroce answers ARP, NS and echo itself.
 * Routed mode: the kernel owns the addresses, finds the next hop of each packet and reports memberships; every path is ready at once.
 */
#ifndef UR_NET_H
#define UR_NET_H

#include "base/counters.h"
#include "base/list.h"
#include "base/wheel.h"
#include "wire/path.h"
#include "wire/pkt.h"

struct ur_net;

#define UR_NET_GIDS 128 /* size of the GID table */

struct ur_undelivered;

struct ur_net_config {
	void *ctx;
	unsigned (*alloc)(void *ctx, struct ur_pkt **pkts, unsigned n);
	void (*free)(void *ctx, struct ur_pkt **pkts, unsigned n);
	/* Sends a complete frame (headers, and for RoCE packets ur_frame_finish, done); takes the packet. */
	void (*output)(void *ctx, struct ur_pkt *p);
	struct ur_wheel *wheel;
	struct ur_counters *counters;
	struct ur_mac mac;
	uint16_t mtu;
	bool owned;
	uint64_t seed; /* of random delays */
	/* Somebody says that a packet of ours did not reach `dst`: as in struct ur_port. May be NULL. */
	void (*undelivered)(void *ctx, const struct ur_undelivered *u);
	/* A copy of a frame that we sent, for the other processes of this device, which it concerns as well. May be NULL. */
	void (*tell)(void *ctx, const struct ur_pkt *p);
};

int ur_net_create(const struct ur_net_config *c, struct ur_net **out);
void ur_net_destroy(struct ur_net *net);
/* Whether the mode is the routed one; before any path is open or group joined. */
void ur_net_set_routed(struct ur_net *net, bool routed);
/*
 * The port's MAC address, when it becomes known after creation. That of no host, as the loopback has it, changes nothing: frames go on to
 * bear the one of before.
 */
void ur_net_set_mac(struct ur_net *net, const struct ur_mac *mac);
/* What our frames bear, and those to us. */
const struct ur_mac *ur_net_mac(const struct ur_net *net);

/* --- addresses: the GID table --- */

struct ur_net_addr {
	struct ur_gid gid;
	uint8_t prefix_len; /* of the address family: 0-32 or 0-128 */
	uint16_t vlan;      /* 0: untagged */
};

/*
 * Adds an address. Order of the table: IPv4, then global IPv6, then link-local IPv6, each in the order of arrival, so that GID 0 is what a
 * newcomer wants; an index, once given, stays with its address until it is removed (indices are stable: the order holds for addresses added
 * in one go before first use). EEXIST, ENOSPC, EINVAL. Adds the on-link route as well.
 */
int ur_net_addr_add(struct ur_net *net, const struct ur_net_addr *a);
int ur_net_addr_del(struct ur_net *net, const struct ur_gid *gid);
/* NULL for an empty entry or an index out of range. */
const struct ur_net_addr *ur_net_gid(const struct ur_net *net, unsigned index);
/* The index of a GID, or -1. */
int ur_net_gid_find(const struct ur_net *net, const struct ur_gid *gid);

/*
 * Takes over the addresses of another, each with its index, and its routes: for a further lane of the same device, which asks the kernel
 * for none. ENOMEM.
 */
int ur_net_mirror(struct ur_net *net, const struct ur_net *of);

/* --- routes: longest prefix, then lowest metric --- */

struct ur_net_route {
	struct ur_gid dst;     /* prefix; family by GID form */
	uint8_t prefix_len;    /* of the family */
	struct ur_gid gateway; /* zero: on link */
	struct ur_gid src;     /* preferred source, or zero */
	uint32_t metric;
};

int ur_net_route_add(struct ur_net *net, const struct ur_net_route *r);
void ur_net_route_clear(struct ur_net *net);                                           /* all but the on-link routes of addresses */
const struct ur_net_route *ur_net_route_get(const struct ur_net *net, unsigned index); /* for listings; NULL at the end */
/* Chooses source address and next hop for `dst`. `want` (may be NULL) fixes the source. ENETUNREACH, EADDRNOTAVAIL. */
int ur_net_route_lookup(const struct ur_net *net, const struct ur_gid *dst, const struct ur_gid *want, struct ur_gid *src,
			struct ur_gid *next_hop);

/* How well the routes suit `dst`, for who has several to choose from: more for a longer prefix, then for a smaller metric. 0: not at all.
 */
uint64_t ur_net_route_rank(const struct ur_net *net, const struct ur_gid *dst);

/* --- hops that carry less than our link --- */

/*
 * A hop on the way to `dst` carries no more than `mtu` IP bytes, as is known for sure: remembered for ten minutes (RFC 1191, 6.3), for the
 * last few addresses. True when that is news: the first of that address, or less by a step of the path MTU.
 */
bool ur_net_narrow(struct ur_net *net, const struct ur_gid *dst, uint16_t mtu, ur_time now);
/* What is remembered of the way to `dst`: IP bytes, 0 for nothing. */
uint16_t ur_net_narrow_mtu(const struct ur_net *net, const struct ur_gid *dst, ur_time now);

/* --- paths --- */

struct ur_net_path_attr {
	struct ur_gid sgid;        /* zero: chosen by route */
	struct ur_gid dgid;        /* unicast or multicast */
	uint8_t tclass, hop_limit; /* hop limit 0 means 64 */
	uint32_t flow_label;
	uint16_t sport; /* UDP source port */
};

struct ur_neigh;

/* A path that net keeps current. Zeroed by the owner before the first open. */
struct ur_net_path {
	struct ur_path wire;
	struct ur_net *net;
	struct ur_neigh *neigh;
	struct ur_list link; /* of the neighbour's paths */
	/* The path became ready (err 0), or resolution failed (EHOSTUNREACH, after all retries; net tries again at the next use). May be
	 * NULL. */
	void (*changed)(struct ur_net_path *p, int err, ur_time now);
	void *owner;
};

/*
 * Opens a path: route, source, neighbour. When it returns 0 the path is ready, or net is resolving and will call `changed` (never from
 * inside this call). ENETUNREACH, EADDRNOTAVAIL, ENOMEM, EINVAL (families differ). A destination that is one of our own addresses is ready
 * and `local`.
 */
int ur_net_path_open(struct ur_net *net, struct ur_net_path *p, const struct ur_net_path_attr *a, ur_time now);
/* Asks again if resolution failed before (call it when the owner wants to send and the path is not ready). */
void ur_net_path_retry(struct ur_net_path *p, ur_time now);
/* Harmless on a path that is not open. */
void ur_net_path_close(struct ur_net_path *p);

/*
 * Sends a RoCE packet that has no path of its own (a MAD). BTH and what follows it stand at p->data + ur_net_headroom(net, a), p->len
 * counts from p->data, p->bth is filled; net writes Ethernet, IP and UDP in front, finishes the frame and sends it, or queues it while the
 * neighbour is being resolved (a bounded queue; the oldest goes first when it overflows). Takes the packet in any case. 0 or an errno as
 * ur_net_path_open.
 */
int ur_net_send(struct ur_net *net, struct ur_pkt *p, const struct ur_net_path_attr *a, ur_time now);
/* Bytes of Ethernet, VLAN tag, IP and UDP that ur_net_send will write for this address. */
unsigned ur_net_headroom(const struct ur_net *net, const struct ur_net_path_attr *a);

/* --- multicast groups: membership as routers and snooping switches know it (IGMP, MLD; group.h) --- */

#define UR_NET_GROUPS 1024 /* at a time, on all VLANs together */

/*
 * Joins a group on a VLAN (0: untagged). Joins are counted, and each needs its leave: the first and the last are reported. EINVAL for
 * what is no group, ENOMEM at the limit.
 */
int ur_net_group_join(struct ur_net *net, const struct ur_gid *group, uint16_t vlan, ur_time now);
/* EADDRNOTAVAIL when it was not joined. */
int ur_net_group_leave(struct ur_net *net, const struct ur_gid *group, uint16_t vlan, ur_time now);
/* Copies at most `max` groups that are joined, and returns how many there are. A group joined on two VLANs stands there twice. */
unsigned ur_net_groups(const struct ur_net *net, struct ur_gid *out, unsigned max);
/* Reports all groups as if they were joined now: the link was down, and its switch may have forgotten. */
void ur_net_groups_again(struct ur_net *net, ur_time now);
/* Leaves all groups, and sends at once all that would be sent later: nobody will be there. */
void ur_net_groups_end(struct ur_net *net, ur_time now);

/* --- packets --- */

/*
 * A frame of ARP, ICMP or group management (p->kind) from the wire, or of the last kind from another process of this device (UR_PKT_LOCAL);
 * the packet stays the caller's. Learns, resolves, reports memberships, and in owned mode answers.
 */
void ur_net_rx(struct ur_net *net, struct ur_pkt *p, ur_time now);

enum ur_net_claim {
	UR_NET_NOT_TO_US,  /* the destination is neither one of our addresses nor a multicast group */
	UR_NET_TO_US,      /* and the source may be somebody else's */
	UR_NET_FROM_US,    /* the source is one of our addresses */
	UR_NET_FROM_NOBODY /* the source is no host's: multicast, broadcast, loopback or unspecified (RFC 1122, 3.2.1.3; RFC 4291, 2.5) */
};
/* What the addresses of a packet claim. Only what came from the wire is to be judged by its source: this host may send to itself. */
enum ur_net_claim ur_net_claim(struct ur_net *net, const struct ur_gid *src, const struct ur_gid *dst);

#endif
