/* SPDX-License-Identifier: BSD-3-Clause */
/* The text beside an arrow, and the picture in characters. */
#include "apps/uroce/pcap/ladder/ladder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define WIDTH 78 /* between the two hosts */

static const char *name_of(const struct ur_ladder_row *r)
{
	const char *name = ur_opcode(r->opcode)->name;

	if (r->cm)
		return r->attr ? ur_cm_attr_name(r->attr) : "connection manager";
	if (!name)
		return "unknown opcode";
	if (r->opcode == UR_OP_CNP)
		return name;
	return strchr(name, '_') ? strchr(name, '_') + 1 : name; /* the service is the connection's */
}

static const char *answer_name(const struct ur_ladder_row *r)
{
	if (!r->answer || r->cm || r->opcode % 32 != UR_OP_ACK || r->fate == UR_LADDER_DAMAGED)
		return name_of(r);
	switch (ur_syndrome_type(r->syndrome)) {
	case UR_AETH_ACK: return r->opcode == UR_OP_SACK ? "SACK" : "ACK";
	case UR_AETH_RNR: return "NAK (no receive buffer)";
	default: return ur_syndrome_value(r->syndrome) == UR_NAK_PSN_SEQ ? "NAK (packet missing)" : "NAK (refused for good)";
	}
}

static bool is_response(const struct ur_ladder_row *r)
{
	return r->answer && ur_opcode(r->opcode)->flags & UR_OPF_PAYLOAD && r->opcode != UR_OP_SACK;
}

static int put_psns(char *to, size_t room, uint32_t from, uint32_t upto)
{
	return snprintf(to, room, from == upto ? " %u" : " %u..%u", from, upto);
}

/* What is expected, and what is there beyond it. */
static void put_sack(const struct ur_ladder_row *r, char to[UR_LAD_TEXT], int n)
{
	if (!r->nhas) /* cut, or of another version */
		return;
	n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, "  expects %u, has", r->expected);
	for (unsigned i = 0; i < r->nhas && i < UR_LADDER_RUNS; i++)
		n += put_psns(to + n, UR_LAD_TEXT - (size_t)n, r->has[i].from, r->has[i].to);
	if (r->nhas > UR_LADDER_RUNS)
		snprintf(to + n, UR_LAD_TEXT - (size_t)n, " ..");
}

void ur_lad_label(const struct ur_lad *l, const struct ur_lad_item *it, char to[UR_LAD_TEXT])
{
	const struct ur_ladder_row *r = &l->rows[it->row], *last = &l->rows[it->row + it->n - 1];
	const uint32_t end = ur_psn_add(last->psn, last->n - 1);
	const bool read = ur_opcode(r->opcode)->flags & UR_OPF_READ;
	int n = 0;

	if (it->kind == UR_LAD_RUN)
		n = snprintf(to, UR_LAD_TEXT, "%u x ", it->n);
	else if (r->n > 1 && !(r->frame && read))
		n = snprintf(to, UR_LAD_TEXT, "%u packets: ", r->n);
	if (is_response(r) && (it->kind == UR_LAD_RUN || !r->frame))
		n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, it->n > 1 || r->n > 1 ? "READ responses" : "READ response");
	else
		n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, "%s", r->frame || r->answer ? answer_name(r) : "request");
	if (r->cm || r->opcode == UR_OP_CNP)
		return;
	if (r->opcode == UR_OP_SACK && r->frame && it->kind != UR_LAD_RUN) {
		put_sack(r, to, n);
		return;
	}
	n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, end == r->psn ? "  PSN %u" : "  PSN %u..%u", r->psn, end);
	if (read && r->dma_len && it->n == 1)
		n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, "  %u byte%s", r->dma_len, ur_plural(r->dma_len));
	else if (r->len && r->frame && it->n == 1)
		n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, "  %u byte%s", r->len, ur_plural(r->len));
	if (r->hello)
		snprintf(to + n, UR_LAD_TEXT - (size_t)n, "  hello");
}

static int put_fate(const struct ur_lad *l, const struct ur_ladder_row *r, char *to)
{
	const char *text = ur_ladder_fate_texts[r->fate], *hole = strstr(text, "%s");
	char addr[UR_IP_TEXT];

	if (!hole)
		return snprintf(to, UR_LAD_TEXT, "%s", text);
	ur_gid_ip(&l->c.half[r->second ^ (r->fate != UR_LADDER_BEFORE)].from, addr);
	return snprintf(to, UR_LAD_TEXT, "%.*s%s%s", (int)(hole - text), text, addr, hole + 2);
}

