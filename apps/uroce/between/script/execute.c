/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --script: a child becomes a program. On a host of this machine that is the program itself, or `uroce run`. For another host
 * it is the user's command, such as `ssh host1`, which starts a shell there that reads a line from its standard input. So no word passes
 * through two shells; and when this process ends, standard input is closed there, and the program is told to end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroce/between/script/script.h"
#include "apps/uroce/cli/cmd.h"

#define LINE_MAX_BYTES 60000 /* what a pipe holds without a reader */

/* Replaces {peer} and {addr}. */
static char *with_addresses(const char *word, const char *own, const char *peer)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	while (f && *word) {
		const bool is_peer = strncmp(word, "{peer}", 6) == 0;

		if (is_peer || strncmp(word, "{addr}", 6) == 0) {
			fputs(is_peer ? peer : own, f);
			word += 6;
		} else {
			fputc(*word++, f);
		}
	}
	if (f)
		fclose(f);
	return text;
}

/* --- on a host of this machine --- */

static void execute_here(const struct ur_between_script *how, const struct ur_between_program *p, const char *own, const char *peer)
{
	static char uroce[] = "uroce", run[] = "run", dev[] = "--dev", name[] = UR_BETWEEN_HOST_IF, files[] = "--files", end[] = "--";
	char **argv = calloc(p->n + 8u, sizeof(*argv)), **to = argv;

	if (!argv || !p->n) {
		errno = ENOMEM;
		return;
	}
	setenv("UROCE_ADDR", own, 1);
	setenv("UROCE_PEER", peer, 1);
	if (!how->native) {
		*to++ = uroce;
		*to++ = run;
		*to++ = dev;
		*to++ = name;
		if (how->files)
			*to++ = files;
		*to++ = end;
	}
	for (unsigned k = 0; k < p->n; k++)
		*to++ = with_addresses(p->words[k], own, peer);
	if (how->native)
		execvp(argv[0], argv);
	else
		execv("/proc/self/exe", argv);
}

/* --- on another host --- */

/* As a word of a shell. */
static void put_quoted(FILE *to, const char *word)
{
	fputc('\'', to);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word == '\n' ? ' ' : *word, to); /* all is one line */
	fputc('\'', to);
}

/* Puts the line where standard input is read, and becomes `prefix sh`. The other end of the pipe stays open as long as that runs. */
static void execute_there(const char *prefix, const char *line, size_t len)
{
	char *command;
	int fds[2];

	if (len > LINE_MAX_BYTES) {
		errno = E2BIG;
		return;
	}
	if (pipe(fds) || write(fds[1], line, len) != (ssize_t)len || asprintf(&command, "exec %s sh", prefix) < 0)
		return;
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
}

/* The program, which ends when standard input does, and whose status is the shell's. */
static void put_program(FILE *to, const struct ur_between_program *p, const char *own, const char *peer, uint64_t seconds)
{
	fprintf(to, "{ exec 3<&0; env UROCE_ADDR=");
	put_quoted(to, own);
	fputs(" UROCE_PEER=", to);
	put_quoted(to, peer);
	fprintf(to, " timeout -k 2 %llu", (unsigned long long)seconds);
	for (unsigned k = 0; k < p->n; k++) {
		char *word = with_addresses(p->words[k], own, peer);

		fputc(' ', to);
		put_quoted(to, word ? word : "");
		free(word);
	}
	fputs(" </dev/null 3<&- & p=$!; { read -r x <&3; kill $p; } >/dev/null 2>&1 & k=$!; exec 3<&-; wait $p; s=$?; kill $k 2>/dev/null; "
	      "exit $s; }\n",
	      to);
}

void ur_between_execute(const struct ur_between_script *how, unsigned i, const struct ur_between_program *p, uint64_t seconds)
{
	const char *own = p[0].address, *peer = i ? p[-1].address : p[1].address;
	char *line = NULL;
	size_t len = 0;
	FILE *f;

	if (!how->run[i]) {
		execute_here(how, p, own, peer);
		return;
	}
	f = open_memstream(&line, &len);
	if (!f)
		return;
	put_program(f, p, own, peer, seconds);
	fclose(f);
	execute_there(how->run[i], line, len);
}

/* The state of a socket that listens is 0A in /proc/net/tcp. */
void ur_between_execute_waiter(const struct ur_between_script *how)
{
	char line[256];
	const int len = snprintf(line, sizeof(line),
				 "{ until grep -qs ':%04X 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done; exit 0; }\n",
				 (unsigned)how->port);

	execute_there(how->run[0], line, (size_t)len);
}
