/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_net: lib/net alone, with neighbours, routers and an attacker on its link, in virtual time. The input is a list of steps.
 *
 *   stage.c    the instance, its addresses and neighbours, packets, time
 *   wire.c     what comes from the link: a second reading of what a frame may change, and what the instance sends in answer
 *   paths.c    paths and packets that wait for a neighbour
 *   members.c  memberships: which reports have to come by when, and which must not
 *   forge.c    frames from structure, changed by the byte, or seen before
 *   steps.c    the table of steps, and the end
 *
 * The second reading knows lib/net by its face, net.h, and by the standards; it reads frames with lib/wire, which fuzz_frame is for.
 */
#ifndef UR_FUZZ_NET_H
#define UR_FUZZ_NET_H

#include "net/net.h"
#include "test/fuzz/input.h"
#include "test/fuzz/story.h"
#include "wire/msg/arp.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"

struct fuzz;

/* An invariant does not hold: prints the sentence and aborts. */
#define broke(f, ...) story_broke("fuzz_net", (f)->now, __VA_ARGS__)
/* For debugging one input: prints when FUZZ_NET_TRACE is set. */
#define trace(f, ...) (ur_unlikely((f)->tracing) ? story_line((f)->now, __VA_ARGS__) : (void)0)

/* What the design states (doc/security.md, RFC 4861, 10; RFC 3376, 8), which net.h does not. */
#define WAIT_MAX (3 * UR_NS_PER_S) /* until a neighbour that does not answer is given up */
#define HEAL_MAX (40 * UR_NS_PER_S) /* until a neighbour is what it was, once nobody claims to be him */
#define LEARNED_MAX 64             /* entries for hosts that only asked us */
#define QUEUE_MAX 256              /* packets that wait */
#define QUEUE_ONE_MAX 128          /* for one neighbour */
#define ANSWER_MIN (10 * UR_NS_PER_MS)
#define SLACK UR_NS_PER_MS

/* --- stage.c --- */

#define ADDRS 6 /* that may be ours */
#define HOSTS 8
#define REMOTES 2 /* destinations behind a router */
#define ATTACKERS 4
#define VLAN 5

struct host {
	struct ur_gid ip;
	uint16_t vlan;
	struct ur_mac mac;   /* its own, at present */
	bool up;             /* it answers */
	ur_time since;       /* when it began to, or ended */
	uint32_t claimed;    /* MAC addresses that somebody said it has, a bit each: mac_bit */
	ur_time asked;       /* when it was, if it has not answered yet; UR_TIME_NEVER */
};

#define SENDS 512
enum fate { FATE_NONE, FATE_MINE, FATE_WAITS };
struct send { /* a RoCE packet that was handed to ur_net_send */
	struct ur_pkt *pkt;
	uint8_t fate; /* enum fate */
	uint8_t host; /* number of its next hop; HOSTS: another one, or none */
	struct ur_gid hop;
	uint16_t vlan;
	unsigned number;
	ur_time until; /* by then it is sent or dropped */
};

#define PATHS 16
struct slot { /* a path and who uses it */
	struct ur_net_path path;
	struct fuzz *f;
	bool open, neigh, orphan, moved; /* moved: opened or closed while a frame was taken in */
	uint8_t host;      /* number of its next hop; HOSTS for another one */
	uint8_t on_change; /* what its callback does */
	struct ur_net_path_attr attr;
	struct ur_gid hop;
	uint16_t vlan;
	ur_time until; /* by then it is ready, or failed */
	bool was_ready;
	struct ur_mac was_mac;
};

#define FIXED 16        /* groups of the table, on both VLANs */
#define MANY 1100       /* and more of them, than may be joined */
#define MEMBERS (FIXED + MANY)
struct member {
	struct ur_gid gid;
	uint16_t vlan;
	bool silent, reported, left; /* reported, left: in the current call */
	bool foreign;                /* another host has reported it after us */
	unsigned refs;
	ur_time due;        /* an answer comes by then */
	unsigned changes;   /* reports of the last change that are still to come */
	ur_time change_due; /* the last of them comes by then */
	unsigned questions; /* that may still be answered */
};

#define QUERIES 16
struct mlink {
	uint8_t robustness, was; /* was: the version that it spoke last */
	uint32_t interval;
	ur_time old_until[3];
	struct {
		ur_time when;
		struct ur_gid group;
	} heard[QUERIES]; /* the latest queries */
	ur_time answer_until; /* a query for all groups is answered by then */
	unsigned nheard;
};

#define SEEN 16
#define FRAME_MAX 1600
struct frame {
	uint16_t len;
	uint8_t b[FRAME_MAX];
};

#define LATER 64
struct later { /* a host's answer that is on its way */
	ur_time when;
	uint32_t len;
	uint8_t b[128];
};

