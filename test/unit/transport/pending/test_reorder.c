/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/pending/reorder.c, and what the responder does with it. Node 1 is the responder; its peer is the test, which sends from PSN
 * 100 on, or from near the end of the PSNs. The path MTU is 256.
 */
#include "reorder_harness.h"

void ur_suite_reorder(void);

/* --- a peer that has not said hello --- */

static void keep__executes_in_order_once_the_hole_is_filled(void)
{
	open_kept(&fixture, 100, 0);
	for (unsigned i = 1; i <= 4; i++)
		if (i != 3)
			write_one(&fixture, 100, i, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT), 3);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_DROP_OUT_OF_SEQ), 0);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_WRITE), 0);
	CU_ASSERT_FALSE(written(&fixture, 1));
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	th_expect_quiet(&fixture, 1);
	write_one(&fixture, 100, 0, false);
	CU_ASSERT_TRUE(written(&fixture, 0) && written(&fixture, 1) && written(&fixture, 2) && !written(&fixture, 4));
	th_expect_ack(&fixture, 1, 102, ACK); /* at once, though nobody asked */
	th_expect_quiet(&fixture, 1);
	write_one(&fixture, 100, 5, false);
	th_expect_ack(&fixture, 1, 103, SEQ_NAK);
	write_one(&fixture, 100, 3, false);
	th_expect_ack(&fixture, 1, 105, ACK);
	CU_ASSERT_TRUE(written(&fixture, 3) && written(&fixture, 4) && written(&fixture, 5));
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_WRITE), 6);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_SACK_SENT), 0);
	th_close(&fixture);
}

/*
 * One NAK for a hole, as long as what comes is new, or came twice on the way; another when the peer has gone back and the packet is missing
 * again.
 */
static void keep__naks_again_when_the_repetition_lacks_it_too(void)
{
	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 1, false);
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	write_one(&fixture, 100, 2, false);
	write_one(&fixture, 100, 2, false);
	write_one(&fixture, 100, 1, false);
	th_expect_quiet(&fixture, 1);
	write_one(&fixture, 100, 2, false);
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	for (unsigned i = 3; i < 10; i++)
		write_one(&fixture, 100, i, false);
	th_expect_quiet(&fixture, 1);
	for (unsigned round = 0; round < 2; round++) {
		write_one(&fixture, 100, 1, false);
		th_expect_ack(&fixture, 1, 100, SEQ_NAK);
		for (unsigned i = 2; i < 10; i++)
			write_one(&fixture, 100, i, false);
		th_expect_quiet(&fixture, 1);
	}
	CU_ASSERT_EQUAL(count(&fixture, UR_C_DUPLICATE), 3 + 18);
	th_close(&fixture);
}

/* Any order, any packet as often as chance has it, past the end of the PSNs: each executed once, in order, and nothing before its turn. */
static void keep__any_order(void)
{
	static const uint8_t opcodes[] = {UR_OP_SEND_FIRST, UR_OP_SEND_MIDDLE, UR_OP_SEND_LAST, UR_OP_SEND_ONLY};

	for (unsigned seed = 1; seed <= 40; seed++) {
		struct ur_rng rng = {seed};
		const uint32_t first = seed & 1 ? 0xfffff0 : 5000;
		bool came[60] = {false};
		unsigned done = 0, left = 60;

		open_kept(&fixture, first, 1 << 20);
		for (unsigned i = 0; i < 30; i++)
			CU_ASSERT_EQUAL(th_recv(&fixture, 1, i, i * 1024, 1024), 0);
		while (left) { /* message k: packets 4k to 4k + 2 of one, and 4k + 3 */
			const unsigned i = ur_rng_below(&rng, 60), op = i % 4;
			const uint32_t len = op < 2 ? MTU : 40;

			th_inject(&fixture, 1, opcodes[op], first + i, ur_rng_below(&rng, 2), NULL, data + i * 16, len);
			left -= !came[i];
			came[i] = true;
			while (done < 60 && came[done])
				done++;
			CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_SEND), done / 4 * 2 + (done % 4 == 3));
			CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, ur_psn_add(first, done));
			if (ur_rng_below(&rng, 4) == 0)
				th_drain(&fixture, 1);
		}
		for (unsigned i = 0; i < 30; i++) {
			const struct ibv_wc wc = th_expect_wc(fixture.n[1].rcq, i, IBV_WC_SUCCESS);
			const unsigned p = i / 2 * 4 + (i & 1 ? 3 : 0);

			CU_ASSERT_EQUAL(wc.byte_len, i & 1 ? 40 : 2 * MTU + 40);
			CU_ASSERT_EQUAL(memcmp(fixture.n[1].mem + i * 1024, data + p * 16, i & 1 ? 40 : MTU), 0);
			if (!(i & 1))
				CU_ASSERT_EQUAL(memcmp(fixture.n[1].mem + i * 1024 + 2 * MTU, data + (p + 2) * 16, 40), 0);
		}
		CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
		th_close(&fixture);
	}
}

