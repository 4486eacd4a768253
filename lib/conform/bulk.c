/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The step that sends very many messages of one packet each: 2^24, until the MSN wraps. A window of them is in flight; an ACK covers the
 * messages before it, and what a NAK or silence shows as lost is sent again from there on. Each acknowledgement must have the MSN that
 * belongs to its PSN.
 */
#include "conform/internal.h"

#define WINDOW 128 /* short packets, which fit any receiver's buffers */
#define ACK_EACH 32
#define EDGE 8 /* this many at the beginning and at the end are kept in captures */
#define REPEATS 5

static bool at_edge(const struct ur_cf_bulk *m, uint32_t i)
{
	return i < EDGE || i + EDGE >= m->count;
}

void ur_cf_bulk_begin(struct ur_cf_run *r)
{
	const uint64_t all = r->step->x;

	r->bulk = (struct ur_cf_bulk){.count = (uint32_t)(r->cfg.bulk && r->cfg.bulk < all ? r->cfg.bulk : all)};
}

bool ur_cf_bulk_tx(struct ur_cf_run *r, struct ur_pkt *p)
{
	struct ur_cf_bulk *m = &r->bulk;
	struct ur_cf_step s = *r->step;
	uint32_t i = m->next;

	if (i == m->count || i - m->acked >= WINDOW)
		return false;
	s.kind = UR_CF_SEND;
	if (i % ACK_EACH == ACK_EACH - 1 || i + 1 == m->count)
		s.flags |= UR_CF_ACKREQ;
	r->conn.psn = ur_psn_add(r->conn.psn, i);
	ur_cf_build(r, &s, p);
	r->conn.psn = ur_psn_add(r->conn.psn, -i);
	r->keeps = i < m->top || at_edge(m, i);
	m->next = i + 1;
	if (m->next > m->top)
		m->top = m->next;
	return true;
}

/* The message that a packet's PSN names, counted from the first that is not acknowledged. */
static int32_t from_acked(const struct ur_cf_run *r, const struct ur_pkt *p)
{
	return ur_psn_diff(p->bth.psn, ur_psn_add(r->conn.psn, r->bulk.acked));
}

/* How many messages the packet says are executed, `upto` of this step. While some are sent again an ACK may be older than its MSN. */
static const char *odd_msn(const struct ur_cf_run *r, const struct ur_aeth *h, uint32_t upto)
{
	bool right = h->msn == ur_psn_add(r->conn.msn, upto);

	return right || r->bulk.repeats || r->bulk.next < r->bulk.top ? NULL : "its MSN is wrong";
}

static void conclude_all(struct ur_cf_run *r)
{
	r->conn.psn = ur_psn_add(r->conn.psn, r->bulk.count);
	r->conn.msn = ur_psn_add(r->conn.msn, r->bulk.count);
}

enum ur_cf_match ur_cf_bulk_rx(struct ur_cf_run *r, const struct ur_pkt *p, bool *moved, const char **odd)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	struct ur_cf_bulk *m = &r->bulk;
	struct ur_aeth h;
	const int32_t ahead = from_acked(r, p);
	const uint32_t i = m->acked + (uint32_t)ahead;
	bool nak;

	*odd = NULL;
	if (p->bth.opcode == UR_OP_CNP || !ur_cf_is_answer(p->bth.opcode))
		return UR_CF_PASSED_OVER;
	if ((p->bth.opcode & UR_OP_MASK) != UR_OP_ACK) {
		*odd = "its opcode is wrong";
		return UR_CF_WRONG;
	}
	r->keeps = false;
	if (ahead < 0)
		return UR_CF_PASSED_OVER; /* it came late */
	ur_aeth_get(ur_bth_ext(p) + op->off_aeth, &h);
	nak = h.syndrome == (UR_AETH_NAK << 5 | UR_NAK_PSN_SEQ);
	if (i >= m->top)
		*odd = "its PSN is not that of a message that was sent";
	else if (!nak && ur_syndrome_type(h.syndrome) != UR_AETH_ACK)
		*odd = "its syndrome is wrong";
	else
		*odd = odd_msn(r, &h, nak ? i : i + 1);
	r->keeps = *odd || nak || at_edge(m, i);
	if (*odd)
		return UR_CF_WRONG;
	*moved = !nak || i > m->acked;
	m->acked = nak ? i : i + 1;
	if (nak || m->next < m->acked)
		m->next = m->acked;
	if (*moved)
		m->repeats = 0;
	if (m->acked < m->count)
		return UR_CF_PASSED_OVER;
	conclude_all(r);
	return UR_CF_RIGHT;
}

bool ur_cf_bulk_late(struct ur_cf_run *r)
{
	r->bulk.next = r->bulk.acked;
	return ++r->bulk.repeats > REPEATS;
}
