/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/requester/completer.c: what follows from every answer in every state of the requester, as one table (IBTA volume 1,
 * 9.7.5.2, 9.7.6, 9.7.7 and 9.9.2). Node 0 is the requester and the test its peer; each case has a queue pair of its own.
 */
#include "tp_harness.h"
#include "transport/requester/completer.h"
#include "wire/rnr.h"

#define RNR(timer) (UR_AETH_RNR << 5 | (timer))
#define MTU 1024u
#define FIRST 101u /* PSN of the oldest request in flight: one has been acknowledged before */

enum state { IDLE, DATA, READ, ATOMIC, RNR_WAIT, MIXED, STATES };

static const struct {
	const char *name;
	uint32_t psns; /* in flight */
} states[STATES] = {
	[IDLE] = {"idle", 0},
	[DATA] = {"three SENDs in flight", 3},
	[READ] = {"a READ of three packets in flight", 3},
	[ATOMIC] = {"an atomic in flight", 1},
	[RNR_WAIT] = {"three SENDs wait after an RNR NAK", 3},
	[MIXED] = {"a SEND, a READ of three packets and a SEND in flight", 5},
};

#define NEWEST (-1) /* in place of a distance: of the newest packet in flight, */
#define NEVER (-2)  /* of one that was never sent, */
#define BEFORE (-3) /* of one that is complete already */

/*
 * -  nothing: it is dropped and counted once           W  waits, then sends again from the oldest
 * 1  the oldest request is complete                    I  the oldest fails with REM_INV_REQ_ERR; X REM_ACCESS_ERR; O REM_OP_ERR;
 * c  all are                                           V  REM_INV_RD_REQ_ERR; B BAD_RESP_ERR
 * p  the oldest has made progress                      q  1, and the second one has made progress
 * G  sends again from the oldest                       g  1, and sends again from the second one; b  1, and the second one fails as in B
 */
static const struct row {
	const char *name;
	uint8_t opcode, syndrome;
	uint16_t len;       /* of the payload */
	int at;             /* packets behind the oldest */
	const char *expect; /* one letter for each state */
} rows[] = {
	/*                                                                                 IDLE DATA READ ATOMIC RNR_WAIT MIXED */
	{"ACK of the oldest", UR_OP_ACK, ACK, 0, 0, "-1GG11"},
	{"ACK of the newest", UR_OP_ACK, ACK, 0, NEWEST, "-cGGcg"},
	{"ACK of what was never sent", UR_OP_ACK, ACK, 0, NEVER, "------"},
	{"ACK once more", UR_OP_ACK, ACK, 0, BEFORE, "------"},
	{"NAK, sequence", UR_OP_ACK, SEQ_NAK, 0, 0, "-GGG-G"},
	{"NAK, sequence, once more", UR_OP_ACK, SEQ_NAK, 0, BEFORE, "------"},
	{"NAK, sequence, never sent", UR_OP_ACK, SEQ_NAK, 0, NEVER, "------"},
	{"NAK, invalid request", UR_OP_ACK, NAK(UR_NAK_INV_REQ), 0, 0, "-IIIII"},
	{"NAK, remote access", UR_OP_ACK, NAK(UR_NAK_REM_ACCESS), 0, 0, "-XXXXX"},
	{"NAK, remote operation", UR_OP_ACK, NAK(UR_NAK_REM_OP), 0, 0, "-OOOOO"},
	{"NAK, invalid RD request", UR_OP_ACK, NAK(UR_NAK_INV_RD), 0, 0, "-VVVVV"},
	{"NAK, remote access, never sent", UR_OP_ACK, NAK(UR_NAK_REM_ACCESS), 0, NEVER, "------"},
	{"NAK, remote access, once more", UR_OP_ACK, NAK(UR_NAK_REM_ACCESS), 0, BEFORE, "------"},
	{"NAK, a reserved code", UR_OP_ACK, NAK(5), 0, 0, "------"},
	{"NAK, the last reserved code", UR_OP_ACK, NAK(31), 0, 0, "------"},
	{"RNR NAK", UR_OP_ACK, RNR(1), 0, 0, "-WWW-W"},
	{"RNR NAK, never sent", UR_OP_ACK, RNR(1), 0, NEVER, "------"},
	{"RNR NAK, once more", UR_OP_ACK, RNR(1), 0, BEFORE, "------"},
	{"a reserved syndrome", UR_OP_ACK, 2 << 5, 0, 0, "------"},
	{"READ response, first", UR_OP_READ_RESP_FIRST, ACK, MTU, 0, "--pB--"},
	{"READ response, middle", UR_OP_READ_RESP_MIDDLE, 0, MTU, 0, "--BB--"},
	{"READ response, last", UR_OP_READ_RESP_LAST, ACK, MTU, 0, "--BB--"},
	{"READ response, only", UR_OP_READ_RESP_ONLY, ACK, MTU, 0, "--BB--"},
	{"READ response, short", UR_OP_READ_RESP_FIRST, ACK, MTU - 4, 0, "--BB--"},
	{"READ response, empty", UR_OP_READ_RESP_ONLY, ACK, 0, 0, "--BB--"},
	{"READ response, first, of the second packet", UR_OP_READ_RESP_FIRST, ACK, MTU, 1, "--G--q"},
	{"READ response, middle, of the second packet", UR_OP_READ_RESP_MIDDLE, 0, MTU, 1, "--G--b"},
	{"READ response, never asked for", UR_OP_READ_RESP_MIDDLE, 0, MTU, NEVER, "------"},
	{"READ response, once more", UR_OP_READ_RESP_MIDDLE, 0, MTU, BEFORE, "------"},
	{"atomic answer", UR_OP_ATOMIC_ACK, ACK, 0, 0, "--Bc--"},
	{"atomic answer, never asked for", UR_OP_ATOMIC_ACK, ACK, 0, NEVER, "------"},
	{"atomic answer, once more", UR_OP_ATOMIC_ACK, ACK, 0, BEFORE, "------"},
};

