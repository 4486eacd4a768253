/* SPDX-License-Identifier: BSD-3-Clause */
/* The ICRC against a bit-by-bit reference that follows the text of the specification, and against frames from a capture. */
#include <CUnit/CUnit.h>

#include "base/rng.h"
#include "wire/crc/icrc.h"
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

/* A random packet with IP and UDP headers as a host of ours or another sends them; returns the bytes that the ICRC covers. */
static size_t random_packet(struct ur_rng *rng, uint8_t *buf, bool six, uint32_t payload, uint16_t id, uint16_t frag, struct ur_pkt *p)
{
	uint8_t *udp = buf + (six ? 40 : 20);
	uint16_t udp_len = (uint16_t)(8 + 12 + payload + 4);
	size_t len = (size_t)(udp - buf) + udp_len - 4;

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)ur_rng_u32(rng);
	*p = (struct ur_pkt){.flags = UR_PKT_BARE, .ip_version = six ? 6 : 4, .sport = ur_get16(udp)};
	ur_put16(udp + 2, UR_ROCE_PORT);
	ur_put16(udp + 4, udp_len);
	if (six) {
		buf[0] = 0x60;
		ur_put16(buf + 4, udp_len);
		buf[6] = 17;
		memcpy(p->src.raw, buf + 8, 16);
		memcpy(p->dst.raw, buf + 24, 16);
		return len;
	}
	buf[0] = 0x45;
	ur_put16(buf + 2, (uint16_t)(20 + udp_len));
	ur_put16(buf + 4, id);
	ur_put16(buf + 6, frag);
	buf[9] = 17;
	memcpy(p->src.raw + 12, buf + 12, 4);
	memcpy(p->dst.raw + 12, buf + 16, 4);
	return len;
}

static const uint32_t lengths[] = {0, 1, 3, 4, 16, 35, 36, 40, 51, 52, 53, 63, 64, 65, 100, 255, 256, 1024, 4095, 4096, 4200};

static void icrc_begin_of__bare_as_the_whole(void)
{
	struct ur_rng rng = {3};
	uint8_t *buf = malloc(4400);
	unsigned wrong = 0;

	for (unsigned i = 0; i < 2 * ur_array_size(lengths); i++)
		for (unsigned k = 0; k < 20; k++) {
			bool six = i % 2;
			uint32_t n = lengths[i / 2], cut = ur_rng_below(&rng, n + 1);
			uint16_t id = k == 0 ? 0 : (uint16_t)ur_rng_u32(&rng);
			size_t head = (six ? 40 : 20) + 8, len;
			uint8_t want[4], got[4];
			struct ur_pkt p;
			uint32_t crc;

			len = random_packet(&rng, buf, six, n, id, 0x4000, &p);
			reference_icrc(buf, p.ip_version, len, want);
			crc = ur_icrc_begin_of(&p, buf + head, 12 + cut, 8 + 12 + n + 4, id);
			ur_icrc_end(ur_icrc_add(crc, buf + head + 12 + cut, n - cut), got);
			wrong += memcmp(want, got, 4) != 0;
		}
	CU_ASSERT_EQUAL(wrong, 0);
	free(buf);
}

