/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce info: the keeper of a process (keeper/farewell_page.h), whose arguments name that process. */
#include "info.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/farewell_page.h"

static bool same_owner(const char *pid, pid_t other)
{
	char path[64];
	struct stat a, b;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	if (stat(path, &a))
		return false;
	snprintf(path, sizeof(path), "/proc/%d", (int)other);
	return stat(path, &b) == 0 && a.st_uid == b.st_uid;
}

/* Anybody may call himself so; a process of another user is not believed. */
static bool is_keeper(const char *pid, pid_t of)
{
	char path[64], args[64] = "", *whose;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(args, 1, sizeof(args) - 1, f);
	fclose(f);
	whose = args + strlen(args) + 1;
	return n > sizeof(UR_KEEPER_NAME) && !strcmp(args, UR_KEEPER_NAME) && atoi(whose) == (int)of && same_owner(pid, of);
}

void ur_info_keeper(pid_t of)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && is_keeper(e->d_name, of))
			printf("        keeper %s\n", e->d_name);
	if (d)
		closedir(d);
}
