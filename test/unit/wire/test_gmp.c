/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/wire/msg/gmp*.c: IGMP and MLD, as bytes and as messages; what is cut short or lies about its length. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"

void ur_suite_gmp(void);

static const struct ur_mac own = {{2, 0, 0, 0, 0, 1}};
static uint8_t frame[UR_PKT_ROOM];

static struct ur_gid gid(const char *text)
{
	struct ur_gid g = {{0}};
	uint32_t v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return ur_gid_from_v4(v4);
	CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static struct ur_pkt packet(void)
{
	memset(frame, 0xee, sizeof(frame));
	return (struct ur_pkt){.data = frame, .room = sizeof(frame)};
}

static struct ur_gmp_to to(const char *src, const char *dst, uint16_t vlan)
{
	return (struct ur_gmp_to){.smac = own, .vlan = vlan, .src = gid(src), .dst = gid(dst)};
}

/* From the bytes alone, in a buffer that ends where the frame ends. */
static bool reparse(const struct ur_pkt *p, uint32_t len, struct ur_gmp *m, uint8_t **copy)
{
	struct ur_counters c = {{0}};
	struct ur_pkt in = {.len = len, .room = len};
	bool ok;

	in.data = *copy = malloc(len ? len : 1);
	memcpy(in.data, p->data, len);
	ok = ur_frame_parse(&in, &c) && in.kind == UR_PKT_GMP && ur_gmp_parse(&in, m);
	return ok;
}

static const struct {
	const char *src, *dst;
	uint16_t vlan;
	struct ur_gmp m;
	const char *group;
} messages[] = {
	{"10.0.0.1", "224.0.0.1", 0, {.kind = UR_GMP_QUERY, .version = 1, .max_resp = 10 * UR_NS_PER_S}, NULL},
	{"10.0.0.1", "224.0.0.1", 0, {.kind = UR_GMP_QUERY, .version = 2, .max_resp = 10 * UR_NS_PER_S}, NULL},
	{"0.0.0.0", "239.1.2.3", 7, {.kind = UR_GMP_QUERY, .version = 2, .max_resp = UR_NS_PER_S}, "239.1.2.3"},
	{"10.0.0.1",
	 "224.0.0.1",
	 0,
	 {.kind = UR_GMP_QUERY, .version = 3, .max_resp = 10 * UR_NS_PER_S, .robustness = 2, .interval = 125},
	 NULL},
	{"10.0.0.1", "239.1.2.3", 0, {.kind = UR_GMP_QUERY, .version = 3, .max_resp = UR_NS_PER_S, .suppress = true}, "239.1.2.3"},
	{"10.0.0.1", "224.0.0.1", 0, {.kind = UR_GMP_QUERY, .version = 3, .max_resp = 3174400 * UR_NS_PER_MS, .interval = 31744}, NULL},
	{"10.0.0.1", "239.1.2.3", 0, {.kind = UR_GMP_REPORT, .version = 1}, "239.1.2.3"},
	{"10.0.0.1", "239.1.2.3", 9, {.kind = UR_GMP_REPORT, .version = 2}, "239.1.2.3"},
	{"10.0.0.1", "224.0.0.2", 0, {.kind = UR_GMP_LEAVE, .version = 2}, "239.1.2.3"},
	{"fe80::1", "ff02::1", 0, {.kind = UR_GMP_QUERY, .version = 2, .max_resp = 10 * UR_NS_PER_S}, NULL},
	{"fe80::1", "ff0e::5", 7, {.kind = UR_GMP_QUERY, .version = 2, .max_resp = UR_NS_PER_S}, "ff0e::5"},
	{"fe80::1",
	 "ff02::1",
	 0,
	 {.kind = UR_GMP_QUERY, .version = 3, .max_resp = 10 * UR_NS_PER_S, .robustness = 7, .interval = 20},
	 NULL},
	{"fe80::1", "ff02::1", 0, {.kind = UR_GMP_QUERY, .version = 3, .max_resp = 8387584 * UR_NS_PER_MS}, NULL},
	{"fe80::1", "ff0e::5", 0, {.kind = UR_GMP_REPORT, .version = 2}, "ff0e::5"},
	{"::", "ff0e::5", 0, {.kind = UR_GMP_REPORT, .version = 2}, "ff0e::5"},
	{"fe80::1", "ff02::2", 0, {.kind = UR_GMP_LEAVE, .version = 2}, "ff0e::5"},
};

static void build_message(unsigned i, struct ur_pkt *p, struct ur_gmp *m)
{
	struct ur_gmp_to t = to(messages[i].src, messages[i].dst, messages[i].vlan);

	*m = messages[i].m;
	m->v4 = ur_gid_is_v4(&t.dst);
	if (messages[i].group)
		m->group = gid(messages[i].group);
	*p = packet();
	ur_gmp_build(p, &t, m);
}

static void messages__round_trip(void)
{
	for (unsigned i = 0; i < ur_array_size(messages); i++) {
		struct ur_gmp want, got;
		struct ur_pkt p;
		uint8_t *copy;

		build_message(i, &p, &want);
		CU_ASSERT_TRUE(reparse(&p, p.len, &got, &copy));
		CU_ASSERT_EQUAL(got.kind, want.kind);
		CU_ASSERT_EQUAL(got.v4, want.v4);
		CU_ASSERT_EQUAL(got.version, want.version);
		CU_ASSERT_TRUE(ur_gid_eq(&got.group, &want.group));
		CU_ASSERT_EQUAL(got.max_resp, want.max_resp);
		CU_ASSERT_EQUAL(got.suppress, want.suppress);
		CU_ASSERT_EQUAL(got.robustness, want.robustness);
		CU_ASSERT_EQUAL(got.interval, want.interval);
		CU_ASSERT_EQUAL(got.count, 0);
		free(copy);
	}
}

/* The headers that routers look at: hop limit 1, Router Alert, the group's MAC address. */
static void messages__headers(void)
{
	static const uint8_t alert4[4] = {0x94, 4, 0, 0}, alert6[8] = {58, 0, 5, 2, 0, 0, 1, 0};

	for (unsigned i = 0; i < ur_array_size(messages); i++) {
		struct ur_mac mac;
		struct ur_gid dst = gid(messages[i].dst);
		const uint8_t *ip;
		struct ur_gmp m;
		struct ur_pkt p;

		build_message(i, &p, &m);
		mac = ur_mcast_mac(&dst);
		CU_ASSERT_EQUAL(memcmp(p.data, mac.b, 6), 0);
		CU_ASSERT_EQUAL(memcmp(p.data + 6, own.b, 6), 0);
		ip = p.data + (messages[i].vlan ? 18 : 14);
		if (m.v4) {
			CU_ASSERT_EQUAL(ip[0], 0x46);
			CU_ASSERT_EQUAL(ip[1], 0xc0);
			CU_ASSERT_EQUAL(ip[8], 1);
			CU_ASSERT_EQUAL(ip[9], 2);
			CU_ASSERT_EQUAL(memcmp(ip + 20, alert4, 4), 0);
			CU_ASSERT_EQUAL(ur_get16(ip + 2), p.len - (ip - p.data));
		} else {
			CU_ASSERT_EQUAL(ip[6], 0);
			CU_ASSERT_EQUAL(ip[7], 1);
			CU_ASSERT_EQUAL(memcmp(ip + 40, alert6, 8), 0);
			CU_ASSERT_EQUAL(ur_get16(ip + 4), p.len - (ip - p.data) - 40);
		}
	}
}

/* Every prefix of every message is refused, and so is every message with a bit of it changed. */
static void messages__damaged(void)
{
	for (unsigned i = 0; i < ur_array_size(messages); i++) {
		struct ur_gmp want, got;
		struct ur_pkt p;
		uint8_t *copy;

		build_message(i, &p, &want);
		for (uint32_t len = 0; len < p.len; len++) {
			CU_ASSERT_FALSE(reparse(&p, len, &got, &copy));
			free(copy);
		}
		for (uint32_t off = p.payload_off; off < p.len; off++) {
			p.data[off] ^= 0x10;
			CU_ASSERT_FALSE(reparse(&p, p.len, &got, &copy));
			p.data[off] ^= 0x10;
			free(copy);
		}
	}
}

/* As a Linux host sends it when it joins 239.1.2.3 from 10.0.0.1. */
static void report__bytes(void)
{
	static const uint8_t want[] = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x16, 2,    0,    0,  0, 0, 1, 0x08, 0x00, 0x46, 0xc0, 0x00, 0x28,
				       0x00, 0x00, 0x40, 0x00, 0x01, 0x02, 0xfa, 0x01, 10, 0, 0, 1, 224,  0,    0,    22,   0x94, 0x04,
				       0x00, 0x00, 0x22, 0x00, 0xe9, 0xfa, 0,    0,    0,  1, 4, 0, 0,    0,    239,  1,    2,    3};
	struct ur_gmp_to t = to("10.0.0.1", "224.0.0.22", 0);
	struct ur_gid group = gid("239.1.2.3");
	struct ur_pkt p = packet();

