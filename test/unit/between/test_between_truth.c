/* SPDX-License-Identifier: BSD-3-Clause */
/* What a cable says of two NICs that it joins, against what the NICs count. */
#include "through_cable.h"

void ur_suite_between_truth(void);

#define LONG 65536
#define US UR_NS_PER_US
#define MS UR_NS_PER_MS

static struct through t;

static const struct through_opt own = {.delay = 5 * US, .mbps = 10000, .timeout = 12, .rnr_timer = 12};
static const struct through_opt other = {.standard = true, .delay = 5 * US, .mbps = 10000, .timeout = 12, .rnr_timer = 12};

static const struct ur_account *account(void)
{
	return ur_between_account(t.b);
}

static uint64_t losses(const struct ur_account_losses *l)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < UR_MANNERS; i++)
		n += l->manner[i];
	return n;
}

/* So many messages of host 0, one each `gap`; all succeed. */
static void move_slowly(enum ibv_wr_opcode op, uint32_t len, unsigned n, ur_time gap)
{
	for (unsigned i = 0; i < n; i++) {
		through_post(&t, 0, op, len, false);
		through_run(&t, gap);
	}
	through_run(&t, UR_NS_PER_S);
	CU_ASSERT(t.host[0].done == n && !t.host[0].status);
}

static void move(enum ibv_wr_opcode op, uint32_t len, unsigned n)
{
	move_slowly(op, len, n, 20 * US);
}

/* Without faults nothing is said to be wrong. */
static void truth__nothing(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &own);
	move(IBV_WR_RDMA_WRITE, LONG, 20);
	w = through_flow(&t, 0, false);
	CU_ASSERT(w->packets == 20 * 64 && !w->repeats && !w->waits.unprompted && !losses(&w->losses) && w->partner >= 0);
	CU_ASSERT(through_flow(&t, 1, true)->naks == 0 && account()->late[0].n == 0);
	CU_ASSERT(ur_account_ending(account(), w, t.now) == UR_ENDING_OPEN);
	through_close(&t);
}

/* A uroce host repeats what is missing, and nothing else. */
static void truth__selective(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &own);
	through_rule(&t, "drop tx opcode=WRITE_MIDDLE iteration=1 chance=2%");
	move(IBV_WR_RDMA_WRITE, LONG, 100);
	w = through_flow(&t, 0, false);
	CU_ASSERT(losses(&w->losses) == ur_between_rule(t.b, 0)->row.hits && losses(&w->losses) > 50);
	CU_ASSERT(w->losses.manner[UR_MANNER_SELECTIVE] > 50 && w->losses.manner[UR_MANNER_GO_BACK_N] == 0);
	CU_ASSERT_EQUAL(w->losses.manner[UR_MANNER_OPEN], 0);
	CU_ASSERT_EQUAL(w->repeats, through_count(&t, 0, UR_C_RETRANSMIT));
	CU_ASSERT_EQUAL(through_flow(&t, 1, true)->naks, through_count(&t, 1, UR_C_SACK_SENT) + through_count(&t, 0, UR_C_PACKET_SEQ_ERR));
	CU_ASSERT(through_count(&t, 0, UR_C_ACK_TIMEOUT) == 0 && through_count(&t, 0, UR_C_PROBE) == 0 && w->waits.unprompted == 0);
	/* the receiver's answer takes 5 us to the cable, and so does the repetition; the packet behind the lost one takes 0.9 us */
	CU_ASSERT(w->losses.to_told.least >= 5 * US && ur_spread_at(&w->losses.to_told, 500) < 7 * US);
	CU_ASSERT(w->losses.to_again.least >= 5 * US && w->losses.to_again.n == losses(&w->losses) - w->losses.told[UR_TOLD_NOT]);
	through_close(&t);
}

/* A host other than uroce goes back, whatever was lost. */
static void truth__go_back_n(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &other);
	through_rule(&t, "drop tx opcode=WRITE_MIDDLE iteration=1 chance=1%");
	move(IBV_WR_RDMA_WRITE, LONG, 100);
	w = through_flow(&t, 0, false);
	CU_ASSERT(losses(&w->losses) == ur_between_rule(t.b, 0)->row.hits && losses(&w->losses) > 25);
	CU_ASSERT(w->losses.manner[UR_MANNER_GO_BACK_N] > 25 && w->losses.manner[UR_MANNER_SELECTIVE] == 0);
	CU_ASSERT_EQUAL(w->repeats, through_count(&t, 0, UR_C_RETRANSMIT));
	CU_ASSERT_EQUAL(through_flow(&t, 1, true)->naks, through_count(&t, 0, UR_C_PACKET_SEQ_ERR));
	CU_ASSERT(w->needless > 0 && w->waits.unprompted == through_count(&t, 0, UR_C_ACK_TIMEOUT));
	through_close(&t);
}

