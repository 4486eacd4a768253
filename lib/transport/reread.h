/* SPDX-License-Identifier: BSD-3-Clause */
/* Lost READ responses: which are missing, which came early, which were asked for again. */
#ifndef UR_REREAD_H
#define UR_REREAD_H

#include "base/base.h"

struct ur_pkt;
struct ur_qp;
struct ur_requester;
struct ur_swqe;

/* FIRST: the oldest READ response is lost and had not been asked for; MORE: others are. */
enum ur_reread_found { UR_REREAD_NOTHING, UR_REREAD_FIRST, UR_REREAD_MORE };

/* All before `upto` has been executed, and the READ response `una` is not here. */
enum ur_reread_found ur_reread_known(struct ur_qp *qp, uint32_t upto, ur_time now);
/* Asks for all holes once more. False when there are none. */
bool ur_reread_again(struct ur_qp *qp, ur_time now);
/* Builds a request for the next hole. False when there is none, or no buffer. */
bool ur_reread_build(struct ur_qp *qp);
/* READs before `upto` are asked for in other pieces as well: their responses may begin and end messages anywhere. */
void ur_reread_split(struct ur_requester *r, uint32_t upto);
/* Keeps a response beyond a hole. False when it cannot or need not be kept. */
bool ur_reread_take(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p);
/* Completes what is there after `una`, which was a hole. */
void ur_reread_collect(struct ur_qp *qp);
/* All is sent again from `una` on. */
void ur_reread_forget(struct ur_requester *r);

#endif
