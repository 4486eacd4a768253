/* SPDX-License-Identifier: BSD-3-Clause */
/* What everybody who holds a packet may have to do with its pieces. */
#include <string.h>

#include "base/touch.h"
#include "wire/pkt.h"

/*
 * Copies the segments. One whose memory has gone since the packet was finished (transport.h: ur_tp_unsendable) leaves zeros: no ICRC fits
 * them, so the packet is lost where it arrives.
 */
static uint8_t *put_segments(const struct ur_pkt *p, uint8_t *to)
{
	for (unsigned i = 0; i < p->nseg; to += p->seg[i++].len)
		if (ur_unlikely(!ur_touch_copy(to, p->seg[i].data, p->seg[i].len)))
			memset(to, 0, p->seg[i].len);
	return to;
}

uint8_t *ur_pkt_gather(const struct ur_pkt *p, uint32_t off, uint8_t *to)
{
	memcpy(to, p->data + off, p->len - off);
	to = put_segments(p, to + p->len - off);
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
	uint8_t *to;

	if (ur_pkt_frame_len(p) > p->room)
		return false;
	to = put_segments(p, p->data + p->len);
	memcpy(to, p->tail, p->tail_len);
	p->len = (uint32_t)(to - p->data) + p->tail_len;
	p->tail_len = 0;
	ur_pkt_let_go(p);
	return true;
}
