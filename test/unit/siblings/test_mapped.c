/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies from memory of a child that its parent maps as well (siblings/mapped.h), and all that may become of it while it is copied from. */
#include <time.h>

#include "host/clock.h"
#include "mapped_harness.h"
#include "siblings/mapped.h"

void ur_suite_mapped(void);

#define TRIES 200 /* until the thread has mapped something, each 10 ms after the one before */

/* In pieces that are not those of the other side. */
static enum ur_fetched_by fetch(const struct answer *a, uint32_t region)
{
	const struct ur_piece to[] = {{copied, 5}, {copied + 5, a->len - 105}, {copied + a->len - 100, 100}};
	const struct ur_bulk_seg from[] = {{a->at, a->len / 2, region, a->at, a->len},
					   {a->at + a->len / 2, a->len - a->len / 2, region, a->at, a->len}};

	memset(copied, 0, a->len);
	return ur_local_fetch(local, a->slot, to, ur_array_size(to), from, ur_array_size(from));
}

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = 10000000};

	nanosleep(&ts, NULL);
}

/* True once it is copied without the kernel; `tries` bounds how long that is waited for. Until then the kernel copies. */
static bool becomes_mapped(const struct answer *a, uint32_t region, unsigned tries)
{
	enum ur_fetched_by by = UR_FETCHED_BY_KERNEL;

	for (unsigned i = 0; i < tries && by == UR_FETCHED_BY_KERNEL; i++) {
		by = fetch(a, region);
		CU_ASSERT_TRUE(is_right(a->len, 0));
		if (by == UR_FETCHED_BY_KERNEL)
			nap();
	}
	return by == UR_FETCHED_MAPPED;
}

/* How many mappings of the owner's file are there? Those that are read only. */
static unsigned mappings(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, " r--p ") && strstr(line, name);
	fclose(f);
	return n;
}

static void copy__without_the_kernel(void)
{
	static const enum kind some[] = {MEMFD, SHM, SHM_UNLINKED, MEMFD_SEALED, HUGE_MEMFD};

	for (unsigned i = 0; i < ur_array_size(some); i++) {
		struct answer a;

		begin(true);
		a = ask(MAKE, some[i], 0);
		if (a.at) {
			CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_BY_KERNEL); /* once is not worth it */
			CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
			CU_ASSERT_TRUE(is_right(a.len, 0));
		}
		finish();
	}
}

/* No region, memory that cannot be mapped, nobody who maps: as before. */
static void copy__by_the_kernel(void)
{
	struct answer a;

	begin(true);
	a = ask(MAKE, PRIVATE, 0);
	CU_ASSERT_FALSE(becomes_mapped(&a, 7, 30));
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_FALSE(becomes_mapped(&a, 0, 30));
	CU_ASSERT_EQUAL(mappings("memfd:test"), 0);
	finish();
	begin(false);
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_FALSE(becomes_mapped(&a, 7, 30));
}

/* The owner takes the memory away: an error, and then that is left to the kernel, which has none either. */
static void copy__from_a_truncated_file(void)
{
	struct answer a;

	begin(true);
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
	ask(TRUNCATE, MEMFD, 0);
	for (unsigned i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_NOT);
}

/*
 * Holes are the kernel's to fill, in the owner's name. What is there meanwhile is copied as before; a region that has ever new ones is
 * left to the kernel.
 */
static void copy__from_a_file_with_holes(void)
{
	unsigned mapped = 0;
	struct answer a;

	begin(true);
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
	for (unsigned i = 0; i < 20; i++) {
		ask(PUNCH, MEMFD, 0);
		CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_BY_KERNEL);
		CU_ASSERT_TRUE(copied[1] == 7 && copied[FIRST + 1] == 0);
		mapped += fetch(&a, 7) == UR_FETCHED_MAPPED;
	}
	CU_ASSERT_TRUE(mapped && mapped < 20);
}

/* A region that ends while it is copied from: its memory is let go, and its successor's, at the same address, is what is copied. */
static void copy__from_a_region_that_ends(void)
{
	struct answer a;

	begin(true);
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
	CU_ASSERT_EQUAL(mappings("memfd:test"), 1);
	ask(END_REGION, MEMFD, 7);
	ask(REMAP, MEMFD, 0);
	CU_ASSERT_EQUAL(fetch(&a, 8), UR_FETCHED_BY_KERNEL);
	CU_ASSERT_TRUE(is_right(LEN, 99));
	CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_BY_KERNEL);
	for (unsigned i = 0; i < TRIES && mappings("memfd:test"); i++)
		nap();
	CU_ASSERT_EQUAL(mappings("memfd:test"), 0);
}

