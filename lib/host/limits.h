/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process needs at least of what is limited (setrlimit(2), seccomp(2)). Table: man/uroce.7; test: test/apps/hostile/limits.sh. */
#ifndef UR_LIMITS_H
#define UR_LIMITS_H

/* The errno of what the kernel refused for a limit, as half a sentence: what is missing, and what to do. Others as strerror(3). */
const char *ur_limit_reason(int err);

#endif
