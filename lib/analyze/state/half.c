/* SPDX-License-Identifier: BSD-3-Clause */
/* Is there anything to say of a connection beside that it was there? */
#include "analyze/analyze.h"

bool ur_an_half_disturbed(const struct ur_an_half *h)
{
	uint64_t n = h->fatal + h->damaged + h->naks_rnr + h->marked;

	for (unsigned i = 0; i < UR_AN_PLACES; i++)
		n += h->lost[i] + h->answers_lost[i];
	for (unsigned i = 0; i < UR_AN_CAUSES; i++)
		n += h->repairs[i] + h->repeated[i];
	return n || h->open_tries > 1;
}

bool ur_an_conn_disturbed(const struct ur_an_conn *c)
{
	return ur_an_half_disturbed(&c->half[0]) || ur_an_half_disturbed(&c->half[1]) || c->half[0].findings || c->half[1].findings ||
	       c->half[0].naks_seq || c->half[1].naks_seq || c->cm_repeated;
}
