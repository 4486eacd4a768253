/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/idents.h"

#include "base/hash.h"

/*
 * How far identifications move from one packet to the next. Packets to others, and lost ones, lie between; Linux moves them by up to one
 * more for each of its ticks that has passed, of which there are at most 1000 a second. What is known is when packets were received: one
 * that waited for a process that was not scheduled was sent long before, and the next one is that much farther ahead. As far behind,
 * because a damaged one may have come between.
 */
#define STEP 2048

/* `sport` 0: that of all the host sends. */
static struct ur_ident *ident_of(struct ur_idents *t, const struct ur_pkt *p, uint16_t sport)
{
	const uint64_t h = ur_hash_bytes(ur_hash_bytes(UR_HASH_BEGIN, p->src.raw, sizeof(p->src.raw)), &sport, sizeof(sport));
	const uint32_t key = (uint32_t)(h >> 32) | 1; /* an empty place has 0 */
	struct ur_ident *e = &t->of[(h ^ h >> 32) % UR_IDENTS];

	if (e->key != key)
		*e = (struct ur_ident){.key = key};
	return e;
}

static bool follows(const struct ur_ident *e, const struct ur_pkt *p, ur_time now)
{
	const int moved = (int16_t)(p->place - e->last);
	const ur_time ticks = now > e->at ? (now - e->at) / UR_NS_PER_MS : 0;

	if (e->may_fragment != !!p->may_fragment)
		return false;
	return moved < 0 ? -moved <= STEP || ticks > INT16_MAX : (ur_time)moved <= STEP + ticks;
}

/* The packet before was refused, and this one is not where it was expected either: so they are counted in leaps. */
static bool second_leap(struct ur_ident *e)
{
	if (e->doubted)
		e->alarms++;
	return e->doubted;
}

/* `expected`: it does not come from nowhere; `in_turn`: it follows what is noted here. */
static void move_on(struct ur_ident *e, const struct ur_pkt *p, bool expected, bool in_turn, ur_time now)
{
	if (!expected)
		e->in_turn = 0;
	else if (e->in_turn < UR_IDENT_TRUSTED)
		e->in_turn++;
	if (!in_turn || (int16_t)(p->place - e->last) > 0)
		e->last = p->place;
	e->may_fragment = p->may_fragment;
	e->doubted = false;
	e->at = now;
}

/* Linux counts what goes to one address, from whichever port; others may count each connection by itself. */
bool ur_idents_accept(struct ur_idents *t, const struct ur_pkt *p, ur_time now)
{
	struct ur_ident *host = ident_of(t, p, 0), *e = ident_of(t, p, p->sport);
	const bool in_turn = follows(e, p, now), of_host = follows(host, p, now), expected = in_turn || of_host;

	if (!expected && e->in_turn == UR_IDENT_TRUSTED && e->alarms < UR_IDENT_ALARMS && !second_leap(e)) {
		e->doubted = true;
		return false;
	}
	move_on(host, p, of_host, of_host, now);
	move_on(e, p, expected, in_turn, now);
	return true;
}
