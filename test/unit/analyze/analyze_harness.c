/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze_harness.h"

#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/frame.h"
#include "wire/sack.h"

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
	out->a = ur_analysis_create(found, out, 1);
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
		n += f->f[i].severity >= least;
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

void analyze_spoil(struct ur_recording *c, struct ur_rng *rng, unsigned how)
{
	unsigned from = ur_rng_below(rng, c->n), to = from + ur_rng_below(rng, c->n - from);

	if (how == 0) {
		for (unsigned i = c->n; i-- > to + 1;)
			ur_recording_remove(c, i);
		for (unsigned i = from; i-- > 0;)
			ur_recording_remove(c, i);
	}
	for (unsigned i = c->n; how == 1 && i-- > 0;)
		if (ur_rng_below(rng, 20) == 0)
			ur_recording_remove(c, i);
	for (unsigned i = 0; how == 2 && i < c->n; i++)
		c->f[i].have = c->f[i].have < 96 ? c->f[i].have : 60 + ur_rng_below(rng, 36);
	for (unsigned i = c->n; how == 3 && i-- > 0;)
		if (i >= from && i < from + 5)
			ur_recording_remove(c, i);
	for (unsigned i = 0; how == 4 && i + 1 < c->n; i += 1 + ur_rng_below(rng, 30))
		if (c->f[i + 1].when - c->f[i].when < 100 * UR_NS_PER_US)
			ur_recording_move(c, i, i + 1);
}

/* --- conversations --- */

static unsigned put_ext(uint8_t *to, const struct step *t)
{
	const struct ur_opcode_info *op = ur_opcode(t->op);
	const struct ur_reth reth = {.va = 0x1000 + (op->flags & UR_OPF_READ ? (uint64_t)t->msn : 0),
				     .rkey = t->arg & KEY ? 8 : 7,
				     .len = (uint32_t)(op->flags & UR_OPF_READ ? t->arg & ~KEY : t->msn)};
	const struct ur_deth deth = {.qkey = (uint32_t)t->msn, .sqpn = t->from == 'A' ? QP_A : QP_B};
	const struct ur_atomiceth atomic = {.va = 0x1000 + (uint64_t)t->msn, .rkey = 7, .swap_add = (uint64_t)t->arg};
	const struct ur_aeth aeth = {.syndrome = op->flags & UR_OPF_PAYLOAD ? 0x1f : (uint8_t)t->arg, .msn = (uint32_t)t->msn};

	memset(to, 0, op->ext_len);
	if (op->flags & UR_OPF_RETH)
		ur_reth_put(to + op->off_reth, &reth);
	if (op->flags & UR_OPF_DETH)
		ur_deth_put(to + op->off_deth, &deth);
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(to + op->off_aeth, &aeth);
	if (op->flags & UR_OPF_ATOMIC)
		ur_atomiceth_put(to + op->off_atomiceth, &atomic);
	if (op->flags & UR_OPF_ATOMICACKETH)
		ur_put64(to + op->off_atomicacketh, (uint64_t)t->arg >> 8);
	return op->ext_len;
}

uint8_t *analyze_add_raw(struct ur_recording *r, uint32_t len, ur_time when)
{
	struct ur_rec_frame *f;

	if (r->n >= r->room) {
		r->room = 2 * r->n + 16;
		r->f = realloc(r->f, r->room * sizeof(*r->f));
	}
	f = &r->f[r->n++];
	f->len = f->have = len;
	f->data = calloc(1, len);
	f->when = when;
	return f->data;
}

static void add_frame(struct ur_recording *r, const struct ur_pkt *p, ur_time when)
{
	uint8_t *data = analyze_add_raw(r, p->len + p->tail_len, when);

	memcpy(data, p->data, p->len);
	memcpy(data + p->len, p->tail, p->tail_len);
}

/* A frame with `ext` bytes of headers and `len` bytes of payload after a BTH. */
static void build(struct ur_recording *r, bool from_b, const struct ur_bth *b, const uint8_t *body, unsigned n, ur_time when)
{
	const struct ur_gid ga = ur_gid_from_v4(0x0100000a), gb = ur_gid_from_v4(0x0200000a);
	struct ur_mac mac = {{2, 0, 0, 0, 0, 1}};
	struct ur_path path = {0};
	uint8_t room[UR_PKT_ROOM];
	struct ur_pkt p = {.data = room, .room = sizeof(room), .ip_version = 4};

	ur_path_build(&path, &mac, &mac, 0, from_b ? &gb : &ga, from_b ? &ga : &gb, 0, 64, 0, 0xc000);
	memcpy(room, path.hdr, path.hdr_len);
	p.l3_off = path.l3_off;
	p.bth_off = (uint16_t)path.hdr_len;
	ur_bth_put(room + path.hdr_len, b);
	memcpy(room + path.hdr_len + UR_BTH_LEN, body, n);
	p.len = path.hdr_len + UR_BTH_LEN + n;
	ur_frame_finish(&p, b->pad);
	add_frame(r, &p, when);
}

void analyze_add_step(struct ur_recording *r, const struct step *t, ur_time when)
{
	const struct ur_opcode_info *op = ur_opcode(t->op);
	struct ur_bth b = {
		.opcode = t->op, .pkey = UR_PKEY_DEFAULT, .dqpn = t->from == 'A' ? QP_B : QP_A, .psn = (uint32_t)t->psn, .ackreq = true};
	unsigned len = op->flags & UR_OPF_PAYLOAD ? (unsigned)(t->arg & ~(FILL | MARK | KEY)) : 0, n;
	uint8_t body[UR_PKT_ROOM];

	n = put_ext(body, t);
	memset(body + n, t->arg & FILL ? 0xbb : 0xaa, len);
	b.pad = (uint8_t)(-len & 3);
	build(r, t->from == 'B', &b, body, n + len, when);
	if (op->flags & UR_OPF_PAYLOAD && t->arg & MARK)
		r->f[r->n - 1].data[UR_ETH_LEN + 1] |= 3;
}

void analyze_add_sack(struct ur_recording *r, uint32_t expected, uint64_t bits, uint32_t msn, ur_time when)
{
	const struct ur_bth b = {.opcode = UR_OP_SACK, .pkey = UR_PKEY_DEFAULT, .dqpn = QP_A, .psn = ur_psn_add(expected, UR_PSN_MASK)};
	const struct ur_aeth aeth = {.syndrome = 0x1f, .msn = msn};
	const struct ur_sack s = {.expected = expected, .base = expected, .n = 64, .bits = {bits}};
	uint8_t body[256];
	uint8_t *end;

	ur_aeth_put(body, &aeth);
	end = ur_sack_put(body + 4, &s);
	build(r, true, &b, body, (unsigned)(end - body), when);
}
