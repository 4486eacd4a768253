/* SPDX-License-Identifier: BSD-3-Clause */
/* A port without a wire: it only hands out packets and takes them back, and counts both. `limit` makes memory short. */
#ifndef UR_FAKE_PORT_H
#define UR_FAKE_PORT_H

#include <stdlib.h>

#include "drivers/port.h"

struct fake_port {
	struct ur_port port;
	unsigned allocated, freed;
	unsigned limit; /* packets that may be out at a time */
};

static inline unsigned fake_port_alloc(struct ur_port *port, struct ur_pkt **pkts, unsigned n)
{
	struct fake_port *f = ur_container_of(port, struct fake_port, port);
	unsigned got = 0;

	while (got < n && f->allocated - f->freed < f->limit) {
		struct ur_pkt *p = calloc(1, sizeof(*p) + UR_PKT_ROOM);

		if (!p)
			break;
		p->data = (uint8_t *)(p + 1);
		p->room = UR_PKT_ROOM;
		pkts[got++] = p;
		f->allocated++;
	}
	return got;
}

static inline void fake_port_free(struct ur_port *port, struct ur_pkt **pkts, unsigned n)
{
	ur_container_of(port, struct fake_port, port)->freed += n;
	for (unsigned i = 0; i < n; i++)
		free(pkts[i]);
}

static inline void fake_port_init(struct fake_port *f, unsigned limit)
{
	static const struct ur_port_ops ops = {.alloc = fake_port_alloc, .free = fake_port_free};

	*f = (struct fake_port){.port = {.ops = &ops, .mtu = 1500}, .limit = limit};
}

#endif
