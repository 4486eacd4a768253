/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of received packets: those of a row (wire/row.h) in the middle of a message that the QP waits for. Their headers are known before
 * they come, but for AckReq, so they are compared and not parsed; the QP, the rights and the memory are looked up once for all of them, and
 * the state moves on once. rx_only.h has rows of whole messages. Whatever does not fit exactly is left to the usual way, at its place: it
 * finds out what is the matter.
 */
#include "base/bytes.h"
#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/packet/rx_walk.h"
#include "transport/requester/responses.h"
#include "transport/responder/responder.h"
#include "transport/rx_only.h"
#include "transport/state/admit.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/crc/crc32.h"
#include "wire/frame.h"
#include "wire/opcode.h"

#define MIGREQ 0x40
#define LEAST 2 /* packets for which this is worth while */

struct copy {
	struct ur_rx_walk walk;
	struct ur_rx_run *run;
	uint32_t mtu;
};

/*
 * Payload is written before its ICRC is known, which is harmless in the middle of a message: the next packet that is right overwrites it,
 * nothing is acknowledged or completed, and the last packet of the message, at which programs look, is not among these.
 */
__attribute__((always_inline)) static inline void copy_row(struct copy *c, bool apart)
{
	const struct ur_row *row = c->walk.row;
	const uint8_t *b = row->bth;
	uint8_t *to = c->run->to;

	for (uint32_t i = 0; i < c->run->n; i++, b += row->stride, to += c->mtu) {
		uint32_t crc;

		b = ur_rx_walk_at(&c->walk, b, i, apart, &crc);
		if (ur_unlikely(!b))
			return;
		crc = ur_crc32_copy(crc, to, b + UR_BTH_LEN, c->mtu);
		if (ur_unlikely(crc != ur_get_le32(b + UR_BTH_LEN + c->mtu)))
			return;
		ur_rx_walk_on(&c->walk, b, i);
	}
}

static void copy_train(void *arg)
{
	copy_row(arg, false);
}

static void copy_burst(void *arg)
{
	copy_row(arg, true);
}

static bool is_middle(uint8_t op)
{
	return op == (UR_RC | UR_OP_SEND_MIDDLE) || op == (UR_RC | UR_OP_WRITE_MIDDLE) || op == (UR_RC | UR_OP_READ_RESP_MIDDLE);
}

/* The middle of a message has no pad, and asks for no event. */
static bool middle_may(const uint8_t *bth)
{
	return is_middle(bth[UR_BTH_OPCODE]) && !(bth[UR_BTH_FLAGS] & ~MIGREQ);
}

/* Whatever else is not usual in a BTH: another partition, marks, bits that are reserved. */
static bool plain(const uint8_t *bth)
{
	return !bth[UR_BTH_ECN] && ur_pkey_ok(ur_get16(bth + UR_BTH_PKEY)) &&
	       !(ur_get32(bth + UR_BTH_ACKREQ) & ~(UR_RX_ASKS | UR_PSN_MASK));
}

static bool find_place(struct ur_qp *qp, uint8_t op, struct ur_rx_run *run)
{
	if (op == (UR_RC | UR_OP_READ_RESP_MIDDLE))
		return ur_qp_st(qp) == IBV_QPS_RTS && ur_comp_run_place(qp, run);
	return ur_resp_run_place(qp, op, run);
}

/* Without a look at a QP. */
static bool may_be_run(const struct ur_row *row)
{
	if (row->n < LEAST || row->stride < UR_BTH_LEN + UR_ICRC_LEN || !(middle_may(row->bth) || ur_rx_only_may(row->bth)))
		return false;
	return plain(row->bth) && !ur_tos_is_ce(row->like->tos);
}

static unsigned middles(struct ur_qp *qp, const struct ur_row *row, ur_time now)
{
	const uint8_t op = row->bth[UR_BTH_OPCODE];
	struct ur_rx_run run = {.n = row->n, .psn = ur_get24(row->bth + UR_BTH_PSN)};
	struct copy c = {.run = &run, .mtu = row->stride - UR_BTH_LEN - UR_ICRC_LEN};

	if (qp->mtu != c.mtu || !find_place(qp, op, &run) || run.n < LEAST)
		return 0;
	ur_rx_walk_begin(&c.walk, row);
	/* A packet that meets missing memory goes the usual way, which knows what that means. */
	ur_touch_call(row->apart ? copy_burst : copy_train, &c);
	if (ur_unlikely(!c.walk.done))
		return 0;
	run = (struct ur_rx_run){.n = c.walk.done, .psn = run.psn, .to = run.to, .asked = c.walk.asked, .asked_psn = c.walk.asked_psn};
	ur_rx_walk_heard(&c.walk, qp, c.mtu, now);
	if (op == (UR_RC | UR_OP_READ_RESP_MIDDLE))
		ur_comp_run_done(qp, &run, now);
	else
		ur_resp_run_done(qp, op, &run);
	return run.n;
}

unsigned ur_tp_rx_run(struct ur_tp *tp, const struct ur_row *row, ur_time now)
{
	enum ibv_qp_state st;
	struct ur_qp *qp;
	unsigned n;

	if (!may_be_run(row))
		return 0;
	qp = ur_qp_find(tp, ur_get24(row->bth + UR_BTH_QPN));
	if (!qp || qp->type != IBV_QPT_RC || !qp->path || !ur_pkt_is_between(row->like, qp->path))
		return 0;
	st = ur_qp_st(qp);
	if (st != IBV_QPS_RTS && st != IBV_QPS_RTR)
		return 0;
	tp->now = now;
	n = is_middle(row->bth[UR_BTH_OPCODE]) ? middles(qp, row, now) : ur_rx_only(qp, row, now);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
	return n;
}
