/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bulk packets (wire/bulk.h): between processes of one host, and within one, long messages have the same effects, completions and errors as
 * by packets, and whatever is amiss with a bulk packet costs at most that packets come after it.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "fault/inject.h"
#include "nic_harness.h"
#include "transport/memory/mr.h"
#include "transport/packet/bulk.h"

void ur_suite_bulk(void);

#define LEN 20001u

static struct nics h;
static struct nics_qp a, b;

/* NIC 0 and NIC `peer` of one host; one small message each makes them acquainted. */
static void open_pair(unsigned peer)
{
	nics_open_host(&h, 2);
	nics_mail_open(&h, 1000);
	nics_mail_fetch(&h);
	nics_fetch_fails = 0;
	nics_qp_create(&h, 0, IBV_QPT_RC, &a);
	nics_qp_create(&h, peer, IBV_QPT_RC, &b);
	nics_qp_connect(&h, &a, &b);
	nics_qp_connect(&h, &b, &a);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 90, 0, 1, peer, 0), 0);
	CU_ASSERT_EQUAL(nics_post(&h, &b, IBV_WR_RDMA_WRITE, 91, 0, 1, 0, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	if (peer) {
		nics_expect(&h, 0, 90, IBV_WC_SUCCESS);
		nics_expect(&h, 1, 91, IBV_WC_SUCCESS);
	} else {
		struct ibv_wc wc[2];

		CU_ASSERT_EQUAL(ur_cq_poll(h.n[0].cq, 2, wc), 2);
	}
}

static void close_pair(void)
{
	nics_mail_close(&h);
	nics_close(&h);
}

static void close_all(void)
{
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_pair();
}

static const uint8_t *mem(unsigned nic, uint32_t off)
{
	return h.n[nic].mem + off;
}

/* A WRITE, a SEND and a READ between NIC 0 and `peer`; returns how many bulk packets they took. */
static uint64_t exchange(unsigned peer, uint32_t len)
{
	uint64_t before = nics_sum(&h, UR_C_TX_BULK);

	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 10, len, peer, 40000), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(mem(peer, 40000), mem(0, 10), len), 0);
	memset(h.n[peer].mem + 40000, 0, len);
	nics_recv(&h, &b, 2, 40001, len);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_SEND, 3, 10, len, 0, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	CU_ASSERT_EQUAL(nics_expect(&h, peer, 2, IBV_WC_SUCCESS).byte_len, len);
	nics_expect(&h, 0, 3, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(mem(peer, 40001), mem(0, 10), len), 0);
	memset(h.n[0].mem + 10, 0, len);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_READ, 4, 10, len, peer, 40001), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 4, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(mem(peer, 40001), mem(0, 10), len), 0);
	nics_expect_none(&h, 0);
	return nics_sum(&h, UR_C_TX_BULK) - before;
}

/* Counters tell the same of a message, whether it goes as packets or not. */
static void exchange__as_by_packets(void)
{
	static const uint32_t len[] = {UR_BULK_LEAST - 1, UR_BULK_LEAST, UR_BULK_LEAST + 1, 2 * UR_BULK_LEAST};
	static const enum ur_counter same[] = {UR_C_TX_LOCAL_PACKETS, UR_C_TX_LOCAL_BYTES, UR_C_TX_ROCE, UR_C_RX_ROCE, UR_C_RX_WRITE};

	for (unsigned peer = 0; peer < 2; peer++)
		for (unsigned i = 0; i < ur_array_size(len); i++) {
			uint64_t n[2][ur_array_size(same)];

			for (unsigned packets = 0; packets < 2; packets++) {
				const struct ur_fault_spec none = {.dir = UR_FAULT_TX, .seed = 1};

				open_pair(peer);
				for (unsigned k = 0; packets && k < 2; k++)
					CU_ASSERT_EQUAL(ur_nic_set_faults(h.n[k].nic, &none), 0);
				CU_ASSERT_EQUAL(exchange(peer, len[i]), packets || len[i] < UR_BULK_LEAST ? 0 : 3);
				CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_UNREAD) + nics_sum(&h, UR_C_RETRANSMIT) +
							nics_sum(&h, UR_C_DROP_OUT_OF_SEQ),
						0);
				for (unsigned k = 0; k < ur_array_size(same); k++)
					n[packets][k] = nics_sum(&h, same[k]);
				close_all();
			}
			for (unsigned k = 0; k < ur_array_size(same); k++)
				CU_ASSERT_EQUAL(n[0][k], n[1][k]);
		}
}

