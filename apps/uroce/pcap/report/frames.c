/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of a report: the packets around findings, as the ladder shows them, connection by connection. Findings name frames; the file is read
 * for the connections that these are of, and again for the packets around them. A frame of no connection has a row for itself.
 */
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/frame/recorded_train.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/ladder/ladder.h"
#include "wire/frame.h"

#define BEFORE 8 /* rows around a frame that a finding is about */
#define AFTER 16
#define AROUND 3       /* and around one that it mentions */
#define OPENING 24     /* rows at the beginning of a connection */
#define TOGETHER 300   /* frames: what is nearer to the first frame of a part is in it */
#define WARM_UP 600    /* frames that are looked at before a part, for what comes again */
#define COOL_DOWN 1024 /* and after it, for what became of its packets */
#define OTHERS 400     /* frames of no connection */
#define MARKS 8192
#define KEYS 8         /* of a connection */
#define TRIES 64       /* connections with one QPN in turn that a frame may be of, the newest of them */
#define RANK_OPENING 6 /* the last: those of findings are 0 to 5 */

struct mark {                 /* a frame that is to be shown */
	uint32_t frame, conn; /* conn: from 1, 0 as long as it is not known */
	uint32_t qpn;
	uint16_t before, after;
	uint8_t rank; /* the lowest first, when there is not room for all */
};

struct part { /* while it is read */
	struct ur_report_part *to;
	uint32_t first, last;
	struct ur_ladder *ladder;
	bool full;
};

struct key { /* of a connection: what packets to one of its QPs have; or QPN 1, and the frame of a message of its connection manager */
	struct ur_gid from, to;
	uint32_t qpn, begun, conn;
};

struct reading {
	struct ur_report *r;
	struct mark *marks;
	uint32_t n, next;
	struct part parts[UR_REPORT_PARTS];
	uint32_t nparts;
	struct ur_report_part others;
	struct key *keys; /* sorted */
	uint32_t nkeys;
};

/* --- frames in sentences --- */

static const char *number_after(const char *at, const char *word, uint32_t *v)
{
	const size_t n = strlen(word);
	char *end;

	if (strncmp(at, word, n) != 0 || at[n] < '1' || at[n] > '9')
		return NULL;
	*v = (uint32_t)strtoul(at + n, &end, 10);
	return end;
}

void ur_report_each_frame(const char *text, void (*each)(void *ctx, uint32_t frame, const char *at, size_t len), void *ctx)
{
	static const char *const joints[] = {", ", " to ", " and "};
	const char *end, *at = text;
	uint32_t v;

	while ((at = strstr(at, "frame"))) {
		const bool many = strncmp(at, "frames ", 7) == 0;

		end = number_after(at, many ? "frames " : "frame ", &v);
		at += many ? 7 : strlen("frame");
		at += !many && *at == ' ';
		while (end) {
			const char *next = NULL;

			each(ctx, v, at, (size_t)(end - at));
			for (unsigned i = 0; many && !next && i < ur_array_size(joints); i++)
				if ((next = number_after(end, joints[i], &v)))
					at = end + strlen(joints[i]);
			end = next;
		}
	}
}

/* --- keys --- */

static int by_name(const struct key *a, const struct key *b)
{
	const int from = memcmp(&a->from, &b->from, sizeof(a->from)), to = memcmp(&a->to, &b->to, sizeof(a->to));

	return a->qpn != b->qpn ? (a->qpn > b->qpn) - (a->qpn < b->qpn) : from ? from : to;
}

static int by_key(const void *x, const void *y)
{
	const struct key *a = x, *b = y;
	const int name = by_name(a, b);

	if (name)
		return name;
	return a->begun != b->begun ? (a->begun > b->begun) - (a->begun < b->begun) : (a->conn > b->conn) - (a->conn < b->conn);
}

/* --- which frames --- */

static void add_mark(struct reading *d, struct mark m)
{
	if (m.frame && d->n < MARKS)
		d->marks[d->n++] = m;
}

