/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_get_sysfs_path and ibv_read_sysfs_file: public, but without manual pages. Programs use the second to read files below
 * ibv_device.ibdev_path. Our device has nothing in the kernel's sysfs, so the contents come from host/device/sysfs.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/device/sysfs.h"
#include "verbs/device.h"

static char sysfs_path[IBV_SYSFS_PATH_MAX] = "/sys";

static void find_sysfs(void)
{
	const char *env = secure_getenv("SYSFS_PATH");
	size_t n = env ? strnlen(env, sizeof(sysfs_path)) : 0;

	if (!n || n >= sizeof(sysfs_path))
		return;
	memcpy(sysfs_path, env, n + 1);
	while (n > 1 && sysfs_path[n - 1] == '/')
		sysfs_path[--n] = '\0';
}

const char *ibv_get_sysfs_path(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_sysfs);
	return sysfs_path;
}

/* --- files of our device --- */

struct search {
	const char *path;
	char *buf;
	size_t size;
	int length;
};

/* As from a file that ends with a newline: it gives way to the zero. */
static int copy_value(void *arg, const char *path, const char *text)
{
	struct search *s = arg;
	size_t n;

	if (strcmp(path, s->path) != 0)
		return 0;
	n = strlen(text);
	if (n >= s->size)
		return EOVERFLOW;
	memcpy(s->buf, text, n + 1);
	s->length = (int)n;
	return EEXIST;
}

static int search_files(struct ur_engine *e, struct search *s)
{
	struct ur_device_info info;
	int rc;

	ur_engine_port_info(e, &info);
	rc = ur_sysfs_each(&info, ur_engine_lock(e)->net, copy_value, s);
	ur_engine_unlock(e);
	return rc;
}

/* The length, or -1 and errno: ENOENT also when the path does not lie in our device's directory. */
static int read_own(const char *path, char *buf, size_t size)
{
	static const char class_dir[] = UR_SYSFS_CLASS "/";
	struct search s = {.buf = buf, .size = size, .length = -1};
	struct uv_device *d[UR_DEVICES];
	unsigned count;
	int err = ENOENT;

	if (strncmp(path, class_dir, sizeof(class_dir) - 1) != 0 || !ur_engine_current() || uv_devices_current(d, &count)) {
		errno = ENOENT;
		return -1;
	}
	for (unsigned i = 0; i < count; i++) {
		size_t n = strlen(d[i]->dev.ibdev_path);

		if (strncmp(path, d[i]->dev.ibdev_path, n) == 0 && path[n] == '/') {
			s.path = path + n + 1;
			err = search_files(d[i]->engine, &s);
		}
	}
	uv_devices_put(d, &count);
	if (s.length < 0)
		errno = err ? err : ENOENT;
	return s.length;
}

/* --- files of the kernel --- */

/* Ended by a zero in place of the last newline; what leaves no room for it is an error. */
static int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	err = errno;
	close(fd);
	errno = err;
	if (n < 0)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if ((size_t)n < size)
		buf[n] = '\0';
	else {
		errno = EOVERFLOW;
		return -1;
	}
	return (int)n;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	int n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	n = read_own(path, buf, size);
	return n < 0 && errno == ENOENT ? read_file(path, buf, size) : n;
}
