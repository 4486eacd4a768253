/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that get other addresses: the parser of lib/wire, which knows nothing of that, is the judge. */
#include "between/readdress.h"

#include <CUnit/CUnit.h>
#include <string.h>

#include "base/rng.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/msg/cm_msg.h"

void ur_suite_between_readdress(void);

#define ROOM 8192
#define SPORT 0xd123

static struct {
	uint8_t frame[ROOM], out[ROOM];
	struct ur_pkt pkt;
	struct ur_counters counters;
} bed;

/* Of family 4 or 6, number n. */
static struct ur_gid address(unsigned family, uint8_t n)
{
	struct ur_gid g = ur_gid_from_v4(__builtin_bswap32(0x0a000000u | n));

	if (family == 6)
		g = (struct ur_gid){.raw = {0xfd, [15] = n}};
	return g;
}

/* A packet from host 1 to host 2 of this family; the identification and flags are those of IPv4. Its ICRC is right. */
static void build(unsigned family, const struct ur_bth *bth, const void *payload, uint32_t len, uint16_t id, uint16_t flags)
{
	const struct ur_mac mac = {{2}};
	const struct ur_gid src = address(family, 1), dst = address(family, 2);
	struct ur_path path;
	uint8_t *at = bed.frame;
	uint32_t l3 = UR_ETH_LEN, covered, crc;

	ur_path_build(&path, &mac, &mac, 0, &src, &dst, 0x6a, 61, 0x54321, SPORT);
	at = (uint8_t *)memcpy(at, path.hdr, path.hdr_len) + path.hdr_len;
	ur_bth_put(at, bth);
	memcpy(at + UR_BTH_LEN, payload, len);
	bed.pkt = (struct ur_pkt){.data = bed.frame, .len = path.hdr_len + UR_BTH_LEN + len + UR_ICRC_LEN, .room = ROOM};
	if (family == 4) {
		ur_put16(bed.frame + l3 + 4, id);
		ur_put16(bed.frame + l3 + 6, flags);
	}
	covered = bed.pkt.len - l3 - UR_ICRC_LEN;
	ur_udp_put_lengths(bed.frame + l3, family, bed.pkt.len - path.hdr_len + UR_UDP_LEN);
	crc = ur_icrc_begin(bed.frame + l3, (uint8_t)family, covered);
	ur_icrc_end(crc, bed.frame + bed.pkt.len - UR_ICRC_LEN);
}

static void parse(uint8_t *frame, uint32_t len, bool right)
{
	memset(&bed.counters, 0, sizeof(bed.counters));
	bed.pkt = (struct ur_pkt){.data = frame, .len = len, .room = len};
	CU_ASSERT_EQUAL(ur_frame_parse(&bed.pkt, &bed.counters), right);
	CU_ASSERT_EQUAL(bed.counters.v[UR_C_ICRC], !right);
}

/* As a socket would have it: of the headers it only knows what is in fields. */
static void strip(void)
{
	struct ur_pkt p = bed.pkt;

	p.data += p.bth_off;
	p.len -= p.bth_off;
	p.flags = UR_PKT_BARE;
	p.bth_off = p.l3_off = p.l4_off = p.place = 0;
	ur_frame_find_id(&p);
	bed.pkt = p;
}

static void write_packet(unsigned family, uint32_t len, uint16_t id, uint16_t flags)
{
	const struct ur_bth bth = {.opcode = UR_OP_SEND_MIDDLE, .pkey = 0xffff, .dqpn = 0x123456, .psn = 77, .becn = true};
	uint8_t payload[4200];

	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + len);
	build(family, &bth, payload, len, id, flags);
	parse(bed.frame, bed.pkt.len, true);
}

static const uint32_t lengths[] = {0, 4, 256, 1024, 4096};

