/* SPDX-License-Identifier: BSD-3-Clause */
/* A file, frame by frame; and through the analysis. Frames are not kept; findings are, up to a bound, with their sentences. */
#include "pcap.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define KEEP 10000 /* findings of a rule; more are counted */

const char *ur_pcap_service(uint8_t service)
{
	switch (service) {
	case UR_RC: return "RC";
	case UR_UC: return "UC";
	case UR_XRC: return "XRC";
	}
	return "unknown service";
}

const char *ur_pcap_time(uint64_t ns, char to[24])
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{UR_NS_PER_S, "s"}, {UR_NS_PER_MS, "ms"}, {UR_NS_PER_US, "us"}, {1, "ns"}};
	unsigned u = 0;
	double v;

	while (u < 3 && ns < units[u].ns)
		u++;
	v = (double)ns / (double)units[u].ns;
	snprintf(to, 24, "%.*f %s", v < 10 && u < 3 ? 2 : v < 100 && u < 3 ? 1 : 0, v, units[u].name);
	return to;
}

void ur_pcap_json(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', out);
		if ((unsigned char)*s < 0x20)
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

static void found(void *ctx, const struct ur_finding *f)
{
	struct ur_pcap_file *file = ctx;
	struct ur_an_totals t;
	char text[UR_PCAP_TEXT];

	ur_analysis_totals(file->analysis, &t);
	if (t.findings[f->rule] > KEEP) {
		file->untold[f->rule]++;
		return;
	}
	if (file->n == file->room) {
		size_t room = file->room ? 2 * file->room : 64;
		struct ur_pcap_finding *more = realloc(file->found, room * sizeof(*more));

		if (!more)
			return;
		file->found = more;
		file->room = room;
	}
	ur_finding_text(f, text, sizeof(text));
	file->found[file->n] = (struct ur_pcap_finding){f->frame, (uint32_t)file->n, f->rule, f->when, f->qpn, strdup(text)};
	file->n += file->found[file->n].text != NULL;
}

static int by_frame(const void *x, const void *y)
{
	const struct ur_pcap_finding *a = x, *b = y;

	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static bool link_of(int dlt, enum ur_an_link *link)
{
	static const struct {
		int dlt;
		enum ur_an_link link;
	} links[] = {{DLT_EN10MB, UR_AN_ETHERNET}, {DLT_RAW, UR_AN_RAW_IP},    {DLT_IPV4, UR_AN_RAW_IP},
		     {DLT_IPV6, UR_AN_RAW_IP},     {DLT_LINUX_SLL, UR_AN_SLL}, {DLT_LINUX_SLL2, UR_AN_SLL2}};

	for (unsigned i = 0; i < ur_array_size(links); i++) {
		if (links[i].dlt != dlt)
			continue;
		*link = links[i].link;
		return true;
	}
	return false;
}

static bool next_frame(pcap_t *cap, struct ur_an_frame *f, char **unreadable)
{
	struct pcap_pkthdr *h;
	int rc = pcap_next_ex(cap, &h, &f->data);

	if (rc != 1) {
		*unreadable = rc == PCAP_ERROR ? strdup(pcap_geterr(cap)) : NULL;
		return false;
	}
	f->number++;
	f->when = (ur_time)h->ts.tv_sec * UR_NS_PER_S + (ur_time)h->ts.tv_usec; /* nanoseconds, as asked for */
	f->have = h->caplen;
	f->len = h->len;
	return true;
}

bool ur_pcap_each(const char *name, ur_pcap_frame_fn each, void *ctx, char **unreadable)
{
	char err[PCAP_ERRBUF_SIZE];
	struct ur_an_frame frame = {.number = 0};
	pcap_t *cap = pcap_open_offline_with_tstamp_precision(name, PCAP_TSTAMP_PRECISION_NANO, err);

	if (!cap) {
		ur_cmd_fail(0, "cannot read %s: %s", name, err);
		return false;
	}
	if (!link_of(pcap_datalink(cap), &frame.link)) {
		ur_cmd_fail(0, "cannot read %s: its frames are of the kind %s; Ethernet, raw IP and Linux cooked captures can be read",
			    name,
			    pcap_datalink_val_to_name(pcap_datalink(cap)) ? pcap_datalink_val_to_name(pcap_datalink(cap)) : "unknown");
		pcap_close(cap);
		return false;
	}
	while (next_frame(cap, &frame, unreadable))
		each(ctx, &frame);
	pcap_close(cap);
	return true;
}

static void analyze_frame(void *ctx, const struct ur_an_frame *f)
{
	struct ur_pcap_file *file = ctx;

	ur_analysis_frame(file->analysis, f);
}

bool ur_pcap_open(struct ur_pcap_file *f, const char *name)
{
	memset(f, 0, sizeof(*f));
	f->name = name;
	f->analysis = ur_analysis_create(found, f);
	if (!f->analysis) {
		ur_cmd_fail(0, "cannot read %s: no memory", name);
		return false;
	}
	if (!ur_pcap_each(name, analyze_frame, f, &f->unreadable))
		return false;
	ur_analysis_finish(f->analysis);
	if (f->n)
		qsort(f->found, f->n, sizeof(*f->found), by_frame);
	return true;
}

void ur_pcap_close(struct ur_pcap_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->found[i].text);
	free(f->found);
	free(f->unreadable);
	ur_analysis_destroy(f->analysis);
}
