/* SPDX-License-Identifier: BSD-3-Clause */
/* What compare.c, which matches, and align.c, which finds flows and the first offset of the clocks, share. */
#ifndef UR_AN_CMP_PRIV_H
#define UR_AN_CMP_PRIV_H

#include "analyze/compare/compare.h"
#include "analyze/state/clocks.h"
#include "analyze/state/state.h"

struct cmp_packet {
	uint64_t key; /* of hosts and headers */
	ur_time when; /* by its own clock */
	uint32_t frame, psn, data, flow;
	uint8_t opcode;
	bool damaged;
};

struct cmp_waiting {
	struct cmp_packet p;
	ur_time at;                 /* by the first clock */
	uint32_t seq, older, newer; /* its number in the flow there; neighbours in its chain */
	uint8_t place;
	bool met, again, copy; /* has found its like; the same came once more at its place; one like it has met its like */
};

struct cmp_hosts { /* two hosts; the direction from the smaller address to the greater passes place `first` first */
	struct ur_gid low, high;
	bool known;
	uint8_t first;
	int64_t sum[2]; /* of differences in each direction, while the offset is looked for */
	uint32_t n[2];
};

struct cmp_flow {
	struct ur_table_node node;
	struct ur_cmp_flow facts;
	uint32_t number, hosts, seq[2];
	uint32_t newest[2]; /* numbers of the newest that have met */
	uint32_t front[2];  /* `front`: the packet furthest in order that has met, its number at both places */
	bool reversed;      /* from the greater address to the smaller */
};

struct cmp_queue {
	struct cmp_packet *ring;
	uint32_t head, n, room;
};

struct ur_compare {
	uint64_t late, salt;
	ur_cmp_fn on_event;
	void *ctx;
	struct an_clocks clocks;
	struct an_mirror mirror[2];
	struct cmp_queue queue[2];
	bool ended[2], learned, aligned;
	ur_time begin[2], last[2];
	struct ur_table flows, pairs; /* of `flow`; of `hosts` */
	struct cmp_flow **flow;
	struct cmp_hosts *hosts;
	uint32_t nhosts, flow_room, hosts_room;
	struct cmp_waiting *w;
	uint32_t *heads;
	uint32_t head, n, room;
	struct ur_cmp_totals total;
};

static inline struct cmp_packet *cmp_queue_at(const struct cmp_queue *q, uint32_t i)
{
	return &q->ring[(q->head + i) & (q->room - 1)];
}

static inline struct cmp_packet *cmp_queue_head(const struct cmp_queue *q)
{
	return cmp_queue_at(q, 0);
}

static inline void cmp_queue_pop(struct cmp_queue *q)
{
	q->head++;
	q->n--;
}

bool cmp_queue_push(struct cmp_queue *q, const struct cmp_packet *p);
/* The time of the first clock for a time of a place's. */
ur_time cmp_when(const struct ur_compare *c, unsigned place, ur_time when);
/* The flow of a packet; false when there is none, and none may be made. */
bool cmp_flow_of(struct ur_compare *c, const struct an_pkt *p, bool may_add, uint32_t *flow);
/* True once the offset is known, or never will be. */
bool cmp_learn(struct ur_compare *c);
/* Of what the table of pairs of hosts has. */
void cmp_free_pair(struct ur_table_node *n);

#endif
