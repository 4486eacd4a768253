/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce info --counters: the counters and what they count, with the values of the device's processes that offer them (UROCE_TELEMETRY=1).
 * They are asked on DPDK's telemetry socket: packets of JSON, of which one is a flat object with the names of base/counters.h.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/counters.h"
#include "cmd.h"
#include "engine/registry.h"
#include "info.h"

#define COMMAND "/uroce/counters"
#define ANSWER_MAX 65536
#define COLUMN 12

struct column {
	pid_t pid;
	bool has[UR_C_COUNT]; /* a process of another version may lack one */
	uint64_t value[UR_C_COUNT];
};

/* Where DPDK has its sockets: its rule, on which this process and the others agree when one user runs them. */
static const char *runtime_dir(void)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir)
		return dir;
	if (getuid() == 0)
		return "/var/run";
	dir = getenv("XDG_RUNTIME_DIR");
	return dir ? dir : "/tmp";
}

/* A socket to the process, which has one second for each step: it may be stopped. -1 when there is none or nobody answers. */
static int connect_to(pid_t pid)
{
	const struct timeval second = {.tv_sec = 1};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/dpdk/uroce-%d/dpdk_telemetry.v2", runtime_dir(), (int)pid);

	if (n < 0 || n >= (int)sizeof(sa.sun_path))
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool receive(int fd, char *text)
{
	ssize_t n = recv(fd, text, ANSWER_MAX - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Names have neither quotes nor backslashes, so one in quotes and a colon stands for itself alone. */
static bool find_value(const char *text, const char *name, uint64_t *value)
{
	char key[64], *end;
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(text, key);
	if (!at)
		return false;
	at += strlen(key);
	at += strspn(at, " ");
	if (!isdigit((unsigned char)*at))
		return false;
	errno = 0;
	*value = strtoull(at, &end, 10);
	return !errno && (*end == ',' || *end == '}');
}

static bool read_answer(const char *text, struct column *c)
{
	bool any = false;

	if (strncmp(text, "{\"" COMMAND "\":", strlen(COMMAND) + 4) != 0)
		return false;
	for (unsigned i = 0; i < UR_C_COUNT; i++) {
		c->has[i] = find_value(text, ur_counter_name((enum ur_counter)i), &c->value[i]);
		any |= c->has[i];
	}
	return any;
}

/* The socket first tells its version, then answers. */
static bool ask(pid_t pid, struct column *c)
{
	static char text[ANSWER_MAX];
	int fd = connect_to(pid);
	bool ok;

	if (fd < 0)
		return false;
	c->pid = pid;
	ok = receive(fd, text) && send(fd, COMMAND, strlen(COMMAND), MSG_NOSIGNAL) == (ssize_t)strlen(COMMAND) && receive(fd, text) &&
	     read_answer(text, c);
	close(fd);
	return ok;
}

static bool all_zero(const struct column *c, unsigned n, unsigned counter)
{
	for (unsigned k = 0; k < n; k++)
		if (c[k].value[counter])
			return false;
	return true;
}

static void print_table(const struct column *c, unsigned n, bool all)
{
	if (n) {
		printf("%-30s", "process");
		for (unsigned k = 0; k < n; k++)
			printf(" %*d", COLUMN, (int)c[k].pid);
		putchar('\n');
	}
	for (unsigned i = 0; i < UR_C_COUNT; i++) {
		if (!all && all_zero(c, n, i))
			continue;
		printf("%-30s", ur_counter_name((enum ur_counter)i));
		for (unsigned k = 0; k < n; k++)
			if (c[k].has[i])
				printf(" %*" PRIu64, COLUMN, c[k].value[i]);
			else
				printf(" %*s", COLUMN, "-");
		printf("%s%s\n", n ? "  " : " ", ur_counter_help((enum ur_counter)i));
	}
}

/* The values of the processes that answer; the others are left out of `c`. */
static unsigned ask_all(const struct ur_registry_view *v, struct column *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < v->count; i++)
		n += ask(v->processes[i].pid, &c[n]);
	return n;
}

int ur_info_counters(const struct ur_engine *e, bool all)
{
	struct ur_registry_view *v = NULL;
	struct column *c = NULL;
	unsigned n = 0;

	if (e && ur_engine_processes(e, &v) == 0 && v->count) {
		c = calloc(v->count, sizeof(*c));
		n = c ? ask_all(v, c) : 0;
	}
	if (n || all)
		print_table(c, n, all);
	if (!n)
		printf("%sFor values, start programs with UROCE_TELEMETRY=1 in their environment, and name their device here while they "
		       "run.%s\n",
		       all ? "\n" : "", all ? "" : " Add --all to see what is counted.");
	else if (!all)
		puts("\nCounters that are zero are left out: --all shows them.");
	if (n && n < v->count)
		printf("\n%u more of the device's processes offer no values: UROCE_TELEMETRY=1 in their environment changes that.\n",
		       v->count - n);
	free(c);
	free(v);
	return 0;
}
