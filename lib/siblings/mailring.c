/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/mailring.h"

#include <string.h>

#define ALIGN 16u
#define PASSED (UR_PKT_LOCAL | UR_PKT_BARE | UR_PKT_BULK | UR_PKT_SLIM) /* of a packet's flags */
#define SKIP UINT32_MAX                                                 /* as a length: nothing more up to the ring's end */

/* All but `len` and `flags` are a bare packet's; `place` of a slim one is the length of the headers that it goes without. */
struct record {
	uint32_t len;
	uint16_t sport, place;
	uint32_t flow_label;
	uint8_t flags, ip_version, ttl, tos;
};

/* Follows the record of a bare packet. */
struct addresses {
	struct ur_gid src, dst;
};
_Static_assert(sizeof(struct record) % ALIGN == 0 && sizeof(struct addresses) % ALIGN == 0, "the bytes of a packet are aligned");

/* What stands before the bytes of a packet with these flags. */
static uint32_t head_of(uint8_t flags)
{
	return (uint32_t)(sizeof(struct record) + (flags & UR_PKT_BARE ? sizeof(struct addresses) : 0));
}

static uint32_t bytes_of(uint8_t flags, uint32_t len)
{
	return (head_of(flags) + len + ALIGN - 1) & ~(ALIGN - 1);
}

/* Bytes of a packet that are not passed on. */
static uint32_t left_out(const struct ur_pkt *p)
{
	return p->flags & UR_PKT_SLIM ? p->bth_off : 0;
}

static void put_record(uint8_t *to, const struct ur_pkt *p, uint32_t len)
{
	struct record r = {.len = len, .flags = p->flags & PASSED, .place = (uint16_t)left_out(p)};

	if (ur_unlikely(p->flags & UR_PKT_BARE)) {
		const struct addresses a = {p->src, p->dst};

		r.sport = p->sport;
		r.place = p->place;
		r.ip_version = p->ip_version;
		r.ttl = p->ttl;
		r.tos = p->tos;
		r.flow_label = p->flow_label;
		memcpy(to + sizeof(r), &a, sizeof(a));
	}
	memcpy(to, &r, sizeof(r));
	ur_pkt_gather(p, left_out(p), to + head_of(p->flags));
}

/*
 * An empty ring begins anew at its start now and then: one in which little waits at a time does not walk through all its memory. The bytes
 * that are left out count as used until the reader has passed them, so there is less room for that long, though not less than a quarter.
 */
static bool begin_anew(uint32_t size, uint32_t at, uint32_t waiting)
{
	return !waiting && at >= size / 4;
}

bool ur_mailring_put(uint8_t *ring, uint32_t size, uint32_t *tail, uint32_t head, const struct ur_pkt *p)
{
	uint32_t len = ur_pkt_frame_len(p) - left_out(p), need = bytes_of(p->flags, len);
	uint32_t at = *tail & (size - 1), waiting = *tail - head, skip = 0;

	if (ur_unlikely(len > UR_PKT_ROOM))
		return true;
	if (ur_unlikely(need > size - at || begin_anew(size, at, waiting)))
		skip = size - at;
	if (ur_unlikely(waiting > size || skip + need > size - waiting))
		return false;
	if (skip) {
		const uint32_t mark = SKIP;

		memcpy(ring + at, &mark, sizeof(mark));
		at = 0;
	}
	put_record(ring + at, p, len);
	*tail += skip + need;
	return true;
}

/* Its writer may change it meanwhile: each word is loaded once, and what was loaded is what is judged. */
static void get_record(struct record *r, const uint8_t *from)
{
	uint64_t w[sizeof(*r) / 8];

	for (unsigned i = 0; i < ur_array_size(w); i++)
		w[i] = __atomic_load_n((const uint64_t *)(const void *)from + i, __ATOMIC_RELAXED);
	memcpy(r, w, sizeof(*r));
}

static void fill_bare(struct ur_pkt *p, const struct record *r, const uint8_t *from)
{
	struct addresses a;

	memcpy(&a, from, sizeof(a)); /* any bytes are addresses */
	p->sport = r->sport;
	p->ip_version = r->ip_version == 4 ? 4 : 6;
	p->ttl = r->ttl;
	p->tos = r->tos;
	p->flow_label = r->flow_label & 0xfffff;
	p->src = a.src;
	p->dst = a.dst;
}

static void fill(struct ur_pkt *p, const struct record *r, const uint8_t *from)
{
	p->len = r->len;
	p->flags = r->flags & PASSED;
	p->place = r->place;
	if (ur_unlikely(p->flags & UR_PKT_BARE))
		fill_bare(p, r, from + sizeof(*r));
	memcpy(p->data, from + head_of(r->flags), r->len);
}

/* Moves after the mark that stands where no record had room before the ring's end. */
static void skip_end(const uint8_t *ring, uint32_t size, uint32_t *head)
{
	uint32_t at = *head & (size - 1);

	if (__atomic_load_n((const uint32_t *)(const void *)(ring + at), __ATOMIC_RELAXED) == SKIP)
		*head += size - at;
}

static bool take_record(const uint8_t *ring, uint32_t size, uint32_t *head, uint32_t tail, struct ur_pkt *p)
{
	uint32_t at = *head & (size - 1), left = ur_min_u32(tail - *head, size - at);
	struct record r;

	if (left < sizeof(r))
		return false;
	get_record(&r, ring + at);
	if (r.len > ur_min_u32(UR_PKT_ROOM, p->room) || bytes_of(r.flags, r.len) > left)
		return false;
	fill(p, &r, ring + at);
	*head += bytes_of(r.flags, r.len);
	return true;
}

bool ur_mailring_take(const uint8_t *ring, uint32_t size, uint32_t *head, uint32_t tail, struct ur_pkt *p)
{
	tail &= ~(ALIGN - 1);
	if (tail == *head)
		return false;
	if (ur_likely(tail - *head <= size)) {
		skip_end(ring, size, head);
		if (ur_likely(tail - *head <= size && take_record(ring, size, head, tail, p)))
			return true;
	}
	*head = tail; /* nothing that follows what is wrong can be found */
	return false;
}
