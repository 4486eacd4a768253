/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request packets beyond a lost one, kept until that has come again: copies in memory of the instance, which all QPs share and which
 * grows as it is used. A QP has a board while it keeps packets: which have arrived, and where their copies are.
 *
 * What bounds them: a board takes PSNs no farther beyond the expected one than the peer has shown that it has in flight, for a packet that
 * is kept is believed when its turn comes, and the farther that goes, the easier it is for somebody who cannot see the packets to guess a
 * PSN. What counts as shown are packets that were executed, as no guess is: four times as many as came within a millisecond, or a round
 * trip where that is longer, and eight times as far as one came early, so that a long path is learnt from its first loss; UR_KEEP_LEAST
 * for those that begin, and less than UR_KEEP_SPAN. And a QP may have at most UR_KEEP_SHARE times as many copies of a size as are left of
 * it for others, so one QP in need leaves a quarter to the next. And a board without news gives way: after UR_KEEP_IDLE to a QP that finds
 * no room, after UR_KEEP_OLD in any case, when another board is begun or its QP receives something. Its peer is told by a NAK, and sends
 * all again. No hole in use is without news for so long: a host of our kind asks after some round trips, others after their ACK timer, and
 * after several of its intervals what they sent then has come twice.
 */
#ifndef UR_KEEP_H
#define UR_KEEP_H

#include "transport/state/tp_priv.h"
#include "wire/sack.h"

#define UR_KEEP_SPAN 32768u
#define UR_KEEP_LEAST 64u
#define UR_KEEP_SHARE 3
#define UR_KEEP_IDLE (100 * UR_NS_PER_MS)
#define UR_KEEP_OLD (4 * UR_NS_PER_S)
#define UR_KEEP_BYTES (64u << 20) /* of an instance, unless it is told otherwise */

struct ur_keep_arena;

/* 0 or ENOMEM. `bytes`: how much it may grow to. */
int ur_keep_open(struct ur_keep_arena **out, size_t bytes);
void ur_keep_close(struct ur_keep_arena *a);

/* A packet, from its BTH to the end of its payload. */
struct ur_kept {
	struct ur_kept *next; /* in its row of the board */
	uint32_t psn;
	uint16_t payload_off, payload_len; /* from the BTH on */
	uint16_t beyond;                   /* how far beyond the expected PSN it came */
	uint8_t size;                      /* which of the arena's it has */
	uint8_t bytes[];
};

enum ur_keep_how {
	UR_KEEP_NOT,     /* of a kind, or a PSN, that is not kept */
	UR_KEEP_FULL,    /* no room */
	UR_KEEP_TWICE,   /* it is there already */
	UR_KEEP_DIFFERS, /* another one with that PSN was, and is not any more */
	UR_KEEP_DONE,
};

#define UR_KEEP_PACE UR_NS_PER_MS

void ur_keep_note_pace_now(struct ur_qp *qp);

/* How many packets are executed in a while? Asked when something is acknowledged. */
static inline void ur_keep_note_pace(struct ur_qp *qp)
{
	if (ur_unlikely(qp->tp->now - qp->resp.paced_at >= UR_KEEP_PACE))
		ur_keep_note_pace_now(qp);
}

/* Keeps a copy of a packet whose ICRC is right, and whose PSN is `d` after the expected one. */
enum ur_keep_how ur_keep_add(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t d);
/* The packet with that PSN, or NULL; the one with the expected PSN. The QP keeps packets, as for all that follows. */
const struct ur_kept *ur_keep_at(const struct ur_qp *qp, uint32_t psn);
const struct ur_kept *ur_keep_next(const struct ur_qp *qp);
/* As it came, for execution. */
void ur_keep_view(const struct ur_kept *k, struct ur_pkt *view);
/* That packet is not kept any longer: it has to come again. */
void ur_keep_forget(struct ur_qp *qp);
/* What is before the expected PSN, which was `from` and has moved on, is not kept any longer. */
void ur_keep_pass(struct ur_qp *qp, uint32_t from);
/* When something was last kept, or a hole was filled. */
ur_time ur_keep_news_at(const struct ur_qp *qp);
/* The QP other than this one whose board has been without news for longest, if that is for longer than `age`; else NULL. */
struct ur_qp *ur_keep_idlest(const struct ur_qp *qp, ur_time age);
/* Has there been no news for so long that what is kept is not to be believed any more? */
bool ur_keep_is_old(const struct ur_qp *qp);
/* Nothing is kept any longer; if anything was. */
void ur_keep_drop(struct ur_qp *qp);

/* That PSN has to be in the next SACK. */
void ur_keep_report(struct ur_qp *qp, uint32_t psn);
/* The next SACK; true: what has to be reported does not fit into this one. */
bool ur_keep_sack(struct ur_qp *qp, struct ur_sack *s);

#endif
