/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `uroce pcap slow` says against what is so: two NICs on a fabric in virtual time, recorded beside the sender, are held up on purpose,
 * each time by one thing. Where the NICs have no such thing, frames or events say it.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "analyze/view/slow.h"
#include "analyze_harness.h"
#include "nic_harness.h"
#include "transport/state/tp_priv.h"

void ur_suite_analyze_slow(void);

#define DELAY (50 * UR_NS_PER_US) /* of the fabric, one way */

/* --- two NICs --- */

struct rig {
	struct nics h;
	struct nics_qp a, b; /* A asks */
	struct ur_recording r;
	unsigned posted, done;
};

/* Beside A: what B sends comes there later. */
static void tap(void *ctx, unsigned from, const uint8_t *frame, uint32_t len, const char *fate)
{
	struct rig *g = ctx;

	(void)fate;
	memcpy(analyze_add_raw(&g->r, len, ur_sim_now(g->h.sim) + (from ? DELAY : 0)), frame, len);
}

static struct rig *rig_open(bool cc)
{
	struct rig *g = calloc(1, sizeof(*g));

	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	nics_open(&g->h, 2);
	for (unsigned i = 0; i < 2; i++) {
		ur_sim_tx(g->h.sim, i)->delay = DELAY;
		g->h.n[i].nic->cfg.tp.cc = g->h.n[i].nic->tp->c.cc = cc;
	}
	nics_qp_create(&g->h, 0, IBV_QPT_RC, &g->a);
	nics_qp_create(&g->h, 1, IBV_QPT_RC, &g->b);
	nics_qp_connect(&g->h, &g->a, &g->b);
	nics_qp_connect(&g->h, &g->b, &g->a);
	nics_run(&g->h, UR_NS_PER_MS);
	ur_sim_watch(g->h.sim, tap, g);
	return g;
}

static void reap(struct rig *g)
{
	struct ibv_wc wc;

	while (ur_cq_poll(g->h.n[0].cq, 1, &wc) == 1) {
		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		g->done++;
	}
	while (ur_cq_poll(g->h.n[1].cq, 1, &wc) == 1)
		;
}

/* `n` requests of `len` bytes, `deep` of them at a time, and `pause` of the program after each round of them. */
static void work(struct rig *g, enum ibv_wr_opcode op, unsigned n, uint32_t len, unsigned deep, ur_time pause)
{
	const ur_time end = g->h.now + 100 * UR_NS_PER_S;

	while (g->done < n && g->h.now < end) {
		while (g->posted < n && g->posted - g->done < deep)
			CU_ASSERT_EQUAL_FATAL(nics_post(&g->h, &g->a, op, g->posted++, 0, len, 1, 0), 0);
		nics_run(&g->h, UR_NS_PER_US);
		reap(g);
		if (pause && g->done == g->posted)
			nics_run(&g->h, pause);
	}
	CU_ASSERT_EQUAL(g->done, n);
}

/* Asserts what limits the requests of A, and that it took between `low` and `high` per cent of the time. */
static void judge(const struct ur_recording *r, enum ur_slow_cause want, unsigned low, unsigned high)
{
	struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1);
	struct ur_slow_all all = {0};
	struct ur_an_conn c;
	const struct ur_slow *s;
	unsigned share;

	ur_analysis_observe(a, ur_slow_event, &all);
	for (unsigned i = 0; i < r->n; i++) {
		struct ur_an_frame f = ur_recording_frame(r, i);

		ur_analysis_frame(a, &f);
	}
	ur_analysis_finish(a);
	CU_ASSERT_TRUE_FATAL(ur_analysis_conn(a, 0, &c));
	s = ur_slow_of(&c.half[0]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	share = (unsigned)(s->ns[want] * 100 / ur_slow_total(s));
	CU_ASSERT_EQUAL(ur_slow_limit(s), want);
	CU_ASSERT(share >= low && share <= high);
	CU_ASSERT_EQUAL(ur_slow_total(s), s->end - s->begin);
	if (ur_slow_limit(s) != want || share < low || share > high)
		for (unsigned i = 0; i < UR_SLOW_COUNT; i++)
			if (s->ns[i])
				printf("# %s: %llu us in %llu waits\n", ur_slow_names[i], (unsigned long long)s->ns[i] / 1000,
				       (unsigned long long)s->waits[i]);
	ur_analysis_destroy(a);
	ur_slow_free(&all);
}

