/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of one device share. A slot belongs to the process that holds its name in the network namespace (names.h), whatever
 * its user, so the kernel frees it when a process dies. Everything else (ports, mailboxes, which process shares a socket) the processes of
 * one user read from one another's pages (page.h), each of which only its owner can write. No process waits for another, except a new one,
 * for a moment.
 *
 * The users of a registry in one process serialise their calls themselves, by the engine's lock.
 *
 * Between users only names are shared: slots, and the ports with listeners.
 */
#ifndef UR_REGISTRY_H
#define UR_REGISTRY_H

#include <sys/types.h>

#include "base/base.h"
#include "host/page.h"

struct ur_registry;

/* `key` names the device in this network namespace. Takes a slot (1 to 255). 0, EAGAIN when all are taken, or an errno. */
int ur_registry_open(uint64_t key, struct ur_registry **out);
/* Another slot for the same process and device, of the upper half alone, so that the lower half is left to processes. */
int ur_registry_open_further(uint64_t key, struct ur_registry **out);
/* Gives slot and ports back. */
void ur_registry_close(struct ur_registry *r);
/* In a forked child: forgets the parent's registry without giving anything back. */
void ur_registry_abandon(struct ur_registry *r);
uint8_t ur_registry_slot(const struct ur_registry *r);
uint64_t ur_registry_key(const struct ur_registry *r);

/*
 * Gets to know the other processes of this user; once. Binding a port does so too. Takes as long as they need to answer, a third of a
 * second at most: one that is stopped becomes known when it goes on. 0 or an errno: then they do not know of one another.
 */
int ur_registry_join(struct ur_registry *r);
/* This process's port, of that kind ("udp"), is open: from now on it answers what is for nobody in particular. */
void ur_registry_started(struct ur_registry *r, const char *kind);

/* This process's page: the mailbox in it is local.h's. */
const struct ur_own_page *ur_registry_page(const struct ur_registry *r);
/* Takes over the siblings that have introduced themselves. Returns a number that changes when a sibling has come or gone. */
uint32_t ur_registry_meet(struct ur_registry *r);
/* The process of this user that has the slot, or had it last; NULL when none is known. Valid until the next call of `meet` or `forget`. */
const struct ur_sibling *ur_registry_sibling(const struct ur_registry *r, uint8_t slot);
/* Forgets the process that had the slot, if it has ended. */
void ur_registry_forget(struct ur_registry *r, uint8_t slot);

/*
 * The processes that share a socket's port, in the order in which they joined; when one goes, the last takes its place (as struct
 * ur_port_sharing has them).  ur_registry_turn asks for the turn to join, to leave or to look; false: another process of this user has it,
 * for a moment unless it is stopped, so ask again a little later, without holding a lock. Between `begin`, which copies the slots of those
 * that live and returns their number, and `end`, no other joins or leaves with the turn; without it they work as well, except for packets
 * that have to be passed on. With `leave` this process is one of them no more, with `join` it is the last.
 */
bool ur_registry_turn(struct ur_registry *r);
unsigned ur_registry_sharers_begin(struct ur_registry *r, uint8_t slots[256], bool leave);
void ur_registry_sharers_end(struct ur_registry *r, bool join);

/* On which ports does the process with that slot, or this one, listen? At most this many are returned; of one that we have not met, none.
 */
unsigned ur_registry_listened(const struct ur_registry *r, uint8_t slot, uint16_t port[UR_PORTS_LISTENED]);

/* Does a live process hold the slot? */
bool ur_registry_alive(const struct ur_registry *r, uint8_t slot);

/*
 * Binds *port of a port space at an address or a wildcard (wire/gid_set.h), with *port 0 a free ephemeral one. When a live process of this
 * user has it at an overlapping address and not both say reuse, EADDRINUSE; EADDRNOTAVAIL when no ephemeral one is free; ENOSPC when the
 * table is full. Of two that bind at the same moment the one with the lower slot wins.
 */
int ur_registry_bind(struct ur_registry *r, uint16_t port_space, const struct ur_gid *gid, bool reuse, uint16_t *port);
void ur_registry_release(struct ur_registry *r, uint16_t port_space, const struct ur_gid *gid, uint16_t port);
/*
 * Marks a port of ours as listened on. It cannot be shared then: the errors of ur_registry_bind when it is, and EADDRINUSE when another
 * user's process listens on it at the same address or a wildcard. EAGAIN: the name is taken while this process starts its keeper, which may
 * have a copy of it; ask again in a millisecond, without the lock.
 */
int ur_registry_listen(struct ur_registry *r, uint16_t port_space, const struct ur_gid *gid, uint16_t port, bool on);
/* Binds a bound port to another address or with another `reuse`; the errors of ur_registry_bind. */
int ur_registry_move(struct ur_registry *r, uint16_t port_space, const struct ur_gid *from, const struct ur_gid *to, bool reuse,
		     uint16_t port);
/*
 * Who answers a request for a port that this process does not listen on? True: another process listens there, of whatever user, or one of
 * this user did so less than UR_CM_LEFT ago and may do so again, or another one (that with the lowest slot of those that have started)
 * refuses it.
 */
bool ur_registry_other_answers(struct ur_registry *r, uint16_t port_space, uint16_t port, const struct ur_gid *dst);

/* Nobody has the slot, and of those of this user that have started this process has the lowest: it answers what is for its last owner. */
bool ur_registry_orphaned(struct ur_registry *r, uint8_t slot);

#endif