/* One packet follows the loss, and nothing else is ever sent: the NAK makes one host send both again, and the other only the lost one. */
static void truth__one_followed(void)
{
	const struct through_opt *const opt[] = {&other, &own};
	static const enum ur_account_manner manner[] = {UR_MANNER_GO_BACK_N, UR_MANNER_SELECTIVE};

	for (unsigned i = 0; i < 2; i++) {
		through_open(&t, opt[i]);
		through_rule(&t, "drop tx opcode=WRITE_MIDDLE nth=1 iteration=1");
		move(IBV_WR_RDMA_WRITE, 3 * 1024, 1);
		CU_ASSERT_FATAL(account()->nevents == 1);
		CU_ASSERT_EQUAL(account()->events[0].manner, manner[i]);
		CU_ASSERT_EQUAL(through_flow(&t, 0, false)->repeats, i ? 1 : 2);
		CU_ASSERT_EQUAL(through_flow(&t, 0, false)->losses.manner[manner[i]], 1);
		through_close(&t);
	}
}

/* The last packet: the timer of a host other than uroce expires once. */
static void truth__timer(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &other);
	through_rule(&t, "drop tx opcode=WRITE_LAST msg=5 times=3");
	move(IBV_WR_RDMA_WRITE, 3 * 1024, 5);
	w = through_flow(&t, 0, false);
	CU_ASSERT_EQUAL(w->waits.unprompted, through_count(&t, 0, UR_C_ACK_TIMEOUT));
	/* first the whole message, then what is left of it, twice: each after 4.096 us * 2^12 */
	CU_ASSERT(w->waits.unprompted == 3 && w->waits.longest.n == 2);
	CU_ASSERT(w->waits.longest.first >= 4096 << 12 && w->waits.longest.last == 4096 << 12);
	CU_ASSERT_EQUAL(w->repeats, through_count(&t, 0, UR_C_RETRANSMIT));
	through_close(&t);
}

/* A uroce host is told each time that the packet is missing, and gives up after some time. */
static void truth__in_vain(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &own);
	through_rule(&t, "drop tx opcode=WRITE_MIDDLE psn=1001");
	through_post(&t, 0, IBV_WR_RDMA_WRITE, 4 * 1024, false);
	through_run(&t, 10 * UR_NS_PER_S);
	w = through_flow(&t, 0, false);
	CU_ASSERT(t.host[0].done == 1 && t.host[0].status == IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT(w->waits.vain.psn == 1001 && w->waits.vain.n + 1 == ur_between_rule(t.b, 0)->row.hits && w->waits.vain.n >= 4);
	CU_ASSERT_EQUAL(ur_account_ending(account(), w, t.now), UR_ENDING_RETRIES);
	through_close(&t);
}

/* A cut cable: as many repetitions as the QP may make, and then silence. */
static void truth__retries(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &other);
	through_rule(&t, "drop tx opcode=WRITE_ONLY");
	through_post(&t, 0, IBV_WR_RDMA_WRITE, 64, false);
	through_post(&t, 1, IBV_WR_RDMA_WRITE, 64, false);
	through_run(&t, 10 * UR_NS_PER_S);
	w = through_flow(&t, 0, false);
	CU_ASSERT(t.host[0].done == 1 && t.host[0].status == IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(w->packets, 1 + through_count(&t, 0, UR_C_RETRANSMIT));
	CU_ASSERT(w->waits.now.n == through_count(&t, 0, UR_C_RETRANSMIT) && w->waits.now.n >= 4);
	CU_ASSERT_EQUAL(ur_account_ending(account(), w, t.now), UR_ENDING_RETRIES);
	CU_ASSERT_EQUAL(ur_account_ending(account(), through_flow(&t, 1, false), t.now), UR_ENDING_OPEN);
	through_close(&t);
}

static void truth__refused(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &own);
	through_post(&t, 0, IBV_WR_RDMA_WRITE, 64, false);
	through_post(&t, 0, IBV_WR_RDMA_WRITE, 64, true);
	through_run(&t, UR_NS_PER_S);
	w = through_flow(&t, 0, false);
	CU_ASSERT(t.host[0].status == IBV_WC_REM_ACCESS_ERR && through_count(&t, 1, UR_C_REMOTE_ACCESS) == 1);
	CU_ASSERT(w->waits.refused && w->waits.kind == UR_NAK_REM_ACCESS && w->waits.refused_psn == 1001);
	CU_ASSERT_EQUAL(ur_account_ending(account(), w, t.now), UR_ENDING_REFUSED);
	through_close(&t);
}

