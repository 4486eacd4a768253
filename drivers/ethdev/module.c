/* SPDX-License-Identifier: BSD-3-Clause */
/* The module's own: its table, and what it leaves to liburoce. Only the shared object has this file. */
#include "drivers/ethdev/module.h"

#include "drivers/ethdev/interface.h"

static const struct ur_ethdev_host *host;

static void attach(const struct ur_ethdev_host *h)
{
	host = h;
}

/* In place of the one of lib/base/touch.c. Were that linked as well, there would be two of them, and no module. */
bool ur_touch_copy(void *to, const void *from, size_t len)
{
	return host->touch_copy(to, from, len);
}

extern const struct ur_ethdev_module uroce_dpdk_module;

__attribute__((visibility("default"))) const struct ur_ethdev_module uroce_dpdk_module = {
	.version = UR_VERSION,
	.interface = UR_ETHDEV_INTERFACE,
	.attach = attach,
	.open = ur_ethdev_open,
};
