/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP echo and neighbour discovery. */
#include <CUnit/CUnit.h>

#include "wire/msg/icmp.h"
#include "wire_samples.h"

void ur_suite_icmp(void);

enum { ICMP6 = 54 };

static const struct ur_mac own = {{0x52, 0x54, 0, 0x99, 0, 2}};

/* Makes the checksum of the ICMP message in a frame right again; the frame is a sample or made by echo_request. */
static void mend(uint8_t *frame, size_t len, bool six, size_t at)
{
	uint32_t sum = 0;
	uint16_t v;

	memset(frame + at + 2, 0, 2);
	if (six) {
		uint8_t tail[8] = {0};

		ur_put32(tail, (uint32_t)(len - at));
		tail[7] = 58;
		sum = ur_csum_add(ur_csum_add(0, frame + 22, 32), tail, 8);
	}
	v = ur_csum_fold(ur_csum_add(sum, frame + at, len - at));
	memcpy(frame + at + 2, &v, 2);
}

static size_t echo_request(uint8_t *f, bool six, unsigned ip_options, unsigned data)
{
	size_t at = 14 + (six ? 40u : 20 + ip_options), len = at + 8 + data;
	uint16_t v;

	memset(f, 0, len);
	memcpy(f, "\x52\x54\0\x99\0\x02\x52\x54\0\x99\0\x03", 12);
	ur_put16(f + 12, six ? 0x86dd : 0x0800);
	if (six) {
		f[14] = 0x60;
		ur_put16(f + 18, (uint16_t)(8 + data));
		f[20] = 58;
		f[21] = 17;
		memcpy(f + 22, "\xfd\x99\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\xfd\x99\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 32);
	} else {
		f[14] = (uint8_t)(0x45 + ip_options / 4);
		f[15] = 0x20;
		ur_put16(f + 16, (uint16_t)(len - 14));
		f[22] = 17;
		f[23] = 1;
		memcpy(f + 26, "\x0a\x63\0\x03\x0a\x63\0\x02", 8);
		memset(f + 34, 1, ip_options);
		v = ur_csum_fold(ur_csum_add(0, f + 14, 20 + ip_options));
		memcpy(f + 24, &v, 2);
	}
	f[at] = six ? 128 : 8;
	ur_put32(f + at + 4, 0x12345678);
	for (unsigned i = 0; i < data; i++)
		f[at + 8 + i] = (uint8_t)(i * 7);
	mend(f, len, six, at);
	return len;
}

static bool parse(struct ur_pkt *p, struct ur_icmp *m)
{
	struct ur_counters c = {0};

	return ur_frame_parse(p, &c) && (p->kind == UR_PKT_ICMP4 || p->kind == UR_PKT_ICMP6) && ur_icmp_parse(p, m);
}

static bool parse_bytes(const uint8_t *frame, size_t len, struct ur_icmp *m)
{
	struct ur_pkt p;
	bool ok;

	sample_load(&p, frame, len);
	ok = parse(&p, m);
	sample_free(&p);
	return ok;
}

static void check_echo(bool six, unsigned ip_options, unsigned data, bool in_place)
{
	static uint8_t f[5000];
	size_t len = echo_request(f, six, ip_options, data);
	struct ur_pkt in, other, *out = &in;
	struct ur_icmp m;

	sample_load(&in, f, len);
	CU_ASSERT_TRUE_FATAL(parse(&in, &m));
	CU_ASSERT_EQUAL(m.kind, six ? UR_ICMP_ECHO_REQUEST6 : UR_ICMP_ECHO_REQUEST4);
	CU_ASSERT_TRUE(m.id == 0x1234 && m.seq == 0x5678 && m.data_len == data);
	if (!in_place) {
		sample_room(&other, UR_PKT_ROOM);
		out = &other;
	}
	ur_icmp_echo_reply(out, &in, &own);
	CU_ASSERT_EQUAL(memcmp(out->data, "\x52\x54\0\x99\0\x03\x52\x54\0\x99\0\x02", 12), 0);
	CU_ASSERT_TRUE_FATAL(parse(out, &m));
	CU_ASSERT_EQUAL(m.kind, six ? UR_ICMP_ECHO_REPLY6 : UR_ICMP_ECHO_REPLY4);
	CU_ASSERT_TRUE(m.id == 0x1234 && m.seq == 0x5678 && m.data_len == data);
	CU_ASSERT_EQUAL(memcmp(out->data + m.data_off, f + len - data, data), 0);
	CU_ASSERT_EQUAL(out->src.raw[15], 2);
	CU_ASSERT_EQUAL(out->dst.raw[15], 3);
	CU_ASSERT_EQUAL(out->ttl, 64);
	CU_ASSERT_EQUAL(out->tos, six ? 0 : 0x20);
	sample_free(&in);
	if (!in_place)
		sample_free(&other);
}

static void icmp_echo_reply__both_versions_both_ways(void)
{
	static const unsigned sizes[] = {0, 1, 56, 57, 1400, 4000};

	for (unsigned i = 0; i < ur_array_size(sizes); i++)
		for (unsigned way = 0; way < 4; way++)
			check_echo(way & 1, 0, sizes[i], way & 2);
	check_echo(false, 4, 33, true);
	check_echo(false, 40, 33, true);
	check_echo(false, 40, 33, false);
}

static void icmp_echo_reply__bounded_by_room(void)
{
	static uint8_t f[5000];
	size_t len = echo_request(f, false, 0, 4900);
	struct ur_pkt in, out;
	struct ur_icmp m;

	sample_load(&in, f, len);
	sample_room(&out, UR_PKT_ROOM);
	CU_ASSERT_TRUE(parse(&in, &m));
	ur_icmp_echo_reply(&out, &in, &own);
	CU_ASSERT_EQUAL(out.len, UR_PKT_ROOM);
	CU_ASSERT_TRUE(parse(&out, &m));
	CU_ASSERT_EQUAL(m.data_len, UR_PKT_ROOM - 42);
	sample_free(&in);
	sample_free(&out);
}

static void icmp_parse__bad_echo(void)
{
	static uint8_t f[200];

	for (unsigned six = 0; six < 2; six++) {
		size_t at = six ? 54 : 34, len = echo_request(f, six, 0, 20);
		struct ur_icmp m;

		f[at + 10] ^= 1;
		CU_ASSERT_FALSE(parse_bytes(f, len, &m)); /* checksum */
		f[at + 10] ^= 1;
		CU_ASSERT_TRUE(parse_bytes(f, len, &m));
		f[at + 1] = 1;
		mend(f, len, six, at);
		CU_ASSERT_FALSE(parse_bytes(f, len, &m)); /* code */
		f[at + 1] = 0;
		f[at] = 3;
		mend(f, len, six, at);
		CU_ASSERT_TRUE(parse_bytes(f, len, &m));
		CU_ASSERT_EQUAL(m.kind, UR_ICMP_OTHER);
		CU_ASSERT_EQUAL(m.type, 3);
	}
}

/* Messages shorter than their header, with a right checksum. */
static void icmp_parse__short(void)
{
	for (unsigned six = 0; six < 2; six++)
		for (unsigned n = 0; n < 8; n++) {
			uint8_t f[100];
			size_t at = six ? 54 : 34;
			uint16_t v;
			struct ur_icmp m;

			echo_request(f, six, 0, 0);
			if (six) {
				ur_put16(f + 18, (uint16_t)n);
			} else {
				ur_put16(f + 16, (uint16_t)(20 + n));
				memset(f + 24, 0, 2);
				v = ur_csum_fold(ur_csum_add(0, f + 14, 20));
				memcpy(f + 24, &v, 2);
			}
			if (n >= 4)
				mend(f, at + n, six, at);
			CU_ASSERT_FALSE(parse_bytes(f, at + n, &m));
		}
}

static void icmp_parse__captured_nd(void)
{
	struct ur_icmp m;

	CU_ASSERT_TRUE_FATAL(parse_bytes(sample_ns, sizeof(sample_ns), &m));
	CU_ASSERT_EQUAL(m.kind, UR_ICMP_NS);
	CU_ASSERT_EQUAL(memcmp(m.nd.target.raw, "\xfd\x99\0\0\0\0\0\0\0\0\0\0\0\0\0\x02", 16), 0);
	CU_ASSERT_TRUE(m.nd.has_lladdr);
	CU_ASSERT_EQUAL(memcmp(m.nd.lladdr.b, "\x52\x54\0\x99\0\x03", 6), 0);
	CU_ASSERT_FALSE(m.nd.router || m.nd.solicited || m.nd.override);

	CU_ASSERT_TRUE_FATAL(parse_bytes(sample_na, sizeof(sample_na), &m));
	CU_ASSERT_EQUAL(m.kind, UR_ICMP_NA);
	CU_ASSERT_TRUE(m.nd.has_lladdr && m.nd.solicited && m.nd.override && !m.nd.router);
	CU_ASSERT_EQUAL(memcmp(m.nd.lladdr.b, "\x52\x54\0\x99\0\x02", 6), 0);
}

struct nd_mutation {
	const char *what;
	bool na;
	struct {
		uint8_t off, value;
	} set[3];
	uint8_t fill_off, fill_len; /* bytes to be zeroed */
	bool ok;
};

static const struct nd_mutation nd_mutations[] = {
	{"untouched", false, {{0, 0x33}}, 0, 0, true},
	{"hop limit 254", false, {{21, 254}}, 0, 0, false},
	{"hop limit 254, na", true, {{21, 254}}, 0, 0, false},
	{"code 1", false, {{ICMP6 + 1, 1}}, 0, 0, false},
	{"multicast target", false, {{ICMP6 + 8, 0xff}}, 0, 0, false},
	{"multicast target, na", true, {{ICMP6 + 8, 0xff}}, 0, 0, false},
	{"option of length 0", false, {{ICMP6 + 25, 0}}, 0, 0, false},
	{"option beyond the end", false, {{ICMP6 + 25, 2}}, 0, 0, false},
	{"unknown option", false, {{ICMP6 + 24, 14}}, 0, 0, true},
	{"unspecified source with link-layer address", false, {{0, 0x33}}, 22, 16, false},
	{"unspecified source, no link-layer address", false, {{ICMP6 + 24, 14}}, 22, 16, true},
	{"unspecified source, not to the solicited-node group", false, {{ICMP6 + 24, 14}, {49, 2}}, 22, 16, false},
	{"solicited advertisement to a group", true, {{38, 0xff}}, 0, 0, false},
	{"unsolicited advertisement to a group", true, {{38, 0xff}, {ICMP6 + 4, 0x20}}, 0, 0, true},
};

static void icmp_parse__nd_rules(void)
{
	for (unsigned i = 0; i < ur_array_size(nd_mutations); i++) {
		const struct nd_mutation *t = &nd_mutations[i];
		uint8_t f[sizeof(sample_ns)];
		struct ur_icmp m;

		memcpy(f, t->na ? sample_na : sample_ns, sizeof(f));
		for (unsigned j = 0; j < 3 && (j == 0 || t->set[j].off); j++)
			f[t->set[j].off] = t->set[j].value;
		memset(f + t->fill_off, 0, t->fill_len);
		mend(f, sizeof(f), true, ICMP6);
		if (parse_bytes(f, sizeof(f), &m) != t->ok)
			CU_FAIL(t->what);
	}
}

/* Every length that the IP header may give the message: only whole options pass. */
static void icmp_parse__nd_lengths(void)
{
	for (unsigned n = 0; n <= 32; n++) {
		uint8_t f[sizeof(sample_ns)];
		struct ur_icmp m;

		memcpy(f, sample_ns, sizeof(f));
		ur_put16(f + 18, (uint16_t)n);
		if (n >= 4)
			mend(f, ICMP6 + n, true, ICMP6);
		CU_ASSERT_EQUAL(parse_bytes(f, ICMP6 + n, &m), n == 24 || n == 32);
	}
}

static void nd_build__captured_bytes(void)
{
	static const struct {
		const uint8_t *frame;
		size_t len;
	} frames[] = {{sample_ns, sizeof(sample_ns)}, {sample_na, sizeof(sample_na)}};

	for (unsigned i = 0; i < 2; i++) {
		struct ur_mac dst, src;
		struct ur_icmp m;
		struct ur_pkt in, p;

		sample_load(&in, frames[i].frame, frames[i].len);
		CU_ASSERT_TRUE(parse(&in, &m));
		memcpy(dst.b, frames[i].frame, 6);
		memcpy(src.b, frames[i].frame + 6, 6);
		sample_room(&p, UR_PKT_ROOM);
		ur_nd_build(&p, m.kind, &src, &dst, 0, &in.src, &in.dst, &m.nd);
		CU_ASSERT_EQUAL(ur_pkt_frame_len(&p), frames[i].len);
		CU_ASSERT_EQUAL(memcmp(p.data, frames[i].frame, frames[i].len), 0);
		sample_free(&in);
		sample_free(&p);
	}
}

static void nd_build__all_flags_and_vlan(void)
{
	for (unsigned bits = 0; bits < 16; bits++) {
		struct ur_nd nd = {.target = {{0xfe, 0x80, [15] = 9}},
				   .has_lladdr = bits & 1,
				   .lladdr = own,
				   .router = bits & 2,
				   .solicited = bits & 4,
				   .override = bits & 8};
		struct ur_gid a = {{0xfe, 0x80, [15] = 1}}, b = {{0xfe, 0x80, [15] = 2}};
		struct ur_icmp m;
		struct ur_pkt p;

		sample_room(&p, 90);
		ur_nd_build(&p, UR_ICMP_NA, &own, &own, 12, &a, &b, &nd);
		CU_ASSERT_TRUE(parse(&p, &m));
		CU_ASSERT_EQUAL(p.vlan, 12);
		CU_ASSERT_EQUAL(m.kind, UR_ICMP_NA);
		CU_ASSERT_EQUAL(m.nd.has_lladdr, nd.has_lladdr);
		CU_ASSERT_TRUE(m.nd.router == nd.router && m.nd.solicited == nd.solicited && m.nd.override == nd.override);
		CU_ASSERT_TRUE(ur_gid_eq(&m.nd.target, &nd.target));
		sample_free(&p);
	}
}

/* An error about a RoCEv2 packet of ours (fd99::2 or 10.99.0.2) to fd99::3 or 10.99.0.3, which quotes so much of it from its BTH on. */
static size_t unreachable(uint8_t *f, bool six, uint8_t code, unsigned quoted)
{
	unsigned hdr = six ? 40 : 20, data = hdr + 8 + quoted;
	size_t len = echo_request(f, six, 0, data), at = len - data - 8;
	uint8_t *ip = f + at + 8;

	f[at] = six ? 1 : 3;
	f[at + 1] = code;
	memset(ip, 0, data);
	memcpy(ip, f + 14, hdr); /* whose addresses are the other way round */
	memcpy(ip + (six ? 8 : 12), f + (six ? 38 : 30), six ? 16 : 4);
	memcpy(ip + (six ? 24 : 16), f + (six ? 22 : 26), six ? 16 : 4);
	ip[six ? 6 : 9] = 17;
	ur_put16(ip + hdr + 2, UR_ROCE_PORT);
	memset(ip + hdr + 8, 0xbb, quoted);
	mend(f, len, six, at);
	return len;
}

static void icmp_parse__unreachable(void)
{
	static const unsigned quotes[] = {0, 12, 100};
	uint8_t f[512];
	struct ur_icmp m;

	for (int six = 0; six < 2; six++) {
		size_t len = 0, ip = 14 + (six ? 40u : 20) + 8;

		for (unsigned i = 0; i < ur_array_size(quotes); i++) {
			len = unreachable(f, six, six ? 4 : 3, quotes[i]);
			CU_ASSERT(parse_bytes(f, len, &m) && m.kind == UR_ICMP_UNREACHABLE);
			CU_ASSERT_EQUAL(m.hop_mtu, 0);
			CU_ASSERT_EQUAL(m.quote.len, quotes[i]);
			CU_ASSERT_EQUAL(m.quote.bth_off, len - quotes[i]);
			CU_ASSERT_EQUAL(m.quote.src.raw[15], 2);
			CU_ASSERT_EQUAL(m.quote.dst.raw[15], 3);
		}
		f[ip + (six ? 6 : 9)] = 6; /* TCP */
		mend(f, len, six, ip - 8);
		CU_ASSERT(parse_bytes(f, len, &m) && m.kind == UR_ICMP_OTHER);
		len = unreachable(f, six, 1, 12);
		f[ip + (six ? 40 : 20) + 3] ^= 1; /* another port */
		mend(f, len, six, ip - 8);
		CU_ASSERT(parse_bytes(f, len, &m) && m.kind == UR_ICMP_OTHER);
		len = unreachable(f, six, 1, 12);
		f[ip] ^= 0x70; /* another version */
		mend(f, len, six, ip - 8);
		CU_ASSERT(parse_bytes(f, len, &m) && m.kind == UR_ICMP_OTHER);
	}
}

/* An error about a packet that is too long for a hop, which carries so much. */
static bool parse_too_long(bool six, uint32_t mtu, struct ur_icmp *m)
{
	uint8_t f[512];
	size_t len = unreachable(f, six, six ? 0 : 4, 12), at = 14 + (six ? 40u : 20);

	f[at] = six ? 2 : 3;
	ur_put32(f + at + 4, mtu);
	mend(f, len, six, at);
	return parse_bytes(f, len, m);
}

static void icmp_parse__too_long(void)
{
	static const struct {
		bool six;
		uint32_t told;
		uint16_t mtu; /* 0: no hop says that */
	} cases[] = {{false, 1500, 1500},   {false, 68, 68},           {false, 67, 0},        {false, 0, 576},
		     {false, 65535, 65535}, {true, 1280, 1280},        {true, 1500, 1500},    {true, 1279, 0},
		     {true, 0, 0},          {true, 0xffffffff, 65535}, {true, 0x10500, 65535}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_icmp m;

		CU_ASSERT_TRUE(parse_too_long(cases[i].six, cases[i].told, &m));
		CU_ASSERT_EQUAL(m.kind, cases[i].mtu ? UR_ICMP_TOO_LONG : UR_ICMP_OTHER);
		if (!cases[i].mtu)
			continue;
		CU_ASSERT_EQUAL(m.hop_mtu, cases[i].mtu);
		CU_ASSERT_EQUAL(m.quote.len, 12);
		CU_ASSERT_EQUAL(m.quote.dst.raw[15], 3);
	}
}

/* Cut anywhere, an error is of no interest, and nothing behind its end is read: samples end where their memory does. */
static void icmp_parse__unreachable_cut(void)
{
	uint8_t f[512];
	struct ur_icmp m;

	for (int six = 0; six < 2; six++) {
		size_t whole = unreachable(f, six, 1, 12), at = 14 + (six ? 40u : 20);

		for (size_t len = at + 4; len < whole - 12; len++) {
			if (six)
				ur_put16(f + 18, (uint16_t)(len - at));
			else
				ur_put16(f + 16, (uint16_t)(len - 14));
			if (!six) {
				uint16_t v;

				memset(f + 24, 0, 2);
				v = ur_csum_fold(ur_csum_add(0, f + 14, 20));
				memcpy(f + 24, &v, 2);
			}
			mend(f, len, six, at);
			CU_ASSERT(parse_bytes(f, len, &m) && m.kind == UR_ICMP_OTHER);
			unreachable(f, six, 1, 12);
		}
	}
}

static void mcast__addresses(void)
{
	struct ur_gid v4 = ur_gid_from_v4(0x0303ffef) /* 239.255.3.3 */, ip = {{0xfd, 0x99, [12] = 0xab, 0xcd, 0xef, 0x12}};
	struct ur_gid sn = ur_nd_solicited_node(&ip);
	struct ur_mac m4 = ur_mcast_mac(&v4), m6 = ur_mcast_mac(&sn);

	CU_ASSERT_EQUAL(memcmp(sn.raw, "\xff\x02\0\0\0\0\0\0\0\0\0\x01\xff\xcd\xef\x12", 16), 0);
	CU_ASSERT_EQUAL(memcmp(m4.b, "\x01\x00\x5e\x7f\x03\x03", 6), 0);
	CU_ASSERT_EQUAL(memcmp(m6.b, "\x33\x33\xff\xcd\xef\x12", 6), 0);
}

void ur_suite_icmp(void)
{
	CU_pSuite s = CU_add_suite("icmp", NULL, NULL);

	CU_ADD_TEST(s, icmp_echo_reply__both_versions_both_ways);
	CU_ADD_TEST(s, icmp_echo_reply__bounded_by_room);
	CU_ADD_TEST(s, icmp_parse__bad_echo);
	CU_ADD_TEST(s, icmp_parse__short);
	CU_ADD_TEST(s, icmp_parse__captured_nd);
	CU_ADD_TEST(s, icmp_parse__nd_rules);
	CU_ADD_TEST(s, icmp_parse__nd_lengths);
	CU_ADD_TEST(s, nd_build__captured_bytes);
	CU_ADD_TEST(s, nd_build__all_flags_and_vlan);
	CU_ADD_TEST(s, icmp_parse__unreachable);
	CU_ADD_TEST(s, icmp_parse__too_long);
	CU_ADD_TEST(s, icmp_parse__unreachable_cut);
	CU_ADD_TEST(s, mcast__addresses);
}