/* Timer 12 is 0.64 ms. The receive comes after the second wait; another SEND never finds one. */
static void truth__not_ready(void)
{
	const struct ur_account_flow *w;

	through_open(&t, &own);
	through_post(&t, 0, IBV_WR_SEND, 64, false);
	through_run(&t, MS);
	through_recv(&t, 1);
	through_run(&t, 100 * MS);
	w = through_flow(&t, 0, false);
	CU_ASSERT(t.host[0].done == 1 && !t.host[0].status);
	CU_ASSERT(w->waits.rnr.n == through_count(&t, 1, UR_C_RNR_NAK_SENT) && w->waits.rnr.n == 2);
	CU_ASSERT(w->waits.rnr.shortest == 640 * US && w->waits.rnr.longest == 640 * US && w->waits.rnr.early == 0);
	CU_ASSERT(w->waits.rnr.waited.n == 2 && w->waits.rnr.waited.least >= 640 * US && w->waits.rnr.waited.most < 1300 * US);
	CU_ASSERT(w->waits.unprompted == 0 && ur_account_ending(account(), w, t.now) == UR_ENDING_OPEN);
	through_post(&t, 0, IBV_WR_SEND, 64, false);
	through_run(&t, UR_NS_PER_S);
	CU_ASSERT(t.host[0].status == IBV_WC_RNR_RETRY_EXC_ERR && w->waits.rnr.n == through_count(&t, 1, UR_C_RNR_NAK_SENT));
	CU_ASSERT_EQUAL(ur_account_ending(account(), w, t.now), UR_ENDING_RNR);
	through_close(&t);
}

/* Marks make the receiver send CNPs, and these the sender slower. */
static void truth__congestion(void)
{
	const struct through_opt opt = {.cc = true, .delay = 5 * US, .mbps = 10000, .timeout = 14};
	const struct ur_account_flow *w;
	const struct ur_account_marks *m;

	through_open(&t, &opt);
	for (unsigned i = 0; i < 500; i++)
		through_post(&t, 0, IBV_WR_RDMA_WRITE, LONG, false);
	through_run(&t, 3 * MS);
	through_rule(&t, "mark tx opcode=WRITE_MIDDLE");
	through_run(&t, 20 * MS);
	w = through_flow(&t, 0, false);
	m = &w->marks;
	CU_ASSERT(w->did[5] == through_count(&t, 1, UR_C_CE_MARKED) && w->did[5] > 100 && m->came == 0);
	CU_ASSERT(m->cnps > 10 && m->cnps == through_count(&t, 1, UR_C_CNP_SENT) && m->cnps == through_count(&t, 0, UR_C_CNP_HANDLED));
	CU_ASSERT(m->to_cnp.n > 0 && m->to_cnp.least >= 5 * US && m->cnp_gap > 0);
	CU_ASSERT(m->by_mark.n > 0 && m->by_cnp.n > 0 && m->by_cnp.after < m->by_cnp.before);
	CU_ASSERT_EQUAL(through_flow(&t, 1, true)->cnps, m->cnps);
	through_close(&t);
}

/* READ responses that are lost are asked for again. */
static void truth__reads(void)
{
	const struct through_opt *const opt[] = {&other, &own};

	for (unsigned i = 0; i < 2; i++) {
		const struct ur_account_flow *w;

		through_open(&t, opt[i]);
		through_rule(&t, "drop rx opcode=READ_RESP_MIDDLE iteration=1 chance=2%");
		move_slowly(IBV_WR_RDMA_READ, LONG, 50, MS);
		w = through_flow(&t, 1, true);
		CU_ASSERT(losses(&w->losses) == ur_between_rule(t.b, 0)->row.hits && losses(&w->losses) > 20);
		CU_ASSERT(w->losses.told[UR_TOLD_ASKED] > 20);
		CU_ASSERT(w->losses.manner[i ? UR_MANNER_SELECTIVE : UR_MANNER_GO_BACK_N] > losses(&w->losses) / 2);
		CU_ASSERT(w->losses.manner[i ? UR_MANNER_GO_BACK_N : UR_MANNER_SELECTIVE] == 0 && w->losses.manner[UR_MANNER_OPEN] == 0);
		through_close(&t);
	}
}

void ur_suite_between_truth(void)
{
	CU_pSuite s = CU_add_suite("between_truth", NULL, NULL);

	CU_ADD_TEST(s, truth__nothing);
	CU_ADD_TEST(s, truth__selective);
	CU_ADD_TEST(s, truth__go_back_n);
	CU_ADD_TEST(s, truth__one_followed);
	CU_ADD_TEST(s, truth__timer);
	CU_ADD_TEST(s, truth__in_vain);
	CU_ADD_TEST(s, truth__retries);
	CU_ADD_TEST(s, truth__refused);
	CU_ADD_TEST(s, truth__not_ready);
	CU_ADD_TEST(s, truth__congestion);
	CU_ADD_TEST(s, truth__reads);
}
