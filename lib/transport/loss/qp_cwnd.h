/* SPDX-License-Identifier: BSD-3-Clause */
/* The congestion window of a QP (cwnd.h): what it is told of the path, and what the requester is told. */
#ifndef UR_QP_CWND_H
#define UR_QP_CWND_H

#include "transport/transport.h"

struct ur_swqe;

void ur_qp_cwnd_init(struct ur_qp *qp);
/* After ur_window_open, within what that has found: the window follows the path from now on, or later, or not. */
void ur_qp_cwnd_open(struct ur_qp *qp);
/* A SACK has come, so something was lost, and the window does not follow the path yet. */
void ur_qp_cwnd_lossy(struct ur_qp *qp);
void ur_qp_cwnd_stop(struct ur_qp *qp);
/* Something was heard of what is in flight: acknowledgements, losses, a round trip. */
void ur_qp_cwnd_heard(struct ur_qp *qp, ur_time now);
/* A packet of ours, or one that we asked for, met congestion. */
void ur_qp_cwnd_marked(struct ur_qp *qp);
/* All in flight is sent again, because something of it was lost and the peer keeps nothing that comes beyond a hole. */
void ur_qp_cwnd_went_back(struct ur_qp *qp, ur_time now);
/* The ACK timer expired. True when the window is smaller than before. */
bool ur_qp_cwnd_expired(struct ur_qp *qp, ur_time now);
/* Something is sent after nothing was in flight. */
void ur_qp_cwnd_resumed(struct ur_qp *qp, ur_time now);
/* A packet was sent while the window is less than one. */
void ur_qp_cwnd_sent(struct ur_qp *qp, ur_time now);
/* A READ is about to be asked for in pieces that are larger than the window: in smaller ones from here on, where that can be. */
void ur_qp_cwnd_read(struct ur_qp *qp, struct ur_swqe *w);

#endif
