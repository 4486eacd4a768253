/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce run --files: the files that a kernel would provide for the device, for programs that read them directly instead of through
 * libibverbs: the attributes in sys/class/infiniband/<device> and a device node in /dev/infiniband. They are mounted over the existing
 * ones in a mount namespace of the program's own, with their contents at the start. The node is /dev/null: programs check whether it
 * exists and may be opened, and then call libibverbs. Users other than root also get a user namespace, in which they keep their IDs, where
 * the kernel allows one.
 */
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/run/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/uroce/cli/userns.h"
#include "host/device/sysfs.h"
#include "host/device/view.h"

#define TOP "/tmp" /* where trees are made, on a tmpfs that nobody else sees, so nothing has to be writable there */

/* What could not be done, and to what; for the message. */
static const char *failed_what;
static char failed_path[PATH_MAX];

static int failed(const char *what, const char *path)
{
	int err = errno;

	failed_what = what;
	snprintf(failed_path, sizeof(failed_path), "%s", path);
	return err ? err : EIO;
}

/* Makes the directories that lead to `path`. */
static int make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		int rc;

		*p = 0;
		rc = mkdir(path, 0755) && errno != EEXIST ? failed("make the directory", path) : 0;
		*p = '/';
		if (rc)
			return rc;
	}
	return 0;
}

/* A ur_sysfs_fn; `arg` is the device's directory. */
static int write_file(void *arg, const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
	rc = make_parents(path);
	if (rc)
		return rc;
	f = fopen(path, "we");
	if (!f)
		return failed("make the file", path);
	fprintf(f, "%s\n", text);
	fchmod(fileno(f), 0444);
	return fclose(f) ? failed("write the file", path) : 0;
}

static int make_link(const char *target, const char *dir, const char *name)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	rc = make_parents(path);
	if (rc)
		return rc;
	return symlink(target, path) ? failed("make the link", path) : 0;
}

/* The devices of the settings. */
struct views {
	struct ur_view view[UR_DEVICES];
	unsigned n;
};

/* A device in two trees below `top`: sys, to lie over /sys/class, and dev, to lie over /dev/infiniband. */
static int make_trees(const struct ur_view *v, const char *top)
{
	char dir[PATH_MAX - 128], hardware[128], node[128];
	const struct ur_device_info *d = &v->device.info;
	int rc;

	snprintf(dir, sizeof(dir), "%s/sys/infiniband/%s", top, d->name);
	rc = ur_sysfs_each(d, v->net, write_file, dir);
	snprintf(hardware, sizeof(hardware), "/sys/class/net/%s/device", d->ifname);
	if (!rc && !d->owned && access(hardware, F_OK) == 0)
		rc = make_link(hardware, dir, "device"); /* where the interface is, for who wants memory and CPUs close to it */
	snprintf(dir, sizeof(dir), "%s/dev", top);
	snprintf(node, sizeof(node), UR_DEV_PREFIX "%s", d->name);
	return rc ? rc : make_link("/dev/null", dir, node);
}

static int lay_over(const char *top, const char *tree, const char *where)
{
	char options[PATH_MAX];

	snprintf(options, sizeof(options), "lowerdir=%s/%s:%s", top, tree, where);
	return mount("overlay", where, "overlay", MS_RDONLY | MS_NOSUID, options) ? failed("mount an overlay on", where) : 0;
}

/* Shows an entry of /dev in another directory as it is: devices work where they are bound, and in an overlay of a user's they would not. */
static int bind_entry(const char *dir, const struct dirent *d)
{
	char from[PATH_MAX], to[PATH_MAX], target[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(from, sizeof(from), "/dev/%s", d->d_name);
	snprintf(to, sizeof(to), "%s/%s", dir, d->d_name);
	if (lstat(from, &st))
		return 0; /* it went away */
	if (S_ISLNK(st.st_mode)) {
		n = readlink(from, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		return symlink(target, to) ? failed("make the link", to) : 0;
	}
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(to, 0755))
			return failed("make the directory", to);
	} else {
		fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return failed("make the file", to);
		close(fd);
	}
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? failed("show again", from) : 0;
}

