/* SPDX-License-Identifier: BSD-3-Clause */
/* What a cable says of losses: who was told when, when the packet came again, and what came with it. */
#include "between_harness.h"

void ur_suite_between_account(void);

#define ACK UR_OP_ACK
#define US UR_NS_PER_US

static const struct ur_account *account(void)
{
	return ur_between_account(cable.b);
}

static const struct ur_account_event *event(unsigned i)
{
	CU_ASSERT_FATAL(i < account()->nevents);
	return &account()->events[i];
}

/* Host 10.0.0.1 sends to QP 5, of which the responses go to QP 9. */
static void sends(uint32_t from, uint32_t to)
{
	for (uint32_t psn = from; psn <= to; psn++) {
		cable_pass(0, SEND, 5, psn);
		cable_later(US);
	}
}

static void responds(uint8_t opcode, uint8_t syndrome, uint32_t psn)
{
	const uint8_t aeth[4] = {syndrome};

	cable_frame(1, opcode, 9, psn, 0, aeth, sizeof(aeth));
	cable_later(US);
}

static void naks(uint32_t psn)
{
	responds(ACK, ur_syndrome(UR_AETH_NAK, UR_NAK_PSN_SEQ), psn);
}

static void acks(uint32_t psn)
{
	responds(ACK, 0x1f, psn);
}

/* The flow of requests, or of responses, that came in at an end. */
static const struct ur_account_flow *flow(unsigned end, bool response)
{
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		if (account()->flows[i].used && account()->flows[i].end == end && account()->flows[i].response == response)
			return &account()->flows[i];
	CU_FAIL_FATAL("there is no such flow");
	return NULL;
}

static void account__go_back_n(void)
{
	cable_open("drop tx psn=102 iteration=1", NULL);
	acks(99);
	sends(100, 105);
	naks(102);
	cable_later(10 * US);
	sends(102, 106);
	acks(106);
	CU_ASSERT_EQUAL(account()->nevents, 1);
	CU_ASSERT(event(0)->psn == 102 && event(0)->dqpn == 5 && event(0)->did == UR_DID_DROP && event(0)->rule == 1 && event(0)->msg == 3);
	CU_ASSERT(event(0)->told == UR_TOLD_NAK && event(0)->told_at - event(0)->when == 4 * US);
	CU_ASSERT(event(0)->manner == UR_MANNER_GO_BACK_N && event(0)->again_at - event(0)->told_at == 11 * US);
	CU_ASSERT(flow(0, false)->packets == 11 && flow(0, false)->repeats == 4 && flow(0, false)->needless == 3);
	CU_ASSERT(flow(0, false)->waits.unprompted == 0 && flow(1, true)->naks == 1 && flow(0, false)->did[0] == 1);
	cable_close();
}

static void account__selective(void)
{
	uint8_t ext[16 + 8] = {0};

	cable_open("drop tx psn=102 iteration=1", NULL);
	sends(100, 105);
	naks(101);
	CU_ASSERT_EQUAL(event(0)->told, UR_TOLD_NOT); /* about another packet */
	ur_sack_put(ext + 4, &(struct ur_sack){.expected = 102, .base = 102, .n = 64, .bits = {0xf}});
	cable_frame(1, UR_OP_SACK, 9, 101, 0, ext, sizeof(ext));
	CU_ASSERT_EQUAL(event(0)->told, UR_TOLD_NOT); /* it has arrived, says this one */
	ur_sack_put(ext + 4, &(struct ur_sack){.expected = 102, .base = 102, .n = 64, .bits = {0xe}});
	cable_frame(1, UR_OP_SACK, 9, 101, 0, ext, sizeof(ext) - 1);
	CU_ASSERT_EQUAL(event(0)->told, UR_TOLD_NOT); /* cut short */
	cable_later(US);
	cable_frame(1, UR_OP_SACK, 9, 101, 0, ext, sizeof(ext));
	CU_ASSERT_EQUAL(event(0)->told, UR_TOLD_SACK);
	CU_ASSERT_EQUAL(event(0)->told_at, cable.now);
	cable_frame(1, UR_OP_SACK, 9, 101, 0, ext, sizeof(ext));
	CU_ASSERT(flow(1, true)->repeats == 0 && flow(1, true)->naks == 4); /* acknowledgements are no repetitions */
	naks(102);
	sends(106, 106);
	sends(102, 102);
	CU_ASSERT_EQUAL(event(0)->manner, UR_MANNER_OPEN);
	sends(107, 107);
	CU_ASSERT(event(0)->told == UR_TOLD_SACK && event(0)->manner == UR_MANNER_SELECTIVE);
	CU_ASSERT(flow(0, false)->repeats == 1 && flow(0, false)->needless == 0 && flow(0, false)->waits.unprompted == 0);
	cable_close();
}

/* Nothing new is sent: the acknowledgement of all shows that nothing else was repeated. */
static void account__selective_by_ack(void)
{
	cable_open("drop tx psn=102 iteration=1", NULL);
	sends(100, 105);
	naks(102);
	sends(102, 102);
	acks(104);
	CU_ASSERT_EQUAL(event(0)->manner, UR_MANNER_OPEN);
	acks(105);
	CU_ASSERT_EQUAL(event(0)->manner, UR_MANNER_SELECTIVE);
	cable_close();
}