/* Those of one time stay as they are. */
static void sort_frames(struct ur_recording *r)
{
	for (uint32_t i = 1; i < r->n; i++) {
		const struct ur_rec_frame f = r->f[i];
		uint32_t k = i;

		for (; k && r->f[k - 1].when > f.when; k--)
			r->f[k] = r->f[k - 1];
		r->f[k] = f;
	}
}

static void rig_close(struct rig *g, enum ur_slow_cause want, unsigned low, unsigned high)
{
	ur_sim_watch(g->h.sim, NULL, NULL);
	sort_frames(&g->r);
	judge(&g->r, want, low, high);
	ur_recording_free(&g->r);
	nics_qp_destroy(&g->h, &g->a);
	nics_qp_destroy(&g->h, &g->b);
	nics_close(&g->h);
	free(g);
}

/* --- one thing at a time --- */

/* The program computes for a millisecond; a WRITE takes 100 us. */
static void program_idles(void)
{
	struct rig *g = rig_open(false);

	work(g, IBV_WR_RDMA_WRITE, 50, 1000, 1, UR_NS_PER_MS);
	rig_close(g, UR_SLOW_IDLE, 85, 97);
}

static void program_waits(void)
{
	for (unsigned deep = 1; deep <= 4; deep += 3) {
		struct rig *g = rig_open(false);

		work(g, IBV_WR_RDMA_WRITE, 100, 1000, deep, 0);
		rig_close(g, UR_SLOW_ANSWERS, 90, 100);
	}
}

/* More than a window of data is posted at any time, and the path is long. */
static void window_is_full(void)
{
	struct rig *g = rig_open(false);

	work(g, IBV_WR_RDMA_WRITE, 200, 60000, 32, 0);
	rig_close(g, UR_SLOW_WINDOW, 80, 100);
}

static void no_receives(void)
{
	struct rig *g = rig_open(false);

	for (unsigned i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL_FATAL(nics_post(&g->h, &g->a, IBV_WR_SEND, i, 0, 100, 1, 0), 0);
		nics_run(&g->h, 20 * UR_NS_PER_MS);
		nics_recv(&g->h, &g->b, i, 0, 1000);
		for (unsigned k = 0; k < 100000 && g->done <= i; k++) {
			nics_run(&g->h, 10 * UR_NS_PER_US);
			reap(g);
		}
	}
	CU_ASSERT_EQUAL(g->done, 20);
	rig_close(g, UR_SLOW_RNR, 90, 100);
}

static void packets_get_lost(void)
{
	struct rig *g = rig_open(false);

	ur_sim_tx(g->h.sim, 0)->loss = 30000;
	work(g, IBV_WR_RDMA_WRITE, 200, 20000, 4, 0);
	ur_sim_tx(g->h.sim, 0)->loss = 0;
	rig_close(g, UR_SLOW_LOSS, 40, 100);
}

static void switch_marks(void)
{
	struct rig *g = rig_open(true);

	ur_sim_tx(g->h.sim, 0)->mark = UR_SIM_PPM;
	work(g, IBV_WR_RDMA_WRITE, 200, 60000, 16, 0);
	rig_close(g, UR_SLOW_CONGESTION, 70, 100);
}

/* --- frames --- */

struct line {
	struct ur_recording r;
	ur_time when;
	int psn, msn;
};

static void put(struct line *l, char from, uint8_t op, int psn, int arg, int msn, ur_time after)
{
	l->when += after;
	analyze_add_step(&l->r, &(struct step){from, op, psn, arg, msn, 0}, l->when);
}

