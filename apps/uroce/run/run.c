/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce run: puts liburoce.so before the program's libraries, by preloading and by name, and executes the program. */
#include "apps/uroce/cli/cmd.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "apps/uroce/run/files.h"
#include "apps/uroce/run/packages.h"
#include "apps/uroce/run/preload.h"

/* The library that this program has loaded, and a folder beside it with the libibverbs.so.1 and librdmacm.so.1 that lead to it. */
static bool find_library(char *library, char *dropin)
{
	static const char *const folders[] = {"uroce", "dropin" /* the build tree's */};
	char path[PATH_MAX + 64];
	Dl_info info;

	if (!dladdr(dlsym(RTLD_DEFAULT, "uroce_version"), &info) || !realpath(info.dli_fname, library))
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		int folder = snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(library, '/') - library), library, folders[i]);

		strcpy(path + folder, "/libibverbs.so.1");
		if (access(path, R_OK))
			continue;
		path[folder] = '\0';
		if (realpath(path, dropin))
			return true;
	}
	return false;
}

static int executable(const char *path, struct stat *st)
{
	if (stat(path, st))
		return errno == EACCES ? UR_EXIT_CANNOT_RUN : UR_EXIT_NO_PROGRAM;
	return S_ISREG(st->st_mode) && access(path, X_OK) == 0 ? 0 : UR_EXIT_CANNOT_RUN;
}

/* 0, or the exit status of env(1): 126 when the program exists but cannot be executed, 127 when it does not exist. */
static int find_program(const char *name, char *out, size_t len, struct stat *st)
{
	int status = UR_EXIT_NO_PROGRAM;
	const char *path = secure_getenv("PATH");

	if (strchr(name, '/'))
		return (size_t)snprintf(out, len, "%s", name) < len ? executable(out, st) : status;
	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	while (*name) {
		size_t n = strcspn(path, ":");

		if ((size_t)snprintf(out, len, "%.*s/%s", n ? (int)n : 1, n ? path : ".", name) < len) {
			int s = executable(out, st);

			if (!s)
				return 0;
			if (s == UR_EXIT_CANNOT_RUN)
				status = s;
		}
		if (!path[n])
			break;
		path += n + 1;
	}
	return status;
}

static int no_program(const char *name, int status)
{
	const struct ur_package *p = status == UR_EXIT_NO_PROGRAM ? ur_package_of(name) : NULL;

	if (p)
		return ur_cmd_fail(status, "program '%s' does not exist: 'apt-get install %s' or 'dnf install %s' installs it", name,
				   p->deb, p->rpm);
	return ur_cmd_fail(status, "program '%s' %s: give the path of an RDMA program after --", name,
			   status == UR_EXIT_NO_PROGRAM ? "does not exist" : "cannot be executed");
}

/* Rights that the caller does not have, by which ld.so trusts nothing of the caller's; NULL: none. */
static const char *rights_of_its_own(const char *program, const struct stat *st)
{
	if (st->st_mode & S_ISUID && st->st_uid != geteuid())
		return "is set-user-ID";
	if (st->st_mode & S_ISGID && st->st_gid != getegid())
		return "is set-group-ID";
	return geteuid() && getxattr(program, "security.capability", NULL, 0) > 0 ? "has capabilities" : NULL;
}

/* 0, or 126: the library could not be put into the program, which would run without uroce as if nothing were the matter. */
static int check_preload(const char *program, const struct stat *st)
{
	const char *why = ur_preload_obstacle(program), *more = rights_of_its_own(program, st);

	if (more)
		return ur_cmd_fail(UR_EXIT_CANNOT_RUN, "program '%s' %s, for which the system ignores preloaded libraries: run %s", program,
				   more, st->st_mode & S_ISUID ? "it as its owner" : "a copy of it");
	if (why)
		return ur_cmd_fail(
			UR_EXIT_CANNOT_RUN,
			"program '%s' is %s: give another build of it or, if it only starts other programs, put env(1) before it", program,
			why);
	return 0;
}

/* Puts `first` before what the variable holds. */
static int prepend(const char *variable, const char *first)
{
	const char *old = secure_getenv(variable);
	char *value;

	if (strpbrk(first, " :;"))
		return ur_cmd_fail(UR_EXIT_FAIL,
				   "the library's path '%s' contains a blank, a colon or a semicolon, which %s cannot express: move it",
				   first, variable);
	if (asprintf(&value, "%s%s%s", first, old && *old ? ":" : "", old ? old : "") < 0 || setenv(variable, value, 1))
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: the environment cannot be extended");
	free(value);
	return 0;
}

/*
 * The run-time library of AddressSanitizer ends its program when another one comes before it, because that one's functions might replace
 * its own. Ours replaces no function of libc. The user's options come last, and so override this one.
 */
