/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/adopter.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/farewell_page.h"

#define INITIAL_PID_NAMESPACE 0xeffffffcu /* PROC_PID_INIT_INO, the same in each kernel */
#define LOOKS_AT 4096                     /* children of process 1 */

/* What process 1 of a host is for. */
static bool init_is_the_hosts(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == INITIAL_PID_NAMESPACE;
}

/* Whether /proc calls processes as they are called here: it may be that of another pid namespace. */
static bool proc_is_ours(void)
{
	char text[32];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return atoi(text) == (int)getpid();
}

/* It ignores SIGCHLD, handles it or blocks it to ask for it: who does none of the three hears of no child that it does not know. */
static bool init_heeds_children(void)
{
	FILE *f = fopen("/proc/1/status", "re");
	uint64_t heeded = 0, set;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigBlk: %" SCNx64, &set) == 1 || sscanf(line, "SigIgn: %" SCNx64, &set) == 1 ||
		    sscanf(line, "SigCgt: %" SCNx64, &set) == 1)
			heeded |= set;
	if (f)
		fclose(f);
	return heeded & 1ull << (SIGCHLD - 1);
}

/* A line of /proc/PID/stat: `pid (comm) state`. */
static bool is_dead_keeper(int pid)
{
	char path[64], state = 0, comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%31[^)]) %c", comm, &state) != 2)
		state = 0;
	fclose(f);
	return state == 'Z' && !strcmp(comm, UR_KEEPER_NAME);
}

/* Some handle the signal for children that they know alone. */
static bool init_has_left_one(void)
{
	FILE *f = fopen("/proc/1/task/1/children", "re");
	bool left = false;
	int pid;

	for (unsigned i = 0; f && !left && i < LOOKS_AT && fscanf(f, "%d", &pid) == 1; i++)
		left = is_dead_keeper(pid);
	if (f)
		fclose(f);
	return left;
}

const char *ur_adopter_objects(void)
{
	int subreaper = 0;

	if (getpid() == 1)
		return "process 1 of a container takes all others with it when it ends";
	if (!prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0) && subreaper)
		return "the program is a subreaper, which waits for processes that others have left, and would wait for the keeper";
	if (init_is_the_hosts())
		return NULL;
	if (!proc_is_ours() || !init_heeds_children() || init_has_left_one())
		return "process 1 of the container collects no processes that others have left: start the container with an init, as "
		       "docker's --init does";
	return NULL;
}
