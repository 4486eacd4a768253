/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/keys.h"

#include <string.h>

struct an_key *an_key_find(struct an_key keys[AN_KEYS], uint32_t rkey)
{
	for (unsigned i = 0; i < AN_KEYS; i++)
		if (keys[i].frame && keys[i].rkey == rkey)
			return &keys[i];
	return NULL;
}

static struct an_key *oldest(struct an_key keys[AN_KEYS])
{
	struct an_key *k = keys;

	for (unsigned i = 1; i < AN_KEYS; i++)
		if (keys[i].frame < k->frame)
			k = &keys[i];
	return k;
}

struct an_key *an_key_newest(struct an_key keys[AN_KEYS])
{
	struct an_key *k = keys;

	for (unsigned i = 1; i < AN_KEYS; i++)
		if (keys[i].frame > k->frame)
			k = &keys[i];
	return k->frame ? k : NULL;
}

/* The newest comes first, since requests mostly use one key. */
static struct an_key *to_front(struct an_key keys[AN_KEYS], const struct an_req *r)
{
	struct an_key *k = an_key_find(keys, r->rkey), old;

	if (k) {
		old = *k;
	} else {
		k = oldest(keys);
		old = (struct an_key){.low = r->va, .high = r->va + r->want, .rkey = r->rkey};
	}
	memmove(keys + 1, keys, (size_t)(k - keys) * sizeof(*k));
	keys[0] = old;
	return keys;
}

void an_key_accepted(struct an_key keys[AN_KEYS], const struct an_req *r)
{
	const uint64_t end = r->va + r->want;
	struct an_key *k = keys;

	if (!r->want || r->flags & AN_HOLE || end < r->va)
		return;
	if (k->rkey != r->rkey || !k->frame)
		k = to_front(keys, r);
	k->low = r->va < k->low ? r->va : k->low;
	k->high = end > k->high ? end : k->high;
	k->frame = r->frame;
	k->kinds |= an_access_of(r);
}
