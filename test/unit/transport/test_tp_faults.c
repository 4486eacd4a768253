/* SPDX-License-Identifier: BSD-3-Clause */
/* Named faults, one test each: what goes wrong on the wire or at the peer, and what the two ends make of it. */
#include "losses.h"
#include "transport/state/req_state.h"

#define TIMEOUT (4096ull << 8) /* of th_default */

/* A request under `losses` succeeds without the ACK timer, soon, and without a retry too many. */
static void expect_repaired(struct loss *losses, enum ibv_wr_opcode op, uint32_t len, ur_time within, unsigned probes)
{
	static struct th h;
	ur_time begin;

	open_warm(&h, &th_default, losses);
	begin = h.now;
	th_post(&h, 0, op, 1, 0, len, 500000, IBV_SEND_SIGNALED);
	while (h.n[0].qp->req.una != h.n[0].qp->req.max || h.now == begin)
		th_run(&h, 10 * US);
	CU_ASSERT_TRUE(h.now - begin <= within + 10 * US);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 500000, len), 0);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 0);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE), probes);
	CU_ASSERT_EQUAL(h.n[0].qp->req.retry_left, 7);
	for (struct loss *l = losses; l->times != UINT32_MAX; l++)
		CU_ASSERT_EQUAL(l->times, 0);
	th_close(&h);
}

static void fault__last_ack_lost(void)
{
	struct loss l[] = {{1, 104, 1}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_WRITE, 4096, 60 * US, 1);
}

/* Where nothing has been lost of late the peer is given time: it is more likely busy. The ACK timer is long here. */
static void fault__first_loss_of_a_calm_path(void)
{
	struct loss l[] = {{0, 101, 1}, END_OF_LOSSES};
	struct th_opt o = th_default;
	static struct th h;
	ur_time begin;

	o.timeout = 17;
	open_warm(&h, &o, l);
	h.n[0].qp->req.probe.loss_at = 0;
	begin = h.now;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_run(&h, 9 * UR_NS_PER_MS);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE), 0);
	th_run(&h, 2 * UR_NS_PER_MS);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE), 1);
	CU_ASSERT_TRUE(h.now - begin < 12 * UR_NS_PER_MS);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

/* Before anything is known a SEND is missed after 20 ms; a READ, whose answer takes as long as it is, after 200. */
static void fault__first_of_a_connection(void)
{
	for (unsigned read = 0; read < 2; read++) {
		struct loss l[] = {{0, 100, 1}, END_OF_LOSSES};
		struct th_opt o = th_default;
		static struct th h;

		o.timeout = 18;
		th_open(&h, &o);
		h.lose = lose_psn;
		h.arg = l;
		if (!read)
			th_recv(&h, 1, 1, 500000, 64);
		th_post(&h, 0, read ? IBV_WR_RDMA_READ : IBV_WR_SEND, 1, 0, 8, 500000, IBV_SEND_SIGNALED);
		th_run(&h, (read ? 190 : 19) * UR_NS_PER_MS);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE), 0);
		th_run(&h, 20 * UR_NS_PER_MS);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE), 1);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		th_close(&h);
	}
}

static void fault__last_packet_lost(void)
{
	struct loss l[] = {{0, 104, 1}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_WRITE, 4096, 60 * US, 1);
}

static void fault__all_of_a_message_lost(void)
{
	struct loss l[] = {{0, 101, 1}, {0, 102, 1}, {0, 103, 1}, {0, 104, 1}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_WRITE, 4096, 60 * US, 1);
}

/* The peer NAKs a gap only once: the oldest packet, sent again, opens its ears. */
static void fault__nak_lost(void)
{
	struct loss l[] = {{0, 102, 1}, {1, 102, 1}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_WRITE, 8192, 60 * US, 1);
}

static void fault__retransmission_lost(void)
{
	struct loss l[] = {{0, 102, 2}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_WRITE, 8192, 60 * US, 1);
}

static void fault__probe_lost(void)
{
	struct loss l[] = {{0, 104, 3}, END_OF_LOSSES}; /* the packet, in the first probe, and after its answer */

	expect_repaired(l, IBV_WR_RDMA_WRITE, 4096, 110 * US, 2);
}

static void fault__read_request_lost(void)
{
	struct loss l[] = {{0, 101, 1}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_READ, 8192, 60 * US, 1);
}

