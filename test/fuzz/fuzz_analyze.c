/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: a recording. The input is a list of frames: a byte that says what it is, then what it needs. Most are RoCEv2 packets
 * made of a few bytes, with lengths and an ICRC that are right, so that the fuzzer need not find those; some are raw bytes of any link
 * type. The same frames are rewritten, and the analysis must find the same in the result; and a copy of them is falsified; and
 * the transport is put in the place of each host; and the hosts are judged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/change/mutate.h"
#include "analyze/change/rewrite.h"
#include "analyze/forget.h"
#include "analyze/frame/gather.h"
#include "analyze/state/state.h"
#include "analyze/view/ladder.h"
#include "analyze/view/plot.h"
#include "analyze/view/slow.h"
#include "passive/passive.h"
#include "replay/replay.h"
#include "wire/crc/icrc.h"
#include "wire/ip.h"
#include "wire/msg/cm_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RAW = 0x80, BACK = 1, V6 = 2, MAD = 4, CUT = 8, FAR_PSN = 16, WRAPPED = 32 };

struct fuzz {
	const uint8_t *in;
	size_t left;
	struct ur_analysis *a;
	struct ur_ladder *l;
	struct ur_gatherer *g;
	struct ur_an_frame f;
	uint64_t found;
	struct ur_rewrite *w;
	struct ur_analysis *rewritten;
	bool came_out; /* something of this frame */
	struct ur_recording r;
	struct ur_plot plot; /* of all connections in one */
	struct ur_slow_all slow;
	struct ur_analysis *live; /* forgets as it goes */
	struct ur_passive *v;
};

static uint8_t take(struct fuzz *z)
{
	if (!z->left)
		return 0;
	z->left--;
	return *z->in++;
}

/* Every sentence must end, and have something in it. */
static void found(void *ctx, const struct ur_finding *f)
{
	struct fuzz *z = ctx;
	char text[512], small[9];

	if (f->rule >= UR_RULE_COUNT || ur_finding_text(f, text, sizeof(text)) != strlen(text) || !*text)
		abort();
	if (ur_finding_text(f, small, sizeof(small)) >= sizeof(small))
		abort();
	z->found++;
}

static void observe(void *ctx, const struct ur_an_event *e)
{
	struct fuzz *z = ctx;

	if (e->kind >= UR_AN_EV_COUNT || e->cause >= UR_AN_CAUSES || !e->half || e->acked > e->next)
		abort();
	ur_plot_event(&z->plot, e);
	ur_slow_event(&z->slow, e);
}

/* All time is charged to something, once. */
static void check_slow(struct fuzz *z)
{
	for (const struct ur_slow *s = z->slow.first; s; s = s->next)
		if (ur_slow_total(s) != s->end - s->begin || ur_slow_limit(s) >= UR_SLOW_COUNT || s->bins.n > UR_SLOW_BINS)
			abort();
	if (z->plot.sent.n > UR_PLOT_POINTS || z->plot.bins.n > UR_PLOT_BINS)
		abort();
	ur_slow_free(&z->slow);
	ur_plot_fini(&z->plot);
}

static void gone(void *ctx, const struct ur_an_conn *c)
{
	(void)ctx;
	if (c->ending > UR_AN_REJECTED)
		abort();
}

static void rewritten(void *ctx, const struct ur_an_frame *f)
{
	struct fuzz *z = ctx;

	z->came_out = true;
	ur_analysis_frame(z->rewritten, f);
}

/* Parts of packets, which the frames of the analysis are without: what they make up must be there to its end. */
static void gather(struct fuzz *z)
{
	struct ur_an_frame f = z->f;
	uint8_t *copy;

	if (ur_gather(z->g, &f) || f.data == z->f.data)
		return;
	copy = malloc(f.have);
	memcpy(copy, f.data, f.have);
	if (f.have != f.len || f.have > UINT16_MAX || f.link != UR_AN_RAW_IP)
		abort();
	free(copy);
}

