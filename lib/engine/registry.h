/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of one device share: a small file in /dev/shm with a slot for each process and the ports they are bound to. A slot
 * belongs to whoever holds the lock on its byte, so the kernel frees the slot of a process that crashes, and its ports with it.
 */
#ifndef UR_REGISTRY_H
#define UR_REGISTRY_H

#include <sys/types.h>

#include "base/base.h"

struct ur_registry;

/* `key` names the device on this host. Takes a slot (1 to 255). 0, EAGAIN when all are taken, or the errno of the file. */
int ur_registry_open(uint64_t key, struct ur_registry **out);
/* Gives slot and ports back; the last one out removes the file. */
void ur_registry_close(struct ur_registry *r);
/* In a forked child: forgets the parent's registry without giving anything back. */
void ur_registry_abandon(struct ur_registry *r);
uint8_t ur_registry_slot(const struct ur_registry *r);
uint64_t ur_registry_key(const struct ur_registry *r);

/* This process's port, of that kind ("udp"), is open: from now on it answers what is for nobody in particular. */
void ur_registry_started(struct ur_registry *r, const char *kind);

/* Tells the other processes where this one's mailbox (local.h) is: a descriptor of a process. */
void ur_registry_announce(struct ur_registry *r, pid_t pid, int fd);
/*
 * The processes that share a socket's port, in the order in which they joined; when one goes, the last takes its place (ur_udp_steer).
 * Nobody joins or leaves between `begin`, which copies the slots of the others that live and returns their number, and `end`, which puts
 * this process behind them if it is `in` and else leaves it out.
 */
unsigned ur_registry_sharers_begin(struct ur_registry *r, uint8_t slots[256]);
void ur_registry_sharers_end(struct ur_registry *r, bool in);

/* Does a live process hold the slot? */
bool ur_registry_alive(const struct ur_registry *r, uint8_t slot);
/* The mailbox of a slot. `lease` tells successive owners of a slot apart. False when nobody has the slot or its owner has no mailbox. No
 * system call. */
bool ur_registry_find(const struct ur_registry *r, uint8_t slot, uint32_t *lease, pid_t *pid, int *fd);

/*
 * Binds *port of a port space at an address or a wildcard (wire/gid_set.h), or with *port 0 a free ephemeral one. When a live process has
 * it at an overlapping address and not both say reuse, EADDRINUSE, or as Linux has it EADDRNOTAVAIL if either is a wildcard; ENOSPC when
 * the table is full.
 */
int ur_registry_bind(struct ur_registry *r, uint16_t port_space, const struct ur_gid *gid, bool reuse, uint16_t *port);
void ur_registry_release(struct ur_registry *r, uint16_t port_space, const struct ur_gid *gid, uint16_t port);
/* Marks a port of ours as listened on. It cannot be shared then: the errors of ur_registry_bind when it is. */
int ur_registry_listen(struct ur_registry *r, uint16_t port_space, const struct ur_gid *gid, uint16_t port, bool on);
/* Binds a bound port to another address or with another `reuse`; the errors of ur_registry_bind. */
int ur_registry_move(struct ur_registry *r, uint16_t port_space, const struct ur_gid *from, const struct ur_gid *to, bool reuse,
		     uint16_t port);
/*
 * Who answers a request for a port that this process does not listen on? True: another process listens there, or another one (that with the
 * lowest slot of those that have started) refuses it.
 */
bool ur_registry_elsewhere(struct ur_registry *r, uint16_t port_space, uint16_t port, const struct ur_gid *dst);

/* Nobody has the slot, and of those that have started this process has the lowest: it answers what is for the slot's last owner. */
bool ur_registry_orphaned(struct ur_registry *r, uint8_t slot);

/* --- looking from outside --- */

/* A port that a process is bound to. */
struct ur_registry_port {
	uint16_t port_space, port; /* host order */
	bool listening;
	struct ur_gid gid; /* or a wildcard */
};

#define UR_REGISTRY_KIND 8

struct ur_registry_process {
	pid_t pid; /* as the process sees itself: in another pid namespace it means somebody else here */
	uint8_t slot;
	bool started; /* its port is open */
	char kind[UR_REGISTRY_KIND]; /* of its port */
	unsigned port_count;
	const struct ur_registry_port *ports;
};

/* The live processes at one moment, in order of their slots. */
struct ur_registry_view {
	unsigned count;
	struct ur_registry_process processes[];
};

/*
 * Who uses the device named by `key`? Takes no slot, and neither makes nor changes the file; without a file the view is empty. 0 and a view
 * to be freed with free(), or ENOMEM, or the errno of the file.
 */
int ur_registry_look(uint64_t key, struct ur_registry_view **out);

#endif
