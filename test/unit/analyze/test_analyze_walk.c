/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers in front of packets, cut at every byte; and IP fragments put together. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/frame/gather.h"
#include "analyze/frame/walk.h"
#include "analyze_harness.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

void ur_suite_analyze_walk(void);

#define ZEROS "\0\0\0\0\0\0\0\0\0\0\0\0"
#define IP4(proto) "\x45\0\1\x2c\0\0\0\0\x40" proto "\0\0\1\1\1\1\2\2\2\2"

static const struct {
	const char *name;
	enum ur_an_link link;
	uint32_t n;
	const char *bytes;
} outer[] = {
	{"bare", UR_AN_RAW_IP, 0, ""},
	{"VLAN", UR_AN_ETHERNET, 18, ZEROS "\x91\0\0\1\x08\0"},
	{"VN-tag", UR_AN_ETHERNET, 20, ZEROS "\x89\x26\0\1\0\1\x08\0"},
	{"802.1ah", UR_AN_ETHERNET, 32, ZEROS "\x88\xe7\0\0\0\1" ZEROS "\x08\0"},
	{"MPLS", UR_AN_ETHERNET, 22, ZEROS "\x88\x47\0\1\0\x40\0\1\1\x40"},
	{"PPPoE", UR_AN_ETHERNET, 22, ZEROS "\x88\x64\x11\0\0\1\1\0\0\x21"},
	{"Arista's time", UR_AN_ETHERNET, 26, ZEROS "\xd2\x8b\0\1\0\x20\1\2\3\4\5\6\x08\0"},
	{"GRE", UR_AN_ETHERNET, 42, ZEROS "\x08\0" IP4("\x2f") "\x20\0\x08\0\0\0\0\7"},
	{"ERSPAN II", UR_AN_ETHERNET, 64, ZEROS "\x08\0" IP4("\x2f") "\x10\0\x88\xbe\0\0\0\1\x10\0\0\0\0\0\0\0" ZEROS "\x08\0"},
	{"GENEVE", UR_AN_ETHERNET, 54, ZEROS "\x08\0" IP4("\x11") "\0\0\x17\xc1\0\0\0\0\1\0\x08\0\0\0\0\0\0\0\0\0"},
	{"GTP-U", UR_AN_ETHERNET, 50, ZEROS "\x08\0" IP4("\x11") "\0\0\x08\x68\0\0\0\0\x30\xff\0\0\0\0\0\1"},
	{"IP in IP", UR_AN_ETHERNET, 34, ZEROS "\x08\0" IP4("\x04")},
	{"loopback", UR_AN_LOOPBACK, 4, "\2\0\0\0"},
	{"ERF", UR_AN_ERF, 16, "\0\0\0\0\0\0\0\0\x16\4\0\0\0\0\0\0"},
	{"cooked", UR_AN_SLL, 16, "\0\0\0\1\0\6\0\0\0\0\0\0\0\0\x08\0"},
};

/* A SEND of eight bytes, as raw IP. */
static uint32_t packet(uint8_t *to)
{
	struct ur_recording r = {.name = "walk"};
	uint32_t n;

	analyze_add_step(&r, &(struct step){'A', UR_OP_SEND_ONLY, 100, 8, 0, 9}, UR_NS_PER_S);
	n = r.f[0].len - UR_ETH_LEN;
	memcpy(to, r.f[0].data + UR_ETH_LEN, n);
	ur_recording_free(&r);
	return n;
}

static void walk__each(void)
{
	for (unsigned i = 0; i < ur_array_size(outer); i++) {
		uint8_t frame[512];
		struct ur_an_frame f = {.number = 1, .link = outer[i].link};
		const uint32_t head = outer[i].n;
		struct an_pkt p;

		memcpy(frame, outer[i].bytes, head);
		f.len = f.have = head + packet(frame + head);
		f.data = frame;
		if (head >= 34 && frame[12] == 8) /* the outer packet's length */
			ur_put16(frame + UR_ETH_LEN + 2, (uint16_t)(f.len - UR_ETH_LEN));
		CU_ASSERT_TRUE(an_dissect(&f, &p));
		if (!p.bth_at)
			printf("# %s\n", outer[i].name);
		CU_ASSERT_PTR_EQUAL(p.ip, frame + head);
		CU_ASSERT_EQUAL(p.icrc, AN_ICRC_OK);
		CU_ASSERT_EQUAL(p.bth.psn, 100);
		for (uint32_t have = 0; have < f.len; have++) { /* in memory that ends there */
			uint8_t *cut = malloc(have ? have : 1);
			struct ur_an_frame c = f;

			memcpy(cut, frame, have);
			c.data = cut;
			c.have = have;
			CU_ASSERT_EQUAL(an_dissect(&c, &p), have >= head + UR_IP4_LEN + UR_UDP_LEN + UR_BTH_LEN);
			free(cut);
		}
	}
}

