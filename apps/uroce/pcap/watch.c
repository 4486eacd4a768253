/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap watch: what happens while it happens. Findings are printed as they are decided, and at intervals a table of the connections
 * that carry most. What is over is forgotten, so memory is bounded for as long as it runs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/forget.h"
#include "analyze/frame/gather.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/verdict.h"
#include "host/clock.h"
#include "watch/watch.h"
#include "wire/frame.h"

#define IDLE_NS (60 * UR_NS_PER_S)  /* a connection of which nothing comes for so long is forgotten */
#define CLOSED_NS (2 * UR_NS_PER_S) /* a closed one sooner */
#define CONNS_MOST 4096             /* beyond so many, idle ones are forgotten sooner */
#define LOOK 256                    /* frames between two looks at the clock */
#define ROWS 10
#define FINDINGS_MOST 100 /* that are kept for the verdict, of each rule */
#define FRAMES_MOST 4000000000u

struct row {                    /* of one half, since the newest table */
	struct row *next, **at; /* `at`: what points to it */
	struct ur_an_half *half;
	uint64_t bytes, packets, again, messages, rtt_n, rtt_sum;
};

struct watch {
	struct ur_pcap_file file; /* errors, for the verdict */
	struct ur_pcap_live *live;
	struct ur_gatherer *gatherer; /* of its fragments */
	struct row *rows;
	uint32_t nrows;
	uint64_t found, kernel_lost, disturbed, forgotten;
	ur_time began, next_table, newest; /* of this host's clock; of frames */
	uint64_t frames, frames_before;
};

static const char *interface;
static bool quiet;
static uint32_t interval = 10;

/* --- what comes from the analysis --- */

static struct row *row_of(struct watch *w, struct ur_an_half *h)
{
	struct row *r = h->mine;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->half = h;
	r->next = w->rows;
	if (r->next)
		r->next->at = &r->next;
	r->at = &w->rows;
	w->rows = r;
	w->nrows++;
	h->mine = r;
	return r;
}

static void count(void *ctx, const struct ur_an_event *e)
{
	struct row *r = row_of(ctx, e->half);
	const uint32_t flags = ur_opcode(e->opcode)->flags;

	if (!r)
		return;
	switch (e->kind) {
	case UR_AN_EV_REQUEST:
		r->packets++;
		r->messages += !!(flags & UR_OPF_LAST);
		r->bytes += flags & UR_OPF_READ ? 0 : e->len;
		break;
	case UR_AN_EV_AGAIN:
		r->packets++;
		r->again++;
		break;
	case UR_AN_EV_RESPONSE: r->bytes += e->len; break;
	case UR_AN_EV_RTT:
		r->rtt_n++;
		r->rtt_sum += e->wait;
		break;
	default: break;
	}
}

static void drop_row(struct watch *w, const struct ur_an_half *h)
{
	struct row *r = h->mine;

	if (!r)
		return;
	*r->at = r->next;
	if (r->next)
		r->next->at = r->at;
	free(r);
	w->nrows--;
}

static void forget_connection(void *ctx, const struct ur_an_conn *c)
{
	struct watch *w = ctx;

	w->forgotten++;
	w->disturbed += ur_an_conn_disturbed(c);
	drop_row(w, &c->half[0]);
	drop_row(w, &c->half[1]);
}

static void print_time(ur_time when)
{
	const time_t s = (time_t)(when / UR_NS_PER_S);
	struct tm tm;

	localtime_r(&s, &tm);
	printf("%02d:%02d:%02d.%03u ", tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(when / UR_NS_PER_MS % 1000));
}

static void found(void *ctx, const struct ur_finding *f)
{
	struct watch *w = ctx;
	struct ur_pcap_file *file = &w->file;
	char text[UR_PCAP_TEXT];

	w->found += f->severity != UR_NOTE;
	if (quiet && f->severity == UR_NOTE)
		return;
	ur_finding_text(f, text, sizeof(text));
	print_time(f->when ? f->when : w->newest);
	printf("frame %u %s %s %s\n", f->frame, ur_pcap_severity(f->severity), ur_rules[f->rule].name, text);
	fflush(stdout);
	if (file->untold[f->rule]++ >= FINDINGS_MOST || file->n == file->room)
		return;
	file->found[file->n] = (struct ur_pcap_finding){f->frame, (uint32_t)file->n, f->rule, f->severity, f->when, f->qpn, strdup(text)};
	file->n += file->found[file->n].text != NULL;
}

/* --- the table --- */

