/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/ethdev as a module: a shared object with DPDK in it, which liburoce.so loads when a port of DPDK's is asked for
 * (lib/engine/dpdk/load.c), because DPDK's constructors and relocations would take time and memory of every program. One table is all that
 * it exports.
 *
 * Each of the two has a copy of what both link (lib/base, lib/wire, drivers/os, drivers/pci, drivers/pmd). These keep no state in static
 * variables, so two copies do as well as one: constants, and which kernel computes CRCs, which each finds out for itself. The exception is
 * lib/base/touch.c: its thread-local state is what liburoce's handlers of faults look at. So the module has liburoce copy what may be gone.
 */
#ifndef UR_ETHDEV_MODULE_H
#define UR_ETHDEV_MODULE_H

#include "drivers/ethdev/ethdev.h"

#define UR_ETHDEV_MODULE "liburoce-dpdk.so"        /* its file, in the folder `uroce` beside liburoce.so */
#define UR_ETHDEV_MODULE_TABLE "uroce_dpdk_module" /* the symbol of its table */

/* What liburoce does for its module. */
struct ur_ethdev_host {
	bool (*touch_copy)(void *to, const void *from, size_t len); /* lib/base/touch.h */
};

struct ur_ethdev_module {
	/* These two stand first in modules of all versions; the rest means something only where both are liburoce's own. */
	char version[32];   /* of uroce */
	char interface[64]; /* UR_ETHDEV_INTERFACE */

	/* Before anything else, once. */
	void (*attach)(const struct ur_ethdev_host *host);
	/* ur_ethdev_open */
	int (*open)(const struct ur_ethdev_config *cfg, struct ur_port **out, char *err, size_t errlen);
};

#endif
