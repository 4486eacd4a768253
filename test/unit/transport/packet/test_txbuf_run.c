/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/packet/txbuf.c: runs, in trains and in buffers of their own. Whatever was built is cut and parsed, ICRC included. */
#include <sys/mman.h>

#include "bursts.h"
#include "twin.h"
#include "transport/packet/txbuf.h"

void ur_suite_txbuf_run(void);

static struct th run_world;

/* Begins a train with the FIRST of a message, and lets a run follow it. */
static uint32_t build_run(struct ur_pkt **pkts, struct ur_txrun *run)
{
	struct ur_qp *qp = run_world.n[0].qp;
	struct ur_tp *tp = run_world.n[0].tp;
	struct ur_pkt *p;

	ur_txbuf_reset(&tp->tx, pkts);
	p = ur_txbuf_begin(tp, qp->path, UR_BTH_LEN + MTU + UR_ICRC_LEN);
	p->bth.opcode = UR_OP_SEND_FIRST;
	p->bth.psn = UR_PSN_MASK - 20; /* wraps inside */
	p->bth.ackreq = true;
	ur_pkt_begin(qp, p, ur_opcode(UR_OP_SEND_FIRST));
	memset(p->data + p->len, 0x77, MTU);
	p->len += MTU;
	ur_txbuf_end(qp, p);
	run->mr = run_world.n[0].mr;
	return ur_txbuf_repeat(qp, run);
}

/* In a train; in buffers that refer to the payload; in buffers that it is copied into, because of the port or the request. */
enum mode { TRAIN, REFER, COPIES, COPY, MODES };

static void open_mode(enum mode m, bool v6, struct ur_txrun *run)
{
	struct th_opt o = th_default;

	o.train = m == TRAIN ? 64 : 0;
	o.v6 = v6;
	th_open(&run_world, &o);
	ur_tp_set_copies(run_world.n[0].tp, m == COPIES);
	run->copy = m == COPY;
}

/* Packets of what was built, one after another; `at` and `entry` begin with zeros. */
static bool next_built(struct ur_pkt **pkts, unsigned *entry, struct ur_train_cursor *at, struct th_pkt *one)
{
	if (th_wire(pkts[*entry], at, one))
		return true;
	*at = (struct ur_train_cursor){0};
	return ++*entry < run_world.n[0].tp->tx.n && th_wire(pkts[*entry], at, one);
}

static void expect_references(struct ur_pkt **pkts, unsigned want)
{
	atomic_uint *refs = &run_world.n[0].mr->frames.n;

	CU_ASSERT_EQUAL(atomic_load(refs), want);
	for (unsigned i = 0; i < run_world.n[0].tp->tx.n; i++)
		CU_ASSERT_TRUE(pkts[i]->flags & UR_PKT_COMPLETE);
	th_free(&run_world, 0, pkts, run_world.n[0].tp->tx.n);
	CU_ASSERT_EQUAL(atomic_load(refs), 0);
	th_close(&run_world);
}

static void run__asks_for_acknowledgements(void)
{
	static const struct {
		uint32_t n, in, every;
	} t[] = {{40, 0, 1}, {40, 0, 7}, {40, 5, 7}, {40, 39, 64}, {40, 40, 64}, {40, UINT32_MAX, 0}, {1, 0, 64}, {1, 1, 64}, {50, 0, 2}};

	for (unsigned m = 0; m < 2 * MODES; m++)
		for (unsigned i = 0; i < ur_array_size(t); i++) {
			struct ur_txrun run = {.n = t[i].n, .opcode = UR_OP_SEND_MIDDLE, .ask_in = t[i].in, .ask_every = t[i].every};
			struct ur_train_cursor at = {0};
			struct ur_pkt *pkts[64];
			struct th_pkt one;
			uint32_t in = t[i].in;
			unsigned entry = 0;

			open_mode((enum mode)(m / 2), m % 2, &run);
			run.from = run_world.n[0].mem + 333;
			CU_ASSERT_EQUAL(build_run(pkts, &run), t[i].n);
			CU_ASSERT_EQUAL(run_world.n[0].tp->tx.n, m / 2 == TRAIN ? 1 : t[i].n + 1);
			CU_ASSERT_TRUE(next_built(pkts, &entry, &at, &one) && one.p.bth.opcode == UR_OP_SEND_FIRST);
			for (uint32_t k = 0; k < t[i].n; k++) {
				CU_ASSERT_TRUE_FATAL(next_built(pkts, &entry, &at, &one));
				CU_ASSERT_EQUAL(one.p.bth.opcode, UR_OP_SEND_MIDDLE);
				CU_ASSERT_EQUAL(one.p.bth.psn, (UR_PSN_MASK - 20 + 1 + k) & UR_PSN_MASK);
				CU_ASSERT_EQUAL(one.p.bth.ackreq, in == 0);
				CU_ASSERT_EQUAL(one.p.bth.dqpn, ur_qp_num(run_world.n[1].qp));
				CU_ASSERT_EQUAL(memcmp(one.p.data + one.p.payload_off, run.from + (size_t)k * MTU, MTU), 0);
				if (m / 2 != TRAIN) {
					const struct ur_bth *b = &pkts[k + 1]->bth;

					CU_ASSERT_TRUE(b->psn == one.p.bth.psn && b->opcode == one.p.bth.opcode &&
						       b->dqpn == one.p.bth.dqpn);
					CU_ASSERT_TRUE(b->ackreq == one.p.bth.ackreq && pkts[k + 1]->payload_len == MTU);
				}
				in = in ? in - 1 : t[i].every - 1;
			}
			CU_ASSERT_EQUAL(run.ask_in, in);
			CU_ASSERT_FALSE(next_built(pkts, &entry, &at, &one));
			expect_references(pkts, m / 2 == REFER ? t[i].n : 0);
		}
}