/* Nobody copies any more, and nobody calls: what is mapped goes, within the time that mapped.h says. */
static void copy__from_nothing_for_long(void)
{
	struct answer a;
	int64_t since;

	begin(true);
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
	since = ur_clock_ms();
	for (unsigned i = 0; i < TRIES && mappings("memfd:test"); i++)
		nap();
	CU_ASSERT_EQUAL(mappings("memfd:test"), 0);
	CU_ASSERT_TRUE(ur_clock_ms() - since >= UR_MAPPED_KEPT_MS / 2);
	CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_BY_KERNEL);
	CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
}

/* A sibling that calls itself by another one's id does not take the place of its memory. */
static void copy__for_one_process_only(void)
{
	struct ur_mapped *m = ur_mapped_open();
	struct ur_piece to = {copied, LEN};
	struct ur_sibling other;
	struct ur_bulk_seg from;
	struct answer a;
	bool mapped = false;

	begin(false);
	a = ask(MAKE, MEMFD, 0);
	other = *ur_registry_sibling(registry, a.slot);
	from = (struct ur_bulk_seg){a.at, a.len, 7, a.at, a.len};
	for (unsigned i = 0; i < TRIES && !mapped; i++, nap())
		mapped = ur_mapped_copy(m, &other, &to, 1, &from, 1);
	CU_ASSERT_TRUE(mapped);
	other.slot++;
	CU_ASSERT_FALSE(ur_mapped_copy(m, &other, &to, 1, &from, 1));
	other.slot--;
	other.id++;
	CU_ASSERT_FALSE(ur_mapped_copy(m, &other, &to, 1, &from, 1));
	other.id--;
	CU_ASSERT_TRUE(ur_mapped_copy(m, &other, &to, 1, &from, 1));
	ur_mapped_close(m);
}

/* More regions than there are places: each is copied, most of them by the kernel. */
static void copy__from_many_regions(void)
{
	unsigned mapped = 0;
	struct answer a;

	begin(true);
	a = ask(MAKE, MEMFD, 0);
	a.len = 2000; /* little, for sanitizers: its owner lives for PROC_SECONDS */
	for (unsigned round = 0; round < 12; round++)
		for (uint32_t region = 1; region <= 2 * UR_MAPPED_REGIONS; region++) {
			mapped += fetch(&a, region) == UR_FETCHED_MAPPED;
			CU_ASSERT_TRUE(is_right(a.len, 0));
		}
	CU_ASSERT_TRUE(mappings("memfd:test") <= UR_MAPPED_REGIONS);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_NOT_EQUAL(fetch(&a, 1), UR_FETCHED_NOT);
	CU_ASSERT_TRUE(mapped > 0 || mappings("memfd:test") > 0);
}

/* The child of a fork has nothing of it. */
static void copy__and_fork(void)
{
	struct answer a;
	int status = -1;
	pid_t pid;

	begin(true);
	a = ask(MAKE, MEMFD, 0);
	CU_ASSERT_TRUE(becomes_mapped(&a, 7, TRIES));
	pid = fork();
	if (!pid) {
		ur_local_abandon(local);
		_exit(mappings("memfd:test") ? 1 : 0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
	CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_MAPPED);
	proc_kill(owner);
	CU_ASSERT_EQUAL(fetch(&a, 7), UR_FETCHED_MAPPED); /* as long as it is not known to be dead */
}

static bool can_guard(void)
{
	int fd = ur_map_guard();

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void ur_suite_mapped(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("mapped", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, copy__by_the_kernel);
	if (!can_guard())
		return; /* and so it does not map anything */
	CU_ADD_TEST(s, copy__without_the_kernel);
	CU_ADD_TEST(s, copy__from_a_truncated_file);
	CU_ADD_TEST(s, copy__from_a_file_with_holes);
	CU_ADD_TEST(s, copy__from_a_region_that_ends);
	CU_ADD_TEST(s, copy__from_nothing_for_long);
	CU_ADD_TEST(s, copy__for_one_process_only);
	CU_ADD_TEST(s, copy__from_many_regions);
	CU_ADD_TEST(s, copy__and_fork);
}
