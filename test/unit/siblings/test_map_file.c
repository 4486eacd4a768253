/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a child that its parent maps as well (siblings/map_file.h): each kind of it, in each way that there is, and no more of it. */
#include <sys/syscall.h>

#include "base/touch.h"
#include "mapped_harness.h"
#include "siblings/mapped.h"

void ur_suite_map_file(void);

static const struct {
	enum kind kind;
	unsigned ways; /* that work, besides that of the superuser */
	bool link;     /* and that one */
} kinds[] = {
	{MEMFD, UR_MAP_BY_FD, true},
	{MEMFD_LARGE, UR_MAP_BY_FD, true},
	{MEMFD_SEALED, UR_MAP_BY_FD, true},
	{HUGE_MEMFD, UR_MAP_BY_FD, true},
	{CLOSED_MEMFD, 0, true},
	{SHM, UR_MAP_BY_PATH, true},
	{SHM_UNLINKED, UR_MAP_BY_FD, true},
	{SEGMENT, 0, true},
	{ANONYMOUS, 0, true},
	{PRIVATE_FILE, 0, false},
	{ON_DISK, 0, false},
	{PRIVATE, 0, false},
};

/* The whole region, or from one of its bytes on to another. */
static bool map_part(const struct answer *a, uint64_t start, uint64_t size, uint64_t most, unsigned ways, struct ur_map *m)
{
	const struct ur_owner o = owner_of(a);
	const struct ur_bulk_seg piece = {.at = start, .len = 1, .region = 7, .start = start, .size = size};

	return ur_map_file(&o, &piece, most, ways, guard, m);
}

static bool is_in_memory(void)
{
	struct stat a, b;

	return stat("/var/tmp", &a) || stat("/dev/shm", &b) || a.st_dev == b.st_dev;
}

/* Each way alone maps what it can, and nothing else; what is mapped is the memory, and is gone when it is dropped. */
static void map_file__each_way(void)
{
	for (unsigned i = 0; i < ur_array_size(kinds); i++) {
		struct answer a;

		begin(false);
		a = ask(MAKE, kinds[i].kind, 0);
		for (unsigned way = UR_MAP_BY_LINK; a.at && way < UR_MAP_ANY; way <<= 1) {
			const bool can = way == UR_MAP_BY_LINK ? kinds[i].link && !geteuid() : (kinds[i].ways & way) != 0;
			struct ur_map m = {0};
			const bool did = map_part(&a, a.at + 1, a.len - 1, UR_MAPPED_BYTES, way, &m);

			if (kinds[i].kind == ON_DISK && is_in_memory())
				continue;
			CU_ASSERT_EQUAL(did, can && guard >= 0);
			if (!did)
				continue;
			CU_ASSERT_EQUAL(m.there, a.at);
			CU_ASSERT_EQUAL(m.len, a.len);
			memcpy(copied, m.here, a.len);
			CU_ASSERT_TRUE(is_right(a.len, 0));
			ur_map_drop(&m);
			CU_ASSERT_PTR_NULL(m.here);
		}
		finish();
	}
}

/* A program whose memory is locked would have all of a file in memory. As root: otherwise RLIMIT_MEMLOCK may forbid it anyway. */
static void map_file__not_into_locked_memory(void)
{
	struct ur_map m;
	struct answer a;

	begin(false);
	a = ask(MAKE, MEMFD, 0);
	if (guard < 0)
		return;
	if (!syscall(SYS_mlockall, MCL_FUTURE | MCL_ONFAULT)) { /* sanitizers do nothing in mlockall(3) */
		CU_ASSERT_FALSE(map_part(&a, a.at, a.len, LEN, UR_MAP_ANY, &m));
		CU_ASSERT_EQUAL(syscall(SYS_munlockall), 0);
	}
	CU_ASSERT_TRUE(map_part(&a, a.at, a.len, LEN, UR_MAP_ANY, &m));
	ur_map_drop(&m);
}

