/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric of three ports, packets and trains from port 0 to port 1, and what arrives there. */
#ifndef UR_TEST_SIM_FABRIC_H
#define UR_TEST_SIM_FABRIC_H

#include <CUnit/CUnit.h>

#include "test/port/sim.h"
#include "wire/crc/icrc.h"
#include "wire/train.h"
#include "wire_samples.h"

#define BURST 64
#define PAYLOAD 100
#define DATAGRAM (UR_BTH_LEN + PAYLOAD + UR_ICRC_LEN)
#define FRAME4 (42 + DATAGRAM)
#define ON_WIRE (FRAME4 + 24)

static struct ur_sim *sim;
static bool v6;
static unsigned sent;

static inline struct ur_gid addr(unsigned i)
{
	return v6 ? (struct ur_gid){{0xfd, [15] = (uint8_t)(i + 1)}} : ur_gid_from_v4(0x0100000au + (i << 24));
}

static inline void make(struct ur_sim_config cfg)
{
	cfg.seed = cfg.seed ? cfg.seed : 7;
	cfg.ports = 3;
	cfg.train_bytes = cfg.train_bytes ? cfg.train_bytes : 65507;
	sim = ur_sim_create(&cfg);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sim);
	for (unsigned i = 0; i < 3; i++) {
		struct ur_gid a = addr(i);

		ur_sim_set_addr(sim, i, &a);
	}
	sent = 0;
}

static inline void finish(void)
{
	CU_ASSERT_EQUAL(ur_sim_outstanding(sim), 0);
	CU_ASSERT_EQUAL(ur_sim_in_flight(sim), 0);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->bad_free, 0);
	CU_ASSERT_EQUAL(ur_sim_stats(sim)->bad_train, 0);
	ur_sim_destroy(sim);
}

/* A packet as a NIC builds it from port `from` to `to`; its number is its PSN. */
static inline struct ur_pkt *build(unsigned from, unsigned to, uint16_t sport, uint32_t len)
{
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = 7, .psn = sent++, .pad = -len & 3};
	struct ur_port *port = ur_sim_port(sim, from);
	struct ur_gid src = addr(from), dst = addr(to);
	struct ur_path path = {0};
	struct ur_pkt *p = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(port->queue, &p, 1), 1);
	ur_path_build(&path, &port->mac, &ur_sim_port(sim, to)->mac, 0, &src, &dst, 2, 64, 0, sport);
	memcpy(p->data, path.hdr, path.hdr_len);
	ur_bth_put(p->data + path.hdr_len, &bth);
	memset(p->data + path.hdr_len + UR_BTH_LEN, (int)bth.psn, len);
	p->kind = UR_PKT_ROCE;
	p->bth = bth;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->len = path.hdr_len + UR_BTH_LEN + len;
	return p;
}

/* A packet that is complete. */
static inline struct ur_pkt *build_finished(unsigned from, unsigned to, uint16_t sport, uint32_t len)
{
	struct ur_pkt *p = build(from, to, sport, len);

	ur_frame_finish(p, p->bth.pad);
	return p;
}

/* n packets from port 0 to port 1, in trains of at most `most`; returns how many packets the port took. The rest is given back. */
static inline unsigned send_many(unsigned n, uint32_t most)
{
	struct ur_queue *q = ur_sim_port(sim, 0)->queue;
	const unsigned max = ur_min_u32(most, q->train_pkts);
	struct ur_pkt *out[BURST], *train = NULL;
	unsigned built = 0, took;

	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt *p = build_finished(0, 1, UR_ROCE_PORT, PAYLOAD);

		if (max < 2 || q->train_bytes < 2 * DATAGRAM) {
			out[built++] = p;
			continue;
		}
		if (!train || !ur_train_append(train, p, max, q->train_bytes)) {
			out[built++] = train = q->ops->alloc_train(q);
			CU_ASSERT_TRUE_FATAL(ur_train_append(train, p, max, q->train_bytes));
		}
		ur_pkts_release(&p, 1);
	}
	took = ur_queue_tx(q, out, built);
	ur_pkts_release(out + took, built - took);
	return took == built ? n : took; /* a port that is busy takes a part of several: those here are packets */
}

static inline void run(void)
{
	while (ur_sim_next(sim) != UR_TIME_NEVER)
		ur_sim_advance(sim, ur_sim_next(sim));
}

struct got {
	unsigned n, good, back; /* back: PSNs below the one before */
	unsigned trains;
	uint32_t psn[4 * BURST];
	uint8_t place[4 * BURST];
	ur_time when[4 * BURST];
};

static inline void look_at_packet(struct got *g, struct ur_pkt *p)
{
	struct ur_counters c = {.v = {0}};

	CU_ASSERT_FATAL(g->n < ur_array_size(g->psn));
	g->place[g->n] = p->place; /* parsing may find another identification */
	g->good += ur_frame_parse(p, &c) && (p->kind == UR_PKT_ROCE || p->kind == UR_PKT_ROCE_GUESSED);
	g->psn[g->n] = p->bth.psn;
	g->when[g->n] = p->when;
	g->back += g->n && g->psn[g->n] < g->psn[g->n - 1];
	g->n++;
}

/* A packet, or all of a train. */
static inline void look_at(struct got *g, struct ur_pkt *p)
{
	struct ur_train_cursor at = {.place = p->place};
	struct ur_pkt view = {.data = NULL};

	if (!p->stride) {
		look_at_packet(g, p);
		return;
	}
	CU_ASSERT_TRUE(p->home->caps & UR_QUEUE_BARE); /* others give packets */
	g->trains++;
	while (ur_train_view(p, &at, &view))
		look_at_packet(g, &view);
}

/* All that waits at port 1; good is what parses. */
static inline struct got fetch(void)
{
	struct ur_queue *q = ur_sim_port(sim, 1)->queue;
	struct ur_pkt *pkts[BURST];
	struct got g = {0};
	unsigned n;

	run();
	while ((n = ur_queue_rx(q, pkts, BURST))) {
		for (unsigned i = 0; i < n; i++)
			look_at(&g, pkts[i]);
		ur_pkts_release(pkts, n);
	}
	return g;
}

#endif
