/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a child, of each kind, that its parent may map as well (siblings/map_file.h, siblings/mapped.h), and what becomes of it. */
#ifndef UR_MAPPED_HARNESS_H
#define UR_MAPPED_HARNESS_H

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/catch.h"
#include "proc_harness.h"
#include "siblings/local.h"
#include "siblings/map_file.h"

#define LEN (1u << 20)
#define HUGE (2u << 20)
#define LARGE (4 * HUGE)
#define FIRST 4096u /* bytes of a file that stay when holes are punched */

/* --- the owner of the memory --- */

enum kind {
	MEMFD,
	MEMFD_LARGE,
	MEMFD_SEALED,
	HUGE_MEMFD,
	CLOSED_MEMFD,
	SHM,
	SHM_UNLINKED,
	SEGMENT,
	ANONYMOUS,
	PRIVATE_FILE,
	ON_DISK,
	PRIVATE
};

enum what { MAKE, TRUNCATE, PUNCH, BLOCKS, END_REGION, REMAP, FORK };

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
	uint64_t blocks; /* of the file: what it takes, in 512 bytes */
};

static int memory_fd = -1;

static inline void *map(int fd, int flags, size_t len)
{
	void *m = fd >= 0 && !ftruncate(fd, (off_t)len) ? mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0) : MAP_FAILED;

	memory_fd = fd;
	return m;
}

static inline void shm_path(char path[64], pid_t name)
{
	snprintf(path, 64, "/dev/shm/uroce-test-mapped-%d", (int)name);
}

static inline void *map_shm(pid_t name, bool unlinked)
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

static inline void *map_segment(void)
{
	int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);
	void *m = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL); /* now, for when a test fails: those that have it keep it, and Linux lets others attach */
	return m;
}

static inline void *map_on_disk(void)
{
	char path[] = "/var/tmp/uroce-test-mapped-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	return map(fd, MAP_SHARED, LEN);
}

static inline void *make(enum kind kind, pid_t name)
{
	void *m;

	switch (kind) {
	case MEMFD: return map(memfd_create("test", MFD_CLOEXEC), MAP_SHARED, LEN);
	case MEMFD_LARGE: return map(memfd_create("large", MFD_CLOEXEC), MAP_SHARED, LARGE);
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

static inline void fill(uint8_t *m, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		m[i] = (uint8_t)(i * 7 + (i >> 9) + seed);
}

/* It ends with its parent. */
static inline pid_t fork_one(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(PROC_SECONDS);
	for (;;)
		pause();
}

static inline void serve(struct ur_local *l, const struct request *q, struct answer *a)
{
	static uint8_t *memory;
	struct stat st;
	void *m;

	switch (q->what) {
	case MAKE:
		m = make(q->kind, q->name);
		if (m == MAP_FAILED)
			return;
		memory = m;
		a->len = q->kind == HUGE_MEMFD ? HUGE : q->kind == MEMFD_LARGE ? LARGE : LEN;
		fill(memory, a->len, 0);
		break;
	case TRUNCATE: (void)!ftruncate(memory_fd, 0); return;
	case PUNCH: (void)!fallocate(memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FIRST, LARGE); return;
	case BLOCKS: a->blocks = fstat(memory_fd, &st) ? 0 : (uint64_t)st.st_blocks; return;
	case END_REGION: atomic_fetch_add(&ur_local_tokens(l)[ur_region_token_at(q->region)], 1); break;
	case REMAP:
		(void)!mmap(memory, LEN, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		fill(memory, LEN, 99);
		break;
	case FORK: a->forked = fork_one(); return;
	}
	a->at = (uintptr_t)memory;
}

static inline int child(int fd, uint64_t k)
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
static int guard; /* -1: nothing is mapped here */

static inline void setup(void)
{
	local = NULL;
	registry = NULL;
	guard = ur_map_guard();
	copied = malloc(LARGE);
}

static inline struct answer ask(enum what what, enum kind kind, uint32_t region)
{
	const struct request q = {.what = what, .kind = kind, .region = region, .name = getpid()};
	struct answer a = {0};

	proc_ask(owner, &q, sizeof(q), &a, sizeof(a));
	return a;
}

static inline void begin(bool maps)
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

static inline void finish(void)
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

static inline void teardown(void)
{
	finish();
	free(copied);
	if (guard >= 0)
		close(guard);
}

static inline struct ur_owner owner_of(const struct answer *a)
{
	const struct ur_sibling *s = ur_registry_sibling(registry, a->slot);

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return ur_owner_of(s);
}

static inline bool is_right(uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (copied[i] != (uint8_t)(i * 7 + (i >> 9) + seed))
			return false;
	return true;
}

#endif
