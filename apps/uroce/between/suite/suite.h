/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce between --suite: cases, each of which is a run of `uroce between --script` in a process of its own. suite.c finds them and
 * prints their results, case.c runs one.
 */
#ifndef UR_APP_BETWEEN_SUITE_H
#define UR_APP_BETWEEN_SUITE_H

#include "apps/uroce/between/script/script.h"
#include "suite/suite.h"

struct ur_between_suite {
	const char *name;       /* a suite that the command contains, or a directory; NULL: no suite is wanted */
	const char *only;       /* a part of the names of cases, or a pattern of glob(7) */
	const char *options[2]; /* of the programs at either end */
	bool list, json;
};

/* `script` says on which hosts. `words`: the two interfaces, or nothing. The exit status. */
int ur_between_suite_run(const struct ur_between_suite *s, const struct ur_between_script *script, int n, char **words);

/* --- case.c --- */

/* The result of a case. */
struct ur_between_tried {
	struct ur_suite_facts facts;
	enum ur_suite_verdict verdict;
	char did[512], why[512];
	double seconds;
};

/* The signal that ended it, or 0. */
int ur_between_suite_stopped(void);
/* False after a message, or a signal: no more can be run. */
bool ur_between_suite_try(const struct ur_between_suite *s, const struct ur_between_script *script, char **interfaces,
			  const struct ur_suite_case *c, struct ur_between_tried *to);

#endif
