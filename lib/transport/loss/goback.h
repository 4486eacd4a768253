/* SPDX-License-Identifier: BSD-3-Clause */
/* What is different for a peer that is known to go back. */
#ifndef UR_GOBACK_H
#define UR_GOBACK_H

#include "base/base.h"

struct ur_qp;
struct ur_requester;

/* A sequence error NAK has come. True when the window is smaller than before. */
bool ur_goback_shed(struct ur_qp *qp);
/* After that NAK: may what is sent again now be timed? */
bool ur_goback_times(const struct ur_requester *r, ur_time now);
/* Acknowledgements are overdue, and a probe is to be sent. True when all is sent again in its place. */
bool ur_goback_overdue(struct ur_qp *qp, ur_time now);

#endif
