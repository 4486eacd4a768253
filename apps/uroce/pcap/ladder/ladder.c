/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap ladder: the packets of one connection around one frame as a sequence diagram. The file is read three times: for its findings,
 * for the connection that a frame belongs to, and for that connection's packets.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/ladder/ladder.h"
#include "apps/uroce/pcap/read/read.h"

#define LINES 56 /* of the picture, unless told otherwise */
#define LINES_MAX 2000
#define LEAD 8                        /* of them before what the picture is about, at most */
#define RUN_MIN 5                     /* this many packets of a kind in a row without a finding become three lines */
#define PAUSE_NS (200 * UR_NS_PER_US) /* and twice as long as the one before: a line says how long nothing came */

struct args {
	const char *file, *trace, *svg, *html;
	long at, qp, lines;
};

/* --- which connection, which frame --- */

static bool is_worth(enum ur_rule rule)
{
	switch (rule) {
	case UR_RULE_ICRC:
	case UR_RULE_ONEWAY:
	case UR_RULE_MID: return false;
	default: return ur_rules[rule].severity != UR_NOTE;
	}
}

static bool of_qp(const struct ur_an_conn *c, long qp)
{
	return qp < 0 || c->half[0].dqpn == (uint32_t)qp || c->half[1].dqpn == (uint32_t)qp;
}

struct find {
	const struct ur_pcap_file *f;
	uint32_t at;
	long qp;
	struct ur_an_conn c;
	bool found;
};

/* The connection that frame `at` is of. */
static void find_conn(void *ctx, const struct ur_an_frame *frame)
{
	struct find *d = ctx;

	if (frame->number != d->at)
		return;
	for (uint32_t i = 0; !d->found && ur_analysis_conn(d->f->analysis, i, &d->c); i++)
		d->found = of_qp(&d->c, d->qp) && ur_ladder_is_of(&d->c, frame);
}

static bool is_conn_of(const char *file, struct find *d)
{
	struct ur_pcap_end end;

	d->found = false;
	ur_pcap_each(file, find_conn, d, &end);
	free(end.unreadable);
	return d->found;
}

/* The first error or repetition whose frame is of a connection; without one, the beginning of the first connection. */
static bool choose(const struct ur_pcap_file *f, const struct args *a, struct ur_lad *l)
{
	struct find d = {.f = f, .qp = a->qp};
	unsigned tries = 0;

	for (size_t i = 0; i < f->n && a->at <= 0 && !d.found && tries < 64; i++) {
		if (!is_worth(f->found[i].rule) || f->found[i].frame == d.at)
			continue;
		d.at = f->found[i].frame;
		l->about = f->found[i].text;
		tries++;
		is_conn_of(f->name, &d);
	}
	if (!d.found) {
		l->about = NULL;
		for (uint32_t i = 0; a->at <= 0 && ur_analysis_conn(f->analysis, i, &d.c) && !d.at; i++)
			if (of_qp(&d.c, a->qp))
				d.at = d.c.half[0].first_frame ? d.c.half[0].first_frame : d.c.req_frame;
		d.at = a->at > 0 ? (uint32_t)a->at : d.at;
		if (!d.at || !is_conn_of(f->name, &d))
			return false;
	}
	for (size_t i = 0; i < f->n && !l->about; i++)
		if (f->found[i].frame == d.at)
			l->about = f->found[i].text;
	l->c = d.c;
	l->at = d.at;
	return true;
}

/* --- lines --- */

static bool put_item(struct ur_lad *l, struct ur_lad_item it)
{
	if (!(l->nitems & (l->nitems - 1))) {
		struct ur_lad_item *more = realloc(l->items, (l->nitems ? 2 * l->nitems : 1) * sizeof(*more));

		if (!more)
			return false;
		l->items = more;
	}
	l->items[l->nitems++] = it;
	return true;
}

static bool is_plain(const struct ur_lad *l, uint32_t i)
{
	const struct ur_ladder_row *r = &l->rows[i];

	return !r->cm && r->opcode != UR_OP_SACK && r->frame && r->frame != l->at && ur_syndrome_type(r->syndrome) == UR_AETH_ACK &&
	       (r->fate == UR_LADDER_ARRIVED || r->fate == UR_LADDER_EARLY);
}

/* Of READ responses it does not matter where messages begin and end. */
static bool same_kind(const struct ur_ladder_row *a, const struct ur_ladder_row *b)
{
	const uint32_t data = UR_OPF_RESPONSE | UR_OPF_PAYLOAD;

	return a->opcode == b->opcode || (ur_opcode(a->opcode)->flags & ur_opcode(b->opcode)->flags & data) == data;
}

