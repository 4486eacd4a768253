/* SPDX-License-Identifier: BSD-3-Clause */
/* The names and descriptions of the counters, from the one table in counters.h. */
#include "base/counters.h"

static const struct {
	const char *name, *help;
} table[UR_C_COUNT] = {
#define UR_COUNTER_ROW(id, name, help) {name, help},
	UR_COUNTERS(UR_COUNTER_ROW)
#undef UR_COUNTER_ROW
};

const char *ur_counter_name(enum ur_counter c)
{
	return (unsigned)c < UR_C_COUNT ? table[c].name : NULL;
}

const char *ur_counter_help(enum ur_counter c)
{
	return (unsigned)c < UR_C_COUNT ? table[c].help : NULL;
}
