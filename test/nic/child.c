/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a program, it has it fork a child once the program listens, which is after it has opened the NIC. The child does nothing
 * and stays for a quarter of an hour. Its number is in /tmp/child.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STAYS 900

static void note(pid_t pid)
{
	FILE *f = fopen("/tmp/child", "w");

	if (!f)
		abort();
	fprintf(f, "%d\n", (int)pid);
	fclose(f);
}

int rdma_listen(void *id, int backlog)
{
	int (*next)(void *, int) = (int (*)(void *, int))dlsym(RTLD_NEXT, "rdma_listen");
	int rc = next ? next(id, backlog) : -1;
	pid_t pid = fork();

	if (pid == 0) {
		sleep(STAYS);
		_exit(0);
	}
	if (pid < 0)
		abort();
	note(pid);
	return rc;
}
