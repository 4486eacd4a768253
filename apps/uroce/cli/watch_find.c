/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each process keeps what it publishes (observe/status.h) open as memory with a certain name, which the kernel shows in /proc/PID/fd to
 * those who may look there. Another user's process can put anything in its place, to make root's command wait or read for ever: so it is
 * opened without side effects, and only a regular file of tmpfs is read, once.
 */
#include "apps/uroce/cli/watch_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/device/device.h"

#define LINK "/memfd:" UR_STATUS_FILE " (deleted)"
#define TRIES 4               /* copies of one descriptor, before it is given up */
#define CANDIDATES (UR_DEVICES * UR_STATUS_LANES) /* that one process may have, copies included */
#define PAUSE_NS 20000

/* --- one process --- */

static size_t read_text(const char *pid, const char *what, char *text, size_t room)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, room - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* proc_pid_stat(5): the name stands in parentheses, and may have some itself; state is the third field, starttime the 22nd. */
static bool read_stat(const char *pid, struct ur_watch_process *p)
{
	unsigned long long born;
	char text[1024], *from, *to, state;

	if (!read_text(pid, "stat", text, sizeof(text)))
		return false;
	from = strchr(text, '(');
	to = strrchr(text, ')');
	if (!from || !to || to < from ||
	    sscanf(to + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state, &born) != 2)
		return false;
	ur_status_text(p->program, sizeof(p->program), from + 1, (size_t)(to - from - 1));
	p->stopped = state == 'T' || state == 't';
	p->born = born;
	return true;
}

/* The number by which the process knows itself: the last one of the line NSpid (proc_pid_status(5)). */
static int own_number(const char *pid)
{
	char text[4096], *line, *end, *last;

	read_text(pid, "status", text, sizeof(text));
	line = strstr(text, "\nNSpid:");
	if (!line)
		return atoi(pid);
	line += strlen("\nNSpid:");
	end = line + strcspn(line, "\n");
	for (last = end; last > line && isdigit((unsigned char)last[-1]); last--)
		continue;
	return atoi(last);
}

/* A descriptor to read from, of a plain file in memory; -1 for anything else. */
static int open_memory(const char *path, size_t *bytes)
{
	int fd = open(path, O_PATH | O_CLOEXEC), readable = -1;
	char again[64];
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	if (fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		readable = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(fd);
	*bytes = readable >= 0 ? (size_t)st.st_size : 0;
	return readable;
}

static bool read_changes(int fd, uint32_t *changes)
{
	bool ok = pread(fd, changes, sizeof(*changes), offsetof(struct ur_status, changes)) == sizeof(*changes);

	atomic_thread_fence(memory_order_acquire);
	return ok;
}

static enum ur_status_verdict read_status(int fd, size_t bytes, int number, struct ur_status *copy, struct ur_status_view *v)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	enum ur_status_verdict verdict = UR_STATUS_BUSY;
	size_t n = bytes < sizeof(*copy) ? bytes : sizeof(*copy);
	uint32_t before, after;

	for (unsigned i = 0; i < TRIES && verdict == UR_STATUS_BUSY; i++) {
		if (i)
			nanosleep(&pause, NULL);
		if (!read_changes(fd, &before) || pread(fd, copy, n, 0) != (ssize_t)n)
			return UR_STATUS_BAD;
		atomic_thread_fence(memory_order_acquire);
		if (!read_changes(fd, &after))
			return UR_STATUS_BAD;
		verdict = ur_status_check(copy, bytes, before, after, number, v);
	}
	return verdict;
}

/* True when something was there; `unreadable` says whether it could be understood. */
static bool try_descriptor(const char *path, int number, struct ur_status *copy, struct ur_watch_process *p)
{
	enum ur_status_verdict verdict = UR_STATUS_BAD;
	size_t bytes;
	int fd = open_memory(path, &bytes);

	if (fd < 0)
		return false;
	verdict = read_status(fd, bytes, number, copy, &p->status);
	close(fd);
	p->unreadable = verdict == UR_STATUS_OTHER;
	if (p->unreadable)
		p->status.interface[0] = 0;
	return verdict == UR_STATUS_GOOD || verdict == UR_STATUS_OTHER;
}

