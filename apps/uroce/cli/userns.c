/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int write_map(const char *path, const char *text, const char **file)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		rc = errno ? errno : EIO;
		*file = path;
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

int ur_userns_enter(int flags, const char **file)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char text[64];
	int rc;

	*file = NULL;
	if (unshare(CLONE_NEWUSER | flags))
		return errno;
	rc = write_map("/proc/self/setgroups", "deny", file);
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	rc = rc ? rc : write_map("/proc/self/uid_map", text, file);
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	return rc ? rc : write_map("/proc/self/gid_map", text, file);
}
