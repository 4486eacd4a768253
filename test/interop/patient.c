/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To be preloaded: QPs wait half a second for each acknowledgement. The pingpongs ask for 67 ms and give up after eight of them, and have
 * no option for it; on a busy machine an emulated guest, or who talks to it, is silent for longer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>

#define HALF_A_SECOND 17 /* 4.096 us * 2^17 */

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	typeof(ibv_modify_qp) *next = (typeof(ibv_modify_qp) *)dlsym(RTLD_NEXT, "ibv_modify_qp");

	if (mask & IBV_QP_TIMEOUT)
		attr->timeout = HALF_A_SECOND;
	return next(qp, attr, mask);
}
