/* SPDX-License-Identifier: BSD-3-Clause */
/* Each step checks that the bytes it reads were recorded, and hands the extent of what lies inside to the next. */
#include "analyze/dissect.h"

#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/ip.h"

#define VXLAN_PORT 4789
#define VXLAN_LEN 8
#define ETHERTYPE_QINQ 0x88a8
#define FRAGMENT 0x3fff /* of the IPv4 field of flags and offset */

struct view { /* what is left of the frame */
	const uint8_t *at;
	uint32_t have, len; /* recorded, and on the wire */
};

static bool skip(struct view *v, uint32_t n)
{
	if (v->have < n || v->len < n)
		return false;
	v->at += n;
	v->have -= n;
	v->len -= n;
	return true;
}

static void shorten(struct view *v, uint32_t len)
{
	v->len = len < v->len ? len : v->len;
	v->have = v->have < v->len ? v->have : v->len;
}

static bool wrong(struct an_pkt *p, const char *what)
{
	p->wrong = what;
	return true;
}

/* --- the ICRC --- */

uint32_t an_icrc(const uint8_t *l3, uint8_t version, size_t covered)
{
	uint8_t out[UR_ICRC_LEN];

	ur_icrc_end(ur_icrc_begin(l3, version, covered), out);
	return ur_get_le32(out);
}

/* What a wrong ICRC looks like, which helps to find its cause. */
static const char *explain(const struct an_pkt *p, const uint8_t *l3, size_t covered, uint32_t have, uint32_t want)
{
	uint16_t bits;

	if (have == __builtin_bswap32(want))
		return "its bytes are in reverse order";
	if ((have ^ want) == UINT32_MAX)
		return "it lacks the inversion at its end";
	if (have == 0)
		return "it is zero: the sender left it to a device that did not compute it";
	if (p->bth.pad && p->bth.pad < covered && have == an_icrc(l3, p->ip_version, covered - p->bth.pad))
		return "the sender left the pad bytes out of it, as old versions of rdma_rxe do";
	if (p->ip_version == 4 && ur_icrc_explain(have ^ want, 4, covered, &bits))
		return "another IPv4 identification explains it: a device on the way, or the recorder, has rewritten it";
	if (p->ip_version == 4 && ur_icrc_explain(have ^ want, 6, covered, &bits))
		return "other IPv4 flags explain it: a device on the way, or the recorder, has rewritten them";
	if (p->ip_version == 4 && ur_icrc_state_change(have ^ want, 4, covered) >> 16 == 0x40) /* "don't fragment" is in byte 6 */
		return "another IPv4 identification with \"don't fragment\" turned over explains it: a device on the way, or the recorder, "
		       "has "
		       "rewritten both";
	if (ur_icrc_explain(have ^ want, p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN, covered, &bits))
		return "another UDP source port explains it: a device on the way has rewritten it";
	return "the packet was damaged, or an address translated, on its way to the recorder";
}

static void check_icrc(struct an_pkt *p, const uint8_t *l3, size_t covered)
{
	uint32_t have = ur_get_le32(l3 + covered), want = an_icrc(l3, p->ip_version, covered);

	p->icrc = have == want ? AN_ICRC_OK : AN_ICRC_WRONG;
	p->diff = have ^ want;
	if (ur_unlikely(p->diff))
		p->why = explain(p, l3, covered, have, want);
}

/* --- BTH and what follows it --- */

/* A damaged packet contradicts itself, too. */
static bool contradicts(struct an_pkt *p, const uint8_t *l3, size_t covered, const char *what)
{
	p->icrc = AN_ICRC_UNKNOWN;
	if (!p->cut && l3)
		check_icrc(p, l3, covered);
	return wrong(p, what);
}

