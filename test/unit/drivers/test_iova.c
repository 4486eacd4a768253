/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/pci/iova.c: the bus addresses that memory is shown at. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/rng.h"
#include "drivers/pci/iova.h"

void ur_suite_iova(void);

#define MB2 UR_IOVA_ALIGN
#define BEGIN (1ull << 38)

/* Ranges as kernels show them: without the interrupts' page (x86), and with holes for devices of the firmware's. */
static void window__by_ranges(void)
{
	static const struct {
		struct ur_iova_range r[3];
		size_t n;
		uint64_t begin, end; /* 0: none */
	} t[] = {
		{{{0, 0xfedfffff}, {0xfef00000, (1ull << 48) - 1}}, 2, 1ull << 45, 1ull << 46},
		{{{0, 0xfedfffff}, {0xfef00000, (1ull << 57) - 1}}, 2, 1ull << 45, 1ull << 46},
		{{{0, 0xfedfffff}, {0xfef00000, UINT64_MAX}}, 2, 1ull << 45, 1ull << 46},
		{{{0, 0xfedfffff}, {0xfef00000, (1ull << 39) - 1}}, 2, 1ull << 38, 1ull << 39},
		{{{0, (1ull << 38) + (1 << 20)}}, 1, 0, 0},
		{{{0, (1ull << 38) + (4 << 20) - 1}}, 1, 1ull << 38, (1ull << 38) + (4 << 20)},
		{{{0, (1ull << 45) + (8 << 20) - 1}}, 1, 1ull << 45, (1ull << 45) + (8 << 20)},
		{{{0, (1ull << 45) - 1}, {(1ull << 45) + 4096, (1ull << 48) - 1}}, 2, 1ull << 38, 1ull << 39},
		{{{0, 0xffffffff}}, 1, 0, 0},
		{{{0, 0}}, 0, 0, 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint64_t begin, end;
		bool found = ur_iova_window(t[i].r, t[i].n, &begin, &end);

		CU_ASSERT_EQUAL(found, t[i].end != 0);
		CU_ASSERT_TRUE(!found || (begin == t[i].begin && end == t[i].end));
	}
}

/* As far as the IOMMU's large pages go a piece lies as its memory does; the next one does not take its place at once. */
static void take__aligned_and_onwards(void)
{
	struct ur_iova_space s;
	uint64_t a, b, c;

	ur_iova_init(&s, BEGIN, 2 * BEGIN);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0x7f0000001000, 4096, &a), 0);
	CU_ASSERT_EQUAL(a, BEGIN + 0x1000);
	ur_iova_give(&s, a);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0x7f0000001000, 3 * MB2, &b), 0);
	CU_ASSERT_EQUAL(b, BEGIN + MB2 + 0x1000);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0x7f0000000000, 4096, &c), 0);
	CU_ASSERT_EQUAL(c, BEGIN + 5 * MB2);
	ur_iova_give(&s, c + 4096); /* that is nobody's */
	CU_ASSERT_EQUAL(s.n - s.gone, 2);
	ur_iova_fini(&s);
}

/* Round and round: what is left between others is used when the end is reached, and nothing is given out twice. */
static void take__full(void)
{
	struct ur_iova_space s;
	uint64_t at[4], more;

	ur_iova_init(&s, BEGIN, BEGIN + 4 * MB2);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(ur_iova_take(&s, 0, MB2, &at[i]), 0);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0, 4096, &more), ENOSPC);
	ur_iova_give(&s, at[1]);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0, MB2 + 1, &more), ENOSPC);
	CU_ASSERT_EQUAL(ur_iova_take(&s, MB2 - 4096, 8192, &more), ENOSPC);
	CU_ASSERT_EQUAL(ur_iova_take(&s, MB2 - 4096, 4096, &more), 0);
	CU_ASSERT_EQUAL(more, at[2] - 4096);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0, 0, &more), ENOSPC);
	CU_ASSERT_EQUAL(ur_iova_take(&s, 0, UINT64_MAX, &more), ENOSPC);
	ur_iova_fini(&s);
}

/* Thousands of takes and gives against a list. */
static void take__against_a_model(void)
{
	static struct ur_iova_range has[200];
	struct ur_iova_space s;
	struct ur_rng rng = {7};
	unsigned n = 0;

	ur_iova_init(&s, BEGIN, BEGIN + 100 * MB2);
	for (unsigned turn = 0; turn < 20000; turn++) {
		if (n && (n == ur_array_size(has) || ur_rng_below(&rng, 2))) {
			unsigned i = ur_rng_below(&rng, n);

			ur_iova_give(&s, has[i].first);
			has[i] = has[--n];
		} else {
			uint64_t addr = ur_rng_below(&rng, 4096) * 4096ull, len = (1 + ur_rng_below(&rng, 1500)) * 4096ull, at;

			if (ur_iova_take(&s, addr, len, &at))
				continue;
			CU_ASSERT_FATAL(at >= BEGIN && at + len <= BEGIN + 100 * MB2 && (at - addr) % MB2 == 0);
			for (unsigned i = 0; i < n; i++)
				CU_ASSERT_FATAL(at + len <= has[i].first || at > has[i].last);
			has[n++] = (struct ur_iova_range){at, at + len - 1};
		}
		CU_ASSERT_EQUAL_FATAL(s.n - s.gone, n);
	}
	ur_iova_fini(&s);
}

/* Each of many that are given back, the oldest first, leaves the others where they are: they move now and then, and all together. */
static void give__moves_few(void)
{
	static uint64_t at[10000];
	const unsigned n = ur_array_size(at);
	struct ur_iova_space s;
	size_t moved = 0;

	ur_iova_init(&s, BEGIN, 2 * BEGIN);
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL_FATAL(ur_iova_take(&s, i * 4096ull, 4096, &at[i]), 0);
	for (unsigned i = 0; i < n; i++) {
		size_t before = s.n;

		ur_iova_give(&s, at[i]);
		moved += before > s.n ? s.n : 0;
		CU_ASSERT_EQUAL(s.n - s.gone, n - 1 - i);
	}
	CU_ASSERT_EQUAL(s.n, 0);
	CU_ASSERT_TRUE(moved <= 2 * n);
	ur_iova_fini(&s);
}

void ur_suite_iova(void)
{
	CU_pSuite s = CU_add_suite("iova", NULL, NULL);

	CU_ADD_TEST(s, window__by_ranges);
	CU_ADD_TEST(s, take__aligned_and_onwards);
	CU_ADD_TEST(s, take__full);
	CU_ADD_TEST(s, take__against_a_model);
	CU_ADD_TEST(s, give__moves_few);
}
