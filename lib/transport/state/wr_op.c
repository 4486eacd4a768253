/* SPDX-License-Identifier: BSD-3-Clause */
/* Work request opcodes: which services have them, which packets they become and how they complete (IBTA volume 1, 9.2.1 and 11.4.1). */
#include "transport/state/wr_op.h"
#include "wire/opcode.h"

#define FLAGS_ANY (IBV_SEND_FENCE | IBV_SEND_SIGNALED)
#define FLAGS_DATA (FLAGS_ANY | IBV_SEND_INLINE)
#define FLAGS_SE (FLAGS_DATA | IBV_SEND_SOLICITED)

/* A solicited event is accepted with every opcode, as real devices do, and goes on the wire only with those that complete a receive. */
#define SEND_OP(l, o, svc)                                                                                                                 \
	{                                                                                                                                  \
		UR_WR_SEND, svc, UR_OP_SEND_FIRST, UR_OP_SEND_MIDDLE, l, o, IBV_WC_SEND, FLAGS_SE                                          \
	}
#define WRITE_OP(l, o)                                                                                                                     \
	{                                                                                                                                  \
		UR_WR_WRITE, UR_SVC_RC | UR_SVC_UC | UR_SVC_XRC, UR_OP_WRITE_FIRST, UR_OP_WRITE_MIDDLE, l, o, IBV_WC_RDMA_WRITE, FLAGS_SE  \
	}

#define ONE_PACKET(k, o, c, flags)                                                                                                         \
	{                                                                                                                                  \
		k, UR_SVC_RC | UR_SVC_XRC, o, o, o, o, c, flags                                                                            \
	}
#define LOCAL(c)                                                                                                                           \
	{                                                                                                                                  \
		.kind = UR_WR_LOCAL, .services = UR_SVC_RC | UR_SVC_UC | UR_SVC_XRC, .wc = c, .send_flags = FLAGS_ANY | IBV_SEND_SOLICITED \
	}

const struct ur_wr_op ur_wr_ops[UR_WR_OPS] = {
	[IBV_WR_SEND] = SEND_OP(UR_OP_SEND_LAST, UR_OP_SEND_ONLY, UR_SVC_RC | UR_SVC_UC | UR_SVC_UD | UR_SVC_XRC),
	[IBV_WR_SEND_WITH_IMM] = SEND_OP(UR_OP_SEND_LAST_IMM, UR_OP_SEND_ONLY_IMM, UR_SVC_RC | UR_SVC_UC | UR_SVC_UD | UR_SVC_XRC),
	[IBV_WR_SEND_WITH_INV] = SEND_OP(UR_OP_SEND_LAST_INV, UR_OP_SEND_ONLY_INV, UR_SVC_RC | UR_SVC_XRC),
	[IBV_WR_RDMA_WRITE] = WRITE_OP(UR_OP_WRITE_LAST, UR_OP_WRITE_ONLY),
	[IBV_WR_RDMA_WRITE_WITH_IMM] = WRITE_OP(UR_OP_WRITE_LAST_IMM, UR_OP_WRITE_ONLY_IMM),
	[IBV_WR_RDMA_READ] = ONE_PACKET(UR_WR_READ, UR_OP_READ_REQ, IBV_WC_RDMA_READ, FLAGS_ANY | IBV_SEND_SOLICITED),
	[IBV_WR_ATOMIC_CMP_AND_SWP] = ONE_PACKET(UR_WR_ATOMIC, UR_OP_CMP_SWAP, IBV_WC_COMP_SWAP, FLAGS_ANY | IBV_SEND_SOLICITED),
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = ONE_PACKET(UR_WR_ATOMIC, UR_OP_FETCH_ADD, IBV_WC_FETCH_ADD, FLAGS_ANY | IBV_SEND_SOLICITED),
	[IBV_WR_ATOMIC_WRITE] = ONE_PACKET(UR_WR_ATOMIC_WRITE, UR_OP_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE, FLAGS_SE),
	[IBV_WR_BIND_MW] = LOCAL(IBV_WC_BIND_MW),
	[IBV_WR_LOCAL_INV] = LOCAL(IBV_WC_LOCAL_INV),
};
