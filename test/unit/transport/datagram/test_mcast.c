/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/datagram/mcast.c: several UD QPs of node 1, and datagrams to groups. */
#include <arpa/inet.h>
#include <errno.h>

#include "tp_harness.h"

void ur_suite_mcast(void);

#define QKEY 0x22222222u
#define QPS 4

static struct th h;
static struct ur_qp *qp[QPS]; /* the first is the harness's */
static const struct ur_gid v6_group = {{0xff, 0x0e, [15] = 7}};

static struct ur_gid v4_group(unsigned last)
{
	return ur_gid_from_v4(htonl(0xef010200u + last));
}

static void ready(struct ur_qp *q, uint32_t qkey)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

	CU_ASSERT_EQUAL(ur_qp_modify(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, NULL, h.now), 0);
	a.qp_state = IBV_QPS_RTR;
	CU_ASSERT_EQUAL(ur_qp_modify(q, &a, IBV_QP_STATE, NULL, h.now), 0);
}

static void open_mcast(void)
{
	struct th_opt o = th_default;

	o.type = IBV_QPT_UD;
	o.qkey = QKEY;
	o.stay_rtr = true;
	th_open(&h, &o);
	qp[0] = h.n[1].qp;
	for (unsigned i = 1; i < QPS; i++) {
		struct ur_qp_init init = {.type = IBV_QPT_UD,
					  .pd = h.n[1].pd,
					  .send_cq = h.n[1].scq,
					  .recv_cq = h.n[1].rcq,
					  .cap = {1, 8, 1, 1, 0},
					  .context = &h.n[1]};

		CU_ASSERT_EQUAL_FATAL(ur_qp_create(h.n[1].tp, &init, &qp[i]), 0);
		ready(qp[i], QKEY);
	}
}

static void close_mcast(void)
{
	for (unsigned i = 1; i < QPS; i++)
		CU_ASSERT_EQUAL(ur_qp_destroy(qp[i]), 0);
	th_close(&h);
}

static void give_receive(unsigned i)
{
	struct ibv_sge sge = {(uintptr_t)h.n[1].mem + 4096 * i, 4096, h.n[1].mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	CU_ASSERT_EQUAL(ur_qp_post_recv(qp[i], &wr, &bad), 0);
}

/* A datagram of eight bytes to a group. */
static void to_group(const struct ur_gid *group, uint8_t opcode, uint32_t qkey, uint16_t pkey)
{
	const struct th_hdr x = {.qkey = qkey, .sqpn = 77};
	struct th_pkt p;

	th_make(&h, 1, &p, UR_UD | UR_OP_SEND_ONLY, 1, false, &x, "abcdefgh", 8);
	p.p.bth.dqpn = UR_QPN_MCAST;
	p.p.bth.opcode = opcode;
	p.p.bth.pkey = pkey;
	p.p.dst = *group;
	th_feed(&h, 1, &p);
}

static void send_group(const struct ur_gid *group)
{
	to_group(group, UR_UD | UR_OP_SEND_ONLY, QKEY, 0xffff);
}

static unsigned received(void)
{
	struct ibv_wc wc;
	unsigned mask = 0;

	while (ur_cq_poll(h.n[1].rcq, 1, &wc) == 1) {
		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.byte_len, UR_GRH_LEN + 8);
		CU_ASSERT_EQUAL(wc.src_qp, 77);
		CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(qp[wc.wr_id]));
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 4096 * wc.wr_id + UR_GRH_LEN, "abcdefgh", 8), 0);
		CU_ASSERT_FALSE(mask >> wc.wr_id & 1);
		mask |= 1u << wc.wr_id;
	}
	return mask;
}

