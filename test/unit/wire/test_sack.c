/* SPDX-License-Identifier: BSD-3-Clause */
/* Hello and SACK: exact bytes, round trips in whole frames, and everything that makes no sense. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/rng.h"
#include "wire/sack.h"
#include "wire_samples.h"

void ur_suite_sack(void);

#define FIXED (UR_BTH_LEN + 4 + UR_SACKETH_LEN) /* before the bits */

static void hello__is_seven_reserved_bits(void)
{
	struct ur_bth b = {.opcode = UR_RC | UR_OP_SEND_ONLY, .ackreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = 5, .psn = 0xffffff}, back;
	uint8_t bth[UR_BTH_LEN], with[UR_BTH_LEN];

	ur_bth_put(bth, &b);
	CU_ASSERT_FALSE(ur_hello_is(bth));
	memcpy(with, bth, sizeof(bth));
	ur_hello_put(with);
	CU_ASSERT_TRUE(ur_hello_is(with));
	CU_ASSERT_EQUAL(with[8], 0xd9);
	with[8] = bth[8];
	CU_ASSERT_EQUAL(memcmp(with, bth, sizeof(bth)), 0);
	ur_hello_put(with);
	ur_bth_get(with, &back); /* it disturbs no field */
	CU_ASSERT_TRUE(back.ackreq && back.psn == 0xffffff && back.dqpn == 5);
	for (unsigned v = 0; v < 256; v++) {
		with[8] = (uint8_t)v;
		CU_ASSERT_EQUAL(ur_hello_is(with), (v & 0x7f) == 0x59);
	}
}

static void sack__bytes(void)
{
	static const uint8_t want[UR_SACKETH_LEN + 8] = {1,    0,    0,    64, 0, 0x12, 0x34, 0x56, 0, 0xff,
							 0xff, 0xfe, 0x05, 0,  0, 0,    0,    0,    0, 0x80};
	struct ur_sack s = {.expected = 0x123456, .base = 0xfffffe, .n = 64};
	uint8_t at[sizeof(want)];

	ur_sack_set(&s, 0);
	ur_sack_set(&s, 2);
	ur_sack_set(&s, 63);
	CU_ASSERT_PTR_EQUAL(ur_sack_put(at, &s), at + sizeof(at));
	CU_ASSERT_EQUAL(memcmp(at, want, sizeof(want)), 0);
	CU_ASSERT_TRUE(ur_sack_has(&s, 0xfffffe) && !ur_sack_has(&s, 0xffffff) && ur_sack_has(&s, 0) && ur_sack_has(&s, 61));
	CU_ASSERT_FALSE(ur_sack_has(&s, 0xfffffd)); /* outside, at either end */
	CU_ASSERT_FALSE(ur_sack_has(&s, 62));
}

/* A SACK as a frame; the sample's headers carry it. */
static void build(struct ur_pkt *p, const struct ur_sack *s)
{
	static const struct ur_mac mac = {{2, 0, 0, 0, 0, 1}};
	const struct ur_gid a = ur_gid_from_v4(0x0100000a), b = ur_gid_from_v4(0x0200000a);
	const struct ur_bth bth = {.opcode = UR_OP_SACK, .pkey = UR_PKEY_DEFAULT, .migreq = true, .dqpn = 77, .psn = 0x123455};
	const struct ur_aeth aeth = {.syndrome = ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID), .msn = 9};
	struct ur_path path = {0};
	uint8_t *at;

	ur_path_build(&path, &mac, &mac, 0, &a, &b, 0, 64, 0, 0xc000);
	sample_room(p, UR_PKT_ROOM);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	at = p->data + path.hdr_len;
	ur_bth_put(at, &bth);
	ur_aeth_put(at + UR_BTH_LEN + ur_opcode(UR_OP_SACK)->off_aeth, &aeth);
	p->len = (uint32_t)(ur_sack_put(at + UR_BTH_LEN + 4, s) - p->data);
	ur_frame_finish(p, 0);
	memcpy(p->data + p->len, p->tail, p->tail_len);
	p->len += p->tail_len;
}