static const struct {
	char letter;
	enum ibv_wc_status status;
	unsigned before; /* requests that succeed before that */
} failures[] = {
	{'I', IBV_WC_REM_INV_REQ_ERR, 0},    {'X', IBV_WC_REM_ACCESS_ERR, 0}, {'O', IBV_WC_REM_OP_ERR, 0},
	{'V', IBV_WC_REM_INV_RD_REQ_ERR, 0}, {'B', IBV_WC_BAD_RESP_ERR, 0},   {'b', IBV_WC_BAD_RESP_ERR, 1},
};

static const struct {
	char letter;
	uint32_t psns; /* acknowledged */
	unsigned done;
	bool again;
} goes_on[] = {
	{'-', 0, 0, false}, {'1', 1, 1, false}, {'p', 1, 0, false}, {'G', 0, 0, true},
	{'W', 0, 0, true},  {'q', 2, 1, false}, {'g', 1, 1, true},
};

/* --- the states --- */

static void post(struct th *h, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)h->n[0].mem, len, h->n[0].mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = op};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)h->n[1].mem;
		wr.wr.atomic.rkey = h->n[1].mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)h->n[1].mem;
		wr.wr.rdma.rkey = h->n[1].mr->rkey;
	}
	CU_ASSERT_EQUAL(th_post_wr(h, 0, &wr), 0);
}

/* Returns how many requests wait for an answer, with wr_id from 0 on. */
static unsigned enter(struct th *h, enum state s)
{
	static const struct {
		unsigned n;
		enum ibv_wr_opcode op[3];
	} flight[STATES] = {
		[DATA] = {3, {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND}},
		[READ] = {1, {IBV_WR_RDMA_READ}},
		[ATOMIC] = {1, {IBV_WR_ATOMIC_FETCH_AND_ADD}},
		[RNR_WAIT] = {3, {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND}},
		[MIXED] = {3, {IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_SEND}},
	};

	post(h, IBV_WR_SEND, 77, 8);
	th_drain(h, 0);
	th_ack(h, 0, FIRST - 1, ACK);
	th_expect_wc(h->n[0].scq, 77, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < flight[s].n; i++)
		post(h, flight[s].op[i], i, flight[s].op[i] == IBV_WR_RDMA_READ ? 3 * MTU : 8);
	th_drain(h, 0);
	if (s == RNR_WAIT)
		th_ack(h, 0, FIRST, RNR(20));
	CU_ASSERT_EQUAL(h->n[0].qp->req.max, FIRST + states[s].psns);
	return flight[s].n;
}

/* --- what follows --- */

static uint64_t dropped(const struct th *h)
{
	const uint64_t *v = h->n[0].c.v;

	return v[UR_C_DROP_RESPONSE] + v[UR_C_DROP_GHOST_ACK];
}

/* True when `letter` stands for a failure, which has then been checked. */
static bool expect_failure(struct th *h, char letter, unsigned requests)
{
	for (unsigned f = 0; f < ur_array_size(failures); f++) {
		if (failures[f].letter != letter)
			continue;
		for (unsigned i = 0; i < requests; i++)
			th_expect_wc(h->n[0].scq, i,
				     i < failures[f].before    ? IBV_WC_SUCCESS
				     : i == failures[f].before ? failures[f].status
							       : IBV_WC_WR_FLUSH_ERR);
		th_expect_no_wc(h->n[0].scq);
		th_expect_quiet(h, 0);
		CU_ASSERT_EQUAL(ur_qp_state(h->n[0].qp), IBV_QPS_ERR);
		CU_ASSERT_EQUAL(h->n[0].nevents, 0); /* the completion tells */
		return true;
	}
	return false;
}

