/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/keeper: a program of a few kilobytes that outlives a process by a second, to say what the process would have said had it not been
 * killed: to the peers of its connections that they have ended, to the network that its groups have been left. And what it has said last:
 * the last acknowledgement of a QP may have been lost, and its peer, if nobody answers, may ask for ever (rdma_rxe with a retry count of
 * 7). It needs no privilege, for all that it does is send UDP datagrams to port 4791 and join and leave groups by the kernel's sockets. It
 * stands alone: no library, so that it starts in a fraction of a millisecond and costs a few pages; its bytes are a part of the library,
 * which starts it from memory.
 *
 * This header is what the process writes for it, in shared memory that only they have. The process may die at any instruction,
 * so an entry counts only while its kind is not 0, which is written last; and whatever stands there, the keeper reads once and checks.
 */
#ifndef UR_FAREWELL_PAGE_H
#define UR_FAREWELL_PAGE_H

#include "base/base.h"

#define UR_FAREWELL_MADS 16384 /* connections; those beyond have no keeper */
#define UR_FAREWELL_GROUPS 1024
#define UR_FAREWELL_ACKS 1024                  /* QPs, the last that went */
#define UR_FAREWELL_ACK_NS (2ull * 1000000000) /* before the end: those that went earlier are asked for no more */
#define UR_FAREWELL_ACK_LEN 16                 /* BTH and AETH */
#define UR_FAREWELL_NAME 16                    /* IFNAMSIZ */
#define UR_FAREWELL_MAD_LEN 256

/* Addresses as in a GID. */
struct ur_farewell_ends {
	struct ur_gid src, dst;
	uint8_t tclass, hop_limit;
};

/* The message that a peer's QP 1 should hear. */
struct ur_farewell_mad {
	uint32_t kind; /* 0: nothing here; 1: a message */
	struct ur_farewell_ends ends;
	uint8_t mad[UR_FAREWELL_MAD_LEN];
};

/* The acknowledgement that a peer's QP may not have heard. */
struct ur_farewell_ack {
	uint32_t kind; /* as above */
	struct ur_farewell_ends ends;
	uint8_t headers[UR_FAREWELL_ACK_LEN];
	uint64_t at; /* when the QP went: CLOCK_MONOTONIC, ns */
};

struct ur_farewell_page {
	int32_t ifindex;
	char ifname[UR_FAREWELL_NAME]; /* the interface that all of it is about */
	uint32_t ngroups;              /* memberships that nobody would end */
	uint32_t nmads, nacks;         /* entries beyond have never been used, and have no memory */
	struct ur_gid group[UR_FAREWELL_GROUPS];
	struct ur_farewell_ack ack[UR_FAREWELL_ACKS];
	struct ur_farewell_mad mad[UR_FAREWELL_MADS];
};

/* The descriptors that the keeper finds when it starts. */
enum {
	UR_KEEPER_PAGE, /* the page, sealed so that it cannot shrink */
	UR_KEEPER_PIPE, /* its other end is closed when the process executes another program or dies */
	UR_KEEPER_PID,  /* a pidfd of the process: children that it forked may keep the pipe open; perhaps there is none */
};

/* Its name and argv[0]; argv[1] is the process id of whom it is for, in its own pid namespace, and argv[2] the interface. */
#define UR_KEEPER_NAME "uroce-keeper"

#endif
