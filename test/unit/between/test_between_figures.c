/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the report, each against a truth that the test makes itself, in virtual time. */
#include "between/spread.h"
#include "between_harness.h"
#include "wire/msg/cm_msg.h"

void ur_suite_between_figures(void);

#define ACK UR_OP_ACK
#define US UR_NS_PER_US
#define MS UR_NS_PER_MS

static const struct ur_account *account(void)
{
	return ur_between_account(cable.b);
}

/* Host 10.0.0.1 sends to QP 5, of which the responses go to QP 9. */
static void sends(uint32_t from, uint32_t to)
{
	for (uint32_t psn = from; psn <= to; psn++) {
		cable_pass(0, SEND, 5, psn);
		cable_later(US);
	}
}

static void responds(uint8_t syndrome, uint32_t psn)
{
	const uint8_t aeth[4] = {syndrome};

	cable_frame(1, ACK, 9, psn, 0, aeth, sizeof(aeth));
	cable_later(US);
}

static void naks(uint32_t psn)
{
	responds(ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ), psn);
}

static void acks(uint32_t psn)
{
	responds(0x1f, psn);
}

static const struct ur_account_flow *flow(unsigned end, bool response)
{
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (account()->flows[i].used && account()->flows[i].end == end && account()->flows[i].response == response &&
		    account()->flows[i].dqpn != 1)
			return &account()->flows[i];
	CU_FAIL_FATAL("there is no such flow");
	return NULL;
}

static const struct ur_account_losses *losses(void)
{
	return &flow(0, false)->losses;
}

static bool within_7_percent(ur_time is, ur_time truth)
{
	return is + truth * 7 / 100 >= truth && is <= truth + truth * 7 / 100;
}

static void figures__spread(void)
{
	static struct ur_spread s;

	CU_ASSERT(ur_spread_at(&s, 500) == 0 && ur_spread_at(&s, 1000) == 0);
	for (ur_time base = 1; base < 1ull << 38; base *= 7) {
		memset(&s, 0, sizeof(s));
		for (unsigned i = 1000; i; i--)
			ur_spread_add(&s, base * i);
		CU_ASSERT(s.n == 1000 && s.least == base && s.most == 1000 * base);
		if (base * 1000 >> UR_SPREAD_OCTAVES)
			continue;
		CU_ASSERT_TRUE(within_7_percent(ur_spread_at(&s, 500), 500 * base));
		CU_ASSERT_TRUE(within_7_percent(ur_spread_at(&s, 990), 990 * base));
		CU_ASSERT_EQUAL(ur_spread_at(&s, 1000), 1000 * base);
	}
	memset(&s, 0, sizeof(s));
	ur_spread_add(&s, UR_TIME_NEVER);
	ur_spread_add(&s, 0);
	CU_ASSERT(s.least == 0 && s.most == UR_TIME_NEVER && ur_spread_at(&s, 500) == 0 && ur_spread_at(&s, 990) == UR_TIME_NEVER);
}

/* A hundred losses: each is told of 3 us and repaired 10 us after that; the last one takes longer. More than the list has room for. */
static void figures__repairs(void)
{
	const unsigned n = UR_ACCOUNT_EVENTS + 100;
	const struct ur_account_losses *l;

	cable_open("drop tx iteration=1", NULL);
	acks(99);
	for (unsigned i = 0; i < n; i++) {
		cable_pass(0, SEND, 5, 100 + i);
		cable_later(3 * US);
		naks(100 + i);
		cable_later((i == n - 1 ? 90 : 10) * US - US);
		cable_pass(0, SEND, 5, 100 + i);
		cable_later(US);
	}
	l = losses();
	CU_ASSERT(account()->unlisted == 100 && account()->unfollowed == 0);
	CU_ASSERT(l->told[UR_TOLD_NAK] == n && l->manner[UR_MANNER_ALONE] == n && l->manner[UR_MANNER_OPEN] == 0);
	CU_ASSERT(l->to_told.n == n && l->to_told.least == 3 * US && l->to_told.most == 3 * US && ur_spread_at(&l->to_told, 500) == 3 * US);
	CU_ASSERT(l->to_again.n == n && l->to_again.least == 10 * US && l->to_again.most == 90 * US);
	CU_ASSERT_TRUE(within_7_percent(ur_spread_at(&l->to_again, 500), 10 * US));
	CU_ASSERT_TRUE(within_7_percent(ur_spread_at(&l->to_again, 990), 10 * US));
	CU_ASSERT(l->untold.n == 0 && flow(0, false)->waits.unprompted == 0);
	cable_close();
}