/* May row `i` + 1 share a line with row `i`? */
static bool goes_on(const struct ur_lad *l, uint32_t i)
{
	const struct ur_ladder_row *a = &l->rows[i], *b = a + 1;

	return is_plain(l, i) && is_plain(l, i + 1) && a->second == b->second && same_kind(a, b) && a->fate == b->fate &&
	       !a->again == !b->again && a->repair == b->repair && a->hello == b->hello && ur_tos_is_ce(a->tos) == ur_tos_is_ce(b->tos) &&
	       b->psn == ur_psn_add(a->psn, a->n);
}

/* An event of a trace between them keeps them apart. */
static bool has_event(const struct ur_lad *l, uint32_t e, uint32_t upto)
{
	return e < l->nevents && l->events[e].after <= upto;
}

static uint32_t run_from(const struct ur_lad *l, uint32_t i, uint32_t e)
{
	uint32_t n = 1;

	while (i + n < l->nrows && goes_on(l, i + n - 1) && !has_event(l, e, i + n))
		n++;
	return n;
}

static int by_place(const void *x, const void *y)
{
	const struct ur_lad_event *a = x, *b = y;

	if (a->after != b->after)
		return a->after < b->after ? -1 : 1;
	return a->when != b->when ? (a->when < b->when ? -1 : 1) : 0;
}

/* All rows and events as lines, long runs shortened. */
static bool arrange(struct ur_lad *l)
{
	uint32_t e = 0, n;
	bool ok = true;

	if (l->nevents)
		qsort(l->events, l->nevents, sizeof(*l->events), by_place);
	for (uint32_t i = 0; i < l->nrows && ok; i += n) {
		ur_time pause = i && l->rows[i].when > l->rows[i - 1].when ? l->rows[i].when - l->rows[i - 1].when : 0;

		for (; e < l->nevents && l->events[e].after <= i && ok; e++)
			ok = put_item(l, (struct ur_lad_item){.kind = UR_LAD_NOTE, .row = i, .event = &l->events[e]});
		if (pause >= PAUSE_NS)
			ok = ok && put_item(l, (struct ur_lad_item){.kind = UR_LAD_PAUSE, .row = i, .pause = pause});
		n = run_from(l, i, e);
		if (n < RUN_MIN) {
			n = 1;
			ok = ok && put_item(l, (struct ur_lad_item){.kind = UR_LAD_ROW, .row = i, .n = 1});
			continue;
		}
		ok = ok && put_item(l, (struct ur_lad_item){.kind = UR_LAD_ROW, .row = i, .n = 1}) &&
		     put_item(l, (struct ur_lad_item){.kind = UR_LAD_RUN, .row = i + 1, .n = n - 2}) &&
		     put_item(l, (struct ur_lad_item){.kind = UR_LAD_ROW, .row = i + n - 1, .n = 1});
	}
	for (; e < l->nevents && ok; e++)
		ok = put_item(l, (struct ur_lad_item){.kind = UR_LAD_NOTE, .row = l->nrows, .event = &l->events[e]});
	return ok;
}

/*
 * The first line that has to do with what is lost or comes again around the frame in the middle, which is among the first `lines` from
 * there on.
 */
static uint32_t first_line(const struct ur_lad *l, uint32_t lines)
{
	uint32_t middle = l->nitems, first;

	for (uint32_t i = 0; i < l->nitems && middle == l->nitems; i++)
		if (l->items[i].n && l->rows[l->items[i].row + l->items[i].n - 1].frame >= l->at)
			middle = i;
	first = middle;
	for (uint32_t i = middle; i-- && middle - i < (uint32_t)LINES / 2;) {
		const struct ur_lad_item *it = &l->items[i];
		const struct ur_ladder_row *r = it->n ? &l->rows[it->row] : NULL;

		if (r &&
		    (r->fate != UR_LADDER_ARRIVED || (middle < l->nitems && r->frame && r->frame == l->rows[l->items[middle].row].again)))
			first = i;
	}
	first = first > LEAD ? first - LEAD : 0;
	if (middle < l->nitems && middle - first >= lines)
		first = middle - (lines - 1) * 3 / 4;
	return first;
}

static void cut(struct ur_lad *l, uint32_t lines)
{
	uint32_t from = first_line(l, lines);

	l->nitems -= from;
	memmove(l->items, l->items + from, l->nitems * sizeof(*l->items));
	l->nitems = l->nitems < lines ? l->nitems : lines;
	while (l->nitems && l->items[l->nitems - 1].kind == UR_LAD_PAUSE)
		l->nitems--;
	l->origin = l->nrows ? l->rows[l->nitems && l->items[0].row < l->nrows ? l->items[0].row : 0].when : 0;
}

/* --- the whole --- */

static void take_frame(void *ctx, const struct ur_an_frame *f)
{
	ur_ladder_frame(ctx, f);
}

static int draw_to(const struct ur_lad *l, const char *name, void (*draw)(const struct ur_lad *l, FILE *out))
{
	struct ur_outfile out;

	if (!ur_outfile_open(&out, name, false))
		return UR_EXIT_FAIL;
	draw(l, out.f);
	return ur_outfile_close(&out, true) ? 0 : UR_EXIT_FAIL;
}