/* A mark of a switch, or the notification that tells a sender of it. */
static void put_congestion(const struct ur_lad *l, const struct ur_ladder_row *r, char to[UR_LAD_TEXT])
{
	size_t n = strlen(to);
	char addr[UR_IP_TEXT];

	if (r->frame && r->opcode == UR_OP_CNP) {
		n += (size_t)snprintf(to + n, UR_LAD_TEXT - n, "%s%s is to slow down", n ? "; " : "",
				      ur_gid_ip(&l->c.half[r->second].to, addr));
		ur_lad_put_rate(l, !r->second, r->when, r->when, to + n, UR_LAD_TEXT - n);
	} else if (r->frame && ur_tos_is_ce(r->tos)) {
		snprintf(to + n, UR_LAD_TEXT - n, "%smarked: congestion on its way (ECN)", n ? "; " : "");
	}
}

void ur_lad_remark(const struct ur_lad *l, const struct ur_lad_item *it, char to[UR_LAD_TEXT])
{
	const struct ur_ladder_row *r = &l->rows[it->row];
	int n = 0;

	to[0] = 0;
	if (r->fate != UR_LADDER_ARRIVED) {
		n = put_fate(l, r, to);
		if (r->wrong)
			n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, " (%s)", r->wrong);
		if (r->by)
			n += snprintf(to + n, UR_LAD_TEXT - (size_t)n, " (frame %u shows it)", r->by);
	}
	if (ur_opcode(r->opcode)->flags & UR_OPF_READ && r->again)
		snprintf(to + n, UR_LAD_TEXT - (size_t)n, "%sasks again for what is missing since frame %u", n ? "; " : "", r->again);
	else if (!r->answer && r->again)
		snprintf(to + n, UR_LAD_TEXT - (size_t)n, "%ssent again; before in frame %u", n ? "; " : "", r->again);
	else if (r->answer && r->repair)
		snprintf(to + n, UR_LAD_TEXT - (size_t)n, "%srepaired: what was lost has arrived", n ? "; " : "");
	else if (r->answer && r->again)
		snprintf(to + n, UR_LAD_TEXT - (size_t)n, "%sonce more, as in frame %u", n ? "; " : "", r->again);
	put_congestion(l, r, to);
}

const char *ur_lad_time(const struct ur_lad *l, const struct ur_ladder_row *r, char to[24])
{
	snprintf(to, 24, "%.3f ms", (double)(r->when > l->origin ? r->when - l->origin : 0) / 1e6);
	return to;
}

void ur_lad_host(const struct ur_lad *l, bool second, char to[80])
{
	char addr[UR_IP_TEXT];

	/* Packets to a host bear the number of its QP. */
	ur_gid_ip(&l->c.half[second].from, addr);
	if (l->c.half[!second].dqpn)
		snprintf(to, 80, "%s QP 0x%x", addr, l->c.half[!second].dqpn);
	else
		snprintf(to, 80, "%s", addr);
}

const char *ur_lad_class(const struct ur_ladder_row *r)
{
	if (ur_lad_is_lost(r->fate))
		return "lost";
	if (r->fate == UR_LADDER_EARLY || r->fate == UR_LADDER_MISSED)
		return "early";
	if (r->again || r->repair)
		return "again";
	return r->answer ? "ans" : "req";
}

static void append_text(char *to, size_t room, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Appends. */
static void append_text(char *to, size_t room, const char *fmt, ...)
{
	size_t n = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to + n, room - n, fmt, ap);
	va_end(ap);
}

