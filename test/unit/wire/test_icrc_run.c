/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps from one packet of a train to the next, and what else the ICRC of trains is made of, against ur_icrc_begin. */
#include <CUnit/CUnit.h>

#include "base/rng.h"
#include "wire/crc/icrc.h"
#include "wire/crc/icrc_run.h"
#include "wire/hdr.h"
#include "wire/ip.h"
#include "wire_samples.h"

void ur_suite_icrc_run(void);

#define HEADERS_MAX (UR_IP6_LEN + UR_UDP_LEN + UR_BTH_LEN)
#define MASKED 4 /* byte of the BTH */

/* IP, UDP and BTH of one packet. */
struct headers {
	uint8_t bytes[HEADERS_MAX];
	uint8_t version;
	size_t udp, bth, len;
};

static struct ur_rng rng = {4791};

static struct headers random_headers(uint8_t version)
{
	struct headers h = {.version = version, .udp = version == 4 ? UR_IP4_LEN : UR_IP6_LEN};

	h.bth = h.udp + UR_UDP_LEN;
	h.len = h.bth + UR_BTH_LEN;
	for (size_t i = 0; i < h.len; i++)
		h.bytes[i] = (uint8_t)ur_rng_u32(&rng);
	return h;
}

static void set(struct headers *h, uint16_t place, uint32_t psn, bool ackreq)
{
	if (h->version == 4)
		ur_put16(h->bytes + 4, place);
	ur_put32(h->bytes + h->bth + 8, (uint32_t)ackreq << 31 | psn);
}

static uint32_t whole(const struct headers *h)
{
	return ur_icrc_begin(h->bytes, h->version, h->len);
}

/* Follows a train of `n` packets from (place, psn) on: the state is that of the headers at each of them, with and without AckReq. */
static bool follow(struct headers *h, uint16_t place, uint32_t psn, unsigned n)
{
	struct ur_icrc_run r = {.psn = psn, .place = place, .ip_version = h->version};

	set(h, place, psn, false);
	r.state = whole(h);
	for (unsigned i = 0; i < n; i++) {
		const uint32_t at = (psn + i) & UR_PSN_MASK;

		if (r.psn != at || r.place != (uint16_t)(place + i))
			return false;
		set(h, r.place, at, false);
		if (r.state != whole(h))
			return false;
		set(h, r.place, at, true);
		if ((r.state ^ UR_ICRC_ACKREQ) != whole(h))
			return false;
		ur_icrc_run_next(&r);
	}
	return true;
}

static void run__all_places(void)
{
	for (unsigned i = 0; i < 40; i++) {
		struct headers h = random_headers(i & 1 ? 6 : 4);

		CU_ASSERT_TRUE(follow(&h, (uint16_t)ur_rng_u32(&rng), ur_rng_u32(&rng) & UR_PSN_MASK, 600));
	}
}

/* Every step of the table: where bits 0 to n of the PSN change at once. */
static void run__all_carries(void)
{
	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned n = 0; n < 24; n++) {
			struct headers h = random_headers((uint8_t)version);
			const uint32_t below = (1u << n) - 1, above = n < 23 ? ur_rng_u32(&rng) << (n + 1) & UR_PSN_MASK : 0;

			CU_ASSERT_TRUE(follow(&h, 0, above | below, 3));
			CU_ASSERT_TRUE(follow(&h, (uint16_t)below, above | below, 3));
		}
}

static void run__psn_wraps(void)
{
	for (unsigned version = 4; version <= 6; version += 2)
		for (uint32_t before = 0; before < 70; before++) {
			struct headers h = random_headers((uint8_t)version);

			CU_ASSERT_TRUE(follow(&h, 0, UR_PSN_MASK - before, 128));
		}
}

/* As a receiver begins who has headers, of a whole train: they say all but length and identification. */
static void run__from_headers(void)
{
	for (unsigned i = 0; i < 200; i++) {
		struct headers h = random_headers(i & 1 ? 6 : 4), train = h;
		const uint16_t place = (uint16_t)ur_rng_u32(&rng);
		const uint32_t psn = ur_rng_u32(&rng) & UR_PSN_MASK, udp_len = 8 + ur_rng_below(&rng, 4200);
		struct ur_pkt p = {.data = train.bytes, .ip_version = h.version};
		struct ur_icrc_run r = {.psn = psn, .place = place, .ip_version = h.version};

		ur_udp_put_lengths(h.bytes, h.version, udp_len);
		set(&h, place, psn, false);
		r.state = ur_icrc_begin_of(&p, h.bytes + h.bth, UR_BTH_LEN, udp_len, place);
		for (unsigned k = 0; k < 70; k++) {
			set(&h, r.place, r.psn, false);
			CU_ASSERT_EQUAL(r.state, whole(&h));
			ur_icrc_run_next(&r);
		}
	}
}

