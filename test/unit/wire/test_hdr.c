/* SPDX-License-Identifier: BSD-3-Clause */
/* BTH and extended headers: exact bytes, and back. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "wire/hdr.h"

void ur_suite_hdr(void);

static void bth__bytes(void)
{
	static const uint8_t want[UR_BTH_LEN] = {0x0a, 0xf0, 0x12, 0x34, 0xc0, 0xab, 0xcd, 0xef, 0x80, 0x98, 0x76, 0x54};
	struct ur_bth b = {.opcode = 0x0a,
			   .pad = 3,
			   .se = true,
			   .migreq = true,
			   .ackreq = true,
			   .fecn = true,
			   .becn = true,
			   .pkey = 0x1234,
			   .dqpn = 0xabcdef,
			   .psn = 0x987654},
		      back;
	uint8_t p[UR_BTH_LEN];

	memset(p, 0x5a, sizeof(p));
	ur_bth_put(p, &b);
	CU_ASSERT_EQUAL(memcmp(p, want, sizeof(want)), 0);
	memset(&back, 0, sizeof(back));
	ur_bth_get(p, &back);
	CU_ASSERT_EQUAL(back.opcode, 0x0a);
	CU_ASSERT_EQUAL(back.pad, 3);
	CU_ASSERT_EQUAL(back.tver, 0);
	CU_ASSERT_TRUE(back.se && back.migreq && back.ackreq && back.fecn && back.becn);
	CU_ASSERT_EQUAL(back.pkey, 0x1234);
	CU_ASSERT_EQUAL(back.dqpn, 0xabcdef);
	CU_ASSERT_EQUAL(back.psn, 0x987654);
}

/* One flag at a time: none of them leaks into another. */
static void bth__single_bits(void)
{
	static const struct {
		uint8_t byte, value;
	} bits[] = {{1, 0x80}, {1, 0x40}, {4, 0x80}, {4, 0x40}, {8, 0x80}, {1, 0x10}, {1, 0x20}, {1, 0x01}, {1, 0x08}};

	for (unsigned i = 0; i < ur_array_size(bits); i++) {
		uint8_t in[UR_BTH_LEN] = {0}, out[UR_BTH_LEN];
		struct ur_bth b;

		in[bits[i].byte] = bits[i].value;
		ur_bth_get(in, &b);
		CU_ASSERT_EQUAL(b.se + b.migreq + b.fecn + b.becn + b.ackreq + !!b.pad + !!b.tver, 1);
		ur_bth_put(out, &b);
		CU_ASSERT_EQUAL(memcmp(in, out, sizeof(in)), 0);
	}
}

static void reth__bytes(void)
{
	static const uint8_t want[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xff, 0xfe, 0xfd, 0xfc};
	struct ur_reth h = {0x0102030405060708, 0x090a0b0c, 0xfffefdfc}, back;
	uint8_t p[16];

	ur_reth_put(p, &h);
	CU_ASSERT_EQUAL(memcmp(p, want, 16), 0);
	ur_reth_get(p, &back);
	CU_ASSERT_TRUE(back.va == h.va && back.rkey == h.rkey && back.len == h.len);
}

static void xrceth__bytes(void)
{
	uint8_t p[4] = {9, 9, 9, 9};

	ur_xrceth_put(p, 0xff123456);
	CU_ASSERT_EQUAL(memcmp(p, (const uint8_t[]){0, 0x12, 0x34, 0x56}, 4), 0);
	p[0] = 0xff; /* reserved */
	CU_ASSERT_EQUAL(ur_xrceth_get(p), 0x123456);
}

static void atomiceth__bytes(void)
{
	struct ur_atomiceth h = {0x0001020304050607, 0x08090a0b, 0x0c0d0e0f10111213, 0x1415161718191a1b}, back;
	uint8_t p[28];

	ur_atomiceth_put(p, &h);
	for (unsigned i = 0; i < sizeof(p); i++)
		CU_ASSERT_EQUAL(p[i], i);
	ur_atomiceth_get(p, &back);
	CU_ASSERT_TRUE(back.va == h.va && back.rkey == h.rkey && back.swap_add == h.swap_add && back.compare == h.compare);
}

