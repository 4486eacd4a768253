/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a message of an unreliable connection that does not go on (IBTA volume 1, 9.9.3): uc.c. */
#ifndef UR_UC_MESSAGE_H
#define UR_UC_MESSAGE_H

#include "transport/state/verdict.h"
#include "transport/transport.h"

/* It is over. A receive of the QP's own is for the next message; one of an SRQ is given back with an error (class D1). */
void ur_uc_give_up(struct ur_qp *qp);
/* As ur_resp_conclude. */
void ur_uc_refuse(struct ur_qp *qp, enum ur_resp_verdict v);

#endif