/* A run is one packet after another for this QP, so nothing but what was built a moment ago can be its pattern. */
static void run__after_nothing(void)
{
	for (unsigned m = 0; m < MODES; m++) {
		struct ur_txrun run = {.n = 3, .opcode = UR_OP_SEND_MIDDLE, .ask_in = UINT32_MAX};
		struct ur_pkt *pkts[64];

		open_mode((enum mode)m, false, &run);
		run.from = run_world.n[0].mem;
		ur_txbuf_reset(&run_world.n[0].tp->tx, pkts);
		CU_ASSERT_EQUAL(ur_txbuf_repeat(run_world.n[0].qp, &run), 0);
		CU_ASSERT_EQUAL(build_run(pkts, &run), 3);
		ur_txbuf_close(&run_world.n[0].tp->tx);
		CU_ASSERT_EQUAL(ur_txbuf_repeat(run_world.n[0].qp, &run), 0);
		CU_ASSERT_EQUAL(build_run(pkts + 4, &run), 3);
		run.opcode = UR_XRC | UR_OP_SEND_MIDDLE; /* with an extended header */
		CU_ASSERT_EQUAL(build_run(pkts + 8, &run), 0);
		th_free(&run_world, 0, pkts, m == TRAIN ? 1 : 4);
		th_free(&run_world, 0, pkts + 4, m == TRAIN ? 1 : 4);
		th_free(&run_world, 0, pkts + 8, 1);
		th_close(&run_world);
	}
}

/* Buffers end in the middle: what was built is sent. */
static void run__buffers_run_out(void)
{
	struct ur_txrun run = {.n = 30, .opcode = UR_OP_SEND_MIDDLE, .ask_in = UINT32_MAX};
	struct ur_pkt *pkts[64];

	open_mode(REFER, false, &run);
	run.from = run_world.n[0].mem;
	run_world.n[0].room = 11;
	CU_ASSERT_EQUAL(build_run(pkts, &run), 10);
	expect_references(pkts, 10);
}

/* As many as the train has room for; where it is of other packets, none. */
static void run__room(void)
{
	static const struct {
		unsigned pkts;
		uint32_t bytes, n;
	} t[] = {{64, 65000, 61}, {64, 62 * 1040, 61}, {64, 62 * 1040 - 1, 60}, {10, 65000, 9}, {2, 65000, 1}, {64, 1040, 0}, {64, 500, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_txrun run = {.n = 100, .opcode = UR_OP_SEND_MIDDLE, .ask_in = UINT32_MAX};
		struct ur_pkt *train;

		open(&run_world, t[i].pkts, t[i].bytes);
		run.from = run_world.n[0].mem;
		CU_ASSERT_EQUAL(build_run(&train, &run), t[i].n);
		CU_ASSERT_EQUAL(ur_train_count(train), t[i].n + 1);
		CU_ASSERT_EQUAL(ur_txbuf_repeat(run_world.n[0].qp, &run), 0);
		th_free(&run_world, 0, &train, 1);
		th_close(&run_world);
	}
}

/* --- missing memory --- */

static void missing__in_the_middle_of_a_run(void)
{
	for (unsigned k = 0; k < 8 * MODES; k++) {
		struct ur_txrun run = {.n = 30, .opcode = UR_OP_SEND_MIDDLE, .ask_in = 3, .ask_every = 100};
		const uint32_t edge = k % 8 / 2 * 4096, good = (edge - (k & 1 && edge ? 100 : 0)) / MTU;
		uint8_t *mem = holed(edge);
		struct ur_train_cursor at = {0};
		struct ur_pkt *pkts[64];
		struct th_pkt one;
		unsigned n = 0, entry = 0;

		open_mode((enum mode)(k / 8), false, &run);
		run.from = mem + (k & 1 && edge ? 100 : 0);
		CU_ASSERT_EQUAL(build_run(pkts, &run), good);
		CU_ASSERT_EQUAL(run.ask_in, good > 3 ? 100 - (good - 3) : 3 - good);
		while (next_built(pkts, &entry, &at, &one))
			n++;
		CU_ASSERT_EQUAL(n, good + 1);
		expect_references(pkts, k / 8 == REFER ? good : 0);
		munmap(mem, HOLED);
	}
}

void ur_suite_txbuf_run(void)
{
	CU_pSuite s = CU_add_suite("txbuf_run", NULL, NULL);

	CU_ADD_TEST(s, run__asks_for_acknowledgements);
	CU_ADD_TEST(s, run__after_nothing);
	CU_ADD_TEST(s, run__buffers_run_out);
	CU_ADD_TEST(s, run__room);
	CU_ADD_TEST(s, missing__in_the_middle_of_a_run);
}
