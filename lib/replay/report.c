/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences: the first is stored, the first ten are reported, all are counted. */
#include <stdio.h>

#include "replay/replay.h"

void report_text(struct report *r, unsigned frame, const char *field, const char *recorded, const char *replayed)
{
	if (!r->differences++) {
		r->first_frame = frame;
		snprintf(r->first_field, sizeof(r->first_field), "%s", field);
	}
	if (r->tell && r->differences <= REPORT_MAX)
		r->tell(r->ctx, frame, field, recorded, replayed);
}

void report_num(struct report *r, unsigned frame, const char *field, uint64_t recorded, uint64_t replayed)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "%#llx", (unsigned long long)recorded);
	snprintf(b, sizeof(b), "%#llx", (unsigned long long)replayed);
	report_text(r, frame, field, a, b);
}