/* A long run is executed in parts, between which others have their turn. */
static void keep__long_runs_in_parts(void)
{
	unsigned parts = 0;

	open_kept(&fixture, 100, 0);
	for (unsigned i = 1; i < 1000; i++)
		write_one(&fixture, 100, i, false);
	th_drain(&fixture, 1);
	write_one(&fixture, 100, 0, false);
	CU_ASSERT_TRUE(written(&fixture, 100) && !written(&fixture, 200));
	write_one(&fixture, 100, 1000, false); /* nothing is missing, so nothing is asked for */
	write_one(&fixture, 100, 500, false);
	for (struct th_pkt p; th_pull(&fixture, 1, &p); parts++)
		CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_ACK);
	CU_ASSERT_EQUAL(parts, 7);
	CU_ASSERT_TRUE(written(&fixture, 999) && written(&fixture, 1000));
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_WRITE), 1001);
	th_expect_quiet(&fixture, 1);
	th_close(&fixture);
}

/* What is wrong is refused in its turn, and nothing after it is executed. */
static void keep__refuses_in_turn(void)
{
	struct th_hdr bad;

	open_kept(&fixture, 100, 0);
	bad = th_reth(&fixture, 1, 0, 64);
	bad.rkey ^= 0x100;
	write_one(&fixture, 100, 1, false);
	th_inject(&fixture, 1, UR_OP_WRITE_ONLY, 102, false, &bad, data, 64);
	write_one(&fixture, 100, 3, false);
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	CU_ASSERT_EQUAL(fixture.n[1].nevents, 0);
	write_one(&fixture, 100, 0, false);
	CU_ASSERT_TRUE(written(&fixture, 1) && !written(&fixture, 3));
	fixture.n[1].nevents = 0; /* COMM_EST is not looked at here */
	CU_ASSERT_EQUAL(ur_qp_state(fixture.n[1].qp), IBV_QPS_ERR);
	th_expect_ack(&fixture, 1, 102, NAK(UR_NAK_REM_ACCESS));
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	th_close(&fixture);
}

/* One that comes too early for its receive has to come again; those beyond it need not. */
static void keep__rnr(void)
{
	open_kept(&fixture, 100, 0);
	CU_ASSERT_EQUAL(th_recv(&fixture, 1, 1, 0, 1024), 0);
	for (uint32_t psn = 101; psn <= 103; psn++)
		th_inject(&fixture, 1, UR_OP_SEND_ONLY, psn, false, NULL, data, 32);
	th_drain(&fixture, 1);
	th_inject(&fixture, 1, UR_OP_SEND_ONLY, 100, false, NULL, data, 32);
	th_expect_wc(fixture.n[1].rcq, 1, IBV_WC_SUCCESS);
	th_expect_ack(&fixture, 1, 101, ur_syndrome(UR_AETH_RNR, fixture.opt.min_rnr));
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RNR_NAK_SENT), 1);
	for (unsigned i = 2; i <= 4; i++)
		CU_ASSERT_EQUAL(th_recv(&fixture, 1, i, i * 1024, 1024), 0);
	th_expect_quiet(&fixture, 1);
	th_inject(&fixture, 1, UR_OP_SEND_ONLY, 104, false, NULL, data, 32); /* nothing is answered until it has come */
	th_expect_quiet(&fixture, 1);
	th_inject(&fixture, 1, UR_OP_SEND_ONLY, 101, false, NULL, data, 32);
	for (unsigned i = 2; i <= 4; i++)
		th_expect_wc(fixture.n[1].rcq, i, IBV_WC_SUCCESS);
	th_expect_ack(&fixture, 1, 104, ur_syndrome(UR_AETH_RNR, fixture.opt.min_rnr));
	th_close(&fixture);
}