/* From each family to each, bare and not, with identifications of all kinds: it has what was asked for, and its ICRC is right. */
static void readdress__right_stays_right(void)
{
	static const uint16_t ids[] = {0, 1, 0x8000, 0xbeef};

	for (unsigned i = 0; i < 2u * 2 * 2 * 2 * ur_array_size(ids) * ur_array_size(lengths); i++) {
		const unsigned from = i & 1 ? 6 : 4, to = i & 2 ? 6 : 4;
		struct ur_readdress r = {.src = address(to, 8), .dst = address(to, 9), .as_sent = i & 8};
		const uint16_t id = ids[i / 16 % ur_array_size(ids)], flags = i & 4 ? 0x4000 : 0;
		uint32_t n;

		write_packet(from, lengths[i / 16 / ur_array_size(ids)], id, flags);
		strip();
		CU_ASSERT(from == 6 || bed.pkt.place == id);
		n = ur_readdress(&r, &bed.pkt, r.as_sent ? 5 : bed.pkt.place, bed.out);
		parse(bed.out, n, true);
		CU_ASSERT(ur_gid_eq(&bed.pkt.src, &r.src) && ur_gid_eq(&bed.pkt.dst, &r.dst));
		CU_ASSERT_EQUAL(bed.pkt.sport, r.as_sent ? UR_ROCE_PORT : SPORT);
		CU_ASSERT_EQUAL(bed.pkt.tos, 0x6a);
		CU_ASSERT_EQUAL(bed.pkt.ttl, 61);
		CU_ASSERT_EQUAL(bed.pkt.payload_len, lengths[i / 16 / ur_array_size(ids)]);
		CU_ASSERT(bed.pkt.bth.dqpn == 0x123456 && bed.pkt.bth.psn == 77 && bed.pkt.bth.becn);
		if (to == 4 && from == 4)
			CU_ASSERT_EQUAL(ur_get16(bed.out + UR_ETH_LEN + 6), r.as_sent ? 0x4000 : flags);
		if (to == 4)
			CU_ASSERT_EQUAL(ur_get16(bed.out + UR_ETH_LEN + 4), r.as_sent ? 5 : from == 4 ? id : 0);
	}
}

static uint32_t wrongness(const uint8_t *frame, uint32_t len)
{
	const uint32_t covered = len - UR_ETH_LEN - UR_ICRC_LEN;
	const uint32_t crc = ur_icrc_begin(frame + UR_ETH_LEN, frame[UR_ETH_LEN] >> 4, covered);
	uint8_t want[UR_ICRC_LEN];

	ur_icrc_end(crc, want);
	return ur_get_le32(want) ^ ur_get_le32(frame + len - UR_ICRC_LEN);
}

/* Any bit from the BTH on, wherever one is: wrong it stays, and by the same difference. */
static void readdress__wrong_stays_wrong(void)
{
	struct ur_rng rng = {7};

	for (unsigned i = 0; i < 4000; i++) {
		const unsigned to = i & 2 ? 6 : 4, family = i & 1 ? 6 : 4;
		struct ur_readdress r = {.src = address(to, 8), .dst = address(to, 9), .as_sent = i & 4};
		uint32_t bit, n, wrong;

		write_packet(family, 64, 0, 0x4000);
		bit = (uint32_t)(ur_rng_below(&rng, (UR_BTH_LEN + 64 + UR_ICRC_LEN) * 8));
		if (bit / 8 == 4)
			continue; /* what routers may change */
		bed.frame[bed.pkt.bth_off + bit / 8] ^= (uint8_t)(1u << bit % 8);
		wrong = wrongness(bed.frame, bed.pkt.len);
		CU_ASSERT_NOT_EQUAL(wrong, 0);
		ur_bth_get(bed.frame + bed.pkt.bth_off, &bed.pkt.bth);
		n = ur_readdress(&r, &bed.pkt, 0, bed.out);
		CU_ASSERT_EQUAL(wrongness(bed.out, n), wrong);
	}
}

