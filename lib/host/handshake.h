/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two processes exchange on a connection to the name of a slot (names.h): their identities and their pages (page.h). The processes of
 * one device and one user do so with one another (siblings/acceptor.h); an observer, which has no slot, queries all of them.
 */
#ifndef UR_HANDSHAKE_H
#define UR_HANDSHAKE_H

#include <sys/socket.h>
#include <sys/types.h>

#include "host/page.h"

struct ur_hang_ups;

#define UR_HANDSHAKE_MAGIC 0x75726f6365000e00ull /* what a handshake begins with; its last bytes are the version of the page's layout */
#define UR_HANDSHAKE_MS 300                      /* how long a newcomer waits for the others, and an onlooker */

/* What either side says, with its page and what wakes it. An onlooker has slot 0 and sends neither. */
struct ur_handshake {
	uint64_t magic;
	uint32_t id;
	uint8_t slot, zero[3];
};

/* The name of a slot, of UR_NAME_MAX bytes; who takes part listens on a socket of that name. */
void ur_slot_name(uint64_t key, uint8_t slot, char *name);

/* The kernel's word on who is at the other end. */
bool ur_handshake_peer(int fd, struct ucred *c);
/* With the descriptors of `own`, if it is not NULL. Never waits. */
bool ur_handshake_send(int fd, const struct ur_own_page *own);
/*
 * What the other side says, with its two descriptors, which are the caller's; -1 when it sent none. False when it is nothing that makes
 * sense; the descriptors are -1 then, and closed by way of `refused` (hang_up.h), and errno is EMFILE if this process had no room for them.
 * Never waits.
 */
bool ur_handshake_receive(int fd, struct ur_handshake *g, int fds[2], struct ur_hang_ups *refused);

/* What the kernel and the process itself say of who is at a slot. */
struct ur_slot_user {
	pid_t pid; /* as it is called here; 0 in another pid namespace */
	uid_t uid;
	int memfd; /* its page (ur_page_check), to be closed; -1: it is another user's, or did not answer in time */
};

/* Asks all slots of a device at once, for an onlooker that has none. `user` has UR_SLOTS places; pid, uid and memfd are -1 where nobody
 * listens. */
void ur_handshake_ask(uint64_t key, struct ur_slot_user *user);

#endif
