/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: datagram ids, between the ids of one process. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm_fixture.h"

void ur_suite_rdmacm_datagram(void);

#define PORT 7472

static int run_child(int (*test)(void))
{
	return rdmacm_run_child(__FILE__, test);
}

static int open_side(struct side *s)
{
	memset(s, 0, sizeof(*s));
	s->ch = rdma_create_event_channel();
	WANT(s->ch && !rdma_create_id(s->ch, &s->id, s, RDMA_PS_UDP));
	return 0;
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	WANT(!rdma_create_qp(id, NULL, &attr));
	return 0;
}

/* --- queue pairs --- */

static int ready_at_once(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct side s;

	WANT(!open_side(&s));
	WANT(make_qp(s.id) && errno == EINVAL); /* on no device yet */
	WANT(!rdma_bind_addr(s.id, address("10.0.0.1", 0)));
	WANT(!make_qp(s.id));
	WANT(s.id->qp && s.id->send_cq && s.id->recv_cq && s.id->qp->qp_type == IBV_QPT_UD);
	WANT(!ibv_query_qp(s.id->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY, &init));
	WANT(attr.qp_state == IBV_QPS_RTS && attr.qkey == RDMA_UDP_QKEY && attr.port_num == 1);
	WANT(make_qp(s.id) && errno == EINVAL); /* one QP an id */
	return close_side(&s);
}

static int attributes(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct side s;
	int mask = 0;

	WANT(!open_side(&s));
	WANT_ERRNO(rdma_init_qp_attr(s.id, &attr, &mask), EINVAL);
	WANT(!rdma_bind_addr(s.id, address("10.0.0.1", 0)));
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask));
	WANT(mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	WANT(attr.port_num == 1 && attr.pkey_index == 0 && attr.qkey == RDMA_UDP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask) && mask == IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	WANT(!rdma_init_qp_attr(s.id, &attr, &mask) && mask == (IBV_QP_STATE | IBV_QP_SQ_PSN));
	attr.qp_state = IBV_QPS_SQD;
	WANT_ERRNO(rdma_init_qp_attr(s.id, &attr, &mask), EINVAL);
	return close_side(&s);
}

#define TESTS(T) T(create_qp, ready_at_once) T(init_qp_attr, attributes)

#define DEFINE(function, name)                                                                                                             \
	static void function##__##name(void)                                                                                               \
	{                                                                                                                                  \
		CU_ASSERT_EQUAL(run_child(name), 0);                                                                                       \
	}
TESTS(DEFINE)

void ur_suite_rdmacm_datagram(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_datagram", verbs_fixture_init, NULL);

#define ADD(function, name) CU_add_test(s, #function "__" #name, function##__##name);
	TESTS(ADD)
}
