/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/engine/populate.c: memory that is not there, or not all the time. A fault would end the tests. */
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/populate.h"

void ur_suite_populate(void);

#define COPIES 20000
#define BOTH (PROT_READ | PROT_WRITE)

static size_t page;
static uint8_t *at; /* two pages; what lies after is not mapped */
static uint8_t buf[8192];

static void map(uint8_t *where, size_t len, int prot)
{
	CU_ASSERT_PTR_EQUAL_FATAL(mmap(where, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), where);
}

static void setup(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	at = mmap(NULL, 3 * page, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
	munmap(at + 2 * page, page);
	memset(buf, 7, sizeof(buf));
}

static void teardown(void)
{
	munmap(at, 2 * page);
}

static void reach__what_is_there(void)
{
	CU_ASSERT_TRUE(ur_populate(at, 2 * page, true));
	CU_ASSERT_TRUE(ur_populate(at + 2 * page - 1, 1, true));
	CU_ASSERT_FALSE(ur_populate(at + 2 * page - 1, 2, false));
	CU_ASSERT_FALSE(ur_populate(at, UINT64_MAX, false));
	CU_ASSERT_FALSE(ur_populate(NULL, 8, false));
	mprotect(at, page, PROT_READ);
	CU_ASSERT_TRUE(ur_populate(at, 8, false));
	CU_ASSERT_FALSE(ur_populate(at, 8, true));
}

static void copy__both_ways(void)
{
	memset(at, 3, 2 * page);
	CU_ASSERT_TRUE(ur_user_copy(at + page - 10, buf, 20, true));
	CU_ASSERT_EQUAL(memcmp(at + page - 10, buf, 20), 0);
	CU_ASSERT_TRUE(at[page - 11] == 3 && at[page + 10] == 3);
	CU_ASSERT_TRUE(ur_user_copy(buf, at, 100, false));
	CU_ASSERT_EQUAL(memcmp(at, buf, 100), 0);
	CU_ASSERT_TRUE(ur_user_copy(buf, at + 2 * page - 100, 100, false));
}

static void copy__what_is_not_there(void)
{
	CU_ASSERT_FALSE(ur_user_copy(at + 2 * page - 10, buf, 20, true));
	CU_ASSERT_FALSE(ur_user_copy(buf, at + 2 * page - 10, 20, false));
	CU_ASSERT_FALSE(ur_user_copy(buf, NULL, 8, false));
	mprotect(at, page, PROT_READ);
	CU_ASSERT_TRUE(ur_user_copy(buf, at, 8, false));
	CU_ASSERT_FALSE(ur_user_copy(at, buf, 8, true));
	mprotect(at, page, PROT_NONE);
	CU_ASSERT_FALSE(ur_user_copy(buf, at, 8, false));
}

static atomic_bool stop;

static void *come_and_go(void *arg)
{
	while (!atomic_load(&stop)) {
		munmap(at, page);
		map(at, page, BOTH);
	}
	return arg;
}

/* What this test does is a race, which is the point of it. */
#if defined(__has_feature)
#define THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define THREAD_SANITIZER 0
#endif

static void copy__while_it_comes_and_goes(void)
{
	pthread_t t;

	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < COPIES; i++) {
		ur_user_copy(at, buf, 4096, true);
		ur_user_copy(buf, at, 4096, false);
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	CU_ASSERT_TRUE(ur_user_copy(at, buf, 4096, true));
}

void ur_suite_populate(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("populate", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, reach__what_is_there);
	CU_ADD_TEST(s, copy__both_ways);
	CU_ADD_TEST(s, copy__what_is_not_there);
	if (!THREAD_SANITIZER)
		CU_ADD_TEST(s, copy__while_it_comes_and_goes);
}
