/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap plot: the requests of one end over time. The file is read twice: for the connection that is drawn, and for its events, which
 * are merged where they are close, so that a file of any length needs the same memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/plot/plot.h"
#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

struct args {
	const char *file, *svg, *csv;
	uint32_t qp, from, to;
};

static struct args args;

/* --- which --- */

/* The one with the most packets. */
static bool choose(const struct ur_pcap_file *f, const struct args *a, struct ur_plot_picture *d)
{
	struct ur_an_conn c;
	uint64_t most = 0;

	for (uint32_t i = 0; ur_analysis_conn(f->analysis, i, &c); i++) {
		for (unsigned k = 0; k < 2; k++) {
			const struct ur_an_half *h = &c.half[k];

			if (h->packets + h->answers <= most || !h->packets || (a->qp && h->dqpn != a->qp))
				continue;
			most = h->packets + h->answers;
			d->half = *h;
			d->service = c.service;
		}
	}
	return most;
}

/* --- events --- */

struct collect {
	const struct ur_an_half *of;
	const struct args *a;
	struct ur_plot *p; /* NULL: lines are written */
	FILE *csv;
	ur_time origin;
	bool begun;
};

bool ur_plot_is_of(const struct ur_an_half *h, const struct ur_an_event *e)
{
	uint32_t last = h->last_answer_frame > h->last_frame ? h->last_answer_frame : h->last_frame;

	last = h->icmp_frame > last ? h->icmp_frame : last;
	return e->half->dqpn == h->dqpn && e->half->first_frame == h->first_frame && ur_gid_eq(&e->half->from, &h->from) &&
	       ur_gid_eq(&e->half->to, &h->to) && e->frame <= last;
}

static void put_csv(struct collect *c, const struct ur_an_event *e)
{
	const bool cause = e->kind == UR_AN_EV_AGAIN || e->kind == UR_AN_EV_REPAIR,
		   opcode = e->kind == UR_AN_EV_REQUEST || e->kind == UR_AN_EV_AGAIN || e->kind == UR_AN_EV_RESPONSE;
	const int64_t since = (int64_t)(e->when - c->origin);

	fprintf(c->csv, "%" PRId64 ",%u,%s,%s,%u,%u,%u,%s,%" PRIu64 ",%" PRIu64 ",%u\n", since, e->frame, ur_an_event_names[e->kind],
		opcode && ur_opcode(e->opcode)->name ? ur_opcode(e->opcode)->name : "", ur_plot_psn(e->psn), e->n, e->len,
		cause ? ur_an_cause_names[e->cause] : "", e->wait, e->next > e->acked ? e->next - e->acked : 0, e->depth);
}

static void collect(void *ctx, const struct ur_an_event *e)
{
	struct collect *c = ctx;

	if (!ur_plot_is_of(c->of, e) || e->frame < c->a->from || (c->a->to && e->frame > c->a->to))
		return;
	if (!c->begun)
		c->origin = e->when;
	c->begun = true;
	if (c->p)
		ur_plot_event(c->p, e);
	else
		put_csv(c, e);
}

/* --- the whole --- */

static int write_csv(const struct args *a, const struct ur_plot_picture *d)
{
	struct ur_outfile out;
	bool ok;

	if (!ur_outfile_open(&out, a->csv, false))
		return UR_EXIT_FAIL;
	fputs("time_ns,frame,event,opcode,psn,psns,bytes,cause,wait_ns,in_flight,reads_in_flight\n", out.f);
	ok = ur_pcap_each_event(a->file, collect, &(struct collect){.of = &d->half, .a = a, .csv = out.f});
	return ur_outfile_close(&out, ok) && ok ? 0 : UR_EXIT_FAIL;
}

static int draw_to(const struct ur_plot_picture *d, const char *name, void (*draw)(const struct ur_plot_picture *d, FILE *out))
{
	struct ur_outfile out;

	if (!ur_outfile_open(&out, name, false))
		return UR_EXIT_FAIL;
	draw(d, out.f);
	return ur_outfile_close(&out, true) ? 0 : UR_EXIT_FAIL;
}

