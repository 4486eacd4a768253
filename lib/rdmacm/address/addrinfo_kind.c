/* SPDX-License-Identifier: BSD-3-Clause */
/* Which QP types, port spaces and kinds of sockets belong together: RDMA_PS_TCP is reliable, RDMA_PS_UDP is datagrams, RDMA_PS_IB is all.
 */
#include <netinet/in.h>

#include "rdmacm/address/addrinfo.h"
#include "rdmacm/internal.h"

/* Where hints leave something open, the first that fits. */
static const struct ur_rai_kind kinds[] = {
	{IBV_QPT_RC, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},       {IBV_QPT_UD, RDMA_PS_UDP, SOCK_DGRAM, IPPROTO_UDP},
	{IBV_QPT_UD, RDMA_PS_IPOIB, SOCK_DGRAM, IPPROTO_UDP},      {IBV_QPT_XRC_SEND, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_XRC_RECV, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP}, {IBV_QPT_RC, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_UC, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},        {IBV_QPT_UD, RDMA_PS_IB, SOCK_DGRAM, IPPROTO_UDP},
	{IBV_QPT_XRC_SEND, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},  {IBV_QPT_XRC_RECV, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
};

const struct ur_rai_kind *ur_rai_kind_find(int qp_type, int port_space)
{
	for (unsigned i = 0; i < ur_array_size(kinds); i++)
		if ((!qp_type || qp_type == kinds[i].qp_type) && (!port_space || port_space == kinds[i].port_space))
			return &kinds[i];
	return NULL;
}