/* Headers that lead to themselves end. */
static void walk__bounded(void)
{
	uint8_t frame[400] = ZEROS "\x81";
	struct ur_an_frame f = {.number = 1, .link = UR_AN_ETHERNET, .data = frame, .have = sizeof(frame), .len = sizeof(frame)};
	struct an_pkt p;

	for (unsigned i = 12; i + 4 <= sizeof(frame); i += 4)
		memcpy(frame + i, "\x81\0\0\1", 4);
	CU_ASSERT_FALSE(an_dissect(&f, &p));
	for (unsigned i = 0; i + 4 <= sizeof(frame); i += 4)
		memcpy(frame + i, "\0\0\0\0", 4); /* labels that are never the last */
	memcpy(frame + 12, "\x88\x47", 2);
	CU_ASSERT_FALSE(an_dissect(&f, &p));
}

static void walk__strange(void)
{
	static const struct {
		uint16_t type;
		enum ur_an_link link;
		enum ur_an_strange what;
	} rows[] = {
		{0x8915, UR_AN_ETHERNET, UR_AN_ROCE_V1},     {0x88e5, UR_AN_ETHERNET, UR_AN_MACSEC},
		{0x0806, UR_AN_ETHERNET, UR_AN_NOT_STRANGE}, {0x0806, UR_AN_NATIVE_IB, UR_AN_INFINIBAND},
		{0, UR_AN_OTHER, UR_AN_UNREAD_LINK},
	};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		uint8_t frame[64] = {0};
		struct ur_an_frame f = {.number = 1, .link = rows[i].link, .data = frame, .have = sizeof(frame), .len = sizeof(frame)};
		enum ur_an_strange what;

		ur_put16(frame + 12, rows[i].type);
		CU_ASSERT_FALSE(ur_an_has_packet(&f, &what));
		CU_ASSERT_EQUAL(what, rows[i].what);
	}
}

/* What other transports send over UDP; `opcode` is that of the BTH. A damaged opcode is RoCEv2. */
static void walk__other_transports(void)
{
	static const struct {
		uint16_t port;
		uint8_t opcode;
		enum ur_an_strange what;
		bool damaged, has;
	} rows[] = {
		{49150, 0x04, UR_AN_ULTRA_ETHERNET, false, false},    {4793, 0x04, UR_AN_ULTRA_ETHERNET, false, false},
		{UR_ROCE_PORT, 0xc6, UR_AN_MRC, false, false},        {UR_ROCE_PORT, 0xde, UR_AN_MRC, false, false},
		{UR_ROCE_PORT, 0xc5, UR_AN_NOT_STRANGE, false, true}, {UR_ROCE_PORT, 0xdf, UR_AN_NOT_STRANGE, false, true},
		{UR_ROCE_PORT, 0xc6, UR_AN_NOT_STRANGE, true, true},
	};

	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		uint8_t ip[UR_IP4_LEN + UR_UDP_LEN + UR_BTH_LEN + UR_ICRC_LEN] = {0x45, 0, 0, sizeof(ip), [8] = 64, [9] = UR_PROTO_UDP};
		struct ur_an_frame f = {.number = 1, .link = UR_AN_RAW_IP, .data = ip, .have = sizeof(ip), .len = sizeof(ip)};
		uint8_t *udp = ip + UR_IP4_LEN;
		enum ur_an_strange what;

		ur_put16(udp + 2, rows[i].port);
		ur_put16(udp + 4, sizeof(ip) - UR_IP4_LEN);
		udp[UR_UDP_LEN] = rows[i].opcode;
		ur_icrc_end(ur_icrc_begin(ip, 4, UR_IP4_LEN + UR_UDP_LEN + UR_BTH_LEN), ip + sizeof(ip) - UR_ICRC_LEN);
		ip[sizeof(ip) - 1] ^= rows[i].damaged;
		CU_ASSERT_EQUAL(ur_an_has_packet(&f, &what), rows[i].has);
		CU_ASSERT_EQUAL(what, rows[i].what);
	}
}

/* --- fragments --- */

/* Part of a packet of `total` bytes after its header, from `at` on. */
static bool part(struct ur_gatherer *g, uint16_t id, uint32_t at, uint32_t n, bool more, uint8_t fill, struct ur_an_frame *f)
{
	static uint8_t frame[2048];

	memset(frame, 0, UR_ETH_LEN + UR_IP4_LEN);
	ur_put16(frame + 12, 0x0800);
	frame[UR_ETH_LEN] = 0x45;
	ur_put16(frame + UR_ETH_LEN + 2, (uint16_t)(UR_IP4_LEN + n));
	ur_put16(frame + UR_ETH_LEN + 4, id);
	ur_put16(frame + UR_ETH_LEN + 6, (uint16_t)(at / 8 | (more ? 0x2000 : 0)));
	frame[UR_ETH_LEN + 9] = UR_PROTO_UDP;
	memset(frame + UR_ETH_LEN + UR_IP4_LEN, fill, n);
	*f = (struct ur_an_frame){.number = 1, .link = UR_AN_ETHERNET, .data = frame, .have = UR_ETH_LEN + UR_IP4_LEN + n};
	f->len = f->have;
	return ur_gather(g, f);
}

