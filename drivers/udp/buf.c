/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the port: one mapping, of which the kernel gives pages as they are used. What was given back last is handed out first, so
 * that an idle port touches few pages and a busy one stays in the cache.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/udp/internal.h"

int ur_udp_memory(struct ur_udp *u)
{
	const size_t bufs = (size_t)UR_UDP_BUFS * UR_UDP_ROOM, views = UR_UDP_VIEWS * sizeof(struct ur_udp_view);

	u->memory_len = bufs + views + UR_UDP_PKTS * sizeof(struct ur_udp_pkt);
	u->memory = mmap(NULL, u->memory_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u->memory == MAP_FAILED) {
		u->memory = NULL;
		return ENOMEM;
	}
	u->views = (struct ur_udp_view *)(void *)(u->memory + bufs);
	u->pkts = (struct ur_udp_pkt *)(void *)(u->memory + bufs + views);
	for (unsigned i = UR_UDP_BUFS; i-- > 0;) {
		u->bufs[i].mem = u->memory + (size_t)i * UR_UDP_ROOM;
		u->bufs[i].next = u->free_bufs;
		u->free_bufs = &u->bufs[i];
	}
	return 0;
}

struct ur_udp_buf *ur_udp_buf_get(struct ur_udp *u)
{
	struct ur_udp_buf *b = u->free_bufs;

	if (b) {
		u->free_bufs = b->next;
		b->refs = 1;
	}
	return b;
}

void ur_udp_buf_put(struct ur_udp *u, struct ur_udp_buf *b)
{
	if (--b->refs)
		return;
	b->next = u->free_bufs;
	u->free_bufs = b;
}

struct ur_udp_view *ur_udp_view_get(struct ur_udp *u, struct ur_udp_buf *b)
{
	struct ur_pkt *p = u->free_views;
	struct ur_udp_view *v;

	if (p) {
		v = ur_container_of(p, struct ur_udp_view, pkt);
		u->free_views = p->next;
	} else if (u->fresh_views < UR_UDP_VIEWS) {
		v = &u->views[u->fresh_views++];
	} else {
		return NULL;
	}
	v->buf = b;
	b->refs++;
	return v;
}

static struct ur_pkt *pkt_get(struct ur_udp *u)
{
	struct ur_pkt *p = u->free_pkts;

	if (p)
		u->free_pkts = p->next;
	else if (u->fresh_pkts < UR_UDP_PKTS)
		p = &u->pkts[u->fresh_pkts++].pkt;
	return p;
}

unsigned ur_udp_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);
	unsigned got = 0;

	for (struct ur_pkt *p; got < n && (p = pkt_get(u)); pkts[got++] = p) {
		ur_pkt_clear(p);
		p->data = ur_container_of(p, struct ur_udp_pkt, pkt)->bytes;
		p->len = 0;
		p->room = UR_PKT_ROOM;
		p->home = q;
	}
	return got;
}

static bool is_view(const struct ur_udp *u, const struct ur_pkt *p)
{
	return (const void *)p >= (const void *)u->views && (const void *)p < (const void *)u->pkts;
}

void ur_udp_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);

	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt *p = pkts[i];

		if (is_view(u, p)) {
			ur_udp_buf_put(u, ur_container_of(p, struct ur_udp_view, pkt)->buf);
			p->next = u->free_views;
			u->free_views = p;
		} else {
			ur_pkt_let_go(p);
			p->next = u->free_pkts;
			u->free_pkts = p;
		}
	}
}