void ur_lad_details(const struct ur_lad *l, const struct ur_lad_item *it, const char *remark, char text[UR_LAD_DETAILS])
{
	const struct ur_ladder_row *r = &l->rows[it->row], *last = &l->rows[it->row + it->n - 1];
	const char *name = ur_opcode(r->opcode)->name;
	char a[80], b[80], t[24];

	text[0] = 0;
	ur_lad_host(l, r->second, a);
	ur_lad_host(l, !r->second, b);
	if (!r->frame)
		append_text(text, UR_LAD_DETAILS, "not in the file\n");
	else if (it->n > 1)
		append_text(text, UR_LAD_DETAILS, "frames %u to %u\n", r->frame, last->frame);
	else
		append_text(text, UR_LAD_DETAILS, "frame %u, %s after the first\n", r->frame, ur_lad_time(l, r, t));
	append_text(text, UR_LAD_DETAILS, "%s to %s\nopcode 0x%02x %s\n", a, b, r->opcode, name ? name : "(unknown)");
	append_text(text, UR_LAD_DETAILS, "PSN %u", r->psn);
	if (r->n > 1 || it->n > 1)
		append_text(text, UR_LAD_DETAILS, " to %u", ur_psn_add(last->psn, last->n - 1));
	if (r->frame) {
		append_text(text, UR_LAD_DETAILS, ", %u byte%s of payload%s%s%s, UDP source port %u, TOS 0x%02x", r->len, ur_plural(r->len),
			    r->ackreq ? ", AckReq" : "", r->hello ? ", hello" : "", r->cut ? ", cut by the recorder" : "", r->sport,
			    r->tos);
		if (r->dma_len || r->rkey)
			append_text(text, UR_LAD_DETAILS, "\naddress 0x%llx, rkey 0x%08x, %u byte%s", (unsigned long long)r->va, r->rkey,
				    r->dma_len, ur_plural(r->dma_len));
		if (ur_opcode(r->opcode)->flags & UR_OPF_AETH)
			append_text(text, UR_LAD_DETAILS, "\nsyndrome 0x%02x, MSN %u", r->syndrome, r->msn);
	}
	if (*remark)
		append_text(text, UR_LAD_DETAILS, "\n%s", remark);
}

/* --- characters --- */

static void put_bar(char *bar)
{
	memset(bar, ' ', WIDTH);
	bar[WIDTH / 2] = ':';
	bar[WIDTH] = 0;
}

/* The arrow from one side to where it ends, with the label near its beginning. */
static void put_arrow(char *bar, const struct ur_ladder_row *r, const char *label)
{
	const unsigned reach = WIDTH * ur_lad_reach(r->fate) / 100;
	const char line = r->frame ? (r->again || r->repair ? '=' : '-') : '.';
	unsigned n = (unsigned)strlen(label);
	unsigned from = r->second ? WIDTH - reach : 0, at;

	memset(bar + from, line, reach);
	if (r->second)
		bar[from] = ur_lad_is_lost(r->fate) ? 'X' : '<';
	else
		bar[from + reach - 1] = ur_lad_is_lost(r->fate) ? 'X' : '>';
	n = n > WIDTH - 8 ? WIDTH - 8 : n;
	at = r->second ? WIDTH - 4 - n : 3;
	bar[at - 1] = ' ';
	memcpy(bar + at, label, n);
	bar[at + n] = ' ';
	if (ur_lad_is_lost(r->fate) && n + 6 > reach) /* the label is longer than the arrow */
		bar[r->second ? at - 2 : at + n + 1] = 'X';
}

static void draw_row(const struct ur_lad *l, const struct ur_lad_item *it, FILE *out)
{
	const struct ur_ladder_row *r = &l->rows[it->row];
	char bar[WIDTH + 1], label[UR_LAD_TEXT], remark[UR_LAD_TEXT], t[24], frame[24] = "-";

	put_bar(bar);
	ur_lad_label(l, it, label);
	ur_lad_remark(l, it, remark);
	put_arrow(bar, r, label);
	if (r->frame)
		snprintf(frame, sizeof(frame), "%u%s", r->frame, it->kind == UR_LAD_RUN ? "+" : "");
	fprintf(out, "%10s %7s%c |%s|  %s\n", ur_lad_time(l, r, t), frame, r->frame == l->at ? '*' : ' ', bar, remark);
}

static void draw_other(const struct ur_lad_item *it, FILE *out)
{
	char bar[WIDTH + 1];

	put_bar(bar);
	if (it->kind == UR_LAD_PAUSE)
		fprintf(out, "%10s %7s  |%s|\n", "...", "", bar);
	else if (it->event->path)
		fprintf(out, "%10s %7s  |%s|  between: %s\n", "", "", bar, it->event->text);
	else
		fprintf(out, "%10s %7s  %c%s%c  %s: %s\n", "", "", it->event->second ? '|' : '#', bar, it->event->second ? '#' : '|',
			it->event->second ? "right" : "left", it->event->text);
}