struct mention {
	struct reading *d;
	const struct ur_pcap_finding *g;
	uint8_t rank;
};

static void add_mention(void *ctx, uint32_t frame, const char *at, size_t len)
{
	const struct mention *m = ctx;

	(void)at;
	(void)len;
	if (frame <= m->d->r->f.end.frames)
		add_mark(m->d, (struct mark){frame, 0, m->g->qpn, AROUND, AROUND, m->rank});
}

static int by_frame(const void *x, const void *y)
{
	const struct mark *a = x, *b = y;

	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void choose_marks(struct reading *d)
{
	const struct ur_report *r = d->r;

	for (uint32_t i = 0; i < r->nfindings; i++) {
		const struct ur_pcap_finding *g = r->findings[i];
		const uint8_t rank = (uint8_t)(2 * (UR_ERROR - g->severity));
		struct mention m = {d, g, rank + 1};

		add_mark(d, (struct mark){g->frame, 0, g->qpn, BEFORE, AFTER, rank});
		ur_report_each_frame(g->text, add_mention, &m);
	}
	for (uint32_t i = 0; i < r->nconns; i++) {
		struct ur_an_conn c;

		if (!ur_analysis_conn(r->f.analysis, r->conns[i], &c))
			continue;
		add_mark(d, (struct mark){c.req_frame             ? c.req_frame
					  : c.half[0].first_frame ? c.half[0].first_frame
								  : c.half[1].first_frame,
					  r->conns[i] + 1, 0, 0, OPENING, RANK_OPENING});
	}
	qsort(d->marks, d->n, sizeof(*d->marks), by_frame);
}

/* --- whose they are --- */

static uint32_t sooner(uint32_t a, uint32_t b)
{
	return !a || (b && b < a) ? b : a;
}

static bool make_keys(struct reading *d)
{
	const uint32_t n = d->r->totals.conns;
	struct ur_an_conn c;

	d->keys = calloc((size_t)n * KEYS + 1, sizeof(*d->keys));
	for (uint32_t i = 0; d->keys && i < n && ur_analysis_conn(d->r->f.analysis, i, &c); i++) {
		const uint32_t begun = sooner(sooner(c.half[0].first_frame, c.half[1].first_frame), c.req_frame);
		const uint32_t cm[] = {c.req_frame, c.rep_frame, c.rtu_frame, c.rej_frame, c.dreq_frame, c.drep_frame};

		for (unsigned k = 0; k < 2; k++)
			if (c.half[k].dqpn && begun)
				d->keys[d->nkeys++] = (struct key){c.half[k].from, c.half[k].to, c.half[k].dqpn, begun, i};
		for (unsigned k = 0; k < ur_array_size(cm); k++)
			if (cm[k])
				d->keys[d->nkeys++] = (struct key){.qpn = 1, .begun = cm[k], .conn = i};
	}
	if (d->keys)
		qsort(d->keys, d->nkeys, sizeof(*d->keys), by_key);
	return d->keys;
}

/* How many are not after `k`. */
static uint32_t keys_upto(const struct reading *d, const struct key *k)
{
	uint32_t low = 0, high = d->nkeys;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (by_key(&d->keys[middle], k) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_about(const struct ur_an_conn *c, const struct mark *m, bool cm)
{
	return cm || (m->qpn && (m->qpn == c->half[0].dqpn || m->qpn == c->half[1].dqpn));
}

/* Of connections with one QPN in turn, the newest that has begun. */
static uint32_t owner_of(const struct reading *d, const struct mark *m, const struct ur_an_frame *f, const struct an_pkt *p)
{
	const bool cm = p->bth.dqpn == 1;
	struct key want = {.qpn = p->bth.dqpn, .begun = m->frame, .conn = UINT32_MAX};
	struct ur_an_conn c;

	if (!cm) {
		want.from = p->src;
		want.to = p->dst;
	}
	for (uint32_t i = keys_upto(d, &want), tries = TRIES; i-- && tries--;) {
		const struct key *k = &d->keys[i];

		if (by_name(k, &want) != 0 || (cm && k->begun != m->frame))
			return 0;
		if (ur_analysis_conn(d->r->f.analysis, k->conn, &c) && is_about(&c, m, cm) && ur_ladder_is_of(&c, f))
			return k->conn + 1;
	}
	return 0;
}

static void resolve(void *ctx, const struct ur_an_frame *f)
{
	struct reading *d = ctx;

	for (; d->next < d->n && d->marks[d->next].frame <= f->number; d->next++) {
		struct mark *m = &d->marks[d->next];
		const struct an_pkt *p;
		struct an_train t;

		if (m->frame != f->number || m->conn)
			continue;
		an_train_first(&t, f);
		while (t.read && !m->conn && (p = an_train_next(&t)))
			m->conn = owner_of(d, m, f, p);
	}
}

/* --- parts --- */

static struct part *part_for(struct reading *d, const struct mark *m)
{
	struct part *p;

	for (uint32_t i = 0; i < d->nparts; i++) {
		p = &d->parts[i];
		if (p->to->number == m->conn && m->frame + TOGETHER > p->last && m->frame < p->first + TOGETHER)
			return p;
	}
	if (d->nparts == UR_REPORT_PARTS - 1) /* one is for frames of no connection */
		return NULL;
	p = &d->parts[d->nparts];
	p->to = &d->r->parts[d->nparts++];
	p->first = p->last = m->frame;
	p->to->number = m->conn;
	p->to->at = m->frame;
	ur_analysis_conn(d->r->f.analysis, m->conn - 1, &p->to->c);
	return p;
}

/* False when there is no room for another part. */
static bool take_in(struct reading *d, const struct mark *m)
{
	struct part *p = part_for(d, m);

	if (!p)
		return false;
	p->first = m->frame < p->first ? m->frame : p->first;
	p->last = m->frame > p->last ? m->frame : p->last;
	return true;
}

static void choose_parts(struct reading *d)
{
	for (unsigned rank = 0; rank <= RANK_OPENING; rank++) {
		for (uint32_t i = 0; i < d->n; i++) {
			const struct mark *m = &d->marks[i];

			if (m->rank == rank && m->conn && !take_in(d, m))
				d->r->rows_left_out = true;
		}
	}
}

/* --- rows --- */

static void fill_row(struct ur_report_row *to, const struct ur_lad *l, uint32_t i)
{
	const struct ur_lad_item it = {.kind = UR_LAD_ROW, .row = i, .n = 1};
	const struct ur_ladder_row *r = &l->rows[i];
	char label[UR_LAD_TEXT], remark[UR_LAD_TEXT], details[UR_LAD_DETAILS];

	ur_lad_label(l, &it, label);
	ur_lad_remark(l, &it, remark);
	ur_lad_details(l, &it, remark, details);
	*to = (struct ur_report_row){.frame = r->frame,
				     .when = r->when,
				     .second = r->second,
				     .class = ur_lad_class(r),
				     .reach = ur_lad_reach(r->fate),
				     .label = strdup(label),
				     .remark = strdup(remark),
				     .details = strdup(details)};
	for (uint32_t k = i; r->frame && k-- && l->rows[k].frame == r->frame;)
		to->packet++;
}

/* Rows around the marks of this part; `keep` has a place for each of the ladder's rows. */
static uint32_t choose_rows(const struct reading *d, const struct part *p, const struct ur_lad *l, bool *keep)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		const struct mark *m = &d->marks[i];

		for (uint32_t k = 0; m->conn == p->to->number && m->frame >= p->first && m->frame <= p->last && k < l->nrows; k++) {
			if (l->rows[k].frame != m->frame)
				continue;
			for (uint32_t j = k > m->before ? k - m->before : 0; j <= k + m->after && j < l->nrows; j++)
				keep[j] = true;
		}
	}
	for (uint32_t k = 0; k < l->nrows; k++)
		n += keep[k];
	return n;
}

/* False when memory is short. */
static bool take_rows(struct reading *d, const struct part *p, uint32_t *room)
{
	struct ur_lad l = {.file = d->r->f.name, .c = p->to->c, .at = p->to->at, .origin = d->r->totals.first};
	bool *keep;
	uint32_t n;

	l.rows = ur_ladder_rows(p->ladder, &l.nrows);
	if (!l.nrows)
		return true;
	keep = calloc(l.nrows, sizeof(*keep));
	n = keep ? choose_rows(d, p, &l, keep) : 0;
	d->r->rows_left_out |= n > *room;
	n = n < *room ? n : *room;
	p->to->rows = n ? calloc(n, sizeof(*p->to->rows)) : NULL;
	for (uint32_t k = 0; p->to->rows && k < l.nrows && p->to->n < n; k++)
		if (keep[k])
			fill_row(&p->to->rows[p->to->n++], &l, k);
	*room -= p->to->n;
	free(keep);
	return keep && (!n || p->to->rows);
}

/* A frame of no connection: what its headers say. */
static void fill_other(struct ur_report_row *to, const struct ur_an_frame *f, ur_time origin)
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT], label[UR_LAD_TEXT], details[UR_LAD_DETAILS], t[24];
	const ur_time since = f->when > origin ? f->when - origin : 0;
	struct an_pkt p;
	int n;

	if (an_dissect(f, &p)) {
		snprintf(label, sizeof(label), "%s to QP 0x%x  PSN %u  %u bytes", p.op->name ? p.op->name : "unknown opcode", p.bth.dqpn,
			 p.bth.psn, p.payload_len);
		snprintf(details, sizeof(details),
			 "frame %u, %s after the first\n%s to %s QP 0x%x\nopcode 0x%02x %s\nPSN %u, UDP source port %u, TOS 0x%02x%s%s",
			 f->number, ur_pcap_time(since, t), ur_gid_ip(&p.src, a), ur_gid_ip(&p.dst, b), p.bth.dqpn, p.bth.opcode,
			 p.op->name ? p.op->name : "(unknown)", p.bth.psn, p.sport, p.tos, p.wrong ? "\n" : "", p.wrong ? p.wrong : "");
	} else {
		snprintf(label, sizeof(label), "%u bytes, no RoCEv2 packet", f->len);
		n = snprintf(details, sizeof(details), "frame %u, %s after the first\n%u bytes, %u of them recorded, beginning with",
			     f->number, ur_pcap_time(since, t), f->len, f->have);
		for (uint32_t i = 0; i < f->have && i < 64; i++)
			n += snprintf(details + n, sizeof(details) - (size_t)n, "%s%02x", i % 16 ? " " : "\n", f->data[i]);
	}
	*to = (struct ur_report_row){.frame = f->number,
				     .when = f->when,
				     .class = "req",
				     .reach = 100,
				     .label = strdup(label),
				     .remark = strdup(""),
				     .details = strdup(details)};
}

