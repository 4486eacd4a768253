/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where packets to send are built. On a port that sends trains (wire/train.h) they are built one after another in the buffer of a train, as
 * long as they go the same way and none is longer than the first: payload is copied, and the ICRC follows at once, while the bytes are in
 * the cache. For all others each has a buffer of its own. What is in it whole gets its ICRC here as well; where the port sends payload from
 * where it lies, a buffer refers to what is long, and the ICRC is the NIC's business, but for runs.
 *
 *   p = ur_txbuf_begin(...);  ext = ur_pkt_begin(qp, p, op);  headers and payload;  ur_txbuf_end(qp, p);
 */
#ifndef UR_TXBUF_H
#define UR_TXBUF_H

#include "transport/state/tx_state.h"
#include "transport/transport.h"
#include "wire/opcode.h"

/* A new call of ur_tp_tx. */
void ur_txbuf_reset(struct ur_txbuf *b, struct ur_pkt **pkts);
/* What comes next does not join the train before it. */
void ur_txbuf_close(struct ur_txbuf *b);
/* Where to build `bytes` bytes of a packet, from BTH to ICRC. NULL: there is no buffer, or it does not join the train being filled. */
struct ur_pkt *ur_txbuf_begin(struct ur_tp *tp, const struct ur_path *path, uint32_t bytes);
/* The packet is not sent after all. */
void ur_txbuf_undo(struct ur_tp *tp, struct ur_pkt *p);
/* It is complete, except for the pad and the ICRC; p->bth says what is in its BTH. */
void ur_txbuf_end(struct ur_qp *qp, struct ur_pkt *p);

/* A run of packets like the one that was just built, each with the path MTU of payload and no extended headers. */
struct ur_txrun {
	uint8_t *from; /* the payload of all of them */
	struct ur_mr *mr;
	bool copy;  /* it may not be sent from where it lies */
	uint32_t n; /* packets at most */
	uint8_t opcode;
	uint32_t ask_in, ask_every; /* one of them asks for an acknowledgement: the first, if `ask_in` is 0; then every so many */
};

/*
 * A row of packets like the one that was built last, with the same opcode and length: begins the next one, all of whose headers are those
 * of the one before it but for `psn`, the next one, and AckReq. The caller writes the extended headers that differ and the payload, which
 * go where they are in that one. NULL: there is no such packet, or no buffer. Then ur_txbuf_end_like, or ur_txbuf_undo.
 */
struct ur_pkt *ur_txbuf_like(struct ur_qp *qp, bool asks);
void ur_txbuf_end_like(struct ur_qp *qp, struct ur_pkt *p);

/* May a run follow the packet that ur_txbuf_end has just been called for? */
static inline bool ur_txbuf_repeats(const struct ur_txbuf *b)
{
	return b->open || (b->last && !(b->last->flags & UR_PKT_SLIM)); /* without an ICRC there is nothing to do at once */
}
/*
 * Builds it after that packet, in its train as far as that has room, or in buffers of their own, and says how many packets that was: 0
 * where memory at `from` is missing, too. ask_in counts on.
 */
uint32_t ur_txbuf_repeat(struct ur_qp *qp, struct ur_txrun *run);

#endif
