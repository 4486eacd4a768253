/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whoever can read the file reads what it holds, whoever put it there reads it too, and what a link leads to may be precious. */
static int check_file(int fd, bool alone)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if (S_ISFIFO(st.st_mode) && st.st_uid == geteuid()) /* a reader of ours */
		return fcntl(fd, F_SETFL, O_WRONLY) ? errno : 0;
	if (S_ISCHR(st.st_mode) && (!st.st_uid || st.st_uid == geteuid())) /* /dev/null */
		return 0;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return EPERM;
	if (alone && flock(fd, LOCK_EX | LOCK_NB))
		return errno;
	return fchmod(fd, 0600) || ftruncate(fd, 0) ? errno : 0;
}

int ur_output_open(const char *path, bool alone)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	int err = fd < 0 ? errno : check_file(fd, alone);

	if (err && fd >= 0)
		close(fd);
	errno = err;
	return err ? -1 : fd;
}

const char *ur_output_reason(int err)
{
	if (err == ELOOP)
		return "it is a symbolic link: name the file itself";
	if (err == EPERM)
		return "it exists and is not a file of this user alone: remove it, or choose another name";
	if (err == EWOULDBLOCK)
		return "another process is writing to it: choose another name";
	return strerror(err);
}
