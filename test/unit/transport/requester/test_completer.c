/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/requester/completer.c: acknowledgements, NAKs, READ responses and timers. */
#include "tp_harness.h"
#include "transport/requester/completer.h"
#include "transport/state/req_state.h"
#include "wire/rnr.h"

#define RNR(code) ur_syndrome(UR_AETH_RNR, code)
#define TIMEOUT (4096ull << 8) /* of th_default */

static uint64_t count(const struct th *h, unsigned node, enum ur_counter c)
{
	return h->n[node].c.v[c];
}

/* Posts `n` one-packet WRITEs with wr_id = first PSN 100 + i. */
static void post_writes(struct th *h, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		th_post(h, 0, IBV_WR_RDMA_WRITE, 100 + i, 0, 8, 0, IBV_SEND_SIGNALED);
}

static void ack__one_completes_many(void)
{
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < 6; i++)
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 100 + i, 0, 8, 0, i & 1 ? IBV_SEND_SIGNALED : 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 6);
	th_ack(&h, 0, 104, ACK);
	th_expect_wc(h.n[0].scq, 101, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(th_expect_wc(h.n[0].scq, 103, IBV_WC_SUCCESS).qp_num, ur_qp_num(h.n[0].qp));
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 105, ACK);
	th_expect_wc(h.n[0].scq, 105, IBV_WC_SUCCESS);
	th_close(&h);
}

static void ack__signals_all_when_asked(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.sig_all = true;
	th_open(&h, &o);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

static void ack__ghosts_change_nothing(void)
{
	static const uint32_t psns[] = {99, 0, 103, 104, 0x800000, 0xffffff, 100 + 0x7fffff};
	const uint8_t syndromes[] = {ACK, SEQ_NAK, NAK(UR_NAK_REM_ACCESS), RNR(1)};
	static struct th h;

	th_open(&h, &th_default);
	th_ack(&h, 0, 100, ACK); /* nothing was sent at all */
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_GHOST_ACK), 1);
	post_writes(&h, 3);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 3);
	for (unsigned i = 0; i < ur_array_size(psns); i++)
		for (unsigned k = 0; k < ur_array_size(syndromes); k++)
			th_ack(&h, 0, psns[i], syndromes[k]);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_GHOST_ACK), 1 + ur_array_size(psns) * ur_array_size(syndromes));
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	th_ack(&h, 0, 102, ACK);
	for (unsigned i = 0; i < 3; i++)
		th_expect_wc(h.n[0].scq, 100 + i, IBV_WC_SUCCESS);
	th_ack(&h, 0, 102, ACK);
	th_expect_no_wc(h.n[0].scq);
	th_close(&h);
}

static void ack__reserved_syndromes_are_dropped(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_writes(&h, 1);
	th_drain(&h, 0);
	th_ack(&h, 0, 100, 2 << 5);
	th_ack(&h, 0, 100, NAK(9));
	th_inject(&h, 0, UR_OP_ATOMIC_ACK, 100, false, NULL, NULL, 0);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 3);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_ack(&h, 0, 100, 0x80 | 5); /* bit 7 is reserved and ignored; 5 are credits */
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	th_close(&h);
}

static void nak_seq__goes_back_and_acknowledges(void)
{
	static struct th h;
	struct th_pkt p;

	th_open(&h, &th_default);
	post_writes(&h, 5);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 5);
	th_ack(&h, 0, 102, SEQ_NAK);
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 101, IBV_WC_SUCCESS);
	for (uint32_t psn = 102; psn < 105; psn++) {
		CU_ASSERT_TRUE(th_pull(&h, 0, &p));
		CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	}
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PACKET_SEQ_ERR), 1);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_RETRANSMIT), 3);
	th_close(&h);
}

/* A second copy of the NAK finds nothing in flight yet and costs no retry. */
static void nak_seq__duplicate_is_a_ghost(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_writes(&h, 3);
	th_drain(&h, 0);
	th_ack(&h, 0, 101, SEQ_NAK);
	th_ack(&h, 0, 101, SEQ_NAK);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PACKET_SEQ_ERR), 1);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_GHOST_ACK), 1);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_close(&h);
}