static int by_bytes(const void *x, const void *y)
{
	const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->packets > b->packets ? -1 : a->packets < b->packets;
}

static void print_row(const struct row *r, double seconds)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT], rate[8], messages[8], again[8], rtt[24];

	ur_watch_short((double)r->bytes * 8 / seconds, rate);
	ur_watch_short((double)r->messages / seconds, messages);
	ur_watch_short((double)r->again / seconds, again);
	printf("   %8s  %6s  %7s  %8s  %s to QP 0x%x of %s\n", rate, messages, again,
	       ur_an_mean_tells(r->rtt_sum, r->rtt_n) ? ur_pcap_time(r->rtt_sum / r->rtt_n, rtt) : "-", ur_gid_ip(&r->half->from, a),
	       r->half->dqpn, ur_gid_ip(&r->half->to, b));
}

static void print_table(struct watch *w, double seconds)
{
	struct row **sorted = malloc((w->nrows + 1) * sizeof(*sorted));
	struct ur_an_totals t;
	uint32_t n = 0, active = 0;

	ur_analysis_totals(w->file.analysis, &t);
	print_time(w->newest);
	for (struct row *r = w->rows; r && sorted; r = r->next) {
		sorted[n++] = r;
		active += r->packets > 0;
	}
	printf("%" PRIu64 " frame%s, %u direction%s in use, %" PRIu64 " connection%s forgotten, %" PRIu64 " error%s and warning%s",
	       w->frames, ur_plural(w->frames), active, ur_plural(active), w->forgotten, ur_plural(w->forgotten), w->found,
	       ur_plural(w->found), ur_plural(w->found));
	printf(w->kernel_lost ? "; the kernel lost %" PRIu64 " frames, which are called missing\n" : "\n", w->kernel_lost);
	if (n)
		qsort(sorted, n, sizeof(*sorted), by_bytes);
	if (active)
		puts("      bit/s   msg/s  again/s       rtt");
	for (uint32_t i = 0; i < n && i < ROWS && sorted[i]->packets; i++)
		print_row(sorted[i], seconds);
	for (struct row *r = w->rows; r; r = r->next)
		r->bytes = r->packets = r->again = r->messages = r->rtt_n = r->rtt_sum = 0;
	free(sorted);
}

/* --- frames --- */

static bool begin_analysis(struct watch *w)
{
	w->file.analysis = ur_analysis_create(found, w, ur_pcap_salt());
	if (!w->file.analysis) {
		ur_cmd_fail(0, "cannot watch %s: out of memory", w->file.name);
		return false;
	}
	ur_analysis_observe(w->file.analysis, count, w);
	return true;
}

/* Frames are counted by 32 bits. */
static bool begin_anew(struct watch *w)
{
	ur_analysis_forget(w->file.analysis, UR_TIME_NEVER, UR_TIME_NEVER, forget_connection, w);
	ur_analysis_finish(w->file.analysis);
	ur_analysis_destroy(w->file.analysis);
	puts("frames are numbered anew");
	w->frames_before = w->frames;
	return begin_analysis(w);
}

/* At intervals: what is over makes room, and the table. False when nobody can read it any more. */
static bool keep_up(struct watch *w)
{
	const ur_time at = ur_clock_now(), idle = w->nrows / 2 > CONNS_MOST ? CLOSED_NS : IDLE_NS;

	if (at < w->next_table)
		return true;
	w->next_table = at + interval * UR_NS_PER_S;
	w->kernel_lost = w->live ? ur_pcap_live_lost(w->live) : 0;
	if (w->newest > IDLE_NS)
		ur_analysis_forget(w->file.analysis, w->newest - idle, w->newest - CLOSED_NS, forget_connection, w);
	print_table(w, interval);
	return ur_outfile_flush();
}

static bool take_frame(struct watch *w, struct ur_an_frame f)
{
	w->frames++;
	f.number = (uint32_t)(w->frames - w->frames_before);
	w->newest = f.when > w->newest ? f.when : w->newest;
	ur_analysis_frame(w->file.analysis, &f);
	if (w->frames % LOOK == 0 && !keep_up(w))
		return false;
	return f.number < FRAMES_MOST || begin_anew(w);
}

