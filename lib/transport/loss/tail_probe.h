/* SPDX-License-Identifier: BSD-3-Clause */
/* Tail loss probes (RFC 8985, section 7): packets that are sent once more because an acknowledgement is overdue. */
#ifndef UR_TAIL_PROBE_H
#define UR_TAIL_PROBE_H

#include "transport/control/window.h"

struct ur_tail_probe;
struct ur_qp;

/*
 * When a probe is due, unless there is progress. The ACK timer has run since `since`, for at most `timeout` (0: there is none). `few`:
 * little is in flight, as of short messages.
 */
ur_time ur_tail_probe_due(const struct ur_tail_probe *p, const struct ur_rtt *t, ur_time since, ur_time timeout, bool few);
/* When the timer of the requester has something to do next, as things stand: when a probe is due, or the ACK timer expires. */
ur_time ur_tail_probe_expiry(const struct ur_qp *qp);
/* The interval of the ACK timer that follows one of `wait` that expired. The program asked for `timeout`. */
ur_time ur_ack_timer_longer(ur_time wait, ur_time timeout);
/* It is due now; `expired`: because the ACK timer has expired, so that one packet may go in any case. */
void ur_tail_probe(struct ur_qp *qp, bool expired, ur_time now);
/* It is due, and the caller sends all in flight again in its place, unless (false) that cannot be paid for. */
bool ur_tail_probe_all(struct ur_qp *qp, ur_time now);
/* Nothing is overdue any more. */
void ur_tail_probe_end(struct ur_tail_probe *p);
/*
 * May a packet that has just been sent be sent once more, as a precaution? Then it is paid for; half of what there is stays for what is
 * overdue.
 */
bool ur_tail_probe_afford_copy(struct ur_qp *qp, ur_time now);
/* Something was found to be lost: what was paid for to find that out was well spent. */
void ur_tail_probe_proved(struct ur_qp *qp, ur_time now);
/* The peer keeps what comes beyond a hole, and says so when it is asked. */
bool ur_peer_reports_sacks(const struct ur_qp *qp);
/*
 * Nothing more will be sent, and what was sent last did not ask for an acknowledgement (requester.c: asks): it is sent once more, and asks.
 */
void ur_tail_probe_last(struct ur_qp *qp);
/* There is progress after a probe. */
void ur_tail_probe_answered(struct ur_qp *qp, ur_time now);
/* An acknowledgement, or answer, of that PSN has come although it had been acknowledged: of one of two packets, each of which arrived. */
void ur_tail_probe_answered_twice(struct ur_qp *qp, uint32_t psn);
/* The packet that is to be sent once more, and on to the next one. False for none. */
bool ur_tail_probe_target(struct ur_qp *qp, uint32_t *index, uint32_t *psn);

#endif
