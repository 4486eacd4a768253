/* SPDX-License-Identifier: BSD-3-Clause */
/* See report.h. */
#include "test/sim/loss/report.h"

#include <stddef.h>
#include <stdio.h>

static void head(const struct report *r, const char *what, size_t at)
{
	printf("%10s %8s %-14s", what, "", "");
	for (unsigned i = 0; i < r->columns; i++)
		printf(" %12s", *(const char *const *)((const char *)&r->column[i] + at));
	printf("\n");
}

void report_begin(struct report *r, const char *part, const char *title, const struct report_column *column, unsigned columns)
{
	r->part = part;
	r->column = column;
	r->columns = columns;
	if (r->tsv)
		return;
	printf("\n%s: %s\n\n", part, title);
	head(r, "", offsetof(struct report_column, op));
	head(r, "", offsetof(struct report_column, peers));
	head(r, "RTT, loss", offsetof(struct report_column, metric));
}

void report_row(const struct report *r, ur_time rtt, double loss, const char *variant, const double *value)
{
	unsigned us = (unsigned)(rtt / UR_NS_PER_US);

	if (!r->tsv)
		printf("%7u us %6g %% %-14s", us, loss, variant);
	for (unsigned i = 0; i < r->columns; i++) {
		const struct report_column *c = &r->column[i];
		char figure[32] = "-";

		if (value[i] >= 0)
			snprintf(figure, sizeof(figure), value[i] < 1000 ? "%.4g" : "%.0f", value[i]);
		if (r->tsv)
			printf("%s\t%u\t%s\t%s\t%g\t%s\t%s\t%s\n", r->part, us, c->op, c->peers, loss, variant, c->metric, figure);
		else
			printf(" %12s", figure);
	}
	if (!r->tsv)
		printf("\n");
	fflush(stdout);
}
