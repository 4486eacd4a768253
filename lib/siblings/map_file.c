/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/map_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED /* Linux 5.12 */
#define RESOLVE_CACHED 0x20
#endif

#define PATH 512        /* longer ones are not looked for */
#define LINES (1 << 17) /* of /proc/PID/maps: more than the kernel has by default */
#define FDS 4096        /* of a process that are looked at */
#define SEGMENT "/SYSV"

/* Adjacent mappings of one file, as proc_pid_maps(5) shows them. */
struct run {
	uint64_t start, end;
	uint64_t off;       /* in the file */
	uint64_t first_end; /* of the first of them */
	dev_t dev;
	ino_t ino;
	bool shared;
	char path[PATH]; /* empty when it has none, or too long a one */
};

/* --- what is mapped there --- */

static bool parse_line(const char *line, struct run *r)
{
	unsigned long long start, end, off, ino;
	unsigned major, minor;
	int n = 0;
	size_t len;
	char how[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, how, &off, &major, &minor, &ino, &n) < 7 || !n || start >= end)
		return false;
	*r = (struct run){.start = start,
			  .end = end,
			  .off = off,
			  .first_end = end,
			  .dev = makedev(major, minor),
			  .ino = ino,
			  .shared = how[3] == 's'};
	len = strcspn(line + n, "\n");
	if (len < PATH)
		memcpy(r->path, line + n, len);
	return true;
}

/* The program, or madvise(2), may have divided what was mapped at once. */
static bool continues(const struct run *r, const struct run *next)
{
	return next->start == r->end && next->shared == r->shared && next->dev == r->dev && next->ino == r->ino &&
	       next->off == r->off + (r->end - r->start);
}

struct search {
	uint64_t at, len;
	bool found;
	struct run run;
};

static void look_at(struct search *s, const struct run *r)
{
	if (!r->shared || s->at < r->start || s->at >= r->end || s->len > r->end - s->at)
		return;
	s->run = *r;
	s->found = true;
}

static void read_maps(FILE *f, struct search *s)
{
	struct run r = {0}, next;
	char *line = NULL;
	size_t room = 0;

	for (unsigned i = 0; i < LINES && getline(&line, &room, f) > 0 && parse_line(line, &next); i++) {
		if (continues(&r, &next)) {
			r.end = next.end;
			continue;
		}
		look_at(s, &r);
		r = next;
	}
	look_at(s, &r);
	free(line);
}

/* Whose memory the file shows is decided when it is opened; if the process is there afterwards, it was then. `o`: NULL for this one. */
static bool find_run(pid_t pid, const struct ur_owner *o, struct search *s)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!o || ur_owner_is_there(o))
		read_maps(f, s);
	fclose(f);
	return s->found;
}

/* --- opening and mapping it --- */

/* `fd` opens nothing (O_PATH); if it is the file that is meant, and in memory, it is opened to be read. Takes `fd`. */
static int open_if(int fd, const struct run *r)
{
	struct statfs fs;
	struct stat st;
	char path[64];
	int readable = -1;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_dev == r->dev && st.st_ino == r->ino && !fstatfs(fd, &fs) &&
	    (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		readable = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	close(fd);
	return readable;
}

static bool keep(struct ur_map *out, void *here, uint64_t there, uint64_t len, bool segment)
{
	*out = (struct ur_map){.here = here, .there = there, .len = len, .segment = segment};
	madvise(here, len, MADV_DONTDUMP);
	if (!madvise(here, len, MADV_DONTFORK))
		return true;
	ur_map_drop(out);
	return false;
}

/*
 * From the beginning of the run on, so that huge pages stay such: nothing is reserved for it, and what is not touched costs nothing. Takes
 * `fd`.
 */
static bool map_fd(int fd, const struct run *r, struct ur_map *out)
{
	void *here;

	if (fd < 0)
		return false;
	here = mmap(NULL, r->end - r->start, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, (off_t)r->off);
	close(fd);
	return here != MAP_FAILED && keep(out, here, r->start, r->end - r->start, false);
}

/* --- the ways --- */

static bool by_link(pid_t pid, const struct run *r, struct ur_map *out)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)r->start,
		 (unsigned long long)r->first_end);
	return map_fd(open_if(open(path, O_PATH | O_CLOEXEC), r), r, out);
}

