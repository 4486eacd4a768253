/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of multicast membership share. group.c: which groups we are members of, and what happens when that changes; group_rx.c:
 * queries and the answers to them, reports of others; group_tx.c: messages.
 *
 * We are a host that wants all sources: filter mode EXCLUDE without sources. A link is an address family on a VLAN. It speaks version 3
 * (IGMPv3, MLDv2) unless a querier of an older version was heard lately (RFC 3376, 7.2; RFC 3810, 8.2).
 */
#ifndef UR_GROUP_H
#define UR_GROUP_H

#include "net/internal.h"
#include "wire/msg/gmp.h"

/* RFC 3376, 8; RFC 3810, 9; those of older versions: RFC 2236, 8; RFC 2710, 7. */
#define UR_GROUP_ROBUSTNESS 2
#define UR_GROUP_QUERY_INTERVAL 125 /* seconds */
#define UR_GROUP_QUERY_RESPONSE (10 * UR_NS_PER_S)
#define UR_GROUP_UNSOLICITED UR_NS_PER_S            /* repeats of a change come within this time ... */
#define UR_GROUP_UNSOLICITED_OLD (10 * UR_NS_PER_S) /* ... and with an older querier within this */
/*
 * No answer comes sooner, whatever response time a querier wants: a query that wants none at all is answered by as much as a report of
 * every group, and a flood of them would be by a larger one.
 */
#define UR_GROUP_ANSWER_MIN (10 * UR_NS_PER_MS)
#define UR_GROUP_SOURCES 32 /* of a query that are remembered; with more, the whole group is reported */

struct ur_group_link {
	struct ur_net *net;
	struct ur_list of_net;
	bool v4;
	uint16_t vlan;
	uint8_t robustness;     /* times that a change is reported, as the querier wants it */
	uint32_t interval;      /* of queries, in seconds */
	ur_time old_until[3];   /* [1], [2]: a querier of that version counts as present until then */
	struct ur_timer answer; /* to a query for all groups */
	struct ur_timer change; /* repeats what changed */
	struct ur_list groups;
};

struct ur_group {
	struct ur_list of_link;
	struct ur_group_link *on;
	struct ur_gid gid;
	unsigned refs;         /* 0: left, and the leave is still to be repeated */
	unsigned repeats;      /* version 3: reports of the last change that are still to come */
	bool silent;           /* not reported: all hosts, or a scope that ends at this host */
	bool last;             /* older versions: nobody has reported it after us */
	struct ur_timer timer; /* answer about this group; older versions: repeat too */
	uint8_t version;       /* that it was armed in: a change of version cancels it (RFC 3376, 7.2.1; RFC 3810, 8.2.1) */
	unsigned nsources;     /* of the current query; 0: it asks about the group */
	struct ur_gid source[UR_GROUP_SOURCES];
};

/* --- group.c --- */

/* Makes the link if need be; NULL when memory is short. */
struct ur_group_link *ur_group_link_get(struct ur_net *net, bool v4, uint16_t vlan);
struct ur_group_link *ur_group_link_find(const struct ur_net *net, bool v4, uint16_t vlan);
struct ur_group *ur_group_find(const struct ur_group_link *l, const struct ur_gid *gid);
/* 1 to 3: what the routers on the link understand. */
unsigned ur_group_version(const struct ur_group_link *l, ur_time now);
/* An answer or a repeat about the group is still to come, in this version. */
bool ur_group_pending(const struct ur_group *g, unsigned version);
void ur_group_arm(struct ur_group *g, unsigned version, ur_time when);
/* Tells the link that we are, or are no longer, a member, now and later again. May free the group. */
void ur_group_changed(struct ur_group *g, ur_time now);
/* The link changed to an older version: what was to be sent is forgotten. */
void ur_group_link_reset(struct ur_group_link *l);
void ur_net_groups_free(struct ur_net *net);
/* Uniform in [0, max]. */
ur_time ur_group_delay(struct ur_net *net, ur_time max);

/* --- group_rx.c --- */

void ur_net_groups_rx(struct ur_net *net, const struct ur_pkt *p, ur_time now);
void ur_group_answer_all(struct ur_timer *t, ur_time now);
void ur_group_answer_one(struct ur_timer *t, ur_time now);

/* --- group_tx.c --- */

/* A pending version 3 report; `p` is NULL while there is none. */
struct ur_group_writer {
	struct ur_group_link *l;
	struct ur_pkt *p;
	bool leaves; /* it says of a group that it was left */
};

void ur_group_write(struct ur_group_writer *w, uint8_t type, const struct ur_group *g, unsigned nsources);
/* Sends what was written. */
void ur_group_flush(struct ur_group_writer *w);
/* A report of version 1 or 2, or a leave of version 2. */
void ur_group_send_old(const struct ur_group *g, bool leave, unsigned version);

#endif
