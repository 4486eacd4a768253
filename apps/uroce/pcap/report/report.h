/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap report: report.c chooses what the page has and reads the file, frames.c makes rows of frames, data.c writes
 * what plots are drawn from, page.c the page. Everything is bounded, so that a browser can show the page of any recording.
 */
#ifndef UR_REPORT_H
#define UR_REPORT_H

#include "apps/uroce/pcap/plot/plot.h"
#include "apps/uroce/pcap/read/read.h"

#define UR_REPORT_FINDINGS 1000
#define UR_REPORT_CONNECTIONS 200 /* in the table and the verdict */
#define UR_REPORT_DATAGRAMS 100
#define UR_REPORT_PLOTTED 8 /* connections with plots, of one or two directions */
#define UR_REPORT_ROWS 4000
#define UR_REPORT_PARTS 96 /* pieces of the recording whose rows are shown */

struct ur_report_row {
	uint32_t frame;  /* 0: not in the file; its arrow is dashed */
	uint32_t packet; /* of a frame that has several, from 0 */
	ur_time when;
	bool second;       /* sent by the host on the right */
	const char *class; /* of its arrow */
	unsigned reach;    /* hundredths of the way */
	char *label, *remark, *details;
};

struct ur_report_part { /* rows of one connection without a gap; number 0: frames of no connection */
	uint32_t number, at;
	struct ur_an_conn c;
	struct ur_report_row *rows;
	uint32_t n;
};

struct ur_report_plot {
	uint32_t number;
	struct ur_plot_picture picture;
	struct ur_plot plot;
};

struct ur_report {
	struct ur_pcap_file f;
	struct ur_an_totals totals;
	const struct ur_pcap_finding **findings; /* that are listed, by frame */
	uint32_t nfindings;
	uint32_t *conns; /* that are listed, by their place in the analysis */
	uint32_t nconns;
	struct ur_report_plot *plots;
	uint32_t nplots;
	struct ur_report_part *parts; /* by connection and frame; those of no connection last */
	uint32_t nparts;
	uint32_t *frames; /* that have a row, ascending */
	uint32_t nframes;
	bool *claimed; /* beside these */
	bool rows_left_out;
};

/* --- frames.c --- */

/* Calls back for each number of a frame in a sentence: from `at`, `len` bytes. */
void ur_report_each_frame(const char *text, void (*each)(void *ctx, uint32_t frame, const char *at, size_t len), void *ctx);
/* Reads the file for the rows of findings and of the beginnings of connections. False after a sentence on stderr. */
bool ur_report_read_frames(struct ur_report *r);
bool ur_report_has_row(const struct ur_report *r, uint32_t frame);
/* True the first time that a row of this frame is written: that one has the name to which links go. */
bool ur_report_claim(const struct ur_report *r, uint32_t frame);
void ur_report_free_frames(struct ur_report *r);
/* For qsort and bsearch of uint32_t. */
int ur_report_ascending(const void *x, const void *y);

/* --- data.c --- */

/* What the page's script draws, as JSON that may stand in an element of a script. */
void ur_report_put_data(const struct ur_report *r, FILE *out);

/* --- page.c --- */

void ur_report_put_page(const struct ur_report *r, FILE *out);

#endif
