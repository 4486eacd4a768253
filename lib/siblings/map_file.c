/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/map_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED /* Linux 5.12 */
#define RESOLVE_CACHED 0x20
#endif
#ifndef UFFD_USER_MODE_ONLY /* Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif

#define PATH 512          /* longer ones are not looked for */
#define LINES (1 << 17)   /* of /proc/PID/maps: more than the kernel has by default */
#define FDS 4096          /* of a process that are looked at */
#define HUGE (2ull << 20) /* a page of the kernel's page tables that is larger than the others, mostly */

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

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, how, &off, &major, &minor, &ino, &n) < 7 || !n || start >= end ||
	    off > INT64_MAX || end - start > INT64_MAX - off)
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

static void match_run(struct search *s, const struct run *r)
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
		match_run(s, &r);
		r = next;
	}
	match_run(s, &r);
	free(line);
}

/* Whose memory the file shows is decided when it is opened; if the process is there afterwards, it was then. */
static bool find_run(const struct ur_owner *o, struct search *s)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)o->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (ur_owner_is_there(o))
		read_maps(f, s);
	fclose(f);
	return s->found;
}

/* --- opening and mapping it --- */

/* What is to be mapped, and from where. */
struct job {
	pid_t pid;
	const struct ur_bulk_seg *piece;
	uint64_t most;
	int guard;
	struct run run;
};

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

/* A part of a file. */
struct part {
	uint64_t off, len;
};

/*
 * The region as far as it lies in the run, from and to boundaries of huge pages where the run goes so far: so they stay such. Nothing of
 * the run is left where the piece is not of the region.
 */
static struct part part_of(const struct job *j, uint64_t grain)
{
	const struct ur_bulk_seg *g = j->piece;
	const struct run *r = &j->run;
	const uint64_t start = g->start > r->start ? g->start : r->start, left = r->end - r->start, end = r->off + left;
	const uint64_t behind = g->size < UINT64_MAX - g->start && g->start + g->size < r->end ? g->start + g->size : r->end;
	struct part p;

	if (g->at < g->start || g->at - g->start > g->size || g->len > g->size - (g->at - g->start))
		return (struct part){0};
	p.off = r->off + (start - r->start);
	p.off -= p.off % grain;
	if (p.off < r->off)
		p.off = r->off;
	p.len = r->off + (behind - r->start) + grain - 1;
	p.len -= p.len % grain;
	p.len = (p.len < end ? p.len : end) - p.off;
	return p;
}

/*
 * Does the region lack pages now? To read one is a fault here, which a thread that blocks SIGBUS does not survive; so memory that is used
 * as it is meant to be has none. The kernel looks for holes in tmpfs only: of the larger pages, the file has to have all.
 */
static bool has_holes(int fd, const struct statfs *fs, const struct job *j)
{
	const struct part p = part_of(j, 1);
	struct stat st;

	if (fs->f_type == HUGETLBFS_MAGIC)
		return fstat(fd, &st) || st.st_blocks < st.st_size / 512;
	return lseek(fd, (off_t)p.off, SEEK_HOLE) < (off_t)(p.off + p.len);
}

/* No page that the file does not have comes to be by reading it here, nor by locking it: userfaultfd(2) makes an error of that. */
static bool guard(int fd, void *here, uint64_t len)
{
	struct uffdio_register r = {.range = {(uintptr_t)here, len}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	return !ioctl(fd, UFFDIO_REGISTER, &r) && !mprotect(here, len, PROT_READ);
}

static bool fill_map(struct ur_map *out, void *here, uint64_t there, uint64_t len)
{
	*out = (struct ur_map){.here = here, .there = there, .len = len};
	madvise(here, len, MADV_DONTDUMP);
	if (!madvise(here, len, MADV_DONTFORK))
		return true;
	ur_map_drop(out);
	return false;
}

/*
 * Nothing is reserved for it, and what is not touched costs nothing. It can be read only once it is guarded. Private, because the kernel
 * guards only what may be written to, and the file is open to be read: as nobody writes there, what is read is the file. Takes `fd`.
 */
static bool map_fd(int fd, const struct job *j, struct ur_map *out)
{
	struct part p = {0};
	void *here = MAP_FAILED;
	struct statfs fs;

	if (fd < 0)
		return false;
	if (!fstatfs(fd, &fs) && !has_holes(fd, &fs, j))
		p = part_of(j, (uint64_t)fs.f_bsize > HUGE ? (uint64_t)fs.f_bsize : HUGE);
	if (p.len && p.len <= j->most)
		here = mmap(NULL, p.len, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, fd, (off_t)p.off);
	close(fd);
	if (here == MAP_FAILED)
		return false;
	if (guard(j->guard, here, p.len))
		return fill_map(out, here, j->run.start + (p.off - j->run.off), p.len);
	munmap(here, p.len);
	return false;
}

/* --- the ways --- */

static bool by_link(const struct job *j, struct ur_map *out)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)j->pid, (unsigned long long)j->run.start,
		 (unsigned long long)j->run.first_end);
	return map_fd(open_if(open(path, O_PATH | O_CLOEXEC), &j->run), j, out);
}

/* Names are compared first: nothing else of the process is opened, not even in this way. */
static bool by_fd(const struct job *j, struct ur_map *out)
{
	char path[64], name[PATH];
	struct dirent *d;
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)j->pid);
	dir = opendir(path);
	for (unsigned i = 0; dir && i < FDS && fd < 0 && (d = readdir(dir)); i++) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, name, sizeof(name));

		if (n > 0 && (size_t)n == strlen(j->run.path) && !memcmp(name, j->run.path, (size_t)n))
			fd = open_if(openat(dirfd(dir), d->d_name, O_PATH | O_CLOEXEC), &j->run);
	}
	if (dir)
		closedir(dir);
	return map_fd(fd, j, out);
}

/* A name may lead anywhere, also to a server that does not answer: nothing is looked up that the kernel does not know already. */
static bool by_path(const struct job *j, struct ur_map *out)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS};

	return map_fd(open_if((int)syscall(SYS_openat2, AT_FDCWD, j->run.path, &how, sizeof(how)), &j->run), j, out);
}

static const struct {
	enum ur_map_way way;
	bool (*map)(const struct job *j, struct ur_map *out);
} ways_of[] = {
	{UR_MAP_BY_LINK, by_link},
	{UR_MAP_BY_FD, by_fd},
	{UR_MAP_BY_PATH, by_path},
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

int ur_map_guard(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MISSING_HUGETLBFS};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		return -1;
	if (!ioctl(fd, UFFDIO_API, &api))
		return fd;
	close(fd);
	return -1;
}

bool ur_map_file(const struct ur_owner *o, const struct ur_bulk_seg *piece, uint64_t most, unsigned ways, int guard, struct ur_map *out)
{
	struct search s = {.at = piece->at, .len = piece->len};
	struct job j = {.pid = o->pid, .piece = piece, .most = most, .guard = guard};
	bool done = false;

	if (space_is_limited() || memory_is_locked() || !find_run(o, &s))
		return false;
	j.run = s.run;
	for (unsigned i = 0; i < ur_array_size(ways_of) && !done; i++)
		done = ways_of[i].way & ways && ways_of[i].map(&j, out);
	return done;
}

void ur_map_drop(struct ur_map *m)
{
	if (m->here)
		munmap((void *)(uintptr_t)m->here, m->len);
	*m = (struct ur_map){0};
}
