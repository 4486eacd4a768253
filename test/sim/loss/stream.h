/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steady streams in virtual time: one or several hosts move memory to (or, with READ, from) host 0 as fast as they may, over a fabric of
 * chosen rate, round trip, faults and marking; beside them, or alone, one more host exchanges short SENDs with it, over one connection or
 * many. What losstable prints and cctest and losstest assert.
 */
#ifndef UR_TEST_STREAM_H
#define UR_TEST_STREAM_H

#include "nic/nic.h"
#include "test/port/sim.h"

#define STREAM_SENDERS 32
#define STREAM_PINGS 20000
#define STREAM_PINGERS 50

/* The setting `congestion`; the first is its default. A standard peer has the same, but for windows that follow the path. */
enum stream_congestion { STREAM_AUTO, STREAM_WINDOW, STREAM_DCQCN, STREAM_OFF, STREAM_CONGESTIONS };
extern const char *const stream_congestion_name[STREAM_CONGESTIONS];

enum stream_side { STREAM_SENDER, STREAM_RECEIVER, STREAM_SIDES }; /* those that post; host 0 */

struct stream_opt {
	unsigned senders;            /* 0 to STREAM_SENDERS */
	enum ibv_wr_opcode op;       /* IBV_WR_RDMA_WRITE, _RDMA_READ or _SEND */
	uint32_t chunk;              /* bytes of one work request; 0: 128 KiB */
	bool standard[STREAM_SIDES]; /* these are of another make, which knows go-back-N and the ACK timer alone */
	enum stream_congestion congestion;
	bool one_host;                    /* all that stream are QPs of one host */
	unsigned window;                  /* as in ur_tp_config; 0: its default, and 2 MiB for a standard peer */
	uint32_t mbps, to_mbps;           /* of every link; of that to host 0, if that is another */
	ur_time rtt;                      /* of an empty fabric */
	struct ur_sim_link faults;        /* of each host's link to the switch, from then on; rate, delay and mtu do not count */
	uint32_t queue_bytes, mark_bytes; /* of the link to host 0, as in struct ur_sim_link */
	uint8_t timeout;                  /* of the QPs */
	unsigned receives;                /* that host 0 posts for each stream of SENDs; 0: as many as it has requests */
	ur_time rests;                    /* so often it posts others for those that were taken; 0: at once */
	unsigned pings;                   /* up to STREAM_PINGS of 64-byte SENDs; without senders, `span` is what they may take */
	unsigned pingers;                 /* connections that exchange them at once, up to STREAM_PINGERS; 0: one */
	ur_time late;                     /* hosts act for up to twice that, then pause for up to that, and so on; 0: they never pause */
	ur_time calm;                     /* after `span` the faults end; the last second of this time is counted; 0: none of that */
	ur_time warm, span;               /* the stream runs for `warm` before `span` is measured */
	ur_time silent;                   /* behind it, host 0 does nothing for that long; then the stream has to come to life again */
	uint64_t seed;
};

struct stream_result {
	uint64_t bytes[STREAM_SENDERS]; /* completed within `span`, by sender */
	uint64_t queue_drops, marked;   /* of the fabric, within `span` */
	uint64_t counters[UR_C_COUNT];  /* of all hosts, from the beginning */
	unsigned lost;                  /* connections that ended with an error */
	unsigned npings;                /* of which it took ping[]: ascending */
	ur_time ping[STREAM_PINGS];
	ur_time woken;    /* from the end of the silence until 90 % of the speed before it, or UR_TIME_NEVER */
	uint64_t after;   /* bytes that all completed within another `span` behind that */
	uint64_t repeats; /* request packets sent again from the beginning of the silence until `woken` */
	uint64_t lost_packets, sent, again;   /* by the fabric; RoCE packets sent; of them requests that were sent again: within `span` */
	uint64_t calm_pings, calm_sent, calm_again; /* the same in the last second of `calm`, and pings */
};

void stream_run(const struct stream_opt *o, struct stream_result *out);
/* Payload of sender `i`, or of all when it is -1, as a share of what a link carries. */
double stream_share(const struct stream_opt *o, const struct stream_result *r, int i);
/* The same of all, behind the silence. */
double stream_share_after(const struct stream_opt *o, const struct stream_result *r);
/* Of 1 to `senders`, by Jain: 1 when all senders got the same. */
double stream_fairness(const struct stream_opt *o, const struct stream_result *r);
/* The round trip that `share` of the pings did not exceed. */
ur_time stream_ping(const struct stream_result *r, double share);

#endif