/* As one begins who has none. */
static void run__from_a_bare_packet(void)
{
	for (unsigned i = 0; i < 200; i++) {
		struct headers h = random_headers(i & 1 ? 6 : 4);
		const uint16_t place = (uint16_t)ur_rng_u32(&rng);
		const uint32_t psn = ur_rng_u32(&rng) & UR_PSN_MASK, udp_len = 8 + ur_rng_below(&rng, 4200);
		struct ur_pkt p = {.flags = UR_PKT_BARE, .ip_version = h.version, .sport = (uint16_t)ur_rng_u32(&rng)};
		struct ur_icrc_run r = {.psn = psn, .place = place, .ip_version = h.version};

		ur_put16(h.bytes + h.udp, p.sport);
		ur_put16(h.bytes + h.udp + 2, UR_ROCE_PORT);
		ur_put16(h.bytes + h.udp + 4, (uint16_t)udp_len);
		if (h.version == 4) {
			p.src = (struct ur_gid){{[10] = 0xff, [11] = 0xff}};
			p.dst = p.src;
			memcpy(p.src.raw + 12, h.bytes + 12, 4);
			memcpy(p.dst.raw + 12, h.bytes + 16, 4);
			memcpy(h.bytes, "\x45\0", 2);
			ur_put16(h.bytes + 2, (uint16_t)(UR_IP4_LEN + udp_len));
			memcpy(h.bytes + 4, "\0\0\x40\0\x40\x11", 6); /* identification, DF, TTL, UDP */
		} else {
			memcpy(p.src.raw, h.bytes + 8, 16);
			memcpy(p.dst.raw, h.bytes + 24, 16);
			h.bytes[0] = 0x60;
			ur_put16(h.bytes + 4, (uint16_t)udp_len);
			h.bytes[6] = 17;
		}
		set(&h, place, psn, false);
		r.state = ur_icrc_begin_of(&p, h.bytes + h.bth, UR_BTH_LEN, udp_len, place);
		CU_ASSERT_EQUAL(r.state, whole(&h));
		for (unsigned k = 0; k < 70; k++) {
			set(&h, r.place, r.psn, false);
			CU_ASSERT_EQUAL(r.state, whole(&h));
			ur_icrc_run_next(&r);
		}
	}
}

static void id_term__of_every_byte(void)
{
	for (unsigned i = 0; i < 10; i++) {
		struct headers h = random_headers(4);
		const uint32_t udp_len = ur_rng_below(&rng, 65000);
		uint32_t first;

		set(&h, 0, 5, false);
		first = ur_icrc_headers(h.bytes, h.version, udp_len);
		for (unsigned id = 0; id < 256; id++) {
			set(&h, (uint8_t)id, 5, false);
			CU_ASSERT_EQUAL(first ^ ur_icrc_id_term((uint8_t)id), ur_icrc_headers(h.bytes, h.version, udp_len));
		}
	}
}

/* The headers alone, and then the BTH. */
static void headers__then_the_bth(void)
{
	for (unsigned i = 0; i < 500; i++) {
		struct headers h = random_headers(i & 1 ? 6 : 4);
		const uint32_t udp_len = ur_rng_below(&rng, 65000);
		uint32_t crc = ur_icrc_headers(h.bytes, h.version, udp_len), want; /* of another length than stands there */

		ur_udp_put_lengths(h.bytes, h.version, udp_len);
		want = whole(&h);
		h.bytes[h.bth + MASKED] = 0xff;
		crc = ur_icrc_add(crc, h.bytes + h.bth, UR_BTH_LEN);
		CU_ASSERT_EQUAL(crc, want);
	}
}

/* What the ICRC does not cover may be anything; nothing after the UDP header is read, and nothing is written. */
static void headers__masked_fields(void)
{
	static const struct {
		uint8_t version, at;
	} masked[] = {{4, 1}, {4, 8}, {4, 10}, {4, 11}, {4, 26}, {4, 27}, {6, 1}, {6, 2}, {6, 3}, {6, 7}, {6, 46}, {6, 47}};

	for (unsigned i = 0; i < ur_array_size(masked); i++) {
		struct headers h = random_headers(masked[i].version), was;
		uint8_t *exact = malloc(h.bth);
		uint32_t crc;

		memcpy(exact, h.bytes, h.bth);
		was = h;
		crc = ur_icrc_headers(exact, h.version, 100);
		CU_ASSERT_EQUAL(memcmp(exact, was.bytes, h.bth), 0);
		exact[masked[i].at] ^= 0x5a;
		CU_ASSERT_EQUAL(ur_icrc_headers(exact, h.version, 100), crc);
		exact[12] ^= 1;
		CU_ASSERT_NOT_EQUAL(ur_icrc_headers(exact, h.version, 100), crc);
		free(exact);
	}
}

void ur_suite_icrc_run(void)
{
	CU_pSuite s = CU_add_suite("icrc_run", NULL, NULL);

	CU_ADD_TEST(s, run__all_places);
	CU_ADD_TEST(s, run__all_carries);
	CU_ADD_TEST(s, run__psn_wraps);
	CU_ADD_TEST(s, run__from_headers);
	CU_ADD_TEST(s, run__from_a_bare_packet);
	CU_ADD_TEST(s, id_term__of_every_byte);
	CU_ADD_TEST(s, headers__then_the_bth);
	CU_ADD_TEST(s, headers__masked_fields);
}