static int admit_sanitizers(void)
{
	return prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
}

static bool files;
static const struct ur_option options[] = {
	{"files", .set = &files,
	 .help = "show the program the device's files in /sys/class and /dev/infiniband, which UCX and Open MPI need"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce run --dev eth0 -- rping -s -v", "A server on the addresses of eth0."},
	{"uroce run --dev eth0 --capture ping.pcapng -- rping -c -v -C 10 -a 192.0.2.1", "Its client, with all packets recorded."},
	{"uroce run --dev eth0 --fault drop=1%,seed=7 -- ib_write_bw 192.0.2.1", "The same losses each time."},
	{"uroce run --vdev net_memif0,role=server,socket=/run/m.sock,socket-abstract=no --ip 10.0.0.1/24 -- rping -s",
	 "An owned port, over shared memory."},
	{"uroce run --pci 0000:03:00.0 --ip 10.0.0.1/24 -- rping -s", "An owned NIC, which `uroce bind` has bound."},
	{0},
};

/* For the library: this is the process whose counters the user has asked for. */
static void note_pid(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("UROCE_RUN_PID", pid, 1);
}

/* Does it begin as text does? A shell asks the same before it takes a file for a script: no NUL in the first line. */
static bool is_text(const char *program)
{
	FILE *in = fopen(program, "re");
	char line[256];
	size_t n = in ? fread(line, 1, sizeof(line), in) : 0;
	const char *end = memchr(line, '\n', n);

	if (in)
		fclose(in);
	return in && !memchr(line, '\0', end ? (size_t)(end - line) : n);
}

/* As execvp(3): a script whose first line names no interpreter is the shell's. Returns only when the program could not be started. */
static int execute(const char *program, char **argv)
{
	int why;

	execv(program, argv);
	why = errno;
	if (why == ENOEXEC && is_text(program)) {
		execvp(program, argv); /* the path has a slash in it */
		why = errno;
	}
	return why;
}

static int run_run(int argc, char **argv)
{
	char library[PATH_MAX], dropin[PATH_MAX], program[PATH_MAX];
	struct stat st;
	int rc;

	if (argc < 1)
		return ur_cmd_fail(UR_EXIT_USAGE, "no program given: write it after --, as in 'uroce run --dev eth0 -- rping -s'");
	rc = find_program(argv[0], program, sizeof(program), &st);
	if (rc)
		return no_program(argv[0], rc);
	rc = check_preload(program, &st);
	if (rc)
		return rc;
	if (!find_library(library, dropin))
		return ur_cmd_fail(UR_EXIT_FAIL,
				   "the folder uroce was not found beside liburoce.so: build it with 'ninja -C build' or install it");
	/* The first reaches programs with a run path of their own, the second those that load libibverbs with dlopen(3). */
	rc = prepend("LD_PRELOAD", library);
	if (!rc)
		rc = prepend("LD_LIBRARY_PATH", dropin);
	if (!rc)
		rc = admit_sanitizers();
	if (!rc && files)
		rc = ur_files_provide();
	if (rc)
		return rc;
	note_pid();
	rc = execute(program, argv);
	return ur_cmd_fail(rc == ENOENT ? UR_EXIT_NO_PROGRAM : UR_EXIT_CANNOT_RUN,
			   "program '%s' could not be started (%s): check its interpreter and architecture", program, strerror(rc));
}

const struct ur_command ur_command_run = {
	.name = "run",
	.operands = "-- PROGRAM [ARG...]",
	.complete = UR_COMPLETE_PROGRAM,
	.summary = "run an RDMA program on uroce",
	.text = "Runs PROGRAM, unmodified, with uroce in place of librdmacm and libibverbs. Programs that it starts run on uroce, "
		"too.\n\nEach option but `--files` sets the variable `UROCE_` and its name in capitals for the program; uroce(5) has more "
		"settings. Without `--dev`, `--vdev` and `--pci`, and when neither the environment nor the file that `UROCE_CONF` names "
		"has one of them, the interface of the default route is shared, or else the only one that is up, has an address and is not "
		"the loopback.\n\nThe library is preloaded, so programs that are set-user-ID, statically linked or not "
		"64-bit cannot run on it, and are not started; one that only starts other programs is, as in `uroce run -- env PROGRAM`. "
		"For programs built with AddressSanitizer it puts `verify_asan_link_order=0` before what `ASAN_OPTIONS` holds. "
		"`--files` needs CAP_SYS_ADMIN or a kernel that allows user namespaces, and gives the program its own mounts.",
	.status = "that of the program; 1 when something is wrong with the machine, 2 with the command line, 126 when the program is there "
		  "and cannot be "
		  "started, 127 when there is none.",
	.options = options,
	.examples = examples,
	.settings = UR_ALL_SETTINGS,
	.program = true,
	.run = run_run,
};