/* The last packet, which nothing follows: the timer repeats it. What is lost again is another event. */
static void account__timeout(void)
{
	cable_open("drop tx psn=105 times=2", NULL);
	sends(100, 105);
	acks(104);
	cable_later(67 * UR_NS_PER_MS);
	sends(105, 105);
	cable_later(67 * UR_NS_PER_MS);
	sends(105, 105);
	acks(105);
	CU_ASSERT_EQUAL_FATAL(account()->nevents, 2);
	CU_ASSERT(event(0)->told == UR_TOLD_NOT && event(0)->manner == UR_MANNER_LOST && event(0)->iteration == 1);
	CU_ASSERT(event(0)->again_at - event(0)->when == 67 * UR_NS_PER_MS + 2 * US);
	CU_ASSERT(event(1)->manner == UR_MANNER_ALONE && event(1)->iteration == 2);
	CU_ASSERT(flow(0, false)->waits.unprompted == 2 && flow(0, false)->needless == 0);
	cable_close();
}

static void account__lost_ack(void)
{
	cable_open("drop rx opcode=ACK psn=102", NULL);
	sends(100, 102);
	acks(102);
	sends(103, 104);
	acks(104);
	CU_ASSERT(event(0)->manner == UR_MANNER_LATER && event(0)->again_at - event(0)->when == 3 * US);
	cable_close();
}

static void account__lost_read_response(void)
{
	cable_open("drop rx opcode=READ_RESP_MIDDLE psn=+1 iteration=1", NULL);
	cable_pass(0, UR_OP_READ_REQ, 5, 200);
	responds(UR_OP_READ_RESP_FIRST, 0x1f, 200);
	cable_pass(1, UR_OP_READ_RESP_MIDDLE, 9, 201);
	cable_later(US);
	responds(UR_OP_READ_RESP_LAST, 0x1f, 202);
	cable_pass(0, UR_OP_READ_REQ, 5, 201);
	cable_later(US);
	responds(UR_OP_READ_RESP_FIRST, 0x1f, 201);
	CU_ASSERT(event(0)->told == UR_TOLD_ASKED && event(0)->told_at - event(0)->when == 2 * US);
	CU_ASSERT_EQUAL(event(0)->again_at - event(0)->told_at, US);
	responds(UR_OP_READ_RESP_LAST, 0x1f, 202);
	CU_ASSERT_EQUAL(event(0)->manner, UR_MANNER_GO_BACK_N);
	CU_ASSERT_EQUAL(flow(1, true)->needless, 1);
	cable_close();
}

/* Requests and their responses find each other; where two could be meant, they do not. */
static void account__pairs(void)
{
	cable_open("", NULL);
	cable_pass(0, SEND, 5, 1000);
	acks(1000);
	CU_ASSERT(flow(0, false)->partner >= 0 && account()->flows[flow(0, false)->partner].dqpn == 9);
	CU_ASSERT_PTR_EQUAL(&account()->flows[flow(1, true)->partner], flow(0, false));
	cable_frame(1, UR_OP_CNP, 9, 0, 0, NULL, 0);
	CU_ASSERT_EQUAL(flow(1, true)->cnps, 1);
	cable_close();
	cable_open("", NULL);
	cable_pass(0, SEND, 5, 1000);
	cable_pass(0, SEND, 6, 1001);
	acks(1000);
	CU_ASSERT_EQUAL(flow(1, true)->partner, -1);
	cable_close();
}

/* A flow that makes room takes its losses with it; events and losses beyond the tables are counted. */
static void account__bounds(void)
{
	cable_open("drop tx", NULL);
	cable_pass(0, SEND, 1, 7);
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		cable_pass(0, SEND, 100 + i, 7);
	CU_ASSERT_EQUAL(account()->replaced, 1);
	CU_ASSERT_EQUAL(event(0)->flow, UR_ACCOUNT_GONE);
	CU_ASSERT(account()->nopen == UR_ACCOUNT_OPEN && account()->unfollowed == 0);
	for (unsigned i = 0; i < 2 * UR_ACCOUNT_EVENTS; i++)
		cable_pass(0, SEND, 100, 8 + i);
	CU_ASSERT_EQUAL(account()->nevents, UR_ACCOUNT_EVENTS);
	CU_ASSERT_EQUAL(account()->unlisted, UR_ACCOUNT_EVENTS + 1 + UR_FAULT_FLOWS);
	CU_ASSERT_EQUAL(account()->unfollowed, 2 * UR_ACCOUNT_EVENTS);
	CU_ASSERT_EQUAL(account()->did[0], 2 * UR_ACCOUNT_EVENTS + 1 + UR_FAULT_FLOWS);
	cable_close();
}

void ur_suite_between_account(void)
{
	CU_pSuite s = CU_add_suite("between_account", NULL, NULL);

	CU_ADD_TEST(s, account__go_back_n);
	CU_ADD_TEST(s, account__selective);
	CU_ADD_TEST(s, account__selective_by_ack);
	CU_ADD_TEST(s, account__timeout);
	CU_ADD_TEST(s, account__lost_ack);
	CU_ADD_TEST(s, account__lost_read_response);
	CU_ADD_TEST(s, account__pairs);
	CU_ADD_TEST(s, account__bounds);
}
