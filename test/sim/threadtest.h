/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_THREADTEST_H
#define UR_TEST_THREADTEST_H

#include "test/sim/world.h"

/* Takes an RC QP to RTS. */
bool connect_qp(struct ur_nic *nic, struct ur_qp *qp, struct ur_net_path *path, const struct ur_gid *dgid, uint32_t dqpn, ur_time now);

/* threadlanes.c: NULL, or what went wrong. */
const char *run_lanes(unsigned ops);

#endif
