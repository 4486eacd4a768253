/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rx_run.h"

#include "base/bytes.h"
#include "base/psn.h"
#include "transport/qp_priv.h"
#include "transport/tp_priv.h"
#include "transport/upcalls.h"
#include "wire/crc32.h"
#include "wire/frame.h"
#include "wire/icrc_run.h"
#include "wire/opcode.h"
#include "wire/row.h"

#define ASKS 0x80000000u /* of the last word of a BTH */
#define MIGREQ 0x40
#define LEAST 2 /* packets for which this is worth while */

struct copy {
	struct ur_rx_run *run;
	const struct ur_row *row;
	struct ur_icrc_run icrc;
	struct ur_row_headers headers;
	uint32_t mtu;
	volatile uint32_t done, asked, asked_psn; /* survive a fault */
};

/*
 * Payload is written before its ICRC is known, which is harmless in the middle of a message: the next packet that is right overwrites it,
 * nothing is acknowledged or completed, and the last packet of the message, at which programs look, is not among these.
 */
__attribute__((always_inline)) static inline void copy_row(struct copy *c, bool apart)
{
	const struct ur_row *row = c->row;
	const uint8_t *b = row->bth;
	uint8_t *to = c->run->to;
	uint32_t change = 0;
	uint64_t like, here;

	memcpy(&like, b, sizeof(like));
	for (uint32_t i = 0; i < c->run->n; b += row->stride, to += c->mtu) {
		uint32_t word, crc;

		if (apart && ur_unlikely(!(b = ur_row_at(row, &c->headers, i, &change))))
			return;
		word = ur_get32(b + 8);
		crc = c->icrc.state ^ change ^ (word & ASKS ? UR_ICRC_ACKREQ : 0);
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

static void copy_train(void *arg)
{
	copy_row(arg, false);
}

static void copy_burst(void *arg)
{
	copy_row(arg, true);
}

/* Bits that are set in no packet of a run: it is not the last of a message, has no pad, and carries no mark. */
static bool plain(const uint8_t *bth)
{
	return !(bth[1] & ~MIGREQ) && !bth[4] && ur_pkey_ok(ur_get16(bth + 2)) && !(ur_get32(bth + 8) & ~(ASKS | UR_PSN_MASK));
}

static bool is_middle(uint8_t op)
{
	return op == (UR_RC | UR_OP_SEND_MIDDLE) || op == (UR_RC | UR_OP_WRITE_MIDDLE) || op == (UR_RC | UR_OP_READ_RESP_MIDDLE);
}

static bool find_place(struct ur_qp *qp, uint8_t op, struct ur_rx_run *run)
{
	enum ibv_qp_state st = ur_qp_st(qp);

	if (op == (UR_RC | UR_OP_READ_RESP_MIDDLE))
		return st == IBV_QPS_RTS && ur_comp_run_place(qp, run);
	return (st == IBV_QPS_RTS || st == IBV_QPS_RTR) && ur_resp_run_place(qp, op, run);
}

/* Without a look at a QP. */
static bool may_be_run(const struct ur_tp *tp, const struct ur_row *row)
{
	if (row->n < LEAST || row->stride < UR_BTH_LEN + UR_ICRC_LEN || !is_middle(row->bth[0]))
		return false;
	return plain(row->bth) && !ur_tos_is_ce(row->like->tos) && !tp->trace;
}

unsigned ur_tp_rx_run(struct ur_tp *tp, const struct ur_row *row, ur_time now)
{
	const uint8_t *bth = row->bth;
	struct ur_rx_run run = {.n = row->n};
	struct copy c;
	struct ur_qp *qp;

	if (!may_be_run(tp, row))
		return 0;
	c.mtu = row->stride - UR_BTH_LEN - UR_ICRC_LEN;
	qp = ur_qp_find(tp, ur_get24(bth + 5));
	if (!qp || qp->type != IBV_QPT_RC || qp->mtu != c.mtu || !qp->path || !ur_pkt_is_between(row->like, qp->path))
		return 0;
	run.psn = ur_get24(bth + 9);
	tp->now = now;
	if (!find_place(qp, bth[0], &run) || run.n < LEAST)
		return 0;
	c.run = &run;
	c.row = row;
	c.done = c.asked = c.asked_psn = 0;
	c.icrc = (struct ur_icrc_run){.psn = run.psn, .place = row->place};
	c.icrc.ip_version = row->apart ? 0 : row->like->ip_version;
	c.icrc.state = ur_row_icrc(row, &c.headers);
	/* A packet that meets missing memory goes the usual way, which knows what that means. */
	ur_touch_call(row->apart ? copy_burst : copy_train, &c);
	if (ur_unlikely(!c.done))
		return 0;
	run = (struct ur_rx_run){.n = c.done, .psn = run.psn, .to = run.to, .asked = c.asked, .asked_psn = c.asked_psn};
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
