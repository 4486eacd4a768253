/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The will of this process (keeper/will.h): what its keeper shall say, kept up to date. The keeper starts with the first entry; who never
 * has any, has no keeper. All but ur_will_serve under the NIC's lock.
 */
#ifndef UR_WILL_LIST_H
#define UR_WILL_LIST_H

#include "cm/cm.h"

struct ur_engine;
struct ur_will_list;

/* For an interface shared with the kernel, by which the keeper sends. `first` is called when something is there for the keeper to say. */
int ur_will_open(const char *ifname, int ifindex, void (*first)(struct ur_engine *e), struct ur_engine *e, struct ur_will_list **out);
/* Also in a forked child, whose parent's will it is. */
void ur_will_close(struct ur_will_list *w);

/* As ur_cm_config.will. What cannot be written down is not said. */
void ur_will_mad(struct ur_will_list *w, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad);
/* The groups that nobody would leave for us. */
void ur_will_groups(struct ur_will_list *w, const struct ur_gid *groups, unsigned n);

/* Starts the keeper if one is due; on the progress thread, without the lock. It happens once. */
void ur_will_serve(struct ur_will_list *w);

#endif