/* One packet follows the lost one. What comes right behind the repetition tells, even if the acknowledgement overtakes it at the cable. */
static void figures__one_followed(void)
{
	for (unsigned early_ack = 0; early_ack < 2; early_ack++) {
		cable_open("drop tx psn=102 iteration=1", NULL);
		sends(100, 103);
		naks(102);
		cable_later(10 * US);
		cable_pass(0, SEND, 5, 102);
		if (early_ack) {
			acks(103);
			CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_SELECTIVE], 1);
		}
		cable_pass(0, SEND, 5, 103);
		CU_ASSERT(account()->events[0].manner == UR_MANNER_GO_BACK_N && account()->nopen == 0);
		CU_ASSERT(losses()->manner[UR_MANNER_GO_BACK_N] == 1 && losses()->manner[UR_MANNER_SELECTIVE] == 0);
		cable_close();
	}
}

/* What was lost as well, or asks for an acknowledgement, is no going back. */
static void figures__no_going_back(void)
{
	cable_open("drop tx psn=102 iteration=1,drop tx psn=103 iteration=1", NULL);
	sends(100, 105);
	naks(102);
	sends(102, 103); /* which are the lost ones */
	CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_OPEN], 2);
	cable_later(50 * US);
	sends(105, 105); /* a probe: much later, and not the next one */
	CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_OPEN], 2);
	acks(105);
	CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_SELECTIVE], 2);
	sends(106, 106);
	CU_ASSERT(losses()->manner[UR_MANNER_SELECTIVE] == 2 && account()->nopen == 0);
	cable_close();
	/* the only one that followed is a probe */
	cable_open("drop tx psn=102 iteration=1", NULL);
	sends(100, 103);
	naks(102);
	sends(102, 102);
	cable_later(50 * US);
	sends(103, 103);
	acks(103);
	CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_SELECTIVE], 1);
	cable_close();
	/* a probe of several packets, right behind what was lost */
	cable_open("drop tx psn=102 iteration=1,drop tx psn=104 iteration=1", NULL);
	sends(100, 110);
	naks(102);
	cable_later(50 * US);
	sends(102, 102);
	sends(104, 104);
	sends(108, 110);
	CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_OPEN], 2);
	acks(110);
	CU_ASSERT_EQUAL(losses()->manner[UR_MANNER_SELECTIVE], 2);
	cable_close();
	/* all that followed was lost, too: there is nothing to tell */
	cable_open("drop tx psn=102 iteration=1,drop tx psn=103 iteration=1", NULL);
	sends(100, 103);
	sends(102, 104);
	CU_ASSERT(losses()->manner[UR_MANNER_ALONE] == 2 && losses()->told[UR_TOLD_NOT] == 2 && losses()->untold.n == 2);
	CU_ASSERT(losses()->untold.least == 2 * US && losses()->untold.most == 2 * US);
	cable_close();
}

