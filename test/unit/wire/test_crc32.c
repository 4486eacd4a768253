/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kernel that this CPU can run, ISA-L's among them, against the CRC's definition; and the tables of lib/wire/crc/crc32_fold.c. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "base/touch.h"
#include "engine/catch.h"
#include "wire/crc/crc32.h"
#include "wire/crc/crc32_fold.h"
#include "wire/crc/crc32_kernels.h"

void ur_suite_crc32(void);

#define POLYNOMIAL 0x104c11db7ull
#define LONGEST 4500
#define AROUND 64 /* also the alignments that are tried */

static const struct ur_crc32_kernel chosen = {"chosen", NULL, NULL, ur_crc32, ur_crc32_copy};
static const struct ur_crc32_kernel *tried[8] = {&chosen}; /* what the library uses, then each that runs here */
static unsigned kernels = 1;

static int find_kernels(void)
{
	const struct ur_crc32_kernel *k;

	for (unsigned i = 0; (k = ur_crc32_kernel(i)) && kernels < ur_array_size(tried); i++)
		if (k->runs_here())
			tried[kernels++] = k;
	return kernels < 2; /* ISA-L's runs everywhere */
}

static uint8_t *random_bytes(struct ur_rng *rng, size_t len)
{
	uint8_t *buf = aligned_alloc(AROUND, (len + AROUND - 1) / AROUND * AROUND);

	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)ur_rng_u32(rng);
	return buf;
}

static uint32_t one_byte(uint32_t crc, uint8_t byte)
{
	crc = ~crc ^ byte;
	for (unsigned bit = 0; bit < 8; bit++)
		crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return ~crc;
}

/* The CRC of the first n bytes, for each n up to LONGEST. */
static void every_prefix(uint32_t crc, const uint8_t *p, uint32_t want[LONGEST + 1])
{
	for (size_t n = 0; n < LONGEST; n++) {
		want[n] = crc;
		crc = one_byte(crc, p[n]);
	}
	want[LONGEST] = crc;
}

