/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce run: puts liburoce.so in front of the program's libraries and becomes the program. For programs that load libibverbs themselves it
 * puts the directory of the drop-in libraries in front of LD_LIBRARY_PATH as well.
 */
#include "cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "liburoce.so.0"

/* Where the library lies relative to this program: in the build tree, then where both were installed to. */
static const char *const library_dirs[] = {"../../lib", "../" UROCE_LIBDIR};

static bool readable(const char *path)
{
	return access(path, R_OK) == 0;
}

static bool find_library(char *out, size_t len)
{
	char self[PATH_MAX], path[PATH_MAX + 64], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = 0;
		slash = strrchr(self, '/');
		*slash = 0;
		for (unsigned i = 0; i < sizeof(library_dirs) / sizeof(library_dirs[0]); i++) {
			char real[PATH_MAX];

			snprintf(path, sizeof(path), "%s/%s/" LIBRARY, self, library_dirs[i]);
			if (realpath(path, real) && readable(real))
				return (size_t)snprintf(out, len, "%s", real) < len;
		}
	}
	return readable(UROCE_PREFIX "/" UROCE_LIBDIR "/" LIBRARY) &&
	       (size_t)snprintf(out, len, "%s", UROCE_PREFIX "/" UROCE_LIBDIR "/" LIBRARY) < len;
}

static bool executable(const char *path, struct stat *st)
{
	return stat(path, st) == 0 && S_ISREG(st->st_mode) && access(path, X_OK) == 0;
}

static bool find_program(const char *name, char *out, size_t len, struct stat *st)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return (size_t)snprintf(out, len, "%s", name) < len && executable(out, st);
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*name) {
		size_t n = strcspn(path, ":");

		if ((size_t)snprintf(out, len, "%.*s/%s", n ? (int)n : 1, n ? path : ".", name) < len && executable(out, st))
			return true;
		if (!path[n])
			break;
		path += n + 1;
	}
	return false;
}

/* In front of what the variable says already. */
static int put_first(const char *variable, const char *what)
{
	const char *old = getenv(variable);
	char *value;

	if (asprintf(&value, "%s%s%s", what, old && *old ? ":" : "", old ? old : "") < 0 || setenv(variable, value, 1))
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: the environment cannot be extended");
	free(value);
	return 0;
}

static int preload(const char *library)
{
	if (strpbrk(library, " :"))
		return ur_cmd_fail(UR_EXIT_FAIL,
				   "the library's path '%s' contains a blank or a colon, which LD_PRELOAD cannot express: move it",
				   library);
	return put_first("LD_PRELOAD", library);
}

/* The drop-in libraries lie below the library: in the build tree, or where they were installed to. */
static int drop_in(const char *library)
{
	static const char *const dirs[] = {"dropin", "uroce"};
	int n = (int)(strrchr(library, '/') - library);
	char dir[PATH_MAX + 16], probe[PATH_MAX + 64];

	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(dir, sizeof(dir), "%.*s/%s", n, library, dirs[i]);
		snprintf(probe, sizeof(probe), "%s/libibverbs.so.1", dir);
		if (readable(probe))
			return put_first("LD_LIBRARY_PATH", dir);
	}
	return 0;
}

int ur_cmd_run(int argc, char **argv)
{
	static const struct ur_cmd_flag no_flags[] = {{NULL, NULL}};
	char library[PATH_MAX], program[PATH_MAX];
	struct stat st;
	int next, rc = ur_cmd_options(argc, argv, no_flags, &next);

	if (rc)
		return rc;
	if (next >= argc)
		return ur_cmd_fail(UR_EXIT_USAGE, "no program given: write it after --, as in 'uroce run --dev eth0 -- rping -s'");
	if (!find_program(argv[next], program, sizeof(program), &st))
		return ur_cmd_fail(UR_EXIT_NO_PROGRAM,
				   "program '%s' does not exist or cannot be executed: give the path of an RDMA program after --",
				   argv[next]);
	if ((st.st_mode & S_ISUID) && st.st_uid != geteuid())
		return ur_cmd_fail(UR_EXIT_FAIL,
				   "program '%s' is set-user-ID, for which the system ignores preloaded libraries: run it as its owner",
				   program);
	if (!find_library(library, sizeof(library)))
		return ur_cmd_fail(UR_EXIT_FAIL,
				   LIBRARY " was not found beside this program: build it with 'ninja -C build' or install it");
	rc = preload(library);
	if (!rc)
		rc = drop_in(library);
	if (rc)
		return rc;
	execv(program, argv + next);
	return ur_cmd_fail(errno == ENOENT ? UR_EXIT_NO_PROGRAM : 126,
			   "program '%s' could not be started (%s): check its interpreter and architecture", program, strerror(errno));
}