/* There and back again it is what it was. */
static void readdress__two_steps(void)
{
	for (unsigned i = 0; i < 4; i++) {
		const unsigned family = i & 1 ? 6 : 4, other = i & 2 ? 6 : 4;
		struct ur_readdress there = {.src = address(other, 8), .dst = address(other, 9)};
		struct ur_readdress back = {.src = address(family, 1), .dst = address(family, 2)};
		uint8_t first[ROOM];
		uint32_t len, n;

		write_packet(family, 512, other == 4 ? 3 : 0, 0x4000);
		len = bed.pkt.len;
		memcpy(first, bed.frame, len);
		n = ur_readdress(&there, &bed.pkt, 3, bed.out);
		CU_ASSERT_FATAL(ur_readdress_view(bed.out, n, &there.src, &there.dst, &bed.pkt));
		n = ur_readdress(&back, &bed.pkt, family == 4 && other == 4 ? bed.pkt.place : 0, bed.frame);
		CU_ASSERT_EQUAL_FATAL(n, len);
		if (family == other)
			CU_ASSERT(memcmp(bed.frame + UR_ETH_LEN, first + UR_ETH_LEN, n - UR_ETH_LEN) == 0);
		parse(bed.frame, n, true);
	}
}

/* Of the bits of the headers, those that a host or router would stumble over make it reach nobody; what passes with another bit is wrong.
 */
static void readdress__damaged_headers(void)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < 2; i++) {
		const unsigned family = i ? 6 : 4;
		struct ur_readdress r = {.src = address(family, 8), .dst = address(family, 9)};
		struct ur_readdress on = {.src = address(family, 5), .dst = address(family, 6), .as_sent = true};
		const uint32_t headers = (i ? UR_IP6_LEN : UR_IP4_LEN) + UR_UDP_LEN;

		for (unsigned bit = 0; bit < headers * 8; bit++) {
			const unsigned byte = bit / 8;
			uint32_t n, m;

			write_packet(family, 64, 9, 0x4000);
			n = ur_readdress(&r, &bed.pkt, bed.pkt.place, bed.out);
			bed.out[UR_ETH_LEN + byte] ^= (uint8_t)(0x80 >> bit % 8);
			if (!ur_readdress_view(bed.out, n, &r.src, &r.dst, &bed.pkt))
				continue;
			passed++;
			/* of IPv6: traffic class, flow label and hop limit, which the ICRC leaves out; and the source port */
			CU_ASSERT(byte / 2 * 2 + UR_UDP_LEN == headers || byte < 4 || byte == 7);
			m = ur_readdress(&on, &bed.pkt, 0, bed.frame);
			CU_ASSERT_EQUAL(wrongness(bed.frame, m) != 0, byte + UR_UDP_LEN >= headers);
		}
		for (uint32_t n = 0; n < headers + UR_ETH_LEN + UR_BTH_LEN + UR_ICRC_LEN; n++)
			CU_ASSERT_FALSE(ur_readdress_view(bed.out, n, &r.src, &r.dst, &bed.pkt));
	}
	CU_ASSERT_EQUAL(passed, 16 + 16 + 28 + 8);
}

/* --- connection management --- */

/* The message in a packet between the hosts of this family, to others: as a message again. */
static const struct ur_cm_msg *pass_message(unsigned family, unsigned to, const struct ur_cm_msg *m, unsigned changed)
{
	static struct ur_cm_msg got;
	const struct ur_bth bth = {.opcode = UR_UD | UR_OP_SEND_ONLY, .pkey = 0xffff, .dqpn = 1, .psn = 5};
	struct ur_readdress r = {.src = address(to, 8), .dst = address(to, 9)};
	uint8_t payload[8 + UR_MAD_LEN] = {0x80, 1, 0, 0, 0, 0, 0, 1};
	uint32_t n;

	CU_ASSERT_FATAL(ur_cm_msg_build(payload + 8, m));
	build(family, &bth, payload, sizeof(payload), 0, 0x4000);
	parse(bed.frame, bed.pkt.len, true);
	n = ur_readdress(&r, &bed.pkt, 0, bed.out);
	CU_ASSERT_EQUAL(r.messages, changed);
	parse(bed.out, n, true);
	CU_ASSERT_EQUAL_FATAL(bed.pkt.payload_len, UR_MAD_LEN);
	CU_ASSERT_FATAL(ur_cm_msg_parse(bed.out + bed.pkt.payload_off, &got));
	CU_ASSERT_EQUAL(got.attr, m->attr);
	CU_ASSERT_EQUAL(got.mad.tid, m->mad.tid);
	return &got;
}

