/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process publishes for observers (observe/status.h): the counters of the device, and the state of each QP. It is in sealed
 * memory that is open under /proc/PID/fd, so it needs no call and no file, and disappears with the process.
 *
 * The progress thread updates it now and then, never while it processes a packet, and a few QPs at a time. All functions except open and
 * close are called under the NIC's lock.
 */
#ifndef UR_PUBLISH_H
#define UR_PUBLISH_H

#include "nic/nic.h"

struct ur_publisher;

/* The texts are copied; `kind` is the port's. `lane` of the device. 0 or an errno. */
int ur_publisher_open(const char *device, unsigned lane, const char *interface, const char *kind, const struct ur_port *port, ur_time now,
		      struct ur_publisher **out);
/* Also in a forked child, whose parent's it is. */
void ur_publisher_close(struct ur_publisher *p);

/* Writes what is due. */
void ur_publisher_write(struct ur_publisher *p, const struct ur_nic *nic, ur_time now);
/* When ur_publisher_write is to be called next: sooner when something has happened since. UR_TIME_NEVER when nothing is left to be said. */
ur_time ur_publisher_next(const struct ur_publisher *p, const struct ur_nic *nic);
/* A call has changed something that no packet tells of. */
void ur_publisher_touch(struct ur_publisher *p);

#endif
