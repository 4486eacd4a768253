/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cm/icmp.c: what anybody may say of a peer, and what counts. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "cm_harness.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

void ur_suite_cm_icmp(void);

#define SERVICE HX_SERVICE
#define MAD_AT (UR_BTH_LEN + 8)
#define LONG (MAD_AT + UR_MAD_LEN)

static unsigned lose_all(struct hx *h, int side, enum ur_cm_attr attr, unsigned nth)
{
	(void)h, (void)side, (void)attr, (void)nth;
	return 0;
}

/* The packet with the last message of that kind, from its BTH on. */
static void quote_of(const struct hx *h, unsigned attr, uint8_t quote[LONG])
{
	const struct ur_bth b = {
		.opcode = UR_UD | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = 1, .psn = h->side[0].psn[attr - UR_CM_REQ]};

	memset(quote, 0, LONG);
	ur_bth_put(quote, &b);
	memcpy(quote + MAD_AT, h->side[0].last[attr - UR_CM_REQ], UR_MAD_LEN);
}

enum forgery { GENUINE, OTHER_PSN, NEXT_PSN, OTHER_QPN, OTHER_OPCODE, OTHER_TID, OTHER_PEER };

static bool icmp(struct hx *h, unsigned attr, unsigned len, enum forgery what)
{
	struct ur_gid dst = h->side[1].gid;
	uint8_t quote[LONG];
	struct ur_bth b;

	quote_of(h, attr, quote);
	ur_bth_get(quote, &b);
	b.psn = (b.psn + (what == OTHER_PSN ? 0x5555 : what == NEXT_PSN)) & 0xffffff;
	b.dqpn += what == OTHER_QPN;
	b.opcode ^= what == OTHER_OPCODE;
	ur_bth_put(quote, &b);
	quote[MAD_AT + 15] ^= what == OTHER_TID;
	dst.raw[15] ^= what == OTHER_PEER ? 4 : 0;
	return ur_cm_icmp_error(h->side[0].cm, &(struct ur_undelivered){.dst = dst, .quote = quote, .len = len}, h->now);
}

static const struct {
	enum forgery what;
	unsigned len;
} forged[] = {
	{OTHER_PSN, UR_BTH_LEN},
	{OTHER_PSN, LONG},
	{NEXT_PSN, UR_BTH_LEN},
	{OTHER_QPN, UR_BTH_LEN},
	{OTHER_OPCODE, LONG},
	{OTHER_TID, LONG},
	{OTHER_TID, MAD_AT + 16},
	{OTHER_PEER, LONG},
	{GENUINE, 0},
	{GENUINE, 8},
	{GENUINE, UR_BTH_LEN - 1},
};

/* A connection that is being made ends by an error that quotes its request, and by nothing less. */
static void icmp__ends_the_request_that_it_quotes(void)
{
	static const unsigned lens[] = {UR_BTH_LEN, MAD_AT + 15, MAD_AT + 16, LONG};

	for (unsigned i = 0; i < ur_array_size(lens); i++) {
		struct hx_ep *c;
		struct hx h;

		hx_init(&h, 4 + i);
		h.fate = lose_all;
		c = hx_connect(&h, 0, SERVICE);
		hx_run(&h, h.now + HX_MS);
		for (unsigned k = 0; k < ur_array_size(forged); k++)
			CU_ASSERT_FALSE(icmp(&h, UR_CM_REQ, forged[k].len, forged[k].what));
		hx_run(&h, h.now + 20 * HX_MS);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 0);
		CU_ASSERT_TRUE(icmp(&h, UR_CM_REQ, lens[i], GENUINE));
		hx_run(&h, h.now + HX_MS);
		CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 1);
		CU_ASSERT_FALSE(icmp(&h, UR_CM_REQ, lens[i], GENUINE)); /* nothing waits any more */
		hx_fini(&h);
	}
}

