/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's own locks that have to survive a fork. One that another thread holds at that moment would stay taken in the child for ever:
 * so a fork takes all of them before it, in the order of this table, and both processes give them back. A thread that takes several does so
 * in this order.
 *
 * What else a fork concerns is the engine: a child forgets its parent's (open.c), whose lock is of no use there and is not waited for.
 */
#ifndef UR_ENGINE_FORK_H
#define UR_ENGINE_FORK_H

enum ur_fork_lock {
	UR_FORK_XRCD,    /* the XRC domains of ids that name none (lib/rdmacm/srq.c) */
	UR_FORK_IDS,     /* the devices of ids (lib/rdmacm/device.c) */
	UR_FORK_CONTEXT, /* the contexts that ids use (lib/verbs/context.c) */
	UR_FORK_DEVICE,  /* the devices that are current (lib/verbs/device.c) */
	UR_FORK_SHARES,  /* what contexts have in common (lib/verbs/share.c) */
	UR_FORK_LANES,   /* that a lane is made (lib/engine/lane.c), and the list of engines becomes longer */
	UR_FORK_LIVE,    /* which handles are alive (lib/verbs/live.c); held for a few instructions */
	UR_FORK_LOCKS
};

void ur_fork_lock(enum ur_fork_lock which);
void ur_fork_unlock(enum ur_fork_lock which);

#endif
