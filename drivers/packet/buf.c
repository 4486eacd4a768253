/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of packets: one mapping, which is two pools (base/pool.h). */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/packet/internal.h"

#define PKTS (UR_PACKET_PKTS * sizeof(struct ur_ppkt))
#define TRAINS (UR_PACKET_TRAINS * sizeof(struct ur_ptrain))
#define MEMORY (PKTS + TRAINS)

int ur_packet_memory(struct ur_packet *s)
{
	void *m = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return ENOMEM;
	s->memory = m;
	ur_pool_init(&s->free_pkts, m, UR_PACKET_PKTS, sizeof(struct ur_ppkt));
	ur_pool_init(&s->free_trains, s->memory + PKTS, UR_PACKET_TRAINS, sizeof(struct ur_ptrain));
	s->nfree = UR_PACKET_PKTS;
	return 0;
}

void ur_packet_memory_free(struct ur_packet *s)
{
	if (s->memory)
		munmap(s->memory, MEMORY);
}

static struct ur_pkt *take_buffer(struct ur_packet *s)
{
	struct ur_ppkt *b = ur_pool_take(&s->free_pkts);
	struct ur_pkt *p = &b->pkt;

	s->nfree--;
	b->slot = NULL;
	p->data = b->bytes + UR_PACKET_HEADROOM;
	p->len = 0;
	p->room = UR_PKT_ROOM;
	return p;
}

struct ur_pkt *ur_packet_get(struct ur_packet *s)
{
	struct ur_pkt *p;

	if (ur_unlikely(!s->nfree))
		return NULL;
	p = take_buffer(s);
	p->nseg = 0;
	p->tail_len = 0;
	p->flags = 0;
	p->place = 0;
	p->stride = 0;
	p->when = 0;
	p->next = NULL;
	p->home = &s->queue;
	return p;
}

unsigned ur_packet_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_packet *s = ur_packet_of_queue(q);

	n = ur_min_u32(n, s->nfree);
	for (unsigned i = 0; i < n; i++) {
		pkts[i] = take_buffer(s);
		ur_pkt_clear(pkts[i]);
		pkts[i]->home = q;
	}
	return n;
}

struct ur_pkt *ur_packet_alloc_train(struct ur_queue *q)
{
	struct ur_ptrain *b = ur_pool_take(&ur_packet_of_queue(q)->free_trains);

	if (!b)
		return NULL;
	ur_pkt_clear(&b->pkt);
	b->pkt.data = b->bytes;
	b->pkt.len = 0;
	b->pkt.room = sizeof(b->bytes);
	b->pkt.home = q;
	return &b->pkt;
}

static void give_packet(struct ur_packet *s, struct ur_ppkt *b)
{
	if (b->slot)
		__atomic_store_n(&b->slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	ur_pool_give(&s->free_pkts, b);
	s->nfree++;
}

void ur_packet_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_packet *s = ur_packet_of_queue(q);

	for (unsigned i = 0; i < n; i++) {
		ur_pkt_let_go(pkts[i]);
		if ((uint8_t *)pkts[i] < s->memory + PKTS)
			give_packet(s, ur_container_of(pkts[i], struct ur_ppkt, pkt));
		else
			ur_pool_give(&s->free_trains, ur_container_of(pkts[i], struct ur_ptrain, pkt));
	}
}