/* How many of them were copied without the kernel, as those say who copied. */
static void exchange__counts_how(void)
{
	for (enum ur_fetched_by by = UR_FETCHED_BY_KERNEL; by <= UR_FETCHED_MAPPED; by++) {
		open_pair(1);
		nics_fetched_by = by;
		CU_ASSERT_EQUAL(exchange(1, LEN), 3);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_MAPPED), by == UR_FETCHED_MAPPED ? 3 : 0);
		close_all();
	}
	open_pair(0);
	CU_ASSERT_EQUAL(exchange(0, LEN), 3);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_MAPPED), 0);
	close_all();
}

/* Marks that losses leave behind follow what is acknowledged: 2^23 PSNs later they would seem to be ahead. */
static void exchange__marks_follow(void)
{
	const struct ur_requester *r;

	open_pair(1);
	for (unsigned i = 0; i < 5; i++)
		exchange(1, LEN);
	r = &a.qp->req;
	CU_ASSERT_TRUE(((r->una - 5) & 0xffffff) > 1000);
	CU_ASSERT_TRUE(((r->una - r->packets_until) & 0xffffff) < 200);
	CU_ASSERT_TRUE(((r->una - r->scoreboard.split) & 0xffffff) < 200);
	CU_ASSERT_TRUE(((r->una - r->rtt.resent) & 0xffffff) < 200);
	close_all();
}

/* What cannot be copied comes again as packets. */
static void exchange__unreadable(void)
{
	for (unsigned fails = 1; fails < 4; fails++) {
		open_pair(1);
		nics_fetch_fails = fails;
		for (unsigned i = 0; i < 5; i++)
			exchange(1, LEN);
		CU_ASSERT_TRUE(nics_sum(&h, UR_C_BULK_UNREAD) >= 5);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_RETRY_EXC) + nics_sum(&h, UR_C_ACK_TIMEOUT), 0);
		close_all();
	}
}

/* The peer is not ready for long: what asks is one packet, and the rest is a bulk packet again. */
static void refused__asks_with_one_packet(void)
{
	for (unsigned peer = 0; peer < 2; peer++) {
		uint64_t naks;

		open_pair(peer);
		b.qp->resp.min_rnr = 1;
		CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_SEND, 1, 10, LEN, 0, 0), 0);
		nics_run(&h, 10 * UR_NS_PER_MS);
		naks = nics_sum(&h, UR_C_RNR_NAK_RCVD);
		CU_ASSERT_TRUE(naks > 10);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_RETRANSMIT), naks - 1);
		nics_recv(&h, &b, 2, 40001, LEN);
		nics_run(&h, 2 * UR_NS_PER_MS);
		CU_ASSERT_EQUAL(nics_expect(&h, peer, 2, IBV_WC_SUCCESS).byte_len, LEN);
		nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(mem(peer, 40001), mem(0, 10), LEN), 0);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_TX_BULK), 2);
		close_all();
	}
}

/* A QP without retries sends no requests that may cost one. It may be answered so: what cannot be read costs it nothing. */
static void exchange__without_retries(void)
{
	for (unsigned fails = 0; fails < 2; fails++) {
		open_pair(1);
		a.qp->req.retry_cnt = a.qp->req.retry_left = b.qp->req.retry_cnt = b.qp->req.retry_left = 0;
		nics_fetch_fails = fails;
		for (unsigned i = 1; i < 4; i++) {
			CU_ASSERT_EQUAL(exchange(1, LEN), 1);
			CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_UNREAD), fails * i);
			CU_ASSERT_EQUAL(a.qp->req.retry_left, 0);
		}
		close_all();
	}
}

/* The sender gives its request up before the payload is read: the receiver completes nothing, and the end of its memory stays as it was. */
static void revoked__by_the_end_of_a_qp(void)
{
	for (unsigned send = 0; send < 2; send++) {
		uint8_t end[64];

		open_pair(1);
		nics_recv(&h, &b, 7, 40000, LEN);
		memcpy(end, mem(1, 40000 + LEN - 64), 64);
		h.stopped = 1u << 1;
		CU_ASSERT_EQUAL(nics_post(&h, &a, send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 1, 10, LEN, 1, 40000), 0);
		nics_run(&h, UR_NS_PER_MS);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_TX_BULK), 1);
		nics_qp_destroy(&h, &a);
		memset(h.n[0].mem + 10, 0xee, LEN); /* the program has other things there */
		h.stopped = 0;
		nics_run(&h, UR_NS_PER_MS);
		nics_expect_none(&h, 1);
		CU_ASSERT_EQUAL(memcmp(end, mem(1, 40000 + LEN - 64), 64), 0);
		CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_UNREAD), 1);
		nics_qp_destroy(&h, &b);
		close_pair();
	}
}

