/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows that no message of the connection manager announced, beside those that were announced and got nothing. */
#ifndef UR_AN_STRANGER_H
#define UR_AN_STRANGER_H

#include "analyze/state/state.h"

struct an_stranger { /* by its hosts and first PSN */
	uint64_t key;
	uint32_t conn;
	bool told; /* together with those behind it that have the same key */
};

/* Sorted by their keys; to be freed. NULL when memory is short, and *n is 0 then. */
struct an_stranger *an_strangers_of(const struct ur_analysis *a, uint32_t *n);
/* When nothing goes to the QP that the exchange agreed on, for flow `i` of it: others get packets with its PSN, which is said of each once.
 */
void an_stranger_tell(struct ur_analysis *a, const struct an_cm *c, unsigned i, struct an_stranger *s, uint32_t n);

#endif