/* Names are compared first: nothing else of the process is opened, not even in this way. */
static bool by_fd(pid_t pid, const struct run *r, struct ur_map *out)
{
	char path[64], name[PATH];
	struct dirent *d;
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	for (unsigned i = 0; dir && i < FDS && fd < 0 && (d = readdir(dir)); i++) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, name, sizeof(name));

		if (n > 0 && (size_t)n == strlen(r->path) && !memcmp(name, r->path, (size_t)n))
			fd = open_if(openat(dirfd(dir), d->d_name, O_PATH | O_CLOEXEC), r);
	}
	if (dir)
		closedir(dir);
	return map_fd(fd, r, out);
}

/* A name may lead anywhere, also to a server that does not answer: nothing is looked up that the kernel does not know already. */
static bool by_path(pid_t pid, const struct run *r, struct ur_map *out)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS};

	(void)pid;
	return map_fd(open_if((int)syscall(SYS_openat2, AT_FDCWD, r->path, &how, sizeof(how)), r), r, out);
}

/* The ID of a segment is its file's number, and means the same only to those that share an IPC namespace. */
static bool share_ipc(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/ipc", (int)pid);
	return !stat("/proc/self/ns/ipc", &ours) && !stat(path, &theirs) && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static bool by_segment(pid_t pid, const struct run *r, struct ur_map *out)
{
	const uint64_t len = r->end - r->start;
	struct search here = {.len = len};
	void *at;

	if (strncmp(r->path, SEGMENT, strlen(SEGMENT)) || (ino_t)(int)r->ino != r->ino || r->off || !share_ipc(pid))
		return false;
	at = shmat((int)r->ino, NULL, SHM_RDONLY);
	if (at == (void *)-1)
		return false;
	here.at = (uintptr_t)at;
	if (find_run(getpid(), NULL, &here) && here.run.dev == r->dev && here.run.ino == r->ino && here.run.start == here.at &&
	    !here.run.off)
		return keep(out, at, r->start, len, true);
	shmdt(at);
	return false;
}

static const struct {
	enum ur_map_way way;
	bool (*map)(pid_t pid, const struct run *r, struct ur_map *out);
} ways_of[] = {
	{UR_MAP_BY_LINK, by_link},
	{UR_MAP_BY_FD, by_fd},
	{UR_MAP_BY_PATH, by_path},
	{UR_MAP_BY_SEGMENT, by_segment},
};

/* Where the program's own address space is limited, nothing of it is taken. */
static bool space_is_limited(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_AS, &r) || r.rlim_cur != RLIM_INFINITY;
}

/* mlockall(2) with MCL_FUTURE: to map a file would load all of it, and fill its holes. MADV_DONTNEED refuses what is locked. */
static bool memory_is_locked(void)
{
	const size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool locked;

	if (page == MAP_FAILED)
		return true;
	locked = madvise(page, len, MADV_DONTNEED) != 0;
	munmap(page, len);
	return locked;
}

bool ur_map_file(const struct ur_owner *o, uint64_t at, uint64_t len, uint64_t most, unsigned ways, struct ur_map *out)
{
	struct search s = {.at = at, .len = len};
	bool done = false;

	if (space_is_limited() || memory_is_locked() || !find_run(o->pid, o, &s) || s.run.end - s.run.start > most)
		return false;
	for (unsigned i = 0; i < ur_array_size(ways_of) && !done; i++)
		done = ways_of[i].way & ways && ways_of[i].map(o->pid, &s.run, out);
	return done;
}

void ur_map_drop(struct ur_map *m)
{
	if (m->segment)
		shmdt(m->here);
	else if (m->here)
		munmap((void *)(uintptr_t)m->here, m->len);
	*m = (struct ur_map){0};
}