static void fault__last_read_response_lost(void)
{
	struct loss l[] = {{1, 108, 1}, END_OF_LOSSES};

	expect_repaired(l, IBV_WR_RDMA_READ, 8192, 60 * US, 1);
}

/* Only what is missing is asked for and sent again. */
static void fault__read_responses_lost_in_the_middle(void)
{
	static struct th h;
	struct loss l[] = {{1, 110, 1}, {1, 111, 1}, {1, 130, 1}, {1, 150, 1}, END_OF_LOSSES};
	uint64_t sent[2];

	open_warm(&h, &th_default, l);
	h.n[0].qp->req.rtt.least = 0; /* time stands still */
	memcpy(sent, h.sent, sizeof(sent));
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 64 * 1024, 500000, IBV_SEND_SIGNALED);
	th_pump(&h); /* in no time */
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 500000, 64 * 1024), 0);
	CU_ASSERT_EQUAL(h.sent[0] - sent[0], 1 + 3); /* two of the four lie together */
	CU_ASSERT_EQUAL(h.sent[1] - sent[1], 64 + 4);
	CU_ASSERT_TRUE(count(&h, 0, UR_C_IMPLIED_NAK) >= 1); /* by how the responses come in bursts */
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 0);
	CU_ASSERT_EQUAL(h.n[0].qp->req.rd_out, 0);
	th_close(&h);
}

static void fault__repair_of_a_read_lost(void)
{
	struct loss response[] = {{1, 110, 2}, END_OF_LOSSES}, request[] = {{1, 110, 1}, {0, 110, 1}, END_OF_LOSSES};

	expect_repaired(response, IBV_WR_RDMA_READ, 64 * 1024, 60 * US, 1);
	expect_repaired(request, IBV_WR_RDMA_READ, 64 * 1024, 60 * US, 1);
}

/* Requests behind the READ are not sent again, and complete in their order. */
static void fault__read_response_lost_before_other_requests(void)
{
	static struct th h;
	struct loss l[] = {{1, 103, 1}, END_OF_LOSSES};

	open_warm(&h, &th_default, l);
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 4096, 500000, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 10000, 4096, 510000, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_READ, 3, 20000, 4096, 520000, IBV_SEND_SIGNALED);
	th_pump(&h);
	for (uint64_t i = 1; i <= 3; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 500000, 4096), 0);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem + 20000, h.n[1].mem + 520000, 4096), 0);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_RETRANSMIT), 1);
	CU_ASSERT_EQUAL(count(&h, 1, UR_C_DUPLICATE), 1);
	CU_ASSERT_EQUAL(h.n[0].qp->req.rd_wqes, 0);
	th_close(&h);
}

/* Probes come at doubled intervals and are no retries: seven stay seven. */
static void fault__peer_is_dead(void)
{
	static struct th h;
	struct loss none[] = {END_OF_LOSSES};
	ur_time begin;

	open_warm(&h, &th_default, none);
	h.n[1].path.ready = false; /* it says nothing any more */
	begin = h.now;
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 2048, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 8);
	/* After 10 or 20, 40, 80 of 1049 us, of 2098, then of 3670. */
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE) + count(&h, 0, UR_C_PROBE_HELD), 7 + 7 + 6 * 8);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	CU_ASSERT_TRUE(h.now - begin >= TH_TIMES_SILENT(7) * TIMEOUT);
	h.n[1].path.ready = true;
	th_close(&h);
}

/* Requests posted behind a window that is full of a retransmission, which turns out to have been needless, are heard. */
static void fault__needless_retransmission(void)
{
	static struct th h;
	struct th_pkt p;

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 10 * 1024, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 10);
	th_sleep(&h, 2 * UR_NS_PER_MS);
	h.n[0].qp->req.window.size = 2;
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, IBV_SEND_SIGNALED);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_WINDOW);
	th_ack(&h, 0, 109, ACK);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 110);
	th_close(&h);
}

static void fault__no_timer_means_no_probe(void)
{
	static struct th h;
	struct loss l[] = {{0, 101, 1}, END_OF_LOSSES};
	struct th_opt o = th_default;

	o.timeout = 0;
	open_warm(&h, &o, l);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_pump(&h);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_close(&h);
}

