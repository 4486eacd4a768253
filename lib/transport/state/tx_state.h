/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that a call of ur_tp_tx has built so far: txbuf.c. */
#ifndef UR_TX_STATE_H
#define UR_TX_STATE_H

#include "wire/crc/icrc_run.h"
#include "wire/path.h"
#include "wire/pkt.h"

#define UR_TXBUF_BASES 8 /* a power of two */
#define UR_TXBUF_NO_ROW UINT32_MAX
#define UR_TXBUF_BASE(len) ((len) / 4 & (UR_TXBUF_BASES - 1))

struct ur_txbuf {
	struct ur_pkt **pkts;   /* where the caller of ur_tp_tx wants them */
	unsigned n;             /* packets and trains there */
	struct ur_pkt *last;    /* the packet that was built last, in a buffer of its own; NULL otherwise */
	struct ur_pkt *open;    /* the last of them, if it is a train that more packets may follow in; NULL otherwise */
	bool filling;           /* nothing is built but what joins it */
	unsigned count;         /* packets in it */
	uint32_t stride;        /* bytes of its first one, from the BTH to the ICRC */
	uint32_t start;         /* where the packet at hand begins in it */
	struct ur_icrc_run row; /* of `last`, while packets like it follow; psn UR_TXBUF_NO_ROW: not yet */
	/* Of `open`, which no other call of ur_tp_tx finds: the same one has the same headers. */
	const struct ur_path *path;
	/* What stands before the BTH in the newest train; its path may be gone. */
	uint8_t hdr[UR_PATH_HDR_MAX], hdr_len;
	/*
	 * The ICRC's state after those headers, with identification 0, in packets of a few lengths that come again and again: a length has
	 * its place by UR_TXBUF_BASE; 0: none.
	 */
	struct {
		uint32_t len, state;
	} base[UR_TXBUF_BASES];
	uint32_t last_len; /* of the last packet that was built, with all headers */
};

#endif
