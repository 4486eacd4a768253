/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures that are compressed by other means than gzip are unpacked by the tool that packed them: one process feeds it from the stream,
 * of which a part may have been read already, and what it prints is the stream that is read on.
 */
#include "pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_INSTALLED 127

static const struct tool {
	uint8_t first; /* byte of a file */
	const char *name, *missing, *failed;
} tools[] = {
	{0x28, "zstd", "it is compressed by zstd, which is not installed here",
	 "zstd cannot unpack it: it is damaged or cut off, or no zstd file"},
	{0x04, "lz4", "it is compressed by lz4, which is not installed here",
	 "lz4 cannot unpack it: it is damaged or cut off, or no lz4 file"},
	{0xfd, "xz", "it is compressed by xz, which is not installed here", "xz cannot unpack it: it is damaged or cut off, or no xz file"},
	{'B', "bzip2", "it is compressed by bzip2, which is not installed here",
	 "bzip2 cannot unpack it: it is damaged or cut off, or no bzip2 file"},
};

struct unpacker {
	const struct tool *tool;
	FILE *in;
	int from; /* what the tool prints */
	pid_t pid, feeder;
	const char **fault;
};

bool ur_pcap_is_packed(int first)
{
	for (unsigned i = 0; i < ur_array_size(tools); i++)
		if (tools[i].first == first)
			return true;
	return false;
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

static _Noreturn void unpack(const char *tool, int from, int to)
{
	if (dup2(from, 0) == 0 && dup2(to, 1) == 1 && freopen("/dev/null", "w", stderr))
		execlp(tool, tool, "-d", "-c", (char *)NULL);
	_exit(NOT_INSTALLED);
}

static void end(struct unpacker *u)
{
	int status = 0;

	if (!u->pid)
		return;
	while (waitpid(u->pid, &status, 0) < 0 && errno == EINTR)
		;
	u->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		*u->fault = WIFEXITED(status) && WEXITSTATUS(status) == NOT_INSTALLED ? u->tool->missing : u->tool->failed;
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
	end(u);
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
	end(u);
	if (u->feeder > 0)
		waitpid(u->feeder, NULL, 0);
	if (u->in != stdin)
		fclose(u->in);
	free(u);
	return 0;
}

static bool start(struct unpacker *u)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC)) /* the tool's own ends are dup2's, which it keeps */
		return false;
	if (pipe2(out, O_CLOEXEC)) {
		close(in[0]);
		close(in[1]);
		return false;
	}
	u->from = out[0];
	u->feeder = fork();
	if (!u->feeder) {
		close(in[0]);
		close(out[0]);
		close(out[1]);
		feed(u->in, in[1]);
	}
	u->pid = u->feeder > 0 ? fork() : -1;
	if (!u->pid) {
		close(in[1]);
		close(out[0]);
		unpack(u->tool->name, in[0], out[1]);
	}
	close(in[0]);
	close(in[1]);
	close(out[1]);
	if (u->pid > 0)
		return true;
	close(out[0]);
	if (u->feeder > 0)
		waitpid(u->feeder, NULL, 0); /* nobody reads from it: it ends */
	return false;
}

FILE *ur_pcap_unpacked(FILE *in, int first, const char **fault)
{
	const cookie_io_functions_t io = {.read = read_some, .close = close_all};
	struct unpacker *u = calloc(1, sizeof(*u));
	FILE *out;

	if (!u)
		return NULL;
	for (unsigned i = 0; i < ur_array_size(tools); i++)
		if (tools[i].first == first)
			u->tool = &tools[i];
	u->in = in;
	u->fault = fault;
	if (!u->tool || !start(u)) {
		free(u);
		return NULL;
	}
	out = fopencookie(u, "r", io);
	if (!out)
		close_all(u);
	return out;
}
