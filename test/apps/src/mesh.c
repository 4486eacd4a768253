/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two of these programs make a full mesh: N connections each way at once. Then the link between them goes down, each writes on each of its
 * connections and has all of them fail, and when the link is up again it makes all of them anew.
 *
 *   mesh ADDR PORT PEER PEERPORT N FILE
 *
 * listens, and connects when FILE exists; says "connected N N"; writes when FILE.down exists, and says "failed N"; connects again when
 * FILE.up exists, says "connected N N" once more, and ends when FILE.end exists.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX 8192
#define ACK_TIMEOUT 14 /* 67 ms */

static struct rdma_event_channel *ch;
static struct ibv_cq *cq;
static struct rdma_cm_id *out[MAX];
static char marks[2]; /* whose address is the context of an id: it goes out, or it came in */
static unsigned n, out_up, in_up, failed, ended;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "mesh: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr *address(const char *host, const char *port)
{
	static struct sockaddr_in sa;

	sa = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	need(inet_pton(AF_INET, host, &sa.sin_addr) == 1, host);
	return (struct sockaddr *)&sa;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 4 * MAX, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	need(!rdma_destroy_id(id), "rdma_destroy_id");
}

static void connect_one(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.retry_count = 1, .rnr_retry_count = 7};

	need(!rdma_connect(id, &param), "rdma_connect");
}

static void accept_one(struct rdma_cm_id *id)
{
	make_qp(id);
	id->context = &marks[1];
	need(!rdma_accept(id, NULL), "rdma_accept");
}

/* True when the id is to be destroyed once its event has been acknowledged. */
static int take(struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: need(!rdma_resolve_route(id, 5000), "rdma_resolve_route"); return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(id);
		connect_one(id);
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST: accept_one(id); return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id->context == &marks[1])
			in_up++;
		else
			out_up++;
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (id->context != &marks[1])
			return 0; /* it has failed already, and goes with the others */
		in_up--;
		ended++;
		return 1;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: return 0;
	default: fprintf(stderr, "mesh: %s, status %d\n", rdma_event_str(ev->event), ev->status); exit(1);
	}
}

static void take_event(void)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	int ends;

	need(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event");
	id = ev->id;
	ends = take(ev);
	need(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	if (ends)
		end(id);
}

static void take_completions(void)
{
	struct ibv_wc wc;

	while (cq && ibv_poll_cq(cq, 1, &wc) == 1)
		failed += wc.status == IBV_WC_RETRY_EXC_ERR;
}

static void look(int ms)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	while (poll(&p, 1, ms) == 1) {
		take_event();
		ms = 0;
	}
	take_completions();
}

static void wait_for(const char *file, const char *ending)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s%s", file, ending);
	while (access(name, F_OK))
		look(10);
}

static void connect_all(const char *host, const char *port)
{
	uint8_t timeout = ACK_TIMEOUT;

	out_up = 0;
	for (unsigned i = 0; i < n; i++) {
		need(!rdma_create_id(ch, &out[i], &marks[0], RDMA_PS_TCP), "rdma_create_id");
		need(!rdma_set_option(out[i], RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), "rdma_set_option");
		need(!rdma_resolve_addr(out[i], NULL, address(host, port), 5000), "rdma_resolve_addr");
	}
	while (out_up < n || in_up < n)
		look(100);
	printf("connected %u %u\n", out_up, in_up);
	fflush(stdout);
}

/* A write of nothing: the peer has only to acknowledge it. */
static void fail_all(void)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;

	failed = 0;
	for (unsigned i = 0; i < n; i++)
		need(!ibv_post_send(out[i]->qp, &wr, &bad), "ibv_post_send");
	while (failed < n)
		look(100);
	printf("failed %u\n", failed);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener;

	if (argc != 7 || (n = (unsigned)atoi(argv[5])) > MAX)
		return 2;
	ch = rdma_create_event_channel();
	need(ch && !rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, address(argv[1], argv[2])), "rdma_bind_addr");
	need(!rdma_listen(listener, (int)n), "rdma_listen");
	wait_for(argv[6], "");
	connect_all(argv[3], argv[4]);
	wait_for(argv[6], ".down");
	fail_all();
	wait_for(argv[6], ".up");
	for (unsigned i = 0; i < n; i++)
		end(out[i]);
	while (ended < n)
		look(100); /* those of the peer, which it has given up as well */
	connect_all(argv[3], argv[4]);
	wait_for(argv[6], ".end");
	for (unsigned i = 0; i < n; i++)
		end(out[i]);
	while (ended < 2 * n)
		look(100);
	return 0;
}
