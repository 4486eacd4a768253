/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole frames: what the parser makes of good ones, the one counter each bad one raises, and building what it parses. */
#include <CUnit/CUnit.h>
#include <infiniband/verbs.h>

#include "base/rng.h"
#include "wire_samples.h"

void ur_suite_frame(void);

enum { L3 = 14, UDP4 = 34, BTH4 = 42, UDP6 = 54, BTH6 = 62 };

static const struct ur_mac mac_a = {{0x02, 0, 0, 0, 0, 0xaa}}, mac_b = {{0x02, 0, 0, 0, 0, 0xbb}};

static void frame_parse__fields4(void)
{
	struct ur_counters c = {0};
	struct ur_pkt p;

	sample_load(&p, sample_send4, sizeof(sample_send4));
	CU_ASSERT_TRUE_FATAL(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(sample_drops(&c), 0);
	CU_ASSERT_EQUAL(p.kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(p.ip_version, 4);
	CU_ASSERT_EQUAL(p.ttl, 64);
	CU_ASSERT_EQUAL(p.tos, 0);
	CU_ASSERT_EQUAL(p.l3_off, L3);
	CU_ASSERT_EQUAL(p.l4_off, UDP4);
	CU_ASSERT_EQUAL(p.bth_off, BTH4);
	CU_ASSERT_EQUAL(p.payload_off, BTH4 + 12);
	CU_ASSERT_EQUAL(p.payload_len, 16);
	CU_ASSERT_EQUAL(p.vlan, 0);
	CU_ASSERT_EQUAL(p.sport, 0xcd48);
	CU_ASSERT_EQUAL(p.bth.opcode, UR_RC | UR_OP_SEND_ONLY);
	CU_ASSERT_EQUAL(p.bth.pkey, UR_PKEY_DEFAULT);
	CU_ASSERT_EQUAL(p.bth.dqpn, 0x11);
	CU_ASSERT_EQUAL(p.bth.psn, 0xaf4887);
	CU_ASSERT_TRUE(p.bth.ackreq);
	CU_ASSERT_TRUE(ur_gid_is_v4(&p.src) && ur_gid_is_v4(&p.dst));
	CU_ASSERT_EQUAL(memcmp(p.src.raw + 12, "\x0a\x63\x00\x03", 4), 0);
	CU_ASSERT_EQUAL(memcmp(p.dst.raw + 12, "\x0a\x63\x00\x02", 4), 0);
	sample_free(&p);
}

static void frame_parse__fields6(void)
{
	struct ur_counters c = {0};
	struct ur_pkt p;
	uint8_t frame[sizeof(sample_send6)];

	memcpy(frame, sample_send6, sizeof(frame));
	frame[L3] = 0x6a; /* traffic class 0xab, flow label 0xcdef1: not covered by the ICRC */
	memcpy(frame + L3 + 1, "\xbc\xde\xf1", 3);
	sample_load(&p, frame, sizeof(frame));
	CU_ASSERT_TRUE_FATAL(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(p.kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(p.ip_version, 6);
	CU_ASSERT_EQUAL(p.tos, 0xab);
	CU_ASSERT_EQUAL(p.flow_label, 0xcdef1);
	CU_ASSERT_EQUAL(p.ttl, 64);
	CU_ASSERT_EQUAL(p.bth_off, BTH6);
	CU_ASSERT_EQUAL(p.payload_len, 16);
	CU_ASSERT_EQUAL(memcmp(p.src.raw, sample_send6 + L3 + 8, 16), 0);
	CU_ASSERT_EQUAL(memcmp(p.dst.raw, sample_send6 + L3 + 24, 16), 0);
	sample_free(&p);
}

static void frame_parse__every_truncation_is_one_drop(void)
{
	for (unsigned six = 0; six < 2; six++) {
		const uint8_t *frame = six ? sample_send6 : sample_send4;
		size_t len = six ? sizeof(sample_send6) : sizeof(sample_send4);

		for (size_t n = 0; n < len; n++) {
			struct ur_counters c = {0};
			struct ur_pkt p;

			sample_load(&p, frame, n);
			CU_ASSERT_FALSE(ur_frame_parse(&p, &c));
			CU_ASSERT_EQUAL(c.v[UR_C_DROP_TRUNCATED], 1);
			CU_ASSERT_EQUAL(sample_drops(&c), 1);
			sample_free(&p);
		}
	}
}

struct mutation {
	const char *what;
	bool six;
	bool fix_sum; /* mend the IPv4 checksum afterwards */
	struct {
		uint8_t off, value;
	} set[4];
	enum ur_counter drop; /* UR_C_COUNT: none, the frame is of kind UR_PKT_OTHER */
};

static const struct mutation mutations[] = {
	{"ip4 version", false, true, {{L3, 0x55}}, UR_C_DROP_BAD_IP},
	{"ip4 header length 4", false, true, {{L3, 0x41}}, UR_C_DROP_BAD_IP},
	{"ip4 total length below header", false, true, {{L3 + 3, 19}}, UR_C_DROP_BAD_IP},
	{"ip4 total length beyond frame", false, true, {{L3 + 3, 0x3d}}, UR_C_DROP_TRUNCATED},
	{"ip4 total length 64k", false, true, {{L3 + 2, 0xff}, {L3 + 3, 0xff}}, UR_C_DROP_TRUNCATED},
	{"ip4 checksum", false, false, {{L3 + 10, 0x00}}, UR_C_DROP_BAD_IP},
	{"ip4 more fragments", false, true, {{L3 + 6, 0x20}}, UR_C_DROP_BAD_IP},
	{"ip4 fragment offset", false, true, {{L3 + 6, 0x00}, {L3 + 7, 0x01}}, UR_C_DROP_BAD_IP},
	{"ip4 with options, UDP to the RoCE port", false, true, {{L3, 0x46}, {UDP4 + 6, 0x12}, {UDP4 + 7, 0xb7}}, UR_C_DROP_BAD_IP},
	{"ip4 other protocol", false, true, {{L3 + 9, 6}}, UR_C_COUNT},
	{"udp other port", false, false, {{UDP4 + 2, 0x12}, {UDP4 + 3, 0xb8}}, UR_C_COUNT},
	{"udp header cut by ip", false, true, {{L3 + 3, 27}}, UR_C_DROP_TRUNCATED},
	{"udp length one less", false, false, {{UDP4 + 5, 0x27}}, UR_C_DROP_BAD_UDP},
	{"udp length one more", false, false, {{UDP4 + 5, 0x29}}, UR_C_DROP_BAD_UDP},
	{"no room for bth and icrc", false, true, {{L3 + 3, 20 + 8 + 15}, {UDP4 + 5, 8 + 15}}, UR_C_DROP_TRUNCATED},
	{"transport version", false, false, {{BTH4 + 1, 0x01}}, UR_C_DROP_TVER},
	{"opcode unknown", false, false, {{BTH4, 0x15}}, UR_C_DROP_OPCODE},
	{"opcode of RD", false, false, {{BTH4, 0x44}}, UR_C_DROP_OPCODE},
	{"opcode 0xff", false, false, {{BTH4, 0xff}}, UR_C_DROP_OPCODE},
	{"extended header does not fit", false, false, {{BTH4, UR_OP_CMP_SWAP}}, UR_C_DROP_TRUNCATED},
	{"pad exceeds payload", false, true, {{L3 + 3, 20 + 8 + 16}, {UDP4 + 5, 8 + 16}, {BTH4 + 1, 0x10}}, UR_C_DROP_PAD},
	{"icrc", false, false, {{sizeof(sample_send4) - 1, 0}}, UR_C_ICRC},
	{"payload", false, false, {{BTH4 + 12, 0x77}}, UR_C_ICRC},
	{"opcode changed to another known one", false, false, {{BTH4, UR_OP_SEND_LAST}}, UR_C_ICRC},
	{"ip6 version", true, false, {{L3, 0x50}}, UR_C_DROP_BAD_IP},
	{"ip6 payload length beyond frame", true, false, {{L3 + 5, 0x29}}, UR_C_DROP_TRUNCATED},
	{"ip6 payload length 0", true, false, {{L3 + 5, 0}}, UR_C_DROP_TRUNCATED},
	{"ip6 extension header", true, false, {{L3 + 6, 43}}, UR_C_COUNT},
	{"ip6 hop-by-hop options that do not fit", true, false, {{L3 + 6, 0}, {L3 + 41, 0xff}}, UR_C_DROP_TRUNCATED},
	{"ip6 hop-by-hop options", true, false, {{L3 + 6, 0}, {L3 + 41, 1}}, UR_C_COUNT},
	{"ip6 udp length", true, false, {{UDP6 + 5, 0x27}}, UR_C_DROP_BAD_UDP},
	{"ip6 source address", true, false, {{L3 + 23, 0x77}}, UR_C_ICRC},
	{"ethertype", false, false, {{12, 0x88}, {13, 0xcc}}, UR_C_COUNT},
	{"two VLAN tags", false, false, {{12, 0x81}, {13, 0}, {16, 0x81}, {17, 0}}, UR_C_COUNT},
};

static void mend_sum(uint8_t *ip)
{
	uint16_t sum;

	memset(ip + 10, 0, 2);
	sum = ur_csum_fold(ur_csum_add(0, ip, (ip[0] & 15u) * 4));
	memcpy(ip + 10, &sum, 2);
}

static void frame_parse__mutations(void)
{
	for (unsigned i = 0; i < ur_array_size(mutations); i++) {
		const struct mutation *m = &mutations[i];
		struct ur_counters c = {0};
		struct ur_pkt p;
		bool ok;

		sample_load(&p, m->six ? sample_send6 : sample_send4, m->six ? sizeof(sample_send6) : sizeof(sample_send4));
		for (unsigned j = 0; j < 4 && m->set[j].off; j++)
			p.data[m->set[j].off] = m->set[j].value;
		if (m->fix_sum)
			mend_sum(p.data + L3);
		ok = ur_frame_parse(&p, &c);
		if (ok != (m->drop == UR_C_COUNT) || (ok ? p.kind != UR_PKT_OTHER : c.v[m->drop] != 1) || sample_drops(&c) != !ok)
			CU_FAIL(m->what);
		sample_free(&p);
	}
}

/* An IPv6 header with ::ffff:10.99.0.3 in it must not pass for a packet of 10.99.0.3. */
static void frame_parse__mapped_address_in_ip6(void)
{
	for (unsigned dst = 0; dst < 2; dst++) {
		struct ur_counters c = {0};
		struct ur_pkt p;

		sample_load(&p, sample_send6, sizeof(sample_send6));
		memcpy(p.data + L3 + 8 + dst * 16, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x63\0\x03", 16);
		CU_ASSERT_FALSE(ur_frame_parse(&p, &c));
		CU_ASSERT_EQUAL(c.v[UR_C_DROP_BAD_IP], 1);
		sample_free(&p);
	}
}

/* Of a packet that was cut out of a train the identification is a guess; everything else in its header is as sure as ever. */
static void frame_parse__identification_of_cut_packets(void)
{
	static const struct {
		unsigned off; /* of a bit that is wrong; 0: none */
		uint8_t flags;
		bool ok;
	} t[] = {
		{0, 0, true},         {0, UR_PKT_CUT, true},       {L3 + 4, 0, false},          {L3 + 4, UR_PKT_CUT, true},
		{L3 + 5, 0, false},   {L3 + 5, UR_PKT_CUT, true},  {L3 + 15, UR_PKT_CUT, false}, {BTH4 + 12, UR_PKT_CUT, false},
		{BTH4 + 11, UR_PKT_CUT, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_counters c = {0};
		struct ur_pkt p;

		sample_load(&p, sample_send4, sizeof(sample_send4));
		p.flags = t[i].flags;
		if (t[i].off)
			p.data[t[i].off] ^= 0x10;
		mend_sum(p.data + L3);
		CU_ASSERT_EQUAL(ur_frame_parse(&p, &c), t[i].ok);
		CU_ASSERT_EQUAL(c.v[UR_C_ICRC], !t[i].ok);
		sample_free(&p);
	}
}

static void frame_parse__ethernet_padding_is_trimmed(void)
{
	uint8_t frame[sizeof(sample_ack4) + 20];
	struct ur_counters c = {0};
	struct ur_pkt p;

	memset(frame, 0xee, sizeof(frame));
	memcpy(frame, sample_ack4, sizeof(sample_ack4));
	sample_load(&p, frame, sizeof(frame));
	CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(p.kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(p.len, sizeof(sample_ack4));
	CU_ASSERT_EQUAL(p.payload_len, 0);
	sample_free(&p);
}

static void frame_parse__vlan(void)
{
	uint8_t frame[sizeof(sample_send4) + 4];
	struct ur_counters c = {0};
	struct ur_pkt p;

	memcpy(frame, sample_send4, 12);
	memcpy(frame + 12, "\x81\x00\x60\x2a", 4);
	memcpy(frame + 16, sample_send4 + 12, sizeof(sample_send4) - 12);
	sample_load(&p, frame, sizeof(frame));
	CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(p.kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(p.vlan, 0x602a);
	CU_ASSERT_EQUAL(p.bth_off, BTH4 + 4);
	sample_free(&p);

	sample_load(&p, frame, 17); /* a tag without the type behind it */
	CU_ASSERT_FALSE(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(c.v[UR_C_DROP_TRUNCATED], 1);
	sample_free(&p);
}

static void frame_parse__arp_is_told_apart(void)
{
	struct ur_counters c = {0};
	struct ur_pkt p;

	sample_load(&p, sample_arp_request, sizeof(sample_arp_request));
	CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(p.kind, UR_PKT_ARP);
	sample_free(&p);
}

/* A CNP as ConnectX sends it: UDP source port 0, BECN, 16 reserved bytes. */
static void frame__cnp(void)
{
	struct ur_counters c = {0};
	struct ur_gid a = ur_gid_from_v4(0x0100000a), b = ur_gid_from_v4(0x0200000a);
	struct ur_bth bth = {.opcode = UR_OP_CNP, .pkey = UR_PKEY_DEFAULT, .becn = true, .migreq = true, .dqpn = 0x123};
	struct ur_path path = {0};
	struct ur_pkt p;

	ur_path_build(&path, &mac_a, &mac_b, 0, &a, &b, 0xc2, 64, 0, 0);
	sample_room(&p, UR_PKT_ROOM);
	memcpy(p.data, path.hdr, path.hdr_len);
	ur_bth_put(p.data + path.hdr_len, &bth);
	memset(p.data + path.hdr_len + UR_BTH_LEN, 0, 16);
	p.l3_off = path.l3_off;
	p.bth_off = path.hdr_len;
	p.ip_version = path.ip_version;
	p.len = path.hdr_len + UR_BTH_LEN + 16u;
	ur_frame_finish(&p, 0);
	memcpy(p.data + p.len, p.tail, p.tail_len);
	p.len += p.tail_len;
	CU_ASSERT_EQUAL(p.len, 14 + 20 + 8 + 12 + 16 + 4);
	CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(p.kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(p.bth.opcode, 0x81);
	CU_ASSERT_TRUE(p.bth.becn);
	CU_ASSERT_EQUAL(p.payload_len, 0);
	CU_ASSERT_EQUAL(p.tos, 0xc2);
	sample_free(&p);
}

struct shape {
	bool six;
	uint16_t vlan;
	unsigned inline_len, nseg;
	uint32_t seg_len[UR_PKT_SEGS];
};

static void gather(struct ur_pkt *out, const struct ur_pkt *p)
{
	uint32_t at = 0;
	uint8_t *frame = malloc(ur_pkt_frame_len(p));

	memcpy(frame, p->data, p->len);
	at = p->len;
	for (unsigned i = 0; i < p->nseg; i++) {
		memcpy(frame + at, p->seg[i].data, p->seg[i].len);
		at += p->seg[i].len;
	}
	memcpy(frame + at, p->tail, p->tail_len);
	sample_load(out, frame, ur_pkt_frame_len(p));
	free(frame);
}

/* Builds a SEND_ONLY of the shape, parses it, and compares what came out. */
static void check_shape(const struct shape *sh, struct ur_rng *rng)
{
	static uint8_t payload[5000];
	struct ur_gid v4a = ur_gid_from_v4(0x0100000a), v4b = ur_gid_from_v4(0x0200000a);
	struct ur_gid v6a = {{0xfd, 1}}, v6b = {{0xfd, 2}};
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = 7, .psn = 0xfffffe};
	struct ur_counters c = {0};
	struct ur_path path = {0};
	struct ur_pkt p, in;
	uint32_t total = sh->inline_len, at = sh->inline_len;

	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)ur_rng_u32(rng);
	for (unsigned i = 0; i < sh->nseg; i++)
		total += sh->seg_len[i];
	bth.pad = (uint8_t)(-total & 3);
	ur_path_build(&path, &mac_a, &mac_a, sh->vlan, sh->six ? &v6a : &v4a, sh->six ? &v6b : &v4b, 0x02, 33, 0xabcde, 0xc123);
	ur_path_set_dmac(&path, &mac_b);
	sample_room(&p, UR_PKT_ROOM);
	memcpy(p.data, path.hdr, path.hdr_len);
	ur_bth_put(p.data + path.hdr_len, &bth);
	memcpy(p.data + path.hdr_len + UR_BTH_LEN, payload, sh->inline_len);
	p.len = path.hdr_len + UR_BTH_LEN + sh->inline_len;
	p.l3_off = path.l3_off;
	p.bth_off = path.hdr_len;
	p.ip_version = path.ip_version;
	for (unsigned i = 0; i < sh->nseg; i++) {
		p.seg[p.nseg++] = (struct ur_seg){.data = payload + at, .len = sh->seg_len[i]};
		at += sh->seg_len[i];
	}
	ur_frame_finish(&p, bth.pad);
	ur_frame_finish(&p, bth.pad); /* once more changes nothing */
	gather(&in, &p);
	CU_ASSERT_TRUE(ur_frame_parse(&in, &c));
	CU_ASSERT_EQUAL(sample_drops(&c), 0);
	CU_ASSERT_EQUAL(in.kind, UR_PKT_ROCE);
	CU_ASSERT_EQUAL(in.vlan, sh->vlan);
	CU_ASSERT_EQUAL(in.tos, 2);
	CU_ASSERT_EQUAL(in.ttl, 33);
	CU_ASSERT_EQUAL(in.flow_label, sh->six ? 0xabcde : 0);
	CU_ASSERT_EQUAL(in.sport, 0xc123);
	CU_ASSERT_TRUE(ur_gid_eq(&in.src, &path.sgid) && ur_gid_eq(&in.dst, &path.dgid));
	CU_ASSERT_EQUAL(memcmp(in.data, mac_b.b, 6), 0);
	CU_ASSERT_EQUAL(memcmp(in.data + 6, mac_a.b, 6), 0);
	CU_ASSERT_EQUAL(in.payload_len, total);
	CU_ASSERT_EQUAL(in.bth.pad, bth.pad);
	CU_ASSERT_EQUAL(memcmp(in.data + in.payload_off, payload, total), 0);
	sample_free(&p);
	sample_free(&in);
}

static void frame_finish__what_is_built_parses(void)
{
	static const struct shape fixed[] = {
		{false, 0, 0, 0, {0}},          {true, 0, 0, 0, {0}},           {false, 0, 1, 0, {0}},
		{true, 5, 3, 0, {0}},           {false, 0xe001, 0, 1, {4096}},  {true, 0, 0, 1, {4096}},
		{false, 0, 16, 1, {1}},         {false, 0, 0, 4, {1, 2, 3, 5}}, {true, 100, 2, 4, {1023, 1, 0, 997}},
		{false, 0, 2048, 2, {7, 2041}}, {true, 0, 4096, 0, {0}},
	};
	struct ur_rng rng = {99};

	for (unsigned i = 0; i < ur_array_size(fixed); i++)
		check_shape(&fixed[i], &rng);
	for (unsigned i = 0; i < 300; i++) {
		struct shape sh = {.six = i & 1, .vlan = i & 2 ? (uint16_t)i : 0, .nseg = ur_rng_below(&rng, UR_PKT_SEGS + 1)};

		sh.inline_len = ur_rng_below(&rng, 300);
		for (unsigned j = 0; j < sh.nseg; j++)
			sh.seg_len[j] = ur_rng_below(&rng, 900);
		check_shape(&sh, &rng);
	}
}

static void csum__reference(void)
{
	static const uint8_t rfc1071[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
	uint8_t buf[64];
	struct ur_rng rng = {3};
	uint16_t got;

	got = ur_csum_fold(ur_csum_add(0, rfc1071, sizeof(rfc1071)));
	CU_ASSERT_EQUAL(memcmp(&got, "\x22\x0d", 2), 0); /* ~0xddf2 */
	for (unsigned n = 0; n < sizeof(buf); n++) {
		uint32_t sum = 0;
		uint8_t want[2];

		for (unsigned i = 0; i < n; i++) {
			buf[i] = (uint8_t)ur_rng_u32(&rng);
			sum += i % 2 ? buf[i] : (uint32_t)buf[i] << 8;
		}
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		ur_put16(want, (uint16_t)~sum);
		got = ur_csum_fold(ur_csum_add(0, buf, n));
		CU_ASSERT_EQUAL(memcmp(&got, want, 2), 0);
	}
}

static void udp_sport__as_verbs(void)
{
	struct ur_rng rng = {4};

	for (unsigned i = 0; i < 1000; i++) {
		uint32_t fl = 1 + ur_rng_below(&rng, 0xfffff);

		CU_ASSERT_EQUAL(ur_udp_sport(fl, 1, 2), ibv_flow_label_to_udp_sport(fl));
	}
	CU_ASSERT_EQUAL(ur_udp_sport(0, 0x11, 0x12), 0xc132);
	CU_ASSERT_EQUAL(ur_udp_sport(0, 0x12, 0x11), 0xc132);
	/* 0xfffffe * 0xffffff = 0xfffffd000002; folded: 0x2 ^ 0xfffffd0 ^ 0xff = 0xfff2d in 20 bits */
	CU_ASSERT_EQUAL(ur_udp_sport(0, 0xfffffe, 0xffffff), ibv_flow_label_to_udp_sport(0xfff2d));
}

static void gid__kinds(void)
{
	struct ur_gid v4 = ur_gid_from_v4(0x0100000a), m4 = ur_gid_from_v4(0x010101ef), b4 = ur_gid_from_v4(0xffffffff);
	struct ur_gid v6 = {{0xfd}}, m6 = {{0xff, 0x02}}, zero = {{0}};

	CU_ASSERT_TRUE(ur_gid_is_v4(&v4) && !ur_gid_is_v4(&v6) && !ur_gid_is_v4(&zero));
	CU_ASSERT_TRUE(ur_gid_is_mcast(&m4) && ur_gid_is_mcast(&m6));
	CU_ASSERT_FALSE(ur_gid_is_mcast(&v4) || ur_gid_is_mcast(&v6) || ur_gid_is_mcast(&b4));
	CU_ASSERT_TRUE(ur_gid_is_zero(&zero) && !ur_gid_is_zero(&v6));
}

static void gid__texts(void)
{
	static const struct {
		struct ur_gid gid;
		const char *text, *ip;
	} rows[] = {
		{{{0}}, "0000:0000:0000:0000:0000:0000:0000:0000", "::"},
		{{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, "0000:0000:0000:0000:0000:ffff:0a00:0001", "10.0.0.1"},
		{{{0xfd, [15] = 1}}, "fd00:0000:0000:0000:0000:0000:0000:0001", "fd00::1"},
		{{{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0xff, 0xff}},
		 "1234:5678:9abc:def0:1111:2222:3333:ffff",
		 "1234:5678:9abc:def0:1111:2222:3333:ffff"},
	};
	char text[UR_GID_TEXT], ip[UR_IP_TEXT];

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		CU_ASSERT_STRING_EQUAL(ur_gid_text(&rows[i].gid, text), rows[i].text);
		CU_ASSERT_STRING_EQUAL(ur_gid_ip(&rows[i].gid, ip), rows[i].ip);
	}
}

void ur_suite_frame(void)
{
	CU_pSuite s = CU_add_suite("frame", NULL, NULL);

	CU_ADD_TEST(s, frame_parse__fields4);
	CU_ADD_TEST(s, frame_parse__fields6);
	CU_ADD_TEST(s, frame_parse__every_truncation_is_one_drop);
	CU_ADD_TEST(s, frame_parse__mutations);
	CU_ADD_TEST(s, frame_parse__mapped_address_in_ip6);
	CU_ADD_TEST(s, frame_parse__identification_of_cut_packets);
	CU_ADD_TEST(s, frame_parse__ethernet_padding_is_trimmed);
	CU_ADD_TEST(s, frame_parse__vlan);
	CU_ADD_TEST(s, frame_parse__arp_is_told_apart);
	CU_ADD_TEST(s, frame__cnp);
	CU_ADD_TEST(s, frame_finish__what_is_built_parses);
	CU_ADD_TEST(s, csum__reference);
	CU_ADD_TEST(s, udp_sport__as_verbs);
	CU_ADD_TEST(s, gid__kinds);
	CU_ADD_TEST(s, gid__texts);
}
