/* SPDX-License-Identifier: BSD-3-Clause */
/* The module, when liburoce.so needs it for the first time. */
#include "drivers/ethdev/load.h"
#include "engine/dpdk.h"

int ur_dpdk(const struct ur_ethdev_module **out, char *err, size_t errlen)
{
	static const struct ur_ethdev_module *module;
	const int rc = module ? 0 : ur_ethdev_load(&module, &module, err, errlen);

	*out = module;
	return rc;
}
