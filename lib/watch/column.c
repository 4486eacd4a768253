/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows as lines of text: one table of columns. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "watch/watch.h"
#include "wire/frame.h"

#define CELL 48

/* --- words and numbers --- */

const char *ur_watch_type_name(unsigned type)
{
	switch (type) {
	case IBV_QPT_RC: return "RC";
	case IBV_QPT_UC: return "UC";
	case IBV_QPT_UD: return "UD";
	case IBV_QPT_XRC_SEND: return "XRC_S";
	case IBV_QPT_XRC_RECV: return "XRC_R";
	default: return "?";
	}
}

const char *ur_watch_state_name(unsigned state)
{
	static const char *const states[] = {
		[IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT", [IBV_QPS_RTR] = "RTR", [IBV_QPS_RTS] = "RTS",
		[IBV_QPS_SQD] = "SQD",     [IBV_QPS_SQE] = "SQE",   [IBV_QPS_ERR] = "ERR",
	};

	return state < ur_array_size(states) ? states[state] : "?";
}

const char *ur_watch_short(double value, char *text)
{
	static const char suffixes[] = " kMGTPE";
	unsigned i = 0;

	for (; value >= 999.5 && i + 2 < sizeof(suffixes); i++)
		value /= 1000;
	if (value >= 999.5) /* nothing that can be true */
		return strcpy(text, "huge");
	snprintf(text, 8, value >= 9.95 || (!i && value < 0.05) || (!i && value == (double)(int)value) ? "%.0f" : "%.1f", value);
	if (i)
		snprintf(text + strlen(text), 2, "%c", suffixes[i]);
	return text;
}

/* --- cells --- */

static void rate_cell(const struct ur_watch_row *r, double value, char *cell)
{
	if (r->rates.known)
		ur_watch_short(value, cell);
	else
		strcpy(cell, "-");
}

static void pid_cell(const struct ur_watch_row *r, char *cell)
{
	snprintf(cell, CELL, "%d", r->process->pid);
}

static void program_cell(const struct ur_watch_row *r, char *cell)
{
	snprintf(cell, CELL, "%s%s", r->process->program, r->process->stopped ? " (stopped)" : "");
}

static void qp_cell(const struct ur_watch_row *r, char *cell)
{
	snprintf(cell, CELL, "0x%06x", r->qp->qpn);
}

static void type_cell(const struct ur_watch_row *r, char *cell)
{
	strcpy(cell, ur_watch_type_name(r->qp->type));
}

static void state_cell(const struct ur_watch_row *r, char *cell)
{
	strcpy(cell, ur_watch_state_name(r->qp->state));
}

static void peer_cell(const struct ur_watch_row *r, char *cell)
{
	if (r->qp->connected)
		ur_gid_ip(&r->qp->peer, cell);
	else
		strcpy(cell, "-");
}

static void remote_cell(const struct ur_watch_row *r, char *cell)
{
	snprintf(cell, CELL, r->qp->connected ? "0x%06x" : "-", r->qp->dqpn);
}

static void tx_cell(const struct ur_watch_row *r, char *cell)
{
	rate_cell(r, r->rates.tx_bits, cell);
}

static void rx_cell(const struct ur_watch_row *r, char *cell)
{
	rate_cell(r, r->rates.rx_bits, cell);
}

static void packets_cell(const struct ur_watch_row *r, char *cell)
{
	rate_cell(r, r->rates.tx_packets + r->rates.rx_packets, cell);
}

static void retransmits_cell(const struct ur_watch_row *r, char *cell)
{
	rate_cell(r, r->rates.retransmits, cell);
}

static void rtt_cell(const struct ur_watch_row *r, char *cell)
{
	double us = r->qp->srtt / 1000.0;

	if (r->qp->srtt)
		snprintf(cell, CELL, us < 99.95 ? "%.1f" : "%.0f", us);
	else
		strcpy(cell, "-");
}

static void window_cell(const struct ur_watch_row *r, char *cell)
{
	if (r->qp->window)
		snprintf(cell, CELL, "%u/%u", r->qp->in_flight, r->qp->window);
	else
		strcpy(cell, "-");
}

static void limit_cell(const struct ur_watch_row *r, char *cell)
{
	if (r->qp->rate_kbps)
		ur_watch_short(r->qp->rate_kbps * 1000.0, cell);
	else
		strcpy(cell, "-");
}

/* --- columns --- */

/* From left to right. Where there is no room for all, those go first that have the highest `spare`. */
/* clang-format off */
static const struct column {
	const char *title;
	int width; /* negative: to the left; 0: as wide as what stands in it */
	unsigned spare;
	void (*cell)(const struct ur_watch_row *r, char *cell);
} columns[] = {
	{"PID", 7, 0, pid_cell},
	{"PROGRAM", 0, 2, program_cell},
	{"QP", -8, 0, qp_cell},
	{"TYPE", -5, 4, type_cell},
	{"STATE", -5, 0, state_cell},
	{"PEER", 0, 0, peer_cell},
	{"PEER'S QP", -9, 6, remote_cell},
	{"TX b/s", 6, 0, tx_cell},
	{"RX b/s", 6, 0, rx_cell},
	{"PKT/s", 5, 3, packets_cell},
	{"RETX/s", 6, 0, retransmits_cell},
	{"RTT us", 7, 1, rtt_cell},
	{"WINDOW", 9, 5, window_cell},
	{"LIMIT", 5, 1, limit_cell},
};
/* clang-format on */

static unsigned widest(const struct ur_watch_row *rows, unsigned n, const struct column *c, unsigned least, unsigned most)
{
	char cell[CELL];

	for (unsigned i = 0; i < n; i++) {
		unsigned width;

		c->cell(&rows[i], cell);
		width = (unsigned)strlen(cell);
		least = width > least ? width : least;
	}
	return least < most ? least : most;
}

static int width_of(const struct ur_watch_layout *l, const struct column *c)
{
	if (c->width)
		return c->width;
	return c->cell == peer_cell ? -(int)l->peer_width : -(int)l->program_width;
}

static unsigned total(const struct ur_watch_layout *l)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < ur_array_size(columns); i++) {
		int width = width_of(l, &columns[i]);

		if (l->columns & 1u << i)
			sum += (unsigned)(width < 0 ? -width : width) + (sum ? 1 : 0);
	}
	return sum;
}

