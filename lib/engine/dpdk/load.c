/* SPDX-License-Identifier: BSD-3-Clause */
/* The module, when liburoce.so needs it for the first time. */
#include <stdint.h>

#include "drivers/ethdev/load.h"
#include "engine/dpdk/dpdk.h"

int ur_dpdk(const struct ur_ethdev_module **out, char *err, size_t errlen)
{
	static const struct ur_ethdev_module *module;
	/* By code, which is always mapped from the file: static data may lie behind what is. */
	const int rc = module ? 0 : ur_ethdev_load((const void *)(uintptr_t)ur_dpdk, &module, err, errlen);

	*out = module;
	return rc;
}
