/* SPDX-License-Identifier: BSD-3-Clause */
/* What is found to be wrong. */
#ifndef UR_EXPLORE_VIOLATION_H
#define UR_EXPLORE_VIOLATION_H

/* The first call of it counts until it is forgotten. */
__attribute__((format(printf, 1, 2))) void violation(const char *format, ...);
/* What that said, or NULL. */
const char *violated(void);
void violation_forget(void);

#endif
