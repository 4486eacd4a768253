/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that passed, into a pcapng file: what was done to one is its comment. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "between.h"
#include "cmd.h"
#include "outfile.h"
#include "pcap_ng.h"

#define SNAPLEN 262144
#define LINK_ETHERNET 1

struct ur_between_capture {
	struct ur_outfile file;
};

/* The capture has standard output for itself; what would be printed there goes to standard error from now on. */
static bool open_stdout(struct ur_outfile *o)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	*o = (struct ur_outfile){.name = "the capture to standard output"};
	fflush(stdout);
	if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		o->f = fdopen(fd, "w");
	if (o->f)
		return true;
	ur_cmd_fail(0, "cannot write %s: %s", o->name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return false;
}

struct ur_between_capture *ur_between_capture_open(const char *name, const char *first, const char *second)
{
	struct ur_between_capture *c = calloc(1, sizeof(*c));

	if (!c) {
		ur_cmd_fail(0, "cannot write %s: out of memory", name);
		return NULL;
	}
	if (!(strcmp(name, "-") == 0 ? open_stdout(&c->file) : ur_outfile_open(&c->file, name, true))) {
		free(c);
		return NULL;
	}
	ur_ng_put_section(c->file.f);
	ur_ng_put_interface(c->file.f, LINK_ETHERNET, SNAPLEN, first);
	ur_ng_put_interface(c->file.f, LINK_ETHERNET, SNAPLEN, second);
	return c;
}

void ur_between_capture_frame(struct ur_between_capture *c, ur_time when, unsigned end, const uint8_t *frame, uint32_t len,
			      const char *comment)
{
	const struct ur_an_frame f = {.when = when, .data = frame, .have = len, .len = len};

	ur_ng_put_frame(c->file.f, end, &f, comment);
}

bool ur_between_capture_close(struct ur_between_capture *c)
{
	bool ok = fflush(c->file.f) == 0 && !ferror(c->file.f);

	if (!ok)
		ur_cmd_fail(0, "cannot write %s: %s", c->file.name, strerror(errno));
	ok = ur_outfile_close(&c->file, ok) && ok;
	free(c);
	return ok;
}
