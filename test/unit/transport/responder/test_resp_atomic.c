/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/responder/resp_atomic.c: atomics and ATOMIC WRITE. Node 1 is the responder; its peer sends from PSN 100. */
#include "calloc.h"
#include "tp_harness.h"

static const struct th_opt *with_atomics(uint8_t max_rd)
{
	static struct th_opt o;

	o = th_default;
	o.access = TH_ALL_ACCESS | IBV_ACCESS_REMOTE_ATOMIC;
	o.max_rd = max_rd;
	return &o;
}

static uint64_t word(const struct th *h, uint32_t off)
{
	uint64_t v;

	memcpy(&v, h->n[1].mem + off, sizeof(v));
	return v;
}

static void set_word(struct th *h, uint32_t off, uint64_t v)
{
	memcpy(h->n[1].mem + off, &v, sizeof(v));
}

static void inject_atomic(struct th *h, uint8_t opcode, uint32_t psn, uint32_t off, uint64_t swap_add, uint64_t compare)
{
	struct th_hdr ext = th_reth(h, 1, off, 8);

	ext.swap_add = swap_add;
	ext.compare = compare;
	th_inject(h, 1, opcode, psn, true, &ext, NULL, 0);
}

static void expect_answer(struct th *h, uint32_t psn, uint32_t msn, uint64_t original)
{
	struct th_pkt p;
	struct ur_aeth a;
	const uint8_t *ext;

	if (!th_pull(h, 1, &p)) {
		CU_FAIL("no answer");
		return;
	}
	ext = p.p.data + p.p.bth_off + UR_BTH_LEN;
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_ATOMIC_ACK);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn & UR_PSN_MASK);
	CU_ASSERT_EQUAL(p.p.payload_len, 0);
	ur_aeth_get(ext, &a);
	CU_ASSERT_EQUAL(a.syndrome, ACK);
	CU_ASSERT_EQUAL(a.msn, msn);
	CU_ASSERT_EQUAL(ur_get64(ext + 4), original);
}

static void expect_read_response(struct th *h, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct th_pkt p;

	CU_ASSERT_TRUE_FATAL(th_pull(h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, opcode);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn & UR_PSN_MASK);
	CU_ASSERT_EQUAL(p.p.payload_len, len);
}

static void atomic__results(void)
{
	static const struct {
		uint8_t opcode;
		uint64_t was, swap_add, compare, becomes;
	} t[] = {
		{UR_OP_FETCH_ADD, 5, 7, 0, 12},
		{UR_OP_FETCH_ADD, UINT64_MAX, 2, 0, 1},
		{UR_OP_FETCH_ADD, 0x0102030405060708, 0, 99, 0x0102030405060708},
		{UR_OP_FETCH_ADD, 10, (uint64_t)-3, 0, 7},
		{UR_OP_CMP_SWAP, 5, 7, 5, 7},
		{UR_OP_CMP_SWAP, 5, 7, 6, 5},
		{UR_OP_CMP_SWAP, 0x0102030405060708, 0x1122334455667788, 0x0102030405060708, 0x1122334455667788},
		{UR_OP_CMP_SWAP, 0, 0, 0, 0},
	};
	static struct th h;

	th_open(&h, with_atomics(4));
	for (uint32_t i = 0; i < ur_array_size(t); i++) {
		set_word(&h, 64, t[i].was);
		inject_atomic(&h, t[i].opcode, 100 + i, 64, t[i].swap_add, t[i].compare);
		CU_ASSERT_EQUAL(word(&h, 64), t[i].becomes);
		expect_answer(&h, 100 + i, i + 1, t[i].was);
	}
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_ATOMIC], ur_array_size(t));
	th_expect_quiet(&h, 1);
	th_close(&h);
}

/* Of ATOMIC WRITE the payload, which is what `len` says. */
enum fault { NONE, QP_RIGHT, MR_RIGHT, KEY, RANGE, END, VA_1, VA_4, HOST_4, PD, RESOURCES };

