/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the analysis see what is wrong? Each row falsifies packets of the recordings, one at a time, with an ICRC that is right again. What
 * the recording lets decide must be named at the frame, nine times of ten at least; and recordings that only lack something are no error.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze_harness.h"
#include "base/rng.h"
#include "wire/frame.h"

void ur_suite_analyze_mutate(void);

#define PER_FILE 12 /* packets of a file that a row falsifies */

enum what { DROP, REPEAT, SWAP, LATE, BTH_BITS, EXT_BITS, BTH_ADD, EXT_ADD, PAYLOAD_BITS, SHORTEN, RAW, MARK };
enum whom { REQUEST, INNER, WRITE, WRITE_RETH, READ_REQ, RESPONSE, RESPONSE_AETH, ATOMIC_RESP, ACK, MAD_REQ, MAD_REP, ANY };

static const struct row {
	const char *name;
	enum whom whom;
	enum what what;
	uint8_t at, by;
} rows[] = {
	{"a request missing", REQUEST, DROP, 0, 0},
	{"a READ response missing", RESPONSE, DROP, 0, 0},
	{"an atomic answer missing", ATOMIC_RESP, DROP, 0, 0},
	{"a request twice", REQUEST, REPEAT, 0, 0},
	{"a READ response twice", RESPONSE, REPEAT, 0, 0},
	{"an ACK twice", ACK, REPEAT, 0, 0},
	{"two requests in the wrong order", REQUEST, SWAP, 0, 0},
	{"two READ responses in the wrong order", RESPONSE, SWAP, 0, 0},
	{"a request late", REQUEST, LATE, 0, 0},
	{"PSN of a request, low bit", REQUEST, BTH_BITS, 11, 0x01},
	{"PSN of a request, bit 4", REQUEST, BTH_BITS, 11, 0x10},
	{"PSN of a request, high bit", REQUEST, BTH_BITS, 9, 0x40},
	{"PSN of an ACK, eight more", ACK, BTH_ADD, 11, 8},
	{"PSN of an ACK, high bit", ACK, BTH_BITS, 9, 0x40},
	{"PSN of a READ response", RESPONSE, BTH_BITS, 11, 0x02},
	{"opcode of a packet within a message, first or not", INNER, BTH_BITS, 0, 0x01},
	{"opcode of a packet within a message", INNER, BTH_BITS, 0, 0x06},
	{"opcode of a READ response", RESPONSE, BTH_BITS, 0, 0x1d},
	{"opcode of an atomic answer", ATOMIC_RESP, BTH_BITS, 0, 0x03},
	{"opcode that does not exist", REQUEST, BTH_BITS, 0, 0x40},
	{"transport version", ANY, BTH_BITS, 1, 0x01},
	{"pad", WRITE, BTH_BITS, 1, 0x10},
	{"syndrome, reserved type", ACK, EXT_BITS, 0, 0x40},
	{"syndrome, top bit", ACK, EXT_BITS, 0, 0x80},
	{"syndrome, sequence NAK", ACK, EXT_BITS, 0, 0x7f},
	{"syndrome, RNR", ACK, EXT_BITS, 0, 0x20},
	{"syndrome of a READ response", RESPONSE_AETH, EXT_BITS, 0, 0x60},
	{"MSN of an ACK, one more", ACK, EXT_ADD, 3, 1},
	{"MSN of an ACK, one less", ACK, EXT_ADD, 3, 0xff},
	{"MSN of an ACK, high bit", ACK, EXT_BITS, 1, 0x40},
	{"MSN of an atomic answer", ATOMIC_RESP, EXT_BITS, 1, 0x40},
	{"MSN of a READ response", RESPONSE_AETH, EXT_BITS, 2, 0x40},
	{"length of a WRITE", WRITE_RETH, EXT_BITS, 15, 0x04},
	{"length of a READ, far more", READ_REQ, EXT_BITS, 13, 0x02},
	{"payload of a packet within a message", INNER, SHORTEN, 0, 4},
	{"payload of a READ response", RESPONSE, SHORTEN, 0, 4},
	{"payload of a WRITE", WRITE, SHORTEN, 0, 4},
	{"destination QP of a request", REQUEST, BTH_BITS, 6, 0x20},
	{"payload damaged", ANY, RAW, 0, 0x10},
	{"starting PSN of a REQ", MAD_REQ, PAYLOAD_BITS, 24 + 44, 0x40},
	{"starting PSN of a REP", MAD_REP, PAYLOAD_BITS, 24 + 20, 0x40},
	{"QPN of a REQ", MAD_REQ, PAYLOAD_BITS, 24 + 33, 0x10},
	{"QPN of a REP", MAD_REP, PAYLOAD_BITS, 24 + 13, 0x10},
	{"path MTU of a REQ", MAD_REQ, PAYLOAD_BITS, 24 + 50, 0x60},
	{"GID in a REQ", MAD_REQ, PAYLOAD_BITS, 24 + 71, 0x04},
	{"source address in a REQ", MAD_REQ, PAYLOAD_BITS, 24 + 140 + 19, 0x04},
	{"destination address in a REQ", MAD_REQ, PAYLOAD_BITS, 24 + 140 + 35, 0x04},
	{"method of a MAD", MAD_REQ, PAYLOAD_BITS, 3, 0x40},
	{"a congestion mark without a notification", REQUEST, MARK, 0, 3},
};

