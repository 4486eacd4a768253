/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a requester goes on. */
#ifndef UR_REWIND_H
#define UR_REWIND_H

#include "transport/transport.h"

/* The next packet is that of `psn`, in the WQE `index`. */
void ur_req_go_to(struct ur_qp *qp, uint32_t index, uint32_t psn);
/* Sends again from the oldest unacknowledged PSN. */
void ur_req_rewind(struct ur_qp *qp);

#endif
