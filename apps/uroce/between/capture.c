/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that passed, into a pcapng file: what was done to one is its comment. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroce/between/between.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/file/ng.h"

#define SNAPLEN 262144

struct ur_between_capture {
	struct ur_outfile file;
	struct ur_ng_out out;
	bool lacks; /* a frame, for lack of memory */
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
	c->out.to = c->file.f;
	ur_ng_out_section(&c->out);
	ur_ng_out_interface(&c->out, UR_NG_ETHERNET, SNAPLEN, first);
	ur_ng_out_interface(&c->out, UR_NG_ETHERNET, SNAPLEN, second);
	return c;
}

void ur_between_capture_frame(struct ur_between_capture *c, ur_time when, unsigned end, const uint8_t *frame, uint32_t len,
			      const char *comment)
{
	const struct ur_ng_frame f = {.when = when, .data = frame, .have = len, .len = len, .interface = end};
	const uint16_t n = (uint16_t)strlen(comment);
	struct ur_ng_block b;

	if (!ur_ng_out_begin(&c->out, &b, &f, ur_ng_option_bytes(n))) {
		c->lacks = true;
		return;
	}
	if (n)
		ur_ng_put_option(&b, UR_NG_COMMENT, comment, n);
	ur_ng_out_end(&c->out, &b);
}

bool ur_between_capture_close(struct ur_between_capture *c)
{
	bool ok;

	if (c->lacks)
		ur_cmd_fail(0, "cannot write %s: out of memory", c->file.name);
	ok = ur_outfile_close(&c->file, !c->lacks) && !c->lacks;
	free(c->out.room);
	free(c);
	return ok;
}