static void ack__late_one_overtakes_a_retransmission(void)
{
	static struct th h;
	struct th_pkt p;

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 6 * 1024, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 6);
	th_sleep(&h, TIMEOUT + 5000);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 1);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	th_ack(&h, 0, 103, ACK);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 104);
	CU_ASSERT_EQUAL(memcmp(p.p.data + p.p.payload_off, h.n[0].mem + 4096, 1024), 0);
	th_ack(&h, 0, 105, ACK); /* though 105 has been sent only once */
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

static void nak__fatal_codes(void)
{
	static const struct {
		enum ur_nak_code code;
		enum ibv_wc_status status;
	} t[] = {
		{UR_NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR},
		{UR_NAK_REM_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{UR_NAK_REM_OP, IBV_WC_REM_OP_ERR},
		{UR_NAK_INV_RD, IBV_WC_REM_INV_RD_REQ_ERR},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;

		th_open(&h, &th_default);
		post_writes(&h, 3);
		th_drain(&h, 0);
		th_ack(&h, 0, 101, NAK(t[i].code));
		th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(th_expect_wc(h.n[0].scq, 101, t[i].status).vendor_err, NAK(t[i].code));
		th_expect_wc(h.n[0].scq, 102, IBV_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_REQ_CQE_ERR), 2);
		th_expect_quiet(&h, 0);
		CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
		th_close(&h);
	}
}

/* --- timers --- */

static void timeout__retries_are_counted_exactly(void)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		static struct th h;
		struct th_opt o = th_default;
		const ur_time least = (ur_time)(TH_TIMES_SILENT(retries) * TIMEOUT);
		unsigned sent = 0;
		ur_time begin;

		o.retry_cnt = retries;
		th_open(&h, &o);
		begin = h.now;
		post_writes(&h, 1);
		for (unsigned i = 0; i < 40; i++) {
			sent += th_drain(&h, 0);
			if (ur_wheel_next(h.wheel) == UR_TIME_NEVER)
				break;
			h.now = ur_wheel_next(h.wheel);
			ur_wheel_advance(h.wheel, h.now);
		}
		CU_ASSERT_EQUAL(sent, 1u + retries);
		CU_ASSERT_TRUE(h.now - begin >= least && h.now - begin < least + 20000);
		th_expect_wc(h.n[0].scq, 100, IBV_WC_RETRY_EXC_ERR);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 1u + retries);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_RETRY_EXC), 1);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
		th_close(&h);
	}
}

static void timeout__counter_is_reset_by_progress(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.retry_cnt = 2;
	th_open(&h, &o);
	post_writes(&h, 10);
	for (unsigned i = 0; i < 10; i++) {
		th_drain(&h, 0);
		th_sleep(&h, TIMEOUT + 5000);
		th_drain(&h, 0);
		th_sleep(&h, TIMEOUT + 5000);
		th_drain(&h, 0);
		th_ack(&h, 0, 100 + i, ACK);
		th_expect_wc(h.n[0].scq, 100 + i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

static void timeout__progress_moves_the_deadline(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_writes(&h, 3);
	th_drain(&h, 0);
	for (unsigned i = 0; i < 2; i++) {
		th_sleep(&h, TIMEOUT * 3 / 4);
		th_ack(&h, 0, 100 + i, ACK);
	}
	th_sleep(&h, TIMEOUT * 3 / 4);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 0);
	th_sleep(&h, TIMEOUT / 4 + 5000);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 1);
	th_close(&h);
}

static void timeout__zero_is_infinite(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.timeout = 0;
	th_open(&h, &o);
	post_writes(&h, 1);
	th_drain(&h, 0);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_close(&h);
}

static void rnr__times_of_the_table(void)
{
	CU_ASSERT_EQUAL(ur_rnr_time(0), 655360 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_rnr_time(1), 10 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_rnr_time(12), 640 * UR_NS_PER_US);
	CU_ASSERT_EQUAL(ur_rnr_time(31), 491520 * UR_NS_PER_US);
	for (unsigned i = 2; i < 32; i++)
		CU_ASSERT_TRUE(ur_rnr_time(i) > ur_rnr_time(i - 1));
}

static void rnr__waits_and_ignores_copies(void)
{
	static struct th h;
	struct th_pkt p;

	th_open(&h, &th_default);
	post_writes(&h, 3);
	th_drain(&h, 0);
	th_ack(&h, 0, 101, RNR(20)); /* 10.24 ms, longer than the ACK timeout */
	th_ack(&h, 0, 101, RNR(20));
	th_ack(&h, 0, 101, SEQ_NAK);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_RNR_NAK_RCVD), 1);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_GHOST_ACK), 2);
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	post_writes(&h, 1);
	th_sleep(&h, 10230 * UR_NS_PER_US);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_RNR_WAIT);
	th_sleep(&h, 12 * UR_NS_PER_US);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 0);
	th_close(&h);
}