static void fault__rnr_storm(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.rnr_retry = 7;
	o.retry_cnt = 0;
	th_open(&h, &o);
	for (uint64_t i = 0; i < 3; i++)
		th_post(&h, 0, IBV_WR_SEND, i, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_run(&h, 20 * UR_NS_PER_MS);
	CU_ASSERT_TRUE(count(&h, 0, UR_C_RNR_NAK_RCVD) > 20);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_RETRANSMIT), count(&h, 0, UR_C_RNR_NAK_RCVD) - 1);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_RNR_NAK_RCVD), count(&h, 1, UR_C_RNR_NAK_SENT));
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT), 0);
	for (uint64_t i = 0; i < 3; i++) {
		th_recv(&h, 1, i, 100000, 3000);
		th_run(&h, 2 * UR_NS_PER_MS);
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
		th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
	}
	th_close(&h);
}

/* The second half of one message and the first of the next change places. */
static void fault__reordering_across_a_message_border(void)
{
	static const uint8_t order[] = {0, 2, 1, 3};
	static struct th_pkt p[4];
	static struct th h;

	th_open(&h, &th_default);
	th_recv(&h, 1, 9, 300000, 2048);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 2048, 100000, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_SEND, 2, 4096, 2048, 0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 4; i++)
		CU_ASSERT_TRUE(th_pull(&h, 0, &p[i]));
	for (unsigned i = 0; i < 4; i++)
		th_feed(&h, 1, &p[order[i]]);
	CU_ASSERT_EQUAL(count(&h, 1, UR_C_DROP_OUT_OF_SEQ), 2);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(th_expect_wc(h.n[1].rcq, 9, IBV_WC_SUCCESS).byte_len, 2048);
	th_expect_no_wc(h.n[1].rcq);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 100000, h.n[0].mem, 2048), 0);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 300000, h.n[0].mem + 4096, 2048), 0);
	th_close(&h);
}

/* Whatever is lost at the wrap, in whichever operation. */
static void fault__psn_wraps_inside_a_message(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (unsigned i = 0; i < 2 * 16; i++) {
		static struct th h;
		struct loss l[] = {
			{i & 1, (0xfffff8 + i / 2) & UR_PSN_MASK, 1}, {!(i & 1), (0xfffff9 + i / 2) & UR_PSN_MASK, 1}, END_OF_LOSSES};
		struct th_opt o = th_default;

		o.psn[0] = 0xfffff7;
		open_warm(&h, &o, l);
		for (unsigned k = 0; k < 2; k++)
			th_post(&h, 0, ops[k], k, k * 100000, 8 * 1024, 500000 + k * 100000, IBV_SEND_SIGNALED);
		th_run(&h, 10 * UR_NS_PER_MS);
		for (unsigned k = 0; k < 2; k++) {
			th_expect_wc(h.n[0].scq, k, IBV_WC_SUCCESS);
			CU_ASSERT_EQUAL(memcmp(h.n[0].mem + k * 100000, h.n[1].mem + 500000 + k * 100000, 8 * 1024), 0);
		}
		th_close(&h);
	}
}

static void fault__reset_with_packets_in_flight(void)
{
	static struct th_pkt request, late_ack, response;
	static struct th h;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 2048, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_TRUE(th_pull(&h, 0, &request));
	th_feed(&h, 1, &request);
	CU_ASSERT_TRUE(th_pull(&h, 0, &request));
	th_feed(&h, 1, &request);
	CU_ASSERT_TRUE(th_pull(&h, 1, &late_ack));
	CU_ASSERT_TRUE(th_pull(&h, 1, &response));
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ur_qp_modify(h.n[i].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	th_feed(&h, 0, &late_ack);
	th_feed(&h, 0, &response);
	th_feed(&h, 1, &request);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_QP_STATE), 2);
	CU_ASSERT_EQUAL(count(&h, 1, UR_C_DROP_QP_STATE), 1);
	h.opt.psn[0] = 5000;
	th_connect(&h, 0);
	th_connect(&h, 1);
	th_feed(&h, 0, &response); /* of the connection before: nothing with that PSN is under way */
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 1);
	th_post(&h, 0, IBV_WR_RDMA_READ, 3, 0, 5000, 100000, IBV_SEND_SIGNALED);
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 3, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 100000, 5000), 0);
	th_close(&h);
}

