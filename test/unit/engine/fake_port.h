/* SPDX-License-Identifier: BSD-3-Clause */
/* A port without a wire: it only hands out packets and takes them back, and counts both. `limit` makes memory short. */
#ifndef UR_FAKE_PORT_H
#define UR_FAKE_PORT_H

#include <stdlib.h>

#include "drivers/port.h"

struct fake_port {
	struct ur_port port;
	struct ur_queue queue;
	unsigned allocated, freed;
	unsigned limit; /* packets that may be out at a time */
};

static inline unsigned fake_port_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct fake_port *f = ur_container_of(q, struct fake_port, queue);
	unsigned got = 0;

	while (got < n && f->allocated - f->freed < f->limit) {
		struct ur_pkt *p = calloc(1, sizeof(*p) + UR_PKT_ROOM);

		if (!p)
			break;
		p->data = (uint8_t *)(p + 1);
		p->room = UR_PKT_ROOM;
		p->home = q;
		pkts[got++] = p;
		f->allocated++;
	}
	return got;
}

static inline void fake_port_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	ur_container_of(q, struct fake_port, queue)->freed += n;
	for (unsigned i = 0; i < n; i++)
		free(pkts[i]);
}

static inline void fake_port_init(struct fake_port *f, unsigned limit)
{
	static const struct ur_queue_ops queue_ops = {.alloc = fake_port_alloc, .release = fake_port_release};
	static const struct ur_port_ops ops;

	*f = (struct fake_port){.port = {.ops = &ops, .queue = &f->queue, .mtu = 1500}, .queue = {.ops = &queue_ops}, .limit = limit};
}

#endif
