/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended reliable connections on tp_harness: node 0 with an XRC_SEND QP; node 1 with an XRC_RECV QP and two SRQs, each with PD and CQ. */
#ifndef UR_XRC_HARNESS_H
#define UR_XRC_HARNESS_H

#include "srq_harness.h"

#define MTU 1024
#define SRQS 2

struct fix {
	struct th h;
	struct ur_xrcd *xrcd;
	struct ur_pd *pd[SRQS]; /* pd[0] is the node's */
	struct ur_cq *cq[SRQS];
	struct ur_srq *srq[SRQS];
	struct sh_events e[SRQS];
	struct ur_mr *mr; /* in pd[1], the whole memory of node 1 */
};

static inline void open_with(struct fix *f, const struct th_opt *opt, unsigned cqe)
{
	struct th_node *n = &f->h.n[1];

	memset(f, 0, sizeof(*f));
	th_open(&f->h, opt);
	CU_ASSERT_FATAL(ur_xrcd_create(n->tp, &f->xrcd) == 0);
	f->pd[0] = n->pd;
	CU_ASSERT_FATAL(ur_pd_create(n->tp, &f->pd[1]) == 0);
	CU_ASSERT_FATAL(ur_mr_reg(n->tp, f->pd[1], n->mem, TH_MEM, (uintptr_t)n->mem, TH_ALL_ACCESS, &f->mr) == 0);
	for (unsigned i = 0; i < SRQS; i++) {
		CU_ASSERT_FATAL(ur_cq_create(n->tp, cqe, NULL, NULL, &f->cq[i]) == 0);
		f->srq[i] = sh_srq_of(n, f->pd[i], f->xrcd, f->cq[i], 8, &f->e[i]);
	}
	sh_join(&f->h, NULL, f->xrcd);
}

static inline void open_xrc(struct fix *f)
{
	open_with(f, &th_default, 15);
}

static inline void close_xrc(struct fix *f)
{
	CU_ASSERT_EQUAL(ur_xrcd_destroy(f->xrcd), EBUSY);
	sh_replace(&f->h.n[1], sh_qp(&f->h.n[1], IBV_QPT_RC, NULL, NULL));
	for (unsigned i = 0; i < SRQS; i++) {
		if (!f->srq[i])
			continue;
		CU_ASSERT_EQUAL(ur_cq_destroy(f->cq[i]), EBUSY);
		CU_ASSERT_EQUAL(ur_xrcd_destroy(f->xrcd), EBUSY);
		CU_ASSERT_EQUAL(ur_srq_destroy(f->srq[i]), 0);
	}
	for (unsigned i = 0; i < SRQS; i++)
		CU_ASSERT_EQUAL(ur_cq_destroy(f->cq[i]), 0);
	CU_ASSERT_EQUAL(ur_xrcd_destroy(f->xrcd), 0);
	CU_ASSERT_EQUAL(ur_mr_dereg(f->mr), 0);
	CU_ASSERT_EQUAL(ur_pd_destroy(f->pd[1]), 0);
	th_close(&f->h);
}

/* A receive in SRQ i, whose protection domain has its own key for the memory. */
static inline void post(struct fix *f, unsigned i, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct th_node *n = &f->h.n[1];
	struct ibv_sge sge = {(uintptr_t)(n->mem + off), len, i ? f->mr->lkey : n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	CU_ASSERT_EQUAL(ur_srq_post(f->srq[i], &wr, &bad), 0);
}

/* A request to SRQ `srqn` by node 0's QP: `len` bytes at `off`, the remote memory by the key of SRQ i's domain. */
static inline void request(struct fix *f, unsigned i, uint32_t srqn, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct th_node *n = &f->h.n[0];
	struct ibv_sge sge = {(uintptr_t)(n->mem + off), len, n->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)(f->h.n[1].mem + off);
	wr.wr.rdma.rkey = i ? f->mr->rkey : f->h.n[1].mr->rkey;
	wr.qp_type.xrc.remote_srqn = srqn;
	CU_ASSERT_EQUAL(ur_qp_post_send(n->qp, &wr, &bad), 0);
	if (ur_qp_doorbell(n->qp))
		ur_qp_answer(n->qp, f->h.now);
}

static inline uint32_t num(const struct fix *f, unsigned i)
{
	return ur_srq_num(f->srq[i]);
}

/* An XRC request for node 1 as its peer would send it. */
static inline void inject(struct fix *f, uint8_t opcode, uint32_t srqn, uint32_t psn, const struct th_hdr *ext, const void *payload,
			  uint32_t len)
{
	struct th_hdr x = ext ? *ext : (struct th_hdr){0};

	x.srqn = srqn;
	th_inject(&f->h, 1, UR_XRC | opcode, psn, true, &x, payload, len);
}

static inline struct ur_aeth expect_answer(struct fix *f, uint32_t psn)
{
	struct ur_aeth a = {0};
	struct th_pkt p;

	if (!th_pull(&f->h, 1, &p)) {
		CU_FAIL("no acknowledgement");
		return a;
	}
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_XRC | UR_OP_ACK);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	ur_aeth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	return a;
}

/* NAK, ERR, these events and nothing else. */
static inline void expect_refused(struct fix *f, uint32_t psn, enum ur_nak_code code, int event)
{
	const struct th_node *n = &f->h.n[1];
	unsigned k = 0;

	CU_ASSERT_EQUAL(expect_answer(f, psn).syndrome, NAK(code));
	CU_ASSERT_EQUAL(ur_qp_state(n->qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(n->event[k++], IBV_EVENT_QP_LAST_WQE_REACHED);
	if (event >= 0)
		CU_ASSERT_EQUAL((int)n->event[k++], event);
	CU_ASSERT_EQUAL(n->nevents, k);
	th_expect_quiet(&f->h, 1);
}

#endif
