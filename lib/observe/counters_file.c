/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the counters. What a signal handler calls is async-signal-safe all through, so neither stdio nor locks. */
#include "observe/counters_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/output.h"
#include "config/config.h"
#include "host/thread.h"

#define NAME_WIDTH 32
#define LINE_MAX_LEN 128
#define DIGITS 20 /* of the largest uint64_t */
#define PATIENCE_MS 1000
#define RENEW_MS 250
#define RENEW_STACK 65536

enum { NOT_WRITTEN, AT_IT, WRITTEN }; /* states of a file; a renewed one is not written yet */

/* What the signal handler, and the thread that renews the file, need: that of each device. */
struct counters_file {
	char path[UR_CONFIG_STR];
	char title[LINE_MAX_LEN];
	const struct ur_counters *counters[UR_COUNTERS_SOURCES]; /* it has their sums */
	atomic_uint sources;
	atomic_int pid; /* whose counters they are */
	atomic_int state;
	atomic_bool last;                        /* the thread should write no more */
	char text[2][UR_C_COUNT * LINE_MAX_LEN]; /* what it wrote last, and what it writes now */
};

static struct counters_file files[UR_COUNTERS_FILES];

static size_t put_line(char line[LINE_MAX_LEN], const char *name, uint64_t value)
{
	size_t len = strnlen(name, LINE_MAX_LEN - DIGITS - 2);
	char digits[DIGITS];
	unsigned n = 0;

	memcpy(line, name, len);
	do
		line[len++] = ' ';
	while (len <= NAME_WIDTH);
	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		line[len++] = digits[--n];
	line[len++] = '\n';
	return len;
}

int ur_counters_write(const char *path, const char *title, const struct ur_counters *c)
{
	bool to_stderr = !strcmp(path, "-");
	int fd = to_stderr ? STDERR_FILENO : ur_output_open(path, 0);
	int err = fd < 0 ? errno : 0;
	char line[LINE_MAX_LEN];

	if (to_stderr && title && ur_output_write(fd, title, strlen(title)) < strlen(title))
		err = errno;
	for (unsigned i = 0; i < UR_C_COUNT && !err; i++) {
		size_t len = c->v[i] ? put_line(line, ur_counter_name((enum ur_counter)i), c->v[i]) : 0;

		if (ur_output_write(fd, line, len) < len)
			err = errno;
	}
	if (!to_stderr && fd >= 0 && close(fd) && !err)
		err = errno;
	return err;
}

static void add_up(const struct counters_file *f, struct ur_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned k = 0; k < atomic_load_explicit(&f->sources, memory_order_acquire); k++)
		ur_counters_add_to(sum, f->counters[k]);
}

static bool claim(struct counters_file *f)
{
	int expected = NOT_WRITTEN;

	return atomic_compare_exchange_strong(&f->state, &expected, AT_IT);
}

/* timeout(1) sends a signal twice, and the second one may find another thread: it must not end the process while the first one writes. */
static void write_once(struct counters_file *f)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct ur_counters sum;

	for (unsigned i = 0; i < PATIENCE_MS && atomic_load(&f->state) != WRITTEN; i++) {
		if (claim(f)) {
			add_up(f, &sum);
			ur_counters_write(f->path, f->title[0] ? f->title : NULL, &sum);
			atomic_store(&f->state, WRITTEN);
			return;
		}
		nanosleep(&ms, NULL);
	}
}

/* The signal raised here ends the process when the handler returns. */
static void write_and_end(int sig)
{
	const struct sigaction end = {.sa_handler = SIG_DFL};

	for (unsigned i = 0; i < UR_COUNTERS_FILES; i++)
		if (atomic_load(&files[i].pid) == getpid())
			write_once(&files[i]);
	sigaction(sig, &end, NULL);
	raise(sig);
}

bool ur_counters_handles(const struct sigaction *sa)
{
	return !(sa->sa_flags & SA_SIGINFO) && sa->sa_handler == write_and_end;
}

static void handle_signals(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
	struct sigaction ours = {.sa_handler = write_and_end, .sa_flags = SA_RESTART}, old;

	sigemptyset(&ours.sa_mask);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&ours.sa_mask, signals[i]);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &ours, NULL);
}

void ur_counters_on_signal(unsigned device, const char *path, const char *title, const struct ur_counters *c)
{
	struct counters_file *f = &files[device];

	snprintf(f->path, sizeof(f->path), "%s", path);
	snprintf(f->title, sizeof(f->title), "%s", title ? title : "");
	f->counters[0] = c;
	atomic_store(&f->sources, 1);
	atomic_store(&f->state, NOT_WRITTEN);
	atomic_store(&f->pid, getpid());
	handle_signals();
}

void ur_counters_add(unsigned device, const struct ur_counters *c)
{
	struct counters_file *f = &files[device];
	const unsigned n = atomic_load(&f->sources);

	if (n == UR_COUNTERS_SOURCES)
		return;
	f->counters[n] = c;
	atomic_store_explicit(&f->sources, n + 1, memory_order_release);
}

/* --- for who is killed: a file that is renewed while the process runs --- */

static size_t put_all(char *text, const struct ur_counters *c)
{
	size_t len = 0;

	for (unsigned i = 0; i < UR_C_COUNT; i++)
		if (c->v[i])
			len += put_line(text + len, ur_counter_name((enum ur_counter)i), c->v[i]);
	return len;
}

/* Opened each time: who closes all files that it does not know would give the number of one of ours to another. */
static bool replace_contents(const char *path, const char *text, size_t len)
{
	int fd = ur_output_open(path, UR_OUTPUT_KEEP);
	struct stat st;
	bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	if (regular && pwrite(fd, text, len, 0) == (ssize_t)len && st.st_size > (off_t)len)
		(void)!ftruncate(fd, (off_t)len);
	if (fd >= 0)
		close(fd);
	return regular;
}

/* Only what has changed is written, in one call, so that a reader or the end finds a whole file. */
static void *renew(void *arg)
{
	const struct timespec pause = {.tv_nsec = RENEW_MS * 1000000};
	struct counters_file *f = arg;
	size_t len, before = SIZE_MAX; /* what lies there may be of an earlier program */
	struct ur_counters sum;
	bool goes_on = true;

	for (unsigned turn = 0; goes_on; turn ^= 1) {
		nanosleep(&pause, NULL);
		add_up(f, &sum);
		len = put_all(f->text[turn], &sum);
		if (len == before && memcmp(f->text[0], f->text[1], len) == 0)
			continue;
		before = len;
		if (!claim(f))
			return NULL; /* a signal ends the process */
		goes_on = !atomic_load(&f->last) && replace_contents(f->path, f->text[turn], len);
		atomic_store(&f->state, NOT_WRITTEN);
	}
	return NULL;
}

int ur_counters_renew(unsigned device)
{
	struct counters_file *f = &files[device];
	pthread_t thread;
	int err;

	atomic_store(&f->last, false);
	if (strcmp(f->path, "-") == 0)
		return 0;
	err = ur_thread_start(&thread, "uroce-counters", RENEW_STACK, renew, f);
	return err ? err : pthread_detach(thread);
}

void ur_counters_renew_end(unsigned device)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct counters_file *f = &files[device];

	atomic_store(&f->last, true);
	for (unsigned i = 0; i < PATIENCE_MS && atomic_load(&f->state) == AT_IT; i++)
		nanosleep(&ms, NULL);
}
