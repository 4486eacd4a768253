/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --script: two programs, each on a host of its own, and the cable between them. hosts.c makes the hosts,
 * script.c runs the programs, execute.c becomes one of them, ready.c finds out when the first of them listens.
 */
#ifndef UR_APP_BETWEEN_SCRIPT_H
#define UR_APP_BETWEEN_SCRIPT_H

#include <netinet/in.h>

#include "apps/uroce/between/between.h"

#define UR_BETWEEN_HOST_IF "eth0" /* what the interface of a host is called there */

/* --- hosts.c: network namespaces without a name, of which nothing remains when nobody is in them any more --- */

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

/* --- ready.c --- */

/* For a child, on the host of a program: returns when somebody listens there, on a TCP port or by the RDMA CM. */
void ur_between_await_listener(void);

/* --- script.c --- */

struct ur_between_script {
	bool wanted;
	bool native, files, v6; /* programs run without uroce; with the files of its device; have IPv6 addresses */
	bool allow_unused;      /* rules that were never applied */
	bool stop_first;        /* the first program does not end by itself */
	bool json;
	ur_time start_after;    /* when the second program starts; 0: when the first listens */
	const char *run[2];     /* of existing hosts: the command that starts `sh` there, such as `ssh host1`. Both or none */
	const char *address[2]; /* of these */
	uint64_t port;          /* the TCP port on which the first program listens there */
};

/* `words`: for existing hosts the two interfaces that lead to them; then the first program with its arguments, "--", and the second.
 * Returns the exit status. */
int ur_between_script_run(struct ur_between_run *r, const struct ur_between_script *s, int n, char **words);

/* --- execute.c: for a child. They return only when that is not possible --- */

/* Becomes program i, on a host of this machine, in which it is, or on another one, where it has at most this number of seconds. */
void ur_between_execute(const struct ur_between_script *how, unsigned i, const struct ur_between_program *p, uint64_t seconds);
/* Becomes a process that ends when a program listens on the TCP port of the first host, which is not this machine. */
void ur_between_execute_waiter(const struct ur_between_script *how);

#endif