static void crc32__known_values(void)
{

	for (unsigned i = 0; i < kernels; i++) {
		const struct ur_crc32_kernel *k = tried[i];

		CU_ASSERT_EQUAL(k->crc(0, "123456789", 9), 0xcbf43926);
		CU_ASSERT_EQUAL(k->crc(0, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 0x2144df1c);
		CU_ASSERT_EQUAL(k->crc(0x12345678, NULL, 0), 0x12345678);
	}
}

static void crc32__every_length_and_alignment(void)
{
	struct ur_rng rng = {1};
	uint8_t *buf = random_bytes(&rng, AROUND + LONGEST);
	static uint32_t want[LONGEST + 1];

	for (size_t at = 0; at < AROUND; at++) {
		uint32_t start = at ? ur_rng_u32(&rng) : 0;

		every_prefix(start, buf + at, want);
		for (unsigned i = 0; i < kernels; i++) {
			const struct ur_crc32_kernel *k = tried[i];
			unsigned wrong = 0;

			for (size_t len = 0; len <= LONGEST; len++)
				wrong += k->crc(start, buf + at, len) != want[len];
			CU_ASSERT_EQUAL(wrong, 0);
		}
	}
	free(buf);
}

static void crc32__split_anywhere(void)
{
	static const size_t lengths[] = {1,  3,  4,  7,   8,   9,   15,  16,  17,  31,   32,   33,
					 47, 48, 64, 100, 255, 256, 257, 300, 512, 1040, 4112, LONGEST};
	struct ur_rng rng = {2};
	uint8_t *buf = random_bytes(&rng, LONGEST), *to = malloc(LONGEST);
	static uint32_t want[LONGEST + 1];

	every_prefix(0x87654321, buf, want);
	for (unsigned i = 0; i < kernels; i++) {
		const struct ur_crc32_kernel *k = tried[i];
		unsigned wrong = 0;

		for (unsigned l = 0; l < ur_array_size(lengths); l++)
			for (size_t len = lengths[l], cut = 0; cut <= len; cut++) {
				wrong += k->crc(k->crc(0x87654321, buf, cut), buf + cut, len - cut) != want[len];
				wrong += k->copy(k->copy(0x87654321, to, buf, cut), to + cut, buf + cut, len - cut) != want[len];
			}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(memcmp(to, buf, LONGEST), 0);
	}
	free(buf);
	free(to);
}

/* The copy is complete and nothing beside it changes. */
static bool copies(const struct ur_crc32_kernel *k, uint32_t start, uint8_t *to, size_t at, const uint8_t *from, size_t len, uint32_t want)
{
	uint8_t mark = (uint8_t)~from[0];

	memset(to, mark, at + len + AROUND);
	if (k->copy(start, to + at, from, len) != want || memcmp(to + at, from, len) != 0)
		return false;
	for (size_t i = 0; i < at + AROUND; i++)
		if (to[i < at ? i : i + len] != mark)
			return false;
	return true;
}

static void crc32_copy__every_length_and_alignment(void)
{
	struct ur_rng rng = {3};
	uint8_t *buf = random_bytes(&rng, AROUND + LONGEST), *to = aligned_alloc(AROUND, (LONGEST / AROUND + 4) * AROUND);
	static uint32_t want[LONGEST + 1];

	for (size_t from = 0; from < AROUND; from++) {
		uint32_t start = ur_rng_u32(&rng);

		every_prefix(start, buf + from, want);
		for (unsigned i = 0; i < kernels; i++) {
			const struct ur_crc32_kernel *k = tried[i];
			unsigned wrong = 0;

			/* All pairs of alignments for short lengths, the others in turn. */
			for (size_t len = 0; len <= LONGEST; len++)
				for (size_t at = len % 8; at < AROUND; at += len <= 80 ? 1 : AROUND)
					wrong += !copies(k, start, to, (at + from) % AROUND, buf + from, len, want[len]);
			CU_ASSERT_EQUAL(wrong, 0);
		}
	}
	free(buf);
	free(to);
}

/* --- memory before or after which there is none --- */

struct island {
	uint8_t *start, *end;
};

static struct island between_nothing(size_t bytes)
{
	size_t page = 65536; /* of any kernel */
	uint8_t *p = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(p, MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mprotect(p + page, bytes, PROT_READ | PROT_WRITE), 0);
	return (struct island){p + page, p + page + bytes};
}

static void crc32__touches_nothing_else(void)
{
	struct island from = between_nothing(65536), to = between_nothing(65536);
	struct ur_rng rng = {4};
	static uint32_t want[LONGEST + 1];

	for (uint8_t *p = from.start; p < from.end; p++)
		*p = (uint8_t)ur_rng_u32(&rng);
	every_prefix(0, from.start, want);
	for (unsigned i = 0; i < kernels; i++) {
		const struct ur_crc32_kernel *k = tried[i];
		unsigned wrong = 0;

		for (size_t len = 0; len <= LONGEST; len++) {
			wrong += k->crc(0, from.start, len) != want[len];
			wrong += k->copy(0, to.end - len, from.start, len) != want[len];
			wrong += k->crc(0, from.end - len, len) != k->copy(0, to.start, from.end - len, len);
		}
		CU_ASSERT_EQUAL(wrong, 0);
	}
	munmap(from.start - 65536, 3 * 65536);
	munmap(to.start - 65536, 3 * 65536);
}

struct guarded {
	const struct ur_crc32_kernel *kernel;
	uint8_t *to;
	const uint8_t *from;
	size_t len;
	uint32_t crc;
};

static void copy_guarded(void *arg)
{
	struct guarded *g = arg;

	g->crc = g->kernel->copy(0, g->to, g->from, g->len);
}

/* A kernel that is left in the middle, at any block and in either memory, disturbs neither its caller's registers nor the next call. */
static void crc32_copy__left_in_the_middle(void)
{
	struct island gone = between_nothing(65536);
	struct ur_rng rng = {5};
	uint8_t *buf = random_bytes(&rng, LONGEST);
	static uint32_t want[LONGEST + 1];

	CU_ASSERT_TRUE_FATAL(ur_catch_start());
	ur_catch_admit();
	every_prefix(0, buf, want);
	for (unsigned i = 0; i < kernels; i++) {
		const struct ur_crc32_kernel *k = tried[i];
		double sum = 0; /* in a register that calls keep, where the CPU has one */
		unsigned wrong = 0;

		for (size_t there = 0; there < 1040; there += 16) {
			struct guarded out = {k, gone.end - there, buf, 1040, 0}, in = {k, buf, gone.end - there, 1040, 0},
				       whole = {k, gone.start, buf, 1040, 0};
			double before = (double)there * 1.5;

			wrong += ur_touch_call(copy_guarded, &out) || ur_touch_call(copy_guarded, &in);
			sum = sum + before;
			for (size_t n = 0; n < 1040; n++)
				buf[n] = (uint8_t)(n * 7);
			every_prefix(0, buf, want);
			wrong += !ur_touch_call(copy_guarded, &whole) || whole.crc != want[1040] || memcmp(gone.start, buf, 1040) != 0;
		}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(sum, 16 * 1.5 * 65 * 64 / 2);
	}
	munmap(gone.start - 65536, 3 * 65536);
	free(buf);
}

/* --- the tables --- */

/* x^n mod P, reflected, in the upper half of 64 bits. */
static uint64_t power(unsigned n)
{
	uint64_t v = 1, reflected = 0;

	while (n--) {
		v <<= 1;
		if (v >> 32)
			v ^= POLYNOMIAL;
	}
	for (unsigned i = 0; i < 32; i++)
		reflected |= (v >> i & 1) << (63 - i);
	return reflected;
}

static void crc32_fold__constants(void)
{
	uint64_t quotient = 0, rest = 0, polynomial = 0;

	for (unsigned d = 0; d < UR_CRC32_BLOCKS; d++) {
		CU_ASSERT_EQUAL(UR_CRC32_WEIGHT(d)[0], power(128 * d + 95));
		CU_ASSERT_EQUAL(UR_CRC32_WEIGHT(d)[1], power(128 * d + 31));
	}
	CU_ASSERT_EQUAL(ur_crc32_over_8[0], power(1024 + 63));
	CU_ASSERT_EQUAL(ur_crc32_over_8[1], power(1024 - 1));

	/* Long division of x^96 by P: `rest` takes one coefficient after the other, the first of them 1. */
	for (int i = 96; i >= 0; i--) {
		rest = rest << 1 | (i == 96);
		if (rest >> 32 & 1) {
			rest ^= POLYNOMIAL;
			if (i > 0) /* the coefficient of x^i, that of x^0 being left out */
				quotient |= 1ull << (64 - i);
		}
	}
	CU_ASSERT_EQUAL(UR_CRC32_QUOTIENT, quotient);
	for (unsigned i = 0; i <= 32; i++)
		polynomial |= (POLYNOMIAL >> i & 1) << (32 - i);
	CU_ASSERT_EQUAL(UR_CRC32_POLYNOMIAL, polynomial);
}

void ur_suite_crc32(void)
{
	CU_pSuite s = CU_add_suite("crc32", find_kernels, NULL);

	CU_ADD_TEST(s, crc32__known_values);
	CU_ADD_TEST(s, crc32__every_length_and_alignment);
	CU_ADD_TEST(s, crc32__split_anywhere);
	CU_ADD_TEST(s, crc32_copy__every_length_and_alignment);
	CU_ADD_TEST(s, crc32__touches_nothing_else);
	CU_ADD_TEST(s, crc32_copy__left_in_the_middle);
	CU_ADD_TEST(s, crc32_fold__constants);
}
