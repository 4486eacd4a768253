/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of lib/net share. net.c: the instance, and packets without a path of their own; gid.c: the GID table; route.c: routes;
 * neigh.c: the neighbour cache; probe.c: questions to neighbours; path.c: paths; narrow.c: hops that carry less than our link; answer.c:
 * received ARP and ICMP, and answers to it. group.h: multicast membership.
 */
#ifndef UR_NET_INTERNAL_H
#define UR_NET_INTERNAL_H

#include "base/rng.h"
#include "net/net.h"
#include "wire/frame.h"
#include "wire/msg/arp.h"
#include "wire/msg/icmp.h"

#define UR_VLAN_MASK 0xfff
#define UR_NET_HOPS 64 /* default hop limit */
#define UR_NET_NARROW 32 /* addresses behind narrow hops that are remembered */

/* RFC 4861, 10, without jitter. */
#define UR_NEIGH_REACHABLE_TIME (30 * UR_NS_PER_S)
#define UR_NEIGH_RETRANS_TIME UR_NS_PER_S
#define UR_NEIGH_PROBES 3	/* of each kind: unicast to a known MAC address, then to everyone */
#define UR_NEIGH_MAX 1024	/* entries; unused ones make room for new ones */
#define UR_NEIGH_LEARNED_MAX 64 /* of them: never asked for, learned from requests to us */
#define UR_NEIGH_QUEUE 128 /* packets that wait for one neighbour: answers to as many peers that connect at once, for instance */
#define UR_NET_QUEUE 256	/* packets that wait for all of them */
#define UR_NEIGH_BUCKETS 256

struct ur_net_gids {
	struct ur_net_addr addr[UR_NET_GIDS];
	bool used[UR_NET_GIDS];
	unsigned high; /* one past the last entry in use */
	bool fixed;    /* a caller knows an index: entries stay where they are */
};

struct ur_net_route_entry {
	struct ur_net_route r;
	bool of_addr; /* the on-link route of an address */
};

struct ur_net_hop { /* that is narrow */
	struct ur_gid dst;
	uint16_t mtu;
	ur_time until;
};

struct ur_net {
	struct ur_net_config cfg;
	struct ur_mac mac;
	bool mac_known;
	bool routed;
	struct ur_net_gids *gids; /* its own object, because looking an index up fixes the order of a const net */
	/* The addresses of the last packet, which the next one most likely has as well, and what they claim as long as the table stays. */
	struct ur_gid last_src, last_dst;
	enum ur_net_claim last_claim;
	struct ur_net_route_entry *routes;
	unsigned nroutes, routes_room;
	struct ur_list neighs; /* least recently used first */
	struct ur_list bucket[UR_NEIGH_BUCKETS];
	unsigned nneighs, nlearned, nqueued;
	struct ur_list local, mcast; /* paths that need no neighbour */
	struct ur_list orphans;      /* paths whose address was removed: they fail until they are opened again */
	struct ur_list orphaned;     /* those of them that have not been told yet */
	struct ur_timer notify;      /* tells paths what happened in calls that have no `now` */
	struct ur_list group_links;  /* of struct ur_group_link */
	unsigned ngroups;
	struct ur_rng rng;
	struct ur_net_hop narrow[UR_NET_NARROW];
};

enum ur_neigh_state {
	UR_NEIGH_INCOMPLETE, /* asked, no answer yet: packets wait */
	UR_NEIGH_REACHABLE,
	UR_NEIGH_STALE, /* not confirmed lately; the next use asks, and does not wait */
	UR_NEIGH_PROBE, /* asked again; the known MAC address stays in use */
	UR_NEIGH_FAILED,
};

struct ur_neigh {
	struct ur_net *net;
	struct ur_list lru, hash;
	struct ur_gid ip;
	struct ur_gid src; /* our address of the last use, the source of solicitations */
	uint16_t vlan;
	struct ur_mac mac;
	uint8_t state; /* enum ur_neigh_state */
	uint8_t probes;
	bool learned;
	unsigned hold; /* callbacks are in progress: not to be evicted */
	struct ur_timer timer;
	struct ur_list paths;
	struct ur_pkt *queue, **queue_tail;
	unsigned nqueue;
};

static inline bool ur_mac_eq(const struct ur_mac *a, const struct ur_mac *b)
{
	return memcmp(a->b, b->b, 6) == 0;
}