static bool is_changed(const struct ur_gid *g, unsigned to, uint8_t n)
{
	const struct ur_gid want = address(to, n);

	return ur_gid_eq(g, &want);
}

static void ip_header(uint8_t *pdata, unsigned family, uint8_t src, uint8_t dst)
{
	const struct ur_rdma_cm_hdr h = {
		.ip_version = (uint8_t)family, .sport = 777, .src = address(family, src), .dst = address(family, dst)};

	ur_rdma_cm_hdr_put(pdata, &h);
}

static void check_ip_header(const struct ur_cm_msg *m, unsigned to, uint8_t src, uint8_t dst)
{
	struct ur_rdma_cm_hdr h;

	CU_ASSERT_FATAL(ur_rdma_cm_hdr_get(m->pdata, m->pdata_len, &h));
	CU_ASSERT_EQUAL(h.ip_version, to);
	CU_ASSERT_EQUAL(h.sport, 777);
	CU_ASSERT(is_changed(&h.src, to, src) && is_changed(&h.dst, to, dst));
	CU_ASSERT_EQUAL(m->pdata[UR_RDMA_CM_HDR_LEN], 0x42);
}

static void readdress__request(void)
{
	for (unsigned i = 0; i < 4; i++) {
		const unsigned family = i & 1 ? 6 : 4, to = i & 2 ? 6 : 4;
		uint8_t pdata[UR_CM_REQ_PDATA] = {[UR_RDMA_CM_HDR_LEN] = 0x42};
		struct ur_cm_msg m = {.attr = UR_CM_REQ, .mad.tid = 99, .pdata = pdata, .pdata_len = sizeof(pdata)};
		const struct ur_cm_msg *got;

		m.req = (struct ur_cm_req){.service_id = 0x1060000u + 7174, .local_qpn = 0xabcdef, .starting_psn = 0x654321, .path_mtu = 3};
		m.req.primary = (struct ur_cm_path_rec){.local_gid = address(family, 1), .remote_gid = address(family, 2), .hop_limit = 9};
		m.req.alternate = (struct ur_cm_path_rec){.local_gid = address(family, 3), .remote_gid = address(family, 2), .sl = 5};
		ip_header(pdata, family, 1, 2);
		got = pass_message(family, to, &m, 1);
		CU_ASSERT(is_changed(&got->req.primary.local_gid, to, 8) && is_changed(&got->req.primary.remote_gid, to, 9));
		CU_ASSERT(is_changed(&got->req.alternate.local_gid, family, 3) && is_changed(&got->req.alternate.remote_gid, to, 9));
		CU_ASSERT(got->req.service_id == m.req.service_id && got->req.local_qpn == 0xabcdef && got->req.starting_psn == 0x654321);
		CU_ASSERT(got->req.primary.hop_limit == 9 && got->req.alternate.sl == 5 && got->req.path_mtu == 3);
		check_ip_header(got, to, 8, 9);
	}
}