static void deth__bytes(void)
{
	static const uint8_t want[8] = {0x80, 0x01, 0, 0, 0, 0xff, 0xff, 0xfe};
	struct ur_deth h = {0x80010000, 0xfffffe}, back;
	uint8_t p[8];

	memset(p, 0x5a, sizeof(p));
	ur_deth_put(p, &h);
	CU_ASSERT_EQUAL(memcmp(p, want, 8), 0);
	ur_deth_get(p, &back);
	CU_ASSERT_TRUE(back.qkey == h.qkey && back.sqpn == h.sqpn);
}

static void aeth__bytes(void)
{
	static const uint8_t want[4] = {0x63, 0x12, 0x34, 0x56};
	struct ur_aeth h = {ur_syndrome(UR_AETH_NAK, UR_NAK_REM_OP), 0x123456}, back;
	uint8_t p[4];

	ur_aeth_put(p, &h);
	CU_ASSERT_EQUAL(memcmp(p, want, 4), 0);
	ur_aeth_get(p, &back);
	CU_ASSERT_EQUAL(ur_syndrome_type(back.syndrome), UR_AETH_NAK);
	CU_ASSERT_EQUAL(ur_syndrome_value(back.syndrome), UR_NAK_REM_OP);
	CU_ASSERT_EQUAL(back.msn, 0x123456);
	CU_ASSERT_EQUAL(ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID), 0x1f);
	CU_ASSERT_EQUAL(ur_syndrome(UR_AETH_RNR, 14), 0x2e);
}

static void feth__bytes(void)
{
	for (unsigned sel = 0; sel < 4; sel++)
		for (unsigned plt = 0; plt < 16; plt++) {
			struct ur_feth h = {(uint8_t)plt, (uint8_t)sel}, back;
			uint8_t p[4];

			ur_feth_put(p, &h);
			CU_ASSERT_EQUAL(ur_get32(p), sel << 4 | plt);
			ur_feth_get(p, &back);
			CU_ASSERT_TRUE(back.placement == plt && back.selectivity == sel);
		}
}

static void bytes__any_alignment(void)
{
	uint8_t b[16];

	for (unsigned at = 0; at < 8; at++) {
		ur_put64(b + at, 0x0123456789abcdef);
		CU_ASSERT_EQUAL(ur_get64(b + at), 0x0123456789abcdef);
		CU_ASSERT_EQUAL(b[at], 0x01);
		CU_ASSERT_EQUAL(ur_get32(b + at + 4), 0x89abcdef);
		CU_ASSERT_EQUAL(ur_get24(b + at + 5), 0xabcdef);
		CU_ASSERT_EQUAL(ur_get16(b + at + 6), 0xcdef);
		ur_put24(b + at, 0xfedcba);
		ur_put16(b + at + 3, 0x9876);
		CU_ASSERT_EQUAL(ur_get32(b + at), 0xfedcba98);
		CU_ASSERT_EQUAL(b[at + 4], 0x76);
	}
}

void ur_suite_hdr(void)
{
	CU_pSuite s = CU_add_suite("hdr", NULL, NULL);

	CU_ADD_TEST(s, bth__bytes);
	CU_ADD_TEST(s, bth__single_bits);
	CU_ADD_TEST(s, reth__bytes);
	CU_ADD_TEST(s, xrceth__bytes);
	CU_ADD_TEST(s, atomiceth__bytes);
	CU_ADD_TEST(s, deth__bytes);
	CU_ADD_TEST(s, aeth__bytes);
	CU_ADD_TEST(s, feth__bytes);
	CU_ADD_TEST(s, bytes__any_alignment);
}
