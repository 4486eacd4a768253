/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a frame: it is copied after an Ethernet header of ours and changed there, from the inside to the outside. */
#include "analyze/change/rewrite.h"

#include <stdlib.h>

#include "analyze/change/rewrite_priv.h"
#include "analyze/frame/recorded_train.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define MACS_LEN 12

struct copy {
	const struct an_pkt *p;  /* what is copied */
	uint8_t *ip;             /* the copy of p->ip */
	const uint8_t *last_hop; /* in it, where a route goes on: the destination in the end; NULL */
};

static uint8_t *copied(const struct copy *c, const uint8_t *original)
{
	return c->ip + (original - c->p->ip);
}

/* --- inside --- */

static void headers(struct ur_rewrite *w, const struct copy *c)
{
	const struct an_pkt *p = c->p;
	const bool alone = (p->bth.opcode & UR_SERVICE_MASK) == UR_UD;
	uint8_t *bth = copied(c, p->bth_at);

	ur_put24(bth + UR_BTH_QPN, rewrite_qpn(w, &p->dst, p->bth.dqpn));
	if (p->bth.opcode != UR_OP_CNP) /* whose PSN is zero */
		ur_put24(bth + UR_BTH_PSN, rewrite_psn(w, &p->src, alone ? NULL : &p->dst, p->bth.psn));
	if (p->ext && p->op->flags & UR_OPF_DETH) {
		uint8_t *deth = copied(c, p->ext) + p->op->off_deth;

		ur_put24(deth + 5, rewrite_qpn(w, &p->src, ur_get24(deth + 5)));
	}
}

/* The operands and results of atomics are data as well, and only zero goes on being a sum of them; an immediate is data. */
static void data_in_headers(struct ur_rewrite *w, const struct copy *c)
{
	const struct ur_opcode_info *op = c->p->op;
	uint8_t *ext = copied(c, c->p->ext);

	if (w->c.payload == UR_PAYLOAD_KEEP)
		return;
	if (op->flags & UR_OPF_ATOMICETH)
		memset(ext + op->off_atomiceth + 12, 0, 16);
	if (op->flags & UR_OPF_ATOMICACKETH)
		memset(ext + op->off_atomicacketh, 0, 8);
	if (op->flags & UR_OPF_IMM)
		rewrite_data(w, ext + op->off_imm, 4);
}

static void payload(struct ur_rewrite *w, const struct copy *c)
{
	const struct an_pkt *p = c->p;
	const uint8_t *end = p->ip + p->ip_have, *from = p->l4 + UR_UDP_LEN; /* all of it, when its headers cannot be read */
	size_t len;

	if (p->ext) {
		data_in_headers(w, c);
		from = p->payload;
	} else if (p->bth_at) {
		from = p->bth_at + UR_BTH_LEN;
	}
	if (from >= end)
		return;
	len = (size_t)(end - from);
	if (p->ext && len > p->payload_len)
		len = p->payload_len;
	else if (!p->ext && p->ip_have == p->ip_len)
		len -= len < UR_ICRC_LEN ? len : UR_ICRC_LEN;
	if (p->ext && p->bth.dqpn == 1 && p->payload_len == UR_MAD_LEN && p->op->flags & UR_OPF_DETH &&
	    rewrite_cm(w, p, copied(c, from), len))
		return;
	rewrite_data(w, copied(c, from), len);
}

/* --- outside --- */

/* Those of the header: where a route goes on, its destination is the next hop, and not where the packet goes in the end. */
static void addresses(struct ur_rewrite *w, struct copy *c)
{
	const bool v4 = c->p->ip_version == 4;
	struct ur_gid src = c->p->src, dst = c->p->dst;

	if (!v4)
		memcpy(dst.raw, c->p->ip + 24, 16);
	src = rewrite_addr(w, &src);
	dst = rewrite_addr(w, &dst);
	memcpy(c->ip + (v4 ? 12 : 8), src.raw + (v4 ? 12 : 0), v4 ? 4 : 16);
	memcpy(c->ip + (v4 ? 16 : 24), dst.raw + (v4 ? 12 : 0), v4 ? 4 : 16);
	c->last_hop = rewrite_options(w, c->p, c->ip);
	if (v4)
		an_checksum_ip4(c->ip, (c->ip[0] & 15u) * 4u);
}

/* Behind options. One of which nothing could be said is a sum over the old addresses all the same. */
static void bare_icrc(const struct ur_rewrite *w, const struct copy *c)
{
	const struct an_pkt *p = c->p;
	const uint32_t at = (uint32_t)(p->l4 - p->ip) + UR_UDP_LEN;
	const bool whole = p->ip_have == p->ip_len && p->ip_len >= at + UR_BTH_LEN + UR_ICRC_LEN;

	if (whole && p->icrc == AN_ICRC_OK)
		ur_put_le32(c->ip + p->ip_len - UR_ICRC_LEN,
			    an_icrc_bare(c->ip, p->ip_version, c->last_hop, copied(c, p->l4), p->ip_len - at));
	else if (whole && w->c.new_addr)
		ur_put_le32(c->ip + p->ip_len - UR_ICRC_LEN, 0);
}

