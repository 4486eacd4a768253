/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/change.h"

#include <stddef.h>

#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/opcode.h"

enum { PAYLOAD = 1, HEADER, ICRC, FIELDS }; /* from FIELDS on, rows of the table */

#define OF(name) offsetof(struct ur_opcode_info, name)

/* Of extended headers `flag` says which, and `where` the member of struct ur_opcode_info that has its offset. A name may stand twice. */
static const struct {
	const char *name;
	uint32_t flag; /* 0: of the BTH */
	uint16_t where;
	uint8_t byte, bit, bits; /* from the highest bit of that byte on */
} fields[] = {
	{"opcode", 0, 0, 0, 0, 8},
	{"pad", 0, 0, 1, 2, 2},
	{"pkey", 0, 0, 2, 0, 16},
	{"qpn", 0, 0, 5, 0, 24},
	{"ackreq", 0, 0, 8, 0, 1},
	{"psn", 0, 0, 9, 0, 24},
	{"va", UR_OPF_RETH, OF(off_reth), 0, 0, 64},
	{"va", UR_OPF_ATOMICETH, OF(off_atomiceth), 0, 0, 64},
	{"rkey", UR_OPF_RETH, OF(off_reth), 8, 0, 32},
	{"rkey", UR_OPF_ATOMICETH, OF(off_atomiceth), 8, 0, 32},
	{"length", UR_OPF_RETH, OF(off_reth), 12, 0, 32},
	{"syndrome", UR_OPF_AETH, OF(off_aeth), 0, 0, 8},
	{"msn", UR_OPF_AETH, OF(off_aeth), 1, 0, 24},
	{"imm", UR_OPF_IMM, OF(off_imm), 0, 0, 32},
	{"qkey", UR_OPF_DETH, OF(off_deth), 0, 0, 32},
	{"sqpn", UR_OPF_DETH, OF(off_deth), 5, 0, 24},
};

uint8_t ur_fault_part_named(const char *name, size_t len)
{
	static const char *const areas[FIELDS] = {[PAYLOAD] = "payload", [HEADER] = "header", [ICRC] = "icrc"};

	for (unsigned i = PAYLOAD; i < FIELDS; i++)
		if (strlen(areas[i]) == len && memcmp(areas[i], name, len) == 0)
			return (uint8_t)i;
	for (unsigned i = 0; i < ur_array_size(fields); i++)
		if (strlen(fields[i].name) == len && memcmp(fields[i].name, name, len) == 0)
			return (uint8_t)(FIELDS + i);
	return 0;
}

/* The row of that name which a packet of this kind has; the rows of one name stand together. -1: it has none. */
static int row_of(uint32_t flags, unsigned row)
{
	for (unsigned i = row; i < ur_array_size(fields) && strcmp(fields[i].name, fields[row].name) == 0; i++)
		if (!fields[i].flag || flags & fields[i].flag)
			return (int)i;
	return -1;
}

/* The first bit of the part, counted from the beginning of the frame, and how many there are: 0 when the packet lacks it. */
static uint32_t find_part(const struct ur_fault_frame *f, uint8_t part, uint32_t *first)
{
	const struct ur_opcode_info *info = ur_opcode(f->bth.opcode);
	const uint32_t ext = f->bth_off + UR_BTH_LEN;
	uint32_t from, bits;
	int row;

	if (!f->end)
		return 0;
	if (part == ICRC) {
		from = (f->end - UR_ICRC_LEN) * 8;
		bits = UR_ICRC_LEN * 8;
	} else if (part == PAYLOAD) {
		from = (f->end - UR_ICRC_LEN - f->payload) * 8;
		bits = f->payload * 8;
	} else if (part == HEADER) {
		from = f->bth_off * 8;
		bits = (UR_BTH_LEN + info->ext_len) * 8u;
	} else {
		row = row_of(info->flags, part - FIELDS);
		if (row < 0)
			return 0;
		from = fields[row].flag ? ext + ((const uint8_t *)info)[fields[row].where] : f->bth_off;
		from = (from + fields[row].byte) * 8u + fields[row].bit;
		bits = fields[row].bits;
	}
	*first = from;
	return from + bits <= f->end * 8 ? bits : 0;
}

