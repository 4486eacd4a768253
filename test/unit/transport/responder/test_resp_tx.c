/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/responder/resp_tx.c: READ responses, their duplicates and their order with acknowledgements. Node 1 is the responder. */
#include "tp_harness.h"
#include "wire/sack.h"

static const uint8_t data[1024] = {1, 2, 3};

static uint64_t count(const struct th *h, enum ur_counter c)
{
	return h->n[1].c.v[c];
}

static void expect_response(struct th *h, uint8_t opcode, uint32_t psn, const void *want, uint32_t len)
{
	struct th_pkt p;

	if (!th_pull(h, 1, &p)) {
		CU_FAIL("no response");
		return;
	}
	CU_ASSERT_EQUAL(p.p.bth.opcode, opcode);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn & UR_PSN_MASK);
	CU_ASSERT_EQUAL(p.p.payload_len, len);
	CU_ASSERT_EQUAL(memcmp(p.p.data + p.p.payload_off, want, len), 0);
}

static void read__responses_and_msn(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_hdr ext;
	struct th_pkt p;
	struct ur_aeth a;

	o.psn[0] = 0xffffff;
	th_open(&h, &o);
	ext = th_reth(&h, 1, 3, 2500);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 0xffffff, false, NULL, NULL, 0);
	th_inject(&h, 1, UR_OP_READ_REQ, 0, true, &ext, NULL, 0);
	ext = th_reth(&h, 1, 0, 0);
	th_inject(&h, 1, UR_OP_READ_REQ, 3, true, &ext, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 4, true, NULL, NULL, 0);
	CU_ASSERT_TRUE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_FIRST);
	ur_aeth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	CU_ASSERT_EQUAL(a.syndrome, ACK);
	CU_ASSERT_EQUAL(a.msn, 2);
	expect_response(&h, UR_OP_READ_RESP_MIDDLE, 1, h.n[1].mem + 3 + 1024, 1024);
	expect_response(&h, UR_OP_READ_RESP_LAST, 2, h.n[1].mem + 3 + 2048, 452);
	expect_response(&h, UR_OP_READ_RESP_ONLY, 3, data, 0);
	th_expect_ack(&h, 1, 4, ACK); /* the acknowledgement waits its turn */
	CU_ASSERT_EQUAL(h.n[1].qp->resp.msn, 4);
	th_close(&h);
}

/* A READ request with these bits in the place of hello. */
static void read_marked(struct th *h, uint32_t psn, uint32_t len, uint8_t bits)
{
	const struct th_hdr ext = th_reth(h, 1, 0, len);
	struct th_pkt p;

	th_make(h, 1, &p, UR_OP_READ_REQ, psn, true, &ext, NULL, 0);
	ur_copy_put(p.p.data + p.p.bth_off, bits);
	th_feed(h, 1, &p);
}

static void read_copy(struct th *h, uint32_t psn, uint32_t len)
{
	read_marked(h, psn, len, UR_COPY);
}

/* It is answered when the first one got lost, and else dropped; a duplicate that is no copy is answered again. */
static void read__copy(void)
{
	static struct th h;
	struct th_hdr ext;

	th_open(&h, &th_default);
	read_copy(&h, 100, 2000);
	expect_response(&h, UR_OP_READ_RESP_FIRST, 100, h.n[1].mem, 1024);
	read_copy(&h, 100, 2000);
	expect_response(&h, UR_OP_READ_RESP_LAST, 101, h.n[1].mem + 1024, 976);
	read_copy(&h, 100, 2000);
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(count(&h, UR_C_DUPLICATE), 2);
	CU_ASSERT_EQUAL(count(&h, UR_C_RX_READ), 1);
	ext = th_reth(&h, 1, 0, 2000);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	expect_response(&h, UR_OP_READ_RESP_FIRST, 100, h.n[1].mem, 1024);
	expect_response(&h, UR_OP_READ_RESP_LAST, 101, h.n[1].mem + 1024, 976);
	th_close(&h);
}

