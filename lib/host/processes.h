/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that use a device, for an observer that takes no slot and is not one of them. */
#ifndef UR_PROCESSES_H
#define UR_PROCESSES_H

#include <sys/types.h>

#include "host/page.h"

/* A port that a process is bound to. */
struct ur_process_port {
	uint16_t port_space, port; /* host order */
	bool listening;
	struct ur_gid gid; /* or a wildcard */
};

#define UR_PROCESS_LANES 15

struct ur_process {
	pid_t pid; /* 0: of another pid namespace */
	uid_t uid;
	uint8_t slot;
	uint8_t further[UR_PROCESS_LANES]; /* slots of its further lanes */
	unsigned lanes;                    /* how many of these there are */
	bool known;            /* the rest is known: it is of this user, or we are the superuser, and it is not stopped */
	bool started;          /* its port is open */
	char kind[UR_KIND];    /* of its port */
	unsigned met, fetched; /* the others that it knows of; those from whose memory it copies long messages */
	unsigned port_count;
	const struct ur_process_port *ports;
};

/* The live processes that have joined, in order of their slots. */
struct ur_processes {
	unsigned count;
	struct ur_process processes[];
};

/* Who uses the device named by `key`? Takes no slot. 0 and a view to be freed with free(), or ENOMEM. */
int ur_processes_list(uint64_t key, struct ur_processes **out);

#endif
