/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The farewells of this process (keeper/farewell_page.h): what its keeper is to send when it dies, kept up to date. The keeper starts with
 * the first entry; a process without entries has no keeper. All but ur_farewells_serve and
 * ur_farewells_put_ack under the NIC's lock, the last one under that of any lane.
 */
#ifndef UR_FAREWELLS_H
#define UR_FAREWELLS_H

#include "cm/cm.h"

struct ur_engine;
struct ur_farewells;
struct ur_last_ack; /* wire/last_ack.h */

/* For an interface shared with the kernel, by which the keeper sends. `first` is called when something is there for the keeper to say. */
int ur_farewells_open(const char *ifname, int ifindex, void (*first)(struct ur_engine *e), struct ur_engine *e, struct ur_farewells **out);
/* Also in a forked child, whose parent's they are. */
void ur_farewells_close(struct ur_farewells *w);

/* As ur_cm_config.farewell. What cannot be written down is not said. */
void ur_farewells_put_mad(struct ur_farewells *w, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad);
/*
 * What a QP that goes has acknowledged last, at `now` of CLOCK_MONOTONIC: for the keeper to say again if the process ends soon. A process
 * that has no keeper gets none for that.
 */
void ur_farewells_put_ack(struct ur_farewells *w, const struct ur_last_ack *ack, ur_time now);
/* The groups that nobody would leave for us. */
void ur_farewells_put_groups(struct ur_farewells *w, const struct ur_gid *groups, unsigned n);

/*
 * Starts the keeper if one is due; on the progress thread, without the lock. It happens once. NULL, or why there is none although it was
 * due: the process does as well without it.
 */
const char *ur_farewells_serve(struct ur_farewells *w);

#endif
