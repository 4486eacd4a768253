/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK, when somebody asks for it. liburoce.so loads it as a module (load.c); programs that link the engine without liburoce.so, as
 * the unit tests do, have it linked in (linked.c).
 */
#ifndef UR_ENGINE_DPDK_H
#define UR_ENGINE_DPDK_H

#include "drivers/ethdev/module.h"

/* On the progress thread. 0 and the module, which stays for good; or an errno and one sentence in err (errlen bytes). */
int ur_dpdk(const struct ur_ethdev_module **out, char *err, size_t errlen);

#endif
