/* SPDX-License-Identifier: BSD-3-Clause */
/* Where packets stand in their flows: numbers of messages and transmissions, over the ends of all that is bounded. */
#include <CUnit/CUnit.h>

#include "base/rng.h"
#include "fault/flows.h"
#include "wire/opcode.h"

void ur_suite_fault_flows(void);

static struct ur_fault_flows *flows;
static struct ur_fault_place at;
static struct ur_gid dst;

static void begin(void)
{
	flows = ur_fault_flows_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(flows);
	dst = (struct ur_gid){{[15] = 1}};
}

static void end(void)
{
	ur_fault_flows_destroy(flows);
}

static void see_on(enum ur_fault_dir dir, uint32_t qpn, uint8_t opcode, uint32_t psn)
{
	const struct ur_bth bth = {.opcode = opcode, .dqpn = qpn, .psn = psn & 0xffffff};

	ur_fault_flows_see(flows, dir, &bth, &dst, &at);
}

static void see(uint8_t opcode, uint32_t psn)
{
	see_on(UR_FAULT_TX, 7, opcode, psn);
}

static bool is(uint32_t offset, uint32_t msg, uint32_t iteration)
{
	return at.known && at.offset == offset && at.msg == msg && at.iteration == iteration;
}

/* Across the end of the PSNs. */
static void flows_see__messages(void)
{
	static const uint8_t write[] = {UR_OP_WRITE_FIRST, UR_OP_WRITE_MIDDLE, UR_OP_WRITE_LAST};

	begin();
	for (unsigned i = 0; i < 30; i++) {
		see(write[i % 3], 0xfffff0 + i);
		CU_ASSERT(is(i, 1 + i / 3, 1) && at.fresh == (i == 0));
	}
	see(UR_OP_SEND_ONLY, 0xfffff0 + 30);
	CU_ASSERT(is(30, 11, 1));
	see(UR_OP_READ_REQ, 0xfffff0 + 31);
	CU_ASSERT(is(31, 12, 1));
	see(UR_OP_WRITE_FIRST, 0xfffff0 + 131); /* the READ has a hundred PSNs */
	CU_ASSERT(is(131, 13, 1));
	see(UR_OP_WRITE_LAST, 0xfffff0 + 132);
	CU_ASSERT(is(132, 13, 1));
	for (unsigned i = 0; i < 30; i++) { /* all of it again */
		see(write[i % 3], 0xfffff0 + i);
		CU_ASSERT(is(i, 1 + i / 3, 2));
	}
	see(UR_OP_WRITE_FIRST, 0xfffff0 + 133);
	CU_ASSERT(is(133, 14, 1));
	end();
}

/* What comes for the first time after its successors belongs to the message of the packet before it, if that was seen. */
static void flows_see__late(void)
{
	begin();
	see(UR_OP_SEND_FIRST, 100);
	see(UR_OP_SEND_LAST, 102);
	CU_ASSERT(is(2, 1, 1));
	see(UR_OP_SEND_MIDDLE, 101);
	CU_ASSERT(is(1, 1, 1));
	see(UR_OP_SEND_FIRST, 110);
	CU_ASSERT(is(10, 2, 1));
	see(UR_OP_SEND_ONLY, 105);
	CU_ASSERT(is(5, 0, 1)); /* has no number */
	see(UR_OP_SEND_MIDDLE, 108);
	CU_ASSERT(is(8, 0, 1));
	see(UR_OP_SEND_LAST, 111);
	CU_ASSERT(is(11, 2, 1));
	end();
}

/* Each way, request or response, QP and address is a flow of its own; what has no PSN that counts is in none. */
static void flows_see__keys(void)
{
	begin();
	see(UR_OP_SEND_ONLY, 5);
	see_on(UR_FAULT_RX, 7, UR_OP_SEND_ONLY, 6);
	CU_ASSERT(is(0, 1, 1) && at.fresh);
	see_on(UR_FAULT_TX, 8, UR_OP_SEND_ONLY, 7);
	CU_ASSERT(is(0, 1, 1) && at.fresh);
	see(UR_OP_ACK, 8);
	CU_ASSERT(is(0, 0, 1) && at.fresh);
	see(UR_OP_ACK, 8);
	CU_ASSERT(is(0, 0, 2) && !at.fresh);
	dst.raw[15] = 2;
	see(UR_OP_SEND_ONLY, 9);
	CU_ASSERT(is(0, 1, 1) && at.fresh);
	dst.raw[15] = 1;
	see(UR_OP_SEND_ONLY, 6);
	CU_ASSERT(is(1, 2, 1) && !at.fresh);
	see(UR_OP_CNP, 0);
	CU_ASSERT_FALSE(at.known);
	see(0x3f, 7); /* in no table */
	CU_ASSERT_FALSE(at.known);
	end();
}