/* A peer went back and asks in smaller pieces; what it had sent before comes late, and is more than may be outstanding. */
static void read__late_ones_of_other_pieces(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_pkt p;

	for (unsigned late = 0; late < 2; late++) {
		o.max_rd = 2;
		th_open(&h, &o);
		read_marked(&h, 100, 2048, 0);
		read_marked(&h, 102, 2048, 0);
		if (late)
			read_marked(&h, 100, 4096, 0);
		read_marked(&h, 104, 4096, 0);
		CU_ASSERT_EQUAL(ur_qp_st(h.n[1].qp), IBV_QPS_RTS); /* answers first */
		for (unsigned n = 0; n < 4; n++)
			CU_ASSERT_TRUE(th_pull(&h, 1, &p) && p.p.bth.psn == 100 + n);
		CU_ASSERT_TRUE(th_pull(&h, 1, &p) && p.p.bth.opcode == UR_OP_ACK && p.p.bth.psn == 104);
		CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_REMOTE_INV], !late);
		CU_ASSERT_EQUAL(ur_qp_st(h.n[1].qp), late ? IBV_QPS_RTS : IBV_QPS_ERR);
		if (late) {
			read_marked(&h, 104, 2048, 0); /* it comes again */
			expect_response(&h, UR_OP_READ_RESP_FIRST, 104, h.n[1].mem, 1024);
		}
		th_close(&h);
	}
}

/* Of the copies of a probe one is answered, of the next probe one again; also where the READ has not been executed before. */
static void read__probes(void)
{
	static const uint8_t turns[] = {1, 1, 3, 3, 4, 4, 4, 3};
	static const bool answered[] = {true, false, true, false, true, false, false, true};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(turns); i++) {
		read_marked(&h, 100, 100, UR_TURN | turns[i]);
		if (answered[i])
			expect_response(&h, UR_OP_READ_RESP_ONLY, 100, h.n[1].mem, 100);
		th_expect_quiet(&h, 1);
	}
	th_close(&h);
}

static void read__zero_copy_holds_the_region(void)
{
	static struct th h;
	struct th_hdr ext;
	struct ur_pkt *p;

	th_open(&h, &th_default);
	ext = th_reth(&h, 1, 0, 1000);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	CU_ASSERT_FATAL(ur_tp_tx(h.n[1].tp, &p, 1, h.now) == 1);
	CU_ASSERT_EQUAL(p->nseg, 1);
	CU_ASSERT_PTR_EQUAL(p->seg[0].data, h.n[1].mem);
	CU_ASSERT_EQUAL(atomic_load(&h.n[1].mr->frames.n), 1);
	h.n[1].tp->c.free(h.n[1].tp->c.ctx, &p, 1);
	th_close(&h);
}

/* A NIC that reads the memory by itself gets a copy of what was asked for again, of the whole or of a part. */
static void read__again_is_marked(void)
{
	static const struct {
		uint32_t psn, off, len; /* of the second request */
		unsigned pkts;
	} t[] = {{100, 0, 3000, 3}, {101, 1024, 1024, 1}, {102, 2048, 952, 1}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct ur_pkt *p[8];
		struct th_hdr ext;

		th_open(&h, &th_default);
		ext = th_reth(&h, 1, 0, 3000);
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		CU_ASSERT_EQUAL_FATAL(ur_tp_tx(h.n[1].tp, p, 8, h.now), 3);
		for (unsigned k = 0; k < 3; k++)
			CU_ASSERT_FALSE(p[k]->flags & UR_PKT_AGAIN);
		h.n[1].tp->c.free(h.n[1].tp->c.ctx, p, 3);
		ext = th_reth(&h, 1, t[i].off, t[i].len);
		th_inject(&h, 1, UR_OP_READ_REQ, t[i].psn, true, &ext, NULL, 0);
		CU_ASSERT_EQUAL_FATAL(ur_tp_tx(h.n[1].tp, p, 8, h.now), t[i].pkts);
		for (unsigned k = 0; k < t[i].pkts; k++)
			CU_ASSERT_TRUE(p[k]->flags & UR_PKT_AGAIN);
		h.n[1].tp->c.free(h.n[1].tp->c.ctx, p, t[i].pkts);
		ext = th_reth(&h, 1, 0, 100);
		th_inject(&h, 1, UR_OP_READ_REQ, 103, true, &ext, NULL, 0);
		CU_ASSERT_EQUAL_FATAL(ur_tp_tx(h.n[1].tp, p, 8, h.now), 1);
		CU_ASSERT_FALSE(p[0]->flags & UR_PKT_AGAIN);
		h.n[1].tp->c.free(h.n[1].tp->c.ctx, p, 1);
		th_close(&h);
	}
}

