/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture as a stream. One that is compressed is unpacked by the tool that packed it: one process feeds it from the file, of which a part
 * may have been read already, and what it prints is the stream that is read on. A file says how much memory it takes to unpack it, and may
 * be hostile: the tool is told a limit, and the kernel another one, in case it does not keep to that.
 */

#include <errno.h>
#include "apps/uroce/pcap/file/source.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_INSTALLED 125 /* no code of a tool, nor (127) of ld.so */
#define NOT_STARTED 124
#define SPACE ((rlim_t)512 << 20) /* bytes of addresses, with the tool itself, its libraries and its threads */
#define ERROR_MAX 1024

/* 128 MiB: what is packed without asking for more, as by `xz -9` or `zstd -19`, takes less. */
#define TOOL(name, ...)                                                                                                                    \
	name, {name, "-d", "-c", __VA_ARGS__}, "it is compressed by " name ", which is not installed here",                                \
		name " cannot be started to unpack it: unpack it yourself with '" name " -d'",                                             \
		name " cannot unpack it: it is damaged or cut off, or no " name " file",                                                   \
		name " would need more than 128 MiB of memory to unpack it, which no usual capture needs: if you trust the file, "         \
		     "unpack it yourself with '" name " -d'"

static const struct tool {
	uint8_t first; /* byte of a file */
	const char *name;
	const char *args[6];
	const char *missing, *unstarted, *failed, *large;
} tools[] = {
	{0x28, TOOL("zstd", "--memory=128MB")},
	{0x04, TOOL("lz4", NULL)},
	{0xfd, TOOL("xz", "-T1", "--memlimit-decompress=128MiB")},
	{'B', TOOL("bzip2", NULL)},
	{0x1f, TOOL("gzip", NULL)},
};

struct unpacker {
	const struct tool *tool;
	FILE *in;
	int from, errors; /* what the tool prints */
	pid_t pid, feeder;
	const char **fault;
};

/* By the first byte: no capture begins with that of a compressed file. */
static const struct tool *tool_of(int first)
{
	for (unsigned i = 0; i < ur_array_size(tools); i++)
		if (tools[i].first == first)
			return &tools[i];
	return NULL;
}

/* In the child. */
static _Noreturn void feed(FILE *in, int to)
{
	char bytes[65536];
	size_t n;

	while ((n = fread(bytes, 1, sizeof(bytes), in)))
		for (size_t at = 0; at < n;) {
			const ssize_t put = write(to, bytes + at, n - at);

			if (put < 0)
				_exit(0);
			at += (size_t)put;
		}
	_exit(0);
}

/* Where the user has set a lower limit, that stays. */
static bool limit_space(void)
{
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space))
		return false;
	if (space.rlim_max > SPACE) /* also RLIM_INFINITY, the largest */
		space.rlim_max = SPACE;
	if (space.rlim_cur > space.rlim_max)
		space.rlim_cur = space.rlim_max;
	return !setrlimit(RLIMIT_AS, &space);
}

static _Noreturn void unpack(const struct tool *tool, int from, int to, int errors)
{
	setenv("LC_ALL", "C", 1); /* its errors are read, */
	/* once it has ended: what the pipe has no room for is lost, or it would wait */
	if (dup2(from, 0) != 0 || dup2(to, 1) != 1 || dup2(errors, 2) != 2 || fcntl(2, F_SETFL, O_NONBLOCK) || !limit_space())
		_exit(NOT_STARTED);
	execvp(tool->name, (char *const *)(uintptr_t)tool->args);
	_exit(errno == ENOENT ? NOT_INSTALLED : NOT_STARTED);
}