/* A READ is answered in its turn, and its responses acknowledge what is before it. */
static void keep__read(void)
{
	struct th_hdr x;
	struct th_pkt p;

	open_kept(&fixture, 100, 0);
	memcpy(fixture.n[1].mem + 8192, data, 600);
	x = th_reth(&fixture, 1, 8192, 600);
	th_inject(&fixture, 1, UR_OP_READ_REQ, 101, true, &x, NULL, 0);
	write_one(&fixture, 100, 4, false); /* after the three responses */
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	th_expect_quiet(&fixture, 1);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), 0);
	write_one(&fixture, 100, 0, false);
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_TRUE_FATAL(th_pull(&fixture, 1, &p));
		CU_ASSERT_EQUAL(p.p.bth.psn, 101 + i);
		CU_ASSERT_EQUAL(memcmp(p.p.data + p.p.payload_off, data + i * MTU, p.p.payload_len), 0);
	}
	th_expect_ack(&fixture, 1, 104, ACK);
	CU_ASSERT_TRUE(written(&fixture, 4));
	th_close(&fixture);
}

/* More than may be outstanding, as where a requester went back and asked in more pieces: the others wait for responses to leave. */
static void keep__more_reads_than_may_be_outstanding(void)
{
	struct th_hdr x;
	struct th_pkt p;

	open_kept(&fixture, 100, 0);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.rd_n, 4);
	for (unsigned i = 1; i <= 10; i++) {
		x = th_reth(&fixture, 1, 8192 + i * 8, 8);
		th_inject(&fixture, 1, UR_OP_READ_REQ, 100 + i, true, &x, NULL, 0);
	}
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	write_one(&fixture, 100, 0, false);
	for (unsigned i = 1; i <= 10; i++) {
		CU_ASSERT_TRUE_FATAL(th_pull(&fixture, 1, &p));
		CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_ONLY);
		CU_ASSERT_EQUAL(p.p.bth.psn, 100 + i);
	}
	th_expect_quiet(&fixture, 1);
	CU_ASSERT_EQUAL(ur_qp_state(fixture.n[1].qp), IBV_QPS_RTS);
	th_close(&fixture);
}

/* --- a peer that has said hello --- */

static void hello__in_the_expected_packet_alone(void)
{
	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 1, true);
	CU_ASSERT_FALSE(fixture.n[1].qp->resp.peer_sacks);
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	write_one(&fixture, 100, 0, false);
	CU_ASSERT_TRUE(fixture.n[1].qp->resp.peer_sacks); /* it was kept, and then its turn came */
	th_close(&fixture);
	open_kept(&fixture, 100, 0);
	for (unsigned i = 0; i < 1024; i++)
		write_one_at(&fixture, 100, i, 0, false);
	write_one_at(&fixture, 100, 1024, 0, true); /* too late */
	CU_ASSERT_FALSE(fixture.n[1].qp->resp.peer_sacks);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.slow_path, 0);
	th_close(&fixture);
}

static void sack__instead_of_a_nak(void)
{
	struct ur_sack s;

	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 0, true);
	for (unsigned i = 2; i < 10; i++)
		if (i != 5)
			write_one(&fixture, 100, i, false);
	expect_sack(&fixture, &s, 100); /* one for the burst */
	th_expect_quiet(&fixture, 1);
	CU_ASSERT_TRUE(s.expected == 101 && s.base == 101 && s.n == 64);
	CU_ASSERT_EQUAL(s.bits[0], 0x1ee);
	write_one(&fixture, 100, 5, false);
	expect_sack(&fixture, &s, 100);
	CU_ASSERT_EQUAL(s.bits[0], 0x1fe);
	write_one(&fixture, 100, 0, false); /* a probe */
	expect_sack(&fixture, &s, 100);
	CU_ASSERT_EQUAL(s.bits[0], 0x1fe);
	write_one(&fixture, 100, 11, false);
	write_one(&fixture, 100, 1, false); /* executes all up to 109, so the SACK says what remains */
	expect_sack(&fixture, &s, 109);
	CU_ASSERT_TRUE(s.expected == 110 && s.base == 110 && s.bits[0] == 2);
	write_one(&fixture, 100, 10, false);
	th_expect_ack(&fixture, 1, 111, ACK);
	th_expect_quiet(&fixture, 1);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_SACK_SENT), 4);
	th_close(&fixture);
}

