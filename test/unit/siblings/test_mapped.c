/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a child that its parent maps as well (siblings/mapped.h): each kind of it, in each way that there is; and all that may become
 * of it while it is copied from.
 */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/catch.h"
#include "host/clock.h"
#include "proc_harness.h"
#include "siblings/local.h"
#include "siblings/map_file.h"
#include "siblings/mapped.h"

void ur_suite_mapped(void);

#define LEN (1u << 20)
#define HUGE (2u << 20)
#define TRIES 200 /* until the thread has mapped something, each 10 ms after the one before */

/* --- the owner of the memory --- */

enum kind { MEMFD, MEMFD_SEALED, HUGE_MEMFD, CLOSED_MEMFD, SHM, SHM_UNLINKED, SEGMENT, ANONYMOUS, PRIVATE_FILE, ON_DISK, PRIVATE };

enum what { MAKE, TRUNCATE, END_REGION, REMAP, FORK };

struct request {
	enum what what;
	enum kind kind;
	uint32_t region;
	pid_t name;
};

struct answer {
	uint64_t at; /* 0: this kernel or machine has no such memory */
	uint32_t len;
	uint8_t slot;
	pid_t forked;
};

static int memory_fd = -1;

static void *map(int fd, int flags, size_t len)
{
	void *m = fd >= 0 && !ftruncate(fd, (off_t)len) ? mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0) : MAP_FAILED;

	memory_fd = fd;
	return m;
}

static void shm_path(char path[64], pid_t name)
{
	snprintf(path, 64, "/dev/shm/uroce-test-mapped-%d", (int)name);
}

static void *map_shm(pid_t name, bool unlinked)
{
	char path[64];
	void *m;
	int fd;

	shm_path(path, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	m = map(fd, MAP_SHARED, LEN);
	if (unlinked)
		unlink(path);
	else
		close(fd);
	return m;
}

static void *map_segment(void)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	void *m = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL); /* now, for when a test fails: those that have it keep it, and Linux lets others attach */
	return m;
}

static void *map_on_disk(void)
{
	char path[] = "/var/tmp/uroce-test-mapped-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	return map(fd, MAP_SHARED, LEN);
}

static void *make(enum kind kind, pid_t name)
{
	void *m;

	switch (kind) {
	case MEMFD: return map(memfd_create("test", MFD_CLOEXEC), MAP_SHARED, LEN);
	case MEMFD_SEALED:
		m = map(memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING), MAP_SHARED, LEN);
		fcntl(memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */ | F_SEAL_SEAL);
		return m;
	case HUGE_MEMFD: return map(memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB), MAP_SHARED, HUGE);
	case CLOSED_MEMFD:
		m = map(memfd_create("closed", MFD_CLOEXEC), MAP_SHARED, LEN);
		close(memory_fd);
		return m;
	case SHM: return map_shm(name, false);
	case SHM_UNLINKED: return map_shm(name, true);
	case SEGMENT: return map_segment();
	case ANONYMOUS: return mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	case PRIVATE_FILE: return map(memfd_create("private", MFD_CLOEXEC), MAP_PRIVATE, LEN);
	case ON_DISK: return map_on_disk();
	case PRIVATE: break;
	}
	return mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void fill(uint8_t *m, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		m[i] = (uint8_t)(i * 7 + (i >> 9) + seed);
}

/* It ends with its parent. */
static pid_t fork_one(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PROC_SECONDS);
	for (;;)
		pause();
}

static void serve(struct ur_local *l, const struct request *q, struct answer *a)
{
	static uint8_t *memory;
	void *m;

	switch (q->what) {
	case MAKE:
		m = make(q->kind, q->name);
		if (m == MAP_FAILED)
			return;
		memory = m;
		a->len = q->kind == HUGE_MEMFD ? HUGE : LEN;
		fill(memory, a->len, 0);
		break;
	case TRUNCATE: (void)!ftruncate(memory_fd, 0); return;
	case END_REGION: atomic_fetch_add(&ur_local_tokens(l)[ur_region_token_at(q->region)], 1); break;
	case REMAP:
		(void)!mmap(memory, LEN, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		fill(memory, LEN, 99);
		break;
	case FORK: a->forked = fork_one(); return;
	}
	a->at = (uintptr_t)memory;
}

static int child(int fd, uint64_t k)
{
	struct ur_registry *r;
	struct ur_local *l;
	struct request q;

	if (ur_registry_open(k, &r) || ur_registry_join(r) || ur_local_open(r, &l))
		return 1;
	ur_local_announce(l);
	while (recv(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		struct answer a = {.slot = ur_registry_slot(r)};

		serve(l, &q, &a);
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a))
			return 2;
	}
	return 3;
}