/* What is not all there, not the process that was meant, or too long. */
static void map_file__refuses(void)
{
	struct ur_bulk_seg piece = {.len = 1, .size = LEN};
	struct ur_owner o, other;
	struct answer a;
	struct ur_map m;

	begin(false);
	a = ask(MAKE, MEMFD, 0);
	other = o = owner_of(&a);
	piece.at = piece.start = a.at;
	if (guard < 0)
		return;
	CU_ASSERT_TRUE(ur_map_file(&o, &piece, LEN, UR_MAP_ANY, guard, &m));
	ur_map_drop(&m);
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LEN - 1, UR_MAP_ANY, guard, &m));
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LEN, 0, guard, &m));
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LEN, UR_MAP_ANY, -1, &m));
	other.proof++;
	CU_ASSERT_FALSE(ur_map_file(&other, &piece, LEN, UR_MAP_ANY, guard, &m));
	other = o;
	other.pid = ask(FORK, MEMFD, 0).forked;
	CU_ASSERT_FALSE(ur_map_file(&other, &piece, LEN, UR_MAP_ANY, guard, &m));
	piece = (struct ur_bulk_seg){a.at + 1, LEN, 7, a.at, 2 * LEN};
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LEN, UR_MAP_ANY, guard, &m));
	piece = (struct ur_bulk_seg){a.at - 1, 2, 7, a.at - 1, LEN};
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LEN, UR_MAP_ANY, guard, &m));
	piece = (struct ur_bulk_seg){UINT64_MAX, 2, 7, 0, UINT64_MAX};
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LEN, UR_MAP_ANY, guard, &m));
}

/* Of a large file, the region and no more than its edges round it; and nothing for a piece that is not of the region. */
static void map_file__the_region(void)
{
	static const struct {
		uint64_t start, size;
		bool maps;
		uint64_t at_least, at_most;
	} regions[] = {
		{0, LARGE, true, LARGE, LARGE},
		{HUGE + 4096, 8192, true, 8192, 2 * HUGE},
		{HUGE, HUGE, true, HUGE, HUGE + HUGE},
		{HUGE + 5, UINT64_MAX, true, LARGE - HUGE - 5, LARGE},
		{HUGE, 0, false, 0, 0},
	};
	struct ur_bulk_seg piece;
	struct ur_owner o;
	struct ur_map m;
	struct answer a;

	begin(false);
	a = ask(MAKE, MEMFD_LARGE, 0);
	o = owner_of(&a);
	if (guard < 0)
		return;
	for (unsigned i = 0; i < ur_array_size(regions); i++) {
		const uint64_t start = a.at + regions[i].start;
		const bool did = map_part(&a, start, regions[i].size, LARGE, UR_MAP_ANY, &m);

		CU_ASSERT_EQUAL(did, regions[i].maps);
		if (!did)
			continue;
		CU_ASSERT_TRUE(m.there <= start && m.len >= regions[i].at_least && m.len <= regions[i].at_most);
		CU_ASSERT_EQUAL(m.here[start - m.there], (uint8_t)((start - a.at) * 7 + ((start - a.at) >> 9)));
		ur_map_drop(&m);
	}
	piece = (struct ur_bulk_seg){a.at, 4097, 7, a.at, 4096};
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LARGE, UR_MAP_ANY, guard, &m));
	piece = (struct ur_bulk_seg){a.at, 1, 7, a.at + 1, 4096};
	CU_ASSERT_FALSE(ur_map_file(&o, &piece, LARGE, UR_MAP_ANY, guard, &m));
}

/* The pages that a file lacks later are not made here, whether they are read or the memory is locked. What lacks some now is not mapped. */
static void map_file__fills_no_holes(void)
{
	static const enum kind some[] = {MEMFD, SHM_UNLINKED, HUGE_MEMFD};
	struct ur_map m;
	uint64_t had;

	for (unsigned i = 0; i < ur_array_size(some); i++) {
		struct answer a;

		begin(false);
		a = ask(MAKE, some[i], 0);
		if (a.at && map_part(&a, a.at, a.len, a.len, UR_MAP_ANY, &m)) {
			CU_ASSERT_TRUE(ur_touch_copy(copied, m.here, a.len));
			ask(PUNCH, MEMFD, 0);
			had = ask(BLOCKS, MEMFD, 0).blocks;
			CU_ASSERT_EQUAL(ur_touch_copy(copied, m.here, a.len), some[i] == HUGE_MEMFD); /* that has one page */
			syscall(SYS_mlock, m.here, a.len);
			CU_ASSERT_EQUAL(ask(BLOCKS, MEMFD, 0).blocks, had);
			CU_ASSERT_TRUE(ur_touch_copy(copied, m.here, FIRST));
			ur_map_drop(&m);
			CU_ASSERT_EQUAL(map_part(&a, a.at, a.len, a.len, UR_MAP_ANY, &m), some[i] == HUGE_MEMFD);
			ur_map_drop(&m);
			CU_ASSERT_TRUE(map_part(&a, a.at, FIRST, a.len, UR_MAP_ANY, &m)); /* the region has all of its pages */
			ur_map_drop(&m);
		}
		finish();
	}
}

void ur_suite_map_file(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("map_file", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, map_file__each_way);
	CU_ADD_TEST(s, map_file__refuses);
	CU_ADD_TEST(s, map_file__the_region);
	CU_ADD_TEST(s, map_file__fills_no_holes);
	CU_ADD_TEST(s, map_file__not_into_locked_memory);
}