/* The hole is filled before the SACK leaves: an acknowledgement is left of it. */
static void sack__not_needed_any_more(void)
{
	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 0, true);
	write_one(&fixture, 100, 2, false);
	write_one(&fixture, 100, 1, false);
	th_expect_ack(&fixture, 1, 102, ACK);
	th_expect_quiet(&fixture, 1);
	th_close(&fixture);
}

/* More than fits: what is new has been reported when all SACKs are sent, and a probe brings everything. */
static void sack__more_than_fits(void)
{
	static const uint32_t far = 5000;
	static bool reported[5001];
	struct ur_rng rng = {7};
	struct ur_sack s = {0};

	open_kept(&fixture, 0xfff000, 0);
	write_one(&fixture, 0xfff000, 0, true);
	memset(reported, 0, sizeof(reported));
	for (unsigned probe = 0; probe < 2; probe++) {
		struct th_pkt p;
		unsigned n = 0;

		for (unsigned i = 2; i <= far && !probe; i++)
			if (ur_rng_below(&rng, 3))
				th_inject(&fixture, 1, UR_OP_SEND_ONLY, 0xfff000 + i, false, NULL, data, 4);
		if (probe)
			write_one(&fixture, 0xfff000, 0, false);
		for (; th_pull(&fixture, 1, &p); n++) {
			CU_ASSERT_TRUE_FATAL(ur_sack_get(&p.p, &s));
			CU_ASSERT_EQUAL(s.expected, 0xfff001);
			for (unsigned i = 0; i < s.n; i++)
				reported[(s.base + i - 0xfff000u) & 8191 & -(unsigned)(((s.base + i - 0xfff000u) & UR_PSN_MASK) <= far)] |=
					s.bits[i / 64] >> i % 64 & 1;
		}
		CU_ASSERT_EQUAL(n, (far - 1 + UR_SACK_BITS - 1) / UR_SACK_BITS);
		rng.state = 7;
		for (unsigned i = 2; i <= far; i++)
			CU_ASSERT_EQUAL(reported[i], ur_rng_below(&rng, 3) != 0);
		memset(reported, 0, sizeof(reported));
	}
	th_inject(&fixture, 1, UR_OP_SEND_ONLY, 0xfff000 + far + 1, false, NULL, data, 4);
	expect_sack(&fixture, &s, 0xfff000); /* one more, and what was before it */
	CU_ASSERT_EQUAL(s.base, ur_psn_add(0xfff000, far + 2 - UR_SACK_BITS));
	CU_ASSERT_TRUE(ur_sack_has(&s, ur_psn_add(0xfff000, far + 1)));
	th_expect_quiet(&fixture, 1);
	th_close(&fixture);
}

/* It overtakes READ responses, and so acknowledges only what is before those that wait. */
static void sack__before_read_responses(void)
{
	struct th_hdr x;
	struct ur_sack s;
	struct th_pkt p;

	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 0, true);
	x = th_reth(&fixture, 1, 8192, 3 * MTU);
	th_inject(&fixture, 1, UR_OP_READ_REQ, 101, true, &x, NULL, 0);
	write_one(&fixture, 100, 4, false);
	x = th_reth(&fixture, 1, 8192, 2 * MTU);
	th_inject(&fixture, 1, UR_OP_READ_REQ, 106, true, &x, NULL, 0);
	expect_sack(&fixture, &s, 100);
	CU_ASSERT_TRUE(s.expected == 105 && s.base == 105);
	CU_ASSERT_EQUAL(s.bits[0], 6); /* both PSNs of the READ */
	for (uint32_t psn = 101; psn <= 103; psn++) {
		CU_ASSERT_TRUE_FATAL(th_pull(&fixture, 1, &p));
		CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	}
	th_expect_quiet(&fixture, 1);
	th_inject(&fixture, 1, UR_OP_WRITE_ONLY, 105, true, NULL, NULL, 0);
	for (uint32_t psn = 106; psn <= 107; psn++) {
		CU_ASSERT_TRUE_FATAL(th_pull(&fixture, 1, &p));
		if (p.p.bth.opcode == UR_OP_ACK && psn == 106) { /* of what is before them */
			CU_ASSERT_EQUAL(p.p.bth.psn, 105);
			CU_ASSERT_TRUE_FATAL(th_pull(&fixture, 1, &p));
		}
		CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	}
	th_expect_quiet(&fixture, 1);
	th_close(&fixture);
}

