/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests ended, as far as the wire shows. */
#include "between/account_priv.h"

#define SILENCE 4 /* times the last wait between two repetitions; back-off doubles it */

static bool is_over(const struct ur_account_connection *c)
{
	return c && c->state >= UR_CONNECTION_REJECTED;
}

/* It waited, and gave up: nothing has come although it would have, or the connection was closed with that. */
static bool given_up(const struct ur_account_connection *c, ur_time at, ur_time wait, ur_time now)
{
	return (is_over(c) && c->ended >= at) || now - ur_min_time(at, now) > SILENCE * wait;
}

enum ur_account_ending ur_account_ending(const struct ur_account *a, const struct ur_account_flow *w, ur_time now)
{
	const struct ur_account_connection *c = w->connection < 0 ? NULL : &a->connections.c[w->connection];
	const struct ur_account_waits *v = &w->waits;
	const unsigned least = w->partner < 0 ? 2 : 1; /* whose answers are not known, it may have been acknowledged */

	if (w->response)
		return UR_ENDING_OPEN;
	if (v->refused)
		return UR_ENDING_REFUSED;
	if (v->rnr.waits && given_up(c, v->rnr.at, v->rnr.timer, now))
		return UR_ENDING_RNR;
	if (v->vain.n >= least && given_up(c, v->vain.at, v->vain.last, now) && w->newest <= v->vain.at + v->vain.last)
		return UR_ENDING_RETRIES;
	return is_over(c) ? UR_ENDING_CLOSED : UR_ENDING_OPEN;
}
