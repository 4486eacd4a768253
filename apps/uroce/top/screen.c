/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce top on a terminal: a screen that is updated, and keys. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/screen.h"
#include "apps/uroce/top/top.h"

#define LINE 512
#define HEAD 3 /* summary, keys in force, titles */
#define INPUT 32

struct screen {
	struct ur_top *top;
	struct ur_top_view *view;
	unsigned first; /* the row that stands below the titles */
	bool paused, help;
	bool asking; /* for a part of a program's name */
	char input[INPUT];
	char program[INPUT]; /* what the filter refers to, once it was asked for */
};

static const char *const help[] = {
	"up, down, page up, page down, home, end   move",
	"left, right   sort by another column          r   reverse the order",
	"t tx and rx   x retransmissions   l rtt   s state   p process     sort by these",
	"/   only programs with this in their names; empty: all",
	"a   only QPs that sent or received something, or all",
	"space   pause, or continue",
	"h or ?   this, or back                        q   end",
	"",
	"TX, RX   payload, bits a second               RETX/s   packets sent again",
	"RTT      as the QP measures it                WINDOW   packets in flight / allowed",
	"LIMIT    the rate that congestion notifications hold the QP to",
};

/* --- drawing --- */

static unsigned page(void)
{
	return LINES > HEAD ? (unsigned)(LINES - HEAD) : 1;
}

static void draw_state(const struct screen *s)
{
	const struct ur_watch_filter *f = &s->top->filter;
	char line[LINE];

	if (s->asking)
		snprintf(line, sizeof(line), "programs with: %s_", s->input);
	else
		snprintf(line, sizeof(line), "sorted by %s%s%s%s%s%s; h: help", ur_watch_key_name(s->top->key),
			 s->top->reverse ? ", reversed" : "", f->program ? ", programs with " : "", f->program ? f->program : "",
			 f->active ? ", active ones" : "", s->paused ? ", held" : "");
	ur_screen_draw(1, line, s->asking ? A_BOLD : A_NORMAL);
}

/* What is wrong stands out. */
static attr_t attributes(const struct ur_watch_row *r)
{
	if (strcmp(ur_watch_state_name(r->qp->state), "ERR") == 0 || r->rates.retransmits > 0)
		return A_BOLD;
	return r->process->stopped ? A_DIM : A_NORMAL;
}

static void draw_remarks(const struct screen *s, int y)
{
	const struct ur_top_view *v = s->view;
	char line[LINE];

	for (unsigned i = 0; i < v->now->count && y < LINES; i++)
		if (ur_top_remark(v->now->process[i], &s->top->filter, line, sizeof(line)))
			ur_screen_draw(y++, line, A_DIM);
}

static void draw_rows(struct screen *s)
{
	const struct ur_top_view *v = s->view;
	struct ur_watch_layout layout = ur_watch_layout(v->rows, v->count, (unsigned)COLS);
	unsigned rows = page(), last = v->count > rows ? v->count - rows : 0;
	char line[LINE];
	int y = HEAD;

	if (s->first > last)
		s->first = last;
	ur_watch_title(&layout, line);
	ur_screen_draw(2, line, A_REVERSE);
	for (unsigned i = s->first; i < v->count && y < LINES; i++) {
		ur_watch_line(&layout, &v->rows[i], line);
		ur_screen_draw(y++, line, attributes(&v->rows[i]));
	}
	if (!v->count)
		ur_screen_draw(y++, v->all ? "no QP matches" : "no program of this user has a QP on uroce now", A_DIM);
	draw_remarks(s, y);
}

static void draw_all(struct screen *s)
{
	char line[LINE];

	erase();
	ur_top_summary(s->view, line, sizeof(line));
	ur_screen_draw(0, line, A_BOLD);
	draw_state(s);
	if (s->help)
		for (unsigned i = 0; i < ur_array_size(help) && (int)i + HEAD < LINES; i++)
			ur_screen_draw((int)i + HEAD, help[i], A_NORMAL);
	else
		draw_rows(s);
	move(s->asking ? 1 : LINES - 1, 0);
	refresh();
}

