/* SPDX-License-Identifier: BSD-3-Clause */
/* One recording becomes two, as if made at both ends of a way with clocks of their own; then one thing happens on the way. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "analyze/compare/cmp_priv.h"
#include "analyze_harness.h"
#include "base/rng.h"
#include "wire/hdr.h"

void ur_suite_analyze_compare(void);

#define WAY (60 * UR_NS_PER_US)
#define OFFSET (3700ll * (int64_t)UR_NS_PER_MS)

static struct ur_recording at[2]; /* the first is 10.99.0.2's */

static bool from_first(const struct ur_recording *r, unsigned i)
{
	struct an_pkt p;

	return ur_recording_pkt(r, i, &p) && p.src.raw[15] == 2;
}

static int by_time(const void *x, const void *y)
{
	const struct ur_rec_frame *a = x, *b = y;

	return (a->when > b->when) - (a->when < b->when);
}

static void make_two(const char *name)
{
	const struct ur_recording *all = analyze_recordings();

	while (all->n && strcmp(all->name, name) != 0)
		all++;
	CU_ASSERT_TRUE_FATAL(all->n > 0);
	at[0] = ur_recording_copy(all);
	at[1] = ur_recording_copy(all);
	for (unsigned i = 0; i < at[1].n; i++) {
		/* Different for each, and so that none overtakes another. */
		ur_time way = WAY + 10 * (from_first(&at[0], i) ? i : at[1].n - i);

		at[1].f[i].when += from_first(&at[0], i) ? way : -way;
	}
	qsort(at[1].f, at[1].n, sizeof(*at[1].f), by_time);
}

static void count_event(void *ctx, const struct ur_cmp_event *e)
{
	((unsigned *)ctx)[e->kind]++;
}

/* Puts both in by turns; `told` counts the events. */
static struct ur_compare *compare(unsigned told[UR_CMP_KINDS], struct ur_cmp_totals *t)
{
	struct ur_compare *c = ur_compare_create(UR_NS_PER_MS, count_event, told, 1);
	unsigned next[2] = {0}, ended = 0;

	while (ended < 2) {
		unsigned place = ur_compare_wants(c);
		struct ur_rec_frame *f = &at[place].f[next[place]];

		if (next[place] == at[place].n) {
			ur_compare_end(c, place);
			ended++;
			continue;
		}
		ur_compare_frame(c, place,
				 &(struct ur_an_frame){.number = ++next[place],
						       .when = f->when + (place ? (ur_time)OFFSET : 0),
						       .data = f->data,
						       .have = f->have,
						       .len = f->len});
	}
	ur_compare_totals(c, t);
	return c;
}

static void drop_two(void)
{
	ur_recording_free(&at[0]);
	ur_recording_free(&at[1]);
}

/* A request packet from the middle of the recording, of one host; the `nth` of them. */
static unsigned pick(const struct ur_recording *r, bool first, unsigned nth)
{
	struct an_pkt p;

	for (unsigned i = r->n / 4; i < r->n; i++)
		if (ur_recording_pkt(r, i, &p) && p.bth.dqpn != 1 && from_first(r, i) == first && nth-- == 0)
			return i;
	CU_FAIL_FATAL("too few packets");
	return 0;
}

enum act { NOTHING, REMOVE, REPEAT, SWAP, DELAY, ALTER };

static const struct {
	const char *name;
	enum act act;
	unsigned place; /* where the recording is changed */
	bool first;     /* the packet is of the first place's host */
	int kind;       /* what is told; -1: nothing */
} rows[] = {
	{"nothing", NOTHING, 0, true, -1},
	{"lost on its way forth", REMOVE, 1, true, UR_CMP_LOST},
	{"lost on its way back", REMOVE, 0, false, UR_CMP_LOST},
	{"not seen by the first recorder", REMOVE, 0, true, UR_CMP_UNSEEN},
	{"not seen by the second recorder", REMOVE, 1, false, UR_CMP_UNSEEN},
	{"doubled on its way forth", REPEAT, 1, true, UR_CMP_DOUBLED},
	{"doubled on its way back", REPEAT, 0, false, UR_CMP_DOUBLED},
	{"overtaken", SWAP, 1, true, UR_CMP_REORDERED},
	{"late", DELAY, 1, true, UR_CMP_LATE},
	{"changed", ALTER, 1, false, UR_CMP_CHANGED},
};

