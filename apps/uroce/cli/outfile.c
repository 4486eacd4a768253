/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "capture/output.h"

static bool cannot_write(const struct ur_outfile *o, int err)
{
	ur_cmd_fail(0, "cannot write %s: %s", o->name, ur_output_reason(err));
	return false;
}

/* A file or nothing is replaced; all else is what the user means by its name. */
static bool is_replaced(const char *name)
{
	struct stat st;

	return lstat(name, &st) || S_ISREG(st.st_mode);
}

static int open_part(struct ur_outfile *o, bool secret)
{
	mode_t mask = umask(0);
	int fd;

	umask(mask);
	if (asprintf(&o->part, "%s.XXXXXX", o->name) < 0) {
		o->part = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(o->part, O_CLOEXEC); /* O_EXCL, mode 0600 */
	if (fd >= 0 && !secret)
		fchmod(fd, 0666 & ~mask);
	return fd;
}

bool ur_outfile_open(struct ur_outfile *o, const char *name, bool secret)
{
	int fd, err;

	*o = (struct ur_outfile){.name = name};
	if (strcmp(name, "-") == 0) {
		o->f = stdout;
		return true;
	}
	fd = is_replaced(name) ? open_part(o, secret) : ur_output_open(name, secret ? UR_OUTPUT_SECRET : 0);
	err = errno;
	o->f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (o->f)
		return true;
	if (fd >= 0)
		close(fd);
	free(o->part);
	return cannot_write(o, err);
}

bool ur_outfile_close(struct ur_outfile *o, bool whole)
{
	int err = 0;

	if (o->f == stdout)
		return true; /* ur_outfile_end sees what became of it */
	if (o->f) {
		err = fflush(o->f) ? errno : ferror(o->f) ? EIO : 0;
		if (fclose(o->f) && !err)
			err = errno;
	}
	if (o->part && whole && !err && rename(o->part, o->name))
		err = errno;
	if (o->part && (err || !whole))
		unlink(o->part);
	free(o->part);
	*o = (struct ur_outfile){.name = o->name};
	return !whole || !err || cannot_write(o, err);
}

bool ur_outfile_is(const char *name, const char *other)
{
	struct stat a, b;

	return !stat(name, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void ur_outfile_begin(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
			return;
}

static int flush_error; /* stdio keeps that there was an error, but not which */

bool ur_outfile_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	if (!flush_error)
		flush_error = errno;
	return false;
}

/* Closed standard output is no failure of who has nothing to say. */
int ur_outfile_end(int status)
{
	bool pending = __fpending(stdout) != 0, failed = ferror(stdout);

	errno = flush_error ? flush_error : failed ? EIO : 0;
	if (fclose(stdout) && (failed || pending || errno != EBADF))
		failed = true;
	if (!failed)
		return status;
	ur_cmd_fail(0, "cannot write the report to standard output: %s", strerror(errno ? errno : EIO));
	return status ? status : UR_EXIT_FAIL;
}
