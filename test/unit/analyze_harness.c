/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze_harness.h"

#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/icrc.h"
#include "wire/ip.h"

#define FILES 128

static struct recording all[FILES + 1];

static void keep(struct recording *r, const struct pcap_pkthdr *h, const u_char *bytes)
{
	struct rec_frame *f;

	r->f = realloc(r->f, (r->n + 1) * sizeof(*r->f));
	f = &r->f[r->n++];
	f->data = malloc(h->caplen + 1);
	memcpy(f->data, bytes, h->caplen);
	f->have = h->caplen;
	f->len = h->len;
	f->when = (ur_time)h->ts.tv_sec * UR_NS_PER_S + (ur_time)h->ts.tv_usec;
}

static void load(struct recording *r, const char *name)
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
	while (pcap_next_ex(cap, &h, &bytes) == 1)
		keep(r, h, bytes);
	pcap_close(cap);
}

static int is_pcap(const struct dirent *d)
{
	return strstr(d->d_name, ".pcap") != NULL;
}

const struct recording *analyze_recordings(void)
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

struct recording analyze_copy(const struct recording *r)
{
	struct recording c = {.name = r->name, .n = r->n, .f = malloc((r->n + 1) * sizeof(*c.f))};

	for (unsigned i = 0; i < r->n; i++) {
		c.f[i] = r->f[i];
		c.f[i].data = malloc(r->f[i].have + 1);
		memcpy(c.f[i].data, r->f[i].data, r->f[i].have);
	}
	return c;
}

void analyze_free(struct recording *r)
{
	for (unsigned i = 0; i < r->n; i++)
		free(r->f[i].data);
	free(r->f);
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

void analyze_run(const struct recording *r, struct findings *out)
{
	memset(out, 0, sizeof(*out));
	out->a = ur_analysis_create(found, out);
	for (unsigned i = 0; i < r->n; i++) {
		struct ur_an_frame f = {
			.number = i + 1, .when = r->f[i].when, .data = r->f[i].data, .have = r->f[i].have, .len = r->f[i].len};

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

bool analyze_pkt(const struct recording *r, unsigned i, struct an_pkt *p)
{
	struct ur_an_frame f = {.number = i + 1, .when = r->f[i].when, .data = r->f[i].data, .have = r->f[i].have, .len = r->f[i].len};

	return an_dissect(&f, p) && p->ext && p->icrc == AN_ICRC_OK;
}

static unsigned l4_len(const struct recording *r, unsigned i)
{
	return r->f[i].data[UR_ETH_LEN] >> 4 == 6 ? UR_IP6_LEN : UR_IP4_LEN;
}

uint8_t *analyze_bth(const struct recording *r, unsigned i)
{
	return r->f[i].data + UR_ETH_LEN + l4_len(r, i) + UR_UDP_LEN;
}

void analyze_mend(const struct recording *r, unsigned i, unsigned less)
{
	uint8_t *ip = r->f[i].data + UR_ETH_LEN;
	unsigned head = l4_len(r, i), udp = ur_get16(ip + head + 4) - less;

	r->f[i].len = r->f[i].have = UR_ETH_LEN + head + udp;
	ur_put16(ip + head + 4, (uint16_t)udp);
	if (head == UR_IP4_LEN)
		ur_ip4_finish(ip, head + udp);
	else
		ur_ip6_finish(ip, udp);
	ur_icrc_end(ur_icrc_begin(ip, head == UR_IP4_LEN ? 4 : 6, head + udp - UR_ICRC_LEN), ip + head + udp - UR_ICRC_LEN);
}

void analyze_remove(struct recording *r, unsigned i)
{
	free(r->f[i].data);
	memmove(&r->f[i], &r->f[i + 1], (r->n - i - 1) * sizeof(*r->f));
	r->n--;
}

void analyze_repeat(struct recording *r, unsigned i)
{
	r->f = realloc(r->f, (r->n + 1) * sizeof(*r->f));
	memmove(&r->f[i + 1], &r->f[i], (r->n - i) * sizeof(*r->f));
	r->n++;
	r->f[i + 1].data = malloc(r->f[i].have + 1);
	memcpy(r->f[i + 1].data, r->f[i].data, r->f[i].have);
}

void analyze_move(struct recording *r, unsigned i, unsigned to)
{
	struct rec_frame moved = r->f[i];

	for (; i < to; i++) {
		ur_time when = r->f[i].when;

		r->f[i] = r->f[i + 1];
		r->f[i].when = when;
	}
	moved.when = r->f[to].when;
	r->f[to] = moved;
	if (to)
		r->f[to].when = r->f[to - 1].when > moved.when ? r->f[to - 1].when : moved.when;
}
