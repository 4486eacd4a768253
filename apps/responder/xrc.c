/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and the shared receive queues and receiving QPs in them. */
#include <arpa/inet.h>
#include <fcntl.h>

#include "apps/responder/responder.h"

static struct ibv_xrcd *open_domain(const struct shared *s)
{
	struct ibv_xrcd_init_attr a = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1 /* of this process alone */, .oflags = O_CREAT};

	return ibv_open_xrcd(s->verbs, &a);
}

struct ibv_srq *make_xrc_srq(const struct shared *s, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex a = {
		.attr = {.max_wr = RECVS, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = s->pd,
		.xrcd = xrcd,
		.cq = s->cq,
	};

	return ibv_create_srq_ex(s->verbs, &a);
}

void share_xrc(struct shared *s)
{
	struct ibv_xrcd *foreign = open_domain(s);

	s->foreign_srq = foreign ? make_xrc_srq(s, foreign) : NULL;
	s->xrcd = s->foreign_srq ? open_domain(s) : NULL;
}

struct ibv_qp *make_xrc_qp(const struct shared *s)
{
	struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = s->xrcd};

	return ibv_create_qp_ex(s->verbs, &a);
}

uint32_t srq_number(struct ibv_srq *srq)
{
	uint32_t n;

	return srq && !ibv_get_srq_num(srq, &n) ? htonl(n) : 0;
}
