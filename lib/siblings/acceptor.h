/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the processes of one device and one user get to know one another. Each process listens on the name of its slot; a new process
 * connects to all the others, both sides check the other's credentials from the kernel (SO_PEERCRED), and exchange their pages (page.h).
 * With a process of another user nothing is exchanged.
 *
 * This has its own thread, because a stopped program answers late. What a stranger sends, and a message that makes no sense, is closed
 * without anybody waiting for it (host/hang_up.h). The thread that holds the NIC takes over the processes that were found.
 */
#ifndef UR_ACCEPTOR_H
#define UR_ACCEPTOR_H

#include "host/handshake.h"

struct ur_acceptor;

/*
 * `listener` is a socket with the slot's name (names.h), which becomes the acceptor's. Returns when those that are there have answered, or
 * after a moment: one that is stopped answers when it goes on. 0 or an errno, with which the listener is still the caller's: EPERM when
 * the kernel does not tell users apart for us, who have user ID 65534 in a user namespace.
 */
int ur_acceptor_open(uint64_t key, const struct ur_own_page *own, int listener, struct ur_acceptor **out);
/* False: its thread does not end; it stays, with all that it uses. */
bool ur_acceptor_close(struct ur_acceptor *g);
/* In a forked child, which has no such thread. */
void ur_acceptor_abandon(struct ur_acceptor *g);

/* Has anybody come since it was last asked? No system call. */
bool ur_acceptor_changed(struct ur_acceptor *g);
/* Who came for that slot and has not been taken over: the caller's from now on. NULL: nobody. */
struct ur_sibling *ur_acceptor_take(struct ur_acceptor *g, uint8_t slot);

#endif
