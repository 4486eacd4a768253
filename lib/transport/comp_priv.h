/* SPDX-License-Identifier: BSD-3-Clause */
/* What acknowledgements (completer.c) and answers (answers.c) bring about alike. */
#ifndef UR_COMP_PRIV_H
#define UR_COMP_PRIV_H

#include "transport/transport.h"

/*
 * Completes everything before PSN `upto`. False when it meets a READ or atomic with responses missing before `upto`: `una` then stays at
 * the first of those. `una` always lies within the WQE at `head`.
 */
bool ur_comp_advance(struct ur_qp *qp, uint32_t upto);
/* Something was acknowledged: `una` has moved. */
void ur_comp_progress(struct ur_qp *qp, ur_time now);
/* What may follow from any progress, and from news of what lies beyond a hole. */
void ur_comp_settle(struct ur_qp *qp);
/*
 * An answer before this one has not come, which is known by a NAK, or in plain recovery, or of a bulk packet: from the hole on all is sent
 * again, once, because more answers of that kind are on their way.
 */
void ur_comp_implied_nak(struct ur_qp *qp, enum ur_counter otherwise, ur_time now);
/* The peer keeps what comes beyond a hole, as a SACK shows or what it says; and something was lost. */
void ur_comp_peer_sacks(struct ur_qp *qp);

#endif