/* --- who copies --- */

static struct ur_registry *registry;
static struct ur_local *local;
static struct proc *owner;
static uint8_t *copied;

static void setup(void)
{
	local = NULL;
	registry = NULL;
	copied = malloc(HUGE);
}

static struct answer ask(enum what what, enum kind kind, uint32_t region)
{
	const struct request q = {.what = what, .kind = kind, .region = region, .name = getpid()};
	struct answer a = {0};

	proc_ask(owner, &q, sizeof(q), &a, sizeof(a));
	return a;
}

static void begin(bool maps)
{
	const uint64_t key = proc_random_key();
	struct ur_pkt *none[1];

	CU_ASSERT_TRUE_FATAL(ur_catch_start());
	ur_catch_admit();
	owner = proc_start(child, key);
	CU_ASSERT_EQUAL_FATAL(ur_registry_open(key, &registry), 0);
	ask(TRUNCATE, MEMFD, 0); /* it has joined */
	CU_ASSERT_EQUAL_FATAL(ur_registry_join(registry), 0);
	CU_ASSERT_EQUAL_FATAL(ur_local_open(registry, &local), 0);
	if (maps)
		ur_local_map(local);
	ur_queue_rx(ur_local_inbox(local), none, 0);
}

static void finish(void)
{
	char path[64];

	procs_end();
	if (local)
		ur_local_close(local);
	if (registry)
		ur_registry_close(registry);
	local = NULL;
	registry = NULL;
	shm_path(path, getpid());
	unlink(path);
}

static void teardown(void)
{
	finish();
	free(copied);
}

static struct ur_owner owner_of(const struct answer *a)
{
	const struct ur_sibling *s = ur_registry_sibling(registry, a->slot);

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return ur_owner_of(s);
}

/* In pieces that are not those of the other side. */
static enum ur_fetched_by fetch(const struct answer *a, uint32_t region)
{
	const struct ur_piece to[] = {{copied, 5}, {copied + 5, a->len - 105}, {copied + a->len - 100, 100}};
	const struct ur_bulk_seg from[] = {{a->at, a->len / 2, region}, {a->at + a->len / 2, a->len - a->len / 2, region}};

	memset(copied, 0, a->len);
	return ur_local_fetch(local, a->slot, to, ur_array_size(to), from, ur_array_size(from));
}

static bool is_right(uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (copied[i] != (uint8_t)(i * 7 + (i >> 9) + seed))
			return false;
	return true;
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

/* How many mappings of the owner's file are there? Shared ones that are read only, beside the pages. */
static unsigned mappings(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, " r--s ") && strstr(line, name);
	fclose(f);
	return n;
}

/* --- kinds of memory and ways to map them --- */

static const struct {
	enum kind kind;
	unsigned ways; /* that work, besides that of the superuser */
	bool link;     /* and that one */
} kinds[] = {
	{MEMFD, UR_MAP_BY_FD, true},
	{MEMFD_SEALED, UR_MAP_BY_FD, true},
	{HUGE_MEMFD, UR_MAP_BY_FD, true},
	{CLOSED_MEMFD, 0, true},
	{SHM, UR_MAP_BY_PATH, true},
	{SHM_UNLINKED, UR_MAP_BY_FD, true},
	{SEGMENT, UR_MAP_BY_SEGMENT, true},
	{ANONYMOUS, 0, true},
	{PRIVATE_FILE, 0, false},
	{ON_DISK, 0, false},
	{PRIVATE, 0, false},
};

static bool is_in_memory(void)
{
	struct stat a, b;

	return stat("/var/tmp", &a) || stat("/dev/shm", &b) || a.st_dev == b.st_dev;
}