static void take_other(struct reading *d, const struct ur_an_frame *f)
{
	bool marked = false;

	for (; d->next < d->n && d->marks[d->next].frame <= f->number; d->next++)
		marked |= d->marks[d->next].frame == f->number && !d->marks[d->next].conn;
	if (marked && d->others.n == OTHERS)
		d->r->rows_left_out = true;
	else if (marked)
		fill_other(&d->others.rows[d->others.n++], f, d->r->totals.first);
}

static void feed(void *ctx, const struct ur_an_frame *f)
{
	struct reading *d = ctx;

	take_other(d, f);
	for (uint32_t i = 0; i < d->nparts; i++) {
		struct part *p = &d->parts[i];

		if (!p->full && f->number + WARM_UP >= p->first && f->number <= p->last + COOL_DOWN)
			p->full = !ur_ladder_frame(p->ladder, f);
	}
}

/* --- the whole --- */

static int by_place(const void *x, const void *y)
{
	const struct ur_report_part *a = x, *b = y;
	const uint32_t i = a->number - 1, j = b->number - 1; /* no connection comes last */

	if (i != j)
		return i < j ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

int ur_report_ascending(const void *x, const void *y)
{
	const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

static bool make_index(struct ur_report *r)
{
	r->frames = calloc(UR_REPORT_ROWS + OTHERS, sizeof(*r->frames));
	r->claimed = calloc(UR_REPORT_ROWS + OTHERS, sizeof(*r->claimed));
	if (!r->frames || !r->claimed)
		return false;
	for (uint32_t i = 0; i < r->nparts; i++)
		for (uint32_t k = 0; k < r->parts[i].n; k++)
			if (r->parts[i].rows[k].frame)
				r->frames[r->nframes++] = r->parts[i].rows[k].frame;
	qsort(r->frames, r->nframes, sizeof(*r->frames), ur_report_ascending);
	return true;
}

static const uint32_t *find_frame(const struct ur_report *r, uint32_t frame)
{
	return r->nframes ? bsearch(&frame, r->frames, r->nframes, sizeof(frame), ur_report_ascending) : NULL;
}

bool ur_report_has_row(const struct ur_report *r, uint32_t frame)
{
	return find_frame(r, frame);
}

bool ur_report_claim(const struct ur_report *r, uint32_t frame)
{
	const uint32_t *at = find_frame(r, frame);

	while (at && at > r->frames && at[-1] == frame)
		at--;
	if (!at || r->claimed[at - r->frames])
		return false;
	return r->claimed[at - r->frames] = true;
}

static bool each_frame(struct reading *d, ur_pcap_frame_fn fn)
{
	struct ur_pcap_end end;
	bool ok = ur_pcap_each(d->r->f.name, fn, d, &end);

	free(end.unreadable);
	return ok;
}

static bool read_parts(struct reading *d)
{
	uint32_t room = UR_REPORT_ROWS;
	bool ok = true;

	for (uint32_t i = 0; i < d->nparts; i++)
		ok &= (d->parts[i].ladder = ur_ladder_create(&d->parts[i].to->c, d->parts[i].to->at)) != NULL;
	d->others.rows = calloc(OTHERS, sizeof(*d->others.rows));
	d->next = 0;
	if (!ok || !d->others.rows) {
		free(d->others.rows);
		d->others.rows = NULL;
		return false;
	}
	ok = each_frame(d, feed);
	for (uint32_t i = 0; ok && i < d->nparts; i++)
		ok = take_rows(d, &d->parts[i], &room);
	d->r->parts[d->nparts] = d->others;
	d->r->nparts = d->nparts + 1;
	qsort(d->r->parts, d->r->nparts, sizeof(*d->r->parts), by_place);
	return ok && make_index(d->r);
}

bool ur_report_read_frames(struct ur_report *r)
{
	struct reading *d = calloc(1, sizeof(*d));
	bool ok = false;

	r->parts = calloc(UR_REPORT_PARTS, sizeof(*r->parts));
	if (d && r->parts) {
		d->r = r;
		d->marks = calloc(MARKS, sizeof(*d->marks));
		if (d->marks && make_keys(d)) {
			choose_marks(d);
			ok = each_frame(d, resolve);
			choose_parts(d);
			r->nparts = d->nparts;
			ok = ok && read_parts(d);
		}
		for (uint32_t i = 0; i < d->nparts; i++)
			ur_ladder_destroy(d->parts[i].ladder);
		free(d->keys);
		free(d->marks);
	}
	free(d);
	if (!ok)
		ur_cmd_fail(0, "cannot report %s: out of memory, or the file has changed meanwhile", r->f.name);
	return ok;
}

void ur_report_free_frames(struct ur_report *r)
{
	for (uint32_t i = 0; i < r->nparts; i++) {
		for (uint32_t k = 0; k < r->parts[i].n; k++) {
			free(r->parts[i].rows[k].label);
			free(r->parts[i].rows[k].remark);
			free(r->parts[i].rows[k].details);
		}
		free(r->parts[i].rows);
	}
	free(r->parts);
	free(r->frames);
	free(r->claimed);
}
