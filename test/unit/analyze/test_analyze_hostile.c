/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings that somebody made to keep an analysis busy: as many as they like of what is looked for by one name, or by names that one hash
 * has. What is walked for a frame must not grow with them, which is asserted of the tables themselves.
 */
#include <CUnit/CUnit.h>

#include "analyze/frame/hash.h"
#include "analyze/state/cm_facts.h"
#include "analyze_harness.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

void ur_suite_analyze_hostile(void);

#define MANY 2000
#define FEW 16 /* nodes of one bucket, of tables that have one for each node */
#define BODY UR_MAD_HDR_LEN
#define AT_QPN 32     /* bytes of a REQ's body */
#define AT_REP_QPN 12 /* and of a REP's */
#define PSN 7

static struct ur_recording from, r;
static struct findings f;

static void load(const char *name)
{
	const struct ur_recording *all = analyze_recordings();

	while (all->n && strcmp(all->name, name) != 0)
		all++;
	CU_ASSERT_TRUE_FATAL(all->n > 0);
	from = ur_recording_copy(all);
	r = (struct ur_recording){.name = "hostile", .link = from.link};
}

static void teardown(void)
{
	findings_free(&f);
	ur_recording_free(&from);
	ur_recording_free(&r);
	memset(&f, 0, sizeof(f));
	memset(&from, 0, sizeof(from));
	memset(&r, 0, sizeof(r));
}

static unsigned mad(enum ur_cm_attr attr)
{
	struct an_pkt p;

	for (unsigned i = 0; i < from.n; i++)
		if (ur_recording_pkt(&from, i, &p) && p.bth.dqpn == 1 && p.payload_len == UR_MAD_LEN && p.payload[17] == attr)
			return i;
	CU_FAIL_FATAL("no such message");
	return 0;
}

/* Of a request with payload. */
static unsigned request(void)
{
	struct an_pkt p;

	for (unsigned i = 0; i < from.n; i++)
		if (ur_recording_pkt(&from, i, &p) && p.bth.dqpn > 1 && !an_is_answer(&p) && p.payload_len)
			return i;
	CU_FAIL_FATAL("no request");
	return 0;
}

/* Frame `i` of what was loaded once more: its BTH. */
static uint8_t *again(unsigned i)
{
	struct ur_an_frame frame = ur_recording_frame(&from, i);

	frame.when = from.f[0].when + r.n * UR_NS_PER_US;
	CU_ASSERT_TRUE_FATAL(ur_recording_add(&r, &frame));
	return ur_recording_bth(&r, r.n - 1);
}

static void seal(void)
{
	ur_recording_fix_checksums(&r, r.n - 1, 0);
}

static uint8_t *body_of(uint8_t *bth)
{
	return bth + UR_BTH_LEN + 8 + BODY;
}

/* The most nodes that a look-up walks past. */
static unsigned longest(const struct ur_table *t)
{
	unsigned most = 0;

	for (uint32_t i = 0; i < t->size; i++) {
		unsigned n = 0;

		for (const struct ur_table_node *at = t->bucket[i]; at; at = at->next)
			n++;
		most = n > most ? n : most;
	}
	return most;
}

/* --- one communication id --- */

/* REQs with one id and another QPN each, a REP to each with an id of its own, and an RTU to each, the oldest first. */
static void many_of_one_id(void)
{
	const struct an_cm *c;
	unsigned n = 0;

	load("rdma-client.pcap");
	for (uint32_t i = 0; i < MANY; i++) {
		ur_put24(body_of(again(mad(UR_CM_REQ))) + AT_QPN, i + 2);
		seal();
		ur_put32(body_of(again(mad(UR_CM_REP))), i + 1);
		ur_put24(body_of(ur_recording_bth(&r, r.n - 1)) + AT_REP_QPN, i + 2);
		seal();
	}
	for (uint32_t i = 0; i < MANY; i++) {
		ur_put32(body_of(again(mad(UR_CM_RTU))) + 4, i + 1);
		seal();
	}
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(f.a->ncm, MANY);
	for (c = f.a->oldest_cm; c; c = c->later, n++) {
		CU_ASSERT_EQUAL(c->other_id, n + 1);
		CU_ASSERT_EQUAL(c->msg[0][UR_CM_RTU - UR_CM_REQ].frame, 2 * MANY + n + 1);
	}
	CU_ASSERT_EQUAL(f.a->cm_pairs.used, MANY);
	CU_ASSERT_TRUE(longest(&f.a->cm_pairs) < FEW);
}

