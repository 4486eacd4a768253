/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/keys.h"

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

void an_key_accepted(struct an_key keys[AN_KEYS], const struct an_req *r)
{
	struct an_key *k;

	if (!r->want || r->flags & AN_HOLE || r->va + r->want < r->va)
		return;
	k = an_key_find(keys, r->rkey);
	if (!k) {
		k = oldest(keys);
		*k = (struct an_key){.low = r->va, .high = r->va + r->want, .rkey = r->rkey};
	}
	k->low = r->va < k->low ? r->va : k->low;
	k->high = r->va + r->want > k->high ? r->va + r->want : k->high;
	k->frame = r->frame;
	k->kinds |= an_access_of(r);
}
