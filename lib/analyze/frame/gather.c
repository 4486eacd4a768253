/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts lie where they belong in the packet; a bit for each eight bytes says which are there. Parts that overlap may differ: the first
 * counts. */
#include "analyze/frame/gather.h"

#include <stdlib.h>

#include "analyze/frame/walk.h"
#include "wire/frame.h"
#include "wire/ip.h"

#define DATA_MAX 65536
#define UNITS (DATA_MAX / 8)
#define DONT_FRAGMENT 0x40      /* in byte 6 of IPv4 */
#define PATIENCE_NS UR_NS_PER_S /* parts leave together: after that an identification may belong to another packet */

struct packet {
	uint64_t age; /* 0: none */
	ur_time when; /* of its newest part */
	struct ur_gid src, dst;
	uint32_t id, room;
	uint8_t version, proto;
	uint32_t end;  /* of the last part; 0: it has not come */
	uint32_t most; /* the farthest byte that came */
	uint32_t units;
	uint64_t have[UNITS / 64];
	uint8_t head[UR_IP6_LEN];
	uint8_t *data;
};

/* Few recordings have parts of packets: room is made for the first. */
struct ur_gatherer {
	struct packet *packet; /* UR_AN_GATHERED */
	uint64_t age;
	uint8_t *out;
};

static bool prepare(struct ur_gatherer *g)
{
	if (!g->packet)
		g->packet = calloc(UR_AN_GATHERED, sizeof(*g->packet));
	if (!g->out)
		g->out = malloc(UR_IP6_LEN + DATA_MAX);
	return g->packet && g->out;
}

struct ur_gatherer *ur_gatherer_create(void)
{
	return calloc(1, sizeof(struct ur_gatherer));
}

void ur_gatherer_destroy(struct ur_gatherer *g)
{
	if (!g)
		return;
	for (unsigned i = 0; g->packet && i < UR_AN_GATHERED; i++)
		free(g->packet[i].data);
	free(g->packet);
	free(g->out);
	free(g);
}

static void forget(struct packet *k)
{
	uint8_t *data = k->data;
	const uint32_t room = k->room;

	memset(k, 0, sizeof(*k));
	k->data = data;
	k->room = room;
}

static struct packet *packet_of(struct ur_gatherer *g, const struct an_pkt *p, const struct an_fragment *part, ur_time when)
{
	struct packet *oldest = g->packet;

	for (struct packet *k = g->packet; k < g->packet + UR_AN_GATHERED; k++) {
		if (k->age && k->id == part->id && k->version == p->ip_version && k->proto == part->proto && ur_gid_eq(&k->src, &p->src) &&
		    ur_gid_eq(&k->dst, &p->dst)) {
			if (when > k->when + PATIENCE_NS) {
				oldest = k;
				break;
			}
			k->when = when;
			return k;
		}
		oldest = k->age < oldest->age ? k : oldest;
	}
	forget(oldest);
	oldest->age = ++g->age;
	oldest->when = when;
	oldest->src = p->src;
	oldest->dst = p->dst;
	oldest->id = part->id;
	oldest->version = p->ip_version;
	oldest->proto = part->proto;
	return oldest;
}

static bool make_room(struct packet *k, uint32_t n)
{
	uint8_t *more;

	if (n <= k->room)
		return true;
	n = (n + 4095) & ~4095u;
	more = realloc(k->data, n);
	if (!more)
		return false;
	k->data = more;
	k->room = n;
	return true;
}

static bool has_unit(const struct packet *k, uint32_t i)
{
	return k->have[i / 64] >> i % 64 & 1;
}

static bool put_part(struct packet *k, const struct an_pkt *p, const struct an_fragment *part)
{
	const uint32_t end = part->at + part->n;

	if (end > DATA_MAX - 8 || (part->more && part->n % 8) || (k->end && end > k->end) || !make_room(k, end))
		return false;
	for (uint32_t at = part->at; at < end; at += 8) {
		const uint32_t unit = at / 8, n = end - at < 8 ? end - at : 8;

		if (has_unit(k, unit))
			continue;
		k->have[unit / 64] |= 1ull << unit % 64;
		k->units++;
		memcpy(k->data + at, part->data + (at - part->at), n);
	}
	if (!part->at)
		memcpy(k->head, p->ip, p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN);
	k->most = end > k->most ? end : k->most;
	if (!part->more)
		k->end = end;
	return !k->end || k->most <= k->end;
}

/* Who cut a packet that forbade that has cleared "don't fragment" in all parts, and the ICRC covers it. */
static void restore_flag(uint8_t *ip, uint32_t n)
{
	const size_t covered = n - UR_ICRC_LEN;

	if (n < UR_IP4_LEN + UR_UDP_LEN + UR_BTH_LEN + UR_ICRC_LEN || ip[9] != UR_PROTO_UDP ||
	    ur_get16(ip + UR_IP4_LEN + 2) != UR_ROCE_PORT)
		return;
	ip[6] = DONT_FRAGMENT;
	if (an_icrc(ip, 4, covered) != ur_get_le32(ip + covered))
		ip[6] = 0;
}

/* The packet as it was sent, in a frame of raw IP. */
static bool whole(struct ur_gatherer *g, const struct packet *k, struct ur_an_frame *f)
{
	const uint32_t head = k->version == 4 ? UR_IP4_LEN : UR_IP6_LEN, n = head + k->end;

	if (n > UINT16_MAX)
		return false;
	memcpy(g->out, k->head, head);
	memcpy(g->out + head, k->data, k->end);
	if (k->version == 4) {
		g->out[0] = 0x45;
		ur_put16(g->out + 2, (uint16_t)n);
		ur_put16(g->out + 6, 0);
		restore_flag(g->out, n);
	} else {
		ur_put16(g->out + 4, (uint16_t)k->end);
		g->out[6] = k->proto;
	}
	f->link = UR_AN_RAW_IP;
	f->data = g->out;
	f->have = f->len = n;
	return true;
}

bool ur_gather_part(struct ur_gatherer *g, struct ur_an_frame *f)
{
	struct an_pkt p = {0};
	struct an_walk w;
	struct packet *k;

	for (unsigned depth = 0; depth < 4; depth++) { /* fragments of a tunnel may have fragments in them */
		if (an_walk(f, &p, &w) || !w.fragment.n || !prepare(g))
			return false;
		k = packet_of(g, &p, &w.fragment, f->when);
		if (!put_part(k, &p, &w.fragment)) {
			forget(k);
			return false;
		}
		if (!k->end || k->units * 8 < k->end)
			return true;
		if (!whole(g, k, f)) {
			forget(k);
			return false;
		}
		forget(k);
	}
	return false;
}
