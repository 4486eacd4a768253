/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of lib/transport/pending/reorder.c that have had no news for long: they give way to QPs that need the room, and end by
 * themselves.
 */
#include "reorder_harness.h"

#define MS UR_NS_PER_MS
#define OTHERS 3
#define BOARD (8192 + 16384 + 256) /* more than the size of one, and less than that of two */
#define ROOM (16 * BOARD * OTHERS) /* for as many buffers as there are others */

#define TO_RTR                                                                                                                             \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

void ur_suite_reorder_idle(void);

static struct ur_qp *others[OTHERS];

/* More QPs of node 1 that its peer sends to, from PSN 100 on. */
static void open_others(struct th *h)
{
	struct th_node *n = &h->n[1];
	struct ur_qp_init init = {
		.type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}, .pd = n->pd, .send_cq = n->scq, .recv_cq = n->rcq, .context = n};

	init.event = n->qp->event;
	for (unsigned i = 0; i < OTHERS; i++) {
		struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
					.port_num = 1,
					.path_mtu = IBV_MTU_256,
					.dest_qp_num = 0x10700 + i,
					.rq_psn = 100,
					.max_dest_rd_atomic = 4,
					.qp_access_flags = TH_ALL_ACCESS};
		const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

		CU_ASSERT_EQUAL_FATAL(ur_qp_create(n->tp, &init, &others[i]), 0);
		CU_ASSERT_EQUAL_FATAL(ur_qp_modify(others[i], &a, init_mask, NULL, h->now), 0);
		a.qp_state = IBV_QPS_RTR;
		CU_ASSERT_EQUAL_FATAL(ur_qp_modify(others[i], &a, TO_RTR, &n->path, h->now), 0);
		others[i]->resp.shown = UR_REORDER_SPAN;
	}
}

static void close_all(struct th *h)
{
	for (unsigned i = 0; i < OTHERS; i++)
		CU_ASSERT_EQUAL(ur_qp_destroy(others[i]), 0);
	th_close(h);
}

/* A WRITE to that QP, as write_one. */
static void write_to(struct th *h, struct ur_qp *qp, uint32_t psn)
{
	const struct th_hdr x = th_reth(h, 1, 0, 64);
	struct th_pkt p;

	th_make(h, 1, &p, UR_OP_WRITE_ONLY, psn, false, &x, data, 64);
	p.p.bth.dqpn = ur_qp_num(qp);
	th_feed(h, 1, &p);
}

static void expect_nak_to(struct th *h, uint32_t dqpn, uint32_t psn)
{
	struct ur_aeth a;
	struct th_pkt p;

	CU_ASSERT_FATAL(th_pull(h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_ACK);
	CU_ASSERT_EQUAL(p.p.bth.dqpn, dqpn);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	ur_aeth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	CU_ASSERT_EQUAL(a.syndrome, SEQ_NAK);
}

/* As many QPs have a gap as there are buffers. One that needs a buffer gets that of the QP whose last news is oldest, once that is idle. */
static void idle__board_is_given_away(void)
{
	open_kept(&fixture, 100, ROOM);
	open_others(&fixture);
	for (unsigned i = 0; i < OTHERS; i++) {
		write_to(&fixture, others[i], 102);
		th_sleep(&fixture, MS);
	}
	write_to(&fixture, others[0], 104); /* news: now another is the oldest */
	th_drain(&fixture, 1);
	write_one(&fixture, 100, 1, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_FULL), 1);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), 0);
	th_drain(&fixture, 1);
	th_sleep(&fixture, 100 * MS);
	write_one(&fixture, 100, 1, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_FULL), 1);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), 1);
	CU_ASSERT_PTR_NOT_NULL(fixture.n[1].qp->resp.reorder);
	CU_ASSERT_PTR_NOT_NULL(others[0]->resp.reorder);
	CU_ASSERT_PTR_NULL(others[1]->resp.reorder);
	CU_ASSERT_PTR_NOT_NULL(others[2]->resp.reorder);
	expect_nak_to(&fixture, 0x10701, 100); /* its peer is told, and sends all again */
	th_expect_quiet(&fixture, 1);
	for (uint32_t psn = 100; psn < 103; psn++)
		write_to(&fixture, others[1], psn);
	CU_ASSERT_EQUAL(others[1]->resp.epsn, 103);
	write_one(&fixture, 100, 0, false);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 102);
	close_all(&fixture);
}