static void sack__round_trip(void)
{
	struct ur_rng rng = {1};

	for (unsigned n = 64; n <= UR_SACK_BITS; n += UR_SACK_STEP) {
		struct ur_sack s = {.expected = ur_rng_u32(&rng) & UR_PSN_MASK, .base = ur_rng_u32(&rng) & UR_PSN_MASK, .n = n}, back;
		struct ur_counters c = {0};
		struct ur_pkt p;

		for (unsigned i = 0; i < n; i++)
			if (ur_rng_u32(&rng) & 1)
				ur_sack_set(&s, i);
		build(&p, &s);
		CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
		CU_ASSERT_EQUAL(p.payload_len, n / 8);
		memset(&back, 0xee, sizeof(back));
		CU_ASSERT_TRUE(ur_sack_get(&p, &back));
		CU_ASSERT_EQUAL(memcmp(&back, &s, sizeof(s)), 0);
		sample_free(&p);
	}
}

/* Each field of the fixed part with each value that it may not have, and bits of another length than it says. */
static void sack__nonsense(void)
{
	static const struct {
		uint8_t at, value;
	} bad[] = {{0, 0}, {0, 2}, {1, 1}, {1, 0x80}, {2, 1}, {3, 0}, {3, 63}, {3, 65}, {3, 128}, {2, 4}, {2, 0xff}, {4, 1}, {8, 0x80}};
	struct ur_sack s = {.expected = 5, .base = 6, .n = 64}, back;
	struct ur_counters c = {0};
	struct ur_pkt p;

	build(&p, &s);
	CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
	CU_ASSERT_TRUE(ur_sack_get(&p, &back));
	for (unsigned i = 0; i < ur_array_size(bad); i++) {
		uint8_t *at = p.data + p.bth_off + FIXED - UR_SACKETH_LEN + bad[i].at, was = *at;

		*at = bad[i].value;
		CU_ASSERT_FALSE(ur_sack_get(&p, &back));
		*at = was;
	}
	p.payload_len = 7;
	CU_ASSERT_FALSE(ur_sack_get(&p, &back));
	p.payload_len = 16;
	CU_ASSERT_FALSE(ur_sack_get(&p, &back));
	p.payload_len = 8;
	p.bth.pad = 1;
	CU_ASSERT_FALSE(ur_sack_get(&p, &back));
	p.bth.pad = 0;
	p.bth.opcode = UR_RC | UR_OP_ACK;
	CU_ASSERT_FALSE(ur_sack_get(&p, &back));
	sample_free(&p);
}

/* A frame that ends within the fixed part is no packet. */
static void sack__short(void)
{
	struct ur_sack s = {.expected = 5, .base = 6, .n = 64};

	for (uint32_t cut = 1; cut <= UR_SACKETH_LEN + 8; cut++) {
		struct ur_counters c = {0};
		struct ur_pkt p;

		build(&p, &s);
		p.len -= UR_ICRC_LEN + cut;
		ur_frame_finish(&p, 0);
		memcpy(p.data + p.len, p.tail, p.tail_len);
		p.len += p.tail_len;
		CU_ASSERT_EQUAL(ur_frame_parse(&p, &c), cut <= 8);
		CU_ASSERT_EQUAL(c.v[UR_C_DROP_TRUNCATED], cut > 8);
		if (cut <= 8)
			CU_ASSERT_FALSE(ur_sack_get(&p, &s));
		s.n = 64;
		sample_free(&p);
	}
}

void ur_suite_sack(void)
{
	CU_pSuite s = CU_add_suite("sack", NULL, NULL);

	CU_ADD_TEST(s, hello__is_seven_reserved_bits);
	CU_ADD_TEST(s, sack__bytes);
	CU_ADD_TEST(s, sack__round_trip);
	CU_ADD_TEST(s, sack__nonsense);
	CU_ADD_TEST(s, sack__short);
}