static void give(struct fuzz *z, enum ur_an_link link, const uint8_t *bytes, uint32_t have, uint32_t len)
{
	uint8_t *copy = malloc(have ? have : 1); /* which ends where the frame does */

	memcpy(copy, bytes, have);
	z->f.number++;
	z->f.link = link;
	z->f.direction = (uint8_t)(z->f.number % UR_AN_DIRECTIONS);
	z->f.data = copy;
	z->f.have = have;
	z->f.len = len;
	gather(z);
	ur_analysis_frame(z->a, &z->f);
	ur_analysis_frame(z->live, &z->f);
	ur_passive_frame(z->v, &z->f);
	if (z->f.number % 8 == 0)
		ur_analysis_forget(z->live, z->f.when - (z->f.number % 16 ? 1000 : 0), z->f.when, gone, NULL);
	z->came_out = false;
	ur_rewrite_frame(z->w, &z->f);
	if (!z->came_out)
		ur_analysis_frame(z->rewritten, &z->f); /* for the time */
	if (!z->r.n || z->r.link == link)
		ur_recording_add(&z->r, &z->f);
	ur_ladder_frame(z->l, &z->f);
	free(copy);
}

static void give_raw(struct fuzz *z, uint8_t kind)
{
	uint32_t n = take(z);

	n = n < z->left ? n : (uint32_t)z->left;
	give(z, (enum ur_an_link)((kind & 7) % UR_AN_LINKS), z->in, n, n + (kind >> 3 & 7));
	z->in += n;
	z->left -= n;
}

static unsigned put_body(struct fuzz *z, uint8_t kind, struct ur_bth *b, uint8_t *to)
{
	const struct ur_opcode_info *op = ur_opcode(b->opcode);
	unsigned n = op->ext_len, len = op->flags & UR_OPF_PAYLOAD ? (take(z) & 3) * 256u + (take(z) & 15) : 0;

	memset(to, 0, n + UR_MAD_LEN + 1100);
	if (kind & MAD) {
		b->dqpn = 1;
		len = UR_MAD_LEN;
		memcpy(to + n, "\1\7\2\3", 4);
		to[n + 17] = (uint8_t)(UR_CM_REQ + take(z) % 12);
		to[n + UR_MAD_HDR_LEN + 50] = 0x30;
	}
	for (unsigned patches = take(z) & 15; patches; patches--) {
		unsigned at = take(z);

		to[at % (n + len + 1)] = take(z);
	}
	b->pad = (uint8_t)(-len & 3);
	return n + len + b->pad;
}

