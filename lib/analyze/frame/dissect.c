/* SPDX-License-Identifier: BSD-3-Clause */
/* Each step checks that the bytes it reads were recorded, and hands the extent of what lies inside to the next. */
#include "analyze/frame/dissect.h"

#include "analyze/frame/walk.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

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

static bool extended(struct an_pkt *p, const struct an_view *v, const uint8_t *l3)
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

/* Of the opcodes left to manufacturers, those that OCP's MRC 1.0 has taken. */
static bool is_mrc(const struct an_pkt *p)
{
	return !p->bth.tver && p->bth.opcode >= 0xc6 && p->bth.opcode <= 0xde && p->icrc != AN_ICRC_WRONG;
}

static bool roce(struct an_pkt *p, struct an_view v, const uint8_t *l3)
{
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
		if (is_mrc(p)) {
			p->strange = UR_AN_MRC;
			return false;
		}
		p->bad_opcode = true;
		return true;
	}
	v = (struct an_view){v.at + UR_BTH_LEN, v.have - UR_BTH_LEN, v.len - UR_BTH_LEN};
	return extended(p, &v, l3);
}

uint32_t an_icrc_bare(const uint8_t *l3, uint8_t version, const uint8_t *last_hop, const uint8_t *l4, uint32_t len)
{
	const uint32_t ip = version == 4 ? UR_IP4_LEN : UR_IP6_LEN;
	uint8_t head[UR_IP6_LEN + UR_UDP_LEN + UR_BTH_LEN], out[UR_ICRC_LEN];
	uint32_t crc;

	memcpy(head, l3, ip);
	memcpy(head + ip, l4, UR_UDP_LEN + UR_BTH_LEN);
	if (version == 4) {
		head[0] = 0x45;
		head[9] = UR_PROTO_UDP;
		ur_put16(head + 2, (uint16_t)(ip + UR_UDP_LEN + len));
	} else {
		ur_put16(head + 4, (uint16_t)(UR_UDP_LEN + len));
		head[6] = UR_PROTO_UDP;
		if (last_hop)
			memcpy(head + 24, last_hop, 16);
	}
	crc = ur_icrc_begin(head, version, ip + UR_UDP_LEN + UR_BTH_LEN);
	ur_icrc_end(ur_icrc_add(crc, l4 + UR_UDP_LEN + UR_BTH_LEN, len - UR_BTH_LEN - UR_ICRC_LEN), out);
	return ur_get_le32(out);
}

/* Behind options or extension headers the ICRC may be that of the packet without them. Otherwise nothing can be said of it. */
static void try_icrc(struct an_pkt *p, const struct an_walk *w, const struct an_view *v)
{
	if (p->icrc != AN_ICRC_UNKNOWN || !p->ext || !p->bth_at || p->cut || v->have != v->len || v->len < UR_BTH_LEN + UR_ICRC_LEN)
		return;
	if (an_icrc_bare(w->l3, p->ip_version, w->last_hop, p->l4, v->len) == ur_get_le32(v->at + v->len - UR_ICRC_LEN))
		p->icrc = AN_ICRC_OK;
}

bool an_dissect(const struct ur_an_frame *f, struct an_pkt *p)
{
	struct an_walk w;
	bool read;

	memset(p, 0, sizeof(*p));
	p->frame = f->number;
	p->when = f->when;
	p->op = ur_opcode(0);
	if (!an_walk(f, p, &w))
		return p->wrong;
	if (ur_likely(w.plain))
		return roce(p, w.v, w.l3);
	read = roce(p, w.v, NULL);
	try_icrc(p, &w, &w.v);
	return read;
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

const struct ur_an_strange_info ur_an_strange[UR_AN_STRANGE] = {
	[UR_AN_ROCE_V1] =
		{"RoCEv1",
		 "a GID of type RoCE v1 was chosen, whose packets no router and no RoCEv2 device takes; choose one of type RoCE v2"},
	[UR_AN_INFINIBAND] = {"native InfiniBand", "its packets have no IP header; record where the hosts speak RoCEv2, or use Wireshark"},
	[UR_AN_MRC] = {"Multipath Reliable Connection (MRC)",
		       "its opcodes are none of RoCEv2's; record a connection of type RC, or use a tool of the NIC's manufacturer"},
	[UR_AN_ULTRA_ETHERNET] = {"Ultra Ethernet", "its transport is another one; record RoCEv2, or use Wireshark"},
	[UR_AN_IPSEC] = {"IPsec (ESP)", "what is in them is encrypted; record at a place where it is not, such as within the tunnel's end"},
	[UR_AN_MACSEC] = {"MACsec",
			  "what is in them may be encrypted; record on the interface that the program uses, above macsec0's parent"},
	[UR_AN_FRAGMENT] =
		{"IP fragments",
		 "their other parts are missing; record without a filter of ports, as 'tcpdump host A', for only the first part has ports"},
	[UR_AN_UNREAD_LINK] = {"a type of link that is not read", "record on an Ethernet interface, or with 'tcpdump -i any'"},
};

bool ur_an_has_packet(const struct ur_an_frame *f, enum ur_an_strange *what)
{
	struct an_pkt p;
	const bool has = an_dissect(f, &p) || an_bth_alone(&p);

	*what = has ? UR_AN_NOT_STRANGE : f->link == UR_AN_OTHER ? UR_AN_UNREAD_LINK : (enum ur_an_strange)p.strange;
	return has;
}
