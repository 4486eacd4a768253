/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues of ids: rdma_create_srq(3), rdma_create_srq_ex(3), rdma_destroy_srq(3). An XRC SRQ completes its receives itself
 * and brings a CQ where the caller has none; one of the basic type leaves that to the QPs. QPs of the id use its SRQ (qp.c).
 */
#include <fcntl.h>
#include <string.h>

#include "engine/fork.h"
#include "rdmacm/internal.h"

/* --- the XRC domain --- */

struct ibv_xrcd *ur_id_default_xrcd(struct ur_id *u)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd;

	ur_fork_lock(UR_FORK_XRCD);
	if (!u->device->xrcd)
		u->device->xrcd = ibv_open_xrcd(u->ctx, &attr);
	xrcd = u->device->xrcd;
	ur_fork_unlock(UR_FORK_XRCD);
	return xrcd;
}

/* --- SRQs --- */

/* Gives an XRC SRQ the domain and the CQ that the caller left out. */
static int complete_xrc(struct ur_id *u, struct ibv_srq_init_attr_ex *attr)
{
	int err;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		attr->xrcd = ur_id_default_xrcd(u);
		if (!attr->xrcd)
			return errno;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		if (u->id.recv_cq)
			return EINVAL; /* that of the id's QP, and an id has one */
		err = ur_id_create_cq(u, true, attr->attr.max_wr);
		if (err)
			return err;
		u->srq_cq = true;
		attr->cq = u->id.recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

/* The SRQ's own CQ; one that a QP uses too goes with the QP. */
static void drop_cq(struct ur_id *u)
{
	if (u->srq_cq && !u->id.qp)
		ur_id_destroy_cq(u, true);
	u->srq_cq = false;
}

static int create_srq(struct ur_id *u, struct ibv_srq_init_attr_ex *attr)
{
	int err = 0;

	if (!u->id.verbs || u->id.srq || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = u->id.pd ? u->id.pd : u->default_pd;
	}
	if (attr->pd->context != u->id.verbs)
		return EINVAL;
	if (attr->srq_type == IBV_SRQT_XRC)
		err = complete_xrc(u, attr);
	if (err)
		return err;
	u->id.srq = ibv_create_srq_ex(u->id.verbs, attr);
	if (!u->id.srq) {
		err = errno;
		if (u->srq_cq)
			attr->cq = NULL;
		drop_cq(u);
	}
	return err;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	return attr ? ur_result(create_srq(u, attr)) : ur_fail(EINVAL);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, .pd = pd};
	int ret;

	if (!ur_id_known(id) || !attr)
		return ur_fail(EINVAL);
	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	ret = rdma_create_srq_ex(id, &ex);
	if (!ret)
		attr->attr = ex.attr;
	return ret;
}

/* One that QPs still use stays: destroying them and then the id's endpoint gets rid of it. */
void rdma_destroy_srq(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_get(id);

	if (!u || !id->srq || ibv_destroy_srq(id->srq))
		return;
	id->srq = NULL;
	drop_cq(u);
}
