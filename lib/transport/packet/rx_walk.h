/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of a row (wire/row.h) one after another, as long as they have the headers that are expected: the BTH of the first but for
 * AckReq, and the next PSN. Whoever walks checks the ICRC, and says which packets have been executed.
 */
#ifndef UR_RX_WALK_H
#define UR_RX_WALK_H

#include "base/bytes.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"
#include "wire/crc/icrc_run.h"
#include "wire/row.h"

/* What a QP waits for of such a row (rx_run.c). */
struct ur_rx_run {
	uint32_t n;                /* packets, with the path MTU of payload each; the place below has room for as many */
	uint32_t psn;              /* of the first */
	uint8_t *to;               /* where their payload goes */
	uint32_t asked, asked_psn; /* how many asked for an acknowledgement, and the last that did */
};

#define UR_RX_ASKS 0x80000000u /* of the last word of a BTH */

struct ur_rx_walk {
	const struct ur_row *row;
	uint64_t like; /* what is before that word in all BTHs */
	struct ur_icrc_run icrc;
	struct ur_row_headers headers;
	volatile uint32_t done, asked,
		asked_psn; /* packets executed; how many asked for an acknowledgement, and the last. Survive a fault */
};

static inline void ur_rx_walk_begin(struct ur_rx_walk *w, const struct ur_row *row)
{
	w->row = row;
	memcpy(&w->like, row->bth, sizeof(w->like));
	w->done = w->asked = w->asked_psn = 0;
	w->icrc = (struct ur_icrc_run){.psn = ur_get24(row->bth + UR_BTH_PSN), .place = row->place};
	w->icrc.ip_version = row->apart ? 0 : row->like->ip_version;
	w->icrc.state = ur_row_icrc(row, &w->headers);
}

/* The BTH of packet i, which is `b` if they are a train's, and the ICRC's state after it; NULL when it is not what is expected. */
__attribute__((always_inline)) static inline const uint8_t *ur_rx_walk_at(const struct ur_rx_walk *w, const uint8_t *b, uint32_t i,
									  bool apart, uint32_t *crc)
{
	uint32_t word, change = 0;
	uint64_t here;

	if (apart && ur_unlikely(!(b = ur_row_at(w->row, &w->headers, i, &change))))
		return NULL;
	word = ur_get32(b + UR_BTH_ACKREQ);
	*crc = w->icrc.state ^ change ^ (word & UR_RX_ASKS ? UR_ICRC_ACKREQ : 0);
	memcpy(&here, b, sizeof(here));
	return ur_likely(here == w->like && (word & ~UR_RX_ASKS) == w->icrc.psn) ? b : NULL;
}

/* It has been executed. */
__attribute__((always_inline)) static inline void ur_rx_walk_on(struct ur_rx_walk *w, const uint8_t *b, uint32_t i)
{
	if (b[8] & UR_RX_ASKS >> 24) {
		w->asked++;
		w->asked_psn = w->icrc.psn;
	}
	ur_icrc_run_next(&w->icrc);
	w->done = i + 1;
}

/* What they leave behind at any QP, before anything follows from them; the payload of each is `len` bytes long. */
static inline void ur_rx_walk_heard(const struct ur_rx_walk *w, struct ur_qp *qp, uint32_t len, ur_time now)
{
	if (ur_unlikely(qp->tp->trace != NULL))
		ur_tp_trace_row(qp, w->row, w->done, len);
	qp->heard = now;
	qp->n.rx_packets += w->done;
	qp->n.rx_bytes += (uint64_t)w->done * len;
}

#endif