/* The second copy of a SEND found a receive: its acknowledgement ends the wait, and what was posted meanwhile has to go. */
static void rnr__wait_ended_by_an_ack_hears_doorbells(void)
{
	static struct th h;
	struct th_pkt p;

	th_open(&h, &th_default);
	post_writes(&h, 1);
	th_drain(&h, 0);
	th_ack(&h, 0, 100, RNR(20));
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 7, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 100, ACK);
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	th_close(&h);
}

static void rnr__retries_are_counted_exactly(void)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		static struct th h;
		struct th_opt o = th_default;
		unsigned sent = 0;

		o.rnr_retry = retries;
		o.retry_cnt = 0;
		th_open(&h, &o);
		post_writes(&h, 1);
		while (sent < 50 && ur_qp_state(h.n[0].qp) == IBV_QPS_RTS) {
			sent += th_drain(&h, 0);
			th_ack(&h, 0, 100, RNR(1));
			th_sleep(&h, 20 * UR_NS_PER_US);
		}
		CU_ASSERT_EQUAL(sent, retries == 7 ? 50 : 1u + retries);
		if (retries != 7)
			th_expect_wc(h.n[0].scq, 100, IBV_WC_RNR_RETRY_EXC_ERR);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_RNR_RETRY_EXC), retries != 7);
		th_close(&h);
	}
}

/* --- READ responses --- */

static void post_read(struct th *h, uint64_t wr_id, uint32_t len)
{
	CU_ASSERT_EQUAL(th_post(h, 0, IBV_WR_RDMA_READ, wr_id, 0, len, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(th_drain(h, 0), 1);
}

static void respond(struct th *h, uint8_t opcode, uint32_t psn, uint32_t len)
{
	const struct th_hdr ext = {.syndrome = ACK};

	th_inject(h, 0, opcode, psn, false, &ext, h->n[1].mem + (psn - 100) * 1024, len);
}

static void read__responses_must_fit(void)
{
	/* A READ of 2500 bytes: FIRST 1024, MIDDLE 1024, LAST 452. One response that is wrong, after `good` right ones. */
	static const struct {
		unsigned good;
		uint8_t opcode;
		uint32_t len;
	} t[] = {
		{0, UR_OP_READ_RESP_FIRST, 1023},  {0, UR_OP_READ_RESP_ONLY, 1024},  {0, UR_OP_READ_RESP_LAST, 1024},
		{1, UR_OP_READ_RESP_FIRST, 1024},  {1, UR_OP_READ_RESP_LAST, 1024},  {1, UR_OP_READ_RESP_MIDDLE, 0},
		{1, UR_OP_READ_RESP_MIDDLE, 1025}, {2, UR_OP_READ_RESP_MIDDLE, 452}, {2, UR_OP_READ_RESP_LAST, 453},
		{2, UR_OP_READ_RESP_LAST, 451},    {2, UR_OP_READ_RESP_ONLY, 452},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;

		th_open(&h, &th_default);
		post_read(&h, 1, 2500);
		if (t[i].good > 0)
			respond(&h, UR_OP_READ_RESP_FIRST, 100, 1024);
		if (t[i].good > 1)
			respond(&h, UR_OP_READ_RESP_MIDDLE, 101, 1024);
		respond(&h, t[i].opcode, 100 + t[i].good, t[i].len);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_BAD_RESP_ERR);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
		th_close(&h);
	}
}

static void read__response_to_a_write_is_dropped(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_writes(&h, 2);
	th_drain(&h, 0);
	respond(&h, UR_OP_READ_RESP_ONLY, 100, 8);
	respond(&h, UR_OP_READ_RESP_ONLY, 101, 8);
	respond(&h, UR_OP_READ_RESP_ONLY, 102, 8);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 3);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

static void read__response_acknowledges_earlier_writes(void)
{
	static struct th h;
	struct ibv_wc wc;

	th_open(&h, &th_default);
	post_writes(&h, 1);
	th_drain(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 1000, 0, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	respond(&h, UR_OP_READ_RESP_ONLY, 101, 1000);
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	wc = th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RDMA_READ);
	CU_ASSERT_EQUAL(wc.byte_len, 1000);
	th_close(&h);
}

/* Whatever single response of a READ is lost, the missing part is asked for again, once, and the data is right. */
static void read__any_response_lost(void)
{
	for (unsigned lost = 0; lost < 5; lost++) {
		static struct th h;
		uint64_t mask[2] = {0, 1ull << lost};

		th_open(&h, &th_default);
		h.lose = th_lose_mask;
		h.arg = mask;
		th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 4500, 100, IBV_SEND_SIGNALED);
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 8192, 3000, 8192, IBV_SEND_SIGNALED);
		th_run(&h, UR_NS_PER_S);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 100, 4500), 0);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_IMPLIED_NAK), 1);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 0);
		th_close(&h);
	}
}