static bool is_whole(const struct ur_an_frame *f, uint32_t n)
{
	return f->link == UR_AN_RAW_IP && f->len == UR_IP4_LEN + n && f->have == f->len && ur_get16(f->data + 2) == f->len &&
	       !ur_get16(f->data + 6);
}

static void gather__in_any_order(void)
{
	static const uint8_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	struct ur_gatherer *g = ur_gatherer_create();
	struct ur_an_frame f;

	for (unsigned i = 0; i < ur_array_size(orders); i++) {
		for (unsigned k = 0; k < 3; k++)
			CU_ASSERT_EQUAL(part(g, 7, orders[i][k] * 800u, orders[i][k] == 2 ? 5 : 800, orders[i][k] < 2,
					     (uint8_t)(orders[i][k] + 1), &f),
					k < 2);
		CU_ASSERT_TRUE(is_whole(&f, 1605));
		CU_ASSERT_TRUE(f.data[20] == 1 && f.data[819] == 1 && f.data[820] == 2 && f.data[1620] == 3 && f.data[1624] == 3);
	}
	ur_gatherer_destroy(g);
}

static void gather__refuses(void)
{
	struct ur_gatherer *g = ur_gatherer_create();
	struct ur_an_frame f;

	CU_ASSERT_FALSE(part(g, 1, 0, 801, true, 1, &f));      /* in the middle, parts are multiples of eight */
	CU_ASSERT_FALSE(part(g, 2, 65528, 800, false, 1, &f)); /* longer than any packet */
	CU_ASSERT_TRUE(part(g, 3, 800, 100, false, 1, &f));
	CU_ASSERT_FALSE(part(g, 3, 1600, 800, true, 1, &f)); /* behind the last */
	CU_ASSERT_TRUE(part(g, 3, 0, 800, true, 1, &f));     /* what was before is forgotten */
	f.len++;
	f.have = f.len - 8; /* cut by the recorder */
	CU_ASSERT_FALSE(ur_gather(g, &f));
	ur_gatherer_destroy(g);
}

/* Where parts overlap, what came first counts, and the packet is complete once. */
static void gather__overlaps(void)
{
	struct ur_gatherer *g = ur_gatherer_create();
	struct ur_an_frame f;

	CU_ASSERT_TRUE(part(g, 9, 0, 80, true, 1, &f));
	CU_ASSERT_TRUE(part(g, 9, 0, 80, true, 2, &f));
	CU_ASSERT_TRUE(part(g, 9, 40, 80, true, 3, &f));
	CU_ASSERT_FALSE(part(g, 9, 96, 64, false, 4, &f));
	CU_ASSERT_TRUE(is_whole(&f, 160));
	CU_ASSERT_TRUE(f.data[20 + 79] == 1 && f.data[20 + 80] == 3 && f.data[20 + 119] == 3 && f.data[20 + 120] == 4);
	CU_ASSERT_TRUE(part(g, 9, 96, 64, false, 4, &f)); /* of another packet now */
	ur_gatherer_destroy(g);
}

/* The oldest packet is given up for a new one. */
static void gather__bounded(void)
{
	struct ur_gatherer *g = ur_gatherer_create();
	struct ur_an_frame f;

	for (unsigned i = 0; i <= UR_AN_GATHERED; i++)
		CU_ASSERT_TRUE(part(g, (uint16_t)i, 0, 8, true, 1, &f));
	CU_ASSERT_FALSE(part(g, UR_AN_GATHERED, 8, 8, false, 1, &f));
	CU_ASSERT_TRUE(is_whole(&f, 16));
	CU_ASSERT_TRUE(part(g, 0, 8, 8, false, 1, &f)); /* its first part is gone */
	CU_ASSERT_FALSE(part(g, 2, 8, 8, false, 1, &f));
	CU_ASSERT_TRUE(is_whole(&f, 16));
	ur_gatherer_destroy(g);
}

void ur_suite_analyze_walk(void)
{
	CU_pSuite s = CU_add_suite("analyze_walk", NULL, NULL);

	CU_add_test(s, "walk: each, and cut", walk__each);
	CU_add_test(s, "walk: bounded", walk__bounded);
	CU_add_test(s, "walk: what is not read", walk__strange);
	CU_add_test(s, "walk: other transports", walk__other_transports);
	CU_add_test(s, "gather: in any order", gather__in_any_order);
	CU_add_test(s, "gather: refuses", gather__refuses);
	CU_add_test(s, "gather: overlaps", gather__overlaps);
	CU_add_test(s, "gather: bounded", gather__bounded);
}