static void close_line(struct line *l, enum ur_slow_cause want, unsigned low, unsigned high)
{
	judge(&l->r, want, low, high);
	ur_recording_free(&l->r);
}

/* A SEND of `n` packets, `gap` apart, acknowledged after 20 us. */
static void put_send(struct line *l, int n, ur_time gap)
{
	for (int i = 0; i < n; i++)
		put(l, 'A',
		    (uint8_t)(i == 0      ? UR_OP_SEND_FIRST
			      : i + 1 < n ? UR_OP_SEND_MIDDLE
					  : UR_OP_SEND_LAST),
		    l->psn++, i + 1 < n ? MTU : 9, 0, gap);
	put(l, 'B', UR_OP_ACK, l->psn - 1, 0x1f, ++l->msn, 20 * UR_NS_PER_US);
}

static void line_is_full(void)
{
	struct line l = {.when = UR_NS_PER_S, .psn = 100};

	for (unsigned i = 0; i < 20; i++)
		put_send(&l, 100, UR_NS_PER_US);
	close_line(&l, UR_SLOW_SENDING, 75, 90);
}

/* It stops for 200 us after every tenth packet of a message, and no answer is due. */
static void sender_stops(void)
{
	struct line l = {.when = UR_NS_PER_S, .psn = 100};

	for (unsigned i = 0; i < 10; i++) {
		put(&l, 'A', UR_OP_SEND_FIRST, l.psn++, MTU, 0, 10 * UR_NS_PER_US);
		for (unsigned k = 1; k < 100; k++)
			put(&l, 'A', UR_OP_SEND_MIDDLE, l.psn++, MTU, 0, k % 10 ? UR_NS_PER_US : 200 * UR_NS_PER_US);
		put(&l, 'A', UR_OP_SEND_LAST, l.psn++, 9, 0, UR_NS_PER_US);
		put(&l, 'B', UR_OP_ACK, l.psn - 1, 0x1f, ++l.msn, 20 * UR_NS_PER_US);
	}
	close_line(&l, UR_SLOW_SENDER, 85, 100);
}

/* The responder stops for 100 us after every eighth response. */
static void responder_stops(void)
{
	struct line l = {.when = UR_NS_PER_S, .psn = 100};

	for (unsigned i = 0; i < 20; i++) {
		put(&l, 'A', UR_OP_READ_REQ, l.psn, 64 * MTU, 0, UR_NS_PER_US);
		for (int k = 0; k < 64; k++)
			put(&l, 'B',
			    (uint8_t)(k == 0   ? UR_OP_READ_RESP_FIRST
				      : k < 63 ? UR_OP_READ_RESP_MIDDLE
					       : UR_OP_READ_RESP_LAST),
			    l.psn++, MTU, (int)i + 1, k && k % 8 == 0 ? 100 * UR_NS_PER_US : UR_NS_PER_US);
	}
	close_line(&l, UR_SLOW_RESPONDER, 80, 100);
}

/* B announces one buffer with each acknowledgement, a millisecond after the SEND. */
static void no_credits(void)
{
	struct line l = {.when = UR_NS_PER_S, .psn = 100};

	for (unsigned i = 0; i < 30; i++) {
		for (unsigned k = 0; k < 2; k++)
			put(&l, 'A', UR_OP_SEND_ONLY, l.psn++, 64, 0, UR_NS_PER_US);
		put(&l, 'B', UR_OP_ACK, l.psn - 2, 0, (int)(2 * i + 1), UR_NS_PER_MS);
		put(&l, 'B', UR_OP_ACK, l.psn - 1, 1, (int)(2 * i + 2), UR_NS_PER_MS);
	}
	close_line(&l, UR_SLOW_CREDITS, 85, 100);
}