static bool same_flow(const struct an_pkt *a, const struct an_pkt *b)
{
	return a->bth.dqpn == b->bth.dqpn && memcmp(&a->src, &b->src, 16) == 0 && memcmp(&a->dst, &b->dst, 16) == 0;
}

/* The next packet that asks, or answers, on the same flow; 0 when there is none. */
static unsigned next_like(const struct recording *r, unsigned i)
{
	struct an_pkt p, q;

	analyze_pkt(r, i, &p);
	for (unsigned k = i + 1; k < r->n; k++)
		if (analyze_pkt(r, k, &q) && same_flow(&p, &q) && an_is_answer(&p) == an_is_answer(&q))
			return k;
	return 0;
}

static bool connected(const struct an_pkt *p)
{
	const uint8_t service = p->bth.opcode & 0xe0;

	return p->bth.dqpn != 1 && (service == UR_RC || service == UR_UC);
}

static bool is_mad(const struct an_pkt *p, uint8_t attr)
{
	return p->bth.dqpn == 1 && p->payload_len == 256 && p->payload[17] == attr;
}

/* Does the host that a MAD goes to ask anything, so that it shows whether it has understood? Is there a packet within a message? */
static bool later(const struct recording *r, unsigned i, const struct ur_gid *from, bool inner)
{
	struct an_pkt q;

	for (; i < r->n; i++)
		if (analyze_pkt(r, i, &q) && connected(&q) && !an_is_answer(&q) && memcmp(&q.src, from, 16) == 0 &&
		    (!inner || !(q.op->flags & UR_OPF_LAST)))
			return true;
	return false;
}

/* What nothing else in the recording could contradict is not asked for. */
static bool decidable(const struct row *row, const struct recording *r, unsigned i, const struct an_pkt *p)
{
	struct an_pkt first;

	if (row->what == PAYLOAD_BITS && row->at == 24 + 50)
		return later(r, i, &p->src, true) || later(r, i, &p->dst, true);
	if (row->what == PAYLOAD_BITS && row->at < 24 + 50 && row->at > 3)
		return later(r, i, &p->dst, false);
	if (row->what == MARK)
		return (p->bth.opcode & 0xe0) == UR_RC;
	/* Without the CM the first count is not known, and many READs under way leave it open for long. */
	if (row->what == EXT_BITS && (row->whom == ATOMIC_RESP || row->whom == RESPONSE_AETH) && row->at > 0)
		return analyze_pkt(r, 0, &first) && first.bth.dqpn == 1;
	return true;
}