/* The timer waits for 4 ms, and twice as long each time. */
static void figures__backoff(void)
{
	const struct ur_account_waits *v;

	cable_open("", NULL);
	sends(100, 105);
	acks(101);
	cable_later(4 * MS - 2 * US);
	for (unsigned i = 1; i <= 4; i++) {
		sends(102, 105);
		cable_later((4 << i) * MS - 4 * US);
	}
	v = &flow(0, false)->waits;
	CU_ASSERT(v->unprompted == 4 && v->longest.psn == 102 && v->longest.n == 4 && v->now.n == 4);
	CU_ASSERT(v->longest.first == 4 * MS && v->longest.last == 32 * MS);
	CU_ASSERT(v->probes == 0 && v->timers == 0); /* the timer is not known */
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now), UR_ENDING_OPEN);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now + 200 * MS), UR_ENDING_RETRIES);
	acks(102);
	CU_ASSERT(v->now.n == 0 && v->longest.n == 4);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now + 200 * MS), UR_ENDING_OPEN);
	sends(105, 105); /* not the oldest one */
	CU_ASSERT(v->unprompted == 5 && v->probes == 1);
	acks(105);
	sends(106, 106);
	sends(106, 106); /* which is */
	CU_ASSERT(v->unprompted == 6 && v->probes == 1 && v->longest.n == 4);
	cable_close();
}

/* A probe of several copies is one repetition: what follows directly, much sooner than the sender waited before, is no wait of its own. */
static void figures__copies(void)
{
	for (unsigned newest = 101; newest <= 102; newest++) {
		const struct ur_account_waits *v;

		cable_open("", NULL);
		sends(100, newest);
		acks(100);
		cable_later(10 * MS);
		sends(101, newest);
		cable_later(20 * MS);
		sends(101, newest);
		for (unsigned i = 1; i < 16; i++)
			sends(newest, newest);
		v = &flow(0, false)->waits;
		CU_ASSERT(v->unprompted == 2 && v->longest.psn == 101 && v->longest.n == 2 && v->longest.last > 19 * MS);
		CU_ASSERT(v->vain.n == (newest == 101 ? 17 : 2) && v->vain.last > 19 * MS);
		CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now + MS), UR_ENDING_OPEN);
		CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now + 90 * MS), UR_ENDING_RETRIES);
		cable_later(40 * MS);
		sends(101, newest); /* and another one */
		CU_ASSERT(v->unprompted == 3 && v->longest.n == 3 && v->longest.last > 39 * MS);
		acks(newest);
		cable_close();
	}
	cable_open("", NULL); /* not so what an RNR NAK has asked for */
	sends(100, 100);
	responds(ur_syndrome(UR_AETH_RNR, 12), 100);
	cable_later(699 * US);
	sends(100, 100);
	responds(ur_syndrome(UR_AETH_RNR, 1), 100);
	cable_later(4 * US);
	sends(100, 100);
	CU_ASSERT(flow(0, false)->waits.rnr.early == 1 && flow(0, false)->waits.rnr.waited.n == 2);
	cable_close();
}

/* A SACK asks for two packets, between which new ones come. The second is lost again: its timer has to expire. */
static void figures__asked_by_sack(void)
{
	const struct ur_account_waits *v;
	uint8_t ext[16 + 8] = {0};

	cable_open("drop tx psn=102 iteration=1,drop tx psn=104 times=2", NULL);
	sends(100, 107);
	ur_sack_put(ext + 4, &(struct ur_sack){.expected = 102, .base = 102, .n = 64, .bits = {0x3a}});
	cable_frame(1, UR_OP_SACK, 9, 101, 0, ext, sizeof(ext));
	sends(102, 102);
	sends(108, 109);
	sends(104, 104);
	sends(110, 110);
	v = &flow(0, false)->waits;
	CU_ASSERT(v->unprompted == 0 && v->upto == 101);
	cable_later(MS);
	sends(104, 104);
	CU_ASSERT(v->unprompted == 1 && v->longest.psn == 104 && v->longest.first == MS + US);
	sends(111, 111);
	CU_ASSERT(losses()->manner[UR_MANNER_SELECTIVE] == 2 && losses()->manner[UR_MANNER_LOST] == 1 && losses()->told[UR_TOLD_SACK] == 2);
	cable_close();
}

