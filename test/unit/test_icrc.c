/* SPDX-License-Identifier: BSD-3-Clause */
/* The ICRC against a bit-by-bit reference that follows the text of the specification, and against frames from a capture. */
#include <CUnit/CUnit.h>

#include "base/rng.h"
#include "wire/icrc.h"
#include "wire_samples.h"

void ur_suite_icrc(void);

static uint32_t reference_add(uint32_t reg, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			uint32_t in = (p[i] >> bit & 1u) ^ (reg & 1);

			reg >>= 1;
			if (in)
				reg ^= 0xedb88320;
		}
	return reg;
}

/* Over a copy in which every variant field is ones. */
static void reference_icrc(const uint8_t *l3, uint8_t version, size_t len, uint8_t out[4])
{
	static const uint8_t lrh[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t *copy = malloc(len);
	size_t udp = version == 4 ? 20 : 40;
	uint32_t reg;

	memcpy(copy, l3, len);
	if (version == 4) {
		copy[1] = copy[8] = copy[10] = copy[11] = 0xff;
	} else {
		copy[0] |= 0x0f;
		copy[1] = copy[2] = copy[3] = copy[7] = 0xff;
	}
	copy[udp + 6] = copy[udp + 7] = 0xff;
	copy[udp + 8 + 4] = 0xff;
	reg = reference_add(0xffffffff, lrh, 8);
	reg = ~reference_add(reg, copy, len);
	for (unsigned i = 0; i < 4; i++)
		out[i] = (uint8_t)(reg >> (8 * i));
	free(copy);
}

static unsigned compare_random(struct ur_rng *rng, uint8_t *buf, uint8_t version, size_t payload)
{
	size_t hdr = (version == 4 ? 20 : 40) + 8 + 12, len = hdr + payload;
	size_t a = ur_rng_below(rng, (uint32_t)payload + 1), b = a + ur_rng_below(rng, (uint32_t)(payload - a) + 1);
	uint8_t want[4], got[4];
	uint32_t crc;

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)ur_rng_u32(rng);
	reference_icrc(buf, version, len, want);
	crc = ur_icrc_begin(buf, version, hdr + a);
	crc = ur_icrc_add(crc, buf + hdr + a, b - a);
	crc = ur_icrc_add(crc, buf + hdr + b, payload - b);
	ur_icrc_end(crc, got);
	return memcmp(want, got, 4) != 0;
}

static void icrc__random_against_reference(void)
{
	struct ur_rng rng = {1};
	uint8_t *buf = malloc(4300);
	unsigned wrong = 0;

	for (unsigned i = 0; i < 400; i++)
		for (unsigned version = 4; version <= 6; version += 2) {
			wrong += compare_random(&rng, buf, (uint8_t)version, i < 200 ? i : ur_rng_below(&rng, 4201));
			wrong += compare_random(&rng, buf, (uint8_t)version, 4200 - i % 64);
		}
	CU_ASSERT_EQUAL(wrong, 0);
	free(buf);
}

static void icrc__captured_frames(void)
{
	static const struct {
		const uint8_t *frame;
		size_t len;
		uint8_t version;
	} frames[] = {
		{sample_send4, sizeof(sample_send4), 4},
		{sample_ack4, sizeof(sample_ack4), 4},
		{sample_send6, sizeof(sample_send6), 6},
	};

	for (unsigned i = 0; i < ur_array_size(frames); i++) {
		const uint8_t *l3 = frames[i].frame + UR_ETH_LEN;
		size_t len = frames[i].len - UR_ETH_LEN - UR_ICRC_LEN;
		uint8_t got[4], ref[4];

		ur_icrc_end(ur_icrc_begin(l3, frames[i].version, len), got);
		CU_ASSERT_EQUAL(memcmp(got, l3 + len, 4), 0);
		reference_icrc(l3, frames[i].version, len, ref);
		CU_ASSERT_EQUAL(memcmp(ref, l3 + len, 4), 0);
	}
}

/* Each byte in turn: the variant ones do not matter, all others do. */
static void check_masked(const uint8_t *frame, size_t frame_len, uint8_t version, const char *variant)
{
	size_t len = frame_len - UR_ETH_LEN - UR_ICRC_LEN;
	uint8_t *l3 = malloc(len), was[4], is[4];

	memcpy(l3, frame + UR_ETH_LEN, len);
	ur_icrc_end(ur_icrc_begin(l3, version, len), was);
	for (size_t i = 0; i < len; i++) {
		bool masked = i < strlen(variant) && variant[i] == 'x';

		l3[i] ^= 0x01;
		ur_icrc_end(ur_icrc_begin(l3, version, len), is);
		CU_ASSERT_EQUAL(memcmp(was, is, 4) == 0, masked);
		l3[i] ^= 0x01;
	}
	free(l3);
}

static void icrc__exactly_the_variant_bytes_are_masked(void)
{
	check_masked(sample_send4, sizeof(sample_send4), 4,
		     ".x......x.xx........"
		     "......xx"
		     "....x");
	check_masked(sample_send6, sizeof(sample_send6), 6,
		     "xxxx...x................................"
		     "......xx"
		     "....x");
}

/* In the first byte of IPv6 the version is covered, the traffic class is not. */
static void icrc__ip6_version_nibble_is_covered(void)
{
	uint8_t l3[sizeof(sample_send6)], was[4], is[4];
	size_t len = sizeof(sample_send6) - UR_ETH_LEN - UR_ICRC_LEN;

	memcpy(l3, sample_send6 + UR_ETH_LEN, len);
	ur_icrc_end(ur_icrc_begin(l3, 6, len), was);
	l3[0] ^= 0x10;
	ur_icrc_end(ur_icrc_begin(l3, 6, len), is);
	CU_ASSERT_NOT_EQUAL(memcmp(was, is, 4), 0);
}

void ur_suite_icrc(void)
{
	CU_pSuite s = CU_add_suite("icrc", NULL, NULL);

	CU_ADD_TEST(s, icrc__random_against_reference);
	CU_ADD_TEST(s, icrc__captured_frames);
	CU_ADD_TEST(s, icrc__exactly_the_variant_bytes_are_masked);
	CU_ADD_TEST(s, icrc__ip6_version_nibble_is_covered);
}