static bool fits(const struct row *row, const struct recording *r, unsigned i)
{
	const struct ur_opcode_info *op;
	uint32_t f;
	struct an_pkt p;

	if (!analyze_pkt(r, i, &p))
		return false;
	op = p.op;
	f = op->flags;
	if ((row->whom <= ACK && (!connected(&p) || !next_like(r, i))) || !decidable(row, r, i, &p))
		return false;
	switch (row->whom) {
	case REQUEST: return !(f & UR_OPF_RESPONSE);
	case INNER: return !(f & (UR_OPF_RESPONSE | UR_OPF_LAST));
	case WRITE: return f & UR_OPF_WRITE && p.payload_len >= 8;
	case WRITE_RETH: return f & UR_OPF_WRITE && f & UR_OPF_RETH && f & UR_OPF_LAST;
	case READ_REQ: return f & UR_OPF_READ;
	case RESPONSE: return f & UR_OPF_RESPONSE && f & UR_OPF_PAYLOAD && p.payload_len >= 8;
	case RESPONSE_AETH: return f & UR_OPF_RESPONSE && f & UR_OPF_PAYLOAD && f & UR_OPF_AETH;
	case ATOMIC_RESP: return f & UR_OPF_ATOMICACKETH;
	case ACK: return p.bth.opcode == UR_OP_ACK;
	case MAD_REQ: return is_mad(&p, 0x10);
	case MAD_REP: return is_mad(&p, 0x13);
	case ANY: return p.payload_len > 0;
	}
	return false;
}

/* Falsifies packet `i` and says at which frames that may be named. False when it cannot be done to this packet. */
static bool falsify(const struct row *row, struct recording *r, unsigned i, uint32_t frames[2])
{
	uint8_t *bth = analyze_bth(r, i), *ext = bth + UR_BTH_LEN;
	unsigned next = row->whom <= ACK ? next_like(r, i) : 0;
	struct an_pkt p;

	analyze_pkt(r, i, &p);
	frames[0] = i + 1;
	frames[1] = next + 1; /* where it may be missed */
	switch (row->what) {
	case DROP:
		analyze_remove(r, i);
		frames[0] = next;
		frames[1] = next;
		return true;
	case REPEAT:
		analyze_repeat(r, i);
		frames[0] = frames[1] = i + 2;
		return true;
	case SWAP:
	case LATE:
		for (unsigned n = 0; row->what == LATE && next && n < 2; n++)
			next = next_like(r, next);
		if (!next || r->f[next].when - r->f[i].when > 500 * UR_NS_PER_US)
			return false; /* lost and repeated, as far as anybody can see */
		analyze_move(r, i, next);
		frames[0] = next + 1;
		frames[1] = next + 1;
		return true;
	case BTH_BITS: bth[row->at] ^= row->by; break;
	case BTH_ADD: bth[row->at] = (uint8_t)(bth[row->at] + row->by); break;
	case EXT_BITS: ext[row->at] ^= row->by; break;
	case EXT_ADD: ext[row->at] = (uint8_t)(ext[row->at] + row->by); break;
	case PAYLOAD_BITS: bth[p.payload - bth + row->at] ^= row->by; break;
	case SHORTEN: analyze_mend(r, i, row->by); return true;
	case RAW: bth[p.payload - bth] ^= row->by; return true;
	case MARK: r->f[i].data[UR_ETH_LEN + 1] |= p.ip_version == 4 ? row->by : (uint8_t)(row->by << 4); return true;
	}
	analyze_mend(r, i, 0);
	return true;
}

static bool in(const struct findings *base, const struct ur_finding *f)
{
	for (unsigned i = 0; i < base->n; i++)
		if (base->f[i].rule == f->rule && base->f[i].frame == f->frame)
			return true;
	return false;
}

static bool named(const struct findings *base, const struct findings *got, const uint32_t frames[2])
{
	for (unsigned i = 0; i < got->n; i++) {
		const struct ur_finding *f = &got->f[i];

		if (in(base, f))
			continue;
		for (unsigned k = 0; k < 2; k++)
			if (f->frame == frames[k] || (f->seen[0] == frames[k] && frames[k]))
				return true;
	}
	return false;
}

struct score {
	unsigned tried, named;
};

static void try_file(const struct row *row, const struct recording *r, const struct findings *base, struct score *s)
{
	unsigned n = 0, step;

	for (unsigned i = 0; i < r->n; i++)
		n += fits(row, r, i);
	step = n > PER_FILE ? n / PER_FILE : 1;
	n = 0;
	for (unsigned i = 0; i < r->n; i++) {
		struct recording c;
		struct findings got;
		uint32_t frames[2];

		if (!fits(row, r, i) || n++ % step)
			continue;
		c = analyze_copy(r);
		if (falsify(row, &c, i, frames)) {
			bool ok;

			analyze_run(&c, &got);
			ok = named(base, &got, frames);
			s->tried++;
			s->named += ok;
			if (!ok && getenv("UROCE_TEST_VERBOSE"))
				printf("# %s: %s frame %u is not named\n", row->name, r->name, i + 1);
			findings_free(&got);
		}
		analyze_free(&c);
	}
}