/* The newest with both ids counts, wherever it stands among the others. */
static void newest_of_one_id(void)
{
	const struct an_cm *c;

	load("rdma-client.pcap");
	for (uint32_t i = 0; i < 3; i++) { /* two that are called 5, and one without a REP */
		ur_put24(body_of(again(mad(UR_CM_REQ))) + AT_QPN, i + 2);
		seal();
		if (i == 2)
			break;
		ur_put32(body_of(again(mad(UR_CM_REP))), 5);
		seal();
	}
	ur_put32(body_of(again(mad(UR_CM_RTU))) + 4, 5); /* so far it may be of the third */
	seal();
	ur_put32(body_of(again(mad(UR_CM_REP))), 6); /* which is called 6 */
	seal();
	ur_put32(body_of(again(mad(UR_CM_RTU))) + 4, 5);
	seal();
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL_FATAL(f.a->ncm, 3);
	c = f.a->oldest_cm;
	CU_ASSERT_EQUAL(c->msg[0][UR_CM_RTU - UR_CM_REQ].n, 0);
	CU_ASSERT_EQUAL(c->later->msg[0][UR_CM_RTU - UR_CM_REQ].frame, 8);
	CU_ASSERT_EQUAL(c->later->later->msg[0][UR_CM_RTU - UR_CM_REQ].frame, 6);
	CU_ASSERT_EQUAL(c->later->later->other_id, 6);
}

/* --- strangers with a PSN that many have agreed on --- */

static void each_stranger_is_told_once(void)
{
	unsigned req, rep, data;

	load("rdma-client.pcap");
	req = mad(UR_CM_REQ);
	rep = mad(UR_CM_REP);
	data = request();
	for (uint32_t i = 0; i < MANY / 10; i++) {
		ur_put32(body_of(again(req)), i + 1);
		ur_put24(body_of(ur_recording_bth(&r, r.n - 1)) + AT_QPN, i + 2);
		seal();
		ur_put32(body_of(again(rep)) + 4, i + 1);
		ur_put24(body_of(ur_recording_bth(&r, r.n - 1)) + AT_REP_QPN, i + 2);
		ur_put24(body_of(ur_recording_bth(&r, r.n - 1)) + 20, PSN);
		ur_put24(body_of(ur_recording_bth(&r, r.n - 2)) + 44, PSN);
		seal();
		ur_recording_fix_checksums(&r, r.n - 2, 0);
		ur_put24(again(data) + 5, 0x500000 + i);
		ur_put24(ur_recording_bth(&r, r.n - 1) + 9, PSN);
		seal();
	}
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_QPN, 0), MANY / 10);
}

/* --- names that one hash has --- */

/* Sources whose halves are chosen so that an_hash, which has no secret, makes the same of all. */
static void chosen_hosts(void)
{
	const uint64_t same = 12345;
	unsigned data, n = 0;
	struct an_pkt p;

	load("rping-rc-v6.pcap");
	data = request();
	for (uint32_t i = 0; i < MANY; i++) {
		const uint64_t low = 0xfd + ((uint64_t)i << 8);
		uint64_t half[2] = {low};
		uint8_t *ip;

		CU_ASSERT_TRUE_FATAL(ur_recording_pkt(&from, data, &p));
		half[1] = same - an_mix(p.bth.dqpn ^ half[0]);
		again(data);
		CU_ASSERT_TRUE_FATAL(ur_recording_pkt(&r, r.n - 1, &p));
		ip = r.f[r.n - 1].data + (p.ip - r.f[r.n - 1].data);
		memcpy(ip + 8, half, sizeof(half));
		seal();
	}
	analyze_run(&r, &f);
	for (uint32_t i = 0; i < r.n; i++) {
		CU_ASSERT_TRUE_FATAL(ur_recording_pkt(&r, i, &p));
		n += an_hash(&p.src, &p.dst, p.bth.dqpn) == an_hash(&f.a->conn[0]->src, &f.a->conn[0]->dst, p.bth.dqpn);
	}
	CU_ASSERT_EQUAL(n, MANY); /* they are what they are meant to be */
	CU_ASSERT_EQUAL(f.a->nconn, MANY);
	CU_ASSERT_TRUE(longest(&f.a->flows) < FEW);
	CU_ASSERT_TRUE(longest(&f.a->hosts) < FEW);
	CU_ASSERT_TRUE(longest(&f.a->speakers) < FEW);
}

void ur_suite_analyze_hostile(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("analyze_hostile", NULL, NULL, NULL, teardown);

	CU_add_test(s, "one communication id: each exchange is found at once", many_of_one_id);
	CU_add_test(s, "one communication id: the newest counts", newest_of_one_id);
	CU_add_test(s, "strangers with the PSN of many: each is told of once", each_stranger_is_told_once);
	CU_add_test(s, "hosts chosen for their hash: no long bucket", chosen_hosts);
}