static void read__more_than_resources(void)
{
	for (uint8_t limit = 0; limit <= 3; limit++) {
		static struct th h;
		struct th_opt o = th_default;
		struct th_hdr ext;

		o.max_rd = limit;
		th_open(&h, &o);
		ext = th_reth(&h, 1, 0, 10);
		for (uint32_t i = 0; i <= limit; i++)
			th_inject(&h, 1, UR_OP_READ_REQ, 100 + i, true, &ext, NULL, 0);
		for (uint32_t i = 0; i < limit; i++)
			expect_response(&h, UR_OP_READ_RESP_ONLY, 100 + i, h.n[1].mem, 10);
		th_expect_refused(&h, 1, 100 + limit, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		th_close(&h);
	}
}

static void read__duplicates_within_the_original(void)
{
	/* The original: PSN 100, 3500 bytes, 4 packets. Offsets and lengths of what is asked again. */
	static const struct {
		uint32_t psn, off, len;
		unsigned packets;
		bool bad_key;
	} t[] = {
		{100, 0, 3500, 4, false},    {101, 1024, 2476, 3, false}, {103, 3072, 428, 1, false},  {101, 1024, 1024, 1, false},
		{102, 2048, 1024, 1, false}, {101, 1000, 1024, 0, false}, {101, 1024, 2477, 0, false}, {100, 0, 3501, 0, false},
		{100, 0, 3500, 0, true},     {99, 0, 3500, 0, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_hdr ext;

		th_open(&h, &th_default);
		ext = th_reth(&h, 1, 0, 3500);
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		CU_ASSERT_EQUAL(th_drain(&h, 1), 4);
		ext = th_reth(&h, 1, t[i].off, t[i].len);
		ext.rkey ^= t[i].bad_key;
		th_inject(&h, 1, UR_OP_READ_REQ, t[i].psn, true, &ext, NULL, 0);
		CU_ASSERT_EQUAL(count(&h, UR_C_DUPLICATE), 1);
		if (t[i].packets == 1)
			expect_response(&h, UR_OP_READ_RESP_ONLY, t[i].psn, h.n[1].mem + t[i].off, t[i].len);
		else if (t[i].packets)
			expect_response(&h, UR_OP_READ_RESP_FIRST, t[i].psn, h.n[1].mem + t[i].off, 1024);
		CU_ASSERT_EQUAL(th_drain(&h, 1), t[i].packets ? t[i].packets - 1 : 0);
		th_close(&h);
	}
}

/* A replay that nobody waits for any more gives way to a new READ. */
static void read__replay_gives_way(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_hdr ext;

	o.max_rd = 1;
	th_open(&h, &o);
	ext = th_reth(&h, 1, 0, 10);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	th_inject(&h, 1, UR_OP_READ_REQ, 101, true, &ext, NULL, 0);
	expect_response(&h, UR_OP_READ_RESP_ONLY, 101, h.n[1].mem, 10);
	th_expect_quiet(&h, 1);
	/* PSN 100 is forgotten now. */
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
	th_close(&h);
}

/* A duplicate of what was never answered, or not in full, is the first answer still: it does not give way. */
static void read__unanswered_does_not_give_way(void)
{
	for (unsigned sent = 0; sent < 3; sent++) {
		static struct th h;
		struct th_opt o = th_default;
		struct th_hdr ext;

		o.max_rd = 1;
		th_open(&h, &o);
		ext = th_reth(&h, 1, 0, 2500);
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		for (unsigned i = 0; i < sent; i++)
			expect_response(&h, i ? UR_OP_READ_RESP_MIDDLE : UR_OP_READ_RESP_FIRST, 100 + i, h.n[1].mem + 1024 * i, 1024);
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		th_inject(&h, 1, UR_OP_READ_REQ, 103, true, &ext, NULL, 0);
		expect_response(&h, UR_OP_READ_RESP_FIRST, 100, h.n[1].mem, 1024);
		expect_response(&h, UR_OP_READ_RESP_MIDDLE, 101, h.n[1].mem + 1024, 1024);
		expect_response(&h, UR_OP_READ_RESP_LAST, 102, h.n[1].mem + 2048, 452);
		th_expect_refused(&h, 1, 103, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		th_close(&h);
	}
}

/* Nor is it a stray duplicate when its memory has gone, in whole or in part. */
static void read__unanswered_mr_gone(void)
{
	for (unsigned part = 0; part < 2; part++) {
		static struct th h;
		struct ur_mr *mr;
		struct th_hdr ext;

		th_open(&h, &th_default);
		ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 8192, 0, TH_ALL_ACCESS, &mr);
		ext = (struct th_hdr){.rkey = mr->rkey, .len = 3000};
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		ext.len = part ? 1024 : 3000;
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		th_expect_refused(&h, 1, 100, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		th_close(&h);
	}
}

static void read__mr_gone(void)
{
	for (unsigned replay = 0; replay < 2; replay++) {
		static struct th h;
		struct ur_mr *mr;
		struct th_hdr ext;

		th_open(&h, &th_default);
		ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 8192, 0, TH_ALL_ACCESS, &mr);
		ext = (struct th_hdr){.rkey = mr->rkey, .len = 3000};
		th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		expect_response(&h, UR_OP_READ_RESP_FIRST, 100, h.n[1].mem, 1024);
		if (replay) {
			CU_ASSERT_EQUAL(th_drain(&h, 1), 2);
			th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
		}
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		if (replay) {
			/* Whoever really waits learns it, and the connection does not suffer from a stray duplicate. */
			th_expect_ack(&h, 1, 100, NAK(UR_NAK_REM_ACCESS));
			CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
		} else {
			th_expect_refused(&h, 1, 101, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		}
		th_close(&h);
	}
}

static void refusal__waits_for_earlier_reads(void)
{
	static struct th h;
	struct th_hdr ext;

	th_open(&h, &th_default);
	ext = th_reth(&h, 1, 0, 2000);
	th_recv(&h, 1, 1, 0, 64);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	th_inject(&h, 1, UR_OP_SEND_MIDDLE, 102, true, NULL, data, 1024);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 102, true, NULL, data, 8);
	CU_ASSERT_EQUAL(count(&h, UR_C_DROP_QP_STATE), 1);
	expect_response(&h, UR_OP_READ_RESP_FIRST, 100, h.n[1].mem, 1024);
	expect_response(&h, UR_OP_READ_RESP_LAST, 101, h.n[1].mem + 1024, 976);
	th_expect_refused(&h, 1, 102, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_WR_FLUSH_ERR);
	th_close(&h);
}

void ur_suite_resp_tx(void);

void ur_suite_resp_tx(void)
{
	CU_pSuite s = CU_add_suite("resp_tx", NULL, NULL);

	CU_ADD_TEST(s, read__responses_and_msn);
	CU_ADD_TEST(s, read__copy);
	CU_ADD_TEST(s, read__late_ones_of_other_pieces);
	CU_ADD_TEST(s, read__probes);
	CU_ADD_TEST(s, read__zero_copy_holds_the_region);
	CU_ADD_TEST(s, read__more_than_resources);
	CU_ADD_TEST(s, read__again_is_marked);
	CU_ADD_TEST(s, read__duplicates_within_the_original);
	CU_ADD_TEST(s, read__replay_gives_way);
	CU_ADD_TEST(s, read__unanswered_does_not_give_way);
	CU_ADD_TEST(s, read__unanswered_mr_gone);
	CU_ADD_TEST(s, read__mr_gone);
	CU_ADD_TEST(s, refusal__waits_for_earlier_reads);
}
