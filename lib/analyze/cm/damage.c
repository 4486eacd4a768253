/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CRC is linear: of one wrong bit the difference tells the place, and then all fields of the packet are known. A device that translates
 * addresses or ports changes the same bits of each packet's headers, so the state of the CRC after these differs by the same in all.
 *
 * Findings of a direction wait until there are more than HELD of them or a packet without damage: when there is none of the latter, one
 * sentence says what all have in common.
 */
#include "analyze/cm/damage.h"

#include <stdlib.h>

#include "analyze/flow/flow.h"
#include "analyze/frame/hash.h"
#include "analyze/state/report.h"
#include "analyze/state/window.h"
#include "wire/frame.h"

#define PATHS_MAX 1024
#define HELD 4
#define LOCATED_MAX 1000 /* packets of a direction whose wrong bit is looked for */

struct path {
	struct ur_table_node node;
	struct path *next;
	struct ur_gid src, dst;
	uint64_t bad;
	bool good; /* there are packets without damage, too */
	struct ur_finding held[HELD];
	uint32_t nheld;
	uint32_t change; /* of the state after the IP header; in all so far when `same` */
	bool same;
	const char *why; /* NULL: they differ */
};

/* --- one wrong bit --- */

static const char *field_of(const struct an_pkt *p, uint32_t byte)
{
	static const struct {
		uint8_t upto;
		const char *name;
	} bth[] = {{1, "the opcode"},         {2, "the flags of the BTH"}, {4, "the P_Key"}, {5, "the flags of the BTH"},
		   {8, "the destination QP"}, {9, "the flags of the BTH"}, {12, "the PSN"}};
	const uint32_t at = (uint32_t)(p->udp - p->l3), head = at - UR_UDP_LEN;

	if (byte < head)
		return "the IP header";
	if (byte < at)
		return "the UDP header";
	for (unsigned i = 0; i < ur_array_size(bth); i++)
		if (byte < at + bth[i].upto)
			return bth[i].name;
	if (p->op->name && byte < at + UR_BTH_LEN + p->op->ext_len)
		return "the headers after the BTH";
	return byte < at + p->udp_len - UR_ICRC_LEN ? "the payload" : "the ICRC itself";
}

/* The packet as it was sent, in `room`; false when not exactly one bit is wrong. */
static bool repair(const struct an_pkt *p, uint8_t *room, size_t size, struct an_pkt *fixed, struct ur_finding *say)
{
	const uint32_t all = (uint32_t)(p->udp - p->l3) + p->udp_len, covered = all - UR_ICRC_LEN;
	struct ur_an_frame f = {.number = p->frame, .when = p->when, .link = UR_AN_RAW_IP, .data = room, .have = all, .len = all};
	uint32_t byte;
	unsigned bit;

	if (all > size || !ur_icrc_wrong_bit(p->diff, covered, &byte, &bit))
		return false;
	memcpy(room, p->l3, all);
	room[byte] ^= (uint8_t)(1u << bit);
	if (!an_dissect(&f, fixed) || fixed->icrc != AN_ICRC_OK || !fixed->ext || fixed->wrong || fixed->bad_opcode)
		return false;
	say->v[2] = byte;
	say->v[3] = 1u << bit;
	say->s[0] = "one bit is wrong, in {s1} (byte {2} of the IP packet, {x3})";
	say->s[1] = field_of(fixed, byte);
	return true;
}

/* --- its place among the others --- */

/* It is no request that the other end gets, and none that is missing here: a hole of which everything has been said. */
static void put_request(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	struct an_stream *s = &f->s;
	const struct an_req hole = {.psn = psn, .n = 1, .frame = p->frame, .when = p->when, .flags = AN_REPORTED | AN_DAMAGED};
	struct an_req *r = psn == s->next ? an_hole_insert(a, s, s->w.n, &hole) : NULL;

	if (!r)
		return;
	if (p->op->flags & UR_OPF_READ && p->ext) {
		struct ur_reth h;

		ur_reth_get(p->ext + p->op->off_reth, &h);
		r->got = p->icrc == AN_ICRC_WRONG || !f->mtu || h.len > 1u << 31; /* how many PSNs it takes is not known */
		r->n = r->got ? 1 : an_npkts(h.len, f->mtu);
	}
	s->next = psn + r->n;
	an_message_lost(s);
	if (f->service == UR_UC)
		s->acked = s->next;
}

static void put_response(struct ur_analysis *a, struct an_flow *f, const struct an_pkt *p, uint64_t psn)
{
	const uint32_t i = an_window_find(&f->s.w, psn);
	struct an_req *r = i < f->s.w.n ? an_req_at(&f->s.w, i) : NULL;
	const uint32_t at = r ? (uint32_t)(psn - r->psn) : 0;

	if (!r || r->flags & AN_HOLE || p->bth.opcode % 32 == UR_OP_ACK || !an_takes_answer(ur_opcode(r->opcode)))
		return;
	an_seen_note(a, &f->s, psn, p->frame);
	if (at == r->again && r->again < r->upto)
		r->again = at + 1;
	if (at != r->got)
		return;
	r->got = at + 1;
	if (r->got >= r->n && !r->gap_n && !(r->flags & AN_REPORTED))
		an_read_over(&f->s, r);
}