static void refusals__table(void)
{
	static const struct {
		enum fault fault;
		int nak, event;
	} t[] = {
		{NONE, -1, -1},
		{QP_RIGHT, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{MR_RIGHT, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{KEY, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{RANGE, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{END, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{VA_1, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{VA_4, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{HOST_4, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
		{PD, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{RESOURCES, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
	};
	static const uint8_t opcodes[] = {UR_OP_FETCH_ADD, UR_OP_CMP_SWAP, UR_OP_ATOMIC_WRITE};
	static const uint64_t payload = 0x1234567812345678;

	for (unsigned i = 0; i < ur_array_size(t) * ur_array_size(opcodes); i++) {
		uint8_t opcode = opcodes[i % ur_array_size(opcodes)];
		enum fault f = t[i / ur_array_size(opcodes)].fault;
		bool write = opcode == UR_OP_ATOMIC_WRITE;
		int right = write ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_ATOMIC;
		struct th_opt o = *with_atomics(f == RESOURCES ? 0 : 4);
		int nak = t[i / ur_array_size(opcodes)].nak, event = t[i / ur_array_size(opcodes)].event;
		static struct th h;
		struct ur_mr *mr;
		struct ur_pd *pd;
		struct th_hdr ext = {.va = 0x10000, .len = 8, .swap_add = 1, .compare = 7};
		uint64_t was;

		o.access &= f == QP_RIGHT ? ~right : ~0;
		th_open(&h, &o);
		CU_ASSERT_FATAL(ur_pd_create(h.n[1].tp, &pd) == 0);
		CU_ASSERT_FATAL(ur_mr_reg(h.n[1].tp, f == PD ? pd : h.n[1].pd, h.n[1].mem + (f == HOST_4 ? 4 : 0), 64, 0x10000,
					  TH_MR_ACCESS & (f == MR_RIGHT ? ~right : ~0), &mr) == 0);
		set_word(&h, 0, 7);
		was = word(&h, 0);
		ext.rkey = mr->rkey ^ (f == KEY);
		ext.va += f == RANGE ? 64 : f == VA_1 ? 1 : f == VA_4 ? 4 : 0;
		ext.va = f == END ? UINT64_MAX - 7 : ext.va;
		th_inject(&h, 1, opcode, 100, true, &ext, &payload, write ? 8 : 0);
		if (nak >= 0) {
			CU_ASSERT_EQUAL(word(&h, 0), was);
			th_expect_refused(&h, 1, 100, (enum ur_nak_code)nak, event);
		} else {
			CU_ASSERT_EQUAL(word(&h, 0), write ? payload : opcode == UR_OP_FETCH_ADD ? 8 : 1);
			CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
			CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
		}
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
		th_close(&h);
	}
}

static void atomic_write__lengths(void)
{
	static const struct {
		uint32_t payload, dma;
		bool ok;
	} t[] = {{8, 8, true}, {0, 8, false}, {4, 8, false}, {12, 8, false}, {8, 7, false}, {8, 16, false}, {16, 16, false}, {0, 0, false}};
	static const uint8_t data[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_hdr ext;

		th_open(&h, with_atomics(4));
		set_word(&h, 0, 0);
		ext = th_reth(&h, 1, 0, t[i].dma);
		th_inject(&h, 1, UR_OP_ATOMIC_WRITE, 100, true, &ext, data, t[i].payload);
		if (t[i].ok) {
			/* The bytes are those of the packet: no byte order. */
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem, data, 8), 0);
			expect_read_response(&h, UR_OP_READ_RESP_ONLY, 100, 0);
		} else {
			CU_ASSERT_EQUAL(word(&h, 0), 0);
			th_expect_refused(&h, 1, 100, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		}
		th_close(&h);
	}
}

/* The result of the first time, and memory that is left alone. */
static void duplicate__answered_from_the_table(void)
{
	static struct th h;

	th_open(&h, with_atomics(4));
	set_word(&h, 0, 1000);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 10, 0);
	inject_atomic(&h, UR_OP_CMP_SWAP, 102, 0, 5, 1011);
	expect_answer(&h, 100, 1, 1000);
	expect_answer(&h, 101, 2, 1001);
	expect_answer(&h, 102, 3, 1011);
	for (unsigned k = 0; k < 3; k++) {
		inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 10, 0);
		expect_answer(&h, 101, 2, 1001);
		th_expect_quiet(&h, 1);
	}
	/* From the first one on, as after a timeout. */
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 10, 0);
	inject_atomic(&h, UR_OP_CMP_SWAP, 102, 0, 5, 1011);
	inject_atomic(&h, UR_OP_FETCH_ADD, 103, 0, 1, 0);
	expect_answer(&h, 100, 1, 1000);
	expect_answer(&h, 101, 2, 1001);
	expect_answer(&h, 102, 3, 1011);
	expect_answer(&h, 103, 4, 5);
	CU_ASSERT_EQUAL(word(&h, 0), 6);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DUPLICATE], 6);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_RX_ATOMIC], 4);
	th_close(&h);
}

/* The MR may be gone: the result is remembered, not the memory. */
static void duplicate__needs_no_memory(void)
{
	static struct th h;
	struct th_hdr ext = {.va = 0, .swap_add = 1};
	struct ur_mr *mr;

	th_open(&h, with_atomics(4));
	set_word(&h, 0, 41);
	CU_ASSERT_FATAL(ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 64, 0, TH_MR_ACCESS, &mr) == 0);
	ext.rkey = mr->rkey;
	th_inject(&h, 1, UR_OP_FETCH_ADD, 100, true, &ext, NULL, 0);
	expect_answer(&h, 100, 1, 41);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_inject(&h, 1, UR_OP_FETCH_ADD, 100, true, &ext, NULL, 0);
	expect_answer(&h, 100, 1, 41);
	CU_ASSERT_EQUAL(word(&h, 0), 42);
	th_close(&h);
}

/* What is no duplicate of what was executed at that PSN, and what has been forgotten, is dropped. */
static void duplicate__others_are_dropped(void)
{
	static struct th h;
	struct th_hdr ext;

	th_open(&h, with_atomics(2));
	set_word(&h, 0, 0);
	for (uint32_t i = 0; i < 3; i++) {
		inject_atomic(&h, UR_OP_FETCH_ADD, 100 + i, 0, 1, 0);
		expect_answer(&h, 100 + i, i + 1, i);
	}
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0); /* two are remembered */
	inject_atomic(&h, UR_OP_CMP_SWAP, 102, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 102, 8, 1, 0);
	ext = th_reth(&h, 1, 0, 8);
	th_inject(&h, 1, UR_OP_READ_REQ, 102, true, &ext, NULL, 0);
	ext.len = 0;
	th_inject(&h, 1, UR_OP_READ_REQ, 102, true, &ext, NULL, 0);
	ext.rkey ^= 1;
	th_inject(&h, 1, UR_OP_FETCH_ADD, 102, true, &ext, NULL, 0);
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(word(&h, 0), 3);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DUPLICATE], 6);
	th_close(&h);
}