static void read__asks_again_from_the_hole(void)
{
	static struct th h;
	struct ur_reth r;
	struct th_pkt p;

	th_open(&h, &th_default);
	post_read(&h, 1, 4000);
	respond(&h, UR_OP_READ_RESP_FIRST, 100, 1024);
	respond(&h, UR_OP_READ_RESP_MIDDLE, 102, 1024);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	ur_reth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &r);
	CU_ASSERT_EQUAL(r.va, (uintptr_t)h.n[1].mem + 1024);
	CU_ASSERT_EQUAL(r.len, 1024);                        /* for what is missing and no more */
	respond(&h, UR_OP_READ_RESP_LAST, 103, 4000 - 3072); /* still of the first request */
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 0);
	respond(&h, UR_OP_READ_RESP_MIDDLE, 102, 1024); /* is here already */
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 1);
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	respond(&h, UR_OP_READ_RESP_ONLY, 101, 1024);
	CU_ASSERT_EQUAL(h.n[0].qp->req.una, 104);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, 4000), 0);
	th_close(&h);
}

static void read__local_memory_gone(void)
{
	static struct th h;
	struct ur_mr *mr;
	struct ibv_sge sge;

	th_open(&h, &th_default);
	ur_mr_reg(h.n[0].tp, h.n[0].pd, h.n[0].mem, 4096, 0, IBV_ACCESS_LOCAL_WRITE, &mr);
	sge = (struct ibv_sge){0, 2048, mr->lkey};
	th_post_sge(&h, 0, IBV_WR_RDMA_READ, 1, &sge, 1, (uintptr_t)h.n[1].mem, h.n[1].mr->rkey, 0);
	th_drain(&h, 0);
	respond(&h, UR_OP_READ_RESP_FIRST, 100, 1024);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	respond(&h, UR_OP_READ_RESP_LAST, 101, 1024);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	th_close(&h);
}

/* A NAK that refuses a READ counts even when responses before it are missing. */
static void read__refused_in_the_middle(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_read(&h, 1, 4000);
	respond(&h, UR_OP_READ_RESP_FIRST, 100, 1024);
	th_ack(&h, 0, 102, NAK(UR_NAK_REM_ACCESS));
	th_expect_wc(h.n[0].scq, 1, IBV_WC_REM_ACCESS_ERR);
	th_close(&h);
}

/* --- exactly one packet lost, whichever it is --- */

