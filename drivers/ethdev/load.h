/* SPDX-License-Identifier: BSD-3-Clause */
/* The module, for liburoce.so, and for the command, which takes ports without the engine. */
#ifndef UR_ETHDEV_LOAD_H
#define UR_ETHDEV_LOAD_H

#include "drivers/ethdev/module.h"

/*
 * `inside` is the address of a function of liburoce.so, beside whose file the module lies. 0 and the module, which stays for good; or an
 * errno and one sentence in err (errlen bytes). Once in a process.
 */
int ur_ethdev_load(const void *inside, const struct ur_ethdev_module **out, char *err, size_t errlen);

#endif