struct fuzz {
	struct input in;
	bool tracing, owned, routed, at_once; /* at_once: hosts answer before the question returns */
	struct ur_net *net;
	struct ur_wheel *wheel;
	struct ur_counters counters;
	ur_time now;
	struct ur_mac mac;
	bool mac_known, no_buffers;
	ur_time mac_since;
	ur_time starved; /* when there was no buffer last */
	bool deaf; /* a packet could not be built in this call: nothing is expected of it */
	bool have[ADDRS];
	struct host host[HOSTS];
	struct send send[SENDS];
	unsigned nsent, nwaiting, ndropped;
	struct slot slot[PATHS];
	struct member member[MEMBERS];
	struct mlink link[2][2]; /* [is IPv4][has a tag] */
	ur_time next_due;
	unsigned njoined;
	struct frame seen[SEEN];
	unsigned nseen;
	struct later later[LATER];
	unsigned nlater;
	struct frame out; /* what is about to arrive */
	/* Of the current frame: */
	bool in_rx, acted; /* acted: a callback has called lib/net */
	bool in_callback; /* of a path: others of its neighbour may not have been told yet */
	struct slot *opening;
	bool was_asked[HOSTS];
	unsigned replies, probes, reports, roce;
	struct ur_gid probed;
	uint32_t reply_bytes;
	long live_before; /* allocations when nothing has come or was called */
	unsigned npkts;   /* packets that are out */
	unsigned nfar;    /* neighbours that our own calls may have made, beside those in the tables */
	struct ur_gid claim_src, claim_dst; /* that ur_net_claim was asked for last */
	unsigned told;    /* leaves that siblings were shown */
};

extern const struct ur_net_addr addrs[ADDRS];
extern const struct ur_gid remotes[REMOTES];
extern const struct ur_mac attackers[ATTACKERS];

void stage_open(struct fuzz *f, uint8_t config);
void stage_close(struct fuzz *f);
void stage_run(struct fuzz *f, ur_time d);
/* The address is one of ours at present. */
bool is_ours(const struct fuzz *f, const struct ur_gid *ip);
bool is_ours_on(const struct fuzz *f, const struct ur_gid *ip, uint16_t vlan);
unsigned host_find(const struct fuzz *f, const struct ur_gid *ip, uint16_t vlan);
uint32_t mac_bit(const uint8_t mac[6]);
struct ur_pkt *pkt_new(struct fuzz *f);
void pkt_free(struct fuzz *f, struct ur_pkt *p);
/* Nothing that is owed is overdue, and what is kept is within its limits. */
void stage_check(struct fuzz *f);
static inline bool mac_eq(const struct ur_mac *a, const struct ur_mac *b)
{
	return !memcmp(a->b, b->b, 6);
}
static inline bool mac_is_host(const struct ur_mac *m)
{
	return !(m->b[0] & 1) && (m->b[0] | m->b[1] | m->b[2] | m->b[3] | m->b[4] | m->b[5]);
}

/* --- wire.c --- */

/* f->out arrives; `local`: from another process of this host. */
void arrive(struct fuzz *f, bool local);
/* What the instance sends. */
void on_output(struct fuzz *f, struct ur_pkt *p);
void on_tell(struct fuzz *f, const struct ur_pkt *p);
void keep_seen(struct fuzz *f, const uint8_t *b, uint32_t len);

/* --- paths.c --- */

void path_open(struct fuzz *f, unsigned slot, unsigned to, unsigned from, uint8_t on_change);
void path_close(struct fuzz *f, unsigned slot);
void path_retry(struct fuzz *f, unsigned slot);
void path_send(struct fuzz *f, unsigned to, unsigned from);
/* One that is not in the tables: fd00::/16 by number. */
void path_send_far(struct fuzz *f, uint16_t number);
void paths_before(struct fuzz *f);
struct claim {
	bool is, solicited, override, mac_said;
	struct ur_gid ip;
	uint16_t vlan;
	struct ur_mac mac;
};
/* What a frame that makes this claim (or none) did to the paths is what it may do. */
void paths_after(struct fuzz *f, const struct claim *c);
void paths_address_gone(struct fuzz *f, const struct ur_gid *gid);
/* Our MAC address changed: pending requests are sent again. */
void paths_mac_known(struct fuzz *f);
void paths_overdue(struct fuzz *f);
void paths_at_end(struct fuzz *f);
void send_done(struct fuzz *f, struct ur_pkt *p, bool sent);

/* --- members.c --- */

void members_open(struct fuzz *f);
void member_join(struct fuzz *f, unsigned which);
void member_leave(struct fuzz *f, unsigned which);
void members_join_many(struct fuzz *f, unsigned n);
void members_leave_many(struct fuzz *f);
void members_again(struct fuzz *f);
void members_end(struct fuzz *f);
/* A report or leave that the instance sent. */
void members_sent(struct fuzz *f, const struct ur_pkt *p);
/* A frame of group management that arrives: before, and after it did. */
void members_heard(struct fuzz *f, const struct ur_pkt *p, const struct ur_gmp *m);
void members_after(struct fuzz *f);
/* A packet could not be built: reports that were due may be missing. */
void members_starved(struct fuzz *f);
void members_overdue(struct fuzz *f);
struct ur_gid member_gid(unsigned which);
/* Groups that are joined, or whose leave is still to be repeated. */
unsigned members_alive(const struct fuzz *f);

/* --- forge.c --- */

void forge_arp(struct fuzz *f);
void forge_nd(struct fuzz *f);
void forge_icmp(struct fuzz *f);
void forge_gmp(struct fuzz *f);
void forge_seen(struct fuzz *f);
void forge_flood(struct fuzz *f);

/* --- steps.c --- */

bool step(struct fuzz *f);
void the_end(struct fuzz *f);

#endif
