/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: ibv_alloc_mw(3), ibv_dealloc_mw(3) and, for those of type 1, ibv_bind_mw(3), which posts the same work request as
 * programs post for type 2, with the next key of the window's own.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

static struct uv_mw *to_mw(struct ibv_mw *mw)
{
	return ur_container_of(mw, struct uv_mw, mw);
}

struct ibv_mw *uv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct uv_context *c = uv_context(pd->context);
	struct ur_pd *tp_pd = ur_container_of(pd, struct uv_pd, pd)->tp;
	struct uv_mw *u = calloc(1, sizeof(*u));
	struct ur_nic *nic;
	int err = EIO;

	if (!u)
		return uv_null(ENOMEM);
	nic = uv_enter_all(c);
	if (nic) {
		err = ur_mw_alloc(nic->tp, tp_pd, type, &u->tp);
		if (!err)
			u->mw.rkey = ur_mw_rkey(u->tp);
		uv_leave_all(c);
	}
	if (err) {
		free(u);
		return uv_null(err);
	}
	u->mw.context = pd->context;
	u->mw.pd = pd;
	u->mw.handle = u->mw.rkey >> 8;
	u->mw.type = type;
	uv_pd_get(pd);
	uv_context_get(c);
	ur_live_add(&u->live, &u->mw);
	return &u->mw;
}

static int dealloc(void *handle)
{
	struct ibv_mw *mw = handle;
	struct uv_context *c = uv_context(mw->context);
	struct uv_mw *u = to_mw(mw);

	if (!uv_enter_all(c))
		return EIO;
	ur_mw_dealloc(u->tp);
	uv_leave_all(c);
	uv_pd_put(mw->pd);
	ur_live_del(mw);
	free(u);
	uv_context_put(c);
	return 0;
}

int uv_dealloc_mw(struct ibv_mw *mw)
{
	return uv_destroy(mw, dealloc);
}

/* The inline function of verbs.h has checked the window's type and that the MR's PD is the window's. */
int uv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr =
				   {
					   .wr_id = bind->wr_id,
					   .opcode = IBV_WR_BIND_MW,
					   .send_flags = bind->send_flags,
					   .bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
				   },
			   *bad;

	return uv_errno(uv_post_send(qp, &wr, &bad));
}
