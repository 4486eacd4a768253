/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections whose QPs the program brings itself (rdma_init_qp_attr, rdma_establish, rdma_notify), because no packaged program makes any:
 * the CM only carries messages. The client's first request is answered and then refused by the client; over the second a message goes each
 * way.
 *
 *   external              the server, port 7323
 *   external ADDR         the client
 *   external hold         a server that accepts one connection and waits to be killed
 *   external ADDR FILE    its client, which disconnects when FILE exists
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 7323

static struct rdma_event_channel *ch;
static struct rdma_cm_event *ev;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "external: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void next(enum rdma_cm_event_type type)
{
	if (ev)
		rdma_ack_cm_event(ev);
	do
		need(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event");
	while (ev->event == RDMA_CM_EVENT_TIMEWAIT_EXIT && !rdma_ack_cm_event(ev));
	if (ev->event != type)
		fprintf(stderr, "external: %s, status %d\n", rdma_event_str(ev->event), ev->status);
	need(ev->event == type, rdma_event_str(type));
}

static void move(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	need(!rdma_init_qp_attr(id, &attr, &mask), "rdma_init_qp_attr");
	need(!ibv_modify_qp(qp, &attr, mask), "ibv_modify_qp");
}

static void open_qp(void)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 16}};
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

	pd = ibv_alloc_pd(id->verbs);
	cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	qp = pd && cq ? ibv_create_qp(pd, &attr) : NULL;
	need(qp != NULL, "ibv_create_qp");
	move(IBV_QPS_INIT);
	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void close_qp(void)
{
	need(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd), "ibv_destroy_qp");
}

static struct rdma_conn_param params(const char *data)
{
	struct rdma_conn_param p = {.private_data = data,
				    .private_data_len = (uint8_t)(strlen(data) + 1),
				    .responder_resources = 1,
				    .initiator_depth = 1,
				    .retry_count = 7,
				    .rnr_retry_count = 7,
				    .qp_num = qp->qp_num};

	return p;
}

static void expect(const char *data)
{
	need(ev->param.conn.private_data && !strcmp(ev->param.conn.private_data, data), data);
}

static void completion(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;
	int k;

	while (!(k = ibv_poll_cq(cq, 1, &wc)))
		;
	need(k == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == opcode, "completion");
}

static void say(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	completion(IBV_WC_SEND);
}

/* --- the server --- */

static void answer(const char *request, const char *reply)
{
	struct rdma_conn_param p;

	next(RDMA_CM_EVENT_CONNECT_REQUEST);
	expect(request);
	id = ev->id;
	open_qp();
	need(ev->param.conn.qp_num && !id->qp, "a QP number");
	move(IBV_QPS_RTR);
	move(IBV_QPS_RTS);
	p = params(reply);
	need(!rdma_accept(id, &p), "rdma_accept");
}

static void listen_here(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_cm_id *listener;

	need(!rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) && !rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
	need(!rdma_listen(listener, 2), "rdma_listen");
}

static void serve(void)
{
	listen_here();
	answer("one", "yes");
	next(RDMA_CM_EVENT_REJECTED);
	need(ev->status == 28, "the reason of the refusal");
	expect("no, thanks");
	close_qp();
	answer("two", "yes again");
	completion(IBV_WC_RECV); /* before or after the RTU */
	need(!rdma_notify(id, IBV_EVENT_COMM_EST) || errno == EISCONN, "rdma_notify");
	next(RDMA_CM_EVENT_ESTABLISHED);
	say();
	next(RDMA_CM_EVENT_DISCONNECTED);
	need(!rdma_disconnect(id), "rdma_disconnect");
	puts("served");
}

static void hold(void)
{
	listen_here();
	answer("two", "yes again");
	next(RDMA_CM_EVENT_ESTABLISHED);
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}

/* --- the client --- */

static void ask(const char *addr, const char *request, const char *reply)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct rdma_conn_param p;

	need(inet_pton(AF_INET, addr, &in.sin_addr) == 1, addr);
	need(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) && !rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 5000),
	     "rdma_resolve_addr");
	next(RDMA_CM_EVENT_ADDR_RESOLVED);
	need(!rdma_resolve_route(id, 5000), "rdma_resolve_route");
	next(RDMA_CM_EVENT_ROUTE_RESOLVED);
	open_qp();
	p = params(request);
	need(!rdma_connect(id, &p), "rdma_connect");
	next(RDMA_CM_EVENT_CONNECT_RESPONSE);
	expect(reply);
}

static void client(const char *addr)
{
	ask(addr, "one", "yes");
	need(!rdma_reject(id, "no, thanks", 11), "rdma_reject");
	close_qp();
	ask(addr, "two", "yes again");
	move(IBV_QPS_RTR);
	move(IBV_QPS_RTS);
	say();
	need(!rdma_establish(id), "rdma_establish");
	completion(IBV_WC_RECV);
	need(!rdma_disconnect(id), "rdma_disconnect");
	next(RDMA_CM_EVENT_DISCONNECTED);
	puts("connected");
}

static void client_of_the_dead(const char *addr, const char *file)
{
	ask(addr, "two", "yes again");
	move(IBV_QPS_RTR);
	move(IBV_QPS_RTS);
	need(!rdma_establish(id), "rdma_establish");
	while (access(file, F_OK))
		usleep(1000);
	need(!rdma_disconnect(id), "rdma_disconnect");
	next(RDMA_CM_EVENT_DISCONNECTED);
	need(!ev->status, "an answer");
	puts("disconnected");
}

int main(int argc, char **argv)
{
	ch = rdma_create_event_channel();
	need(ch != NULL, "rdma_create_event_channel");
	if (argc > 2)
		client_of_the_dead(argv[1], argv[2]);
	else if (argc > 1 && !strcmp(argv[1], "hold"))
		hold();
	else if (argc > 1)
		client(argv[1]);
	else
		serve();
	return 0;
}
