/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses: what has arrived beyond a hole, what is lost, and what was sent again. */
#ifndef UR_REPAIR_H
#define UR_REPAIR_H

#include "transport/state/scoreboard.h"
#include "wire/opcode.h"

struct ur_pkt;
struct ur_qp;
struct ur_requester;
struct ur_sack;
struct ur_swqe;

/* A new connection begins at `psn`. */
void ur_repair_open(struct ur_repair *m, uint32_t psn);
/* Takes notes from now on. False without memory: what is lost is repaired by going back. */
bool ur_repair_start(struct ur_qp *qp);
/* `una` has moved. */
void ur_repair_moved(struct ur_qp *qp, ur_time now);
/* All before `upto` has been executed, and READs or atomics wait for answers. */
void ur_repair_done(struct ur_qp *qp, uint32_t upto, ur_time now);
/* As ur_repair_done, and answers to what is before `upto` would be here. */
void ur_repair_answered(struct ur_qp *qp, uint32_t upto, ur_time now);
/* What the bits of a SACK say. */
void ur_repair_sack(struct ur_qp *qp, const struct ur_sack *s, ur_time now);
/* The answer `psn` of `w` has come, in its turn. */
void ur_repair_answer(struct ur_qp *qp, const struct ur_swqe *w, uint32_t psn, ur_time now);
/* Keeps an answer beyond a hole. False when it cannot or need not be kept. */
bool ur_repair_take(struct ur_qp *qp, struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now);
/* Completes what is there after `una`, which was a hole. */
void ur_repair_collect(struct ur_qp *qp);
/* All repeats of which nothing was heard are lost. False: there are none, and nothing is lost. */
bool ur_repair_again(struct ur_qp *qp);
/* PSNs that were sent again and of which nothing was heard. */
uint32_t ur_repair_unheard(const struct ur_repair *m);
/* What to send again next: PSNs [psn, psn + n) of the work request `index`, which are one READ request at most. False for nothing. */
bool ur_repair_next(struct ur_qp *qp, uint32_t *index, uint32_t *psn, uint32_t *n);
/* That was done. */
void ur_repair_sent(struct ur_qp *qp, uint32_t psn, uint32_t n, bool answer, ur_time now);
/* All is sent again from `una` on. */
void ur_repair_forget(struct ur_requester *r);

#endif