/* Each way alone maps what it can, and nothing else; what is mapped is the memory, and is gone when it is dropped. */
static void map_file__each_way(void)
{
	for (unsigned i = 0; i < ur_array_size(kinds); i++) {
		struct ur_owner o;
		struct answer a;

		begin(false);
		a = ask(MAKE, kinds[i].kind, 0);
		o = owner_of(&a);
		for (unsigned way = UR_MAP_BY_LINK; a.at && way < UR_MAP_ANY; way <<= 1) {
			const bool works = way == UR_MAP_BY_LINK ? kinds[i].link && !geteuid() : (kinds[i].ways & way) != 0;
			struct ur_map m = {0};
			const bool did = ur_map_file(&o, a.at + 1, a.len - 1, UR_MAPPED_BYTES, way, &m);

			if (kinds[i].kind == ON_DISK && is_in_memory())
				continue;
			CU_ASSERT_EQUAL(did, works);
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
	struct ur_owner o;
	struct ur_map m;
	struct answer a;

	begin(false);
	a = ask(MAKE, MEMFD, 0);
	o = owner_of(&a);
	if (!syscall(SYS_mlockall, MCL_FUTURE | MCL_ONFAULT)) { /* sanitizers do nothing in mlockall(3) */
		CU_ASSERT_FALSE(ur_map_file(&o, a.at, a.len, LEN, UR_MAP_ANY, &m));
		CU_ASSERT_EQUAL(syscall(SYS_munlockall), 0);
	}
	CU_ASSERT_TRUE(ur_map_file(&o, a.at, a.len, LEN, UR_MAP_ANY, &m));
	ur_map_drop(&m);
}

/* What is not all there, not the process that was meant, or too long. */
static void map_file__refuses(void)
{
	struct ur_owner o, other;
	struct ur_map m;
	struct answer a;

	begin(false);
	a = ask(MAKE, MEMFD, 0);
	o = owner_of(&a);
	CU_ASSERT_TRUE(ur_map_file(&o, a.at, 1, LEN, UR_MAP_ANY, &m));
	ur_map_drop(&m);
	CU_ASSERT_FALSE(ur_map_file(&o, a.at, 1, LEN - 1, UR_MAP_ANY, &m));
	CU_ASSERT_FALSE(ur_map_file(&o, a.at + 1, LEN, LEN, UR_MAP_ANY, &m));
	CU_ASSERT_FALSE(ur_map_file(&o, a.at - 1, 2, LEN, UR_MAP_ANY, &m));
	CU_ASSERT_FALSE(ur_map_file(&o, UINT64_MAX, 2, LEN, UR_MAP_ANY, &m));
	CU_ASSERT_FALSE(ur_map_file(&o, a.at, 1, LEN, 0, &m));
	other = o;
	other.proof++;
	CU_ASSERT_FALSE(ur_map_file(&other, a.at, 1, LEN, UR_MAP_ANY, &m));
	other = o;
	other.pid = ask(FORK, MEMFD, 0).forked;
	CU_ASSERT_FALSE(ur_map_file(&other, a.at, 1, LEN, UR_MAP_ANY, &m));
}

/* --- copies --- */

static void copy__without_the_kernel(void)
{
	static const enum kind some[] = {MEMFD, SHM, SHM_UNLINKED, SEGMENT, MEMFD_SEALED, HUGE_MEMFD};

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
	from = (struct ur_bulk_seg){a.at, a.len, 7};
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

void ur_suite_mapped(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("mapped", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, map_file__each_way);
	CU_ADD_TEST(s, map_file__refuses);
	CU_ADD_TEST(s, map_file__not_into_locked_memory);
	CU_ADD_TEST(s, copy__without_the_kernel);
	CU_ADD_TEST(s, copy__by_the_kernel);
	CU_ADD_TEST(s, copy__from_a_truncated_file);
	CU_ADD_TEST(s, copy__from_a_region_that_ends);
	CU_ADD_TEST(s, copy__from_nothing_for_long);
	CU_ADD_TEST(s, copy__for_one_process_only);
	CU_ADD_TEST(s, copy__from_many_regions);
	CU_ADD_TEST(s, copy__and_fork);
}