/* A service that is not of an IP port space has private data that looks like addresses, at most. */
static void readdress__request_of_others(void)
{
	uint8_t pdata[UR_CM_REQ_PDATA] = {[UR_RDMA_CM_HDR_LEN] = 0x42};
	struct ur_cm_msg m = {.attr = UR_CM_REQ, .pdata = pdata, .pdata_len = sizeof(pdata)};
	struct ur_readdress_pair pair[2] = {{address(4, 1), address(4, 8)}, {address(4, 2), address(4, 9)}};
	uint8_t mad[UR_MAD_LEN], before[UR_MAD_LEN];
	const struct ur_cm_msg *got;

	m.req = (struct ur_cm_req){.service_id = 0x1000000000106000u, .primary.local_gid = address(4, 1)};
	ip_header(pdata, 4, 1, 2);
	got = pass_message(4, 4, &m, 1);
	check_ip_header(got, 4, 1, 2);
	/* nor is there anything to change in one between other hosts, or in a MAD of another class or version */
	m.req.service_id = 0x1060001;
	CU_ASSERT_FATAL(ur_cm_msg_build(mad, &m));
	for (unsigned i = 0; i < 4; i++) {
		memcpy(before, mad, sizeof(mad));
		before[i] ^= 0x10;
		CU_ASSERT_FALSE(ur_readdress_cm(before, pair));
		before[i] ^= 0x10;
		CU_ASSERT(memcmp(before, mad, sizeof(mad)) == 0);
	}
	pair[0].from = address(4, 77);
	pair[1].from = address(4, 78);
	CU_ASSERT_FALSE(ur_readdress_cm(mad, pair));
	CU_ASSERT(memcmp(before, mad, sizeof(mad)) == 0);
}

static void readdress__datagram_service(void)
{
	uint8_t pdata[UR_CM_SIDR_REQ_PDATA] = {[UR_RDMA_CM_HDR_LEN] = 0x42};
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REQ, .pdata = pdata, .pdata_len = sizeof(pdata)};
	const struct ur_gid redirect = address(4, 1);
	const struct ur_cm_msg *got;

	m.sidr_req = (struct ur_cm_sidr_req){.request_id = 5, .service_id = 0x1110000 + 7174};
	ip_header(pdata, 6, 1, 2);
	got = pass_message(6, 4, &m, 1);
	CU_ASSERT_EQUAL(got->sidr_req.request_id, 5);
	check_ip_header(got, 4, 8, 9);
	m = (struct ur_cm_msg){.attr = UR_CM_SIDR_REP, .sidr_rep = {.request_id = 5, .qpn = 0x777, .info_len = 72}};
	memcpy(m.sidr_rep.info + 8, redirect.raw, 16);
	got = pass_message(4, 4, &m, 1);
	CU_ASSERT(got->sidr_rep.qpn == 0x777 && memcmp(got->sidr_rep.info + 8, address(4, 8).raw, 16) == 0);
	m.sidr_rep.info_len = 23;
	got = pass_message(4, 4, &m, 0);
	CU_ASSERT(memcmp(got->sidr_rep.info + 8, redirect.raw, 16) == 0);
}

static void readdress__alternate_path(void)
{
	struct ur_cm_msg m = {.attr = UR_CM_LAP};
	const struct ur_gid other = address(4, 2);
	const struct ur_cm_msg *got;

	m.lap = (struct ur_cm_lap){.local_comm_id = 3, .remote_qpn = 0x999};
	m.lap.alternate = (struct ur_cm_path_rec){.local_gid = address(4, 1), .remote_gid = address(4, 2), .traffic_class = 0x68};
	got = pass_message(4, 4, &m, 1);
	CU_ASSERT(is_changed(&got->lap.alternate.local_gid, 4, 8) && is_changed(&got->lap.alternate.remote_gid, 4, 9));
	CU_ASSERT(got->lap.remote_qpn == 0x999 && got->lap.alternate.traffic_class == 0x68);
	m = (struct ur_cm_msg){.attr = UR_CM_APR, .apr = {.info_len = 16, .status = 6}};
	memcpy(m.apr.info, other.raw, 16);
	got = pass_message(4, 4, &m, 1);
	CU_ASSERT(got->apr.status == 6 && memcmp(got->apr.info, address(4, 9).raw, 16) == 0);
}