struct an_flow *an_damage_note(struct ur_analysis *a, const struct an_pkt *p)
{
	struct an_flow *f = an_flow_find(a, &p->src, &p->dst, p->bth.dqpn);

	if (!f)
		return NULL;
	f->facts.damaged++;
	f->facts.damaged_frame = p->frame;
	return f;
}

static void place_damaged(struct ur_analysis *a, const struct an_pkt *p)
{
	struct an_flow *f = an_damage_note(a, p);

	if (!f || p->bad_opcode || !p->op->name || (p->bth.opcode & UR_SERVICE_MASK) != f->service)
		return;
	if (!an_is_answer(p)) {
		if (f->s.begun || an_stream_begin_agreed(f, p->bth.psn))
			put_request(a, f, p, an_unwrap(f->s.next, p->bth.psn));
	} else if (f->peer && f->peer->s.begun) {
		put_response(a, f->peer, p, an_unwrap(f->peer->s.next, p->bth.psn));
	}
}

/* --- directions --- */

static struct path *find_path(const struct ur_analysis *a, const struct an_pkt *p)
{
	struct path *t;

	ur_table_for_each (t, &a->paths, an_key(a->salt, &p->src, &p->dst, 2), node)
		if (ur_gid_eq(&t->src, &p->src) && ur_gid_eq(&t->dst, &p->dst))
			return t;
	return NULL;
}

/* Has a packet without damage gone this way? */
static bool had_good(const struct ur_analysis *a, const struct an_pkt *p)
{
	for (uint32_t i = 0; i < a->nconn; i++)
		for (const struct an_flow *f = a->conn[i]; f; f = f == a->conn[i] ? f->peer : NULL)
			if (f->packets && ur_gid_eq(&f->src, &p->src) && ur_gid_eq(&f->dst, &p->dst))
				return true;
	return a->total.cm || a->total.datagrams;
}

static struct path *path_of(struct ur_analysis *a, const struct an_pkt *p)
{
	struct path *t = find_path(a, p);

	if (t || a->npaths == PATHS_MAX)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->src = p->src;
	t->dst = p->dst;
	t->good = had_good(a, p);
	t->same = true;
	t->why = p->why;
	if (!ur_table_add(&a->paths, &t->node, an_key(a->salt, &p->src, &p->dst, 2))) {
		free(t);
		return NULL;
	}
	t->next = a->path;
	a->path = t;
	a->npaths++;
	return t;
}

static void note_change(struct path *t, const struct an_pkt *p)
{
	const uint32_t at = (uint32_t)(p->udp - p->l3), covered = at + p->udp_len - UR_ICRC_LEN;
	const uint32_t change = ur_icrc_state_change(p->diff, at, covered);

	t->same &= t->bad == 1 || change == t->change;
	t->change = change;
	t->why = t->why == p->why ? p->why : NULL;
}

static void say_all(struct ur_analysis *a, struct path *t)
{
	struct ur_finding say = t->held[0];

	say.qpn = 0;
	say.v[0] = t->bad;
	say.s[0] = "in all {0} packets from {src} to {dst}, {s1}";
	say.s[1] = t->same  ? "by the same change of their IP and UDP headers: a device on the way translates addresses or ports"
		   : t->why ? t->why
			    : "as something on the way changes each of them, or their sender computes it otherwise";
	an_report(a, &say);
}

static void flush(struct ur_analysis *a, struct path *t)
{
	if (t->bad > HELD)
		say_all(a, t);
	for (uint32_t i = 0; i < t->nheld && t->bad <= HELD; i++)
		an_report(a, &t->held[i]);
	t->nheld = 0;
}

void an_damage(struct ur_analysis *a, const struct an_pkt *p)
{
	struct ur_finding say = {.rule = UR_RULE_ICRC,
				 .frame = p->frame,
				 .when = p->when,
				 .src = p->src,
				 .dst = p->dst,
				 .qpn = p->bth.dqpn,
				 .s = {p->why ? p->why : ""}};
	struct path *t = path_of(a, p);
	uint8_t room[UR_PKT_ROOM];
	struct an_pkt fixed;
	bool whole = p->l3 && p->udp && p->udp_len >= UR_BTH_LEN + UR_ICRC_LEN;

	a->total.damaged++;
	if (t) {
		t->bad++;
		if (whole)
			note_change(t, p);
	}
	whole &= t && t->bad <= LOCATED_MAX;
	place_damaged(a, whole && repair(p, room, sizeof(room), &fixed, &say) ? &fixed : p);
	if (!t || t->good)
		an_report(a, &say);
	else if (t->nheld < HELD)
		t->held[t->nheld++] = say;
}

void an_damage_none(struct ur_analysis *a, const struct an_pkt *p)
{
	struct path *t = find_path(a, p);

	if (!t || t->good)
		return;
	flush(a, t);
	t->good = true;
}

void an_damage_finish(struct ur_analysis *a)
{
	for (struct path *t = a->path; t; t = t->next)
		if (t->nheld)
			flush(a, t);
}

void an_damage_fini(struct ur_analysis *a)
{
	for (struct path *t = a->path, *next; t; t = next) {
		next = t->next;
		free(t);
	}
	ur_table_fini(&a->paths);
}