/* The tool has ended. Each says that it was memory in words of its own. */
static bool lacked_memory(const struct unpacker *u)
{
	char text[ERROR_MAX + 1];
	size_t n = 0;
	ssize_t got;

	while (n < ERROR_MAX && (got = read(u->errors, text + n, ERROR_MAX - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	return strcasestr(text, "memory");
}

static void reap_child(struct unpacker *u)
{
	int status = 0;

	if (!u->pid)
		return;
	while (waitpid(u->pid, &status, 0) < 0 && errno == EINTR)
		;
	u->pid = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_INSTALLED)
		*u->fault = u->tool->missing;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
		*u->fault = u->tool->unstarted;
	else
		*u->fault = lacked_memory(u) ? u->tool->large : u->tool->failed;
}

static ssize_t read_some(void *cookie, char *to, size_t n)
{
	struct unpacker *u = cookie;
	ssize_t got;

	do
		got = read(u->from, to, n);
	while (got < 0 && errno == EINTR && !ur_pcap_interrupted());
	if (got)
		return got;
	reap_child(u);
	if (!*u->fault)
		return 0;
	errno = EIO;
	return -1;
}

static int close_all(void *cookie)
{
	struct unpacker *u = cookie;
	const char *none;

	close(u->from);
	u->fault = &none;
	/* Either may wait for input that does not come, or for a reader that another child keeps open. */
	if (u->pid > 0)
		kill(u->pid, SIGKILL);
	if (u->feeder > 0)
		kill(u->feeder, SIGKILL);
	reap_child(u);
	close(u->errors);
	if (u->feeder > 0)
		waitpid(u->feeder, NULL, 0);
	if (u->in != stdin)
		fclose(u->in);
	free(u);
	return 0;
}

static void close_pipes(int (*pipes)[2], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static bool start_tool(struct unpacker *u)
{
	enum { IN, OUT, ERRORS, PIPES };
	int pipes[PIPES][2];

	for (unsigned i = 0; i < PIPES; i++) {
		if (!pipe2(pipes[i], O_CLOEXEC)) /* the tool's own ends are dup2's, which it keeps */
			continue;
		close_pipes(pipes, i);
		return false;
	}
	u->from = pipes[OUT][0];
	u->errors = pipes[ERRORS][0];
	u->feeder = fork();
	if (!u->feeder) {
		close(pipes[IN][0]);
		close_pipes(&pipes[OUT], PIPES - OUT);
		feed(u->in, pipes[IN][1]);
	}
	u->pid = u->feeder > 0 ? fork() : -1;
	if (!u->pid) {
		close(pipes[IN][1]);
		close(u->from);
		close(u->errors);
		unpack(u->tool, pipes[IN][0], pipes[OUT][1], pipes[ERRORS][1]);
	}
	close_pipes(&pipes[IN], 1);
	close(pipes[OUT][1]);
	close(pipes[ERRORS][1]);
	if (u->pid > 0)
		return true;
	close(u->from);
	close(u->errors);
	if (u->feeder > 0)
		waitpid(u->feeder, NULL, 0); /* nobody reads from it: it ends */
	return false;
}

static FILE *unpacked(FILE *in, const struct tool *tool, const char **fault)
{
	const cookie_io_functions_t io = {.read = read_some, .close = close_all};
	struct unpacker *u = calloc(1, sizeof(*u));
	FILE *out;

	if (!u)
		return NULL;
	*u = (struct unpacker){.tool = tool, .in = in, .fault = fault};
	if (!start_tool(u)) {
		free(u);
		return NULL;
	}
	out = fopencookie(u, "r", io);
	if (!out) {
		u->in = stdin; /* it stays with the caller */
		close_all(u);
	}
	return out;
}

FILE *ur_pcap_stream(const char *name, char *room, const char **fault)
{
	static char for_stdin[UR_PCAP_ROOM]; /* which is closed by nobody */
	FILE *in = strcmp(name, "-") == 0 ? stdin : fopen(name, "re"), *out;
	const struct tool *tool;
	int first;

	*fault = NULL;
	if (!in)
		return NULL;
	if (in == stdin || room)
		setvbuf(in, in == stdin ? for_stdin : room, _IOFBF, UR_PCAP_ROOM);
	first = getc(in);
	ungetc(first, in); /* EOF stays EOF */
	tool = tool_of(first);
	if (!tool)
		return in;
	out = unpacked(in, tool, fault);
	if (!out && in != stdin)
		fclose(in);
	return out;
}
