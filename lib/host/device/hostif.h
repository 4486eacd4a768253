/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sharing an interface with the kernel: which interface, its addresses and routes over netlink, changes as they happen, and keeping the
 * kernel from answering RoCEv2 packets with ICMP errors.
 */
#ifndef UR_HOSTIF_H
#define UR_HOSTIF_H

#include <net/if.h>

#include "host/device/info.h"
#include "net/net.h"

struct ur_hostif {
	int ifindex;
	char name[IF_NAMESIZE];
	struct ur_mac mac;
	uint16_t mtu;        /* what we make use of, at most 9600 */
	unsigned whole_mtu;  /* what the interface has: 65536 for the loopback */
	bool enabled;        /* administratively up */
	bool up;             /* enabled, with a carrier */
	uint32_t speed_mbps; /* 0 when the driver does not say */
};

/*
 * Finds an interface by name, or by an address, a network or a pattern that stands for one alone; an empty name has one chosen. 0, or an
 * errno and one sentence in err.
 */
int ur_hostif_find(const char *name, struct ur_hostif *h, char *err, size_t errlen);

/* hostif_match.c */
struct ur_hostif_names {
	unsigned n; /* UR_DEVICES + 1: there are more than that */
	char name[UR_DEVICES][IF_NAMESIZE];
};

/* False when it is there already. */
bool ur_hostif_names_add(struct ur_hostif_names *to, const char *name);
/* Is it no name but an address (10.0.0.1), a network (10.0.0.0/16) or a pattern (eth*)? */
bool ur_hostif_is_pattern(const char *what);
/*
 * The interfaces, in the order of their names, that are up and have that address, one in the network, or any address and a name like the
 * pattern. 0, or an errno and one sentence: there is none, or an address is that of several.
 */
int ur_hostif_match(const char *what, struct ur_hostif_names *out, char *err, size_t errlen);
/* The sentence where one is meant, and several fit. ENODEV. */
int ur_hostif_ambiguous(const char *what, const struct ur_hostif_names *fit, char *err, size_t errlen);

/*
 * hostif_choose.c: the interface of the default route, or the only one that is up, has an address and leads to other hosts. 0, or an errno
 * and one sentence in err, which says which interfaces there are.
 */
int ur_hostif_choose(char name[IF_NAMESIZE], char *err, size_t errlen);

/* Makes the addresses and routes of `net` those that the kernel has on the interface. 0 or an errno. */
int ur_hostif_sync(const struct ur_hostif *h, struct ur_net *net);

/* A non-blocking socket that becomes readable when addresses, routes, links or neighbours change; -1 and errno. */
int ur_hostif_monitor(void);
/*
 * Empties the monitor. True when addresses, routes or links changed; `failed` is called for neighbours on the interface that do not answer.
 */
bool ur_hostif_changed(int monitor, int ifindex, void (*failed)(void *ctx, const struct ur_gid *neighbour), void *ctx);

/*
 * Binds UDP port 4791 and drops what arrives there, so that the kernel does not answer it. The socket, or -1 and errno. Processes of one
 * user share the port. When somebody of the same user has it who does not share it, the first call says so on stderr; kernel sockets such
 * as rdma_rxe's are root's, so they are told of when run as root. A holder of another user may be a uroce of theirs: no word of it.
 *
 * `trains`: the port takes trains in one piece. A socket that says the same (UDP_GRO) has them dropped in one piece; for any other the
 * kernel first cuts them into packets, which costs more than to receive them. The kernel then also merges what comes from a NIC.
 */
int ur_hostif_silence(bool trains);

#endif
