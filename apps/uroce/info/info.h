/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of `uroce info` share. */
#ifndef UR_INFO_H
#define UR_INFO_H

#include <sys/types.h>

#include "host/device/device.h"

/* processes.c: the processes that use the device right now. 0, or the exit status after a message. */
int ur_info_processes(const struct ur_device *d);
/*
 * counters.c: the counters, of the processes that use the device, which are not zero, or with `all` every counter. `d` is NULL without
 * a device: then of all processes. 0, or the exit status after a message.
 */
int ur_info_counters(const struct ur_device *d, bool all);
/* prometheus.c: the counters of all processes of this host, for Prometheus. 0, or the exit status after a message. */
int ur_info_prometheus(const char *prefix);
/* pci.c: the PCI NICs of this host. 0. */
int ur_info_pci(void);
/* keeper.c: a line about the keeper that the process has for that interface, if it has one. */
void ur_info_keeper(pid_t of, const char *ifname);

#endif