static int draw(const struct ur_lad *l, const struct args *a)
{
	int rc = 0;

	if (a->svg)
		rc = draw_to(l, a->svg, ur_lad_draw_svg);
	if (a->html && !rc)
		rc = draw_to(l, a->html, ur_lad_draw_html);
	if (!a->svg && !a->html)
		rc = draw_to(l, "-", ur_lad_draw_text);
	return rc;
}

static int draw_ladder(struct ur_pcap_file *f, const struct args *a, struct ur_lad *l)
{
	struct ur_ladder *ladder = ur_ladder_create(&l->c, l->at);
	struct ur_pcap_end end = {0};
	int rc = UR_EXIT_USAGE;

	if (ladder && ur_pcap_each(f->name, take_frame, ladder, &end)) {
		l->rows = ur_ladder_rows(ladder, &l->nrows);
		if ((a->trace && !ur_lad_read_trace(l, a->trace)) || !ur_lad_add_asides(l, ladder))
			l->nrows = 0;
		if (l->nrows && arrange(l)) {
			cut(l, (uint32_t)a->lines);
			rc = draw(l, a);
		}
	}
	free(end.unreadable);
	free(l->events);
	free(l->items);
	ur_ladder_destroy(ladder);
	return rc;
}

static int ladder(const struct args *a)
{
	struct ur_lad l = {.file = a->file};
	struct ur_pcap_file f;
	int rc = UR_EXIT_USAGE;

	if (!ur_pcap_open(&f, a->file))
		goto out;
	if (choose(&f, a, &l))
		rc = draw_ladder(&f, a, &l);
	else if (a->at > 0)
		ur_cmd_fail(0, "frame %ld of %s is not a packet of a connection: 'uroce pcap check' lists frames worth a look", a->at,
			    a->file);
	else
		ur_cmd_fail(0, "%s holds no connection%s", a->file, a->qp < 0 ? "" : " with that QP");
	if (!rc)
		rc = ur_pcap_status(a->file, &f.end, rc);
out:
	ur_pcap_close(&f);
	return rc;
}

/* --- the command line --- */

static struct args args = {.qp = -1, .lines = LINES};

static bool parse_positive(const char *s, uint32_t max, long *v)
{
	uint32_t n = 0;
	bool ok = ur_pcap_number(s, max, &n) && n;

	*v = n;
	return ok;
}

static bool parse_at(const char *s)
{
	return parse_positive(s, UINT32_MAX, &args.at);
}

static bool parse_qp(const char *s)
{
	return parse_positive(s, 0xffffff, &args.qp);
}

static bool parse_lines(const char *s)
{
	return parse_positive(s, LINES_MAX, &args.lines);
}

static const struct ur_option options[] = {
	{"at", "FRAME", .parse = parse_at, .takes = "the number of a frame, from 1 on",
	 .help = "around this frame (default: around the first error or repetition)"},
	{"qp", "NUMBER", .parse = parse_qp, .takes = "a number from 1 to 0xffffff",
	 .help = "of a connection with this QP, a number such as 0x2a"},
	{"lines", "N", .parse = parse_lines, .takes = "a number from 1 to 2000",
	 .help = "maximum number of lines to draw, 1 to 2000 (default 56)"},
	{"trace", "FILE", UR_COMPLETE_FILE, .value = &args.trace,
	 .help = "what the engine of one of the hosts did meanwhile, as written by `uroce run --trace`"},
	{"svg", "FILE", UR_COMPLETE_FILE, .value = &args.svg, .help = "draw a picture with colours; `-` is standard output"},
	{"html", "FILE", UR_COMPLETE_FILE, .value = &args.html, .help = "draw it for a browser, with the details of each packet"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap ladder ping.pcapng", "Around the first error or repetition."},
	{"uroce pcap ladder --at 81 --html ping.html ping.pcapng", "For a browser, around frame 81."},
	{0},
};

static int run_pcap_ladder(int argc, char **argv)
{
	(void)argc;
	args.file = argv[0];
	if (strcmp(args.file, "-") == 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "a ladder needs a file, because it is read more than once: save standard input to one");
	return ladder(&args);
}

const struct ur_command ur_pcap_ladder = {
	.name = "ladder",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "draw the packets around a finding, side by side",
	.text = "Each arrow is a packet of one connection, and ends where it went no further: before or after the recorder. A packet that "
		"is missing in the file, as others show, has a dotted arrow. Consecutive packets of one kind share a line. Pause frames, "
		"ICMP errors, ARP and neighbour discovery that concern the connection have lines between the hosts. FILE is read "
		"more than once, so it cannot be standard input.",
	.status = "0; 1 when a picture cannot be written, 2 when a file cannot be read to its end or holds no RoCEv2 packet or no such "
		  "connection.",
	.options = options,
	.examples = examples,
	.run = run_pcap_ladder,
};