static bool is_ours(int dir, const char *name)
{
	char link[sizeof(LINK) + 1];
	ssize_t n = readlinkat(dir, name, link, sizeof(link));

	return n == (ssize_t)strlen(LINK) && memcmp(link, LINK, (size_t)n) == 0;
}

/* What the kernel knows of it. */
static bool describe(const char *pid, struct ur_watch_process *p)
{
	char path[64];
	struct stat st;

	if (!read_stat(pid, p))
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	p->pid = atoi(pid);
	p->uid = stat(path, &st) == 0 ? st.st_uid : 0;
	return true;
}

/* What one sample needs in addition to its result. */
struct looking {
	struct ur_status copy;
	struct ur_watch_process process;
};

static bool append_process(struct ur_watch_sample **sample, const struct ur_watch_process *p)
{
	size_t qps = p->unreadable ? 0 : p->status.count, head = offsetof(struct ur_watch_process, status.qp);
	unsigned n = (*sample)->count;
	struct ur_watch_sample *more = realloc(*sample, sizeof(**sample) + (n + 1) * sizeof((*sample)->process[0]));

	if (!more)
		return false;
	*sample = more;
	more->process[n] = malloc(head + qps * sizeof(p->status.qp[0])); /* room for the QPs that there are, and no more */
	if (!more->process[n])
		return false;
	memcpy(more->process[n], p, head + qps * sizeof(p->status.qp[0]));
	more->count = n + 1;
	return true;
}

/* The same device of the same process; NULL: there is none yet. */
static struct ur_watch_process **find_device(struct ur_watch_sample *sample, const struct ur_watch_process *p)
{
	for (unsigned i = sample->count; i-- > 0 && sample->process[i]->pid == p->pid;)
		if (!ur_watch_process_compare(&sample->process[i], &p))
			return &sample->process[i];
	return NULL;
}

/* Another lane of a device; a descriptor may have been duplicated, and what it stands for is taken once. False when memory is short. */
static bool add_lane(struct ur_watch_process **device, const struct ur_watch_process *p)
{
	struct ur_watch_process *more = *device;
	size_t room;

	if (p->unreadable || more->unreadable || more->status.lanes & p->status.lanes)
		return true;
	room = (size_t)(more->status.count + p->status.count) * sizeof(p->status.qp[0]);
	more = realloc(more, offsetof(struct ur_watch_process, status.qp) + room);
	if (!more)
		return false;
	*device = more;
	ur_status_add_lane(&more->status, &p->status);
	return true;
}

/* Reads what lies behind the descriptors of one process. False when memory is short. */
static bool look_into(const char *pid, struct looking *l, struct ur_watch_sample **sample)
{
	struct ur_watch_process *p = &l->process, **device;
	unsigned tried = 0;
	char path[320];
	struct dirent *e;
	bool room = true;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	d = opendir(path);
	while (d && room && tried < CANDIDATES && (e = readdir(d))) {
		if (!is_ours(dirfd(d), e->d_name))
			continue;
		if (!tried++ && !describe(pid, p))
			break;
		snprintf(path, sizeof(path), "/proc/%.20s/fd/%s", pid, e->d_name);
		if (!try_descriptor(path, own_number(pid), &l->copy, p))
			continue;
		device = find_device(*sample, p);
		room = device ? add_lane(device, p) : append_process(sample, p);
	}
	if (d)
		closedir(d);
	return room;
}

/* --- all --- */

static bool look_at_all(DIR *proc, struct looking *l, struct ur_watch_sample **sample)
{
	struct dirent *e;

	while ((e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) && !look_into(e->d_name, l, sample))
			return false;
	return true;
}

struct ur_watch_sample *ur_watch_find(void)
{
	struct ur_watch_sample *sample = calloc(1, sizeof(*sample));
	struct looking *l = calloc(1, sizeof(*l));
	DIR *proc = opendir("/proc");
	bool ok = sample && l && proc && look_at_all(proc, l, &sample);
	int err = errno;

	if (proc)
		closedir(proc);
	free(l);
	if (!ok) {
		ur_watch_free(sample);
		errno = err;
		return NULL;
	}
	qsort(sample->process, sample->count, sizeof(sample->process[0]), ur_watch_process_compare);
	sample->at = ur_clock_now();
	return sample;
}

void ur_watch_free(struct ur_watch_sample *sample)
{
	for (unsigned i = 0; sample && i < sample->count; i++)
		free(sample->process[i]);
	free(sample);
}
