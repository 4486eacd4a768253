/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody who cannot see the packets can make a responder keep: how far beyond the expected PSN, and beside the peer's own packet. */
#include "reorder_harness.h"
#include "wire/last_ack.h"

void ur_suite_reorder_differs(void);

/* A packet of one kind with PSN 102; what differs from the peer's own. */
struct forged {
	uint8_t opcode, flags; /* what is changed of the second byte of the BTH */
	uint32_t off, len, rkey, imm, from;
	bool ackreq;
	uint8_t marks; /* in the ninth */
};

static void inject(struct th *h, const struct forged *f)
{
	struct th_hdr x = th_reth(h, 1, f->off, f->len);
	struct th_pkt p;

	x.rkey ^= f->rkey;
	x.imm = f->imm;
	th_make(h, 1, &p, f->opcode, 102, f->ackreq, &x, data + f->from, f->len);
	p.p.data[p.p.bth_off + 1] ^= f->flags;
	p.p.data[p.p.bth_off + 8] |= f->marks;
	p.p.bth.se ^= f->flags >> 7;
	th_feed(h, 1, &p);
}

/* Neither is executed when its turn comes; what comes then is, and is not kept from it. */
static void differs__neither_is_kept(void)
{
	static const struct forged own = {.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7};
	static const struct {
		struct forged f;
		bool same;
	} t[] = {
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7}, true},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .ackreq = true}, true},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .marks = UR_HELLO}, true},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .marks = UR_COPY}, true},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .flags = 0x40}, true}, /* MigReq */
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .flags = 0x80}, false},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .from = 64}, false},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 8}, false},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 60, .imm = 7}, false},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .off = 64}, false},
		{{.opcode = UR_OP_WRITE_ONLY_IMM, .len = 64, .imm = 7, .rkey = 1}, false},
		{{.opcode = UR_OP_WRITE_ONLY, .len = 64}, false},
		{{.opcode = UR_OP_SEND_ONLY, .len = 64}, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++)
		for (unsigned honest_first = 0; honest_first < 2; honest_first++) {
			open_kept(&fixture, 100, 0);
			CU_ASSERT_EQUAL(th_recv(&fixture, 1, 1, 4096, 256), 0);
			write_one(&fixture, 100, 4, false);
			inject(&fixture, honest_first ? &own : &t[i].f);
			inject(&fixture, honest_first ? &t[i].f : &own);
			CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_DIFFERS), !t[i].same);
			CU_ASSERT_EQUAL(count(&fixture, UR_C_DUPLICATE), t[i].same);
			write_one(&fixture, 100, 1, false);
			write_one(&fixture, 100, 0, false);
			CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, t[i].same ? 103 : 102);
			if (!t[i].same)
				inject(&fixture, &own);
			CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 103);
			CU_ASSERT_TRUE(written(&fixture, 0));
			CU_ASSERT_EQUAL(th_expect_wc(fixture.n[1].rcq, 1, IBV_WC_SUCCESS).imm_data, 7);
			write_one(&fixture, 100, 3, false);
			CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 105);
			CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
			th_drain(&fixture, 1);
			th_close(&fixture);
		}
}

static void read_of(struct th *h, uint32_t psn, uint32_t off, uint32_t len)
{
	const struct th_hdr x = th_reth(h, 1, off, len);

	th_inject(h, 1, UR_OP_READ_REQ, psn, true, &x, NULL, 0);
}

