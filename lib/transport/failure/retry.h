/* SPDX-License-Identifier: BSD-3-Clause */
/* One more transmission from the oldest unacknowledged packet on. */
#ifndef UR_RETRY_H
#define UR_RETRY_H

#include "transport/transport.h"

struct ur_requester;

/* One more transmission from `una` on, if the retry counter allows it, or nothing has to be `lost` for it. */
void ur_comp_retry(struct ur_qp *qp, enum ur_trace_cause why, bool lost, ur_time now);
/* False when the retry counter allows no more, and the QP has failed. */
bool ur_comp_spend_retry(struct ur_qp *qp);
/* The peer is there, though nothing is acknowledged. */
void ur_comp_hears(struct ur_requester *r);
/* All that said hello may be among what was lost. */
void ur_comp_hello_again(struct ur_requester *r);
/*
 * An answer before this one has not come, which is known by a NAK, or in plain recovery, or of a bulk packet: from the hole on all is sent
 * again, once, because more answers of that kind are on their way.
 */
void ur_comp_implied_nak(struct ur_qp *qp, enum ur_counter otherwise, ur_time now);
/* All before `upto` has been executed, but an answer before it has not come. */
void ur_comp_answer_missing(struct ur_qp *qp, uint32_t upto, ur_time now);
/* To be followed by ur_req_rewind: READs are asked for in other pieces from now on. */
void ur_comp_window_is_smaller(struct ur_qp *qp);

void ur_comp_trace_rewind(struct ur_qp *qp, enum ur_trace_cause why);
void ur_comp_trace_window(struct ur_qp *qp);

#endif
