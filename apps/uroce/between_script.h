/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --script: two programs, each on a host of its own, and the cable between them. between_hosts.c makes the hosts,
 * between_script.c runs the programs, between_ready.c finds out when the first of them listens.
 */
#ifndef UR_APP_BETWEEN_SCRIPT_H
#define UR_APP_BETWEEN_SCRIPT_H

#include <netinet/in.h>

#include "between.h"

#define UR_BETWEEN_HOST_IF "eth0" /* what the interface of a host is called there */

/* --- between_hosts.c: network namespaces without a name, of which nothing remains when nobody is in them any more --- */

struct ur_between_hosts {
	int ns[2];
	char address[2][INET6_ADDRSTRLEN];
};

/*
 * Makes the two hosts, and puts this process, which has one thread, into a third namespace, where interfaces of these names lead to them.
 * False after a message. The descriptors are the caller's.
 */
bool ur_between_hosts_make(struct ur_between_hosts *h, const char *const leads[2], bool v6);
/* For a child: into one of them, with a /sys that shows its interfaces, if the kernel allows that. False and errno. */
bool ur_between_hosts_enter(const struct ur_between_hosts *h, unsigned i);

/* --- between_ready.c --- */

/* For a child, on the host of a program: returns when somebody listens there, on a TCP port or by the RDMA CM. */
void ur_between_await_listener(void);

/* --- between_script.c --- */

struct ur_between_script {
	bool wanted;
	bool native, files, v6; /* programs run without uroce; with the files of its device; have IPv6 addresses */
	bool allow_unused;      /* rules that were never applied */
	bool stop_first;        /* the first program does not end by itself */
	bool json;
	ur_time start_after; /* when the second program starts; 0: when the first listens */
};

/* `words`: the first program with its arguments, "--", and the second. The exit status. */
int ur_between_script_run(struct ur_between_run *r, const struct ur_between_script *s, int n, char **words);

#endif