static bool extended(struct an_pkt *p, const struct view *v, const uint8_t *l3)
{
	const size_t covered = l3 ? (size_t)(v->at - l3) + v->len - UR_ICRC_LEN : 0;
	uint32_t rest;

	p->cut = v->have < v->len;
	if (v->len < (uint32_t)p->op->ext_len + UR_ICRC_LEN)
		return contradicts(p, l3, covered, "the packet is too short for the headers that its opcode requires");
	rest = v->len - p->op->ext_len - UR_ICRC_LEN;
	if (p->bth.pad > rest)
		return contradicts(p, l3, covered, "there are more pad bytes than bytes of payload");
	p->payload_len = rest - p->bth.pad;
	if (v->have < p->op->ext_len)
		return false;
	p->ext = v->at;
	p->payload = v->at + p->op->ext_len;
	p->icrc = AN_ICRC_UNKNOWN;
	if (!p->cut && l3)
		check_icrc(p, l3, covered);
	if (p->icrc == AN_ICRC_WRONG)
		return true;
	if (rest % 4)
		return wrong(p, "payload and pad bytes are not a multiple of four");
	if (rest && !(p->op->flags & UR_OPF_PAYLOAD))
		return wrong(p, "there are bytes after the headers of an opcode that has no payload");
	return true;
}

static bool roce(struct an_pkt *p, struct view v, const uint8_t *l3)
{
	p->roce = true;
	if (v.len < UR_BTH_LEN + UR_ICRC_LEN)
		return wrong(p, "the packet is too short for a BTH and an ICRC");
	if (v.have < UR_BTH_LEN) {
		p->cut = true;
		return false;
	}
	if (l3 && v.have == v.len) {
		p->l3 = l3;
		p->udp = v.at;
		p->udp_len = v.len;
	}
	p->bth_at = v.at;
	ur_bth_get(v.at, &p->bth);
	p->op = ur_opcode(p->bth.opcode);
	if (p->bth.tver || !p->op->name) {
		if (l3 && v.have == v.len)
			check_icrc(p, l3, (size_t)(v.at - l3) + v.len - UR_ICRC_LEN);
		p->bad_opcode = true;
		return true;
	}
	skip(&v, UR_BTH_LEN);
	return extended(p, &v, l3);
}

static bool ethernet(struct an_pkt *p, struct view v, unsigned depth);

/* `icrc_able`: the IP header has the form that the ICRC covers. */
static bool udp(struct an_pkt *p, struct view v, const uint8_t *l3, bool icrc_able, unsigned depth)
{
	uint16_t port, len;

	if (v.have < UR_UDP_LEN)
		return false;
	p->l4 = v.at;
	port = ur_get16(v.at + 2);
	len = ur_get16(v.at + 4);
	p->sport = ur_get16(v.at);
	if (port == VXLAN_PORT && depth && skip(&v, UR_UDP_LEN + VXLAN_LEN))
		return ethernet(p, v, depth - 1);
	if (port != UR_ROCE_PORT)
		return false;
	if (len != v.len) {
		p->roce = true;
		return wrong(p, "the UDP length contradicts the IP header");
	}
	skip(&v, UR_UDP_LEN);
	return roce(p, v, icrc_able ? l3 : NULL);
}

static void note_ip(struct an_pkt *p, const struct view *v, uint8_t version)
{
	p->ip = v->at;
	p->ip_have = v->have;
	p->ip_len = v->len;
	p->ip_version = version;
	p->l4 = NULL;
}

static bool ip4(struct an_pkt *p, struct view v, unsigned depth)
{
	const uint8_t *ip = v.at;
	uint32_t ihl, total, addr;

	if (v.have < UR_IP4_LEN)
		return false;
	ihl = (ip[0] & 15u) * 4;
	total = ur_get16(ip + 2);
	if (ip[0] >> 4 != 4 || ihl < UR_IP4_LEN)
		return false;
	note_ip(p, &v, 4);
	p->tos = ip[1];
	memcpy(&addr, ip + 12, 4);
	p->src = ur_gid_from_v4(addr);
	memcpy(&addr, ip + 16, 4);
	p->dst = ur_gid_from_v4(addr);
	if (ip[9] != UR_PROTO_UDP || ur_get16(ip + 6) & FRAGMENT)
		return false;
	if (total < ihl || total > v.len) {
		p->l4 = v.have >= ihl + UR_UDP_LEN ? ip + ihl : NULL;
		p->roce = p->l4 && ur_get16(p->l4 + 2) == UR_ROCE_PORT;
		return p->roce && wrong(p, "the IP header says that the packet is longer than the frame");
	}
	shorten(&v, total);
	note_ip(p, &v, 4);
	return skip(&v, ihl) && udp(p, v, ip, ihl == UR_IP4_LEN, depth);
}

