/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/state/ring.c and the questions in ring.h. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "transport/state/ring.h"

void ur_suite_ring(void);

static void ring_init__grants_what_was_asked_for(void)
{
	static const struct {
		uint32_t asked, slots;
	} t[] = {{0, 1}, {1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}, {4095, 4096}, {UR_MAX_QP_WR, UR_MAX_QP_WR}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_ring r = {0};

		CU_ASSERT_EQUAL_FATAL(ur_ring_init(&r, t[i].asked, 48, 3), 0);
		CU_ASSERT_EQUAL(r.cap, t[i].asked);
		CU_ASSERT_TRUE(ur_ring_full(&r, t[i].asked));
		CU_ASSERT_FALSE(t[i].asked && ur_ring_full(&r, t[i].asked - 1));
		CU_ASSERT_EQUAL(r.mask + 1, t[i].slots);
		CU_ASSERT_EQUAL(r.max_sge, 3);
		CU_ASSERT_EQUAL((uintptr_t)r.buf % UR_RING_ALIGN, 0);
		CU_ASSERT(ur_ring_bytes(&r) >= (size_t)t[i].slots * 48);
		CU_ASSERT_EQUAL(ur_ring_bytes(&r) % UR_RING_ALIGN, 0);
		ur_ring_free(&r);
	}
}

static void ring_at__wraps(void)
{
	struct ur_ring r = {0};

	CU_ASSERT_EQUAL_FATAL(ur_ring_init(&r, 4, 24, 1), 0);
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_PTR_EQUAL(ur_ring_at(&r, i), r.buf + 24 * (size_t)i);
		CU_ASSERT_PTR_EQUAL(ur_ring_at(&r, UINT32_MAX - 3 + i), ur_ring_at(&r, i));
	}
	ur_ring_free(&r);
}

/* The indices run over 32 bits, and the consumer's progress is looked at only when there seems to be no room. */
static void ring_full__asks_the_consumer(void)
{
	struct ur_ring r = {0};
	uint32_t tail = UINT32_MAX;

	CU_ASSERT_EQUAL_FATAL(ur_ring_init(&r, 2, 24, 1), 0);
	atomic_init(&r.head, tail);
	r.head_seen = tail;
	CU_ASSERT_FALSE(ur_ring_full(&r, tail));
	CU_ASSERT_FALSE(ur_ring_full(&r, tail + 1));
	CU_ASSERT_TRUE(ur_ring_full(&r, tail + 2));
	atomic_store(&r.head, tail + 1);
	CU_ASSERT_FALSE(ur_ring_full(&r, tail + 2));
	CU_ASSERT_EQUAL(r.head_seen, 0);
	CU_ASSERT_TRUE(ur_ring_full(&r, tail + 3));
	ur_ring_free(&r);
	r = (struct ur_ring){0};
	CU_ASSERT_EQUAL_FATAL(ur_ring_init(&r, 0, 24, 1), 0);
	CU_ASSERT_TRUE(ur_ring_full(&r, 0)); /* no entries were asked for, and none can be written */
	ur_ring_free(&r);
}

static void ring_lend__leaves_the_memory_to_its_owner(void)
{
	uint8_t *mem = aligned_alloc(UR_RING_ALIGN, 128);
	struct ur_ring r = {0};

	CU_ASSERT_PTR_NOT_NULL_FATAL(mem);
	CU_ASSERT_EQUAL_FATAL(ur_ring_init(&r, 4, 24, 1), 0);
	ur_ring_lend(&r, NULL);
	CU_ASSERT_FALSE(r.lent);
	ur_ring_lend(&r, mem);
	CU_ASSERT_PTR_EQUAL(ur_ring_at(&r, 0), mem);
	ur_ring_free(&r);
	CU_ASSERT_PTR_NULL(r.buf);
	memset(mem, 0, 128); /* it is still there: valgrind and the address sanitizer would tell */
	free(mem);
}

void ur_suite_ring(void)
{
	CU_pSuite s = CU_add_suite("ring", NULL, NULL);

	CU_ADD_TEST(s, ring_init__grants_what_was_asked_for);
	CU_ADD_TEST(s, ring_at__wraps);
	CU_ADD_TEST(s, ring_full__asks_the_consumer);
	CU_ADD_TEST(s, ring_lend__leaves_the_memory_to_its_owner);
}
