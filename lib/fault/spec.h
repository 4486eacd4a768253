/* SPDX-License-Identifier: BSD-3-Clause */
/* The setting `fault` as text: faults with their probabilities, and rules. fault/inject.h injects them. */
#ifndef UR_FAULT_SPEC_H
#define UR_FAULT_SPEC_H

#include <stddef.h>

#include "fault/rule.h"

#define UR_FAULT_RULES 8
#define UR_FAULT_TEXT 1024 /* of the whole specification, with its end */

struct ur_fault_spec { /* probabilities in parts per million */
	uint32_t drop, dup, reorder, corrupt;
	unsigned dir; /* of enum ur_fault_dir */
	uint64_t seed;
	struct ur_fault_rule rules[UR_FAULT_RULES];
	unsigned nrules;
};

/*
 * "drop=1%,dup=0.005,reorder=1%,corrupt=1%,dir=tx|rx|both,seed=N", and rules between the commas (ur_fault_rule_parse), which are of at
 * least two words. 0, or EINVAL and one sentence in err.
 */
int ur_fault_parse(const char *text, struct ur_fault_spec *s, char *err, size_t errlen);

#endif
