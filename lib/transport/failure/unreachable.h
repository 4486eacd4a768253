/* SPDX-License-Identifier: BSD-3-Clause */
/* What a QP does about it when the network says that its peer cannot be reached. */
#ifndef UR_UNREACHABLE_H
#define UR_UNREACHABLE_H

#include "base/base.h"

struct ur_qp;

/* Does a QP whose retries are over look as one does that has a narrow hop on its path, of which nobody tells? */
bool ur_only_short_arrive(const struct ur_qp *qp);
/* Of a QP that has been told, in its timer: lets the ACK timer expire when the next retry is due. */
void ur_unreachable_timer(struct ur_qp *qp, ur_time now);
/* And at the end of it: arms the timer for the next one. */
void ur_unreachable_rearm(struct ur_qp *qp, ur_time now);

#endif