/* --- keys --- */

static void end_of_input(struct screen *s)
{
	s->asking = false;
	memcpy(s->program, s->input, sizeof(s->program));
	s->top->filter.program = s->program[0] ? s->program : NULL;
}

static void type(struct screen *s, int key)
{
	size_t n = strlen(s->input);

	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		end_of_input(s);
	else if (key == 27)
		s->asking = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n)
		s->input[n - 1] = 0;
	else if (key < 128 && isprint(key) && n + 1 < sizeof(s->input))
		s->input[n] = (char)key;
}

/* A key of `keys` sorts by the one of `by` in its place; again, the other way round. */
static bool sort_by(struct ur_top *t, int key)
{
	static const char keys[] = "txlsp";
	static const enum ur_watch_key by[] = {UR_WATCH_TRAFFIC, UR_WATCH_RETRANSMITS, UR_WATCH_RTT, UR_WATCH_STATE, UR_WATCH_PID};
	const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;

	if (!at)
		return false;
	t->reverse = t->key == by[at - keys] && !t->reverse;
	t->key = by[at - keys];
	return true;
}

static void turn_key(struct ur_top *t, unsigned step)
{
	t->key = (enum ur_watch_key)(((unsigned)t->key + step) % UR_WATCH_KEY_COUNT);
}

static void scroll_by(struct screen *s, int rows)
{
	s->first = rows < 0 && s->first < (unsigned)-rows ? 0 : s->first + (unsigned)rows;
}

/* False for the one that ends it. */
static bool press(struct screen *s, int key)
{
	if (s->asking) {
		type(s, key);
		return true;
	}
	if (sort_by(s->top, key))
		return true;
	switch (key) {
	case 'q': return false;
	case 'h':
	case '?': s->help = !s->help; break;
	case 'r': s->top->reverse = !s->top->reverse; break;
	case 'a': s->top->filter.active = !s->top->filter.active; break;
	case ' ': s->paused = !s->paused; break;
	case '/':
		s->asking = true;
		memset(s->input, 0, sizeof(s->input));
		break;
	case KEY_LEFT:
	case '<': turn_key(s->top, UR_WATCH_KEY_COUNT - 1); break;
	case KEY_RIGHT:
	case '>': turn_key(s->top, 1); break;
	case KEY_UP: scroll_by(s, -1); break;
	case KEY_DOWN: scroll_by(s, 1); break;
	case KEY_PPAGE: scroll_by(s, -(int)page()); break;
	case KEY_NPAGE: scroll_by(s, (int)page()); break;
	case KEY_HOME: s->first = 0; break;
	case KEY_END: s->first = s->view->count; break;
	}
	return true;
}

/* --- the loop --- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Draws and waits for keys until it is time for the next update; false when one ended it. */
static bool between_looks(struct screen *s, double until)
{
	for (;;) {
		double left = until - now();
		int key;

		if (left <= 0)
			return true;
		if (ur_top_arrange(s->view, s->top))
			draw_all(s);
		timeout((int)ceil(left * 1000));
		key = getch();
		if (key != ERR && !press(s, key))
			return false;
	}
}

/* The first rates come soon, whatever the interval. */
static int loop(struct screen *s, unsigned count)
{
	double wait = s->top->interval < 1 ? s->top->interval : 1;
	int rc = ur_top_sample(s->view);

	for (unsigned i = 0; !rc && (!count || i <= count); i++) {
		if (!between_looks(s, now() + wait))
			break;
		wait = s->top->interval;
		if (!s->paused)
			rc = ur_top_sample(s->view);
	}
	return rc;
}

int ur_top_screen(struct ur_top *t, struct ur_top_view *v, unsigned count)
{
	struct screen s = {.top = t, .view = v};
	int rc;

	if (!ur_screen_open())
		return -1;
	rc = loop(&s, count);
	ur_screen_close();
	return rc;
}
