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

const char *ur_qp_counter_name(unsigned i)
{
	static const char *const names[] = {"tx_packets", "tx_bytes", "rx_packets", "rx_bytes",
#define UR_QP_COUNTER_NAME(member, counter) #member,
					    UR_QP_COUNTERS(UR_QP_COUNTER_NAME)
#undef UR_QP_COUNTER_NAME
	};

	_Static_assert(ur_array_size(names) == UR_QP_COUNTER_COUNT, "a name for each");
	return i < UR_QP_COUNTER_COUNT ? names[i] : NULL;
}