/* A right ICRC stays right, and a wrong one wrong in the same way, so that what explains it still does. */
static void icrc(const struct ur_rewrite *w, const struct copy *c)
{
	const struct an_pkt *p = c->p;
	const uint8_t v = p->ip_version;
	const size_t covered = p->ip_len - UR_ICRC_LEN;
	uint32_t had, right, now;

	if (!p->l3)
		bare_icrc(w, c);
	if (p->icrc == AN_ICRC_UNKNOWN || !p->l3)
		return;
	now = an_icrc(c->ip, v, covered);
	if (p->icrc == AN_ICRC_WRONG) {
		had = ur_get_le32(p->ip + covered);
		right = an_icrc(p->ip, v, covered);
		if (had == 0)
			now = 0;
		else if (had == __builtin_bswap32(right))
			now = __builtin_bswap32(now);
		else if (p->bth.pad && p->bth.pad < covered && had == an_icrc(p->ip, v, covered - p->bth.pad))
			now = an_icrc(c->ip, v, covered - p->bth.pad);
		else
			now ^= had ^ right;
	}
	ur_put_le32(c->ip + covered, now);
}

static void udp_checksum(const struct copy *c)
{
	uint8_t *udp = copied(c, c->p->l4);

	if (c->p->udp)
		an_checksum_udp(c->ip, c->p->ip_version, udp, c->p->udp_len + UR_UDP_LEN);
	else
		memset(udp + 6, 0, 2); /* cut, so nobody can tell */
}

/* MAC addresses made of IP addresses, for frames that had none. */
static struct ur_mac invented(struct ur_rewrite *w, const struct ur_gid *g)
{
	struct ur_gid now = rewrite_addr(w, g);
	struct ur_mac m = {{2}};

	memcpy(m.b + 2, now.raw + 12, 4);
	return m;
}

static void ethernet(struct ur_rewrite *w, const struct an_pkt *p, const uint8_t *eth, uint8_t *to)
{
	struct ur_mac dst, src;

	if (eth) {
		memcpy(dst.b, eth, 6);
		memcpy(src.b, eth + 6, 6);
		src = rewrite_mac(w, &src);
		dst = rewrite_mac(w, &dst);
	} else {
		src = invented(w, &p->src);
		dst = invented(w, &p->dst);
	}
	memcpy(to, dst.b, 6);
	memcpy(to + 6, src.b, 6);
}

/* --- all of it --- */

static bool make_room(struct ur_rewrite *w, size_t size)
{
	uint8_t *more;

	if (size <= w->size)
		return true;
	more = realloc(w->room, size);
	if (!more)
		return false;
	w->room = more;
	w->size = size;
	return true;
}

/* `outer` has the Ethernet header and the tags; it is the packet itself, except for one of a train. */
static void emit(struct ur_rewrite *w, const struct an_pkt *p, const struct an_pkt *outer)
{
	static const uint8_t types[2][2] = {{0x08, 0x00}, {0x86, 0xdd}};
	const uint8_t *tags = outer->eth ? outer->eth + MACS_LEN : types[p->ip_version == 6];
	const uint32_t ntags = outer->eth ? (uint32_t)(outer->ip - tags) : 2, head = MACS_LEN + ntags;
	struct ur_an_frame f = {
		.number = p->frame, .when = p->when, .link = UR_AN_ETHERNET, .have = head + p->ip_have, .len = head + p->ip_len};
	struct copy c = {.p = p};

	if (!make_room(w, f.have))
		return;
	w->full = false;
	c.ip = w->room + head;
	f.data = w->room;
	ethernet(w, p, outer->eth, w->room);
	memcpy(w->room + MACS_LEN, tags, ntags);
	memcpy(c.ip, p->ip, p->ip_have);
	if (p->bth_at)
		headers(w, &c);
	payload(w, &c);
	addresses(w, &c);
	icrc(w, &c);
	udp_checksum(&c);
	if (w->full) {
		w->total.hosts++;
		return;
	}
	w->total.written++;
	w->out(w->ctx, &f);
}

void ur_rewrite_frame(struct ur_rewrite *w, const struct ur_an_frame *f)
{
	const struct an_pkt *p;
	struct an_train t;

	w->total.frames++;
	an_train_first(&t, f);
	if (!t.whole.roce || !t.whole.ip || !t.whole.l4) {
		w->total.other++;
		return;
	}
	while ((p = an_train_next(&t)))
		emit(w, p, &t.whole);
}

struct ur_rewrite *ur_rewrite_create(const struct ur_rewrite_config *c, ur_rewrite_fn out, void *ctx)
{
	struct ur_rewrite *w = calloc(1, sizeof(*w));
	struct ur_random r;

	if (!w)
		return NULL;
	w->c = *c;
	w->out = out;
	w->ctx = ctx;
	ur_random_init(&r, &c->seed);
	w->key = ur_random_u64(&r);
	ur_random_bytes(&r, w->data_key, sizeof(w->data_key));
	return w;
}

void ur_rewrite_destroy(struct ur_rewrite *w)
{
	if (!w)
		return;
	rewrite_names_fini(w);
	free(w->room);
	free(w);
}

void ur_rewrite_totals(const struct ur_rewrite *w, struct ur_rewrite_totals *t)
{
	*t = w->total;
}
