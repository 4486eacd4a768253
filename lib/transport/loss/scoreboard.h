/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses: what has arrived beyond a hole, what is lost, and what was sent again. */
#ifndef UR_LOSS_SCOREBOARD_H
#define UR_LOSS_SCOREBOARD_H

#include "transport/state/scoreboard_state.h"
#include "wire/opcode.h"

struct ur_pkt;
struct ur_qp;
struct ur_requester;
struct ur_sack;
struct ur_swqe;

/* A new connection begins at `psn`. */
void ur_scoreboard_open(struct ur_scoreboard *sb, uint32_t psn);
/* Takes notes from now on. False without memory: what is lost is repaired by going back. */
bool ur_scoreboard_start(struct ur_qp *qp);
/* `una` has moved. */
void ur_scoreboard_una_moved(struct ur_qp *qp, ur_time now);
/* All before `upto` has been executed, and READs or atomics wait for answers. */
void ur_scoreboard_executed(struct ur_qp *qp, uint32_t upto, ur_time now);
/* As ur_scoreboard_executed, and answers to what is before `upto` would be here. */
void ur_scoreboard_answered(struct ur_qp *qp, uint32_t upto, ur_time now);
/* What the bits of a SACK say. */
void ur_scoreboard_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now);
/* The answer `psn` of `w` has come, in its turn. */
void ur_scoreboard_answer(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now);
/* Keeps an answer beyond a hole. False when it cannot or need not be kept. */
bool ur_scoreboard_take_answer(struct ur_qp *qp, struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);
/* Completes what is there after `una`, which was a hole. */
void ur_scoreboard_collect(struct ur_qp *qp);
/* All retransmissions of which nothing was heard are lost. False: there are none, and nothing is lost. */
bool ur_scoreboard_lose_unheard(struct ur_qp *qp);
/* PSNs that were sent again and of which nothing was heard. */
uint32_t ur_scoreboard_unheard(const struct ur_scoreboard *sb);
/* What to send again next: PSNs [psn, psn + n) of the work request `index`, which are one READ request at most. False for nothing. */
bool ur_scoreboard_next_lost(struct ur_qp *qp, uint32_t *index, uint32_t *psn, uint32_t *n);
/* That was done. */
void ur_scoreboard_retransmitted(struct ur_qp *qp, uint32_t psn, uint32_t n, bool answer, ur_time now);
/* All is sent again from `una` on. */
void ur_scoreboard_clear(struct ur_requester *r);

#endif