	ur_gmp_report_begin(&p, &t);
	CU_ASSERT_TRUE(ur_gmp_report_add(&p, UR_GMP_TO_EX, &group, NULL, 0, 1500));
	ur_gmp_report_end(&p);
	CU_ASSERT_EQUAL_FATAL(p.len, sizeof(want));
	CU_ASSERT_EQUAL(memcmp(p.data, want, 24), 0);
	CU_ASSERT_EQUAL(memcmp(p.data + 26, want + 26, 14), 0);
	CU_ASSERT_EQUAL(memcmp(p.data + 42, want + 42, sizeof(want) - 42), 0);
	/* Checksums by their definition: the sum of all words with them is all ones. */
	CU_ASSERT_EQUAL(ur_csum_fold(ur_csum_add(0, p.data + 14, 24)), 0);
	CU_ASSERT_EQUAL(ur_csum_fold(ur_csum_add(0, p.data + 38, 16)), 0);
}

static void check_records(bool v4)
{
	struct ur_gmp_to t = v4 ? to("10.0.0.1", "224.0.0.22", 5) : to("fe80::1", "ff02::16", 5);
	struct ur_gid group = gid(v4 ? "239.0.0.0" : "ff0e::"),
		      src[2] = {gid(v4 ? "10.0.0.7" : "fd00::7"), gid(v4 ? "10.0.0.8" : "fd00::8")};
	struct ur_pkt p = packet();
	struct ur_gmp_record r;
	struct ur_gmp m;
	uint8_t *copy;
	unsigned n = 0;

	ur_gmp_report_begin(&p, &t);
	for (;; n++) {
		group.raw[15] = (uint8_t)n;
		if (!ur_gmp_report_add(&p, (uint8_t)(1 + n % 6), &group, src, n % 3, 1500))
			break;
	}
	ur_gmp_report_end(&p);
	CU_ASSERT_TRUE(n > 30 && n < 256 && p.len <= 1518);
	CU_ASSERT_TRUE_FATAL(reparse(&p, p.len, &m, &copy));
	CU_ASSERT_EQUAL(m.count, n);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_TRUE_FATAL(ur_gmp_next(&m, &r));
		group.raw[15] = (uint8_t)i;
		CU_ASSERT_TRUE(ur_gid_eq(&r.group, &group));
		CU_ASSERT_EQUAL(r.type, 1 + i % 6);
		CU_ASSERT_EQUAL_FATAL(r.nsources, i % 3);
		for (unsigned k = 0; k < r.nsources; k++) {
			struct ur_gid s = ur_gmp_source(r.sources, v4, k);

			CU_ASSERT_TRUE(ur_gid_eq(&s, &src[k]));
		}
	}
	CU_ASSERT_FALSE(ur_gmp_next(&m, &r));
	free(copy);
	for (uint32_t len = 0; len < p.len; len += 7) {
		CU_ASSERT_FALSE(reparse(&p, len, &m, &copy));
		free(copy);
	}
}

