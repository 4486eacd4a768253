/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as tables for reading, or as rows of tab-separated values, one a figure, for 'tools/bench loss'. */
#ifndef UR_TEST_REPORT_H
#define UR_TEST_REPORT_H

#include "base/base.h"

struct report_column {
	const char *op, *peers, *metric;
};

struct report {
	bool tsv;
	const char *part;
	const struct report_column *column;
	unsigned columns;
};

/* A new table: `part` is the first word of its rows, `title` what it says. */
void report_begin(struct report *r, const char *part, const char *title, const struct report_column *column, unsigned columns);
/* `loss` in percent; `variant` is what else distinguishes the row, "-" if nothing. Values that are negative are not there. */
void report_row(const struct report *r, ur_time rtt, double loss, const char *variant, const double *value);

#endif
