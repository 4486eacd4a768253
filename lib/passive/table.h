/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table: which findings and facts of lib/analyze speak of which rule, and of whom. */
#ifndef UR_PASSIVE_TABLE_H
#define UR_PASSIVE_TABLE_H

#include "analyze/facts.h"

#define UR_PV_ANY 0xff

struct ur_pv_row {
	const char *rule; /* its name in lib/conform; NULL after the last */
	uint8_t kind;     /* enum ur_rule */
	uint8_t sub;      /* UR_PV_ANY: every one */
	uint8_t enough;   /* after this number of times, without ever having been right, no excuse counts; 0: an excuse always counts */
	bool by_dst;      /* it is the receiver that is judged */
	bool doubt;       /* the finding always has an excuse */
	uint32_t with, without;
};

extern const struct ur_pv_row ur_pv_rows[];

/* `with`: those of the finding, and what follows from its opcode. */
static inline bool ur_pv_row_fits(const struct ur_pv_row *r, const struct ur_finding *f, uint32_t with)
{
	return (r->sub == UR_PV_ANY || r->sub == f->sub) && (with & r->with) == r->with && !(with & r->without);
}

#endif
