/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For tests of lib/transport/rx_run.c: one QP gets the middle of a message as a run, its twin (twin.h) packet by packet. `apart` says
 * whether the packets of a run are those of a train, or of a burst, each with a buffer and headers of its own.
 */
#ifndef UR_TEST_RX_RUN_HARNESS_H
#define UR_TEST_RX_RUN_HARNESS_H

#include "twin.h"
#include "wire/crc/icrc.h"

#define MTU 1024u
#define MOST 62 /* packets of a train */
#include "rx_rows.h"
#define STRIDE (UR_BTH_LEN + MTU + UR_ICRC_LEN)
#define DST (256 * 1024u) /* where they go */
#define PSN 100u          /* of the first packet of the message */
#define TOTAL (MOST + 2)  /* packets of the message */

enum kind { K_WRITE, K_SEND, K_READ, KINDS };

static const uint8_t middle_op[KINDS] = {UR_OP_WRITE_MIDDLE, UR_OP_SEND_MIDDLE, UR_OP_READ_RESP_MIDDLE};
static const uint8_t last_op[KINDS] = {UR_OP_WRITE_LAST, UR_OP_SEND_LAST, UR_OP_READ_RESP_LAST};

static struct twin t;
static enum kind kind;
static unsigned to; /* the node that receives */
static uint8_t data[TOTAL][MTU];
static uint8_t bytes[MOST * STRIDE];

static inline void inject(uint8_t opcode, uint32_t psn, bool ackreq, const struct th_hdr *ext, const void *payload, uint32_t len)
{
	for (unsigned w = 0; w < 2; w++)
		th_inject(&t.w[w], to, opcode, psn, ackreq, ext, payload, len);
}

/* A message of which the first packet has come, and which has `packets` packets, the last with MTU bytes. */
static inline void begin_list(enum kind k, const struct th_opt *o, const uint32_t *len, unsigned nsge, unsigned packets)
{
	const struct th_hdr reth = {.va = TWIN_IOVA + DST, .len = packets * MTU};
	struct th_hdr ext = reth;
	struct ur_rng rng = {k + 77};

	kind = k;
	to = k == K_READ ? 0 : 1;
	for (unsigned i = 0; i < TOTAL; i++)
		for (unsigned b = 0; b < MTU; b++)
			data[i][b] = (uint8_t)ur_rng_u32(&rng);
	twin_open(&t, o, 1);
	ext.rkey = t.mr[0][1]->rkey;
	switch (k) {
	case K_WRITE: inject(UR_OP_WRITE_FIRST, PSN, false, &ext, data[0], MTU); break;
	case K_SEND:
		twin_recv(&t, 1, 7, len, nsge, DST);
		inject(UR_OP_SEND_FIRST, PSN, false, NULL, data[0], MTU);
		break;
	default:
		twin_post(&t, 0, IBV_WR_RDMA_READ, 8, len, nsge, DST, 0, IBV_SEND_SIGNALED);
		for (unsigned w = 0; w < 2; w++)
			th_drain(&t.w[w], 0);
		inject(UR_OP_READ_RESP_FIRST, PSN, false, &(struct th_hdr){.syndrome = ACK, .msn = 1}, data[0], MTU);
	}
	CU_ASSERT_TRUE_FATAL(twin_node_same(&t, to));
}

static inline void begin(enum kind k)
{
	const uint32_t all = TOTAL * MTU;
	struct th_opt o = th_default;

	o.window = 1024;
	begin_list(k, &o, &all, 1, TOTAL);
}