/* The region that a READ names ends before its payload is read. */
static void revoked__by_the_end_of_a_region(void)
{
	struct ibv_wc wc;

	open_pair(1);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_READ, 4, 10, LEN, 1, 40000), 0);
	ur_nic_poll(h.n[0].nic, h.now);
	ur_nic_poll(h.n[1].nic, h.now);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_TX_BULK), 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(h.n[1].mr), 0);
	memset(h.n[1].mem + 40000, 0xee, LEN);
	nics_run(&h, UR_NS_PER_S);
	CU_ASSERT_EQUAL(ur_cq_poll(h.n[0].cq, 1, &wc), 1);
	CU_ASSERT_EQUAL(wc.status, IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_UNREAD), 1);
	CU_ASSERT_EQUAL_FATAL(
		ur_mr_reg(h.n[1].nic->tp, h.n[1].pd, h.n[1].mem, NICS_MEM, (uintptr_t)h.n[1].mem, IBV_ACCESS_LOCAL_WRITE, &h.n[1].mr), 0);
	close_all();
}

/* Regions are many and tokens few: the end of one costs another that shares its token packets in place of a copy, and nothing else. */
static void revoked__by_a_region_with_the_same_token(void)
{
	struct ur_mr *other;
	uint32_t theirs;

	open_pair(1);
	theirs = ur_region_token_at(h.n[1].mr->number);
	for (unsigned i = 0; i < UR_TOKENS_HALF; i++) {
		const uint64_t token = ur_token_of(h.n[1].nic->tp, theirs);

		CU_ASSERT_EQUAL_FATAL(
			ur_mr_reg(h.n[1].nic->tp, h.n[1].pd, h.n[1].mem, 1, (uintptr_t)h.n[1].mem, IBV_ACCESS_LOCAL_WRITE, &other), 0);
		CU_ASSERT_EQUAL(ur_token_of(h.n[1].nic->tp, theirs), token);
		CU_ASSERT_EQUAL(ur_region_token_at(other->number) == theirs, i == UR_TOKENS_HALF - 1);
		if (ur_region_token_at(other->number) != theirs)
			CU_ASSERT_EQUAL(ur_mr_dereg(other), 0);
	}
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_READ, 4, 10, LEN, 1, 40000), 0);
	ur_nic_poll(h.n[0].nic, h.now);
	ur_nic_poll(h.n[1].nic, h.now);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_TX_BULK), 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(other), 0);
	nics_run(&h, UR_NS_PER_S);
	nics_expect(&h, 0, 4, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(mem(1, 40000), mem(0, 10), LEN), 0);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_UNREAD), 1);
	exchange(1, LEN);
	CU_ASSERT_EQUAL(nics_sum(&h, UR_C_BULK_UNREAD), 1);
	close_all();
}

/* In a forked child its parent's page is gone: nothing of it is touched, and objects of the parent's can be destroyed. */
static void revoked__without_others(void)
{
	open_pair(1);
	CU_ASSERT_EQUAL(exchange(1, LEN), 3);
	h.n[0].nic->tp->tokens = NULL;
	ur_nic_leave_siblings(h.n[0].nic);
	nics_qp_destroy(&h, &a);
	nics_qp_destroy(&h, &b);
	close_pair();
}

/* Rights, lengths and missing receives are found as with packets. */
static void errors__are_those_of_packets(void)
{
	open_pair(1);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_WRITE, 1, 10, LEN, 1, NICS_MEM - LEN + 1), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_REM_ACCESS_ERR);
	close_all();

	open_pair(1);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_RDMA_READ, 1, 10, LEN, 1, NICS_MEM - LEN + 1), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_REM_ACCESS_ERR);
	close_all();

	open_pair(1);
	nics_recv(&h, &b, 2, 40000, LEN - 1);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_SEND, 1, 10, LEN, 0, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 1, 2, IBV_WC_LOC_LEN_ERR);
	nics_expect(&h, 0, 1, IBV_WC_REM_INV_REQ_ERR);
	close_all();

	open_pair(1);
	CU_ASSERT_EQUAL(nics_post(&h, &a, IBV_WR_SEND, 1, 10, LEN, 0, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect_none(&h, 0);
	CU_ASSERT_TRUE(nics_sum(&h, UR_C_RNR_NAK_SENT) > 0);
	nics_recv(&h, &b, 2, 40000, LEN);
	nics_run(&h, UR_NS_PER_S);
	nics_expect(&h, 1, 2, IBV_WC_SUCCESS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(mem(1, 40000), mem(0, 10), LEN), 0);
	close_all();
}

/* --- what another process may say --- */

static struct ur_pkt *bulk_packet(const struct nics_qp *from, const struct nics_qp *to, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct ur_bth bth = {.psn = psn, .opcode = opcode, .ackreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = ur_qp_num(to->qp)};
	struct ur_pkt *p;
	struct ur_bulk *u;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(h.n[0].nic->port->queue, &p, 1), 1);
	u = ur_bulk_of(p);
	memset(u, 0, sizeof(*u));
	ur_bth_put(u->headers, &bth);
	u->npkts = (len + 255) / 256;
	u->len = len;
	u->sqpn = ur_qp_num(from->qp);
	u->token_at = ur_qp_token_at(from->qp);
	u->token = ur_token_of(h.n[0].nic->tp, u->token_at);
	u->nseg = 1;
	u->seg[0] = (struct ur_bulk_seg){.at = (uintptr_t)h.n[0].mem, .len = len, .region = 1};
	p->flags = UR_PKT_LOCAL | UR_PKT_BULK;
	p->slot = ur_slot_of(u->sqpn);
	p->len = ur_bulk_bytes(1);
	return p;
}

