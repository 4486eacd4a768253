/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the port: one mapping, of which the kernel gives pages as they are used, divided among pools (base/pool.h).
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
	ur_pool_init(&u->free_bufs, u->bufs, UR_UDP_BUFS, sizeof(*u->bufs));
	ur_pool_init(&u->free_views, u->views, UR_UDP_VIEWS, sizeof(*u->views));
	ur_pool_init(&u->free_pkts, u->pkts, UR_UDP_PKTS, sizeof(*u->pkts));
	return 0;
}

struct ur_udp_buf *ur_udp_buf_get(struct ur_udp *u)
{
	struct ur_udp_buf *b = ur_pool_take(&u->free_bufs);

	if (b) {
		b->mem = u->memory + (size_t)(b - u->bufs) * UR_UDP_ROOM;
		b->refs = 1;
	}
	return b;
}

void ur_udp_buf_put(struct ur_udp *u, struct ur_udp_buf *b)
{
	if (--b->refs == 0)
		ur_pool_give(&u->free_bufs, b);
}

struct ur_udp_view *ur_udp_view_get(struct ur_udp *u, struct ur_udp_buf *b)
{
	struct ur_udp_view *v = ur_pool_take(&u->free_views);

	if (v) {
		v->buf = b;
		b->refs++;
	}
	return v;
}

unsigned ur_udp_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);
	unsigned got = 0;

	for (struct ur_udp_pkt *b; got < n && (b = ur_pool_take(&u->free_pkts));) {
		struct ur_pkt *p = pkts[got++] = &b->pkt;

		ur_pkt_clear(p);
		p->data = b->bytes;
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
			struct ur_udp_view *v = ur_container_of(p, struct ur_udp_view, pkt);

			ur_udp_buf_put(u, v->buf);
			ur_pool_give(&u->free_views, v);
		} else {
			ur_pkt_let_go(p);
			ur_pool_give(&u->free_pkts, ur_container_of(p, struct ur_udp_pkt, pkt));
		}
	}
}