/* Arrives right after the next one. */
static void swap_next(struct ur_recording *r, bool first, unsigned nth)
{
	r->f[pick(r, first, nth)].when = r->f[pick(r, first, nth + 1)].when + 1;
	qsort(r->f, r->n, sizeof(*r->f), by_time);
}

static void alter(struct ur_recording *r, bool first)
{
	struct an_pkt p;

	for (unsigned i = r->n / 4; i < r->n; i++)
		if (ur_recording_pkt(r, i, &p) && from_first(r, i) == first && p.payload_len > 8) {
			r->f[i].data[p.payload - r->f[i].data] ^= 1;
			ur_recording_fix_checksums(r, i, 0);
			return;
		}
}

static void act(unsigned row)
{
	struct ur_recording *r = &at[rows[row].place];
	const bool first = rows[row].first;

	switch (rows[row].act) {
	case NOTHING: break;
	case REMOVE: ur_recording_remove(r, pick(r, first, 5)); break;
	case REPEAT: ur_recording_repeat(r, pick(r, first, 5)); break;
	case SWAP: swap_next(r, first, 5); break;
	case DELAY:
		r->f[pick(r, first, 5)].when += 5 * UR_NS_PER_MS;
		qsort(r->f, r->n, sizeof(*r->f), by_time);
		break;
	case ALTER: alter(r, first); break;
	}
}

static void compare__each(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		unsigned told[UR_CMP_KINDS] = {0};
		struct ur_cmp_totals t;
		struct ur_compare *c;

		make_two("rping-rc-64k.pcap");
		act(i);
		c = compare(told, &t);
		CU_ASSERT_TRUE(t.aligned && t.both_ways);
		CU_ASSERT_EQUAL(t.outside[0] + t.outside[1], 0);
		CU_ASSERT_TRUE(llabs(t.offset - OFFSET) < 10000);
		if (llabs(t.offset - OFFSET) >= 10000)
			printf("# %s: the offset is wrong by %lld ns\n", rows[i].name, (long long)(t.offset - OFFSET));
		for (int k = 0; k < UR_CMP_KINDS; k++) {
			/* What is late has been overtaken as well. */
			bool may = rows[i].act == DELAY && k == UR_CMP_REORDERED;

			CU_ASSERT_TRUE(may || told[k] == (k == rows[i].kind));
			if (!may && told[k] != (unsigned)(k == rows[i].kind))
				printf("# %s: %s %u times\n", rows[i].name, ur_cmp_names[k], told[k]);
		}
		ur_compare_destroy(c);
		drop_two();
	}
}

static void compare__directions(void)
{
	unsigned told[UR_CMP_KINDS] = {0};
	const struct ur_cmp_flow *f;
	struct ur_cmp_totals t;
	struct ur_compare *c;

	make_two("rping-rc.pcap");
	c = compare(told, &t);
	CU_ASSERT_TRUE(t.flows > 0);
	for (uint32_t i = 0; (f = ur_compare_flow(c, i)); i++) {
		CU_ASSERT_EQUAL(f->first, f->src.raw[15] != 2);
		CU_ASSERT_EQUAL(f->seen[0], f->both);
		CU_ASSERT_TRUE(f->delay.min > WAY - 10000 && f->delay.max < WAY + 20000);
		CU_ASSERT_EQUAL(ur_compare_find(c, &f->src, &f->dst, f->qpn), i);
	}
	ur_compare_destroy(c);
	drop_two();
}

/* The second recorder starts late and stops early; nothing is lost. And two recordings that have nothing to do with one another. */
static void compare__not_at_the_same_time(void)
{
	unsigned told[UR_CMP_KINDS] = {0}, sum = 0;
	struct ur_cmp_totals t;
	struct ur_compare *c;

	make_two("rping-rc-64k.pcap");
	for (unsigned i = 0; i < 30; i++) {
		ur_recording_remove(&at[1], 0);
		ur_recording_remove(&at[1], at[1].n - 1);
	}
	c = compare(told, &t);
	for (unsigned k = 0; k < UR_CMP_KINDS; k++)
		sum += told[k];
	CU_ASSERT_TRUE(t.aligned);
	CU_ASSERT_EQUAL(sum, 0);
	CU_ASSERT_TRUE(t.outside[0] >= 50 && t.outside[1] == 0);
	ur_compare_destroy(c);
	drop_two();

	make_two("rping-rc.pcap");
	ur_recording_free(&at[1]);
	at[1] = ur_recording_copy(&analyze_recordings()[0]);
	c = compare(told, &t);
	CU_ASSERT_FALSE(t.aligned);
	CU_ASSERT_EQUAL(t.both, 0);
	ur_compare_destroy(c);
	drop_two();
}