static inline bool ur_gid_is_link_local(const struct ur_gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

static inline void ur_net_count(const struct ur_net *net, enum ur_counter id)
{
	ur_count(net->cfg.counters, id);
}

static inline void ur_net_free_pkt(struct ur_net *net, struct ur_pkt *p)
{
	net->cfg.free(net->cfg.ctx, &p, 1);
}

/* net.c: a packet to build a frame in, or NULL after counting. */
struct ur_pkt *ur_net_alloc_pkt(struct ur_net *net);
/* Where a destination leads: filled by ur_net_resolve (errors as ur_net_path_open). */
struct ur_net_target {
	struct ur_gid src, next_hop;
	uint16_t vlan;
	enum { UR_TO_NEIGH, UR_TO_SELF, UR_TO_GROUP, UR_TO_KERNEL } kind; /* the last: whichever neighbour the kernel chooses */
};
int ur_net_resolve(const struct ur_net *net, const struct ur_net_path_attr *a, struct ur_net_target *t);

/* gid.c: these do not fix the order. */
const struct ur_net_addr *ur_net_addr_of(const struct ur_net *net, const struct ur_gid *gid);
/* An address of the family and VLAN of a neighbour, for asking it: `want` when it is (still) one. NULL when there is none. */
const struct ur_net_addr *ur_net_addr_near(const struct ur_net *net, const struct ur_gid *want, const struct ur_gid *neigh, uint16_t vlan);

/* route.c */
bool ur_net_in_prefix(const struct ur_gid *g, const struct ur_gid *prefix, unsigned len);
int ur_net_route_add_onlink(struct ur_net *net, const struct ur_net_addr *a);
void ur_net_route_del_onlink(struct ur_net *net, const struct ur_gid *gid);
/* Takes over the routes of another, but for the on-link ones of addresses. 0 or ENOMEM. */
int ur_net_route_mirror(struct ur_net *net, const struct ur_net *of);

/* neigh.c */
struct ur_neigh *ur_neigh_find(const struct ur_net *net, const struct ur_gid *ip, uint16_t vlan);
/* The entry, made if need be; NULL when the table is full of entries in use, or memory is short. */
struct ur_neigh *ur_neigh_get(struct ur_net *net, const struct ur_gid *ip, uint16_t vlan);
/* An entry for a host that asked us first; NULL when there is no room to spare. */
struct ur_neigh *ur_neigh_learn(struct ur_net *net, const struct ur_gid *ip, uint16_t vlan);
/* Says that a packet is to go there from `src`: asks if need be. True when the MAC address may be used at once. */
bool ur_neigh_use(struct ur_neigh *n, const struct ur_gid *src, ur_time now);
/* Takes the packet; a queue that is full gives up its oldest. */
void ur_neigh_enqueue(struct ur_neigh *n, struct ur_pkt *p);
/* The neighbour told its MAC address, in answer to a question (`solicited`) or not. */
void ur_neigh_advertised(struct ur_neigh *n, const struct ur_mac *mac, bool solicited, bool override, ur_time now);
void ur_neigh_mac_known(struct ur_net *net);
void ur_neigh_free_all(struct ur_net *net);
static inline bool ur_neigh_usable(const struct ur_neigh *n)
{
	return n->state == UR_NEIGH_REACHABLE || n->state == UR_NEIGH_STALE || n->state == UR_NEIGH_PROBE;
}

/* probe.c */
void ur_neigh_ask(struct ur_neigh *n, bool unicast);
/* Gratuitous ARP or an unsolicited advertisement for an address of ours. */
void ur_net_announce(struct ur_net *net, const struct ur_net_addr *a);

/* path.c */
/* Tells the neighbour's paths that it became usable, has another MAC address, or failed. */
void ur_net_paths_changed(struct ur_neigh *n, ur_time now);
/* The address is ours no more: its paths are unready at once, and told at the next turn of the wheel. */
void ur_net_paths_orphan(struct ur_net *net, const struct ur_gid *gid);
/* Paths that were waiting for our MAC address alone are told at the next turn of the wheel. */
void ur_net_paths_set_smac(struct ur_net *net);
void ur_net_paths_notify(struct ur_timer *t, ur_time now);
void ur_net_paths_forget(struct ur_list *paths);

#endif
