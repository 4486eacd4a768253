/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is not to be had. */
#ifndef UR_TEST_CALLOC_H
#define UR_TEST_CALLOC_H

#include <stdbool.h>

extern bool no_calloc; /* calloc(3) returns NULL */

#endif
