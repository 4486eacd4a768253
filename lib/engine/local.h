/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between the processes of one device, which the wire would not return: each process has a mailbox in anonymous shared memory that
 * the others find through the registry. It vanishes with its process, however that ends.
 */
#ifndef UR_LOCAL_H
#define UR_LOCAL_H

#include "engine/nic.h"
#include "engine/registry.h"

struct ur_local;

/* Makes this process's mailbox. 0 or an errno: then the processes of this device do not reach one another. */
int ur_local_open(struct ur_registry *r, struct ur_local **out);
void ur_local_close(struct ur_local *l);
/* From now on somebody empties it: tells the other processes where it is. */
void ur_local_announce(struct ur_local *l);

/*
 * Copies a contiguous frame into the mailbox of a slot, or with slot 0 of every other live process. False when one was full, or locked for
 * too long: that process does not get the frame, as on a wire.
 */
bool ur_local_send(struct ur_local *l, uint8_t slot, const struct ur_pkt *p);
/* Takes up to n frames out of our mailbox into packets of the port; `alloc` as ur_port_ops. One load when it is empty. */
unsigned ur_local_recv(struct ur_local *l, struct ur_port *port, struct ur_pkt **pkts, unsigned n);

/* Becomes readable when a frame arrives while we said that we sleep. */
int ur_local_fd(const struct ur_local *l);
/* Says whether senders have to wake us. Returns false when frames wait already. */
bool ur_local_sleep(struct ur_local *l, bool asleep);

#endif