static void figures__not_ready(void)
{
	const struct ur_account_rnr *r;

	cable_open("", NULL);
	sends(100, 101);
	responds(ur_syndrome(UR_AETH_RNR, 12), 100); /* 640 us */
	cable_later(699 * US);
	sends(100, 101);
	responds(ur_syndrome(UR_AETH_RNR, 1), 100); /* 10 us */
	cable_later(4 * US);
	sends(100, 101);
	acks(101);
	r = &flow(0, false)->waits.rnr;
	CU_ASSERT(r->n == 2 && r->shortest == 10 * US && r->longest == 640 * US && r->early == 1 && !r->waits);
	CU_ASSERT(r->waited.n == 2 && r->waited.least == 5 * US && r->waited.most == 700 * US);
	CU_ASSERT(flow(0, false)->waits.unprompted == 0 && flow(1, true)->naks == 0);
	responds(ur_syndrome(UR_AETH_RNR, 1), 101);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now + 10 * US), UR_ENDING_OPEN);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now + 50 * US), UR_ENDING_RNR);
	cable_close();
}

static void figures__refused(void)
{
	const struct ur_account_waits *v;

	cable_open("", NULL);
	sends(100, 103);
	naks(101);
	responds(ur_syndrome(UR_AETH_NAK, UR_NAK_REM_OP), 102);
	responds(ur_syndrome(UR_AETH_NAK, UR_NAK_INV_REQ), 103);
	responds(ur_syndrome(UR_AETH_NAK, 31), 103); /* reserved */
	v = &flow(0, false)->waits;
	CU_ASSERT(v->nak[UR_NAK_PSN_SEQ] == 1 && v->nak[UR_NAK_REM_OP] == 1 && v->nak[UR_NAK_INV_REQ] == 1 &&
		  v->nak[UR_NAK_REM_ACCESS] == 0);
	CU_ASSERT(v->refused && v->kind == UR_NAK_REM_OP && v->refused_psn == 102);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now), UR_ENDING_REFUSED);
	cable_close();
}

/* --- congestion --- */

static void cnp(void)
{
	cable_frame(1, UR_OP_CNP, 9, 0, 0, NULL, 0);
}

static void figures__marks(void)
{
	const struct ur_account_marks *m;

	cable_open("mark tx psn=102", NULL);
	sends(100, 101);
	acks(101);
	cable_frame(0, SEND, 5, 102, 2, NULL, 0); /* marked here, */
	cable_later(5 * US);
	cable_frame(0, SEND, 5, 103, 3, NULL, 0); /* and before */
	cable_later(2 * US);
	cnp();
	cable_later(50 * US);
	cnp();
	cable_later(30 * US);
	cnp();
	m = &flow(0, false)->marks;
	CU_ASSERT(m->came == 1 && flow(0, false)->did[5] == 1 && m->cnps == 3 && m->cnp_gap == 30 * US && flow(1, true)->cnps == 3);
	CU_ASSERT(m->to_cnp.n == 1 && m->to_cnp.most == 7 * US && !m->pending);
	CU_ASSERT(m->by_mark.n == 0 && !m->by_mark.open); /* the flow has not been there for so long */
	cable_close();
}

/* 118 bytes each 10 us, and after the CNP each 40 us; the host of a pause frame is sent less, too. */
static void figures__speeds(void)
{
	const uint8_t extra[UR_BETWEEN_EXTRA] = {0};
	uint8_t pause[60] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 1, 1};
	const struct ur_speed_change *c;
	uint32_t psn = 0;

	cable_open("", NULL);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 500; i++, cable_later(10 * US))
			cable_pass(0, SEND, 5, psn++);
		acks(psn - 1);
		cnp();
		ur_between_in(cable.b, cable.now, 1, pause, sizeof(pause), extra);
		for (unsigned i = 0; i < 125; i++, cable_later(40 * US))
			cable_pass(0, SEND, 5, psn++);
	}
	c = &flow(0, false)->marks.by_cnp;
	CU_ASSERT(c->n == 3 && within_7_percent(c->before / 3, UR_SPEED_WINDOW / (10 * US) * 118));
	CU_ASSERT_TRUE(within_7_percent(c->after / 3, UR_SPEED_WINDOW / (40 * US) * 118));
	c = &account()->pauses[1].by_pause;
	CU_ASSERT(account()->pauses[1].n == 3 && account()->pauses[0].n == 0 && c->n == 3);
	CU_ASSERT_TRUE(within_7_percent(c->before / 3, UR_SPEED_WINDOW / (10 * US) * 118));
	CU_ASSERT_TRUE(within_7_percent(c->after / 3, UR_SPEED_WINDOW / (40 * US) * 118));
	cable_close();
}

