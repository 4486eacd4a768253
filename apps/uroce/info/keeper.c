/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce info: the keeper of a process for an interface (keeper/farewell_page.h), whose arguments name both. */
#include "apps/uroce/info/info.h"

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

static size_t read_text(const char *pid, const char *what, char *text, size_t room)
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, what);
	f = fopen(path, "re");
	n = f ? fread(text, 1, room - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	return n;
}

/*
 * Anybody may call himself so; a process of another user is not believed. Its arguments are read last: the kernel fetches them from the
 * process's memory, and waits for as long as that is locked, which for a process that gets no CPU may be seconds. Its name is the kernel's.
 */
static bool is_keeper(const char *pid, pid_t of, const char *ifname)
{
	char name[32], args[64];
	const char *whose, *where;
	size_t n;

	read_text(pid, "comm", name, sizeof(name));
	if (strcmp(name, UR_KEEPER_NAME "\n") || !same_owner(pid, of))
		return false;
	n = read_text(pid, "cmdline", args, sizeof(args));
	whose = args + sizeof(UR_KEEPER_NAME);
	if (n <= sizeof(UR_KEEPER_NAME) || strcmp(args, UR_KEEPER_NAME) != 0 || atoi(whose) != (int)of)
		return false;
	where = whose + strlen(whose) + 1;
	return where < args + n && !strcmp(where, ifname);
}

void ur_info_keeper(pid_t of, const char *ifname)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && is_keeper(e->d_name, of, ifname))
			printf("        keeper %s\n", e->d_name);
	if (d)
		closedir(d);
}