static void put_pause(struct line *l, uint16_t opcode, uint8_t classes, uint16_t time)
{
	static const uint8_t head[] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08};
	uint8_t *f = analyze_add_raw(&l->r, 60, l->when);

	memcpy(f, head, sizeof(head));
	ur_put16(f + 14, opcode);
	ur_put16(f + 16, opcode == 1 ? time : classes);
	if (opcode != 1)
		ur_put16(f + 18 + 2 * 3, time);
}

/* Of all traffic, of one priority; where no time is asked for, or of another priority, it is not that. */
static void pause_frames(void)
{
	static const struct {
		uint16_t opcode;
		uint8_t classes;
		uint16_t time;
		enum ur_slow_cause want;
	} rows[] = {
		{1, 0, 0xffff, UR_SLOW_PAUSE}, {0x101, 8, 100, UR_SLOW_PAUSE}, {0x101, 4, 100, UR_SLOW_SENDER}, {1, 0, 0, UR_SLOW_SENDER}};

	for (unsigned row = 0; row < ur_array_size(rows); row++) {
		struct line l = {.when = UR_NS_PER_S, .psn = 100};

		put(&l, 'A', UR_OP_SEND_FIRST, l.psn++, MTU, 0, UR_NS_PER_US);
		for (unsigned k = 1; k < 200; k++) {
			if (k % 10 == 0)
				put_pause(&l, rows[row].opcode, rows[row].classes, rows[row].time);
			put(&l, 'A', UR_OP_SEND_MIDDLE, l.psn++, MTU, 0, k % 10 ? UR_NS_PER_US : 500 * UR_NS_PER_US);
		}
		close_line(&l, rows[row].want, 90, 100);
	}
}

/* Packets come ten times as far apart after each pause of half a millisecond, for a millisecond and a half. A pause frame that comes again
 * counts once. */
static void effect_of_pauses(void)
{
	struct line l = {.when = UR_NS_PER_S, .psn = 100};
	struct ur_slow_all all = {0};
	struct ur_effects_all alone = {0};
	struct ur_analysis *a = ur_analysis_create(NULL, NULL, 1), *b = ur_analysis_create(NULL, NULL, 1);
	struct ur_an_conn c, d;
	const struct ur_effect *e;

	put(&l, 'A', UR_OP_SEND_FIRST, l.psn++, MTU, 0, UR_NS_PER_US);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned k = 0; k < 2000; k++)
			put(&l, 'A', UR_OP_SEND_MIDDLE, l.psn++, MTU, 0, UR_NS_PER_US);
		for (unsigned k = 0; k < 3; k++) {
			put_pause(&l, 1, 0, 100);
			l.when += 100 * UR_NS_PER_US;
		}
		l.when += 200 * UR_NS_PER_US;
		for (unsigned k = 0; k < 150; k++)
			put(&l, 'A', UR_OP_SEND_MIDDLE, l.psn++, MTU, 0, 10 * UR_NS_PER_US);
	}
	ur_analysis_observe(a, ur_slow_event, &all);
	ur_analysis_observe(b, ur_effects_observe, &alone);
	for (unsigned i = 0; i < l.r.n; i++) {
		struct ur_an_frame f = ur_recording_frame(&l.r, i);

		ur_analysis_frame(a, &f);
		ur_analysis_frame(b, &f);
	}
	ur_analysis_finish(a);
	ur_analysis_finish(b);
	CU_ASSERT_TRUE_FATAL(ur_analysis_conn(a, 0, &c) && ur_analysis_conn(b, 0, &d));
	CU_ASSERT_EQUAL(memcmp(&ur_slow_of(&c.half[0])->effects, ur_effects_of(&d.half[0]), sizeof(struct ur_effects)), 0);
	CU_ASSERT(ur_effects_any(ur_effects_of(&d.half[0])) && !ur_effects_any(ur_effects_of(&d.half[1])));
	e = &ur_slow_of(&c.half[0])->effects.of[UR_EFFECT_PAUSE];
	CU_ASSERT(ur_effect_before(e) > 8 * ur_effect_after(e) && ur_effect_after(e) / 1000000 >= 49 * MTU * 8 / 1000);
	CU_ASSERT_EQUAL(e->series, 5);
	CU_ASSERT_EQUAL(e->after_ns, 5 * UR_EFFECT_NS);
	CU_ASSERT(e->after >= 5 * 49 * MTU && e->after <= 5 * 51 * MTU);
	CU_ASSERT(e->before / MTU >= e->before_ns / UR_NS_PER_US - 5 && e->before / MTU <= e->before_ns / UR_NS_PER_US + 5);
	CU_ASSERT_EQUAL(ur_slow_of(&c.half[0])->effects.of[UR_EFFECT_CNP].series, 0);
	ur_analysis_destroy(a);
	ur_analysis_destroy(b);
	ur_slow_free(&all);
	ur_effects_free(&alone);
	ur_recording_free(&l.r);
}

