/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/file_limit.h"

#define OPEN_FLAGS (O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/*
 * Anyone who can read the file, or who put it there, would see its contents, and the target of a link may be precious. `meant`: the link
 * that leads here can only have been made by this user.
 */
static int check_file(int fd, unsigned flags, bool meant)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if (S_ISFIFO(st.st_mode) && (meant || st.st_uid == geteuid())) /* a reader of ours */
		return fcntl(fd, F_SETFL, O_WRONLY) ? errno : 0;
	if (S_ISCHR(st.st_mode) && (meant || !st.st_uid || st.st_uid == geteuid())) /* /dev/null, a terminal */
		return 0;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return EPERM;
	if (flags & UR_OUTPUT_ALONE && flock(fd, LOCK_EX | LOCK_NB))
		return errno;
	if (flags & UR_OUTPUT_SECRET && fchmod(fd, 0600))
		return errno;
	return !(flags & UR_OUTPUT_KEEP) && ftruncate(fd, 0) ? errno : 0;
}

enum link { NO_LINK, OWN_LINK, OTHERS_LINK };

/* Another user's may lead anywhere. */
static enum link link_of(const char *path)
{
	struct stat st;

	if (lstat(path, &st) || !S_ISLNK(st.st_mode))
		return NO_LINK;
	return !st.st_uid || st.st_uid == geteuid() ? OWN_LINK : OTHERS_LINK;
}

int ur_output_open(const char *path, unsigned flags)
{
	int fd = open(path, OPEN_FLAGS | O_CREAT | O_NOFOLLOW, flags & UR_OUTPUT_SECRET ? 0600 : 0666);
	int err = fd < 0 ? errno : 0;
	enum link link = err == ELOOP || err == EACCES ? link_of(path) : NO_LINK; /* in a sticky folder the kernel may say EACCES */

	if (link == OWN_LINK) {
		fd = open(path, OPEN_FLAGS);
		err = fd < 0 ? errno : 0;
	} else if (link == OTHERS_LINK) {
		err = ELOOP;
	}
	if (!err)
		err = check_file(fd, flags, link == OWN_LINK);
	if (err && fd >= 0)
		close(fd);
	errno = err;
	return err ? -1 : fd;
}

size_t ur_output_write(int fd, const void *bytes, size_t n)
{
	struct ur_file_limit limit;
	size_t at = 0;

	ur_file_limit_begin(&limit);
	while (at < n) {
		ssize_t done = write(fd, (const char *)bytes + at, n - at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			break;
		at += (size_t)done;
	}
	ur_file_limit_end(&limit);
	return at;
}

const char *ur_output_reason(int err)
{
	if (err == ELOOP)
		return "it is a symbolic link of another user: name the file itself";
	if (err == EPERM)
		return "it exists and is not a file of this user alone: remove it, or choose another name";
	if (err == EWOULDBLOCK)
		return "another process is writing to it: choose another name";
	if (err == ENXIO)
		return "nobody reads from the pipe: start its reader first";
	if (err == ENOBUFS)
		return "frames came faster than they could be written: leave the writing thread a CPU, or write to /dev/shm";
	if (err == ETIMEDOUT)
		return "it accepts nothing any more: keep its reader running";
	if (err == EFBIG)
		return "files may not grow further (ulimit -f, or the limit of the file system): raise the limit, or write to a pipe";
	return strerror(err);
}