/* Packets `from` to `from + n` of the message as a train; the bits of `asks` say which of them ask for an acknowledgement. */
static inline void make_train(unsigned from, unsigned n, uint64_t asks)
{
	static struct th_pkt p[MOST];
	struct ur_counters c = {{0}};

	th_make(&t.w[0], to, &before, middle_op[kind], PSN, false, NULL, data[0], 4);
	CU_ASSERT_TRUE_FATAL(ur_frame_parse(&before.p, &c));
	for (unsigned i = 0; i < n; i++) {
		th_make(&t.w[0], to, &p[i], middle_op[kind], PSN + from + i, asks >> i & 1, NULL, data[from + i], MTU);
		alone[i] = p[i];
		alone[i].p.data = alone[i].buf;
		alone[i].p.flags = 0;
		burst[i] = &alone[i].p;
	}
	count = n;
	train = (struct ur_pkt){.data = bytes, .room = sizeof(bytes)};
	CU_ASSERT_EQUAL_FATAL(twin_join(&train, p, n), n);
	train.stride = STRIDE; /* of a single one, too */
}

/* Packet k from its BTH on. */
static inline uint8_t *packet(unsigned k)
{
	return apart ? alone[k].p.data + alone[k].p.bth_off : bytes + k * STRIDE;
}

static inline void fix_icrc(unsigned k)
{
	uint8_t *b = packet(k);
	const struct ur_pkt *p = &alone[k].p;
	uint32_t crc;

	if (apart)
		crc = ur_icrc_begin(p->data + p->l3_off, p->ip_version, p->bth_off - p->l3_off + STRIDE - UR_ICRC_LEN);
	else
		crc = ur_icrc_begin_of(&train, b, STRIDE - UR_ICRC_LEN, STRIDE + UR_UDP_LEN, (uint16_t)(train.place + k));
	ur_icrc_end(crc, b + STRIDE - UR_ICRC_LEN);
}

/* What says of all of them where they come from. */
static inline struct ur_pkt *common(void)
{
	return apart ? &before.p : &train;
}

/* The first call, of world 0. */
static inline unsigned run(void)
{
	const struct ur_row r = row();

	return ur_tp_rx_run(t.w[0].n[to].tp, &r, t.w[0].now);
}

/* What the first call has left in world 0, and all of it in world 1. */
static inline void deliver_rest(unsigned done)
{
	struct ur_train_cursor at = {.place = train.place};
	const struct ur_row r = row();

	if (apart) {
		static struct th_pkt copy[MOST];

		for (unsigned i = 0; i < count; i++) { /* parsing trims them */
			copy[i] = alone[i];
			copy[i].p.data = copy[i].buf;
		}
		twin_receive_burst(&t, 0, to, burst + done, count - done);
		for (unsigned i = 0; i < count; i++)
			burst[i] = &copy[i].p;
		twin_receive_burst(&t, 1, to, burst, count);
		return;
	}
	ur_row_passed(&r, done, &at);
	twin_receive_from(&t, 0, to, &train, &at);
	twin_receive(&t, 1, to, &train);
}

/* Gives them to both; the first call that world 0 makes returns `want`. */
static inline void deliver(unsigned want)
{
	const unsigned got = run();

	CU_ASSERT_EQUAL(got, want);
	deliver_rest(got);
	CU_ASSERT_TRUE(twin_node_same(&t, 0) && twin_node_same(&t, 1));
}

/* The rest of the message, right and one by one; then everything is the same, and so is what both answer. */
static inline void end_from(unsigned next, unsigned packets)
{
	for (unsigned i = next; i + 1 < packets; i++)
		inject(middle_op[kind], PSN + i, false, NULL, data[i], MTU);
	inject(last_op[kind], PSN + packets - 1, true, &(struct th_hdr){.syndrome = ACK, .msn = 1}, data[packets - 1], MTU);
	CU_ASSERT_TRUE(twin_node_same(&t, 0) && twin_node_same(&t, 1));
	twin_move(&t, to, TWIN_BURST, 0);
}

static inline bool arrived(unsigned packets)
{
	return memcmp(t.w[0].n[to].mem + DST, data, packets * (size_t)MTU) == 0;
}

static inline void end(unsigned next)
{
	end_from(next, TOTAL);
	CU_ASSERT_TRUE(twin_memory_same(&t, 0) && twin_memory_same(&t, 1));
	CU_ASSERT_EQUAL(twin_completions(&t), kind == K_WRITE ? 0 : 1);
	CU_ASSERT_TRUE(arrived(TOTAL));
	twin_close(&t);
}

#endif
