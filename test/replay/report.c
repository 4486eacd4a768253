/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences: one line each, "file, frame N: field: recorded X, replayed Y"; those of a whole side have no frame. */
#include <stdio.h>

#include "replay.h"

static void note(struct report *r, unsigned frame, const char *field)
{
	if (!r->differences++) {
		r->first_frame = frame;
		snprintf(r->first_field, sizeof(r->first_field), "%s", field);
	}
	if (!r->quiet && r->differences == REPORT_MAX + 1)
		printf("# %s: more differences on this side are not shown\n", r->file);
}

void report_text(struct report *r, unsigned frame, const char *field, const char *recorded, const char *replayed)
{
	char where[32] = "";

	note(r, frame, field);
	if (frame)
		snprintf(where, sizeof(where), ", frame %u", frame);
	if (!r->quiet && r->differences <= REPORT_MAX)
		printf("# %s%s: %s: recorded %s, replayed %s\n", r->file, where, field, recorded, replayed);
}

void report_num(struct report *r, unsigned frame, const char *field, uint64_t recorded, uint64_t replayed)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "%#llx", (unsigned long long)recorded);
	snprintf(b, sizeof(b), "%#llx", (unsigned long long)replayed);
	report_text(r, frame, field, a, b);
}
