/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads the module. It lies in a folder beside liburoce.so, in the build tree as where it is installed; the program's caller
 * cannot influence where that is. It is never unloaded: DPDK starts threads.
 */
#include "drivers/ethdev/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "drivers/ethdev/cpu.h"
#include "drivers/ethdev/interface.h"
#include "drivers/os/fail.h"
#include "base/touch.h"

#define FOLDER "uroce"

/*
 * The file that `inside` was mapped from, without links, whatever the working directory is: the kernel knows, and ld.so has only the name
 * that it was told, which may be relative.
 */
static bool find_file_of(const void *inside, char *path, size_t len)
{
	const unsigned long here = (unsigned long)(uintptr_t)inside;
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char *line = NULL; /* whole lines: the rest of a truncated line could look like another line */
	size_t size = 0;

	while (maps && !found && getline(&line, &size, maps) > 0) {
		unsigned long from, to;
		int name = 0;

		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &name) != 2 || here < from || here >= to || line[name] != '/')
			continue;
		line[strcspn(line, "\n")] = 0;
		found = (size_t)snprintf(path, len, "%s", line + name) < len;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

/*
 * A program with more rights than its caller loads only what belongs to the owner of liburoce.so, or to root. ld.so has made
 * sure that the caller could not choose liburoce.so; but the folder above may be one where all users may create folders, such as /tmp.
 */
static bool is_trustworthy(const char *folder, const char *own_file)
{
	struct stat f, own;

	if (!getauxval(AT_SECURE))
		return true;
	return !lstat(folder, &f) && !stat(own_file, &own) && S_ISDIR(f.st_mode) && !(f.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (f.st_uid == 0 || f.st_uid == own.st_uid);
}

/* What the module is compiled for (cpu.h is made by meson.build) and this CPU lacks; NULL: nothing. Its constructors would die first. */
static const char *missing_of_cpu(void)
{
	const char *missing = NULL;

#define LOOK_FOR(name) missing = __builtin_cpu_supports(name) ? missing : (name);
	UR_ETHDEV_CPU(LOOK_FOR)
	return missing;
}

static int find_module(const void *inside, char *path, size_t len, char *err, size_t errlen)
{
	char own[PATH_MAX], folder[PATH_MAX];

	if (!find_file_of(inside, own, sizeof(own)))
		return ur_port_fail(err, errlen, ELIBACC,
				    "DPDK's part of uroce was not found, because the place of liburoce.so is not known: is /proc mounted?");
	if ((size_t)snprintf(folder, sizeof(folder), "%.*s/" FOLDER, (int)(strrchr(own, '/') - own), own) >= sizeof(folder) ||
	    (size_t)snprintf(path, len, "%s/" UR_ETHDEV_MODULE, folder) >= len)
		return ur_port_fail(err, errlen, ENAMETOOLONG, "the path '%.60s...' of liburoce.so is too long: move it", own);
	if (!is_trustworthy(folder, own))
		return ur_port_fail(
			err, errlen, ELIBACC,
			"DPDK's part of uroce is not loaded into a program with more rights than its caller, because '%s' is not "
			"there or others may write to it: give it to root, with mode 755",
			folder);
	return 0;
}

static int check(const struct ur_ethdev_module *m, const char *path, char *err, size_t errlen)
{
	if (!m)
		return ur_port_fail(err, errlen, ELIBACC, "'%s' is not the part of uroce that should be there: install all of uroce again",
				    path);
	if (strncmp(m->version, UR_VERSION, sizeof(m->version)))
		return ur_port_fail(err, errlen, ELIBACC, "'%s' is of uroce %.31s, and liburoce.so of %s: install both from one build",
				    path, m->version, UR_VERSION);
	if (strncmp(m->interface, UR_ETHDEV_INTERFACE, sizeof(m->interface)))
		return ur_port_fail(err, errlen, ELIBACC,
				    "'%s' and liburoce.so are of different builds of uroce %s: install both from one build", path,
				    UR_VERSION);
	return 0;
}

int ur_ethdev_load(const void *inside, const struct ur_ethdev_module **out, char *err, size_t errlen)
{
	static const struct ur_ethdev_host host = {.touch_copy = ur_touch_copy};
	const struct ur_ethdev_module *m;
	const char *missing = missing_of_cpu();
	char path[PATH_MAX];
	void *handle;
	int rc;

	if (missing)
		return ur_port_fail(err, errlen, ENOTSUP,
				    "DPDK's part of uroce is compiled for CPUs with %s, which this one lacks: choose another port",
				    missing);
	rc = find_module(inside, path, sizeof(path), err, errlen);
	if (rc)
		return rc;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle)
		return ur_port_fail(err, errlen, ELIBACC, "DPDK's part of uroce cannot be loaded (%s): install all of uroce again",
				    dlerror());
	m = dlsym(handle, UR_ETHDEV_MODULE_TABLE);
	rc = check(m, path, err, errlen);
	if (rc)
		return rc;
	m->attach(&host);
	*out = m;
	return 0;
}
