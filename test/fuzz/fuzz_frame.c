/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: arbitrary bytes as a received frame, through every parser that a frame of its kind meets. The buffer ends where the
 * frame ends. What parses is answered or built again, so the builders see hostile input too. The first byte is a choice of enum mode.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/msg/arp.h"
#include "wire/msg/cm_msg.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"
#include "wire/sack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum mode {
	MEND = 1,  /* make the IPv4 and ICRC checks pass, which no mutation would get right by itself */
	BARE = 2,  /* the second byte is the place, and the rest a packet as a socket of the kernel's hands it out */
	V6 = 4,    /* such a packet over IPv6 */
	OTHER = 8, /* it had another identification than its place says */
};

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void put_sum(uint8_t *field, uint32_t sum, const uint8_t *from, size_t len)
{
	uint16_t v;

	memset(field, 0, 2);
	v = ur_csum_fold(ur_csum_add(sum, from, len));
	memcpy(field, &v, 2);
}

static void mend_ip4(uint8_t *ip, size_t room)
{
	size_t total = ur_get16(ip + 2), ihl = (ip[0] & 15u) * 4;

	if (ihl < UR_IP4_LEN || ihl > room)
		return;
	put_sum(ip + 10, 0, ip, ihl);
	if (total > room)
		return;
	if (ip[9] == 2 && total >= ihl + 8)
		put_sum(ip + ihl + 2, 0, ip + ihl, total - ihl);
	if (ihl != UR_IP4_LEN)
		return;
	if (ip[9] == 1 && total >= UR_IP4_LEN + 8)
		put_sum(ip + 22, 0, ip + UR_IP4_LEN, total - UR_IP4_LEN);
	if (ip[9] == 17 && total >= UR_IP4_LEN + 24)
		ur_icrc_end(ur_icrc_begin(ip, 4, total - UR_ICRC_LEN), ip + total - UR_ICRC_LEN);
}

/* A message after a header of hop-by-hop options. */
static void mend_mld(uint8_t *ip, size_t len)
{
	size_t ext = 8 + ip[UR_IP6_LEN + 1] * 8u;
	uint8_t tail[8] = {[7] = 58}, *h = ip + UR_IP6_LEN + ext;

	if (ip[UR_IP6_LEN] != 58 || ext + 8 > len)
		return;
	ur_put32(tail, (uint32_t)(len - ext));
	put_sum(h + 2, ur_csum_add(ur_csum_add(0, ip + 8, 32), tail, 8), h, len - ext);
}

static void mend_ip6(uint8_t *ip, size_t room)
{
	size_t len = ur_get16(ip + 4), total = UR_IP6_LEN + len;
	uint8_t tail[8] = {[7] = 58};

	if (total > room)
		return;
	ur_put32(tail, (uint32_t)len);
	if (ip[6] == 0 && len >= 16)
		mend_mld(ip, len);
	if (ip[6] == 58 && len >= 8)
		put_sum(ip + 42, ur_csum_add(ur_csum_add(0, ip + 8, 32), tail, 8), ip + UR_IP6_LEN, len);
	if (ip[6] == 17 && len >= 24)
		ur_icrc_end(ur_icrc_begin(ip, 6, total - UR_ICRC_LEN), ip + total - UR_ICRC_LEN);
}

/* A frame without or with one VLAN tag. */
static void mend(uint8_t *f, size_t len)
{
	size_t l3 = len >= 18 && f[12] == 0x81 && f[13] == 0 ? 18 : 14;

	if (len >= l3 + UR_IP4_LEN && f[l3] >> 4 == 4)
		mend_ip4(f + l3, len - l3);
	else if (len >= l3 + UR_IP6_LEN && f[l3] >> 4 == 6)
		mend_ip6(f + l3, len - l3);
}