static void deliver(struct ur_pkt *p)
{
	ur_queue_tx(&nics_mail[1].queue, &p, 1);
	nics_run(&h, 10 * UR_NS_PER_US);
}

/* Any bytes: nothing is read or written but what the keys of the receiver permit, and the connection goes on or ends as it should. */
static void hostile__anything(void)
{
	struct ur_rng rng = {.state = 77};
	uint64_t parsed = 0;

	for (unsigned round = 0; round < 3000; round++) {
		uint8_t opcode = (uint8_t)ur_rng_below(&rng, 0x18);
		struct ur_pkt *p;
		struct ur_bulk *u;

		open_pair(1);
		p = bulk_packet(&a, &b, opcode, 6 + ur_rng_below(&rng, 2), 1 + ur_rng_below(&rng, LEN));
		u = ur_bulk_of(p);
		for (unsigned i = ur_rng_below(&rng, 4); i; i--) {
			uint8_t *at = p->data + ur_rng_below(&rng, sizeof(*u));

			*at = ur_rng_below(&rng, 2) ? (uint8_t)ur_rng_u64(&rng) : (uint8_t)(*at ^ 1u << ur_rng_below(&rng, 8));
		}
		if (!ur_rng_below(&rng, 8))
			p->len = ur_rng_below(&rng, sizeof(*u) + 1);
		deliver(p);
		parsed += h.n[1].nic->counters.v[UR_C_DROP_TRUNCATED] == 0;
		close_all();
	}
	CU_ASSERT_TRUE(parsed > 300 && parsed < 2700);
}

/* A QP that is not the peer, and one that is connected over the wire. */
static void hostile__other_senders(void)
{
	struct nics_qp c;
	struct ur_pkt *p;

	open_pair(1);
	nics_recv(&h, &b, 2, 40000, LEN);
	nics_qp_create(&h, 0, IBV_QPT_RC, &c);
	p = bulk_packet(&c, &b, UR_RC | UR_OP_SEND_ONLY, 6, LEN);
	deliver(p);
	CU_ASSERT_EQUAL(h.n[1].nic->counters.v[UR_C_DROP_SOURCE], 1);
	nics_expect_none(&h, 1);
	p = bulk_packet(&a, &b, UR_RC | UR_OP_SEND_ONLY, 6, LEN);
	p->slot = 9; /* another process's, which names the peer's QP */
	deliver(p);
	CU_ASSERT_EQUAL(h.n[1].nic->counters.v[UR_C_DROP_SOURCE], 2);
	nics_expect_none(&h, 1);
	deliver(bulk_packet(&a, &b, UR_RC | UR_OP_SEND_ONLY, 6, LEN));
	nics_expect(&h, 1, 2, IBV_WC_SUCCESS);
	nics_qp_destroy(&h, &c);
	close_all();
}

void ur_suite_bulk(void)
{
	CU_pSuite s = CU_add_suite("bulk", NULL, NULL);

	CU_ADD_TEST(s, exchange__as_by_packets);
	CU_ADD_TEST(s, exchange__counts_how);
	CU_ADD_TEST(s, exchange__marks_follow);
	CU_ADD_TEST(s, exchange__unreadable);
	CU_ADD_TEST(s, exchange__without_retries);
	CU_ADD_TEST(s, refused__asks_with_one_packet);
	CU_ADD_TEST(s, revoked__by_the_end_of_a_qp);
	CU_ADD_TEST(s, revoked__by_the_end_of_a_region);
	CU_ADD_TEST(s, revoked__by_a_region_with_the_same_token);
	CU_ADD_TEST(s, revoked__without_others);
	CU_ADD_TEST(s, errors__are_those_of_packets);
	CU_ADD_TEST(s, hostile__anything);
	CU_ADD_TEST(s, hostile__other_senders);
}
