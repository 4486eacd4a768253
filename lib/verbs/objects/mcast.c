/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_attach_mcast(3), ibv_detach_mcast(3). RoCE has no LIDs, so the MLID says nothing. */
#include <errno.h>

#include "verbs/internal.h"

typedef int (*mcast_fn)(struct ur_nic *nic, struct ur_qp *qp, const struct ur_gid *group);

static int call(struct ibv_qp *qp, const union ibv_gid *gid, mcast_fn fn)
{
	struct uv_context *c = uv_context(qp->context);
	struct ur_nic *nic = uv_enter(c);
	struct ur_gid group;
	int err;

	if (!nic)
		return uv_errno(EIO);
	memcpy(group.raw, gid->raw, sizeof(group.raw));
	ur_engine_check_group(c->engine, &group);
	err = fn(nic, ur_container_of(qp, struct uv_qp, qp)->tp, &group);
	uv_leave(c);
	return uv_errno(err);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return call(qp, gid, ur_nic_attach_mcast);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return call(qp, gid, ur_nic_detach_mcast);
}