static void try_mad(const uint8_t *payload)
{
	uint8_t once[UR_MAD_LEN], twice[UR_MAD_LEN];
	struct ur_rdma_cm_hdr h;
	struct ur_cm_msg m;

	if (!ur_cm_msg_parse(payload, &m))
		return;
	require(m.pdata >= payload && m.pdata + m.pdata_len <= payload + UR_MAD_LEN, "private data outside the MAD");
	ur_rdma_cm_hdr_get(m.pdata, m.pdata_len, &h);
	require(ur_cm_msg_build(once, &m) && ur_cm_msg_parse(once, &m) && ur_cm_msg_build(twice, &m), "a parsed CM message does not build");
	require(memcmp(once, twice, UR_MAD_LEN) == 0, "a CM message changes when built again");
}

/* What is accepted of a SACK is written again byte by byte. */
static void try_sack(const struct ur_pkt *p)
{
	uint8_t again[UR_SACKETH_LEN + UR_SACK_BITS / 8];
	struct ur_sack s;

	if (!ur_sack_get(p, &s))
		return;
	require(s.n && s.n <= UR_SACK_BITS && s.expected <= UR_PSN_MASK && s.base <= UR_PSN_MASK, "a SACK is out of bounds");
	require(ur_sack_put(again, &s) == again + UR_SACKETH_LEN + p->payload_len, "a SACK has another length when written again");
	require(memcmp(again, p->data + p->payload_off - UR_SACKETH_LEN, UR_SACKETH_LEN + p->payload_len) == 0, "a SACK changes");
}

static void try_icmp(struct ur_pkt *p, struct ur_counters *c)
{
	static const struct ur_mac own = {{2, 0, 0, 0, 0, 1}};
	struct ur_pkt out = {.room = UR_PKT_ROOM};
	struct ur_icmp m;

	if (!ur_icmp_parse(p, &m))
		return;
	out.data = malloc(out.room);
	if (m.kind == UR_ICMP_ECHO_REQUEST4 || m.kind == UR_ICMP_ECHO_REQUEST6) {
		require(m.data_off + (uint32_t)m.data_len <= p->len, "echo data outside the frame");
		ur_icmp_echo_reply(&out, p, &own);
	} else if (m.kind == UR_ICMP_NS || m.kind == UR_ICMP_NA) {
		ur_nd_build(&out, m.kind, &own, &own, p->vlan, &p->src, &p->dst, &m.nd);
	}
	if (out.len) {
		require(out.len <= out.room && ur_frame_parse(&out, c), "an ICMP message that was built does not parse");
		require(ur_icmp_parse(&out, &m), "an ICMP message that was built is refused");
	}
	free(out.data);
}

/* A message builds again, record by record, as what it was. */
static void rebuild_gmp(struct ur_pkt *out, const struct ur_gmp_to *to, struct ur_gmp *m)
{
	struct ur_gmp_record r;

	if (m->kind != UR_GMP_RECORDS) {
		ur_gmp_build(out, to, m);
		return;
	}
	ur_gmp_report_begin(out, to);
	while (ur_gmp_next(m, &r))
		ur_gmp_report_add(out, r.type, &r.group, NULL, 0, 1500);
	ur_gmp_report_end(out);
}

static void try_gmp(struct ur_pkt *p, struct ur_counters *c)
{
	struct ur_gmp_to to = {.smac = {{2, 0, 0, 0, 0, 1}}, .vlan = p->vlan, .src = p->src};
	struct ur_pkt out = {.room = UR_PKT_ROOM};
	struct ur_gmp m, again;

	if (!ur_gmp_parse(p, &m))
		return;
	require(!m.at || (m.at >= p->data && m.end <= p->data + p->len), "a list outside the frame");
	if (m.kind == UR_GMP_OTHER)
		return;
	to.dst = ur_gmp_all_hosts(m.v4);
	again = m;
	out.data = malloc(out.room);
	rebuild_gmp(&out, &to, &again);
	require(ur_frame_parse(&out, c) && out.kind == UR_PKT_GMP && ur_gmp_parse(&out, &again),
		"a message of group management does not build");
	require(again.kind == m.kind && again.version == m.version && ur_gid_eq(&again.group, &m.group), "it changes when built again");
	free(out.data);
}

