/* SPDX-License-Identifier: BSD-3-Clause */
/* A chained hash table of objects that hold their own links; it doubles when it has as many as chains. */
#include <stdlib.h>

#include "analyze/map.h"

#define SLOTS 256

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

uint64_t an_hash(const struct ur_gid *a, const struct ur_gid *b, uint64_t c)
{
	uint64_t w[4];

	memcpy(w, a->raw, 16);
	memcpy(w + 2, b->raw, 16);
	c = mix(c ^ w[0]) + w[1];
	c = mix(c ^ w[2]) + w[3];
	return mix(mix(c));
}

static bool grow(struct an_map *m)
{
	uint32_t slots = m->slot ? 2 * (m->mask + 1) : SLOTS;
	struct an_node **new = calloc(slots, sizeof(*new));

	if (!new)
		return false;
	for (uint32_t i = 0; m->slot && i <= m->mask; i++) {
		struct an_node *n, *next;

		for (n = m->slot[i]; n; n = next) {
			next = n->next;
			n->next = new[n->hash & (slots - 1)];
			new[n->hash & (slots - 1)] = n;
		}
	}
	free(m->slot);
	m->slot = new;
	m->mask = slots - 1;
	return true;
}

bool an_map_add(struct an_map *m, struct an_node *node, uint64_t hash)
{
	struct an_node **slot;

	if ((!m->slot || m->n > m->mask) && !grow(m) && !m->slot)
		return false;
	slot = &m->slot[hash & m->mask];
	node->hash = hash;
	node->next = *slot;
	*slot = node;
	m->n++;
	return true;
}

void an_map_del(struct an_map *m, struct an_node *node)
{
	struct an_node **at = &m->slot[node->hash & m->mask];

	while (*at && *at != node)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = node->next;
	m->n--;
}

struct an_node *an_map_first(const struct an_map *m, uint64_t hash)
{
	struct an_node *n = m->slot ? m->slot[hash & m->mask] : NULL;

	while (n && n->hash != hash)
		n = n->next;
	return n;
}

struct an_node *an_map_next(const struct an_node *node)
{
	struct an_node *n = node->next;

	while (n && n->hash != node->hash)
		n = n->next;
	return n;
}

void an_map_fini(struct an_map *m)
{
	free(m->slot);
	m->slot = NULL;
	m->mask = m->n = 0;
}
