/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules of the unit tests beside one another, each in a process of its own. */
#ifndef UR_UNIT_RUNNER_H
#define UR_UNIT_RUNNER_H

#include <stdbool.h>

struct module {
	const char *name;
	void (*add)(void); /* registers its suite with CUnit */
	bool alone;	   /* runs when all others have ended, and nothing of ours beside it */
};

struct runner {
	const struct module *const *modules; /* in this order they start */
	unsigned n;
	unsigned jobs;	  /* processes at a time */
	unsigned limit_s; /* how long one may take */
	bool verbose;	  /* shows what all modules say, not only those that fail */
};

/* Prints a summary as CUnit does. A module that crashes, hangs or ends early is a failed test, and the others go on. Returns whether all
 * passed. */
bool run_beside(const struct runner *r);

/* Adds a module's suite to CUnit's registry: false if it brought no test. */
bool add_module(const struct module *m);

/* Goes to a network of its own, where another run does not meet this one, or waits until no other is without one. */
void private_network(void);

#endif