static int draw(const struct args *a, struct ur_plot_picture *d)
{
	struct ur_plot *p = malloc(sizeof(*p));
	int rc = UR_EXIT_USAGE;

	if (!p)
		return ur_cmd_fail(UR_EXIT_FAIL, "cannot draw %s: out of memory", a->file);
	ur_plot_init(p);
	d->p = p;
	if (ur_pcap_each_event(a->file, collect, &(struct collect){.of = &d->half, .a = a, .p = p}) && !p->begun)
		ur_cmd_fail(0, "%s has no packet of that connection among these frames", a->file);
	else if (p->begun && ur_plot_lost(p))
		ur_cmd_fail(0, "cannot draw %s: out of memory", a->file);
	else if (p->begun)
		rc = a->svg ? draw_to(d, a->svg, ur_plot_draw_svg) : draw_to(d, "-", ur_plot_draw_text);
	ur_plot_fini(p);
	free(p);
	return rc;
}

static int plot(const struct args *a)
{
	struct ur_plot_picture d = {.file = a->file};
	struct ur_pcap_file f;
	int rc = UR_EXIT_USAGE;

	if (ur_pcap_open(&f, a->file)) {
		if (!choose(&f, a, &d))
			ur_cmd_fail(0, "%s holds no request of a connection%s", a->file, a->qp ? " to that QP" : "");
		else if (a->csv)
			rc = write_csv(a, &d);
		else
			rc = draw(a, &d);
		if (!rc)
			rc = ur_pcap_status(a->file, &f.end, rc);
	}
	ur_pcap_close(&f);
	return rc;
}

/* --- the command line --- */

static bool parse_positive(const char *s, uint32_t max, uint32_t *v)
{
	return ur_pcap_number(s, max, v) && *v;
}

static bool parse_qp(const char *s)
{
	return parse_positive(s, 0xffffff, &args.qp);
}

static bool parse_from(const char *s)
{
	return parse_positive(s, UINT32_MAX, &args.from);
}

static bool parse_to(const char *s)
{
	return parse_positive(s, UINT32_MAX, &args.to);
}

static const struct ur_option options[] = {
	{"qp", "NUMBER", .parse = parse_qp, .takes = "a number from 1 to 0xffffff",
	 .help = "the requests to this QP, a number such as 0x2a (default: those with the most packets)"},
	{"from", "FRAME", .parse = parse_from, .takes = "the number of a frame, from 1 on", .help = "draw from this frame on"},
	{"to", "FRAME", .parse = parse_to, .takes = "the number of a frame, from 1 on", .help = "draw up to this frame"},
	{"svg", "FILE", UR_COMPLETE_FILE, .value = &args.svg, .help = "draw a picture with colours; `-` is standard output"},
	{"csv", "FILE", UR_COMPLETE_FILE, .value = &args.csv,
	 .help = "write each event as a line of values instead, for other programs; `-` is standard output"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap plot ping.pcapng", "In the terminal."},
	{"uroce pcap plot --svg ping.svg --from 1000 --to 2000 ping.pcapng", "As a picture, a thousand frames of it."},
	{"uroce pcap plot --csv - ping.pcapng", "All events of the connection, as values."},
	{0},
};

static int run_pcap_plot(int argc, char **argv)
{
	(void)argc;
	args.file = argv[0];
	if (strcmp(args.file, "-") == 0)
		return ur_cmd_fail(UR_EXIT_USAGE, "a plot needs a file, because it is read more than once: save standard input to one");
	if (args.svg && args.csv)
		return ur_cmd_fail(UR_EXIT_USAGE, "--svg and --csv exclude one another: give one of them");
	return plot(&args);
}

const struct ur_command ur_pcap_plot = {
	.name = "plot",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "draw the PSNs, rate, packets in flight and round trips of a connection over time",
	.text = "PSNs are drawn as tcptrace draws sequence numbers: each packet when it was sent for the first time and when it was sent "
		"again, "
		"and a line below which everything has been answered. NAKs, RNR NAKs, timeouts, repaired losses, congestion marks and CNPs "
		"are marked. It draws the requests of one end, and the responses to its READs. FILE is read more than once, so it "
		"cannot be standard input.",
	.status = "0; 1 when a picture cannot be written, 2 when a file cannot be read to its end or holds no RoCEv2 packet or no such "
		  "connection.",
	.options = options,
	.examples = examples,
	.run = run_pcap_plot,
};