static int watch_interface(struct watch *w)
{
	struct ur_an_frame f;
	int rc = 0;

	w->gatherer = ur_gatherer_create();
	if (!w->gatherer)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot watch %s: out of memory", interface);
	w->live = ur_pcap_live_open(interface);
	if (!w->live)
		return UR_EXIT_USAGE;
	while (!ur_pcap_interrupted() && (rc = ur_pcap_live_next(w->live, &f)) >= 0) {
		if (rc)
			ur_gather(w->gatherer, &f);
		if (rc ? !take_frame(w, f) : !keep_up(w))
			break;
	}
	w->kernel_lost = ur_pcap_live_lost(w->live);
	return rc < 0 ? UR_EXIT_USAGE : 0;
}

static int watch_file(struct watch *w, const char *name)
{
	struct ur_pcap_source s;
	int rc = 0;

	if (!ur_pcap_source_open(&s, name))
		return UR_EXIT_USAGE;
	while (ur_pcap_source_next(&s) && take_frame(w, s.frame))
		;
	if (s.why)
		rc = ur_cmd_fail(UR_EXIT_USAGE, "%s cannot be read after frame %u: %s", name, s.frame.number, s.why);
	else if (!ur_pcap_source_has_roce(&s))
		rc = UR_EXIT_USAGE;
	ur_pcap_source_close(&s);
	return rc;
}

/* --- the whole --- */

static void print_totals(struct watch *w)
{
	struct ur_an_totals t;

	ur_analysis_finish(w->file.analysis);
	ur_analysis_totals(w->file.analysis, &t);
	if (!t.roce && !w->live)
		return;
	putchar('\n');
	ur_pcap_print_verdict(&w->file);
	if (w->forgotten)
		printf("\nForgotten because they were over: %" PRIu64 " connection%s, of which %" PRIu64 " %s disturbed.\n", w->forgotten,
		       ur_plural(w->forgotten), w->disturbed, w->disturbed == 1 ? "was" : "were");
	if (w->kernel_lost)
		printf("The kernel lost %" PRIu64 " frame%s before this command could read them: they are called missing above.\n",
		       w->kernel_lost, ur_plural(w->kernel_lost));
}

static int watch(const char *name)
{
	struct watch w = {.file = {.name = interface ? interface : name}};
	int rc = UR_EXIT_USAGE;

	w.file.room = UR_RULE_COUNT * FINDINGS_MOST;
	w.file.found = calloc(w.file.room, sizeof(*w.file.found));
	w.next_table = ur_clock_now() + interval * UR_NS_PER_S;
	ur_pcap_until_interrupted();
	if (w.file.found && begin_analysis(&w)) {
		rc = interface ? watch_interface(&w) : watch_file(&w, name);
		if (!rc || w.frames)
			print_totals(&w);
	}
	ur_pcap_live_close(w.live);
	ur_gatherer_destroy(w.gatherer);
	for (struct row *r = w.rows, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	ur_pcap_close(&w.file);
	return rc;
}

static bool parse_interval(const char *s)
{
	return ur_pcap_number(s, 86400, &interval) && interval;
}

static const struct ur_option options[] = {
	{"interface", "IFNAME", UR_COMPLETE_INTERFACE, .value = &interface, .help = "record this interface; needs CAP_NET_RAW"},
	{"interval", "SECONDS", .parse = parse_interval, .takes = "a number from 1 to 86400",
	 .help = "seconds between two tables, from 1 to 86400 (default 10)"},
	{"quiet", .set = &quiet, .help = "errors and warnings only"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap watch --interface eth0", "What comes and goes at eth0, until Ctrl-C."},
	{"ssh host tcpdump -i eth0 -U -w - udp port 4791 | uroce pcap watch -", "The same of another host."},
	{0},
};

static int run_pcap_watch(int argc, char **argv)
{
	if (!interface == !argc)
		return ur_cmd_fail(UR_EXIT_USAGE, "give either --interface IFNAME or one FILE (`-` is standard input)");
	return watch(argc ? argv[0] : NULL);
}

const struct ur_command ur_pcap_watch = {
	.name = "watch",
	.operands = "[FILE]",
	.complete = UR_COMPLETE_FILE,
	.summary = "print findings as they come, and a table of connections",
	.text = "Reads an interface, or a recording that is being written (`-`: standard input), until it ends or Ctrl-C is pressed, and "
		"then prints "
		"the verdict. Findings are printed as soon as they are decided. The table has the ten directions with the most data since "
		"the one "
		"before it.\n\nConnections of which nothing has come for a minute, and closed ones after two seconds, are forgotten and "
		"counted, so memory is bounded. Frames that the kernel lost are counted, too.",
	.status = "0; 2 when the interface or the file cannot be read to its end, or a file holds no RoCEv2 packet.",
	.options = options,
	.examples = examples,
	.run = run_pcap_watch,
};
