/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of lib/transport/rx_only.c: one QP gets a row of messages of one packet each as a train, or as a burst of packets that are
 * apart, its twin (twin.h) packet by packet.
 */
#ifndef UR_TEST_RX_ONLY_HARNESS_H
#define UR_TEST_RX_ONLY_HARNESS_H

#include "twin.h"
#include "wire/crc/icrc.h"

#define MTU 1024u
#define MOST 30
#include "rx_rows.h"
#define RETH 16u
#define DST (256 * 1024u) /* where messages go */
#define STEP 2048u        /* from one receive to the next */

enum kind { K_WRITE, K_SEND, KINDS };

static const uint8_t only_op[KINDS] = {UR_OP_WRITE_ONLY, UR_OP_SEND_ONLY};

static struct twin t;
static uint8_t bytes[MOST * (UR_BTH_LEN + RETH + MTU + UR_ICRC_LEN)];
static uint8_t data[MOST][MTU];
static uint32_t length;   /* of the payload */
static uint64_t va[MOST]; /* of WRITEs */
static uint64_t asks;     /* whose bits say which of them ask for an acknowledgement */
static uint32_t rkey;     /* of all but `odd_one` */
static uint32_t odd_rkey;
static unsigned odd_one;

static inline void open_with(const struct th_opt *o)
{
	struct ur_rng rng = {77};

	for (unsigned i = 0; i < MOST; i++) {
		for (unsigned b = 0; b < MTU; b++)
			data[i][b] = (uint8_t)ur_rng_u32(&rng);
		va[i] = TWIN_IOVA + DST + i * 3000;
	}
	asks = 0;
	odd_one = MOST;
	twin_open(&t, o, 1);
	rkey = t.mr[0][1]->rkey;
}

static inline uint32_t expected_psn(void)
{
	return t.w[1].n[1].qp->resp.epsn;
}

/* A message before them, so that the QP knows its peer. */
static inline void begin_with(const struct th_opt *o)
{
	open_with(o);
	for (unsigned w = 0; w < 2; w++)
		th_inject(&t.w[w], 1, UR_OP_WRITE_ONLY, expected_psn(), false, &(struct th_hdr){.len = 0}, NULL, 0);
	CU_ASSERT_TRUE_FATAL(twin_node_same(&t, 1));
}

static inline void begin(void)
{
	begin_with(&th_default);
}

static inline void post_receives(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++)
		twin_recv(&t, 1, 1000 + i, &len, 1, DST + i * STEP);
}

/* n messages of `len` bytes from the next PSN on, in a train and in a burst. */
static inline void make(enum kind k, unsigned n, uint32_t len)
{
	static struct th_pkt p[MOST];
	struct ur_counters c = {{0}};

	count = n;
	length = len;
	th_make(&t.w[0], 1, &before, UR_OP_WRITE_ONLY, expected_psn() - 1, false, &(struct th_hdr){.len = 0}, NULL, 0);
	CU_ASSERT_TRUE_FATAL(ur_frame_parse(&before.p, &c));
	for (unsigned i = 0; i < n; i++) {
		const struct th_hdr h = {.va = va[i], .rkey = i == odd_one ? odd_rkey : rkey, .len = len};

		th_make(&t.w[0], 1, &p[i], only_op[k], ur_psn_add(expected_psn(), i), asks >> i & 1, &h, data[i], len);
		alone[i] = p[i];
		alone[i].p.data = alone[i].buf;
		alone[i].p.flags = 0;
		burst[i] = &alone[i].p;
	}
	train = (struct ur_pkt){.data = bytes, .room = sizeof(bytes)};
	CU_ASSERT_EQUAL_FATAL(twin_join(&train, p, n), n);
	train.stride = alone[0].p.len - alone[0].p.bth_off;
}

static inline uint32_t stride(void)
{
	return train.stride;
}

static inline uint8_t *packet(unsigned k)
{
	return apart ? alone[k].p.data + alone[k].p.bth_off : bytes + k * stride();
}

static inline void fix_icrc(unsigned k)
{
	const uint32_t len = stride() - UR_ICRC_LEN;
	uint8_t *b = packet(k);
	const struct ur_pkt *p = &alone[k].p;
	uint32_t crc;

	if (apart)
		crc = ur_icrc_begin(p->data + p->l3_off, p->ip_version, p->bth_off - p->l3_off + len);
	else
		crc = ur_icrc_begin_of(&train, b, len, stride() + UR_UDP_LEN, (uint16_t)(train.place + k));
	ur_icrc_end(crc, b + len);
}

static inline unsigned run(void)
{
	const struct ur_row r = row();

	return ur_tp_rx_run(t.w[0].n[1].tp, &r, t.w[0].now);
}

/* What the first call has left, in world 0, and all of it in world 1; then both are the same. */
static inline void rest(unsigned done)
{
	struct ur_train_cursor at = {.place = train.place};
	static struct th_pkt copy[MOST];
	struct ur_pkt *p[MOST];

	if (apart) {
		for (unsigned i = 0; i < count; i++) {
			copy[i] = alone[i];
			copy[i].p.data = copy[i].buf;
			p[i] = &copy[i].p;
		}
		twin_receive_burst(&t, 0, 1, burst + done, count - done);
		twin_receive_burst(&t, 1, 1, p, count);
	} else {
		const struct ur_row r = ur_row_of_train(&train, &at);

		ur_row_passed(&r, done, &at);
		twin_receive_from(&t, 0, 1, &train, &at);
		twin_receive(&t, 1, 1, &train);
	}
	CU_ASSERT_TRUE(twin_node_same(&t, 0) && twin_node_same(&t, 1));
	CU_ASSERT_TRUE(twin_memory_same(&t, 1));
}

static inline void deliver(unsigned want)
{
	const unsigned got = run();

	CU_ASSERT_EQUAL(got, want);
	rest(got);
}

/* What both answer is the same, and so are their completions. */
static inline void end(unsigned completions)
{
	twin_move(&t, 1, TWIN_BURST, 0);
	CU_ASSERT_EQUAL(twin_completions(&t), completions);
	twin_close(&t);
}

static inline const uint8_t *place(enum kind k, unsigned w, unsigned i)
{
	return t.w[w].n[1].mem + (k == K_WRITE ? va[i] - TWIN_IOVA : DST + i * STEP);
}

static inline bool arrived(enum kind k, unsigned i)
{
	return memcmp(place(k, 0, i), data[i], length) == 0;
}

#endif
