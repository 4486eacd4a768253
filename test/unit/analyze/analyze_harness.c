/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze_harness.h"

#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>


#define FILES 128

static struct ur_recording all[FILES + 1];

static void load(struct ur_recording *r, const char *name)
{
	char err[PCAP_ERRBUF_SIZE], path[512];
	struct pcap_pkthdr *h;
	const u_char *bytes;
	pcap_t *cap;

	snprintf(path, sizeof(path), "%s/pcaps/%s", UROCE_SOURCE_ROOT, name);
	cap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	if (!cap)
		return;
	r->name = strdup(name);
	while (pcap_next_ex(cap, &h, &bytes) == 1) {
		ur_time when = (ur_time)h->ts.tv_sec * UR_NS_PER_S + (ur_time)h->ts.tv_usec;

		ur_recording_add(r, &(struct ur_an_frame){.when = when, .data = bytes, .have = h->caplen, .len = h->len});
	}
	pcap_close(cap);
}

static int is_pcap(const struct dirent *d)
{
	return strstr(d->d_name, ".pcap") != NULL;
}

const struct ur_recording *analyze_recordings(void)
{
	struct dirent **names;
	int n;

	if (all[0].n)
		return all;
	n = scandir(UROCE_SOURCE_ROOT "/pcaps", &names, is_pcap, alphasort);
	for (int i = 0; i < n; i++) {
		if (i < FILES)
			load(&all[i], names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return all;
}

static void found(void *ctx, const struct ur_finding *f)
{
	struct findings *out = ctx;

	if (out->n == out->room) {
		out->room = out->room ? 2 * out->room : 64;
		out->f = realloc(out->f, out->room * sizeof(*out->f));
	}
	out->f[out->n++] = *f;
}

void analyze_run(const struct ur_recording *r, struct findings *out)
{
	memset(out, 0, sizeof(*out));
	out->a = ur_analysis_create(found, out);
	for (unsigned i = 0; i < r->n; i++) {
		struct ur_an_frame f = ur_recording_frame(r, i);

		ur_analysis_frame(out->a, &f);
	}
	ur_analysis_finish(out->a);
}

void findings_free(struct findings *f)
{
	ur_analysis_destroy(f->a);
	free(f->f);
}

unsigned findings_of(const struct findings *f, enum ur_rule rule, uint32_t frame)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++)
		n += f->f[i].rule == rule && (!frame || f->f[i].frame == frame);
	return n;
}

unsigned findings_worse(const struct findings *f, enum ur_severity least)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++)
		n += ur_rules[f->f[i].rule].severity >= least;
	return n;
}

void findings_print(const struct findings *f, const char *what)
{
	char text[512];

	for (unsigned i = 0; i < f->n; i++) {
		ur_finding_text(&f->f[i], text, sizeof(text));
		printf("# %s:%u %s %s\n", what, f->f[i].frame, ur_rules[f->f[i].rule].name, text);
	}
}
