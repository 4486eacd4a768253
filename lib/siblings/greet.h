/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the processes of one device and one user get to know one another. Each that takes part listens on the name of its slot; who comes
 * later connects to all the others, both sides look at the kernel's word on who the other is (SO_PEERCRED), and hand over their pages
 * (page.h). Where the user is another one, nothing is handed over and nothing is taken.
 *
 * A thread of its own does it, since an accepted connection may bring descriptors that wait when they are closed (a socket with SO_LINGER),
 * whoever sent them: such a guest keeps newcomers from us, and nothing else. The others are taken over by whoever has the NIC.
 */
#ifndef UR_GREET_H
#define UR_GREET_H

#include "host/greeting.h"

struct ur_greeter;

/*
 * `listener` is a socket with the slot's name (names.h), which becomes the greeter's. Returns when those that are there have answered, or
 * after a moment: one that is stopped answers when it goes on. 0 or an errno, with which the listener is still the caller's: EPERM when
 * the kernel does not tell users apart for us, who have user ID 65534 in a user namespace.
 */
int ur_greeter_open(uint64_t key, const struct ur_own_page *own, int listener, struct ur_greeter **out);
/* False: a guest keeps its thread waiting, which stays behind with all that it uses. */
bool ur_greeter_close(struct ur_greeter *g);
/* In a forked child, which has no such thread. */
void ur_greeter_abandon(struct ur_greeter *g);

/* Has anybody come since it was last asked? No system call. */
bool ur_greeter_changed(struct ur_greeter *g);
/* Who came for that slot and has not been taken over: the caller's from now on. NULL: nobody. */
struct ur_sibling *ur_greeter_take(struct ur_greeter *g, uint8_t slot);

#endif