/* The peer takes its memory away between two responses: the READ fails, behind a WRITE that does not. */
static void fault__mr_deregistered_under_a_read(void)
{
	static struct th_pkt p;
	static struct th h;

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 4096, 0, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(th_pull(&h, 0, &p));
		th_feed(&h, 1, &p);
	}
	for (unsigned i = 0; i < 3; i++) { /* the ACK and two responses */
		CU_ASSERT_TRUE(th_pull(&h, 1, &p));
		th_feed(&h, 0, &p);
	}
	CU_ASSERT_EQUAL(ur_mr_dereg(h.n[1].mr), 0);
	h.n[1].mr = NULL;
	th_pump(&h);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_ERR);
	th_close(&h);
}

/* Answers to what was never sent, while something else is under way, leave it alone. */
static void fault__peer_acknowledges_what_was_never_sent(void)
{
	static struct th h;
	const struct th_hdr ext = {.syndrome = ACK};

	th_open(&h, &th_default);
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 2048, 0, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	th_ack(&h, 0, 102, ACK);
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, 102, false, &ext, h.n[1].mem, 8);
	th_ack(&h, 0, 99, SEQ_NAK);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_GHOST_ACK), 2);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_RESPONSE), 1);
	th_expect_quiet(&h, 0);
	/* Acknowledging a READ without its responses is a lie as well: they are asked for. */
	th_ack(&h, 0, 101, ACK);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_IMPLIED_NAK), 1);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_expect_no_wc(h.n[0].scq);
	th_close(&h);
}

/* Requests and their answers take 50 us each way. */
static void far_write(struct th *h, uint32_t psn, uint8_t syndrome)
{
	th_post(h, 0, IBV_WR_RDMA_WRITE, psn, 0, 8, 0, IBV_SEND_SIGNALED);
	th_drain(h, 0);
	th_sleep(h, 100 * US);
	th_ack(h, 0, psn, syndrome);
}

/* A peer that NAKs every packet out of order, or a network that copies its NAKs, costs one retry a round trip and not one a NAK. */
static void fault__naks_repeat(void)
{
	static struct th h;

	th_open(&h, &th_default);
	far_write(&h, 100, ACK);
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	far_write(&h, 101, SEQ_NAK);
	for (unsigned round = 0; round < 7; round++) {
		CU_ASSERT_EQUAL(h.n[0].qp->req.retry_left, 6 - round);
		for (unsigned i = 0; i < 20; i++) {
			th_drain(&h, 0);
			th_ack(&h, 0, 101, SEQ_NAK); /* at once: no answer to what just left */
		}
		CU_ASSERT_EQUAL(h.n[0].qp->req.retry_left, 6 - round);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
		th_sleep(&h, 100 * US);
		th_drain(&h, 0);
		th_ack(&h, 0, 101, SEQ_NAK);
	}
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PACKET_SEQ_ERR), 8); /* the first and seven retries */
	th_expect_wc(h.n[0].scq, 101, IBV_WC_RETRY_EXC_ERR);
	th_close(&h);
}

/* A path too slow for its timer: the window comes down until it fits, and grows again when all is well. */
static void fault__window_too_large_for_the_timer(void)
{
	static struct th h;
	struct th_opt o = th_default;
	uint32_t start;

	o.retry_cnt = 7;
	th_open(&h, &o);
	start = h.n[0].qp->req.window.size;
	CU_ASSERT_EQUAL(start, 256);
	CU_ASSERT_EQUAL(h.n[0].qp->req.window.max, 1280);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 1000 * 1024, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 500 * 1024, 500 * 1024, IBV_SEND_SIGNALED);
	for (unsigned i = 1; i <= 6; i++) {
		CU_ASSERT_EQUAL(th_drain(&h, 0), start >> (i - 1));
		th_sleep(&h, h.n[0].qp->req.wait + 5000);
		CU_ASSERT_EQUAL(h.n[0].qp->req.window.size, i < 6 ? start >> i : 8);
	}
	for (unsigned i = 0; i < 10; i++) {
		th_post(&h, 0, IBV_WR_RDMA_READ, 3 + i, 0, 1000 * 1024, 0, IBV_SEND_SIGNALED);
		th_run(&h, UR_NS_PER_MS);
	}
	for (uint64_t i = 1; i < 13; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(h.n[0].qp->req.window.size > 2 * start);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, 1000 * 1024), 0);
	th_close(&h);
}

