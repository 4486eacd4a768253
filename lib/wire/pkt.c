/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the pieces of a packet, for all who hold one. */
#include "wire/pkt.h"

void ur_pkt_hold(const struct ur_pkt *p)
{
	for (unsigned i = 0; i < p->nseg; i++)
		ur_ref_get(p->seg[i].ref);
}

void ur_pkt_let_go(struct ur_pkt *p)
{
	for (unsigned i = 0; i < p->nseg; i++)
		ur_ref_put(p->seg[i].ref);
	p->nseg = 0;
}

bool ur_pkt_linearise(struct ur_pkt *p)
{
	uint8_t *to;

	if (ur_pkt_frame_len(p) > p->room)
		return false;
	to = ur_pkt_put_segments(p, p->data + p->len);
	memcpy(to, p->tail, p->tail_len);
	p->len = (uint32_t)(to - p->data) + p->tail_len;
	p->tail_len = 0;
	ur_pkt_let_go(p);
	return true;
}
