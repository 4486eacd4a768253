/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_PRELOAD_H
#define UR_PRELOAD_H

/* Why the library cannot be preloaded into the program, as half a sentence (`statically linked, ...`); NULL when it can, or nobody knows.
 */
const char *ur_preload_obstacle(const char *program);

#endif