static void loss__any_single_packet(void)
{
	for (unsigned node = 0; node < 2; node++)
		for (unsigned lost = 0; lost < 40; lost++) {
			static struct th h;
			struct th_opt o = th_default;
			uint64_t mask[2] = {0};

			mask[node] = 1ull << lost;
			o.psn[0] = 0xfffffb;
			th_open(&h, &o);
			h.lose = th_lose_mask;
			h.arg = mask;
			for (unsigned i = 0; i < 3; i++)
				th_recv(&h, 1, i, 500000 + i * 5000, 5000);
			th_post(&h, 0, IBV_WR_RDMA_WRITE, 0, 0, 5000, 0, IBV_SEND_SIGNALED);
			th_post(&h, 0, IBV_WR_SEND, 1, 10000, 5000, 0, IBV_SEND_SIGNALED);
			th_post(&h, 0, IBV_WR_RDMA_READ, 2, 20000, 5000, 20000, IBV_SEND_SIGNALED);
			th_post(&h, 0, IBV_WR_SEND_WITH_IMM, 3, 30000, 100, 0, IBV_SEND_SIGNALED);
			th_post(&h, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 40000, 2000, 40000, IBV_SEND_SIGNALED);
			th_post(&h, 0, IBV_WR_RDMA_READ, 5, 50000, 10, 50000, IBV_SEND_SIGNALED);
			th_run(&h, UR_NS_PER_S);
			for (unsigned i = 0; i < 6; i++)
				th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
			for (unsigned i = 0; i < 3; i++)
				th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
			th_expect_no_wc(h.n[0].scq);
			th_expect_no_wc(h.n[1].rcq);
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem, h.n[0].mem, 5000), 0);
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 500000, h.n[0].mem + 10000, 5000), 0);
			CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 20000, h.n[1].mem + 20000, 5000), 0);
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 505000, h.n[0].mem + 30000, 100), 0);
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 40000, h.n[0].mem + 40000, 2000), 0);
			CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 50000, h.n[1].mem + 50000, 10), 0);
			th_close(&h);
		}
}

static void loss__nak_and_its_retransmission(void)
{
	static struct th h;
	uint64_t mask[2] = {1ull << 1 | 1ull << 5, 1ull << 1}; /* packet 1 twice, and the node's second answer */

	th_open(&h, &th_default);
	h.lose = th_lose_mask;
	h.arg = mask;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 4000, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, h.n[0].mem, 4000), 0);
	CU_ASSERT_TRUE(count(&h, 0, UR_C_ACK_TIMEOUT) > 0);
	th_close(&h);
}

void ur_suite_completer(void);

void ur_suite_completer(void)
{
	CU_pSuite s = CU_add_suite("completer", NULL, NULL);

	CU_ADD_TEST(s, ack__one_completes_many);
	CU_ADD_TEST(s, ack__signals_all_when_asked);
	CU_ADD_TEST(s, ack__ghosts_change_nothing);
	CU_ADD_TEST(s, ack__reserved_syndromes_are_dropped);
	CU_ADD_TEST(s, nak_seq__goes_back_and_acknowledges);
	CU_ADD_TEST(s, nak_seq__duplicate_is_a_ghost);
	CU_ADD_TEST(s, ack__late_one_overtakes_a_retransmission);
	CU_ADD_TEST(s, nak__fatal_codes);
	CU_ADD_TEST(s, timeout__retries_are_counted_exactly);
	CU_ADD_TEST(s, timeout__counter_is_reset_by_progress);
	CU_ADD_TEST(s, timeout__progress_moves_the_deadline);
	CU_ADD_TEST(s, timeout__zero_is_infinite);
	CU_ADD_TEST(s, rnr__times_of_the_table);
	CU_ADD_TEST(s, rnr__waits_and_ignores_copies);
	CU_ADD_TEST(s, rnr__wait_ended_by_an_ack_hears_doorbells);
	CU_ADD_TEST(s, rnr__retries_are_counted_exactly);
	CU_ADD_TEST(s, read__responses_must_fit);
	CU_ADD_TEST(s, read__response_to_a_write_is_dropped);
	CU_ADD_TEST(s, read__response_acknowledges_earlier_writes);
	CU_ADD_TEST(s, read__any_response_lost);
	CU_ADD_TEST(s, read__asks_again_from_the_hole);
	CU_ADD_TEST(s, read__local_memory_gone);
	CU_ADD_TEST(s, read__refused_in_the_middle);
	CU_ADD_TEST(s, loss__any_single_packet);
	CU_ADD_TEST(s, loss__nak_and_its_retransmission);
}
