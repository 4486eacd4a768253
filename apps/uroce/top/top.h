/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the files of `uroce top` share. */
#ifndef UR_TOP_H
#define UR_TOP_H

#include "watch/watch.h"

/* What is shown, and how: from the options, or from keys. */
struct ur_top {
	struct ur_watch_filter filter;
	enum ur_watch_key key;
	bool reverse;
	double interval; /* s */
};

/* Two looks and what they come to. */
struct ur_top_view {
	struct ur_watch_sample *before, *now;
	struct ur_watch_row *rows;
	unsigned count; /* of the rows that are left after filtering, in order */
	unsigned all;   /* QPs */
};

/* Takes a sample and builds `rows` from it. 0, or the exit status after a message. */
int ur_top_sample(struct ur_top_view *v);
/* The rows of the looks that were made, by the options as they are now. False when memory is short. */
bool ur_top_arrange(struct ur_top_view *v, const struct ur_top *t);
void ur_top_free(struct ur_top_view *v);
/* The first line: how many processes and QPs there are, and the sum of their rates. */
void ur_top_summary(const struct ur_top_view *v, char *line, size_t room);
/* A sentence about a process of which not all is shown that should be; false when all is. */
bool ur_top_remark(const struct ur_watch_process *p, const struct ur_watch_filter *f, char *line, size_t room);

/* json.c: one object, in one line. */
void ur_top_print_json(const struct ur_top_view *v, const struct ur_top *t);

/*
 * screen.c: until a key ends it, or after `count` looks (0: no end). The exit status; -1 when the terminal cannot show a screen and
 * nothing has been shown.
 */
int ur_top_screen(struct ur_top *t, struct ur_top_view *v, unsigned count);

#endif