/* Each QP tells its own part of the story. */
static void counters__of_one_qp(void)
{
	static struct th h;
	struct loss l[] = {{0, 102, 1}, {1, 111, 1}, END_OF_LOSSES};
	const struct ur_qp_counters *a, *b;
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	open_warm(&h, &th_default, l);
	a = ur_qp_counters(h.n[0].qp);
	b = ur_qp_counters(h.n[1].qp);
	CU_ASSERT_EQUAL(a->tx_packets, 1);
	CU_ASSERT_EQUAL(a->tx_bytes, 8);
	CU_ASSERT_EQUAL(b->rx_bytes, 8);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8 * 1024, 0, IBV_SEND_SIGNALED); /* 101 to 108; 102 is lost, and 7 go again */
	th_pump(&h);
	CU_ASSERT_EQUAL(a->tx_packets, 1 + 8 + 7);
	CU_ASSERT_EQUAL(a->retransmits, 7);
	CU_ASSERT_EQUAL(a->seq_errors, 1);
	CU_ASSERT_EQUAL(b->rx_packets, 1 + 7 + 7);
	CU_ASSERT_EQUAL(b->out_of_sequence, 6);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 8 * 1024, 0, IBV_SEND_SIGNALED); /* 109 to 116; 111 is lost */
	th_pump(&h);
	CU_ASSERT_EQUAL(a->implied_naks, 1);
	CU_ASSERT_EQUAL(a->retransmits, 8);
	CU_ASSERT_EQUAL(a->rx_bytes, 8 * 1024);
	CU_ASSERT_EQUAL(b->duplicates, 1);
	CU_ASSERT_EQUAL(b->tx_bytes, 9 * 1024);
	CU_ASSERT_EQUAL(a->timeouts, 0);
	CU_ASSERT_STRING_EQUAL(ur_qp_counter_name(0), "tx_packets");
	CU_ASSERT_STRING_EQUAL(ur_qp_counter_name(UR_QP_COUNTER_COUNT - 1), "cnp_handled");
	CU_ASSERT_PTR_NULL(ur_qp_counter_name(UR_QP_COUNTER_COUNT));
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &reset, IBV_QP_STATE, NULL, h.now), 0);
	CU_ASSERT_EQUAL(a->tx_packets, 0);
	th_close(&h);
}

void ur_suite_tp_faults(void);

void ur_suite_tp_faults(void)
{
	CU_pSuite s = CU_add_suite("tp_faults", NULL, NULL);

	CU_ADD_TEST(s, fault__last_ack_lost);
	CU_ADD_TEST(s, fault__first_loss_of_a_calm_path);
	CU_ADD_TEST(s, fault__last_packet_lost);
	CU_ADD_TEST(s, fault__all_of_a_message_lost);
	CU_ADD_TEST(s, fault__first_of_a_connection);
	CU_ADD_TEST(s, fault__nak_lost);
	CU_ADD_TEST(s, fault__retransmission_lost);
	CU_ADD_TEST(s, fault__probe_lost);
	CU_ADD_TEST(s, fault__read_request_lost);
	CU_ADD_TEST(s, fault__last_read_response_lost);
	CU_ADD_TEST(s, fault__read_responses_lost_in_the_middle);
	CU_ADD_TEST(s, fault__repair_of_a_read_lost);
	CU_ADD_TEST(s, fault__read_response_lost_before_other_requests);
	CU_ADD_TEST(s, fault__peer_is_dead);
	CU_ADD_TEST(s, fault__needless_retransmission);
	CU_ADD_TEST(s, fault__no_timer_means_no_probe);
	CU_ADD_TEST(s, fault__rnr_storm);
	CU_ADD_TEST(s, fault__reordering_across_a_message_border);
	CU_ADD_TEST(s, fault__psn_wraps_inside_a_message);
	CU_ADD_TEST(s, fault__reset_with_packets_in_flight);
	CU_ADD_TEST(s, fault__mr_deregistered_under_a_read);
	CU_ADD_TEST(s, fault__peer_acknowledges_what_was_never_sent);
	CU_ADD_TEST(s, fault__naks_repeat);
	CU_ADD_TEST(s, fault__window_too_large_for_the_timer);
	CU_ADD_TEST(s, counters__of_one_qp);
}
