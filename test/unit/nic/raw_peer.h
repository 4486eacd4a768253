/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that says what it likes: frames of the test's own making, with a right ICRC, from a port of the NIC harness's fabric. */
#ifndef UR_RAW_PEER_H
#define UR_RAW_PEER_H

#include "nic_harness.h"

#define RAW_DETH 8 /* bytes */
#define RAW_RETH 16

struct raw_frame {
	unsigned from, to; /* NICs whose ports, and MAC addresses, it has; what its IP header says is another matter: */
	struct ur_gid src, dst;
	uint8_t tclass;
	struct ur_bth bth;
	const void *rest; /* what stands behind the BTH; a multiple of 4 bytes */
	uint32_t len;
};

static inline void raw_send(struct nics *h, const struct raw_frame *f)
{
	struct ur_port *from = ur_sim_port(h->sim, f->from), *to = ur_sim_port(h->sim, f->to);
	struct ur_queue *q = from->queue;
	struct ur_path path;
	struct ur_pkt *p;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(q, &p, 1), 1);
	ur_path_build(&path, &from->mac, &to->mac, 0, &f->src, &f->dst, f->tclass, 64, 0, 0xc000);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->kind = UR_PKT_ROCE;
	p->ip_version = path.ip_version;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->bth = f->bth;
	ur_bth_put(p->data + path.hdr_len, &f->bth);
	if (f->len)
		memcpy(p->data + path.hdr_len + UR_BTH_LEN, f->rest, f->len);
	p->len = path.hdr_len + UR_BTH_LEN + f->len;
	ur_frame_finish(p, 0);
	CU_ASSERT_EQUAL_FATAL(ur_queue_tx(q, &p, 1), 1);
}

/* Of a CM message to QP 1: a DETH and the MAD. `room` holds both. */
static inline struct raw_frame raw_mad(unsigned from, unsigned to, struct ur_gid src, struct ur_gid dst, const struct ur_cm_msg *m,
				       uint8_t room[RAW_DETH + UR_MAD_LEN])
{
	struct ur_deth deth = {.qkey = UR_GSI_QKEY, .sqpn = 1};

	ur_deth_put(room, &deth);
	CU_ASSERT_TRUE(ur_cm_msg_build(room + RAW_DETH, m));
	return (struct raw_frame){.from = from,
				  .to = to,
				  .src = src,
				  .dst = dst,
				  .bth = {.opcode = UR_UD | UR_OP_SEND_ONLY, .pkey = UR_PKEY_DEFAULT, .dqpn = 1},
				  .rest = room,
				  .len = RAW_DETH + UR_MAD_LEN};
}

#endif
