/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the port: one mapping, of which the kernel gives pages as they are used, divided among two pools (base/pool.h): long
 * buffers, for all that is received and for trains to send, and short ones.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/udp/internal.h"

#define QUARTER 4 /* of the buffers: enough to be slow with */

/* False: there is no room for as many. */
static bool map(struct ur_udp *u, uint32_t bufs, uint32_t pkts)
{
	const size_t len = bufs * sizeof(struct ur_udp_buf);

	u->memory_len = len + pkts * sizeof(struct ur_udp_pkt);
	u->memory = mmap(NULL, u->memory_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u->memory == MAP_FAILED) {
		u->memory = NULL;
		return false;
	}
	u->bufs = (struct ur_udp_buf *)(void *)u->memory;
	u->pkts = (struct ur_udp_pkt *)(void *)(u->memory + len);
	ur_pool_init(&u->free_bufs, u->bufs, bufs, sizeof(*u->bufs));
	ur_pool_init(&u->free_pkts, u->pkts, pkts, sizeof(*u->pkts));
	return true;
}

/* Address space may be limited (ulimit -v). */
int ur_udp_memory(struct ur_udp *u)
{
	return map(u, UR_UDP_BUFS, UR_UDP_PKTS) || map(u, UR_UDP_BUFS / QUARTER, UR_UDP_PKTS / QUARTER) ? 0 : ENOMEM;
}

static struct ur_pkt *prepare(struct ur_queue *q, struct ur_pkt *p, uint8_t *bytes, uint32_t room)
{
	ur_pkt_clear(p);
	p->data = bytes;
	p->len = 0;
	p->room = room;
	p->home = q;
	return p;
}

struct ur_pkt *ur_udp_alloc_train(struct ur_queue *q)
{
	struct ur_udp_buf *b = ur_pool_take(&ur_udp_of_queue(q)->free_bufs);

	return b ? prepare(q, &b->pkt, b->bytes, sizeof(b->bytes)) : NULL;
}

unsigned ur_udp_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);
	unsigned got = 0;

	for (struct ur_udp_pkt *b; got < n && (b = ur_pool_take(&u->free_pkts));)
		pkts[got++] = prepare(q, &b->pkt, b->bytes, sizeof(b->bytes));
	return got;
}

static bool is_long(const struct ur_udp *u, const struct ur_pkt *p)
{
	return (const void *)p < (const void *)u->pkts;
}

void ur_udp_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_udp *u = ur_udp_of_queue(q);

	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt *p = pkts[i];

		ur_pkt_let_go(p);
		if (is_long(u, p))
			ur_pool_give(&u->free_bufs, ur_container_of(p, struct ur_udp_buf, pkt));
		else
			ur_pool_give(&u->free_pkts, ur_container_of(p, struct ur_udp_pkt, pkt));
	}
}