/* A kept READ has the PSNs of its answer. It may be asked for in pieces; what does not belong to it contradicts it. */
static void differs__from_a_read(void)
{
	static const struct {
		uint32_t psn, off, len;
		bool same;
	} t[] = {
		{101, 0, 8 * MTU, true}, /* again */
		{101, 0, 2 * MTU, true},  {104, 3 * MTU, 2 * MTU, true},  {108, 7 * MTU, MTU, true},
		{101, 0, 9 * MTU, false}, {104, 3 * MTU, 6 * MTU, false}, {104, 2 * MTU, 2 * MTU, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		open_kept(&fixture, 100, 0);
		read_of(&fixture, 101, 0, 8 * MTU);
		write_one(&fixture, 100, 9, false);
		read_of(&fixture, t[i].psn, t[i].off, t[i].len);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_DIFFERS), !t[i].same);
		write_one(&fixture, 100, 0, false);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), t[i].same);
		if (!t[i].same)
			read_of(&fixture, 101, 0, 8 * MTU);
		CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 110);
		th_drain(&fixture, 1);
		th_close(&fixture);
	}
	/* A READ that is not the peer's, over what the peer sends. */
	open_kept(&fixture, 100, 0);
	read_of(&fixture, 101, 0, 8 * MTU);
	write_one(&fixture, 100, 5, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_DIFFERS), 1);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	write_one(&fixture, 100, 5, false);
	for (unsigned n = 0; n < 5; n++)
		write_one(&fixture, 100, n, false);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 106);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), 0);
	th_drain(&fixture, 1);
	th_close(&fixture);
}

/* What stands in the middle of a READ's PSNs, and came before it, stays when that is given up. */
static void differs__others_stay(void)
{
	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 3, false);
	read_of(&fixture, 101, 0, 8 * MTU);
	write_one(&fixture, 100, 5, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_DIFFERS), 1);
	write_one(&fixture, 100, 3, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_DUPLICATE), 1);
	for (unsigned n = 0; n < 3; n++)
		write_one(&fixture, 100, n, false);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 104);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	th_drain(&fixture, 1);
	th_close(&fixture);
}

static void expect_reach(struct th *h, uint32_t reach)
{
	const uint64_t before = count(h, UR_C_RX_KEPT);
	const uint32_t epsn = h->n[1].qp->resp.epsn;

	write_one_at(h, epsn, reach, 0, false);
	CU_ASSERT_EQUAL(count(h, UR_C_RX_KEPT), before);
	write_one_at(h, epsn, reach - 1, 0, false);
	CU_ASSERT_EQUAL(count(h, UR_C_RX_KEPT), before + 1);
	ur_reorder_drop(h->n[1].qp);
	h->n[1].qp->resp.nak_sent = 0;
	th_drain(h, 1);
}

/* A WRITE with the expected PSN, which is acknowledged. */
static void write_next(struct th *h, unsigned n)
{
	const struct th_hdr x = th_reth(h, 1, 0, 64);

	for (unsigned i = 0; i < n; i++) {
		th_inject(h, 1, UR_OP_WRITE_ONLY, h->n[1].qp->resp.epsn, true, &x, data, 64);
		th_drain(h, 1);
	}
}

/* Nothing is kept farther beyond the expected PSN than executed packets have shown that the peer may be. */
static void reach__follows_what_was_executed(void)
{
	const uint32_t first = 0xffff00;

	open_kept(&fixture, first, 0);
	fixture.n[1].qp->resp.shown = 0;
	expect_reach(&fixture, UR_REORDER_LEAST);
	for (unsigned i = 0; i < 20; i++) /* guesses show nothing */
		write_one_at(&fixture, first, 1 + i * 1000, 0, false);
	ur_reorder_drop(fixture.n[1].qp);
	fixture.n[1].qp->resp.nak_sent = 0;
	th_drain(&fixture, 1);
	expect_reach(&fixture, UR_REORDER_LEAST);
	for (unsigned i = 0; i < 400; i++) { /* slowly */
		write_next(&fixture, 1);
		th_sleep(&fixture, 100 * US);
	}
	expect_reach(&fixture, UR_REORDER_LEAST);
	for (unsigned i = 0; i < 400; i++) {
		write_next(&fixture, 10);
		th_sleep(&fixture, 50 * US);
	}
	CU_ASSERT_TRUE(fixture.n[1].qp->resp.shown >= 200 && fixture.n[1].qp->resp.shown <= 240);
	th_sleep(&fixture, UR_NS_PER_S); /* it may go on like that at once */
	write_next(&fixture, 1);
	expect_reach(&fixture, 4 * fixture.n[1].qp->resp.shown);
	write_next(&fixture, 20000); /* never so far that PSNs are taken for others */
	expect_reach(&fixture, UR_REORDER_SPAN);
	th_close(&fixture);
}

