/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two frames are alike when all is that no hop may change: not the MAC addresses, traffic class, TTL and what depends on these. A host that
 * repeats a packet sends the like, too, so it is not single pairs that decide. In a recording that has each packet twice nearly every one
 * of the first frames has one partner. That stands next to it, or was recorded at another point, or is of a service that repeats nothing;
 * or there are pairs in both directions: a requester that goes back repeats what it sent, but its answers are others.
 */
#include "analyze/frame/twice.h"

#include <stdlib.h>

#include "analyze/frame/hash.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"

#define HELD_ROCE 256 /* packets that decide */
#define HELD_MAX 1024
#define HELD_BYTES (4u << 20)
#define HELD_NS (2 * UR_NS_PER_S) /* after which fewer decide: who reads along waits */
#define HELD_FEW 16
#define PAIRS_MIN 4
#define SETS 1024 /* of the table: a power of two */
#define WAYS 4
#define FAR_NS (100 * UR_NS_PER_MS) /* a copy comes sooner */
#define HEAD 64                     /* bytes after the UDP header that are compared, beside the last ones */

struct an_held_frame {
	struct ur_an_frame f;
	uint8_t *data;
	uint64_t key; /* 0: no packet */
	uint64_t place;
	bool forth; /* from the lower address */
	bool plain; /* of a service that repeats nothing */
};

struct an_original {
	uint64_t key; /* 0: none, or it has its copy */
	ur_time when;
	uint64_t place; /* MAC addresses and TTL */
};

/* Never 0. */
static uint64_t key_of(const struct an_pkt *p)
{
	const uint8_t *at = p->l4 ? p->l4 + UR_UDP_LEN : NULL, *end = p->ip + p->ip_have;
	const uint32_t n = at && end > at ? (uint32_t)(end - at) : 0, head = n < HEAD ? n : HEAD;
	uint64_t h = (uint64_t)p->ip_len << 16 ^ (p->ip_version == 4 ? ur_get16(p->ip + 4) : 0);

	if (n >= 4)
		h ^= (uint64_t)ur_get32(end - 4) << 32;
	h = an_mix(h ^ (uint64_t)p->sport << 40) ^ (head ? ur_icrc_add(0, at, head) : 0);
	return an_hash(&p->src, &p->dst, h) | 1;
}

static uint64_t place_of(const struct an_pkt *p)
{
	uint64_t h = p->ip_version == 4 ? p->ip[8] : p->ip[7];

	for (unsigned i = 0; p->eth && i < 12; i++)
		h = an_mix(h << 8 ^ p->eth[i]);
	return h;
}

static bool make_room(struct an_twice *t)
{
	const uint32_t room = t->held_room ? 2 * t->held_room : 32;
	struct an_held_frame *more;

	if (t->nheld < t->held_room)
		return true;
	more = t->nheld < HELD_MAX ? realloc(t->held, room * sizeof(*more)) : NULL;
	if (!more)
		return false;
	t->held = more;
	t->held_room = room;
	return true;
}

bool an_twice_hold(struct an_twice *t, const struct ur_an_frame *f)
{
	struct an_held_frame *h;
	struct an_pkt p;

	if (t->nroce >= HELD_FEW && f->when > t->held[0].f.when + HELD_NS)
		return false;
	if (t->nroce == HELD_ROCE || t->bytes + f->have > HELD_BYTES || !make_room(t))
		return false;
	h = &t->held[t->nheld];
	*h = (struct an_held_frame){.f = *f, .data = malloc(f->have ? f->have : 1)};
	if (!h->data)
		return false;
	memcpy(h->data, f->data, f->have);
	h->f.data = h->data;
	t->nheld++;
	t->bytes += f->have;
	if (an_dissect(&h->f, &p) && p.bth_at) {
		t->nroce++;
		h->key = key_of(&p);
		h->place = place_of(&p);
		h->plain = (p.bth.opcode & UR_SERVICE_MASK) == UR_UC || (p.bth.opcode & UR_SERVICE_MASK) == UR_UD;
		h->forth = memcmp(p.src.raw, p.dst.raw, 16) < 0;
	}
	return true;
}

const struct ur_an_frame *an_twice_held(const struct an_twice *t, uint32_t i)
{
	return &t->held[i].f;
}

/* The only like of frame `i`: its number, or nheld. */
static uint32_t partner(const struct an_twice *t, uint32_t i)
{
	uint32_t found = t->nheld;

	for (uint32_t k = 0; k < t->nheld; k++) {
		if (k == i || t->held[k].key != t->held[i].key)
			continue;
		if (found < t->nheld)
			return t->nheld;
		found = k;
	}
	return found;
}

void an_twice_decide(struct an_twice *t)
{
	uint32_t pairs[2] = {0}, sure = 0, all;

	for (uint32_t i = 0; i < t->nheld; i++) {
		const struct an_held_frame *h = &t->held[i];
		const uint32_t k = h->key ? partner(t, i) : t->nheld;

		if (k <= i || k == t->nheld || t->held[k].f.when - h->f.when > FAR_NS)
			continue;
		pairs[h->forth]++;
		sure += k == i + 1 || h->plain || t->held[k].place != h->place;
	}
	all = pairs[0] + pairs[1];
	/* The newest frames may still wait for theirs. */
	t->mode = AN_TWICE_NO;
	if (all >= PAIRS_MIN && 8 * all >= 3 * t->nroce && (4 * sure >= 3 * all || (pairs[0] > 1 && pairs[1] > 1)))
		an_twice_begin(t);
}

bool an_twice_begin(struct an_twice *t)
{
	t->table = calloc((size_t)SETS * WAYS, sizeof(*t->table));
	t->mode = t->table ? AN_TWICE_YES : AN_TWICE_NO;
	return t->table;
}

void an_twice_release(struct an_twice *t)
{
	for (uint32_t i = 0; i < t->nheld; i++)
		free(t->held[i].data);
	free(t->held);
	t->held = NULL;
	t->nheld = t->held_room = 0;
}

bool an_twice_is_copy(struct an_twice *t, const struct an_pkt *p)
{
	uint64_t key, place, later;
	struct an_original *set, *o;

	if (!t->table || !p->bth_at)
		return false;
	key = key_of(p);
	place = place_of(p);
	set = o = &t->table[(key >> 8 & (SETS - 1)) * WAYS];
	for (unsigned i = 1; i < WAYS && o->key != key; i++)
		if (set[i].key == key || (o->key && (!set[i].key || set[i].when < o->when)))
			o = &set[i];
	later = p->when > o->when ? p->when - o->when : 0;
	if (o->key != key || later > FAR_NS) {
		*o = (struct an_original){key, p->when, place};
		return false;
	}
	if (!t->n++) {
		t->first_frame = p->frame;
		t->min = later;
	}
	t->elsewhere |= o->place != place;
	t->sum += later;
	t->min = later < t->min ? later : t->min;
	t->max = later > t->max ? later : t->max;
	o->key = 0;
	return true;
}

void an_twice_free(struct an_twice *t)
{
	an_twice_release(t);
	free(t->table);
	t->table = NULL;
}