static void attach__arguments(void)
{
	struct ur_gid g = v4_group(1), unicast = ur_gid_from_v4(htonl(0x0a000001)), unicast6 = {{0xfe, 0x80, [15] = 1}};
	struct ur_qp_init init;
	struct ur_qp *rc;

	open_mcast();
	init = (struct ur_qp_init){
		.type = IBV_QPT_UC, .pd = h.n[1].pd, .send_cq = h.n[1].scq, .recv_cq = h.n[1].rcq, .cap = {1, 1, 1, 1, 0}};
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(h.n[1].tp, &init, &rc), 0);
	CU_ASSERT_EQUAL(ur_mcast_attach(rc, &g), EINVAL);
	CU_ASSERT_EQUAL(ur_qp_destroy(rc), 0);
	CU_ASSERT_EQUAL(ur_mcast_attach(qp[0], &unicast), EINVAL);
	CU_ASSERT_EQUAL(ur_mcast_attach(qp[0], &unicast6), EINVAL);
	CU_ASSERT_EQUAL(ur_mcast_detach(qp[0], &g), EINVAL);
	CU_ASSERT_EQUAL(ur_mcast_attach(qp[0], &g), 0);
	CU_ASSERT_EQUAL(ur_mcast_attach(qp[0], &g), 0);
	CU_ASSERT_EQUAL(ur_mcast_detach(qp[1], &g), EINVAL);
	CU_ASSERT_EQUAL(ur_mcast_list(h.n[1].tp, NULL, 0), 1);
	CU_ASSERT_EQUAL(ur_qp_destroy(qp[0]), EBUSY);
	CU_ASSERT_TRUE(ur_qp_is_attached(qp[0]));
	CU_ASSERT_EQUAL(ur_mcast_detach(qp[0], &g), 0);
	CU_ASSERT_FALSE(ur_qp_is_attached(qp[0]));
	CU_ASSERT_EQUAL(ur_mcast_detach(qp[0], &g), EINVAL);
	CU_ASSERT_EQUAL(ur_mcast_list(h.n[1].tp, NULL, 0), 0);
	close_mcast();
}

static void attach__limits(void)
{
	static struct ur_gid list[UR_MAX_MCAST_GROUPS];
	static struct ur_qp *many[UR_MAX_MCAST_QPS + 1];
	struct ur_gid g;

	open_mcast();
	for (unsigned i = 0; i < UR_MAX_MCAST_GROUPS; i++) {
		g = v4_group(i);
		CU_ASSERT_EQUAL_FATAL(ur_mcast_attach(qp[0], &g), 0);
	}
	CU_ASSERT_EQUAL(ur_mcast_attach(qp[0], &v6_group), ENOMEM);
	CU_ASSERT_EQUAL(ur_mcast_attach(qp[1], &g), 0); /* one that exists */
	CU_ASSERT_EQUAL(ur_mcast_list(h.n[1].tp, list, UR_MAX_MCAST_GROUPS), UR_MAX_MCAST_GROUPS);
	CU_ASSERT_EQUAL(ur_mcast_detach(qp[1], &g), 0);
	for (unsigned i = 0; i < UR_MAX_MCAST_GROUPS; i++)
		CU_ASSERT_EQUAL(ur_mcast_detach(qp[0], &list[i]), 0);
	for (unsigned i = 0; i <= UR_MAX_MCAST_QPS; i++) {
		struct ur_qp_init init = {.type = IBV_QPT_UD, .pd = h.n[1].pd, .send_cq = h.n[1].scq, .recv_cq = h.n[1].rcq};

		CU_ASSERT_EQUAL_FATAL(ur_qp_create(h.n[1].tp, &init, &many[i]), 0);
		CU_ASSERT_EQUAL(ur_mcast_attach(many[i], &v6_group), i < UR_MAX_MCAST_QPS ? 0 : ENOMEM);
	}
	for (unsigned i = 0; i <= UR_MAX_MCAST_QPS; i++) {
		CU_ASSERT_EQUAL(ur_mcast_detach(many[i], &v6_group), i < UR_MAX_MCAST_QPS ? 0 : EINVAL);
		CU_ASSERT_EQUAL(ur_qp_destroy(many[i]), 0);
	}
	close_mcast();
}

static void deliver__to_all_that_are_attached(void)
{
	struct ur_gid a = v4_group(1), b = v4_group(2);

	open_mcast();
	for (unsigned i = 0; i < QPS; i++)
		give_receive(i);
	ur_mcast_attach(qp[0], &a);
	ur_mcast_attach(qp[2], &a);
	ur_mcast_attach(qp[2], &a); /* twice, and still one copy */
	ur_mcast_attach(qp[3], &b);
	ur_mcast_attach(qp[1], &v6_group);
	send_group(&a);
	CU_ASSERT_EQUAL(received(), 1u << 0 | 1u << 2);
	send_group(&b);
	CU_ASSERT_EQUAL(received(), 1u << 3);
	send_group(&v6_group);
	CU_ASSERT_EQUAL(received(), 1u << 1);
	for (unsigned i = 0; i < QPS; i++)
		give_receive(i);
	ur_mcast_detach(qp[0], &a);
	send_group(&a);
	CU_ASSERT_EQUAL(received(), 1u << 2);
	ur_mcast_detach(qp[2], &a);
	ur_mcast_detach(qp[3], &b);
	ur_mcast_detach(qp[1], &v6_group);
	close_mcast();
}