static void try_frame(struct ur_pkt *p)
{
	struct ur_counters c = {0};
	struct ur_arp arp;
	uint64_t drops = 0;
	bool ok = ur_frame_parse(p, &c);

	for (unsigned i = 0; i < UR_C_COUNT; i++)
		drops += c.v[i];
	require(drops == !ok, "not exactly one counter for a drop");
	if (!ok)
		return;
	if (p->kind == UR_PKT_ARP)
		ur_arp_parse(p, &arp);
	if (p->kind == UR_PKT_ICMP4 || p->kind == UR_PKT_ICMP6)
		try_icmp(p, &c);
	if (p->kind == UR_PKT_GMP)
		try_gmp(p, &c);
	if (p->kind != UR_PKT_ROCE)
		return;
	require(p->payload_off + p->payload_len + p->bth.pad + UR_ICRC_LEN == p->len, "payload, pad and ICRC do not fill the packet");
	if (p->payload_len == UR_MAD_LEN)
		try_mad(p->data + p->payload_off);
	if (p->bth.opcode == UR_OP_SACK)
		try_sack(p);
}

static void mend_bare(struct ur_pkt *p, uint16_t id)
{
	uint32_t covered = p->len - UR_ICRC_LEN;

	if (p->len >= UR_BTH_LEN + UR_ICRC_LEN)
		ur_icrc_end(ur_icrc_begin_of(p, p->data, covered, p->len + UR_UDP_LEN, id), p->data + covered);
}

/* With the headers that it had it is a frame, which parses as it did itself. */
static void try_with_headers(const struct ur_pkt *bare)
{
	struct ur_pkt frame = {.room = bare->len + UR_PATH_HDR_MAX};
	struct ur_counters c = {0};
	unsigned n;

	frame.data = malloc(frame.room);
	n = ur_frame_put_headers(bare, frame.data);
	memcpy(frame.data + n, bare->data, bare->len);
	frame.len = n + bare->len;
	require(ur_frame_parse(&frame, &c) && frame.kind == UR_PKT_ROCE, "a bare packet with its headers does not parse");
	require(frame.payload_off - n == bare->payload_off && frame.payload_len == bare->payload_len, "it parses as another");
	free(frame.data);
}

static void try_bare(uint8_t mode, const uint8_t *data, size_t size)
{
	struct ur_pkt p = {.flags = UR_PKT_BARE, .ip_version = mode & V6 ? 6 : 4, .ttl = 64, .place = data[0], .sport = 4791};
	struct ur_counters c = {0};

	p.src = mode & V6 ? (struct ur_gid){{0xfd, [15] = 1}} : ur_gid_from_v4(0x0100000a);
	p.dst = mode & V6 ? (struct ur_gid){{0xfd, [15] = 2}} : ur_gid_from_v4(0x0200000a);
	p.len = p.room = (uint32_t)(size - 1);
	p.data = malloc(p.len ? p.len : 1);
	memcpy(p.data, data + 1, p.len);
	if (mode & MEND)
		mend_bare(&p, mode & OTHER ? (uint16_t)(p.place * 257 + 1) : p.place);
	try_frame(&p);
	if (mode & MEND && !(mode & OTHER) && ur_frame_parse(&p, &c))
		try_with_headers(&p);
	free(p.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ur_pkt p = {0};

	if (size < 1 || size > 65000)
		return 0;
	if (data[0] & BARE) {
		if (size > 1)
			try_bare(data[0], data + 1, size - 1);
		return 0;
	}
	p.len = p.room = (uint32_t)(size - 1);
	p.data = malloc(p.len ? p.len : 1);
	memcpy(p.data, data + 1, p.len);
	if (data[0] & MEND)
		mend(p.data, p.len);
	try_frame(&p);
	if (size - 1 == UR_MAD_LEN)
		try_mad(data + 1);
	free(p.data);
	return 0;
}
