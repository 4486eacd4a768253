/* SPDX-License-Identifier: BSD-3-Clause */
/* Two instances of lib/net on one link in virtual time. Frames wait in an outbox until a test pumps or drops them. */
#ifndef NET_HARNESS_H
#define NET_HARNESS_H

#include "net/internal.h"

struct nh;

struct nh_side {
	struct nh *h;
	int index;
	struct ur_net *net;
	struct ur_counters counters;
	struct ur_mac mac;
	struct ur_pkt *out, **out_tail;
	unsigned nout;	   /* frames in the outbox */
	unsigned sent[8];  /* by enum ur_pkt_kind, since the beginning */
	unsigned roce_rx;  /* RoCE frames that arrived */
	uint8_t last[256]; /* the start of the last frame sent */
	bool no_buffers;
};

struct nh {
	struct ur_wheel *wheel;
	ur_time now;
	struct nh_side side[2];
	unsigned pkts; /* not freed yet */
};

void nh_init(struct nh *h, bool owned0, bool owned1);
void nh_fini(struct nh *h);
struct ur_pkt *nh_pkt(struct nh *h);
void nh_free(struct nh *h, struct ur_pkt *p);
/* Parses a frame and gives it to the side's net. */
void nh_rx(struct nh *h, int side, struct ur_pkt *p);
/* Carries frames across until none is left. */
void nh_pump(struct nh *h);
void nh_drop(struct nh *h, int side);
void nh_run(struct nh *h, ur_time until, bool pump);

struct ur_gid nh_v4(unsigned a, unsigned b, unsigned c, unsigned d);
/* fd00:prefix::last, or fe80::last with prefix 0xfe80 */
struct ur_gid nh_v6(unsigned prefix, unsigned last);
int nh_add(struct nh *h, int side, struct ur_gid gid, unsigned prefix_len, unsigned vlan);
struct ur_net_path_attr nh_to(struct ur_gid dgid);
/* A MAD-like packet for ur_net_send. */
struct ur_pkt *nh_roce(struct nh *h, int side, const struct ur_net_path_attr *a);

#define NH_COUNTER(h, s, id) ((h)->side[s].counters.v[UR_C_##id])

#endif