static void flows_see__iterations(void)
{
	begin();
	see(UR_OP_SEND_ONLY, 5);
	CU_ASSERT_FALSE(at.arrived);
	see(UR_OP_SEND_ONLY, 5);
	CU_ASSERT(!at.arrived && is(0, 1, 2));
	ur_fault_flows_arrived(flows, &at, 5);
	for (unsigned i = 3; i < 1000; i++) {
		see(UR_OP_SEND_ONLY, 5);
		CU_ASSERT(at.arrived && is(0, 1, ur_min_u32(i, UR_FAULT_ITERATIONS)));
	}
	for (uint32_t psn = 6; psn < 6 + UR_FAULT_PSNS; psn++)
		see(UR_OP_SEND_ONLY, psn);
	see(UR_OP_SEND_ONLY, 5); /* forgotten, and certainly seen before */
	CU_ASSERT(is(0, 0, 2));
	see(UR_OP_SEND_ONLY, 6);
	CU_ASSERT(is(1, 2, 2));
	ur_fault_flows_arrived(flows, &(struct ur_fault_place){.known = false}, 6); /* of what has no place, nothing */
	end();
}

/* A number that is used again begins with another PSN. */
static void flows_see__restart(void)
{
	begin();
	see(UR_OP_SEND_ONLY, 0x800000);
	see(UR_OP_SEND_ONLY, 0x700000);
	CU_ASSERT(at.fresh && is(0, 1, 1));
	end();
}

/* Several QPs send to one: their PSNs have nothing to do with one another. */
static void flows_see__datagrams(void)
{
	begin();
	see(UR_UD | UR_OP_SEND_ONLY, 0x800000);
	CU_ASSERT(at.fresh && is(0, 1, 1));
	see(UR_UD | UR_OP_SEND_ONLY, 0x700000);
	CU_ASSERT(!at.fresh && is(0xf00000, 2, 1));
	see(UR_UD | UR_OP_SEND_ONLY_IMM, 0x800000);
	CU_ASSERT(!at.fresh && is(0, 3, 1));
	ur_fault_flows_arrived(flows, &at, 0x800000);
	see(UR_UD | UR_OP_SEND_ONLY, 0x800000);
	CU_ASSERT(!at.fresh && !at.arrived && is(0, 4, 1));
	end();
}

/* The one that was quiet for longest makes room. */
static void flows_see__bound(void)
{
	unsigned first;

	begin();
	for (unsigned i = 0; i < UR_FAULT_FLOWS; i++)
		see_on(UR_FAULT_TX, 100 + i, UR_OP_SEND_ONLY, i);
	see_on(UR_FAULT_TX, 100, UR_OP_SEND_ONLY, 1);
	CU_ASSERT(is(1, 2, 1));
	first = at.flow;
	see_on(UR_FAULT_TX, 99, UR_OP_SEND_ONLY, 1); /* in place of QP 101 */
	CU_ASSERT(at.fresh && at.flow != first);
	see_on(UR_FAULT_TX, 100, UR_OP_SEND_ONLY, 2);
	CU_ASSERT(is(2, 3, 1));
	see_on(UR_FAULT_TX, 101, UR_OP_SEND_ONLY, 2);
	CU_ASSERT(at.fresh && is(0, 1, 1));
	end();
}

/* Nonsense stays within what there is. */
static void flows_see__hostile(void)
{
	struct ur_rng rng = {.state = 3};

	begin();
	for (unsigned i = 0; i < 20000; i++) {
		dst.raw[0] = (uint8_t)(ur_rng_u32(&rng) & 3);
		see_on(1 + ur_rng_below(&rng, 2), ur_rng_below(&rng, 40), (uint8_t)ur_rng_u32(&rng), ur_rng_u32(&rng));
		if (!at.known)
			continue;
		CU_ASSERT(at.flow < UR_FAULT_FLOWS && at.offset <= 0xffffff && at.iteration >= 1 && at.iteration <= UR_FAULT_ITERATIONS);
		ur_fault_flows_arrived(flows, &at, ur_rng_u32(&rng) & 0xffffff);
	}
	end();
}

void ur_suite_fault_flows(void)
{
	CU_pSuite s = CU_add_suite("fault_flows", NULL, NULL);

	CU_ADD_TEST(s, flows_see__messages);
	CU_ADD_TEST(s, flows_see__late);
	CU_ADD_TEST(s, flows_see__keys);
	CU_ADD_TEST(s, flows_see__iterations);
	CU_ADD_TEST(s, flows_see__restart);
	CU_ADD_TEST(s, flows_see__datagrams);
	CU_ADD_TEST(s, flows_see__bound);
	CU_ADD_TEST(s, flows_see__hostile);
}
