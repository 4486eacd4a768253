/* SPDX-License-Identifier: BSD-3-Clause */
/* What registry.c (slots, acquaintances, sharers) and registry_ports.c (the ports) share. */
#ifndef UR_REGISTRY_PRIV_H
#define UR_REGISTRY_PRIV_H

#include "host/hang_up.h"
#include "siblings/acceptor.h"
#include "siblings/registry.h"

struct ur_registry {
	uint64_t key;
	uint8_t slot;
	int name_fd;    /* holds the slot */
	int listener;   /* with the slot's name; the acceptor's once there is one */
	int probe_fd;   /* to ask for names with */
	int turn_fd;    /* while it is our turn to join or leave the sharers; -1 */
	struct ur_hang_ups turn_guests; /* who connected to it and was never looked at */
	unsigned turn_looks; /* at a holder of the turn that could not be recognised */
	int share_fd;   /* while we are among them; -1 */
	struct ur_own_page own;
	struct ur_acceptor *acceptor; /* NULL before we have joined */
	bool joined;
	struct ur_sibling *sibling[UR_SLOTS];
	uint32_t changes; /* of that */
	unsigned steps; /* that this call may still take in tables of others */
	unsigned naps;  /* and the waits */
	int *names;     /* for each entry of our table 1 + what holds the name of a port that is listened on, or 0 */
};

/* registry_ports.c: gives back the names of all ports. */
void ur_registry_drop_names(struct ur_registry *r);
/* Does another process listen on the port at an address or wildcard that covers `dst`? */
bool ur_registry_listened_on(struct ur_registry *r, uint16_t port_space, uint16_t port, const struct ur_gid *dst);
/* Did another process of this user do so, in any port space, less than UR_CM_LEFT ago? */
bool ur_registry_left(const struct ur_registry *r, uint16_t port, const struct ur_gid *dst);

#endif
