/* SPDX-License-Identifier: BSD-3-Clause */
/* Which instances have their keys in common. */
#include <errno.h>
#include <stdlib.h>

#include "transport/state/keys.h"
#include "transport/state/token.h"
#include "transport/state/tp_priv.h"

/* Regions that others may copy from are so by the tokens of this lane as well. */
static void show_tokens(struct ur_tp *tp, const struct ur_tp *first)
{
	for (uint32_t i = 0; i < UR_TOKENS_HALF; i++)
		if (ur_token_of(first, ur_region_token_at(i)))
			ur_token_renew(tp, ur_region_token_at(i));
}

int ur_keys_open(struct ur_tp *tp)
{
	struct ur_keys *k = calloc(1, sizeof(*k));

	if (!k)
		return ENOMEM;
	ur_idtab_init(&k->table, UR_MAX_MR + UR_MAX_MW);
	k->lane[k->lanes++] = tp;
	tp->keys = k;
	return 0;
}

void ur_keys_leave(struct ur_tp *tp)
{
	struct ur_keys *k = tp->keys;

	for (unsigned i = 0; i < k->lanes; i++)
		if (k->lane[i] == tp) {
			k->lane[i] = k->lane[--k->lanes];
			break;
		}
	if (k->lanes)
		return;
	ur_idtab_fini(&k->table);
	free(k);
}

int ur_tp_join(struct ur_tp *tp, struct ur_tp *first)
{
	struct ur_keys *k = first->keys;

	if (k->lanes == UR_LANES)
		return ENOSPC;
	ur_keys_leave(tp);
	show_tokens(tp, first);
	k->lane[k->lanes++] = tp;
	tp->keys = k;
	return 0;
}