/* One QP's reason not to take it is no reason for the others. */
static void deliver__each_for_itself(void)
{
	struct ur_gid g = v4_group(1);
	struct ibv_qp_attr a = {.qkey = QKEY + 1, .qp_state = IBV_QPS_RESET};

	open_mcast();
	for (unsigned i = 0; i < QPS; i++)
		CU_ASSERT_EQUAL(ur_mcast_attach(qp[i], &g), 0);
	CU_ASSERT_EQUAL(ur_qp_modify(qp[0], &a, IBV_QP_STATE, NULL, h.now), 0); /* in RESET */
	CU_ASSERT_EQUAL(ur_qp_modify(qp[1], &a, IBV_QP_STATE, NULL, h.now), 0);
	ready(qp[1], QKEY + 1); /* another Q_Key */
	give_receive(1);
	give_receive(3); /* the third has no receive WQE */
	send_group(&g);
	CU_ASSERT_EQUAL(received(), 1u << 3);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DROP_QP_STATE], 1);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DROP_QKEY], 1);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_DROP_NO_RECV], 1);
	for (unsigned i = 0; i < QPS; i++)
		CU_ASSERT_EQUAL(ur_mcast_detach(qp[i], &g), 0);
	close_mcast();
}

static void deliver__drops(void)
{
	const struct ur_gid mine = v4_group(1), other = v4_group(2), unicast = ur_gid_from_v4(htonl(0x0a000002));
	const struct {
		const struct ur_gid *dst;
		uint8_t opcode;
		uint32_t qkey;
		uint16_t pkey;
		enum ur_counter counter;
	} t[] = {
		{&other, UR_UD | UR_OP_SEND_ONLY, QKEY, 0xffff, UR_C_RX_OTHER_HOST},
		{&other, UR_UD | UR_OP_SEND_ONLY, QKEY, 0x8001, UR_C_RX_OTHER_HOST},
		{&unicast, UR_UD | UR_OP_SEND_ONLY, QKEY, 0xffff, UR_C_DROP_QPN},
		{&mine, UR_UC | UR_OP_SEND_ONLY, QKEY, 0xffff, UR_C_DROP_OPCODE},
		{&mine, UR_OP_CNP, QKEY, 0xffff, UR_C_DROP_OPCODE},
		{&mine, UR_UD | 0x1f, QKEY, 0xffff, UR_C_DROP_OPCODE},
		{&mine, UR_UD | UR_OP_SEND_ONLY, QKEY, 0x8001, UR_C_DROP_PKEY},
		{&mine, UR_UD | UR_OP_SEND_ONLY, QKEY + 1, 0xffff, UR_C_DROP_QKEY},
	};

	open_mcast();
	ur_mcast_attach(qp[0], &mine);
	give_receive(0);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint64_t before = h.n[1].c.v[t[i].counter];

		to_group(t[i].dst, t[i].opcode, t[i].qkey, t[i].pkey);
		CU_ASSERT_EQUAL(h.n[1].c.v[t[i].counter], before + 1);
	}
	CU_ASSERT_EQUAL(received(), 0);
	ur_mcast_detach(qp[0], &mine);
	close_mcast();
}

/* All QPNs of the last slot but one, as they come. */
static void qpn__never_that_of_multicast(void)
{
	static uint8_t seen[0x10000];
	struct ur_idtab t;
	struct ur_tp *tp;
	uint8_t slot;

	open_mcast();
	tp = h.n[1].tp;
	slot = tp->c.slot;
	tp->c.slot = 255;
	ur_idtab_init(&t, 1);
	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < 0xffff; i++) {
		uint32_t qpn;

		CU_ASSERT_EQUAL_FATAL(ur_tp_number(tp, &t, &tp->qpns, tp, &qpn), 0);
		CU_ASSERT_TRUE(qpn >> 16 == 255 && qpn != UR_QPN_MCAST && !seen[qpn & 0xffff]);
		seen[qpn & 0xffff] = 1;
		ur_idtab_free(&t, qpn);
	}
	ur_idtab_fini(&t);
	tp->c.slot = slot;
	close_mcast();
}

void ur_suite_mcast(void)
{
	CU_pSuite s = CU_add_suite("mcast", NULL, NULL);

	CU_ADD_TEST(s, attach__arguments);
	CU_ADD_TEST(s, attach__limits);
	CU_ADD_TEST(s, deliver__to_all_that_are_attached);
	CU_ADD_TEST(s, deliver__each_for_itself);
	CU_ADD_TEST(s, deliver__drops);
	CU_ADD_TEST(s, qpn__never_that_of_multicast);
}
