/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rx_run.h"

#include "base/bytes.h"
#include "base/psn.h"
#include "transport/qp_priv.h"
#include "transport/tp_priv.h"
#include "transport/upcalls.h"
#include "wire/crc32.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/icrc_run.h"
#include "wire/opcode.h"
#include "wire/train.h"

#define ASKS 0x80000000u /* of the last word of a BTH */
#define MIGREQ 0x40
#define LEAST 2 /* packets for which this is worth while */

struct copy {
	struct ur_rx_run *run;
	struct ur_icrc_run icrc;
	const uint8_t *from; /* the BTH of the first */
	uint32_t stride, mtu;
	volatile uint32_t done, asked, asked_psn; /* survive a fault */
};

/*
 * Payload is written before its ICRC is known, which is harmless in the middle of a message: the next packet that is right overwrites it,
 * nothing is acknowledged or completed, and the last packet of the message, at which programs look, is not among these.
 */
static void copy_run(void *arg)
{
	struct copy *c = arg;
	const uint8_t *b = c->from;
	uint8_t *to = c->run->to;
	uint64_t like, here;

	memcpy(&like, b, sizeof(like));
	for (uint32_t i = 0; i < c->run->n; b += c->stride, to += c->mtu) {
		uint32_t word = ur_get32(b + 8), crc = c->icrc.state ^ (word & ASKS ? UR_ICRC_ACKREQ : 0);

		memcpy(&here, b, sizeof(here));
		if (ur_unlikely(here != like || (word & ~ASKS) != c->icrc.psn))
			return;
		crc = ur_crc32_copy(crc, to, b + UR_BTH_LEN, c->mtu);
		if (ur_unlikely(crc != ur_get_le32(b + UR_BTH_LEN + c->mtu)))
			return;
		if (word & ASKS) {
			c->asked++;
			c->asked_psn = c->icrc.psn;
		}
		ur_icrc_run_next(&c->icrc);
		c->done = ++i;
	}
}

/* Bits that are set in no packet of a run: it is not the last of a message, has no pad, and carries no mark. */
static bool plain(const uint8_t *bth)
{
	return !(bth[1] & ~MIGREQ) && !bth[4] && ur_pkey_ok(ur_get16(bth + 2)) && !(ur_get32(bth + 8) & ~(ASKS | UR_PSN_MASK));
}

static bool find_place(struct ur_qp *qp, uint8_t op, struct ur_rx_run *run)
{
	enum ibv_qp_state st = ur_qp_st(qp);

	switch (op) {
	case UR_RC | UR_OP_SEND_MIDDLE:
	case UR_RC | UR_OP_WRITE_MIDDLE: return (st == IBV_QPS_RTS || st == IBV_QPS_RTR) && ur_resp_run_place(qp, op, run);
	case UR_RC | UR_OP_READ_RESP_MIDDLE: return st == IBV_QPS_RTS && ur_comp_run_place(qp, run);
	default: return false;
	}
}

static void start_icrc(struct copy *c, const struct ur_pkt *t, uint8_t place)
{
	c->icrc = (struct ur_icrc_run){.psn = c->run->psn, .place = place, .ip_version = t->ip_version};
	c->icrc.state = ur_icrc_begin_bare(t, c->from, UR_BTH_LEN, c->stride + UR_UDP_LEN, place);
	if (c->from[8] & 0x80)
		c->icrc.state ^= UR_ICRC_ACKREQ;
}

unsigned ur_tp_rx_run(struct ur_tp *tp, const struct ur_pkt *t, struct ur_train_cursor *at, ur_time now)
{
	const uint8_t *bth = t->data + at->at;
	struct ur_rx_run run = {.n = (t->len - at->at) / t->stride};
	struct copy c = {.run = &run, .from = bth, .stride = t->stride, .mtu = t->stride - UR_BTH_LEN - UR_ICRC_LEN};
	struct ur_qp *qp;

	if (run.n < LEAST || t->stride < UR_BTH_LEN + UR_ICRC_LEN || !plain(bth) || ur_tos_is_ce(t->tos) || tp->trace)
		return 0;
	qp = ur_qp_find(tp, ur_get24(bth + 5));
	if (!qp || qp->type != IBV_QPT_RC || qp->mtu != c.mtu || !qp->path || !ur_pkt_is_between(t, qp->path))
		return 0;
	run.psn = ur_get24(bth + 9);
	tp->now = now;
	if (!find_place(qp, bth[0], &run) || run.n < LEAST)
		return 0;
	start_icrc(&c, t, at->place);
	ur_touch_call(copy_run, &c); /* a packet that meets missing memory goes the usual way, which knows what that means */
	if (ur_unlikely(!c.done))
		return 0;
	run = (struct ur_rx_run){.n = c.done, .psn = run.psn, .to = run.to, .asked = c.asked, .asked_psn = c.asked_psn};
	at->at += run.n * t->stride;
	at->place = (uint8_t)(at->place + run.n);
	qp->heard = now;
	qp->n.rx_packets += run.n;
	qp->n.rx_bytes += (uint64_t)run.n * c.mtu;
	if (bth[0] == (UR_RC | UR_OP_READ_RESP_MIDDLE))
		ur_comp_run_done(qp, &run, now);
	else
		ur_resp_run_done(qp, bth[0], &run);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
	return run.n;
}