/* One that came early, and was executed, shows eight times as much; what READs answer counts as well. */
static void reach__grows_by_what_came_early(void)
{
	open_kept(&fixture, 100, 0);
	fixture.n[1].qp->resp.shown = 0;
	write_one_at(&fixture, 100, 63, 0, false);
	for (unsigned i = 0; i < 63; i++) {
		write_next(&fixture, 1);
		th_sleep(&fixture, 50 * US);
	}
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 164);
	expect_reach(&fixture, 8 * 63);
	read_of(&fixture, 164, 0, 100 * MTU);
	th_drain(&fixture, 1);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 264);
	th_sleep(&fixture, UR_NS_PER_MS);
	write_next(&fixture, 1);
	CU_ASSERT_TRUE(fixture.n[1].qp->resp.shown >= 100);
	th_close(&fixture);
}

/*
 * After a NAK, and a SACK that says what is kept: were the QP to end now, no more would be acknowledged for it than was executed
 * (ur_qp_last_ack).
 */
static void last_ack__after_a_sack(void)
{
	struct ur_last_ack ack;
	struct ur_bth bth;
	struct ur_sack s;

	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 0, true);
	write_one(&fixture, 100, 2, false);
	expect_sack(&fixture, &s, 100);
	CU_ASSERT_EQUAL(s.expected, 101);
	CU_ASSERT_TRUE_FATAL(ur_qp_last_ack(fixture.n[1].qp, 0, &ack)); /* the first one that it has sent was a SACK */
	ur_bth_get(ack.headers, &bth);
	CU_ASSERT_EQUAL(bth.psn, 100);
	fixture.n[1].qp->resp.ack_psn = 101; /* of a NAK that has left */
	write_one(&fixture, 100, 3, false);
	expect_sack(&fixture, &s, 100);
	CU_ASSERT_TRUE(ur_qp_last_ack(fixture.n[1].qp, 0, &ack));
	ur_bth_get(ack.headers, &bth);
	CU_ASSERT_EQUAL(bth.psn, 100);
	th_close(&fixture);
}

/* A READ that covers many others: no packet makes us look at all of them. */
static void differs__within_a_wide_read(void)
{
	struct th_hdr x;
	struct th_pkt p;

	open_kept(&fixture, 100, 0);
	for (unsigned i = 3; i < 600; i++)
		write_one(&fixture, 100, i, false);
	x = th_reth(&fixture, 1, 0, 2000 * MTU);
	th_make(&fixture, 1, &p, UR_OP_READ_REQ, 102, true, &x, NULL, 0);
	th_feed(&fixture, 1, &p);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT), 598);
	write_one_at(&fixture, 100, 700, 1, false); /* within the READ, beyond all others: it is not looked for so far */
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_DIFFERS), 0);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_DUPLICATE), 1);
	x.rkey ^= 1;
	th_make(&fixture, 1, &p, UR_OP_READ_REQ, 102, true, &x, NULL, 0);
	th_feed(&fixture, 1, &p);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_DIFFERS), 1);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder); /* so wide a one is given up with all that is kept */
	th_drain(&fixture, 1);
	th_close(&fixture);
}

void ur_suite_reorder_differs(void)
{
	CU_pSuite s = CU_add_suite("reorder_differs", NULL, NULL);

	CU_ADD_TEST(s, differs__neither_is_kept);
	CU_ADD_TEST(s, differs__from_a_read);
	CU_ADD_TEST(s, differs__others_stay);
	CU_ADD_TEST(s, differs__within_a_wide_read);
	CU_ADD_TEST(s, last_ack__after_a_sack);
	CU_ADD_TEST(s, reach__follows_what_was_executed);
	CU_ADD_TEST(s, reach__grows_by_what_came_early);
}
