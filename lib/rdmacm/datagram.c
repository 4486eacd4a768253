/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram ids (RDMA_PS_UDP, RDMA_PS_IPOIB): rdma_connect(3) looks up the QP of a service, which rdma_listen(3), rdma_accept(3) and
 * rdma_reject(3) offer on the other side; there is no connection afterwards. Their QPs can send and receive from the beginning.
 */
#include "rdmacm/rdmacm_priv.h"

uint32_t ur_id_qkey(struct ur_id *u)
{
	if (!u->qkey)
		u->qkey = RDMA_UDP_QKEY;
	return u->qkey;
}

int ur_id_ud_qp_attr(struct ur_id *u, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->pkey_index = 0;
		attr->port_num = UR_RDMACM_PORT;
		attr->qkey = ur_id_qkey(u);
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return 0;
	case IBV_QPS_RTR:
		*mask = IBV_QP_STATE;
		return 0;
	case IBV_QPS_RTS:
		attr->sq_psn = 0;
		*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		return 0;
	default:
		return EINVAL;
	}
}
