/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What addresses, QPNs and PSNs become. New addresses are counted up in the order in which hosts appear, from ranges that are kept free for
 * such use; a QPN goes through a permutation that its host's address and the key choose, so nothing has to be remembered and no two become
 * one; a PSN is moved by what the key makes of the two hosts.
 */
#include <stdlib.h>

#include "analyze/change/rewrite_priv.h"
#include "analyze/frame/hash.h"
#include "base/rng.h"
#include "wire/frame.h"

#define NAMES_MAX 65535 /* hosts, and MAC addresses, that can be told apart by two bytes */
#define ROUNDS 4

struct name {
	struct ur_table_node node;
	struct ur_gid old; /* a MAC address stands in its first bytes */
	uint32_t number;
};

static const struct ur_gid none;

/* The number of `g`, from 1; 0 when there are too many, or memory is short. */
static uint32_t number_of(struct ur_table *t, const struct ur_gid *g, uint64_t key)
{
	const uint64_t hash = an_key(key, g, &none, 0);
	struct name *n;

	ur_table_for_each (n, t, hash, node)
		if (ur_gid_eq(&n->old, g))
			return n->number;
	n = t->used < NAMES_MAX ? calloc(1, sizeof(*n)) : NULL;
	if (!n)
		return 0;
	n->old = *g;
	n->number = t->used + 1;
	if (ur_table_add(t, &n->node, hash))
		return n->number;
	free(n);
	return 0;
}

static void free_name(struct ur_table_node *n)
{
	free(ur_container_of(n, struct name, node));
}

void rewrite_names_fini(struct ur_rewrite *w)
{
	ur_table_clear(&w->hosts, free_name);
	ur_table_clear(&w->macs, free_name);
}

/* --- addresses --- */

static bool begins(const struct ur_gid *g, const struct ur_rewrite_addr *m)
{
	const unsigned whole = m->bits / 8, rest = m->bits % 8;

	return memcmp(g->raw, m->old.raw, whole) == 0 && (!rest || (g->raw[whole] ^ m->old.raw[whole]) >> (8 - rest) == 0);
}

static struct ur_gid mapped(const struct ur_gid *g, const struct ur_rewrite_addr *m)
{
	struct ur_gid out = *g;

	for (unsigned bit = 0; bit < m->bits; bit++) {
		const uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		out.raw[bit / 8] = (uint8_t)((out.raw[bit / 8] & ~mask) | (m->new.raw[bit / 8] & mask));
	}
	return out;
}

struct ur_gid rewrite_addr(struct ur_rewrite *w, const struct ur_gid *g)
{
	static const struct ur_gid v6 = {.raw = {0x20, 0x01, 0x0d, 0xb8}};                          /* RFC 3849 */
	static const struct ur_gid v4 = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 198, [13] = 18}}; /* RFC 2544 */
	struct ur_gid out;
	uint32_t n;

	for (unsigned i = 0; i < w->c.naddr; i++)
		if (begins(g, &w->c.addr[i]))
			return mapped(g, &w->c.addr[i]);
	if (!w->c.new_addr || ur_gid_is_mcast(g) || ur_gid_is_zero(g))
		return *g;
	n = number_of(&w->hosts, g, w->key);
	w->full |= !n;
	out = ur_gid_is_v4(g) ? v4 : v6;
	ur_put16(out.raw + 14, (uint16_t)n);
	return out;
}

struct ur_mac rewrite_mac(struct ur_rewrite *w, const struct ur_mac *m)
{
	struct ur_mac out = {{2}}; /* locally administered */
	struct ur_gid g = {{0}};
	uint32_t n;

	for (unsigned i = 0; i < w->c.nmac; i++)
		if (memcmp(w->c.mac[i].old.b, m->b, 6) == 0)
			return w->c.mac[i].new;
	if (!w->c.new_mac || m->b[0] & 1)
		return *m;
	memcpy(g.raw, m->b, 6);
	n = number_of(&w->macs, &g, w->key);
	w->full |= !n;
	ur_put16(out.b + 4, (uint16_t)n);
	return out;
}

/* --- numbers --- */

/* A Feistel network over two halves of 12 bits: a permutation, whatever its rounds do. */
static uint32_t permute(uint64_t key, uint32_t v)
{
	uint32_t left = v >> 12, right = v & 0xfff;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ur_rng r = {key + ((uint64_t)right << 8 | i) * 0x9e3779b97f4a7c15ull};
		uint32_t next = left ^ (ur_rng_u32(&r) & 0xfff);

		left = right;
		right = next;
	}
	return left << 12 | right;
}

static bool special(uint32_t qpn)
{
	return qpn <= 1 || qpn == UR_QPN_MCAST;
}

uint32_t rewrite_qpn(const struct ur_rewrite *w, const struct ur_gid *g, uint32_t qpn)
{
	const uint64_t key = an_hash(g, &none, w->key);

	for (unsigned i = 0; i < w->c.nqpn; i++)
		if (w->c.qpn[i].old == qpn)
			return w->c.qpn[i].new;
	if (!w->c.new_qpn || special(qpn))
		return qpn;
	do {
		qpn = permute(key, qpn); /* going on until it is none of the special ones permutes the others */
	} while (special(qpn));
	return qpn;
}

uint32_t rewrite_psn(const struct ur_rewrite *w, const struct ur_gid *src, const struct ur_gid *dst, uint32_t psn)
{
	uint64_t move = w->c.psn_add;

	if (!dst)
		dst = &none;
	if (w->c.new_psn) /* the same whichever of the two it is that sends */
		move = memcmp(src, dst, sizeof(*src)) < 0 ? an_hash(src, dst, ~w->key) : an_hash(dst, src, ~w->key);
	return ur_psn_add(psn, (uint32_t)move & UR_PSN_MASK);
}

uint64_t rewrite_guid(const struct ur_rewrite *w, uint64_t guid)
{
	struct ur_gid g = {{1}};

	if (!w->c.new_mac || !guid)
		return guid;
	ur_put64(g.raw + 8, guid);
	return 0x02ull << 56 | an_hash(&g, &none, w->key) >> 8;
}