/* What may stand in front of an IP packet, beginning with its Ethernet header or what the link has instead. */
static const struct {
	enum ur_an_link link;
	uint8_t n, bytes[65];
} outer[] = {
	{UR_AN_ETHERNET, 18, "\0\0\0\0\0\0\0\0\0\0\0\0\x81\0\0\1\x08\0"},
	{UR_AN_ETHERNET, 18, "\0\0\0\0\0\0\0\0\0\0\0\0\x88\x47\0\1\1\0"},
	{UR_AN_ETHERNET, 22, "\0\0\0\0\0\0\0\0\0\0\0\0\x88\x64\x11\0\0\1\0\x80\0\x21"},
	{UR_AN_ETHERNET, 26, "\0\0\0\0\0\0\0\0\0\0\0\0\xd2\x8b\0\1\0\x20\0\0\0\0\0\0\x08\0"},
	{UR_AN_ETHERNET, 38, "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45\0\x80\0\0\0\0\0\x40\x2f\0\0\1\1\1\1\2\2\2\2\0\0\x08\0"},
	{UR_AN_ETHERNET, 34, "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45\0\x80\0\0\0\0\0\x40\x04\0\0\1\1\1\1\2\2\2\2"},
	{UR_AN_ETHERNET, 64,
	 "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45\0\x80\0\0\0\0\0\x40\x2f\0\0\1\1\1\1\2\2\2\2"
	 "\x10\0\x88\xbe\0\0\0\1\x10\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08\0"},
	{UR_AN_ETHERNET, 50,
	 "\0\0\0\0\0\0\0\0\0\0\0\0\x08\0\x45\0\x80\0\0\0\0\0\x40\x11\0\0\1\1\1\1\2\2\2\2"
	 "\0\0\x12\xb6\0\0\0\0\x0c\0\0\1\0\0\0\0"},
	{UR_AN_LOOPBACK, 4, "\2\0\0\0"},
	{UR_AN_ERF, 16, "\0\0\0\0\0\0\0\0\x16\4\0\0\0\0\0\0"},
	{UR_AN_SLL2, 20, "\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
	{UR_AN_SLL, 16, "\0\0\0\1\0\6\0\0\0\0\0\0\0\0\x08\0"},
};

/* The lengths of outer IP headers are longer than any frame, so that bytes are missing, unless the input makes them right. */
static void give_wrapped(struct fuzz *z, const uint8_t *packet, uint32_t have, uint32_t len)
{
	const unsigned k = take(z) % ur_array_size(outer), n = outer[k].n;
	uint8_t frame[2048 + sizeof(outer->bytes)];

	memcpy(frame, outer[k].bytes, n);
	memcpy(frame + n, packet, have);
	if (n > 16 && frame[12] == 8)
		ur_put16(frame + 16, (uint16_t)(n - 14 + len));
	for (unsigned patches = take(z) & 3; patches; patches--) {
		unsigned at = take(z);

		frame[at % n] = take(z);
	}
	give(z, outer[k].link, frame, n + have, n + len);
}

static void give_packet(struct fuzz *z, uint8_t kind)
{
	uint8_t frame[2048], *bth;
	struct ur_gid a = ur_gid_from_v4(1), b = ur_gid_from_v4(2);
	struct ur_bth h = {.opcode = take(z), .pkey = UR_PKEY_DEFAULT, .ackreq = true};
	unsigned ip = kind & V6 ? UR_IP6_LEN : UR_IP4_LEN, n;

	h.dqpn = 2 + (take(z) & 3);
	h.psn = kind & FAR_PSN ? (uint32_t)take(z) << 16 : take(z);
	bth = frame + ip + UR_UDP_LEN;
	n = UR_BTH_LEN + put_body(z, kind, &h, bth + UR_BTH_LEN) + UR_ICRC_LEN;
	ur_bth_put(bth, &h);
	if (kind & V6) {
		a.raw[0] = b.raw[0] = 0xfd;
		ur_ip6_put(frame, kind & BACK ? &b : &a, kind & BACK ? &a : &b, take(z), 64, UR_PROTO_UDP, 0);
		ur_ip6_finish(frame, UR_UDP_LEN + n);
	} else {
		ur_ip4_put(frame, kind & BACK ? &b : &a, kind & BACK ? &a : &b, take(z), 64, UR_PROTO_UDP);
		ur_ip4_finish(frame, ip + UR_UDP_LEN + n);
	}
	ur_put16(frame + ip, 0xc000);
	ur_put16(frame + ip + 2, UR_ROCE_PORT);
	ur_put16(frame + ip + 4, (uint16_t)(UR_UDP_LEN + n));
	ur_put16(frame + ip + 6, 0);
	n += ip + UR_UDP_LEN;
	ur_icrc_end(ur_icrc_begin(frame, kind & V6 ? 6 : 4, n - UR_ICRC_LEN), frame + n - UR_ICRC_LEN);
	if (kind & WRAPPED)
		give_wrapped(z, frame, kind & CUT ? n - n / 4 : n, n);
	else
		give(z, UR_AN_RAW_IP, frame, kind & CUT ? n - n / 4 : n, n);
}

/* The rules that compare data: the payload of a repetition, the operands and results of atomics. */
static bool of_data(enum ur_rule rule)
{
	return rule == UR_RULE_RETX_DATA || rule == UR_RULE_RETX_DIFFERS || rule == UR_RULE_ATOMIC_AGAIN || rule == UR_RULE_ATOMIC_VALUE;
}

/*
 * What tells of the recorder changes, because trains come out as packets; and data that is no longer there can differ no longer. ICMP
 * errors do not come out: here they quote the old addresses, of hosts that have not spoken.
 */
static bool may_differ(enum ur_rule rule, enum ur_rewrite_payload payload, uint64_t before, uint64_t after)
{
	return rule == UR_RULE_RECORDER || rule == UR_RULE_ICMP || rule == UR_RULE_ICMP_GONE ||
	       (payload != UR_PAYLOAD_KEEP && of_data(rule) && after <= before);
}

static void compare(const struct fuzz *z, enum ur_rewrite_payload payload)
{
	struct ur_an_totals a, b;

	ur_analysis_finish(z->rewritten);
	ur_analysis_totals(z->a, &a);
	ur_analysis_totals(z->rewritten, &b);
	if (z->a->twice.n != z->rewritten->twice.n) /* without their data, or as packets of a train, others are alike */
		return;
	for (unsigned i = 0; i < UR_RULE_COUNT; i++) {
		if (a.findings[i] == b.findings[i] || may_differ((enum ur_rule)i, payload, a.findings[i], b.findings[i]))
			continue;
		fprintf(stderr, "%s: found %" PRIu64 " times, and %" PRIu64 " times behind the rewriting\n", ur_rules[i].name,
			a.findings[i], b.findings[i]);
		abort();
	}
	if (a.roce != b.roce || a.conns != b.conns)
		abort();
}

static void falsify(struct fuzz *z, unsigned fault)
{
	struct ur_mutator *m = ur_mutator_create(&z->r);
	struct ur_recording c = ur_recording_copy(&z->r);
	uint32_t frames[2], i = 0;
	struct an_pkt p;

	while (i < z->r.n && !ur_mutation_fits(m, fault, i))
		i++;
	if (i < z->r.n && ur_mutate(m, fault, i, &c, frames))
		for (i = 0; i < c.n; i++)
			ur_recording_pkt(&c, i, &p);
	ur_recording_free(&c);
	ur_mutator_destroy(m);
}

/* Whether anything differs says nothing here; it must end, and read and write its own memory alone. */
static void replay(struct fuzz *z)
{
	struct capture cap;
	struct conns conns;
	const char *why;

	capture_begin(&cap, "input");
	cap.psns_max = 4096;
	cap.memory_max = 1 << 20;
	for (uint32_t i = 0; i < z->r.n; i++) {
		struct ur_an_frame f = ur_recording_frame(&z->r, i);

		capture_frame(&cap, &f);
	}
	capture_end(&cap);
	conns_find(&conns, &cap, 1);
	for (unsigned i = 0; i < 2 * conns.n && i < 8; i++) {
		struct report rep = {.tell = NULL};
		struct side s;

		if (side_open(&s, &conns.conn[i / 2], i % 2, &rep, &why) == SIDE_OK)
			side_run(&s);
		side_close(&s);
	}
	conns_free(&conns);
	capture_free(&cap);
}

static unsigned faults(void)
{
	struct ur_fault f;
	unsigned n = 0;

	while (ur_fault(n, &f))
		n++;
	return n;
}

/* What is beside the packets is of a kind, in order, and there are not too many. */
static void check_asides(const struct ur_ladder *l, const struct ur_ladder_row *rows, uint32_t nrows)
{
	uint32_t n;
	const struct ur_ladder_aside *a = ur_ladder_asides(l, &n);

	if (n > UR_LADDER_ASIDES)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		uint64_t before, after;

		if (!a[i].aside.kind || a[i].aside.last_frame < a[i].aside.frame || !a[i].aside.n ||
		    (i && a[i].aside.frame <= a[i - 1].aside.last_frame))
			abort();
		ur_ladder_rate(rows, nrows, i & 1, a[i].aside.when, &before, &after);
	}
}

