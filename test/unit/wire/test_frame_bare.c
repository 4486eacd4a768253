/* SPDX-License-Identifier: BSD-3-Clause */
/* Bare packets: frames that lost what stands before their BTH, as the kernel's UDP sockets hand them out. */
#include <CUnit/CUnit.h>

#include "base/rng.h"
#include "wire/crc/icrc.h"
#include "wire_samples.h"

void ur_suite_frame_bare(void);

enum { L3 = 14, ID_AT = 4, FLAGS_AT = 6 };

static const struct {
	const uint8_t *frame;
	size_t len;
	bool six;
} samples[] = {
	{sample_send4, sizeof(sample_send4), false},
	{sample_ack4, sizeof(sample_ack4), false},
	{sample_send6, sizeof(sample_send6), true},
};

/* What a socket makes of a good frame; `len` bytes of it, exactly as many as the buffer has. */
static void strip(struct ur_pkt *bare, const uint8_t *frame, size_t frame_len, size_t len)
{
	struct ur_counters c = {.v = {0}};
	struct ur_pkt whole;

	sample_load(&whole, frame, frame_len);
	CU_ASSERT_TRUE_FATAL(ur_frame_parse(&whole, &c) && whole.kind == UR_PKT_ROCE);
	sample_load(bare, whole.data + whole.bth_off, len);
	bare->flags = UR_PKT_BARE;
	bare->src = whole.src;
	bare->dst = whole.dst;
	bare->ip_version = whole.ip_version;
	bare->tos = whole.tos;
	bare->flow_label = whole.flow_label;
	bare->ttl = whole.ttl;
	bare->sport = whole.sport;
	sample_free(&whole);
}

static size_t bth_at(unsigned i)
{
	return L3 + (samples[i].six ? 40u : 20u) + 8;
}

static void strip_sample(struct ur_pkt *bare, unsigned i)
{
	strip(bare, samples[i].frame, samples[i].len, samples[i].len - bth_at(i));
}

/* Another identification, and flags, in a sample: a frame as another host would have sent it. */
static void renumber(uint8_t *frame, const uint8_t *from, size_t len, uint16_t id, uint16_t flags)
{
	uint16_t sum;

	memcpy(frame, from, len);
	ur_put16(frame + L3 + ID_AT, id);
	ur_put16(frame + L3 + FLAGS_AT, flags);
	memset(frame + L3 + 10, 0, 2);
	sum = ur_csum_fold(ur_csum_add(0, frame + L3, UR_IP4_LEN));
	memcpy(frame + L3 + 10, &sum, 2);
	ur_icrc_end(ur_icrc_begin(frame + L3, 4, len - L3 - UR_ICRC_LEN), frame + len - UR_ICRC_LEN);
}

static bool parses(struct ur_pkt *p, enum ur_counter why)
{
	struct ur_counters c = {.v = {0}};
	bool ok = ur_frame_parse(p, &c);

	CU_ASSERT_EQUAL(sample_drops(&c), !ok);
	CU_ASSERT_TRUE(ok || c.v[why] == 1);
	return ok;
}

static void bare__as_the_whole_frame(void)
{
	for (unsigned i = 0; i < ur_array_size(samples); i++) {
		struct ur_counters c = {.v = {0}};
		struct ur_pkt whole, bare;

		sample_load(&whole, samples[i].frame, samples[i].len);
		ur_frame_parse(&whole, &c);
		strip_sample(&bare, i);
		bare.vlan = bare.l3_off = bare.l4_off = bare.bth_off = 77; /* left from another packet */
		CU_ASSERT_TRUE(parses(&bare, UR_C_COUNT));
		CU_ASSERT_EQUAL(bare.kind, samples[i].six ? UR_PKT_ROCE : UR_PKT_ROCE_GUESSED);
		CU_ASSERT_EQUAL(bare.vlan, 0);
		CU_ASSERT_EQUAL(bare.flow_label, whole.flow_label);
		CU_ASSERT_EQUAL(bare.bth_off, 0);
		CU_ASSERT_EQUAL(bare.payload_off, whole.payload_off - whole.bth_off);
		CU_ASSERT_EQUAL(bare.payload_len, whole.payload_len);
		CU_ASSERT_EQUAL(bare.bth.opcode, whole.bth.opcode);
		CU_ASSERT_EQUAL(bare.bth.psn, whole.bth.psn);
		CU_ASSERT_EQUAL(bare.bth.dqpn, whole.bth.dqpn);
		CU_ASSERT_EQUAL(bare.sport, whole.sport);
		CU_ASSERT_TRUE(ur_gid_eq(&bare.src, &whole.src) && ur_gid_eq(&bare.dst, &whole.dst));
		sample_free(&whole);
		sample_free(&bare);
	}
}