/* Nobody looks until 12 us after the time. */
static void figures__late(void)
{
	const struct ur_between_limit limit = {.rate = 100000000, .queue = 100000};

	cable_open("delay tx psn=0 delay=30us,delay tx psn=1 delay=50us,reorder tx psn=2", NULL);
	for (unsigned i = 0; i < 3; i++)
		cable_pass(0, SEND, 5, i);
	cable_later(42 * US);
	cable_later(88 * US);
	cable_later(10 * MS);
	CU_ASSERT(cable.n == 3 && account()->late[0].n == 2 && account()->late[0].least == 12 * US && account()->late[0].most == 80 * US);
	CU_ASSERT_EQUAL(account()->late[1].n, 0);
	cable_limit(&limit);
	cable_pass(0, SEND, 5, 3); /* 118 bytes take 9.44 us */
	cable_later(10 * US);
	CU_ASSERT(account()->late[1].n == 1 && account()->late[1].most == 560 && account()->late[0].n == 2);
	cable_close();
}

/* --- connections --- */

static void cm(unsigned end, struct ur_cm_msg m)
{
	uint8_t ext[8 + UR_MAD_LEN] = {0};

	CU_ASSERT_TRUE_FATAL(ur_cm_msg_build(ext + 8, &m));
	cable_frame(end, UR_UD | UR_OP_SEND_ONLY, 1, 0, 0, ext, sizeof(ext));
	cable_later(US);
}

/* QP 9 of 10.0.0.1 and QP 5 of 10.0.0.2, with an ACK timeout of 4.096 us * 2^10. */
static void connects(void)
{
	cm(0, (struct ur_cm_msg){.attr = UR_CM_REQ,
				 .req = {.local_comm_id = 77, .local_qpn = 9, .primary.ack_timeout = 10, .retry_count = 7}});
	cm(1, (struct ur_cm_msg){.attr = UR_CM_REP, .rep = {.local_comm_id = 88, .remote_comm_id = 77, .local_qpn = 5}});
}

static void figures__connections(void)
{
	const struct ur_account_connection *c = NULL;
	const struct ur_account_waits *v;

	cable_open("", NULL);
	connects();
	connects(); /* repeated */
	sends(100, 101);
	cable_pass(0, SEND, 6, 101); /* to another QP, whose PSNs are close: only the connection tells */
	acks(101);
	for (unsigned i = 0; i < UR_ACCOUNT_CONNECTIONS; i++)
		c = account()->connections.c[i].used ? &account()->connections.c[i] : c;
	CU_ASSERT(account()->connections.number == 1 && c->by == UR_KNOWN_BY_CM && c->state == UR_CONNECTION_STANDS);
	CU_ASSERT(c->side[0].qpn == 9 && c->side[1].qpn == 5 && c->ack_timeout == 10 && c->retries == 7);
	CU_ASSERT(&account()->flows[flow(1, true)->partner] == flow(0, false) && flow(0, false)->dqpn == 5);
	CU_ASSERT(flow(0, false)->connection >= 0 && flow(1, true)->connection == flow(0, false)->connection);
	v = &flow(0, false)->waits;
	cable_later(MS);
	sends(101, 101); /* sooner than the timer */
	sends(102, 102);
	cable_later(5 * MS);
	sends(102, 102);
	CU_ASSERT(v->unprompted == 2 && v->probes == 1 && v->timers == 1);
	cm(0, (struct ur_cm_msg){.attr = UR_CM_DREQ, .dreq = {.local_comm_id = 77, .remote_comm_id = 88, .remote_qpn = 5}});
	CU_ASSERT(c->state == UR_CONNECTION_CLOSED && c->ended_by == 0);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now), UR_ENDING_RETRIES); /* 102 had no answer */
	acks(102);
	CU_ASSERT_EQUAL(ur_account_ending(account(), flow(0, false), cable.now), UR_ENDING_CLOSED);
	cable_close();
}