/* --- events --- */

/* As many READs are in flight as were agreed on: the next goes when one is answered. */
static void depth_of_reads(void)
{
	struct ur_an_half h = {0};
	struct ur_slow_all all = {0};
	struct ur_an_event e = {.half = &h, .service = UR_RC, .depth_most = 4, .n = 1, .len = 256, .when = 1000, .next = 100, .acked = 100};
	const struct ur_slow *s;

	for (unsigned i = 0; i < 100; i++) {
		for (; e.next - e.acked < 4; e.when += 100) {
			e.kind = UR_AN_EV_REQUEST;
			e.opcode = UR_OP_READ_REQ;
			e.psn = e.next++;
			e.depth = (uint32_t)(e.next - e.acked);
			ur_slow_event(&all, &e);
		}
		e.when += 80 * UR_NS_PER_US;
		e.kind = UR_AN_EV_RESPONSE;
		e.opcode = UR_OP_READ_RESP_ONLY;
		e.psn = e.acked;
		ur_slow_event(&all, &e);
		e.kind = UR_AN_EV_ACKED;
		e.acked++;
		e.depth--;
		ur_slow_event(&all, &e);
		e.when += 300;
	}
	s = ur_slow_of(&h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	CU_ASSERT_EQUAL(ur_slow_limit(s), UR_SLOW_DEPTH);
	CU_ASSERT(s->ns[UR_SLOW_DEPTH] > ur_slow_total(s) * 95 / 100);
	CU_ASSERT_EQUAL(s->bins.n <= UR_SLOW_BINS, true);
	ur_slow_free(&all);
}

/* However many directions there are, so many are looked at. */
static void halves_are_bounded(void)
{
	static struct ur_an_half h[UR_SLOW_HALVES + 10];
	struct ur_slow_all all = {0};
	struct ur_an_event e = {.kind = UR_AN_EV_REQUEST, .opcode = UR_OP_SEND_ONLY, .n = 1};

	for (unsigned i = 0; i < ur_array_size(h); i++) {
		e.half = &h[i];
		ur_slow_event(&all, &e);
	}
	CU_ASSERT_EQUAL(all.n, UR_SLOW_HALVES);
	CU_ASSERT_EQUAL(all.untold, 10);
	ur_slow_free(&all);
}

void ur_suite_analyze_slow(void)
{
	CU_pSuite s = CU_add_suite("analyze_slow", NULL, NULL);

	CU_ADD_TEST(s, program_idles);
	CU_ADD_TEST(s, program_waits);
	CU_ADD_TEST(s, window_is_full);
	CU_ADD_TEST(s, no_receives);
	CU_ADD_TEST(s, packets_get_lost);
	CU_ADD_TEST(s, switch_marks);
	CU_ADD_TEST(s, line_is_full);
	CU_ADD_TEST(s, sender_stops);
	CU_ADD_TEST(s, responder_stops);
	CU_ADD_TEST(s, no_credits);
	CU_ADD_TEST(s, pause_frames);
	CU_ADD_TEST(s, effect_of_pauses);
	CU_ADD_TEST(s, depth_of_reads);
	CU_ADD_TEST(s, halves_are_bounded);
}
