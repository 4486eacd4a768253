/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets are lost. */
#ifndef UR_RACK_H
#define UR_RACK_H

#include "transport/state/scoreboard_state.h"

struct ur_qp;
struct ur_requester;

/* What loss detection has found. FIRST: the oldest PSN is among what is lost. */
enum ur_found { UR_FOUND_NOTHING, UR_FOUND_MORE, UR_FOUND_FIRST };

/* Decides what is lost, by what is noted in the scoreboard. */
enum ur_found ur_rack_detect_loss(struct ur_qp *qp, ur_time now);
/* What has not arrived of the first `n` PSNs of a retransmission is lost; the rest stays. */
void ur_rack_lose_first(struct ur_requester *r, struct ur_retransmission *e, uint32_t n);

#endif
