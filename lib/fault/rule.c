/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/rule.h"

#include "wire/frame.h"

static bool in_time(const struct ur_fault_rule *r, ur_time since)
{
	return since >= r->after && (!r->lasts || since - r->after < r->lasts);
}

static bool at_place(const struct ur_fault_rule *r, const struct ur_fault_place *at)
{
	if (!ur_fault_rule_needs_place(r))
		return true;
	return at->known && (!r->relative || at->offset == (uint32_t)r->psn) && (!r->msg || at->msg == r->msg) &&
	       (!r->iteration || at->iteration == r->iteration);
}

static bool matches(const struct ur_fault_rule *r, const struct ur_fault_pkt *p)
{
	const struct ur_bth *bth = p->bth;
	uint8_t differs;

	if ((r->dir && !(r->dir & p->dir)) || !in_time(r, p->since))
		return false;
	if (!bth)
		return r->opcode < 0 && r->psn < 0 && !r->qpn && !ur_fault_rule_needs_place(r);
	differs = (uint8_t)(bth->opcode ^ (unsigned)r->opcode);
	if (r->opcode >= 0 && differs & (r->any_service ? UR_OP_MASK : 0xff))
		return false;
	if (!r->relative && r->psn >= 0 && bth->psn != r->psn)
		return false;
	return (!r->qpn || bth->dqpn == r->qpn) && at_place(r, &p->place);
}

/* The two states of Gilbert and Elliott, each as long as its chance of an end makes it. */
static bool in_burst(struct ur_fault_row *row, struct ur_rng *rng)
{
	if (!row->rule.enter)
		return true;
	if (ur_rng_below(rng, UR_FAULT_PPM) < (row->bursting ? row->rule.leave : row->rule.enter))
		row->bursting = !row->bursting;
	return row->bursting;
}

bool ur_fault_row_acts(struct ur_fault_row *row, const struct ur_fault_pkt *p, struct ur_rng *rng)
{
	const struct ur_fault_rule *r = &row->rule;
	unsigned nth = r->nth ? r->nth : 1;

	if (!matches(r, p) || !in_burst(row, rng) || (r->chance && ur_rng_below(rng, UR_FAULT_PPM) >= r->chance))
		return false;
	row->seen++;
	if (row->seen < nth || (r->times && row->seen - nth >= r->times))
		return false;
	row->hits++;
	return true;
}

/* Offset of the IP header and its version, past one VLAN tag; false when the frame is not IP. */
static bool find_ip(const uint8_t *f, uint32_t len, uint32_t *l3, unsigned *version)
{
	uint32_t off = UR_ETH_LEN;

	if (len < off)
		return false;
	if (ur_get16(f + 12) == UR_ETHERTYPE_VLAN)
		off += UR_VLAN_LEN;
	if (len < off + UR_IP4_LEN)
		return false;
	*l3 = off;
	*version = f[off] >> 4;
	return (ur_get16(f + off - 2) == UR_ETHERTYPE_IP4 && *version == 4) ||
	       (ur_get16(f + off - 2) == UR_ETHERTYPE_IP6 && *version == 6 && len >= off + UR_IP6_LEN);
}

/* Offset of the BTH, and of the IP header and its version; 0 when the frame is not RoCEv2. */
static uint32_t find_bth(const uint8_t *f, uint32_t len, uint32_t *l3, unsigned *version)
{
	uint32_t off;

	if (!find_ip(f, len, l3, version) || f[*l3 + (*version == 4 ? 9 : 6)] != 17)
		return 0;
	off = *l3 + (*version == 4 ? (f[*l3] & 15u) * 4 : UR_IP6_LEN);
	if (len < off + UR_UDP_LEN + UR_BTH_LEN || ur_get16(f + off + 2) != UR_ROCE_PORT)
		return 0;
	return off + UR_UDP_LEN;
}

static struct ur_gid address(const uint8_t *at, unsigned version)
{
	struct ur_gid g;

	if (version == 4)
		return ur_gid_from_v4_at(at);
	memcpy(g.raw, at, 16);
	return g;
}

bool ur_fault_find_frame(const uint8_t *frame, uint32_t len, struct ur_fault_frame *f)
{
	unsigned version;
	uint32_t l3;

	f->bth_off = find_bth(frame, len, &l3, &version);
	if (!f->bth_off)
		return false;
	ur_bth_get(frame + f->bth_off, &f->bth);
	f->src = address(frame + l3 + (version == 4 ? 12 : 8), version);
	f->dst = address(frame + l3 + (version == 4 ? 16 : 24), version);
	return true;
}

/* RFC 3168: 11 is CE, 00 is not ECN-capable. The IPv4 checksum follows (RFC 1624, equation 3). */
bool ur_fault_set_ce(uint8_t *f, uint32_t len, bool any)
{
	unsigned version;
	uint32_t off, sum;
	uint8_t *ip, tos;

	if (!find_ip(f, len, &off, &version))
		return false;
	ip = f + off;
	tos = version == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	if (!(tos & UR_ECN_MASK) && !any)
		return false;
	if (version == 6) {
		ip[1] |= UR_ECN_CE << 4;
		return true;
	}
	sum = (uint16_t)~ur_get16(ip + 10) + (uint32_t)(uint16_t)~ur_get16(ip);
	ip[1] |= UR_ECN_CE;
	sum += ur_get16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ur_put16(ip + 10, (uint16_t)~sum);
	return true;
}

void ur_fault_flip_bit(uint8_t *frame, uint32_t len, struct ur_rng *rng)
{
	uint8_t bit;

	if (len <= UR_ETH_LEN)
		return;
	bit = (uint8_t)(1u << ur_rng_below(rng, 8));
	frame[UR_ETH_LEN + ur_rng_below(rng, len - UR_ETH_LEN)] ^= bit;
}
