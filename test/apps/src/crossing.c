/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two of these programs connect to each other at the same moment, each client and server at once, because no packaged program does: N
 * connections each way, a message on each, and the end of all.
 *
 *   crossing ADDR PORT PEER PEERPORT N FILE      listens, waits until FILE exists, and then connects
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX 1000

static struct rdma_event_channel *ch;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint32_t buf[MAX];
static unsigned n, out_up, in_up, in_asked, sent, received, ended;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "crossing: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr *address(const char *host, const char *port)
{
	static struct sockaddr_in in;

	in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	need(inet_pton(AF_INET, host, &in.sin_addr) == 1, host);
	return (struct sockaddr *)&in;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 16}};

	if (!cq) {
		cq = ibv_create_cq(id->verbs, 4 * MAX, NULL, NULL, 0);
		mr = ibv_reg_mr(id->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
		need(cq && mr, "resources");
	}
	attr.send_cq = attr.recv_cq = cq;
	need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void accept_one(struct rdma_cm_id *id)
{
	struct ibv_sge sge = {(uintptr_t)&buf[in_asked], sizeof(buf[0]), 0};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	need(in_asked < n, "no more requests than there are");
	make_qp(id);
	sge.lkey = mr->lkey;
	wr.wr_id = in_asked++;
	need(!ibv_post_recv(id->qp, &wr, &bad), "ibv_post_recv");
	need(!rdma_accept(id, NULL), "rdma_accept");
	id->context = id; /* one that came in */
}

static void send_one(struct rdma_cm_id *id)
{
	uint32_t number = 0xc0000000 + out_up++;
	struct ibv_sge sge = {(uintptr_t)&number, sizeof(number), 0};
	struct ibv_send_wr wr = {.wr_id = (uintptr_t)id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE},
			   *bad;

	need(!ibv_post_send(id->qp, &wr, &bad), "ibv_post_send");
}

static void take_event(void)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	need(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event");
	id = ev->id;
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: need(!rdma_resolve_route(id, 5000), "rdma_resolve_route"); break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(id);
		need(!rdma_connect(id, &param), "rdma_connect");
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST: accept_one(id); break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id->context)
			in_up++;
		else
			send_one(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		need(!rdma_disconnect(id), "rdma_disconnect");
		ended++;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: fprintf(stderr, "crossing: %s, status %d\n", rdma_event_str(ev->event), ev->status); exit(1);
	}
	need(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
}

/* A message that has arrived is the peer's to read; its sender ends the connection. */
static void take_completions(void)
{
	struct ibv_wc wc;

	while (cq && ibv_poll_cq(cq, 1, &wc) == 1) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue;
		need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_RECV) {
			need(buf[wc.wr_id] - 0xc0000000 < n, "message");
			received++;
		} else {
			sent++;
			need(!rdma_disconnect((struct rdma_cm_id *)(uintptr_t)wc.wr_id), "rdma_disconnect");
		}
	}
}

static void connect_all(const char *host, const char *port)
{
	for (unsigned i = 0; i < n; i++) {
		struct rdma_cm_id *id;

		need(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
		need(!rdma_resolve_addr(id, NULL, address(host, port), 5000), "rdma_resolve_addr");
	}
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener;
	struct pollfd p;

	if (argc != 7 || (n = (unsigned)atoi(argv[5])) > MAX)
		return 2;
	ch = rdma_create_event_channel();
	need(ch && !rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, address(argv[1], argv[2])), "rdma_bind_addr");
	need(!rdma_listen(listener, (int)n), "rdma_listen");
	while (access(argv[6], F_OK))
		usleep(1000);
	connect_all(argv[3], argv[4]);
	p = (struct pollfd){.fd = ch->fd, .events = POLLIN};
	while (ended < 2 * n) {
		if (poll(&p, 1, 1) == 1)
			take_event();
		take_completions();
	}
	printf("out %u in %u sent %u received %u ended %u\n", out_up, in_up, sent, received, ended);
	return !(out_up == n && in_up == n && sent == n && received == n);
}