/* The first row after `i` that brings a response of its range, or the next one that is no repetition. */
static const struct ur_ladder_row *repaired_by(const struct ur_lad *l, uint32_t i)
{
	const struct ur_ladder_row *r = &l->rows[i];

	for (uint32_t k = i + 1; k < l->nrows; k++) {
		const struct ur_ladder_row *a = &l->rows[k];
		const bool data = is_response(a);

		if (!a->frame || a->second == r->second || !a->answer || a->fate != UR_LADDER_ARRIVED)
			continue;
		if (data ? ((a->psn - r->psn) & UR_PSN_MASK) < r->n
			 : ur_syndrome_type(a->syndrome) == UR_AETH_ACK && ur_psn_diff(a->psn, r->psn) >= 0)
			return a;
	}
	return NULL;
}

/* What came again, what was lost before it, and what repaired it: the picture in a sentence. */
static bool put_story(const struct ur_lad *l, uint32_t i, char to[UR_LAD_STORY])
{
	const struct ur_ladder_row *r = &l->rows[i], *lost = NULL, *done = repaired_by(l, i);
	char addr[UR_IP_TEXT], t[24], u[24], fate[UR_LAD_TEXT];
	uint32_t n = 0;
	bool later;
	int len;

	for (uint32_t k = 0; k < i; k++) {
		if (l->rows[k].by != r->frame || !ur_lad_is_lost(l->rows[k].fate))
			continue;
		lost = n ? lost : &l->rows[k];
		n += l->rows[k].answer ? l->rows[k].n : 1;
	}
	if (!lost)
		return false;
	put_fate(l, lost, fate);
	if (lost->fate == UR_LADDER_FAR)
		snprintf(fate, sizeof(fate), "not answered: it, or its answer, was lost after the recorder");
	later = r->when >= lost->when + UR_AN_INSTANT_NS;
	len = snprintf(to, UR_LAD_STORY, "%s PSN %u", lost->answer ? "The response with" : "The request with", lost->psn);
	if (n > 1)
		len += snprintf(to + len, UR_LAD_STORY - (size_t)len, ", and %u more,", n - 1);
	len += snprintf(to + len, UR_LAD_STORY - (size_t)len, " was %s. ", fate);
	len += snprintf(to + len, UR_LAD_STORY - (size_t)len, "%s%s %s %s it again (frame %u)",
			later ? ur_pcap_time(r->when - lost->when, t) : "At", later ? " later" : " once",
			ur_gid_ip(&l->c.half[r->second].from, addr), lost->answer ? "asks for" : "sends", r->frame);
	if (done && done->when >= r->when + UR_AN_INSTANT_NS)
		snprintf(to + len, UR_LAD_STORY - (size_t)len, ", and has %s %s after that (frame %u).", lost->answer ? "it" : "the answer",
			 ur_pcap_time(done->when - r->when, u), done->frame);
	else if (done) /* handled in one round, whose time both have */
		snprintf(to + len, UR_LAD_STORY - (size_t)len, ", and has %s in frame %u.", lost->answer ? "it" : "the answer",
			 done->frame);
	else
		snprintf(to + len, UR_LAD_STORY - (size_t)len, "; no answer to that is in the file.");
	return true;
}

void ur_lad_story(const struct ur_lad *l, char to[UR_LAD_STORY])
{
	to[0] = 0;
	for (uint32_t i = 0; i < l->nrows; i++)
		if (l->rows[i].frame >= l->at && l->rows[i].again && put_story(l, i, to))
			return;
}

void ur_lad_draw_text(const struct ur_lad *l, FILE *out)
{
	char a[80], b[80], story[UR_LAD_STORY];

	ur_lad_host(l, false, a);
	ur_lad_host(l, true, b);
	ur_lad_story(l, story);
	fprintf(out, "%s, frame %u: %s (left) and %s (right), %s", l->file, l->at, a, b, ur_pcap_service(l->c.service));
	fprintf(out, l->c.mtu ? ", path MTU %u\n" : "\n", l->c.mtu);
	if (l->about)
		fprintf(out, "Frame %u: %s.\n", l->at, l->about);
	if (*story)
		fprintf(out, "%s\n", story);
	fprintf(out, "\n%10s %7s  %-*s%-*s%*s\n", "time", "frame", WIDTH / 2 - 3, a, 8, "recorder", WIDTH / 2 - 3, b);
	for (uint32_t i = 0; i < l->nitems; i++) {
		if (l->items[i].kind == UR_LAD_ROW || l->items[i].kind == UR_LAD_RUN)
			draw_row(l, &l->items[i], out);
		else
			draw_other(&l->items[i], out);
	}
	fputs("\n-- sent, == sent again or asked for again, .. not in the file; X: it was lost there. The dotted line is the recorder.\n",
	      out);
}
