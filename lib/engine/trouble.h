/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection that is not made is explained in one sentence on stderr, for the human who started the program: what was seen, and the
 * command that finds out more. Each thing is said once for each destination, and only where stderr is a terminal or UROCE_LOG asks for it.
 */
#ifndef UR_TROUBLE_H
#define UR_TROUBLE_H

#include "nic/nic.h"

#define UR_TROUBLE_TEXT 512
#define UR_TROUBLE_PEERS 32 /* that are told apart; of others nothing is said */

struct ur_troubles {
	unsigned n;
	struct {
		struct ur_gid gid;
		uint64_t said; /* a bit for each thing */
	} at[UR_TROUBLE_PEERS];
};

/* How much a human wants to hear: nothing; what is wrong; and what may be a program's own way of working, such as its rejections. */
enum ur_trouble_wish { UR_TROUBLE_QUIET, UR_TROUBLE_FAILURES, UR_TROUBLE_ALL };

/* Is that to be said? Once for each destination. */
bool ur_trouble_is_new(struct ur_troubles *s, enum ur_trouble_wish wish, const struct ur_cm_trouble *t);
/* The sentence. `dev`: the shared interface that `uroce doctor` may look at, or NULL. */
const char *ur_trouble_text(const struct ur_cm_trouble *t, const char *dev, char text[UR_TROUBLE_TEXT]);

#endif