/* Guessed or not, and whether or not the sender forbade fragments. */
static void bare__any_identification(void)
{
	static const uint16_t flags[] = {0x4000, 0};
	uint8_t frame[sizeof(sample_send4)];
	unsigned refused = 0, wrong = 0;

	for (unsigned f = 0; f < ur_array_size(flags); f++)
		for (uint32_t id = 0; id < 65536; id += id < 300 ? 1 : 97)
			for (unsigned guess = 0; guess < 2; guess++) {
				struct ur_pkt p;

				renumber(frame, sample_send4, sizeof(frame), (uint16_t)id, flags[f]);
				strip(&p, frame, sizeof(frame), sizeof(frame) - bth_at(0));
				p.place = guess ? (uint8_t)id : 3;
				if (!parses(&p, UR_C_ICRC))
					refused++;
				else if (p.kind == UR_PKT_ROCE_GUESSED)
					wrong += p.place != id || !!p.may_fragment != (flags[f] == 0);
				else
					wrong += p.kind != UR_PKT_ROCE || p.place != id || flags[f] == 0;
				sample_free(&p);
			}
	CU_ASSERT_TRUE(refused == 0 && wrong == 0);
}

/* So that a capture has the IP header that was on the wire. What is damaged keeps the identification that was likely. */
static void bare__header_is_found(void)
{
	static const uint16_t flags[] = {0x4000, 0};
	uint8_t frame[sizeof(sample_send4)], headers[UR_PATH_HDR_MAX];
	struct ur_pkt p;

	for (unsigned f = 0; f < ur_array_size(flags); f++)
		for (uint32_t id = 0; id < 65536; id += 255) {
			renumber(frame, sample_send4, sizeof(frame), (uint16_t)id, flags[f]);
			strip(&p, frame, sizeof(frame), sizeof(frame) - bth_at(0));
			p.place = 3;
			p.bth_off = 77;
			ur_frame_find_id(&p);
			CU_ASSERT_EQUAL(ur_frame_put_headers(&p, headers), bth_at(0));
			CU_ASSERT_EQUAL(memcmp(headers + L3, frame + L3, UR_IP4_LEN), 0);
			sample_free(&p);
		}
	strip_sample(&p, 0);
	p.place = 3;
	p.data[UR_BTH_LEN + 1] ^= 0x55;
	ur_frame_find_id(&p);
	CU_ASSERT_EQUAL(p.kind, UR_PKT_OTHER);
	CU_ASSERT_EQUAL(p.place, 3);
	p.len = UR_BTH_LEN;
	ur_frame_find_id(&p); /* reads nothing that is not there */
	sample_free(&p);
}

/* The address, the port and the length are covered; traffic class and hop limit are not. */
static void bare__fields_that_count(void)
{
	for (unsigned i = 0; i < ur_array_size(samples); i++)
		for (unsigned what = 0; what < 6; what++) {
			struct ur_pkt p;

			strip_sample(&p, i);
			p.src.raw[13] ^= what == 0;
			p.dst.raw[14] ^= what == 1;
			p.sport ^= what == 2;
			p.tos ^= what == 3;
			p.ttl ^= what == 4;
			p.flow_label ^= what == 5;
			CU_ASSERT_EQUAL(parses(&p, UR_C_ICRC), what > 2);
			sample_free(&p);
		}
}

