/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm under <rdma/rdma_verbs.h>: memory, work requests and completions by the id, between a process and itself. */
#include "rdmacm_fixture.h"

void ur_suite_rdmacm_verbs(void);

#define LEN 64
#define HALF (LEN / 2)

/* Two ends, each with memory of every kind. */
struct end {
	struct rx_side side;
	char msg[LEN], get[LEN], put[LEN];
	struct ibv_mr *msg_mr, *get_mr, *put_mr;
};

static int make_end_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2}};

	return rdma_create_qp(id, NULL, &attr);
}

static int register_all(struct end *e)
{
	e->msg_mr = rdma_reg_msgs(e->side.id, e->msg, LEN);
	e->get_mr = rdma_reg_read(e->side.id, e->get, LEN);
	e->put_mr = rdma_reg_write(e->side.id, e->put, LEN);
	WANT(e->msg_mr && e->get_mr && e->put_mr);
	WANT(e->msg_mr->pd == e->side.id->pd && e->get_mr->pd == e->side.id->pd && e->put_mr->pd == e->side.id->pd);
	return 0;
}

static int connect_ends(struct rx_side *l, struct end *c, struct end *s)
{
	struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

	memset(c, 0, sizeof(*c));
	memset(s, 0, sizeof(*s));
	WANT_OK(rx_listen(l, RX_PORT, 0));
	WANT_OK(rx_resolve(&c->side, RX_PORT));
	WANT(!make_end_qp(c->side.id) && !rdma_connect(c->side.id, &p));
	WANT_OK(rx_request(l, &s->side));
	WANT(!make_end_qp(s->side.id) && !rdma_accept(s->side.id, NULL));
	WANT_OK(rx_next(&c->side, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(rx_next(l, RDMA_CM_EVENT_ESTABLISHED));
	WANT_OK(register_all(c));
	WANT_OK(register_all(s));
	return 0;
}

static int close_end(struct end *e)
{
	WANT(!rdma_dereg_mr(e->msg_mr) && !rdma_dereg_mr(e->get_mr) && !rdma_dereg_mr(e->put_mr));
	return rx_close(&e->side);
}

static int close_ends(struct rx_side *l, struct end *c, struct end *s)
{
	WANT(!rx_ack(l) && !rx_ack(&c->side));
	WANT_OK(close_end(s));
	WANT_OK(close_end(c));
	return rx_close(l);
}

/* Two halves in the opposite order. */
static void halves(struct ibv_sge sge[2], char *at, const struct ibv_mr *mr)
{
	sge[0] = (struct ibv_sge){.addr = (uintptr_t)(at + HALF), .length = HALF, .lkey = mr->lkey};
	sge[1] = (struct ibv_sge){.addr = (uintptr_t)at, .length = HALF, .lkey = mr->lkey};
}

static int sent(struct end *e, const void *context, enum ibv_wc_opcode op)
{
	struct ibv_wc wc;

	WANT(rdma_get_send_comp(e->side.id, &wc) == 1);
	WANT(wc.wr_id == (uintptr_t)context && wc.status == IBV_WC_SUCCESS && wc.opcode == op);
	return 0;
}

static int received(struct end *e, const void *context, uint32_t len)
{
	struct ibv_wc wc;

	WANT(rdma_get_recv_comp(e->side.id, &wc) == 1);
	WANT(wc.wr_id == (uintptr_t)context && wc.status == IBV_WC_SUCCESS && wc.byte_len == len);
	return 0;
}

static int messages(void)
{
	struct ibv_sge sge[2];
	struct end c, s;
	struct rx_side l;

	WANT_OK(connect_ends(&l, &c, &s));
	strcpy(c.msg, "first");
	strcpy(c.msg + HALF, "second");
	WANT(!rdma_post_recv(s.side.id, &s, s.msg, LEN, s.msg_mr));
	WANT(!rdma_post_send(c.side.id, &c, c.msg, LEN, c.msg_mr, IBV_SEND_SIGNALED));
	WANT_OK(sent(&c, &c, IBV_WC_SEND));
	WANT_OK(received(&s, &s, LEN));
	WANT(!memcmp(s.msg, c.msg, LEN));

	halves(sge, s.msg, s.msg_mr);
	WANT(!rdma_post_recvv(s.side.id, &s.msg, sge, 2));
	halves(sge, c.msg, c.msg_mr);
	WANT(!rdma_post_sendv(c.side.id, &c.msg, sge, 1, IBV_SEND_SIGNALED)); /* the second half alone */
	WANT_OK(sent(&c, &c.msg, IBV_WC_SEND));
	WANT_OK(received(&s, &s.msg, HALF));
	WANT(!strcmp(s.msg + HALF, "second") && !strcmp(s.msg, "first"));

	WANT(!rdma_post_recv(s.side.id, &s, s.msg, LEN, s.msg_mr));
	WANT(!rdma_post_send(c.side.id, &c, "not registered", 15, NULL, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	WANT_OK(sent(&c, &c, IBV_WC_SEND));
	WANT_OK(received(&s, &s, 15));
	WANT(!strcmp(s.msg, "not registered"));
	return close_ends(&l, &c, &s);
}

static int remote_memory(void)
{
	struct ibv_sge sge[2];
	struct end c, s;
	struct rx_side l;

	WANT_OK(connect_ends(&l, &c, &s));
	strcpy(s.get, "to be read");
	strcpy(s.get + HALF, "this too");
	WANT(!rdma_post_read(c.side.id, &c, c.msg, LEN, c.msg_mr, IBV_SEND_SIGNALED, (uintptr_t)s.get, s.get_mr->rkey));
	WANT_OK(sent(&c, &c, IBV_WC_RDMA_READ));
	WANT(!memcmp(c.msg, s.get, LEN));
	halves(sge, c.msg, c.msg_mr);
	WANT(!rdma_post_readv(c.side.id, &c, sge, 2, IBV_SEND_SIGNALED, (uintptr_t)s.get, s.get_mr->rkey));
	WANT_OK(sent(&c, &c, IBV_WC_RDMA_READ));
	WANT(!strcmp(c.msg, "this too") && !strcmp(c.msg + HALF, "to be read"));

	WANT(!rdma_post_write(c.side.id, &c, c.msg, LEN, c.msg_mr, IBV_SEND_SIGNALED, (uintptr_t)s.put, s.put_mr->rkey));
	WANT_OK(sent(&c, &c, IBV_WC_RDMA_WRITE));
	WANT(!memcmp(s.put, c.msg, LEN));
	halves(sge, c.msg, c.msg_mr);
	WANT(!rdma_post_writev(c.side.id, &c, sge, 2, IBV_SEND_SIGNALED, (uintptr_t)s.put, s.put_mr->rkey));
	WANT_OK(sent(&c, &c, IBV_WC_RDMA_WRITE));
	WANT(!strcmp(s.put, "to be read") && !strcmp(s.put + HALF, "this too"));
	return close_ends(&l, &c, &s);
}

/* What is registered for messages, or for being read, is not the peer's to write. */
static int refused(bool for_reading)
{
	struct end c, s;
	struct rx_side l;
	struct ibv_wc wc;
	void *to;

	WANT_OK(connect_ends(&l, &c, &s));
	to = for_reading ? s.get : s.msg;
	WANT(!rdma_post_write(c.side.id, &c, c.msg, LEN, c.msg_mr, IBV_SEND_SIGNALED, (uintptr_t)to,
			      for_reading ? s.get_mr->rkey : s.msg_mr->rkey));
	WANT(rdma_get_send_comp(c.side.id, &wc) == 1 && wc.wr_id == (uintptr_t)&c && wc.status == IBV_WC_REM_ACCESS_ERR);
	return close_ends(&l, &c, &s);
}

static int access_of_messages(void)
{
	return refused(false);
}

static int access_of_read(void)
{
	return refused(true);
}

static int errors(void)
{
	struct end c, s;
	struct rx_side l;

	WANT_OK(connect_ends(&l, &c, &s));
	for (unsigned i = 0; i < 4; i++)
		WANT(!rdma_post_recv(s.side.id, NULL, s.msg, LEN, s.msg_mr));
	WANT_ERRNO(rdma_post_recv(s.side.id, NULL, s.msg, LEN, s.msg_mr), ENOMEM);
	errno = 0;
	WANT(!rdma_reg_msgs(c.side.id, c.msg, SIZE_MAX) && errno);
	return close_ends(&l, &c, &s);
}

#define TESTS(T)                                                                                                                           \
	T(verbs, messages)                                                                                                                 \
	T(verbs, remote_memory) T(verbs, access_of_messages) T(verbs, access_of_read) T(verbs, errors)
TESTS(RX_DEFINE)

void ur_suite_rdmacm_verbs(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_verbs", verbs_fixture_init, NULL);

	TESTS(RX_ADD)
}