static void mutations__named_at_the_frame(void)
{
	const struct recording *all = analyze_recordings();
	struct score sum = {0};

	for (unsigned m = 0; m < ur_array_size(rows); m++) {
		struct score s = {0};

		for (const struct recording *r = all; r->n; r++) {
			struct findings base;

			analyze_run(r, &base);
			try_file(&rows[m], r, &base, &s);
			findings_free(&base);
		}
		if (s.named * 10 < s.tried * 9 || getenv("UROCE_TEST_VERBOSE"))
			printf("# %s: %u of %u named\n", rows[m].name, s.named, s.tried);
		CU_ASSERT_TRUE(s.tried > 0);
		CU_ASSERT_TRUE(s.named * 10 >= s.tried * 9);
		sum.tried += s.tried;
		sum.named += s.named;
	}
	printf("# %u of %u falsified recordings named at the frame\n", sum.named, sum.tried);
	CU_ASSERT_TRUE(sum.named * 10 >= sum.tried * 9);
}

static void recordings__no_errors(void)
{
	const struct recording *all = analyze_recordings();

	CU_ASSERT_TRUE(all[0].n > 0);
	for (const struct recording *r = all; r->n; r++) {
		struct findings f;

		analyze_run(r, &f);
		CU_ASSERT_EQUAL(findings_worse(&f, UR_ERROR), 0);
		if (findings_worse(&f, UR_ERROR))
			findings_print(&f, r->name);
		findings_free(&f);
	}
}

/* A piece from the middle, packets missed by the recorder in places, only the heads of frames. */
static void spoil(struct recording *c, struct ur_rng *rng, unsigned how)
{
	unsigned from = ur_rng_below(rng, c->n), to = from + ur_rng_below(rng, c->n - from);

	if (how == 0) {
		for (unsigned i = c->n; i-- > to + 1;)
			analyze_remove(c, i);
		for (unsigned i = from; i-- > 0;)
			analyze_remove(c, i);
	}
	for (unsigned i = c->n; how == 1 && i-- > 0;)
		if (ur_rng_below(rng, 20) == 0)
			analyze_remove(c, i);
	for (unsigned i = 0; how == 2 && i < c->n; i++)
		c->f[i].have = c->f[i].have < 96 ? c->f[i].have : 60 + ur_rng_below(rng, 36);
	for (unsigned i = c->n; how == 3 && i-- > 0;)
		if (i >= from && i < from + 5)
			analyze_remove(c, i);
	for (unsigned i = 0; how == 4 && i + 1 < c->n; i += 1 + ur_rng_below(rng, 30))
		if (c->f[i + 1].when - c->f[i].when < 100 * UR_NS_PER_US)
			analyze_move(c, i, i + 1);
}

static void recordings__spoilt_without_errors(void)
{
	const struct recording *all = analyze_recordings();
	struct ur_rng rng = {7};
	unsigned wrong = 0;

	for (const struct recording *r = all; r->n; r++)
		for (unsigned k = 0; k < 60; k++) {
			struct recording c = analyze_copy(r);
			struct findings f;

			spoil(&c, &rng, k % 5);
			analyze_run(&c, &f);
			if (findings_worse(&f, UR_ERROR) && wrong++ < 12) {
				printf("# %s spoilt in way %u\n", r->name, k % 5);
				findings_print(&f, r->name);
			}
			findings_free(&f);
			analyze_free(&c);
		}
	CU_ASSERT_EQUAL(wrong, 0);
}

void ur_suite_analyze_mutate(void)
{
	CU_pSuite s = CU_add_suite("analyze_mutate", NULL, NULL);

	CU_add_test(s, "recordings: no errors", recordings__no_errors);
	CU_add_test(s, "recordings: no errors when they are spoilt", recordings__spoilt_without_errors);
	CU_add_test(s, "mutations: named at the frame", mutations__named_at_the_frame);
}
