/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/loop/loop.h"

static struct ur_loop *loop_of(struct ur_queue *q)
{
	return ur_container_of(q, struct ur_loop, queue);
}

static struct ur_pkt *pop(struct ur_loop *l)
{
	struct ur_pkt *p = l->head;

	if (!p)
		return NULL;
	l->head = p->next;
	if (!l->head)
		l->tail = &l->head;
	p->next = NULL;
	return p;
}

static unsigned rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_loop *l = loop_of(q);
	unsigned got = 0;

	while (got < n && (pkts[got] = pop(l)))
		got++;
	return got;
}

/* It is copied now, not when it is received: the memory that it refers to is free again. One too long for its buffer is gone. */
static unsigned tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_loop *l = loop_of(q);

	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt *p = pkts[i];

		if (!ur_pkt_linearise(p)) {
			ur_pkts_release(&p, 1);
			continue;
		}
		p->next = NULL;
		*l->tail = p;
		l->tail = &p->next;
	}
	return n;
}

/* It has no packets of its own, to hand out or to take back. */
void ur_loop_init(struct ur_loop *l)
{
	static const struct ur_queue_ops ops = {.rx = rx, .tx = tx};

	*l = (struct ur_loop){.queue = {.ops = &ops}};
	l->tail = &l->head;
}

void ur_loop_clear(struct ur_loop *l)
{
	for (struct ur_pkt *p; (p = pop(l));)
		ur_pkts_release(&p, 1);
}
