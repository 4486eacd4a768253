/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks, CNPs and pause frames, and the speed of senders around them. */
#include "between/account_priv.h"
#include "wire/ip.h"

#define ETHERTYPE_MAC_CONTROL 0x8808
#define PAUSE 0x0001 /* 802.3, annex 31B */
#define PFC 0x0101   /* 802.1Q, annex 31D */

/* --- speed --- */

static void pass(struct ur_speed *s, ur_time now, uint32_t len)
{
	const ur_time slot = now >> UR_SPEED_SHIFT;
	uint32_t *to = &s->slot[slot % UR_SPEED_SLOTS];

	if (slot != s->newest) {
		for (ur_time i = ur_max_time(s->newest + 1, slot - ur_min_time(slot, UR_SPEED_SLOTS - 1)); i <= slot; i++)
			s->slot[i % UR_SPEED_SLOTS] = 0;
		s->newest = slot;
	}
	*to += ur_min_u32(len, UINT32_MAX - *to);
}

/* Of those of the last window. */
static uint64_t bytes_of(const struct ur_speed *s, ur_time now)
{
	const ur_time slot = now >> UR_SPEED_SHIFT;
	uint64_t sum = 0;

	for (unsigned i = 0; i < UR_SPEED_SLOTS; i++)
		if (slot - s->newest + i < UR_SPEED_SLOTS && s->newest >= i)
			sum += s->slot[(s->newest - i) % UR_SPEED_SLOTS];
	return sum;
}

static void close(struct ur_speed_change *c, ur_time now)
{
	if (!c->open || now - c->at < UR_SPEED_WINDOW)
		return;
	c->open = false;
	c->n++;
	c->before += c->open_before;
	c->after += c->open_after;
}

static void pass_after(struct ur_speed_change *c, ur_time now, uint32_t len)
{
	close(c, now);
	if (c->open)
		c->open_after += len;
}

/* `since`: when there began to be something to measure. */
static void happens(struct ur_speed_change *c, const struct ur_speed *s, ur_time since, ur_time now)
{
	close(c, now);
	if (c->open || now - since < UR_SPEED_WINDOW)
		return;
	c->open = true;
	c->at = now;
	c->open_before = bytes_of(s, now);
	c->open_after = 0;
}

/* --- marks --- */

static bool is_marked(const struct heard *h)
{
	const uint32_t ip_len = ur_gid_is_v4(&h->f->src) ? UR_IP4_LEN : UR_IP6_LEN;
	const uint8_t *ip;

	if (h->f->bth_off < UR_ETH_LEN + ip_len + UR_UDP_LEN)
		return false;
	ip = h->bytes + h->f->bth_off - UR_UDP_LEN - ip_len;
	if (ip_len == UR_IP4_LEN)
		return *ip == 0x45 && ur_tos_is_ce(ip[1]);
	return *ip >> 4 == 6 && ur_tos_is_ce((uint8_t)(ip[0] << 4 | ip[1] >> 4));
}

/* If marks follow each other closely, it is unknown which of them a CNP is about: the first one counts. */
void ur_marks_marked(struct ur_account_flow *w, ur_time now)
{
	struct ur_account_marks *m = &w->marks;
	const bool first = !m->marked || now - m->newest_mark >= UR_SPEED_WINDOW;

	happens(&m->by_mark, &m->speed, w->began, now);
	m->marked = true;
	m->newest_mark = now;
	if (m->pending || !first)
		return;
	m->pending = true;
	m->marked_at = now;
}

void ur_marks_packet(struct ur_account_flow *w, const struct heard *h, uint32_t len)
{
	struct ur_account_marks *m = &w->marks;

	pass(&m->speed, h->now, len);
	pass_after(&m->by_mark, h->now, len);
	pass_after(&m->by_cnp, h->now, len);
	if (!is_marked(h))
		return;
	m->came++;
	ur_marks_marked(w, h->now);
}

/* --- CNPs --- */

/* The flow that a CNP slows down: of those that the QP sends, the one whose mark has waited longest, or the requests. */
static struct ur_account_flow *slowed(struct ur_account *a, int connection, const struct heard *h)
{
	struct ur_account_flow *found = NULL;

	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		struct ur_account_flow *w = &a->flows[i];

		if (!w->used || w->connection != connection || !opposite(&w->src, &w->dst, w->end, h))
			continue;
		if (!found || (w->marks.pending && (!found->marks.pending || w->marks.marked_at < found->marks.marked_at)) ||
		    (!w->marks.pending && !found->marks.pending && !w->response))
			found = w;
	}
	return found;
}

static void slow_down(struct ur_account_flow *w, ur_time now)
{
	struct ur_account_marks *m = &w->marks;
	const ur_time gap = now - m->cnp_at;

	if (m->cnps)
		m->cnp_gap = m->cnps == 1 ? gap : ur_min_time(m->cnp_gap, gap);
	m->cnps++;
	m->cnp_at = now;
	if (m->pending)
		ur_spread_add(&m->to_cnp, now - m->marked_at);
	m->pending = false;
	happens(&m->by_cnp, &m->speed, w->began, now);
}

void ur_marks_cnp(struct ur_account *a, const struct heard *h)
{
	unsigned side;
	const struct ur_account_connection *c = ur_connect_find(a, &h->f->dst, h->f->bth.dqpn, &side);
	struct ur_account_flow *w = c ? slowed(a, (int)(c - a->connections.c), h) : NULL;

	if (w)
		slow_down(w, h->now);
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++) {
		w = &a->flows[i];
		if (w->used && w->response && w->end == h->end && w->dqpn == h->f->bth.dqpn && ur_gid_eq(&w->dst, &h->f->dst)) {
			w->cnps++;
			return;
		}
	}
}

/* --- pause frames --- */

void ur_marks_frame(struct ur_account *a, ur_time now, unsigned end, const uint8_t *bytes, uint32_t have, uint32_t len)
{
	struct ur_account_pauses *other = &a->pauses[!end], *own = &a->pauses[end];

	pass(&other->speed, now, len);
	pass_after(&other->by_pause, now, len);
	if (have < UR_ETH_LEN + 4 || ur_get16(bytes + 12) != ETHERTYPE_MAC_CONTROL ||
	    (ur_get16(bytes + UR_ETH_LEN) != PAUSE && ur_get16(bytes + UR_ETH_LEN) != PFC))
		return;
	own->n++;
	happens(&own->by_pause, &own->speed, 0, now);
}