/* Nor do QPs that do nothing hold copies that one in need could have. */
static void idle__copies_are_given_away(void)
{
	open_kept(&fixture, 100, ROOM);
	open_others(&fixture);
	for (unsigned i = 0; i < OTHERS - 1; i++)
		for (unsigned k = 0; k < 2000; k++)
			write_to(&fixture, others[i], 102 + k);
	CU_ASSERT_TRUE(count(&fixture, UR_C_KEEP_FULL) > 0);
	for (unsigned k = 0; k < 500; k++)
		write_one_at(&fixture, 100, 1 + k, 0, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), 0);
	th_sleep(&fixture, 101 * MS);
	for (unsigned k = 0; k < 500; k++)
		write_one_at(&fixture, 100, 501 + k, 0, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), 2);
	CU_ASSERT_PTR_NULL(others[0]->resp.reorder);
	CU_ASSERT_PTR_NULL(others[1]->resp.reorder);
	th_drain(&fixture, 1);
	close_all(&fixture);
}

/* After four seconds without news nothing that was kept is executed any more, whatever comes: what is expected, or something beyond it. */
static void idle__ends_by_itself(void)
{
	for (unsigned next = 0; next <= 3; next += 3)
		for (unsigned seconds = 3; seconds <= 5; seconds += 2) {
			const bool old = seconds > 4;

			open_kept(&fixture, 100, 0);
			write_one(&fixture, 100, 1, false);
			th_expect_ack(&fixture, 1, 100, SEQ_NAK);
			th_sleep(&fixture, 3000 * MS);
			write_one(&fixture, 100, 2, false); /* news */
			th_expect_quiet(&fixture, 1);
			th_sleep(&fixture, seconds * 1000 * MS);
			write_one(&fixture, 100, next, false);
			CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), old);
			if (next) {
				if (old)
					th_expect_ack(&fixture, 1, 100, SEQ_NAK);
				th_expect_quiet(&fixture, 1);
				write_one(&fixture, 100, 0, false);
			}
			CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, old ? 101u : next ? 104u : 103u);
			CU_ASSERT_EQUAL(written(&fixture, 1), !old);
			for (unsigned i = 0; i < 4; i++)
				write_one(&fixture, 100, i, false);
			CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 104);
			CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
			th_drain(&fixture, 1);
			th_close(&fixture);
		}
}

/* Without need, each buffer that is begun ends one that is old. */
static void idle__ends_when_another_begins(void)
{
	open_kept(&fixture, 100, 0);
	open_others(&fixture);
	for (unsigned i = 0; i < OTHERS; i++)
		write_to(&fixture, others[i], 102);
	th_drain(&fixture, 1);
	th_sleep(&fixture, 4001 * MS);
	write_one(&fixture, 100, 1, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), 1);
	CU_ASSERT_PTR_NULL(others[0]->resp.reorder);
	CU_ASSERT_PTR_NOT_NULL(others[1]->resp.reorder);
	expect_nak_to(&fixture, 0x10700, 100);
	close_all(&fixture);
}

/* What is too far ahead to be kept begins no buffer, and ends none. */
static void idle__stays_when_none_begins(void)
{
	open_kept(&fixture, 100, 0);
	open_others(&fixture);
	for (unsigned i = 0; i < OTHERS; i++)
		write_to(&fixture, others[i], 102);
	th_drain(&fixture, 1);
	th_sleep(&fixture, 4001 * MS);
	write_one_at(&fixture, 100, UR_REORDER_SPAN, 1, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_IDLE), 0);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	CU_ASSERT_PTR_NOT_NULL(others[0]->resp.reorder);
	th_drain(&fixture, 1);
	close_all(&fixture);
}

void ur_suite_reorder_idle(void)
{
	CU_pSuite s = CU_add_suite("reorder_idle", NULL, NULL);

	CU_ADD_TEST(s, idle__board_is_given_away);
	CU_ADD_TEST(s, idle__copies_are_given_away);
	CU_ADD_TEST(s, idle__ends_by_itself);
	CU_ADD_TEST(s, idle__ends_when_another_begins);
	CU_ADD_TEST(s, idle__stays_when_none_begins);
}
