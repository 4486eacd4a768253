/* SPDX-License-Identifier: BSD-3-Clause */
/* What everybody who holds a packet may have to do with its pieces. */
#include <string.h>

#include "wire/pkt.h"

uint8_t *ur_pkt_gather(const struct ur_pkt *p, uint32_t off, uint8_t *to)
{
	memcpy(to, p->data + off, p->len - off);
	to += p->len - off;
	for (unsigned i = 0; i < p->nseg; to += p->seg[i++].len)
		memcpy(to, p->seg[i].data, p->seg[i].len);
	memcpy(to, p->tail, p->tail_len);
	return to + p->tail_len;
}

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
	uint8_t *to = p->data + p->len;

	if (ur_pkt_frame_len(p) > p->room)
		return false;
	for (unsigned i = 0; i < p->nseg; to += p->seg[i++].len)
		memcpy(to, p->seg[i].data, p->seg[i].len);
	memcpy(to, p->tail, p->tail_len);
	p->len = (uint32_t)(to - p->data) + p->tail_len;
	p->tail_len = 0;
	ur_pkt_let_go(p);
	return true;
}