bool ur_fault_has_part(const struct ur_fault_frame *f, uint8_t part)
{
	uint32_t first;

	return find_part(f, part, &first) > 0;
}

/* --- the headers around it --- */

static unsigned version_of(const uint8_t *l3)
{
	return *l3 >> 4;
}

static uint32_t ip_len_of(const uint8_t *l3)
{
	return version_of(l3) == 4 ? (l3[0] & 15u) * 4 : UR_IP6_LEN;
}

static void put_ip4_sum(uint8_t *l3)
{
	uint16_t sum;

	ur_put16(l3 + 10, 0);
	sum = ur_csum_fold(ur_csum_add(0, l3, ip_len_of(l3)));
	memcpy(l3 + 10, &sum, sizeof(sum));
}

/* Of the whole datagram; 0 is "none" and stays that in IPv4 (RFC 768). */
static void put_udp_sum(uint8_t *l3, uint32_t udp_len)
{
	uint8_t *udp = l3 + ip_len_of(l3);
	uint16_t sum;

	if (version_of(l3) == 4 && !ur_get16(udp + 6))
		return;
	ur_put16(udp + 6, 0);
	sum = ur_csum_fold(ur_csum_add(ur_udp_pseudo_sum(l3, version_of(l3), udp_len), udp, udp_len));
	if (!sum)
		sum = 0xffff;
	memcpy(udp + 6, &sum, sizeof(sum));
}

/* The ICRC is defined for IPv4 headers without options. */
static void put_icrc(uint8_t *frame, const struct ur_fault_frame *f)
{
	const uint8_t *l3 = frame + f->l3_off;
	const uint8_t version = (uint8_t)version_of(l3);
	const uint32_t covered = f->end - UR_ICRC_LEN - f->l3_off;

	if (ip_len_of(l3) == (version == 4 ? UR_IP4_LEN : UR_IP6_LEN))
		ur_icrc_end(ur_icrc_begin(l3, version, covered), frame + f->end - UR_ICRC_LEN);
}

/* --- changes --- */

bool ur_fault_corrupt(uint8_t *frame, uint32_t len, const struct ur_fault_frame *f, const struct ur_fault_rule *r, struct ur_rng *rng)
{
	uint32_t first, bits;

	if (!r->part) {
		ur_fault_flip_bit(frame, len, rng);
		return false;
	}
	bits = find_part(f, r->part, &first);
	if (!bits)
		return false;
	first += ur_rng_below(rng, bits);
	if (first / 8 == f->bth_off + UR_BTH_ECN) /* which routers may change, and no ICRC covers */
		first += 8;
	frame[first / 8] ^= (uint8_t)(0x80u >> first % 8);
	if (!r->fix)
		return false;
	put_icrc(frame, f);
	put_udp_sum(frame + f->l3_off, f->end - (f->bth_off - UR_UDP_LEN));
	return true;
}

static void put_dscp(uint8_t *l3, unsigned dscp)
{
	if (version_of(l3) == 4)
		l3[1] = (uint8_t)(dscp << 2 | (l3[1] & 3u));
	else
		ur_put16(l3, (uint16_t)((ur_get16(l3) & 0xf03fu) | dscp << 6));
}

uint32_t ur_fault_trim(uint8_t *frame, uint32_t len, struct ur_fault_frame *f, const struct ur_fault_rule *r)
{
	uint8_t *l3 = frame + f->l3_off;
	uint32_t udp_len;

	if (!f->end || f->payload <= r->keep)
		return len;
	f->end -= f->payload - r->keep;
	f->payload = r->keep;
	udp_len = f->end - (f->bth_off - UR_UDP_LEN);
	if (r->dscp >= 0)
		put_dscp(l3, (unsigned)r->dscp);
	ur_put16(frame + f->bth_off - UR_UDP_LEN + 4, (uint16_t)udp_len);
	if (version_of(l3) == 4) {
		ur_put16(l3 + 2, (uint16_t)(f->end - f->l3_off));
		put_ip4_sum(l3);
	} else {
		ur_ip6_finish(l3, udp_len);
	}
	if (r->fix)
		put_icrc(frame, f);
	put_udp_sum(l3, udp_len);
	return f->end;
}
