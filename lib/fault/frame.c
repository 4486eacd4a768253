/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole frames: what they tell, their congestion mark, and a bit that is wrong. */
#include "fault/rule.h"

#include "wire/frame.h"
#include "wire/opcode.h"

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

#define IP4_FRAGMENT 0x3fff /* of the field of flags and offset: more fragments, or an offset */

static bool is_whole(const uint8_t *ip4)
{
	return (ip4[0] & 15u) * 4 >= UR_IP4_LEN && !(ur_get16(ip4 + 6) & IP4_FRAGMENT);
}

/* Offset of the BTH, and of the IP header and its version; 0 when the frame is not RoCEv2, of which there are no fragments. */
static uint32_t find_bth(const uint8_t *f, uint32_t len, uint32_t *l3, unsigned *version)
{
	uint32_t off;

	if (!find_ip(f, len, l3, version) || f[*l3 + (*version == 4 ? 9 : 6)] != 17 || (*version == 4 && !is_whole(f + *l3)))
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

/* Where the IP header says that the packet ends; 0 when that cannot be. */
static uint32_t end_of(const uint8_t *f, uint32_t len, uint32_t l3, unsigned version, uint32_t bth_off)
{
	const uint32_t end = l3 + (version == 4 ? ur_get16(f + l3 + 2) : UR_IP6_LEN + ur_get16(f + l3 + 4));

	return end <= len && end >= bth_off + UR_BTH_LEN + UR_ICRC_LEN ? end : 0;
}

int16_t ur_fault_syndrome(const uint8_t *bth, uint32_t len)
{
	const struct ur_opcode_info *info = ur_opcode(bth[UR_BTH_OPCODE]);
	const uint32_t at = UR_BTH_LEN + (uint32_t)info->off_aeth;

	return info->flags & UR_OPF_AETH && at < len ? bth[at] : -1;
}

bool ur_fault_find_frame(const uint8_t *frame, uint32_t len, struct ur_fault_frame *f)
{
	unsigned version;
	uint32_t l3, head;

	f->bth_off = find_bth(frame, len, &l3, &version);
	if (!f->bth_off)
		return false;
	ur_bth_get(frame + f->bth_off, &f->bth);
	f->src = address(frame + l3 + (version == 4 ? 12 : 8), version);
	f->dst = address(frame + l3 + (version == 4 ? 16 : 24), version);
	f->service = 0;
	f->sport = ur_get16(frame + f->bth_off - UR_UDP_LEN);
	f->syndrome = ur_fault_syndrome(frame + f->bth_off, len - f->bth_off);
	f->l3_off = l3;
	f->end = end_of(frame, len, l3, version, f->bth_off);
	head = f->bth_off + UR_BTH_LEN + ur_opcode(f->bth.opcode)->ext_len + UR_ICRC_LEN;
	f->payload = f->end > head ? f->end - head : 0;
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