/* Both hosts ask at a time, and one of them once more. */
static void figures__requests_cross(void)
{
	const struct ur_account_connection *c;

	cable_open("", NULL);
	c = account()->connections.c;
	cm(1, (struct ur_cm_msg){.attr = UR_CM_REQ, .req = {.local_comm_id = 7, .local_qpn = 4}});
	cm(0, (struct ur_cm_msg){.attr = UR_CM_REQ, .req = {.local_comm_id = 77, .local_qpn = 9}});
	cm(1, (struct ur_cm_msg){.attr = UR_CM_REQ, .req = {.local_comm_id = 7, .local_qpn = 4}});
	CU_ASSERT_EQUAL(account()->connections.number, 2);
	cm(0, (struct ur_cm_msg){.attr = UR_CM_REP, .rep = {.local_comm_id = 78, .remote_comm_id = 7, .local_qpn = 10}});
	cm(1, (struct ur_cm_msg){.attr = UR_CM_REP, .rep = {.local_comm_id = 8, .remote_comm_id = 77, .local_qpn = 5}});
	CU_ASSERT(c[0].state == UR_CONNECTION_STANDS && c[0].side[0].qpn == 4 && c[0].side[1].qpn == 10);
	CU_ASSERT(c[1].state == UR_CONNECTION_STANDS && c[1].side[0].qpn == 9 && c[1].side[1].qpn == 5);
	cable_close();
}

static void figures__rejected(void)
{
	cable_open("", NULL);
	cm(0, (struct ur_cm_msg){.attr = UR_CM_REQ, .req = {.local_comm_id = 77, .local_qpn = 9}});
	cm(1, (struct ur_cm_msg){.attr = UR_CM_REJ, .rej = {.remote_comm_id = 77, .reason = UR_CM_REJ_INVALID_SERVICE_ID}});
	CU_ASSERT(account()->connections.rejected == 1 && account()->connections.c[0].state == UR_CONNECTION_REJECTED);
	CU_ASSERT(account()->connections.c[0].reason == UR_CM_REJ_INVALID_SERVICE_ID && account()->connections.c[0].ended_by == 1);
	for (unsigned i = 0; i < 3 * UR_ACCOUNT_CONNECTIONS; i++)
		cm(0, (struct ur_cm_msg){.attr = UR_CM_REQ, .req = {.local_comm_id = 100 + i, .local_qpn = 9}});
	CU_ASSERT_EQUAL(account()->connections.replaced, 2 * UR_ACCOUNT_CONNECTIONS + 1);
	cable_close();
}

void ur_suite_between_figures(void)
{
	CU_pSuite s = CU_add_suite("between_figures", NULL, NULL);

	CU_ADD_TEST(s, figures__spread);
	CU_ADD_TEST(s, figures__repairs);
	CU_ADD_TEST(s, figures__one_followed);
	CU_ADD_TEST(s, figures__no_going_back);
	CU_ADD_TEST(s, figures__backoff);
	CU_ADD_TEST(s, figures__copies);
	CU_ADD_TEST(s, figures__asked_by_sack);
	CU_ADD_TEST(s, figures__not_ready);
	CU_ADD_TEST(s, figures__refused);
	CU_ADD_TEST(s, figures__marks);
	CU_ADD_TEST(s, figures__speeds);
	CU_ADD_TEST(s, figures__late);
	CU_ADD_TEST(s, figures__connections);
	CU_ADD_TEST(s, figures__requests_cross);
	CU_ADD_TEST(s, figures__rejected);
}
