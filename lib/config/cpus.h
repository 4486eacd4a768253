/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs as the setting `cpus` names them. */
#ifndef UR_CPUS_H
#define UR_CPUS_H

#include <sched.h>
#include <stdbool.h>

/* "2,6-7", as taskset(1) lists CPUs; "" is none. False when it is no such list, or names a CPU beyond the 1024 of a cpu_set_t. */
bool ur_cpus_parse(const char *text, cpu_set_t *set);

#endif