/* A refusal may suggest an address, if it is long enough for one. */
static void readdress__refusal(void)
{
	static const struct {
		uint8_t len, at;
		bool changed;
	} rows[] = {{16, 0, true}, {15, 0, false}, {24, 8, true}, {23, 8, false}, {72, 0, true}, {72, 16, false}, {0, 0, false}};
	const struct ur_gid suggested = address(4, 2);

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_cm_msg m = {.attr = UR_CM_REJ, .rej = {.reason = UR_CM_REJ_INVALID_GID, .ari_len = rows[i].len}};
		const struct ur_cm_msg *got;

		memcpy(m.rej.ari + rows[i].at, suggested.raw, 16);
		got = pass_message(4, 4, &m, rows[i].changed);
		CU_ASSERT_EQUAL(got->rej.ari_len, rows[i].len);
		CU_ASSERT_EQUAL(memcmp(got->rej.ari + rows[i].at, address(4, 9).raw, 16) == 0, rows[i].changed);
	}
}

/* The others have no addresses: not a byte changes, whatever their fields have. */
static void readdress__others(void)
{
	static const enum ur_cm_attr others[] = {UR_CM_MRA, UR_CM_REP, UR_CM_RTU, UR_CM_DREQ, UR_CM_DREP};
	const struct ur_readdress_pair pair[2] = {{address(4, 1), address(4, 8)}, {address(4, 2), address(4, 9)}};

	for (unsigned i = 0; i < ur_array_size(others); i++) {
		for (unsigned at = UR_MAD_HDR_LEN; at + 16 <= UR_MAD_LEN; at++) {
			const struct ur_cm_msg m = {.attr = others[i]};
			uint8_t mad[UR_MAD_LEN], before[UR_MAD_LEN];

			CU_ASSERT_FATAL(ur_cm_msg_build(mad, &m));
			memcpy(mad + at, pair[0].from.raw, 16);
			memcpy(before, mad, sizeof(mad));
			CU_ASSERT_FALSE(ur_readdress_cm(mad, pair));
			CU_ASSERT(memcmp(before, mad, sizeof(mad)) == 0);
		}
	}
}

/* Only a datagram of that length to QP 1 is one. */
static void readdress__what_is_a_message(void)
{
	const uint32_t len = UR_BTH_LEN + 8 + UR_MAD_LEN + UR_ICRC_LEN;
	struct ur_bth bth = {.opcode = UR_UD | UR_OP_SEND_ONLY, .dqpn = 1};

	CU_ASSERT(ur_readdress_is_cm(&bth, len));
	CU_ASSERT_FALSE(ur_readdress_is_cm(&bth, len - 1));
	CU_ASSERT_FALSE(ur_readdress_is_cm(&bth, len + 1));
	CU_ASSERT_FALSE(ur_readdress_is_cm(&bth, UR_BTH_LEN + UR_ICRC_LEN));
	bth.dqpn = 2;
	CU_ASSERT_FALSE(ur_readdress_is_cm(&bth, len));
	bth = (struct ur_bth){.opcode = UR_OP_SEND_ONLY, .dqpn = 1};
	CU_ASSERT_FALSE(ur_readdress_is_cm(&bth, len));
}

void ur_suite_between_readdress(void)
{
	CU_pSuite s = CU_add_suite("between_readdress", NULL, NULL);

	CU_ADD_TEST(s, readdress__right_stays_right);
	CU_ADD_TEST(s, readdress__wrong_stays_wrong);
	CU_ADD_TEST(s, readdress__two_steps);
	CU_ADD_TEST(s, readdress__damaged_headers);
	CU_ADD_TEST(s, readdress__request);
	CU_ADD_TEST(s, readdress__request_of_others);
	CU_ADD_TEST(s, readdress__datagram_service);
	CU_ADD_TEST(s, readdress__alternate_path);
	CU_ADD_TEST(s, readdress__refusal);
	CU_ADD_TEST(s, readdress__others);
	CU_ADD_TEST(s, readdress__what_is_a_message);
}