/* What came is there in its order, and what is said of a packet is said by another one. */
static void check_ladder(const struct ur_ladder_row *r, uint32_t n)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (r[i].fate >= UR_LADDER_FATE_COUNT || !r[i].n || (r[i].frame && (r[i].frame < last || r[i].by == r[i].frame)))
			abort();
		last = r[i].frame ? r[i].frame : last;
	}
}

/* What is said of a host has its frame and its sentence, or its reason. */
static void check_judged(struct ur_passive *v)
{
	const unsigned n = ur_cf_rule_count();

	ur_passive_finish(v);
	for (unsigned h = 0; h < ur_passive_hosts(v); h++)
		for (unsigned i = 0; i < n; i++) {
			const struct ur_pv_count *c = ur_passive_count(v, h, i);

			if (c && ((c->broken && (!c->frame || !c->what || !*c->what)) || (c->aside && !c->why)))
				abort();
		}
	ur_passive_destroy(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ur_rewrite_config how = {.new_addr = true,
					      .new_qpn = true,
					      .new_mac = true,
					      .new_psn = true,
					      .payload = (enum ur_rewrite_payload)(size % 3),
					      .seed = ur_seed_of(size)};
	const struct ur_gid a = ur_gid_from_v4(1), b = ur_gid_from_v4(2);
	const struct ur_an_conn pair = {.mtu = size & 1 ? 256 : 0,
					.half = {{.from = a, .to = b, .dqpn = 2}, {.from = b, .to = a, .dqpn = 3}}};
	const struct ur_ladder_row *rows;
	struct fuzz z = {.in = data, .left = size};
	struct ur_an_totals t;
	struct ur_an_conn c;
	uint64_t sum = 0;
	uint32_t n = 0;

	z.a = ur_analysis_create(found, &z, 1);
	z.live = ur_analysis_create(NULL, NULL, 1);
	z.v = ur_passive_create(1);
	ur_plot_init(&z.plot);
	ur_analysis_observe(z.a, observe, &z);
	z.w = ur_rewrite_create(&how, rewritten, &z);
	z.rewritten = ur_analysis_create(NULL, NULL, 1);
	z.l = ur_ladder_create(&pair, 20);
	z.g = ur_gatherer_create();
	if (!z.a || !z.l || !z.g || !z.v)
		abort();
	while (z.left) {
		uint8_t kind = take(&z);

		z.f.when += (ur_time)take(&z) << (kind >> 4);
		if (kind & RAW)
			give_raw(&z, kind);
		else
			give_packet(&z, kind);
	}
	check_judged(z.v);
	ur_analysis_finish(z.live);
	ur_analysis_destroy(z.live);
	ur_analysis_finish(z.a);
	ur_analysis_totals(z.a, &t);
	for (unsigned i = 0; i < UR_RULE_COUNT; i++)
		sum += t.findings[i];
	while (ur_analysis_conn(z.a, n, &c))
		n++;
	if (sum != z.found || n != t.conns)
		abort();
	compare(&z, how.payload);
	falsify(&z, (unsigned)(size / 3 % faults()));
	if (size % 4 == 0)
		replay(&z);
	ur_recording_free(&z.r);
	ur_rewrite_destroy(z.w);
	ur_analysis_destroy(z.rewritten);
	rows = ur_ladder_rows(z.l, &n);
	check_ladder(rows, n);
	check_asides(z.l, rows, n);
	ur_ladder_destroy(z.l);
	ur_gatherer_destroy(z.g);
	ur_analysis_destroy(z.a);
	check_slow(&z);
	return 0;
}
