/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reorder buffer: request packets beyond a lost one, kept until that has come again. The copies are in memory of the instance, which
 * all QPs share and which grows as it is used. A QP has a buffer while it keeps packets: which have arrived, and where their copies are.
 *
 * What bounds them: a buffer takes PSNs no farther beyond the expected one than the peer has shown that it has in flight, for a packet that
 * is kept is believed when its turn comes, and the farther that goes, the easier it is for somebody who cannot see the packets to guess a
 * PSN. What counts as shown are packets that were executed, as no guess is: four times as many as came within a millisecond, or a round
 * trip where that is longer, and eight times as far as one came early, so that a long path is learnt from its first loss; UR_REORDER_LEAST
 * for those that begin, and less than UR_REORDER_SPAN. And a QP may have at most UR_REORDER_SHARE times as many copies of a size as are
 * left of it for others, so one QP in need leaves a quarter to the next. And a buffer without news gives way: after UR_REORDER_IDLE to a QP
 * that finds no room, after UR_REORDER_OLD in any case, when another buffer is begun or its QP receives something. Its peer is told by a
 * NAK, and sends all again. No hole in use is without news for so long: a host of our kind asks after some round trips, others after their
 * ACK timer, and after several of its intervals what they sent then has come twice.
 */
#ifndef UR_REORDER_H
#define UR_REORDER_H

#include "transport/state/tp_priv.h"
#include "wire/sack.h"

#define UR_REORDER_SPAN 32768u
#define UR_REORDER_LEAST 64u
#define UR_REORDER_SHARE 3
#define UR_REORDER_IDLE (100 * UR_NS_PER_MS)
#define UR_REORDER_OLD (4 * UR_NS_PER_S)
#define UR_REORDER_BYTES (64u << 20) /* of an instance, unless it is told otherwise */

struct ur_reorder_arena;

/* 0 or ENOMEM. `bytes`: how much it may grow to. */
int ur_reorder_open(struct ur_reorder_arena **out, size_t bytes);
void ur_reorder_close(struct ur_reorder_arena *a);

/* A packet, from its BTH to the end of its payload. */
struct ur_reordered {
	struct ur_reordered *next; /* in its row of the buffer */
	uint32_t psn;
	uint16_t payload_off, payload_len; /* from the BTH on */
	uint16_t beyond;                   /* how far beyond the expected PSN it came */
	uint8_t size;                      /* which of the arena's it has */
	uint8_t bytes[];
};

enum ur_reorder_result {
	UR_REORDER_NOT,       /* of a kind, or a PSN, that is not kept */
	UR_REORDER_FULL,      /* no room */
	UR_REORDER_DUPLICATE, /* it is there already */
	UR_REORDER_DIFFERS,   /* another one with that PSN was, and is not any more */
	UR_REORDER_KEPT,
};

#define UR_REORDER_PACE UR_NS_PER_MS

void ur_reorder_note_pace_now(struct ur_qp *qp);

/* How many packets are executed in a while? Asked when something is acknowledged. */
static inline void ur_reorder_note_pace(struct ur_qp *qp)
{
	if (ur_unlikely(qp->tp->now - qp->resp.paced_at >= UR_REORDER_PACE))
		ur_reorder_note_pace_now(qp);
}

/* Keeps a copy of a packet whose ICRC is right, and whose PSN is `d` after the expected one. */
enum ur_reorder_result ur_reorder_add(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t d);
/* The packet with that PSN, or NULL; the one with the expected PSN. The QP keeps packets, as for all that follows. */
const struct ur_reordered *ur_reorder_at(const struct ur_qp *qp, uint32_t psn);
const struct ur_reordered *ur_reorder_next(const struct ur_qp *qp);
/* As it came, for execution. */
void ur_reorder_view(const struct ur_reordered *k, struct ur_pkt *view);
/* That packet is not kept any longer: it has to come again. */
void ur_reorder_forget(struct ur_qp *qp);
/* What is before the expected PSN, which was `from` and has moved on, is not kept any longer. */
void ur_reorder_pass(struct ur_qp *qp, uint32_t from);
/* When something was last kept, or a hole was filled. */
ur_time ur_reorder_news_at(const struct ur_qp *qp);
/* The QP other than this one whose buffer has been without news for longest, if that is for longer than `age`; else NULL. */
struct ur_qp *ur_reorder_idlest(const struct ur_qp *qp, ur_time age);
/* Has there been no news for so long that what is kept is not to be believed any more? */
bool ur_reorder_is_old(const struct ur_qp *qp);
/* Nothing is kept any longer; if anything was. */
void ur_reorder_drop(struct ur_qp *qp);

/* That PSN has to be in the next SACK. */
void ur_reorder_report(struct ur_qp *qp, uint32_t psn);
/* The next SACK; true: what has to be reported does not fit into this one. */
bool ur_reorder_sack(struct ur_qp *qp, struct ur_sack *s);

#endif