static bool ip6(struct an_pkt *p, struct view v, unsigned depth)
{
	const uint8_t *ip = v.at;
	uint32_t len;

	if (v.have < UR_IP6_LEN)
		return false;
	len = ur_get16(ip + 4);
	if (ip[0] >> 4 != 6)
		return false;
	note_ip(p, &v, 6);
	p->tos = (uint8_t)(ur_get32(ip) >> 20);
	memcpy(p->src.raw, ip + 8, 16);
	memcpy(p->dst.raw, ip + 24, 16);
	if (ip[6] != UR_PROTO_UDP)
		return false;
	if (len > v.len - UR_IP6_LEN) {
		p->l4 = v.have >= UR_IP6_LEN + UR_UDP_LEN ? ip + UR_IP6_LEN : NULL;
		p->roce = p->l4 && ur_get16(p->l4 + 2) == UR_ROCE_PORT;
		return p->roce && wrong(p, "the IP header says that the packet is longer than the frame");
	}
	shorten(&v, UR_IP6_LEN + len);
	note_ip(p, &v, 6);
	return skip(&v, UR_IP6_LEN) && udp(p, v, ip, true, depth);
}

static bool layer3(struct an_pkt *p, struct view v, uint16_t type, unsigned depth)
{
	for (unsigned tags = 0; tags < 4 && (type == UR_ETHERTYPE_VLAN || type == ETHERTYPE_QINQ); tags++) {
		if (v.have < UR_VLAN_LEN)
			return false;
		type = ur_get16(v.at + 2);
		skip(&v, UR_VLAN_LEN);
	}
	if (type == UR_ETHERTYPE_IP4)
		return ip4(p, v, depth);
	return type == UR_ETHERTYPE_IP6 && ip6(p, v, depth);
}

static bool ethernet(struct an_pkt *p, struct view v, unsigned depth)
{
	uint16_t type;

	if (v.have < UR_ETH_LEN)
		return false;
	p->eth = v.at;
	type = ur_get16(v.at + 12);
	return skip(&v, UR_ETH_LEN) && layer3(p, v, type, depth);
}

/* Where the EtherType stands in the headers of Linux's cooked captures, and how long they are. */
static const struct {
	uint8_t type, len;
} cooked[] = {[UR_AN_SLL] = {14, 16}, [UR_AN_SLL2] = {0, 20}};

bool an_dissect(const struct ur_an_frame *f, struct an_pkt *p)
{
	struct view v = {f->data, f->have < f->len ? f->have : f->len, f->len};
	uint16_t type;

	memset(p, 0, sizeof(*p));
	p->frame = f->number;
	p->when = f->when;
	p->op = ur_opcode(0);
	switch (f->link) {
	case UR_AN_ETHERNET: return ethernet(p, v, 1);
	case UR_AN_RAW_IP: return v.have && layer3(p, v, v.at[0] >> 4 == 6 ? UR_ETHERTYPE_IP6 : UR_ETHERTYPE_IP4, 1);
	case UR_AN_SLL:
	case UR_AN_SLL2: break;
	}
	if (v.have < cooked[f->link].len)
		return false;
	type = ur_get16(v.at + cooked[f->link].type);
	return skip(&v, cooked[f->link].len) && layer3(p, v, type, 1);
}

bool an_bth_alone(struct an_pkt *p)
{
	static const uint8_t nothing[256];

	if (!p->cut || !p->bth_at || p->ext || p->bad_opcode || p->wrong || !p->op->ext_len)
		return false;
	p->ext = nothing;
	p->ext_cut = true;
	p->icrc = AN_ICRC_UNKNOWN;
	return true;
}

bool ur_an_has_packet(const struct ur_an_frame *f)
{
	struct an_pkt p;

	return an_dissect(f, &p) || an_bth_alone(&p);
}