static void expect_again(struct th *h, bool wait)
{
	struct th_pkt p;

	if (wait) {
		th_expect_quiet(h, 0);
		th_sleep(h, ur_rnr_time(1) + 2 * UR_WHEEL_TICK_NS);
	}
	CU_ASSERT_TRUE_FATAL(th_pull(h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, h->n[0].qp->req.una);
}

static void expect_going_on(struct th *h, char letter, enum state s, unsigned requests)
{
	uint32_t psns = states[s].psns;
	unsigned done = requests;
	bool again = false;

	for (unsigned i = 0; i < ur_array_size(goes_on); i++)
		if (goes_on[i].letter == letter) {
			psns = goes_on[i].psns;
			done = goes_on[i].done;
			again = goes_on[i].again;
		}
	for (unsigned i = 0; i < done; i++)
		th_expect_wc(h->n[0].scq, i, IBV_WC_SUCCESS);
	th_expect_no_wc(h->n[0].scq);
	CU_ASSERT_EQUAL(ur_qp_state(h->n[0].qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(h->n[0].qp->req.una, FIRST + psns);
	if (again)
		expect_again(h, letter == 'W');
	else if (s != RNR_WAIT || letter == '-')
		th_expect_quiet(h, 0);
	else if (letter == '1')
		expect_again(h, false); /* the wait is over */
}

static void run(const struct row *r, enum state s)
{
	static uint8_t data[MTU];
	const struct th_hdr ext = {.syndrome = r->syndrome, .original = 5};
	uint32_t psn = FIRST + (uint32_t)r->at;
	struct th_opt o = th_default;
	static struct th h;
	unsigned requests;
	uint64_t before;

	o.sig_all = true;
	o.access = TH_MR_ACCESS;
	th_open(&h, &o);
	requests = enter(&h, s);
	if (r->at == NEWEST)
		psn = FIRST + states[s].psns - 1 + (s == IDLE);
	else if (r->at == NEVER)
		psn = FIRST + states[s].psns;
	else if (r->at == BEFORE)
		psn = FIRST - 1;
	before = dropped(&h);
	th_inject(&h, 0, r->opcode, psn, false, &ext, data, r->len);
	CU_ASSERT_EQUAL(dropped(&h) - before, r->expect[s] == '-');
	if (!expect_failure(&h, r->expect[s], requests))
		expect_going_on(&h, r->expect[s], s, requests);
	th_close(&h);
}

static void rx__every_answer_in_every_state(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		CU_ASSERT_EQUAL_FATAL(strlen(rows[i].expect), STATES);
		for (int s = 0; s < STATES; s++) {
			unsigned failed = CU_get_number_of_failures();

			run(&rows[i], (enum state)s);
			if (CU_get_number_of_failures() != failed)
				printf("\n    %s, %s: expected '%c'", states[s].name, rows[i].name, rows[i].expect[s]);
		}
	}
}

static uint64_t count(const struct th *h, enum ur_counter c)
{
	return h->n[0].c.v[c];
}

/* A receiver that is not ready for long has answered each time: a loss now and then on the way there exhausts no retries. */
static void rnr__reloads_the_retries(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.rnr_retry = 7;
	o.retry_cnt = 2;
	th_open(&h, &o);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	for (unsigned round = 0; round < 20; round++) {
		CU_ASSERT_EQUAL(th_drain(&h, 0), round ? 1 : 2);
		th_ack(&h, 0, 100, SEQ_NAK); /* the first of the two was lost, or what asked */
		CU_ASSERT_EQUAL(th_drain(&h, 0), round ? 1 : 2);
		th_ack(&h, 0, 100, RNR(1));
		th_sleep(&h, 2 * UR_NS_PER_MS);
	}
	CU_ASSERT_EQUAL(count(&h, UR_C_PACKET_SEQ_ERR), 20);
	CU_ASSERT_EQUAL(count(&h, UR_C_RETRY_EXC), 0);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

void ur_suite_completer_table(void);

void ur_suite_completer_table(void)
{
	CU_pSuite s = CU_add_suite("completer_table", NULL, NULL);

	CU_ADD_TEST(s, rx__every_answer_in_every_state);
	CU_ADD_TEST(s, rnr__reloads_the_retries);
}