/* The one that can be spared first; false when none can. */
static bool drop_one(struct ur_watch_layout *l)
{
	unsigned first = 0;

	for (unsigned i = 1; i < ur_array_size(columns); i++)
		if (l->columns & 1u << i && columns[i].spare > (l->columns & 1u << first ? columns[first].spare : 0))
			first = i;
	if (!columns[first].spare)
		return false;
	l->columns &= ~(1u << first);
	return true;
}

struct ur_watch_layout ur_watch_layout(const struct ur_watch_row *rows, unsigned n, unsigned width)
{
	struct ur_watch_layout l = {.columns = (1u << ur_array_size(columns)) - 1};

	for (unsigned i = 0; i < ur_array_size(columns); i++) {
		if (columns[i].cell == program_cell)
			l.program_width = widest(rows, n, &columns[i], 8, 24);
		if (columns[i].cell == peer_cell)
			l.peer_width = widest(rows, n, &columns[i], 10, UR_WATCH_PEER_WIDTH);
	}
	while (width && total(&l) > width && drop_one(&l))
		continue;
	return l;
}

static char *put_cell(char *at, bool first, int width, const char *cell)
{
	int room = width < 0 ? -width : width;

	return at + sprintf(at, "%s%*.*s", first ? "" : " ", width, room, cell);
}

static void cut_blanks(char *line, const char *end)
{
	while (end > line && end[-1] == ' ')
		end--;
	line[end - line] = 0;
}

void ur_watch_title(const struct ur_watch_layout *l, char *line)
{
	char *at = line;

	for (unsigned i = 0; i < ur_array_size(columns); i++)
		if (l->columns & 1u << i)
			at = put_cell(at, at == line, width_of(l, &columns[i]), columns[i].title);
	cut_blanks(line, at);
}

void ur_watch_line(const struct ur_watch_layout *l, const struct ur_watch_row *row, char *line)
{
	char cell[CELL], *at = line;

	for (unsigned i = 0; i < ur_array_size(columns); i++) {
		if (!(l->columns & 1u << i))
			continue;
		columns[i].cell(row, cell);
		at = put_cell(at, at == line, width_of(l, &columns[i]), cell);
	}
	cut_blanks(line, at);
}