static void records__round_trip(void)
{
	check_records(true);
	check_records(false);
}

static void query__sources(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_gmp_to t = v4 ? to("10.0.0.1", "239.1.2.3", 0) : to("fe80::1", "ff0e::5", 0);
		struct ur_gmp q = {.kind = UR_GMP_QUERY, .version = 3, .group = t.dst, .max_resp = UR_NS_PER_S}, m;
		struct ur_gid src[3] = {gid(v4 ? "10.1.0.1" : "fd01::1"), gid(v4 ? "10.1.0.2" : "fd01::2"),
					gid(v4 ? "10.1.0.3" : "fd01::3")};
		struct ur_pkt p = packet();
		uint8_t *copy;

		ur_gmp_build(&p, &t, &q);
		for (unsigned i = 0; i < 3; i++)
			ur_gmp_add_source(&p, &src[i]);
		CU_ASSERT_TRUE_FATAL(reparse(&p, p.len, &m, &copy));
		CU_ASSERT_EQUAL(m.count, 3);
		for (unsigned i = 0; i < 3; i++) {
			struct ur_gid s = ur_gmp_source(m.at, v4, i);

			CU_ASSERT_TRUE(ur_gid_eq(&s, &src[i]));
		}
		free(copy);
	}
}

/* --- messages that lie, with checksums that do not --- */

static void mend(struct ur_pkt *p)
{
	uint16_t sum;

	memset(p->data + p->payload_off + 2, 0, 2);
	sum = ur_icmp_checksum(p);
	memcpy(p->data + p->payload_off + 2, &sum, 2);
}