/* With IPv6 there is nothing to explain: any flipped bit outside of what routers may change is seen. */
static void bare__ip6_is_exact(void)
{
	size_t len = sizeof(sample_send6) - bth_at(2);
	struct ur_pkt p;

	strip_sample(&p, 2);
	for (size_t bit = 0; bit < len * 8; bit++) {
		struct ur_counters c = {.v = {0}};
		bool ok;

		p.len = (uint32_t)len;
		p.place = (uint8_t)bit;
		p.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ok = ur_frame_parse(&p, &c);
		CU_ASSERT_EQUAL(ok, bit / 8 == 4);
		p.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	sample_free(&p);
}

/* Random bytes in the place of a good payload pass once in 32768 times: as often as they look like some identification. */
static void bare__damage_is_refused(void)
{
	struct ur_rng rng = {7};
	unsigned passed = 0;
	struct ur_pkt p;

	strip_sample(&p, 0);
	for (unsigned i = 0; i < 32768 * 16; i++) {
		struct ur_counters c = {.v = {0}};

		for (unsigned k = 12; k < 28; k += 8)
			ur_put64(p.data + k, ur_rng_u64(&rng));
		passed += ur_frame_parse(&p, &c);
	}
	CU_ASSERT_TRUE(passed >= 4 && passed <= 36); /* 16 are expected */
	sample_free(&p);
}

static void bare__every_truncation_is_one_drop(void)
{
	for (unsigned i = 0; i < ur_array_size(samples); i++) {
		size_t ext = (size_t)ur_opcode(samples[i].frame[bth_at(i)])->ext_len, shortest = UR_BTH_LEN + ext + UR_ICRC_LEN;

		for (size_t n = 0; n < samples[i].len - bth_at(i); n++) {
			struct ur_pkt p;

			strip(&p, samples[i].frame, samples[i].len, n);
			CU_ASSERT_FALSE(parses(&p, n < shortest ? UR_C_DROP_TRUNCATED : UR_C_ICRC));
			sample_free(&p);
		}
	}
}

/* Whatever the bytes are: the buffer ends where the packet ends, and there is at most one counter. */
static void bare__any_bytes_of_any_length(void)
{
	struct ur_rng rng = {11};
	uint8_t bytes[65];

	for (unsigned round = 0; round < 400; round++)
		for (uint32_t len = 0; len <= 64; len++) {
			struct ur_counters c = {.v = {0}};
			struct ur_pkt p;
			bool ok;

			for (unsigned i = 0; i < len; i++)
				bytes[i] = (uint8_t)ur_rng_u32(&rng);
			if (len > 1 && round % 2)
				bytes[1] &= 0xf0; /* a transport version that there is */
			sample_load(&p, bytes, len);
			p.flags = UR_PKT_BARE;
			p.ip_version = round % 4 < 2 ? 4 : 6;
			p.place = (uint8_t)round;
			ok = ur_frame_parse(&p, &c);
			CU_ASSERT_EQUAL(sample_drops(&c), !ok);
			CU_ASSERT_TRUE(!ok || p.payload_off + p.payload_len + p.bth.pad + UR_ICRC_LEN == len);
			sample_free(&p);
		}
}

static void bare__other_drops(void)
{
	static const struct {
		uint8_t at, value;
		enum ur_counter why;
	} t[] = {
		{0, 0xff, UR_C_DROP_OPCODE},
		{0, UR_OP_CMP_SWAP, UR_C_DROP_TRUNCATED},
		{1, 0x01, UR_C_DROP_TVER},
		{12, 0x77, UR_C_ICRC},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_pkt p;

		strip_sample(&p, 0);
		p.data[t[i].at] = t[i].value;
		CU_ASSERT_FALSE(parses(&p, t[i].why));
		sample_free(&p);
	}
}

/* What is put before a bare packet makes it a frame again: it parses, and but for MAC addresses and what is unknown it is what was sent. */
static void put_headers__a_frame_again(void)
{
	for (unsigned i = 0; i < ur_array_size(samples); i++) {
		uint8_t frame[sizeof(sample_send6)], headers[UR_PATH_HDR_MAX], ip[UR_IP6_LEN];
		struct ur_pkt bare, again;
		unsigned n;

		if (samples[i].six)
			memcpy(frame, samples[i].frame, samples[i].len);
		else
			renumber(frame, samples[i].frame, samples[i].len, 9, 0x4000);
		strip(&bare, frame, samples[i].len, samples[i].len - bth_at(i));
		bare.place = 9;
		bare.bth_off = 42; /* left from another packet, which the buffer held before */
		n = ur_frame_put_headers(&bare, headers);
		CU_ASSERT_EQUAL_FATAL(n, bth_at(i));
		CU_ASSERT_EQUAL(memcmp(headers + 12, frame + 12, n - 12), 0);
		CU_ASSERT_EQUAL(memcmp(headers, "\0\0\0\0\0\0\0\0\0\0\0\0", 12), 0);
		CU_ASSERT_TRUE(parses(&bare, UR_C_COUNT));
		ur_frame_put_ip(&bare, ip);
		CU_ASSERT_EQUAL(memcmp(ip, frame + L3, samples[i].six ? 40 : 20), 0);
		memcpy(frame, headers, n);
		sample_load(&again, frame, samples[i].len);
		CU_ASSERT_TRUE(parses(&again, UR_C_COUNT));
		sample_free(&bare);
		sample_free(&again);
	}
}

void ur_suite_frame_bare(void)
{
	CU_pSuite s = CU_add_suite("frame_bare", NULL, NULL);

	CU_ADD_TEST(s, bare__as_the_whole_frame);
	CU_ADD_TEST(s, bare__any_identification);
	CU_ADD_TEST(s, bare__header_is_found);
	CU_ADD_TEST(s, bare__fields_that_count);
	CU_ADD_TEST(s, bare__ip6_is_exact);
	CU_ADD_TEST(s, bare__damage_is_refused);
	CU_ADD_TEST(s, bare__every_truncation_is_one_drop);
	CU_ADD_TEST(s, bare__any_bytes_of_any_length);
	CU_ADD_TEST(s, bare__other_drops);
	CU_ADD_TEST(s, put_headers__a_frame_again);
}
