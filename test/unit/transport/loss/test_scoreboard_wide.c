/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SACKs and repairs where much is in flight: thousands of requests, repeats in all orders, and local operations between them. That what is
 * done for a packet does not grow with that is counted in test_psn.c (ur_psn_find).
 */
#include "sack_harness.h"
#include "transport/loss/scoreboard.h"
#include "transport/state/scoreboard_bits.h"

void ur_suite_scoreboard_wide(void);

#define MANY 16300u
#define SEEN(psn) ur_bit(req(&h)->scoreboard.maps->arrived, psn)

static struct th h;

static void open_wide(void)
{
	struct th_opt o = th_default;

	o.selective = true;
	o.window = o.wr = o.cqe = 16384;
	th_open(&h, &o);
}

/* What has arrived beyond `expected`: the bits of [base, base + 1024) that `has` is true of. */
static void tell(uint32_t expected, uint32_t base, bool (*has)(uint32_t psn))
{
	static const uint8_t none[UR_SACK_BITS / 8];
	const struct th_hdr x = {.syndrome = ACK};
	struct ur_sack s = {.expected = expected, .base = base, .n = UR_SACK_BITS};
	struct th_pkt p;

	for (uint32_t i = 0; i < UR_SACK_BITS; i++)
		if (has(ur_psn_add(base, i)))
			ur_sack_set(&s, i);
	th_make(&h, 0, &p, UR_OP_SACK, expected - 1, false, &x, none, ur_sack_len(&s));
	ur_sack_put(p.p.data + p.p.payload_off - UR_SACKETH_LEN, &s);
	th_feed(&h, 0, &p);
}

static bool is_any(uint32_t psn)
{
	(void)psn;
	return true;
}

static bool is_odd(uint32_t psn)
{
	return psn & 1;
}

static bool is_third(uint32_t psn)
{
	return psn % 3 == 0 || psn & 1;
}

/* Bits that begin anywhere, of which a part has been said before, and more than was sent. */
static void sack__says_the_same_by_words_and_by_bits(void)
{
	static const uint32_t bases[] = {FIRST, FIRST + 1, FIRST + 700, FIRST + 64, FIRST + 163, FIRST + 1500, FIRST + 2999};

	for (unsigned k = 0; k < ur_array_size(bases); k++) {
		open_wide();
		send_writes(&h, 3000);
		tell(FIRST, FIRST, is_odd);
		for (uint32_t psn = FIRST; psn < FIRST + 3000; psn++)
			CU_ASSERT_EQUAL(SEEN(psn), psn < FIRST + 1024 && is_odd(psn));
		tell(FIRST, bases[k], is_third);
		for (uint32_t psn = FIRST; psn < FIRST + 3100; psn++) {
			const bool second = psn >= bases[k] && psn < bases[k] + 1024 && psn < FIRST + 3000 && is_third(psn);

			CU_ASSERT_EQUAL(SEEN(psn), (psn < FIRST + 1024 && is_odd(psn)) || second);
		}
		th_close(&h);
	}
}

/* One packet is lost, and with 16,299 in flight behind it SACKs say so. It alone is sent again. */
static void sack__with_thousands_in_flight(void)
{
	struct ibv_wc wc;

	open_wide();
	send_writes(&h, MANY);
	for (uint32_t base = FIRST + 1; base + UR_SACK_BITS <= FIRST + MANY; base += UR_SACK_BITS)
		tell(FIRST, base, is_any);
	for (uint32_t k = 64; k; k--) /* and the last ones by one */
		tell(FIRST, FIRST + MANY - k - UR_SACK_BITS, is_any);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_RETRANSMIT], 1);
	th_ack(&h, 0, FIRST + MANY - 1, ACK);
	for (uint32_t i = 0; i < MANY; i++)
		CU_ASSERT_TRUE(ur_cq_poll(h.n[0].scq, 1, &wc) == 1 && wc.wr_id == FIRST + i && wc.status == IBV_WC_SUCCESS);
	CU_ASSERT_FALSE(req(&h)->scoreboard.busy);
	th_close(&h);
}

/* Repeats of two rounds, by turns in the order of PSNs: each arrival finds the repeat that it is of. */
static void repeats__are_found_by_their_psn(void)
{
	const struct ur_scoreboard *m;

	open_wide();
	send_writes(&h, 600);
	m = &req(&h)->scoreboard;
	tell(FIRST, FIRST, is_odd); /* the other half is lost, and repeated */
	CU_ASSERT_EQUAL(th_drain(&h, 0), 300);
	send_writes(&h, 600);
	CU_ASSERT_EQUAL(m->tail - m->head, 300);
	for (uint32_t psn = FIRST; psn < FIRST + 600; psn += 2) {
		const struct ur_retransmission *e = ur_retransmission_at(m, m->maps->retransmission[psn % UR_SPAN]);

		CU_ASSERT_TRUE(ur_bit(m->maps->retransmitted, psn));
		CU_ASSERT_TRUE(e->psn == psn && e->n == 1);
	}
	/* A third of the repeats has arrived, and what was sent after them: the others are lost once more. */
	th_sleep(&h, 100 * US);
	tell(FIRST, FIRST + 176, is_third);
	CU_ASSERT_TRUE(th_drain(&h, 0) > 0);
	for (uint32_t psn = FIRST; psn < FIRST + 1200; psn++)
		if (ur_bit(m->maps->retransmitted, psn)) {
			const uint32_t no = m->head + ((m->maps->retransmission[psn % UR_SPAN] - m->head) & (UR_RETRANSMISSIONS - 1));
			const struct ur_retransmission *e = ur_retransmission_at(m, no);

			CU_ASSERT_TRUE(no - m->head < m->tail - m->head);
			CU_ASSERT_TRUE(((psn - e->psn) & UR_PSN_MASK) < e->n);
		}
	th_ack(&h, 0, FIRST + 1199, ACK);
	CU_ASSERT_FALSE(m->busy);
	CU_ASSERT_EQUAL(m->answers, 0);
	th_close(&h);
}

void ur_suite_scoreboard_wide(void)
{
	CU_pSuite s = CU_add_suite("scoreboard_wide", NULL, NULL);

	CU_ADD_TEST(s, sack__says_the_same_by_words_and_by_bits);
	CU_ADD_TEST(s, sack__with_thousands_in_flight);
	CU_ADD_TEST(s, repeats__are_found_by_their_psn);
}