/* Every identification, at several distances, against the ICRC computed in full. */
static void icrc_change__every_identification(void)
{
	static const uint32_t n[] = {0, 1, 5, 48, 1024, 4096};
	struct ur_rng rng = {5};
	uint8_t *buf = malloc(4400);
	unsigned wrong = 0;

	for (unsigned i = 0; i < ur_array_size(n); i++) {
		struct ur_pkt p;
		size_t len = random_packet(&rng, buf, false, n[i], 0x1234, 0x4000, &p);
		uint32_t was = ur_icrc_begin(buf, 4, len), is;
		uint16_t bits;

		for (uint32_t id = 0; id < 65536; id += n[i] < 1024 ? 1 : 13) {
			ur_put16(buf + 4, (uint16_t)id);
			is = ur_icrc_begin(buf, 4, len);
			wrong += (was ^ ur_icrc_change((uint16_t)(id ^ 0x1234), 4, len)) != is;
			wrong += !ur_icrc_explain(was ^ is, 4, len, &bits) || bits != (id ^ 0x1234);
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	free(buf);
}

/* Flags and fragment offset stand two bytes nearer to the end; a change of both fields is the sum of the changes. */
static void icrc_change__other_fields(void)
{
	struct ur_rng rng = {6};
	uint8_t *buf = malloc(4400);
	unsigned wrong = 0;

	for (unsigned i = 0; i < 2000; i++) {
		uint16_t id = (uint16_t)ur_rng_u32(&rng), frag = (uint16_t)ur_rng_u32(&rng), bits;
		struct ur_pkt p;
		size_t len = random_packet(&rng, buf, false, lengths[i % ur_array_size(lengths)], 0, 0x4000, &p);
		uint32_t was = ur_icrc_begin(buf, 4, len), is;

		ur_put16(buf + 6, frag);
		is = ur_icrc_begin(buf, 4, len);
		wrong += (was ^ ur_icrc_change(frag ^ 0x4000, 6, len)) != is;
		ur_put16(buf + 4, id);
		is = ur_icrc_begin(buf, 4, len);
		wrong += (was ^ ur_icrc_change(frag ^ 0x4000, 6, len) ^ ur_icrc_change(id, 4, len)) != is;
		wrong += !ur_icrc_explain(was ^ is ^ ur_icrc_change(frag ^ 0x4000, 6, len), 4, len, &bits) || bits != id;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	free(buf);
}

/* Each bit that is covered, and each of the ICRC itself. */
static void icrc_wrong_bit__each(void)
{
	enum { LEN = 300 };
	uint8_t data[LEN + UR_ICRC_LEN];
	unsigned wrong = 0;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	ur_put_le32(data + LEN, ur_icrc_add(0, data, LEN));
	for (unsigned i = 0; i < 8 * sizeof(data); i++) {
		uint32_t byte = 0;
		unsigned bit = 0;

		data[i / 8] ^= (uint8_t)(1u << i % 8);
		wrong += !ur_icrc_wrong_bit(ur_get_le32(data + LEN) ^ ur_icrc_add(0, data, LEN), LEN, &byte, &bit) || byte != i / 8 ||
			 bit != i % 8;
		data[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	data[3] ^= 0x21; /* two bits */
	CU_ASSERT_FALSE(ur_icrc_wrong_bit(ur_get_le32(data + LEN) ^ ur_icrc_add(0, data, LEN), LEN, &(uint32_t){0}, &(unsigned){0}));
}

/* Two states that go on over the same bytes differ as the product says, and the reverse leads back. */
static void icrc_carry__any_length(void)
{
	struct ur_rng rng = {5};
	static uint8_t bytes[65535];

	for (unsigned i = 0; i < 500; i++) {
		const uint32_t a = ur_rng_u32(&rng), b = ur_rng_u32(&rng);
		const size_t len = i < 100 ? i : 1 + ur_rng_below(&rng, sizeof(bytes));
		uint32_t after;

		bytes[ur_rng_below(&rng, sizeof(bytes))] = (uint8_t)i;
		after = ur_icrc_add(a, bytes, len) ^ ur_icrc_add(b, bytes, len);
		CU_ASSERT_EQUAL(ur_icrc_carry(a ^ b, ur_icrc_ahead(len)), after);
		CU_ASSERT_EQUAL(ur_icrc_state_change(after, 0, len), a ^ b);
	}
}

/* 1 of 65536 differences can be explained, wherever it is. */
static void icrc_explain__refuses_the_rest(void)
{
	struct ur_rng rng = {8};
	unsigned explained = 0, wrong = 0;
	uint16_t bits;

	for (unsigned i = 0; i < 16 * 65536; i++) {
		size_t covered = 40 + lengths[i % ur_array_size(lengths)];
		uint32_t difference = ur_rng_u32(&rng);

		if (!ur_icrc_explain(difference, 4, covered, &bits))
			continue;
		explained++;
		wrong += ur_icrc_change(bits, 4, covered) != difference;
	}
	CU_ASSERT_TRUE(explained >= 4 && explained <= 36); /* 16 are expected */
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_TRUE(ur_icrc_explain(0, 4, 100, &bits) && bits == 0);
}

void ur_suite_icrc(void)
{
	CU_pSuite s = CU_add_suite("icrc", NULL, NULL);

	CU_ADD_TEST(s, icrc__random_against_reference);
	CU_ADD_TEST(s, icrc__captured_frames);
	CU_ADD_TEST(s, icrc__exactly_the_variant_bytes_are_masked);
	CU_ADD_TEST(s, icrc__ip6_version_nibble_is_covered);
	CU_ADD_TEST(s, icrc_begin_of__bare_as_the_whole);
	CU_ADD_TEST(s, icrc_change__every_identification);
	CU_ADD_TEST(s, icrc_change__other_fields);
	CU_ADD_TEST(s, icrc_carry__any_length);
	CU_ADD_TEST(s, icrc_explain__refuses_the_rest);
	CU_ADD_TEST(s, icrc_wrong_bit__each);
}
