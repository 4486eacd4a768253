/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/sacks.h"
#include "analyze/state/window.h"

bool an_sack_get(const struct an_pkt *p, struct ur_sack *s)
{
	/* The parts of a packet that ur_sack_get looks at. */
	const struct ur_pkt view = {.data = (uint8_t *)p->ext, .payload_off = p->op->ext_len, .payload_len = p->payload_len, .bth = p->bth};

	return p->bth.opcode == UR_OP_SACK && !p->cut && ur_sack_get(&view, s);
}

/* Is it one that was recorded, and has arrived? */
static bool has(const struct ur_sack *s, const struct an_req *r)
{
	return !(r->flags & (AN_HOLE | AN_HIDDEN)) && ur_sack_has(s, r->psn & UR_PSN_MASK);
}

/* Of the PSNs of a request that the bits are about. */
static bool has_none(const struct ur_sack *s, const struct an_req *r)
{
	const uint32_t psn = (uint32_t)r->psn & UR_PSN_MASK, ahead = (s->base - psn) & UR_PSN_MASK;
	const uint32_t from = ahead < r->n ? ahead : 0;

	if (!from && ((psn - s->base) & UR_PSN_MASK) >= s->n)
		return true; /* about none */
	for (uint32_t k = from; k < r->n && k - from < s->n; k++)
		if (ur_sack_has(s, (psn + k) & UR_PSN_MASK))
			return false;
	return true;
}

void an_sack_missing(struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_window *w = &f->s.w;
	const struct an_req *newest = NULL;
	struct ur_sack s;
	uint32_t first;
	uint64_t end;

	if (!an_sack_get(p, &s))
		return;
	end = psn + ((s.base - p->bth.psn) & UR_PSN_MASK) + s.n;
	first = an_window_find(w, psn + ((s.expected - p->bth.psn) & UR_PSN_MASK));
	for (uint32_t i = first; i < w->n && an_req_at(w, i)->psn < end; i++)
		if (has(&s, an_req_at(w, i)) && (!newest || an_req_at(w, i)->frame >= newest->frame))
			newest = an_req_at(w, i);
	for (uint32_t i = first; newest && i < w->n && an_req_at(w, i)->psn < end; i++) {
		struct an_req *r = an_req_at(w, i);

		if (has_none(&s, r) && (r->newest < newest->frame || (r->newest == newest->frame && r->psn < newest->psn)))
			r->missing = p->frame;
	}
}
