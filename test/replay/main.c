/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay [-v] [FILE...]: has lib/replay replay both sides of each connection in the files, or in pcaps/ of the source tree. One line for
 * each side; 'skipped' lines say what was left out and why; the last line is 'N passed, N failed[, N skipped]'. The status is 1 when
 * anything failed or nothing ran. -v counts permitted differences.
 */
#include <glob.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tally.h"

static bool verbose;

void tally_line(struct tally *t, bool ok, const char *what)
{
	t->passed += ok;
	t->failed += !ok;
	printf("%s %u - %s\n", ok ? "ok" : "not ok", t->passed + t->failed, what);
}

bool load(struct capture *c, const char *path, const char **why)
{
	static char err[PCAP_ERRBUF_SIZE];
	pcap_t *cap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	const char *slash = strrchr(path, '/');
	struct ur_an_frame f = {.number = 0};
	struct pcap_pkthdr *h;

	*why = err;
	if (!capture_begin(c, slash ? slash + 1 : path) || !cap)
		return false;
	while (pcap_next_ex(cap, &h, &f.data) == 1) {
		f.number++;
		f.when = (ur_time)h->ts.tv_sec * UR_NS_PER_S + (ur_time)h->ts.tv_usec; /* nanoseconds, as asked for */
		f.have = h->caplen;
		f.len = h->len;
		capture_frame(c, &f);
	}
	pcap_close(cap);
	capture_end(c);
	return true;
}

static void tell(void *ctx, unsigned frame, const char *field, const char *recorded, const char *replayed)
{
	const struct capture *cap = ctx;
	char where[32] = "";

	if (frame)
		snprintf(where, sizeof(where), ", frame %u", frame);
	printf("# %s%s: %s: recorded %s, replayed %s\n", cap->file, where, field, recorded, replayed);
}

__attribute__((format(printf, 2, 3))) static void skip_line(struct tally *t, const char *fmt, ...)
{
	va_list ap;

	t->skipped++;
	fputs("skipped ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* "10.0.0.1 qp 17"; the number of a QP that nothing is sent to is unknown. */
static const char *name(const struct endpoint *e, char *buf, size_t len)
{
	char gid[UR_IP_TEXT];

	if (e->qpn)
		snprintf(buf, len, "%s qp %u", ur_gid_ip(&e->gid, gid), e->qpn);
	else
		snprintf(buf, len, "%s", ur_gid_ip(&e->gid, gid));
	return buf;
}

static void print_permitted(const struct report *rep)
{
	for (unsigned i = 0; verbose && i < PERMIT_COUNT; i++)
		if (rep->permitted[i])
			printf("# permitted %u times, %s\n", rep->permitted[i], permit_text((enum permit)i));
}

static const char *cut_note(const struct side *s)
{
	if (s->out.hole || s->in.hole)
		return ", not to the end";
	return s->out.cut || s->in.cut ? ", the last message is cut off" : "";
}

/* What was compared. */
static void count_text(const struct conn *c, const struct report *rep, char *buf, size_t len)
{
	if (c->service == SERVICE_CM)
		snprintf(buf, len, "%u messages", rep->requests);
	else if (c->service == UR_UD)
		snprintf(buf, len, "%u datagrams sent, %u received", rep->requests, rep->messages);
	else
		snprintf(buf, len, "%u requests, %u responses", rep->requests, rep->responses);
}

/* True when the side was skipped, with the reason in *why. */
static bool replay_side(struct capture *cap, const struct conn *c, unsigned me, struct tally *t, const char **why)
{
	struct report rep = {.tell = tell, .ctx = cap};
	char line[256], who[80], note[64] = "", what[64];
	enum side_state st;
	struct side s;

	st = side_open(&s, c, me, &rep, why);
	if (!st) {
		side_run(&s);
		snprintf(note, sizeof(note), "%s", cut_note(&s));
	}
	side_close(&s);
	if (st == SIDE_SKIP)
		return true;
	if (st == SIDE_BROKEN)
		snprintf(line, sizeof(line), "%s %s: %s", cap->file, name(&c->end[me], who, sizeof(who)), *why);
	count_text(c, &rep, what, sizeof(what));
	if (st != SIDE_BROKEN)
		snprintf(line, sizeof(line), "%s %s: %s%s", cap->file, name(&c->end[me], who, sizeof(who)), what, note);
	tally_line(t, !st && !rep.differences && rep.requests + rep.responses + rep.messages > 0, line);
	print_permitted(&rep);
	return false;
}

static void replay_conn(struct capture *cap, const struct conn *c, struct tally *t)
{
	char a[80], b[80];
	const char *why;

	for (unsigned me = 0; me < conn_sides(c); me++) {
		if (!replay_side(cap, c, me, t, &why))
			continue;
		skip_line(t, "%s %s with %s: %s", cap->file, name(&c->end[me], a, sizeof(a)), name(&c->end[!me], b, sizeof(b)), why);
		if (!me)
			return; /* the other side would be for the same reason */
	}
}

static void replay_conns(struct capture *cap, const struct conns *s, struct tally *t)
{
	unsigned idle = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->conn[i].n)
			replay_conn(cap, &s->conn[i], t);
		idle += !s->conn[i].n;
	}
	if (idle)
		skip_line(t, "%s: %u connections carry no data", cap->file, idle);
	if (s->others)
		skip_line(t, "%s: %u packets that are of no connection", cap->file, s->others);
	if (s->strays)
		skip_line(t, "%s: %u packets whose other direction is not in it", cap->file, s->strays);
	if (!s->n && !s->others && !s->strays)
		skip_line(t, "%s: no connection was made", cap->file);
	if (cap->bad)
		printf("# %s: %u frames are malformed and were left out\n", cap->file, cap->bad);
}

static void replay_file(const char *path, struct tally *t)
{
	struct capture cap;
	struct conns conns;
	const char *why;

	if (!load(&cap, path, &why)) {
		printf("# %s: %s\n", path, why);
		tally_line(t, false, path);
		capture_free(&cap);
		return;
	}
	conns_find(&conns, &cap, 1);
	replay_conns(&cap, &conns, t);
	conns_free(&conns);
	capture_free(&cap);
}

static void replay_tree(struct tally *t)
{
	glob_t g;

	if (glob(UROCE_SOURCE_ROOT "/pcaps/*.pcap", 0, NULL, &g) == 0 &&
	    glob(UROCE_SOURCE_ROOT "/pcaps/lossy/*.pcap", GLOB_APPEND, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++)
			replay_file(g.gl_pathv[i], t);
		globfree(&g);
	}
	mutate_all(UROCE_SOURCE_ROOT "/pcaps", t);
}

int main(int argc, char **argv)
{
	struct tally t = {0};
	int first = 1;

	verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	first += verbose;
	for (int i = first; i < argc; i++)
		replay_file(argv[i], &t);
	if (first == argc)
		replay_tree(&t);
	printf("%u passed, %u failed", t.passed, t.failed);
	if (t.skipped)
		printf(", %u skipped", t.skipped);
	putchar('\n');
	return t.failed || !t.passed;
}
