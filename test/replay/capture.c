/* SPDX-License-Identifier: BSD-3-Clause */
/* A pcap file into parsed RoCEv2 packets, each in a buffer that ends where the frame does. */
#include <pcap/pcap.h>
#include <stdlib.h>

#include "replay.h"
#include "wire_samples.h"

#define BEGIN UR_NS_PER_S /* virtual time of the first frame */

static void keep(struct capture *c, const struct ur_pkt *p, unsigned frame, ur_time when)
{
	if (!(c->n & (c->n - 1)))
		c->rec = realloc(c->rec, (c->n ? 2 * c->n : 1) * sizeof(*c->rec));
	c->rec[c->n++] = (struct rec){.frame = frame, .when = when, .pkt = *p};
}

static void load_frame(struct capture *c, const struct pcap_pkthdr *h, const u_char *bytes, unsigned frame, ur_time when)
{
	struct ur_counters count = {.v = {0}};
	struct ur_pkt p;

	sample_load(&p, bytes, h->caplen);
	if (!ur_frame_parse(&p, &count))
		c->bad++;
	else if (p.kind == UR_PKT_ROCE) {
		keep(c, &p, frame, when);
		return;
	}
	sample_free(&p);
}

/* Time does not go back, whatever the stamps say. */
static ur_time stamp(const struct pcap_pkthdr *h, ur_time *origin, ur_time last)
{
	ur_time t = (ur_time)h->ts.tv_sec * UR_NS_PER_S + (ur_time)h->ts.tv_usec; /* nanoseconds, as asked for */

	if (!*origin)
		*origin = t;
	t = t > *origin ? t - *origin + BEGIN : BEGIN;
	return t > last ? t : last;
}

bool capture_load(struct capture *c, const char *path, const char **why)
{
	static char err[PCAP_ERRBUF_SIZE];
	pcap_t *cap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	const char *slash = strrchr(path, '/');
	struct pcap_pkthdr *h;
	const u_char *bytes;
	unsigned frame = 0;
	ur_time origin = 0, when = 0;

	memset(c, 0, sizeof(*c));
	c->file = slash ? slash + 1 : path;
	*why = err;
	if (!cap)
		return false;
	while (pcap_next_ex(cap, &h, &bytes) == 1) {
		when = stamp(h, &origin, when);
		load_frame(c, h, bytes, ++frame, when);
	}
	pcap_close(cap);
	for (unsigned i = 0; i < c->n; i++)
		c->rec[i].want = &c->rec[i].pkt;
	return true;
}

void capture_free(struct capture *c)
{
	for (unsigned i = 0; i < c->n; i++)
		sample_free(&c->rec[i].pkt);
	free(c->rec);
}

bool pkt_remote(const struct ur_pkt *p, struct ur_reth *h)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	struct ur_atomiceth a;

	if (op->flags & UR_OPF_RETH) {
		ur_reth_get(pkt_ext(p) + op->off_reth, h);
		return true;
	}
	if (!(op->flags & UR_OPF_ATOMICETH))
		return false;
	ur_atomiceth_get(pkt_ext(p) + op->off_atomiceth, &a);
	*h = (struct ur_reth){.va = a.va, .rkey = a.rkey, .len = 8};
	return true;
}
