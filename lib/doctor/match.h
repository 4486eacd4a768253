/* SPDX-License-Identifier: BSD-3-Clause */
/* What a match of nftables says of a RoCEv2 packet, as far as the packet is known. */
#ifndef UR_DOCTOR_MATCH_H
#define UR_DOCTOR_MATCH_H

#include <jansson.h>

#include "doctor/firewall.h"

enum ur_tri { UR_NO, UR_MAYBE, UR_YES };

static inline enum ur_tri ur_tri_and(enum ur_tri a, enum ur_tri b)
{
	return a < b ? a : b;
}

static inline enum ur_tri ur_tri_not(enum ur_tri a)
{
	return (enum ur_tri)(UR_YES - a);
}

struct ur_match {
	const json_t *ruleset; /* the array of all objects */
	const char *dev;
	const char *peer; /* its address, or NULL */
	bool v6, outbound;
};

/* Does `left op right` hold? Names of sets are looked up in the table of `near`, a chain or a rule. */
enum ur_tri ur_match_value(const struct ur_match *m, const json_t *near, const json_t *left, const char *op, const json_t *right);
/* The elements of a set or map, given in place or by name; NULL when it has none. */
const json_t *ur_match_elements(const struct ur_match *m, const json_t *near, const json_t *set);

#endif
