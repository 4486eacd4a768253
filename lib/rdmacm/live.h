/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ids that programs hold. A pointer to one that was destroyed is found out here without being looked at: the call fails with EINVAL
 * instead of doing harm, unless a newer id has got the same memory.
 */
#ifndef UR_RDMACM_LIVE_H
#define UR_RDMACM_LIVE_H

#include "cm/table.h"

struct ur_live {
	struct ur_cm_node node;
};

/*
 * Before any lock under which ids come and go is registered with pthread_atfork: handlers take their locks in the reverse order of
 * registration, and this one's lock is the innermost.
 */
void ur_live_watch_fork(void);
/* Harmless when it is there already. */
void ur_live_add(struct ur_live *l);
void ur_live_del(struct ur_live *l);
/* Only the pointer itself is used. */
bool ur_live_has(const struct ur_live *l);

#endif
