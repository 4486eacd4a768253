/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory is asked for, and memory that is not to be had. */
#ifndef UR_TEST_CALLOC_H
#define UR_TEST_CALLOC_H

#include <stdbool.h>
#include <stddef.h>

extern bool no_calloc;                       /* calloc(3) returns NULL */
extern _Thread_local size_t bytes_asked_for; /* by this thread, of calloc(3) and aligned_alloc(3), freed or not */

#endif