static void duplicate__atomic_write_is_not_written_again(void)
{
	static const uint64_t first = 1;
	static struct th h;
	struct th_hdr ext;

	th_open(&h, with_atomics(2));
	ext = th_reth(&h, 1, 0, 8);
	th_inject(&h, 1, UR_OP_ATOMIC_WRITE, 100, true, &ext, &first, 8);
	expect_read_response(&h, UR_OP_READ_RESP_ONLY, 100, 0);
	set_word(&h, 0, 2); /* a newer value, written by this side */
	th_inject(&h, 1, UR_OP_ATOMIC_WRITE, 100, true, &ext, &first, 8);
	expect_read_response(&h, UR_OP_READ_RESP_ONLY, 100, 0);
	CU_ASSERT_EQUAL(word(&h, 0), 2);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

/* Answers leave in the order of their requests, and acknowledgements behind them. */
static void order__among_reads_and_acks(void)
{
	static struct th h;
	struct th_opt o = *with_atomics(4);
	struct th_hdr ext;

	o.psn[0] = 0xfffffe;
	th_open(&h, &o);
	set_word(&h, 0, 9);
	ext = th_reth(&h, 1, 4096, 3000);
	th_inject(&h, 1, UR_OP_READ_REQ, 0xfffffe, true, &ext, NULL, 0); /* to 0 */
	inject_atomic(&h, UR_OP_FETCH_ADD, 1, 0, 1, 0);
	th_inject(&h, 1, UR_OP_READ_REQ, 2, true, &ext, NULL, 0); /* to 4 */
	inject_atomic(&h, UR_OP_FETCH_ADD, 5, 0, 1, 0);
	ext = th_reth(&h, 1, 8192, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 6, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(word(&h, 0), 11);
	expect_read_response(&h, UR_OP_READ_RESP_FIRST, 0xfffffe, 1024);
	expect_read_response(&h, UR_OP_READ_RESP_MIDDLE, 0xffffff, 1024);
	expect_read_response(&h, UR_OP_READ_RESP_LAST, 0, 952);
	expect_answer(&h, 1, 2, 9);
	expect_read_response(&h, UR_OP_READ_RESP_FIRST, 2, 1024);
	expect_read_response(&h, UR_OP_READ_RESP_MIDDLE, 3, 1024);
	expect_read_response(&h, UR_OP_READ_RESP_LAST, 4, 952);
	expect_answer(&h, 5, 4, 10);
	th_expect_ack(&h, 1, 6, ACK);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

/* One more than max_dest_rd_atomic, while none has been answered. What was accepted is answered before the NAK. */
static void resources__exhausted(void)
{
	static struct th h;

	th_open(&h, with_atomics(2));
	set_word(&h, 0, 1);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 102, 0, 1, 0);
	CU_ASSERT_EQUAL(word(&h, 0), 3);
	expect_answer(&h, 100, 1, 1);
	expect_answer(&h, 101, 2, 2);
	th_expect_refused(&h, 1, 102, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
	th_close(&h);
}

/* Answers to be repeated give way to new requests. */
static void resources__replays_give_way(void)
{
	static struct th h;

	th_open(&h, with_atomics(2));
	set_word(&h, 0, 1);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 1, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 2);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 102, 0, 1, 0);
	expect_answer(&h, 101, 2, 2);
	expect_answer(&h, 102, 3, 3);
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
	th_close(&h);
}

/* A duplicate of one that waits for its first answer is not such a repetition. */
static void resources__first_answers_do_not(void)
{
	static struct th h;

	th_open(&h, with_atomics(2));
	set_word(&h, 0, 1);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	inject_atomic(&h, UR_OP_FETCH_ADD, 102, 0, 1, 0);
	CU_ASSERT_EQUAL(word(&h, 0), 3);
	expect_answer(&h, 100, 1, 1);
	expect_answer(&h, 101, 2, 2);
	th_expect_refused(&h, 1, 102, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
	th_close(&h);
}

/* What finds no memory for the resource table is a lost packet: it has not been executed, and comes again. */
static void resources__no_memory_for_them(void)
{
	static struct th h;
	struct th_hdr ext;

	th_open(&h, with_atomics(4));
	ext = th_reth(&h, 1, 64, 8);
	set_word(&h, 0, 1);
	no_calloc = true;
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, true, &ext, NULL, 0);
	no_calloc = false;
	CU_ASSERT_EQUAL(word(&h, 0), 1);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DROP_NO_MEMORY], 2);
	th_expect_quiet(&h, 1);
	inject_atomic(&h, UR_OP_FETCH_ADD, 100, 0, 1, 0);
	th_inject(&h, 1, UR_OP_READ_REQ, 101, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(word(&h, 0), 2);
	expect_answer(&h, 100, 1, 1);
	expect_read_response(&h, UR_OP_READ_RESP_ONLY, 101, 8);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

static void order__atomic_inside_a_message_is_refused(void)
{
	static uint8_t data[1024];
	static struct th h;
	struct th_hdr ext;

	th_open(&h, with_atomics(4));
	ext = th_reth(&h, 1, 0, 2048);
	th_inject(&h, 1, UR_OP_WRITE_FIRST, 100, false, &ext, data, 1024);
	inject_atomic(&h, UR_OP_FETCH_ADD, 101, 0, 1, 0);
	th_expect_refused(&h, 1, 101, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
	th_close(&h);
}

void ur_suite_resp_atomic(void);

void ur_suite_resp_atomic(void)
{
	CU_pSuite s = CU_add_suite("resp_atomic", NULL, NULL);

	CU_ADD_TEST(s, atomic__results);
	CU_ADD_TEST(s, refusals__table);
	CU_ADD_TEST(s, atomic_write__lengths);
	CU_ADD_TEST(s, duplicate__answered_from_the_table);
	CU_ADD_TEST(s, duplicate__needs_no_memory);
	CU_ADD_TEST(s, duplicate__others_are_dropped);
	CU_ADD_TEST(s, duplicate__atomic_write_is_not_written_again);
	CU_ADD_TEST(s, order__among_reads_and_acks);
	CU_ADD_TEST(s, resources__exhausted);
	CU_ADD_TEST(s, resources__replays_give_way);
	CU_ADD_TEST(s, resources__first_answers_do_not);
	CU_ADD_TEST(s, resources__no_memory_for_them);
	CU_ADD_TEST(s, order__atomic_inside_a_message_is_refused);
}