/* Packet number `n` of a flow, at `when`. */
static struct ur_an_frame numbered(struct ur_recording *one, unsigned n, uint32_t psn, ur_time when)
{
	struct ur_an_frame f;

	ur_put24(ur_recording_bth(one, 0) + 9, psn & UR_PSN_MASK);
	ur_recording_fix_checksums(one, 0, 0);
	f = ur_recording_frame(one, 0);
	f.number = n;
	f.when = when;
	return f;
}

/* Whatever comes within the second that a packet waits for its like: here all are alone, after some that show the offset. */
static void compare__bounded(void)
{
	struct ur_recording one = {.name = "one"};
	const struct ur_recording *r = analyze_recordings();
	struct ur_compare *c = ur_compare_create(UR_NS_PER_MS, NULL, NULL, 1);
	const struct ur_cmp_flow *flow;
	struct ur_cmp_totals t;
	unsigned next[2] = {0};
	struct ur_an_frame f;
	uint32_t i = 0;
	struct an_pkt p;

	while (!ur_recording_pkt(r, i, &p) || p.bth.opcode != UR_OP_ACK)
		i++;
	f = ur_recording_frame(r, i);
	CU_ASSERT_TRUE_FATAL(ur_recording_add(&one, &f));
	for (unsigned n = 0; n < 3 * UR_CMP_WAITING; n++) {
		const unsigned place = n & 1, common = next[place] < 40000;

		f = numbered(&one, next[place] + 1, next[place] + (common || !place ? 0 : 1u << 23), UR_NS_PER_S + next[place] * 1000);
		next[place]++;
		ur_compare_frame(c, place, &f);
		CU_ASSERT_FATAL(c->room <= UR_CMP_WAITING && c->queue[0].room <= 65536 && c->queue[1].room <= 65536);
	}
	CU_ASSERT_EQUAL(c->room, UR_CMP_WAITING);
	ur_compare_end(c, 0);
	ur_compare_end(c, 1);
	ur_compare_totals(c, &t);
	CU_ASSERT_EQUAL(t.both, 40000);
	flow = ur_compare_flow(c, 0);
	CU_ASSERT_EQUAL(flow->n[UR_CMP_LOST] + flow->n[UR_CMP_UNSEEN] + flow->outside[0] + flow->outside[1],
			3 * UR_CMP_WAITING - 2 * 40000);
	ur_compare_destroy(c);
	ur_recording_free(&one);
}

static void clocks__drift(void)
{
	struct an_clocks c = {0};
	struct ur_rng rng = {3};

	for (unsigned i = 0; i < 20000; i++) { /* ten minutes, 40 ppm */
		ur_time a = UR_NS_PER_S + i * 30 * UR_NS_PER_MS, way = 20000 + ur_rng_below(&rng, 200000);
		int64_t ahead = OFFSET + (int64_t)((a - UR_NS_PER_S) / 25000);

		an_clocks_pair(&c, a, a + (ur_time)ahead + (i & 1 ? way : -way), i & 1);
	}
	an_clocks_fit(&c);
	CU_ASSERT_TRUE(c.both_ways && c.n <= AN_INTERVALS);
	CU_ASSERT_TRUE(c.drift > 39.9e-6 && c.drift < 40.1e-6);
	CU_ASSERT_TRUE(llabs(an_clocks_offset(&c, UR_NS_PER_S) - OFFSET) < 20000);
}

void ur_suite_analyze_compare(void)
{
	CU_pSuite s = CU_add_suite("analyze_compare", NULL, NULL);

	CU_add_test(s, "compare: each thing that happens on the way", compare__each);
	CU_add_test(s, "compare: directions and delays", compare__directions);
	CU_add_test(s, "compare: not at the same time", compare__not_at_the_same_time);
	CU_add_test(s, "compare: memory is bounded", compare__bounded);
	CU_add_test(s, "clocks: drift", clocks__drift);
}
