/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce run --files: the files that a kernel would have for the device, for programs that look at them past libibverbs: the attributes in
 * /sys/class/infiniband/<device> and a device node in /dev/infiniband. Both are laid over what is there, in a mount namespace of the
 * program's own, as they are at the start. The node is /dev/null: programs ask whether it exists and may be opened, and then call
 * libibverbs.
 */
#include "cmd.h"
#include "files.h"

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

#include "engine/sysfs.h"

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

/* Two trees below `top`: sys, to lie over /sys/class, and dev, to lie over /dev/infiniband. */
static int make_trees(struct ur_engine *e, const char *top)
{
	char dir[PATH_MAX - 128], hardware[128], node[128];
	struct ur_engine_info d;
	int rc;

	ur_engine_info(e, &d);
	snprintf(dir, sizeof(dir), "%s/sys/infiniband/%s", top, d.name);
	rc = ur_sysfs_each(e, write_file, dir);
	snprintf(hardware, sizeof(hardware), "/sys/class/net/%s/device", d.ifname);
	if (!rc && !d.owned && access(hardware, F_OK) == 0)
		rc = make_link(hardware, dir, "device"); /* where the interface is, for who wants memory and CPUs close to it */
	snprintf(dir, sizeof(dir), "%s/dev", top);
	snprintf(node, sizeof(node), UR_DEV_PREFIX "%s", d.name);
	return rc ? rc : make_link("/dev/null", dir, node);
}

static int lay_over(const char *top, const char *tree, const char *where)
{
	char options[PATH_MAX];

	snprintf(options, sizeof(options), "lowerdir=%s/%s:%s", top, tree, where);
	return mount("overlay", where, "overlay", MS_RDONLY | MS_NOSUID, options) ? failed("mount an overlay on", where) : 0;
}

static int mount_trees(struct ur_engine *e, const char *top)
{
	int rc;

	if (mount("tmpfs", top, "tmpfs", MS_NOSUID, "mode=755"))
		return failed("mount a tmpfs on", top);
	rc = make_trees(e, top);
	if (!rc && mkdir(UR_DEV_DIR, 0755) && errno != EEXIST)
		rc = failed("make the directory", UR_DEV_DIR);
	if (!rc)
		rc = lay_over(top, "sys", "/sys/class");
	if (!rc)
		rc = lay_over(top, "dev", UR_DEV_DIR);
	umount2(top, MNT_DETACH); /* the overlays hold it */
	return rc;
}

/* Mounts of the host go on arriving; those made here do not leave. */
static int own_namespace(void)
{
	if (unshare(CLONE_NEWNS))
		return failed("make a mount namespace for", "the program");
	return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ? failed("change the propagation of", "/") : 0;
}

int ur_files_provide(void)
{
	char top[] = "/tmp/uroce-XXXXXX";
	struct ur_engine *e;
	int rc;

	if (ur_engine_inspect(&e))
		return ur_cmd_fail(UR_EXIT_FAIL, "%s", ur_engine_error());
	rc = own_namespace();
	if (!rc && !mkdtemp(top))
		rc = failed("make a directory like", top);
	if (!rc) {
		mode_t mask = umask(022); /* the topmost directory says who may enter all that lies below it */

		rc = mount_trees(e, top);
		umask(mask);
		rmdir(top);
	}
	if (rc)
		return ur_cmd_fail(UR_EXIT_FAIL, "--files cannot %s %s (%s): it needs root with CAP_SYS_ADMIN, and a kernel with overlayfs",
				   failed_what, failed_path, strerror(rc));
	return 0;
}
