/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap ladder: declarations that its files share. ladder.c selects and arranges, trace.c reads a trace, text.c
 * and svg.c draw.
 */
#ifndef UR_LADDER_DRAW_H
#define UR_LADDER_DRAW_H

#include <stdio.h>

#include "analyze/view/ladder.h"
#include "base/psn.h"

#define UR_LAD_TEXT 320
#define UR_LAD_DETAILS 900
#define UR_LAD_STORY 512
#define UR_LAD_EVENT 280 /* characters of an event that are shown */

struct ur_lad_event {
	ur_time when;
	uint32_t after; /* the row that it follows, counted from 1; 0: before all of them */
	bool second;    /* beside the host on the right */
	bool path;      /* of neither: it happened between them */
	char text[UR_LAD_EVENT];
};

struct ur_lad_item { /* a line of the picture */
	enum { UR_LAD_ROW, UR_LAD_RUN, UR_LAD_PAUSE, UR_LAD_NOTE } kind;
	uint32_t row, n; /* rows [row, row + n) */
	ur_time pause;
	const struct ur_lad_event *event;
};

struct ur_lad {
	const char *file;
	struct ur_an_conn c;
	char *about; /* the sentence of the finding; NULL */
	uint32_t at; /* the frame in the middle */
	const struct ur_ladder_row *rows;
	uint32_t nrows;
	struct ur_lad_event *events;
	uint32_t nevents;
	bool traced[2];
	struct ur_lad_item *items;
	uint32_t nitems;
	ur_time origin;
};

/* --- trace.c --- */

/* Takes from a trace what happens to the QPs of the connection. False after a sentence on stderr. */
bool ur_lad_read_trace(struct ur_lad *l, const char *name);

/* Room for one more; NULL when memory is short. */
struct ur_lad_event *ur_lad_new_event(struct ur_lad *l);

/* --- aside.c --- */

/* What is not RoCEv2 and concerns the connection. False when memory is short. */
bool ur_lad_add_asides(struct ur_lad *l, const struct ur_ladder *ladder);
/* "; A sent X in the 1 ms before, Y in the 1 ms after", for what happened from then until then. Returns its length, 0 when it is not known.
 */
int ur_lad_put_rate(const struct ur_lad *l, bool second, ur_time from, ur_time upto, char *to, size_t room);

/* --- text.c --- */

/* "READ_REQ PSN 100 to 103 (4096 bytes)"; of a run of rows: "14 x READ_RESP_MIDDLE PSN 101 to 114". */
void ur_lad_label(const struct ur_lad *l, const struct ur_lad_item *it, char to[UR_LAD_TEXT]);
/* What became of it, and why it is here; "" for nothing. */
void ur_lad_remark(const struct ur_lad *l, const struct ur_lad_item *it, char to[UR_LAD_TEXT]);
/* Its hosts and the fields of its headers, line by line, and the remark. */
void ur_lad_details(const struct ur_lad *l, const struct ur_lad_item *it, const char *remark, char to[UR_LAD_DETAILS]);
/* Since the first packet that is shown: "0.012 ms". */
const char *ur_lad_time(const struct ur_lad *l, const struct ur_ladder_row *r, char to[24]);
/* What its arrow looks like, as a word for style sheets: lost, early, again, ans or req. */
const char *ur_lad_class(const struct ur_ladder_row *r);
/* "10.0.0.1 QP 0x11". */
void ur_lad_host(const struct ur_lad *l, bool second, char to[80]);
/* The picture in a sentence or two; "" when nothing was lost. */
void ur_lad_story(const struct ur_lad *l, char to[UR_LAD_STORY]);
void ur_lad_draw_text(const struct ur_lad *l, FILE *out);

/* --- svg.c --- */

void ur_lad_draw_svg(const struct ur_lad *l, FILE *out);
void ur_lad_draw_html(const struct ur_lad *l, FILE *out);

static inline bool ur_lad_is_lost(enum ur_ladder_fate f)
{
	return f == UR_LADDER_BEFORE || f == UR_LADDER_BEHIND || f == UR_LADDER_FAR || f == UR_LADDER_DAMAGED;
}

/* Where its arrow ends, in hundredths of the way; the recorder stands in the middle. */
static inline unsigned ur_lad_reach(enum ur_ladder_fate f)
{
	return f == UR_LADDER_BEFORE ? 25 : f == UR_LADDER_BEHIND || f == UR_LADDER_FAR ? 75 : f == UR_LADDER_DAMAGED ? 96 : 100;
}

#endif