static void lies__are_refused(void)
{
	/* Offsets are of the message; a negative one counts from the IP header. */
	static const struct {
		unsigned message;
		int off;
		uint8_t value;
		bool ok;
	} lies[] = {
		{3, 11, 1, false},                                          /* a source that is not there */
		{3, 10, 0xff, false}, {4, 11, 0, true},  {6, 4, 10, false}, /* a report of no group */
		{2, 4, 10, false},                                          /* a query about no group */
		{0, 0, 0x13, true},                                         /* an unknown type */
		{9, 1, 1, false},                                           /* MLD has no code */
		{9, 8, 0xfd, false},                                        /* a query about no group */
		{11, 27, 1, false},   {13, 8, 0, false},
	};

	for (unsigned i = 0; i < ur_array_size(lies); i++) {
		struct ur_gmp m;
		struct ur_pkt p;
		uint8_t *copy;

		build_message(lies[i].message, &p, &m);
		p.data[p.payload_off + lies[i].off] = lies[i].value;
		mend(&p);
		CU_ASSERT_EQUAL(reparse(&p, p.len, &m, &copy), lies[i].ok);
		free(copy);
	}
}

/* Record counts and lengths of all sizes never lead out of the packet. */
static void lies__records(void)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct ur_gmp_to t = v4 ? to("10.0.0.1", "224.0.0.22", 0) : to("fe80::1", "ff02::16", 0);
		struct ur_gid group = gid(v4 ? "239.1.1.1" : "ff0e::5");

		for (unsigned off = 6; off < 12; off++)
			for (unsigned v = 0; v < 256; v += 5) {
				struct ur_pkt p = packet();
				struct ur_gmp_record r;
				struct ur_gmp m;
				uint8_t *copy;
				unsigned n = 0;

				ur_gmp_report_begin(&p, &t);
				for (int i = 0; i < 3; i++)
					ur_gmp_report_add(&p, UR_GMP_TO_IN, &group, &group, 1, 1500);
				ur_gmp_report_end(&p);
				p.data[p.payload_off + off] = (uint8_t)v;
				mend(&p);
				if (reparse(&p, p.len, &m, &copy))
					for (unsigned count = m.count; n < count; n++)
						CU_ASSERT_TRUE(ur_gmp_next(&m, &r));
				CU_ASSERT_TRUE(n <= 3);
				free(copy);
			}
	}
}

/* MLD from elsewhere: another hop limit, no Router Alert, a source that is not link-local. */
static void mld__must_be_of_this_link(void)
{
	static const struct {
		unsigned off;
		uint8_t value;
		bool ok;
	} cases[] = {
		{7, 2, false}, {42, 6, false}, {8, 0xfd, false}, {43, 3, false}, {46, 0, true}, {40, 59, false},
	};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ur_gmp m;
		struct ur_pkt p;
		uint8_t *copy;
		bool ok;

		build_message(9, &p, &m);
		p.data[p.l3_off + cases[i].off] = cases[i].value;
		memcpy(p.src.raw, p.data + p.l3_off + 8, 16);
		mend(&p);
		ok = reparse(&p, p.len, &m, &copy);
		CU_ASSERT_EQUAL(ok, cases[i].ok);
		free(copy);
	}
}

static void mld__without_hop_by_hop(void)
{
	struct ur_gmp m;
	struct ur_pkt p;
	uint8_t *copy;

	build_message(9, &p, &m);
	memmove(p.data + 14 + 40, p.data + 14 + 48, p.len - 62);
	p.len -= 8;
	p.data[14 + 6] = 58;
	ur_put16(p.data + 14 + 4, (uint16_t)(p.len - 54));
	CU_ASSERT_FALSE(reparse(&p, p.len, &m, &copy));
	free(copy);
}

void ur_suite_gmp(void)
{
	CU_pSuite s = CU_add_suite("gmp", NULL, NULL);

	CU_add_test(s, "messages__round_trip", messages__round_trip);
	CU_add_test(s, "messages__headers", messages__headers);
	CU_add_test(s, "messages__damaged", messages__damaged);
	CU_add_test(s, "report__bytes", report__bytes);
	CU_add_test(s, "records__round_trip", records__round_trip);
	CU_add_test(s, "query__sources", query__sources);
	CU_add_test(s, "lies__are_refused", lies__are_refused);
	CU_add_test(s, "lies__records", lies__records);
	CU_add_test(s, "mld__must_be_of_this_link", mld__must_be_of_this_link);
	CU_add_test(s, "mld__without_hop_by_hop", mld__without_hop_by_hop);
}