/* From an RNR NAK until its packet comes again there are none: the NAK took back what was reported. */
static void sack__not_after_an_rnr_nak(void)
{
	struct ur_sack s;

	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 0, true);
	th_inject(&fixture, 1, UR_OP_SEND_ONLY, 102, false, NULL, data, 4);
	expect_sack(&fixture, &s, 100);
	write_one(&fixture, 100, 3, false);
	write_one(&fixture, 100, 1, false); /* a SACK waits, and then the RNR NAK takes its place */
	th_expect_ack(&fixture, 1, 102, ur_syndrome(UR_AETH_RNR, fixture.opt.min_rnr));
	write_one(&fixture, 100, 4, false);
	write_one(&fixture, 100, 0, false);
	th_expect_ack(&fixture, 1, 101, ACK); /* of the duplicate */
	th_expect_quiet(&fixture, 1);
	CU_ASSERT_EQUAL(th_recv(&fixture, 1, 9, 0, 1024), 0);
	th_inject(&fixture, 1, UR_OP_SEND_ONLY, 102, false, NULL, data, 4);
	th_expect_wc(fixture.n[1].rcq, 9, IBV_WC_SUCCESS);
	th_expect_ack(&fixture, 1, 104, ACK);
	th_close(&fixture);
}

/* Nothing is kept, for there is no room: the peer has to know what to go back to. */
static void sack__not_without_room(void)
{
	open_kept(&fixture, 100, 64);
	write_one(&fixture, 100, 0, true);
	write_one(&fixture, 100, 2, false);
	th_expect_ack(&fixture, 1, 101, SEQ_NAK);
	th_expect_quiet(&fixture, 1);
	th_close(&fixture);
}

/* Without the setting nothing is kept or said. */
static void keep__off(void)
{
	struct th_opt o = th_default;

	o.mtu = IBV_MTU_256;
	th_open(&fixture, &o);
	write_one(&fixture, 100, 0, true);
	write_one(&fixture, 100, 2, true);
	CU_ASSERT_FALSE(fixture.n[1].qp->resp.peer_sacks);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_DROP_OUT_OF_SEQ), 1);
	th_expect_ack(&fixture, 1, 101, SEQ_NAK);
	th_close(&fixture);
}

void ur_suite_reorder(void)
{
	CU_pSuite s = CU_add_suite("reorder", NULL, NULL);

	CU_ADD_TEST(s, keep__executes_in_order_once_the_hole_is_filled);
	CU_ADD_TEST(s, keep__naks_again_when_the_repetition_lacks_it_too);
	CU_ADD_TEST(s, keep__any_order);
	CU_ADD_TEST(s, keep__long_runs_in_parts);
	CU_ADD_TEST(s, keep__refuses_in_turn);
	CU_ADD_TEST(s, keep__rnr);
	CU_ADD_TEST(s, keep__read);
	CU_ADD_TEST(s, keep__more_reads_than_may_be_outstanding);
	CU_ADD_TEST(s, hello__in_the_expected_packet_alone);
	CU_ADD_TEST(s, sack__instead_of_a_nak);
	CU_ADD_TEST(s, sack__not_needed_any_more);
	CU_ADD_TEST(s, sack__more_than_fits);
	CU_ADD_TEST(s, sack__before_read_responses);
	CU_ADD_TEST(s, sack__not_after_an_rnr_nak);
	CU_ADD_TEST(s, sack__not_without_room);
	CU_ADD_TEST(s, keep__off);
}
