/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/host/spool.c: what is put comes out whole and in order, whatever its size; what finds no room is refused; nobody waits for ever. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "host/spool.h"

void ur_suite_spool(void);

#define SIZE (1u << 20)

/* A record: its length and its number, then bytes that follow from both. */
struct record {
	uint32_t len, number;
};

static struct {
	struct ur_spool *spool;
	sem_t gate; /* what the taker waits for, while `gated` */
	atomic_bool gated;
	atomic_uint taken, wrong, pauses, ends;
	uint32_t next;
	uint32_t skip; /* numbers that were refused lie between */
} s;

static uint8_t byte_of(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + i);
}

static size_t take(void *ctx, const void *records, size_t n)
{
	const uint8_t *at = records;
	struct record r;

	(void)ctx;
	if (atomic_load(&s.gated))
		sem_wait(&s.gate);
	memcpy(&r, at, sizeof(r));
	if (r.len > n || r.number < s.next || r.number > s.next + s.skip)
		atomic_fetch_add(&s.wrong, 1);
	for (uint32_t i = sizeof(r); i < r.len; i++)
		if (at[i] != byte_of(r.number, i))
			atomic_fetch_add(&s.wrong, 1);
	s.next = r.number + 1;
	atomic_fetch_add(&s.taken, 1);
	return r.len;
}

static void paused(void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&s.pauses, 1);
}

static void end(void *ctx)
{
	(void)ctx;
	atomic_fetch_add(&s.ends, 1);
}

static void open_spool(bool gated)
{
	static const struct ur_spool_taker taker = {take, paused, end};

	memset(&s, 0, sizeof(s));
	sem_init(&s.gate, 0, 0);
	atomic_store(&s.gated, gated);
	CU_ASSERT_EQUAL_FATAL(ur_spool_open("spool", SIZE, &taker, NULL, &s.spool), 0);
}

static bool put(uint32_t number, uint32_t len)
{
	uint8_t *at = ur_spool_room(s.spool, len);

	if (!at)
		return false;
	memcpy(at, &(struct record){len, number}, sizeof(struct record));
	for (uint32_t i = sizeof(struct record); i < len; i++)
		at[i] = byte_of(number, i);
	ur_spool_put(s.spool, len);
	return true;
}

static void close_spool(void)
{
	CU_ASSERT_TRUE(ur_spool_stop(s.spool));
	CU_ASSERT_EQUAL(atomic_load(&s.ends), 0);
	ur_spool_release(s.spool);
	CU_ASSERT_EQUAL(atomic_load(&s.ends), 1);
	CU_ASSERT_EQUAL(atomic_load(&s.wrong), 0);
	sem_destroy(&s.gate);
}

/* Many times round the ring, with gaps of all sizes at its end. */
static void spool__keeps_order(void)
{
	uint32_t put_ones = 0;

	open_spool(false);
	for (uint32_t i = 0; i < 4000; i++) {
		uint32_t len = 8 + 4 * (i * 2654435761u % 20000);

		while (!put(i, len))
			ur_spool_flush(s.spool);
		put_ones++;
	}
	close_spool();
	CU_ASSERT_EQUAL(atomic_load(&s.taken), put_ones);
	CU_ASSERT_TRUE(atomic_load(&s.pauses) > 0);
}

/* The same without waiting: what is refused is missing, and nothing else. */
static void spool__refuses_what_finds_no_room(void)
{
	uint32_t refused = 0, number = 0;

	open_spool(true);
	s.skip = UINT32_MAX / 2;
	for (; number < 100; number++)
		refused += !put(number, SIZE / 50);
	CU_ASSERT_TRUE(refused >= 49 && refused <= 51);
	CU_ASSERT_TRUE(ur_spool_is_crowded(s.spool));
	atomic_store(&s.gated, false);
	sem_post(&s.gate);
	ur_spool_flush(s.spool);
	CU_ASSERT_EQUAL(atomic_load(&s.taken), 100 - refused);
	CU_ASSERT_FALSE(ur_spool_is_crowded(s.spool));
	CU_ASSERT_TRUE(put(number, SIZE / 50));
	close_spool();
	CU_ASSERT_EQUAL(atomic_load(&s.taken), 101 - refused);
}

/* Room that was asked for and not used is nobody's. */
static void spool__room_may_be_left(void)
{
	uint32_t i = 0;

	open_spool(false);
	for (; i < 200; i++) {
		CU_ASSERT_PTR_NOT_NULL(ur_spool_room(s.spool, SIZE / 2));
		while (!put(i, 8 + 4 * (i * 977 % 5000)))
			ur_spool_flush(s.spool);
		ur_spool_flush(s.spool);
	}
	close_spool();
	CU_ASSERT_EQUAL(atomic_load(&s.taken), i);
}

/* A long silence, in which the thread sleeps: the next record wakes it. */
static void spool__wakes_from_a_long_sleep(void)
{
	open_spool(false);
	usleep(300000);
	CU_ASSERT_TRUE(put(0, 64));
	ur_spool_flush(s.spool);
	CU_ASSERT_EQUAL(atomic_load(&s.taken), 1);
	close_spool();
}

static void spool__does_not_wait_for_a_stuck_taker(void)
{
	open_spool(true);
	CU_ASSERT_TRUE(put(0, 64));
	CU_ASSERT_TRUE(put(1, 64));
	ur_spool_flush(s.spool); /* gives up */
	CU_ASSERT_FALSE(ur_spool_stop(s.spool));
	ur_spool_release(s.spool);
	CU_ASSERT_EQUAL(atomic_load(&s.ends), 0);
	atomic_store(&s.gated, false);
	sem_post(&s.gate);
	for (unsigned i = 0; i < 10000 && !atomic_load(&s.ends); i++)
		usleep(1000);
	CU_ASSERT_EQUAL(atomic_load(&s.ends), 1); /* by the thread, after all that was there */
	CU_ASSERT_EQUAL(atomic_load(&s.taken), 2);
	CU_ASSERT_EQUAL(atomic_load(&s.wrong), 0);
}

void ur_suite_spool(void)
{
	CU_pSuite suite = CU_add_suite("spool", NULL, NULL);

	CU_ADD_TEST(suite, spool__keeps_order);
	CU_ADD_TEST(suite, spool__refuses_what_finds_no_room);
	CU_ADD_TEST(suite, spool__room_may_be_left);
	CU_ADD_TEST(suite, spool__wakes_from_a_long_sleep);
	CU_ADD_TEST(suite, spool__does_not_wait_for_a_stuck_taker);
}