/* A host may send one error for many requests: one that quotes the transaction id ends all that wait for it, a shorter one that request. */
static void icmp__ends_all_requests_to_that_host(void)
{
	static const struct {
		unsigned len, ended;
	} t[] = {{MAD_AT + 15, 1}, {MAD_AT + 16, 5}, {LONG, 5}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct hx_ep *c[5];
		unsigned ended = 0;
		struct hx h;

		hx_init(&h, 21 + i);
		h.fate = lose_all;
		for (unsigned k = 0; k < ur_array_size(c); k++)
			c[k] = hx_connect(&h, 0, SERVICE);
		hx_run(&h, h.now + HX_MS);
		CU_ASSERT_FALSE(icmp(&h, UR_CM_REQ, t[i].len, OTHER_PEER));
		CU_ASSERT_TRUE(icmp(&h, UR_CM_REQ, t[i].len, GENUINE));
		hx_run(&h, h.now + HX_MS);
		for (unsigned k = 0; k < ur_array_size(c); k++)
			ended += c[k]->got[UR_CM_EV_UNREACHABLE];
		CU_ASSERT_EQUAL(ended, t[i].ended);
		hx_fini(&h);
	}
}

/* The PSNs of two messages in a row have nothing to do with one another: who has seen one can guess no other. */
static void icmp__psns_cannot_be_guessed(void)
{
	uint32_t psn[8];
	unsigned near = 0;
	struct hx h;

	hx_init(&h, 11);
	h.fate = lose_all;
	for (unsigned i = 0; i < ur_array_size(psn); i++) {
		hx_connect(&h, 0, SERVICE);
		hx_run(&h, h.now + HX_MS);
		psn[i] = h.side[0].psn[0];
		for (unsigned k = 0; k < i; k++)
			near += ((psn[i] - psn[k] + 64) & 0xffffff) < 128;
	}
	CU_ASSERT_EQUAL(near, 0);
	hx_fini(&h);
}

/* Who guesses gets a few tries, and then one in a second; a genuine error counts again when that time is over. */
static void icmp__guesses_are_bounded(void)
{
	unsigned tries = 0;
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 5);
	h.fate = lose_all;
	c = hx_connect(&h, 0, SERVICE);
	hx_run(&h, h.now + HX_MS);
	while (tries < 1000 && !icmp(&h, UR_CM_REQ, UR_BTH_LEN, OTHER_PSN))
		tries++;
	CU_ASSERT_EQUAL(tries, 1000);
	CU_ASSERT_FALSE(icmp(&h, UR_CM_REQ, UR_BTH_LEN, GENUINE));
	hx_run(&h, h.now + 1100 * HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 0);
	CU_ASSERT_TRUE(icmp(&h, UR_CM_REQ, UR_BTH_LEN, GENUINE));
	hx_run(&h, h.now + HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 1);
	hx_fini(&h);
}

/* Errors about the packets of QPs, of which a dead peer may cause many, are no guesses. */
static void icmp__errors_about_qps_are_no_guesses(void)
{
	struct hx h;

	hx_init(&h, 7);
	h.fate = lose_all;
	hx_connect(&h, 0, SERVICE);
	hx_run(&h, h.now + HX_MS);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_FALSE(icmp(&h, UR_CM_REQ, UR_BTH_LEN, i % 2 ? OTHER_QPN : OTHER_OPCODE));
	CU_ASSERT_TRUE(icmp(&h, UR_CM_REQ, UR_BTH_LEN, GENUINE));
	hx_fini(&h);
}

/* What this host knows of a neighbour needs no quote. */
static void unreachable__neighbour(void)
{
	struct hx_ep *c;
	struct hx h;

	hx_init(&h, 6);
	h.fate = lose_all;
	c = hx_connect(&h, 0, SERVICE);
	hx_run(&h, h.now + HX_MS);
	ur_cm_unreachable(h.side[0].cm, &h.side[1].gid, h.now);
	hx_run(&h, h.now + HX_MS);
	CU_ASSERT_EQUAL(c->got[UR_CM_EV_UNREACHABLE], 1);
	hx_fini(&h);
}

void ur_suite_cm_icmp(void)
{
	CU_pSuite s = CU_add_suite("cm_icmp", NULL, NULL);

	CU_ADD_TEST(s, icmp__ends_the_request_that_it_quotes);
	CU_ADD_TEST(s, icmp__ends_all_requests_to_that_host);
	CU_ADD_TEST(s, icmp__psns_cannot_be_guessed);
	CU_ADD_TEST(s, icmp__guesses_are_bounded);
	CU_ADD_TEST(s, icmp__errors_about_qps_are_no_guesses);
	CU_ADD_TEST(s, unreachable__neighbour);
}