/* A new /dev with a directory for our node, for users who may not create one in the old. */
static int rebuild_dev(const char *top)
{
	char dir[64], node[64], to[128];
	DIR *d = opendir("/dev");
	struct dirent *de;
	int rc = 0;

	snprintf(dir, sizeof(dir), "%s/newdev", top);
	snprintf(node, sizeof(node), "%s/dev", top);
	snprintf(to, sizeof(to), "%s%s", dir, &UR_DEV_DIR[strlen("/dev")]);
	if (!d || mkdir(dir, 0755) || mkdir(to, 0755))
		rc = failed("make the directory", dir);
	while (!rc && (de = readdir(d)))
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			rc = bind_entry(dir, de);
	if (d)
		closedir(d);
	if (!rc && mount(node, to, NULL, MS_BIND, NULL))
		rc = failed("show again", node);
	if (!rc && mount(dir, "/dev", NULL, MS_BIND | MS_REC, NULL))
		rc = failed("mount a directory on", "/dev");
	return rc;
}

static int mount_trees(const struct views *v, const char *top)
{
	bool have_dir;
	int rc = 0;

	if (mount("tmpfs", top, "tmpfs", MS_NOSUID, "mode=755"))
		return failed("mount a tmpfs on", top);
	for (unsigned i = 0; i < v->n && !rc; i++)
		rc = make_trees(&v->view[i], top);
	have_dir = !rc && (!mkdir(UR_DEV_DIR, 0755) || errno == EEXIST);
	if (!rc && !have_dir && errno != EACCES && errno != EPERM)
		rc = failed("make the directory", UR_DEV_DIR);
	if (!rc)
		rc = lay_over(top, "sys", "/sys/class");
	if (!rc)
		rc = have_dir ? lay_over(top, "dev", UR_DEV_DIR) : rebuild_dev(top);
	umount2(top, MNT_DETACH); /* the mounts hold it */
	return rc;
}

static int own_user_namespace(void)
{
	const char *file;

	errno = ur_userns_enter(CLONE_NEWNS, &file);
	if (!errno)
		return 0;
	return file ? failed("write", file) : failed("make a user and a mount namespace for", "the program");
}

/* Mounts of the host go on arriving; those made here do not leave. */
static int own_namespace(void)
{
	int rc = 0;

	if (unshare(CLONE_NEWNS))
		rc = errno == EPERM ? own_user_namespace() : failed("make a mount namespace for", "the program");
	if (rc)
		return rc;
	return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ? failed("change the propagation of", "/") : 0;
}

/* What has to be otherwise for it to work. */
static const char *needs(int err)
{
	if (err == EPERM || err == EACCES || err == ENOSPC)
		return "it needs CAP_SYS_ADMIN or a kernel that allows user namespaces; ";
	return err == ENODEV || err == EINVAL ? "it needs overlayfs of Linux 5.11 or later; " : "";
}

/* With what works where that does not: a node of the device's name is all that UCX, and so Open MPI, look for. */
static void explain(const char *device, int err)
{
	char node[128];

	snprintf(node, sizeof(node), UR_DEV_DIR "/" UR_DEV_PREFIX "%s", device);
	ur_cmd_fail(0,
		    "--files cannot %s %s (%s): %somit it, and give UCX and Open MPI the node that they look for, in a container by "
		    "'docker run "
		    "--device /dev/null:%s', on a host by 'sudo mkdir -p " UR_DEV_DIR "; sudo ln -s /dev/null %s'",
		    failed_what, failed_path, strerror(err), needs(err), node, node);
}

static void close_views(struct views *v)
{
	while (v->n)
		ur_view_close(&v->view[--v->n]);
}

static int open_views(struct views *v)
{
	const unsigned count = ur_view_count();
	char err[512];

	for (v->n = 0; v->n < count; v->n++)
		if (ur_view_open(&v->view[v->n], v->n, err, sizeof(err))) {
			close_views(v);
			return ur_cmd_fail(UR_EXIT_FAIL, "%s", err);
		}
	return 0;
}

int ur_files_provide(void)
{
	static struct views v;
	int rc = open_views(&v);

	if (rc)
		return rc;
	rc = own_namespace();
	if (!rc) {
		mode_t mask = umask(022); /* the topmost directory says who may enter all that lies below it */

		rc = mount_trees(&v, TOP);
		umask(mask);
	}
	if (rc)
		explain(v.view[0].device.info.name, rc);
	close_views(&v);
	return rc ? UR_EXIT_FAIL : 0;
}
