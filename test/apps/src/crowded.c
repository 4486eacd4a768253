/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowded [ADDRESS]: a server that accepts everybody, with two descriptors for each connection, and destroys what it hears to have ended;
 * with an address, a client that connects to it once. For test/apps/hostile/hostile.sh.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define PORT "7333"
#define WAIT_MS 2000

struct end {
	struct ibv_comp_channel *channel[2];
	struct ibv_cq *cq[2];
};

static void release(struct rdma_cm_id *id)
{
	struct end *e = id->context;

	if (id->qp)
		rdma_destroy_qp(id);
	for (unsigned i = 0; i < 2; i++) {
		if (e->cq[i])
			ibv_destroy_cq(e->cq[i]);
		if (e->channel[i])
			ibv_destroy_comp_channel(e->channel[i]);
	}
	free(e);
	rdma_destroy_id(id);
}

static int prepare(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		return -1;
	id->context = e;
	for (unsigned i = 0; i < 2; i++) {
		e->channel[i] = ibv_create_comp_channel(id->verbs);
		e->cq[i] = e->channel[i] ? ibv_create_cq(id->verbs, 4, NULL, e->channel[i], 0) : NULL;
		if (!e->cq[i])
			return -1;
	}
	attr.send_cq = e->cq[0];
	attr.recv_cq = e->cq[1];
	return rdma_create_qp(id, id->pd, &attr);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void request(struct rdma_cm_id *id)
{
	if (!prepare(id) && !rdma_accept(id, NULL))
		return;
	perror("crowded: cannot accept");
	rdma_reject(id, NULL, 0);
	release(id);
}

static void serve(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(7333)};
	struct rdma_cm_event *ev;

	if (rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 128))
		fail("listen");
	for (;;) {
		struct rdma_cm_id *of;
		enum rdma_cm_event_type type;

		if (rdma_get_cm_event(channel, &ev))
			fail("rdma_get_cm_event");
		of = ev->id;
		type = ev->event;
		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			request(of);
		else if (type == RDMA_CM_EVENT_UNREACHABLE || type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_DISCONNECTED)
			release(of);
	}
}

static void await(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(channel, &ev))
		fail("rdma_get_cm_event");
	if (ev->event != type) {
		fprintf(stderr, "%s instead of %s, status %d\n", rdma_event_str(ev->event), rdma_event_str(type), ev->status);
		exit(1);
	}
	rdma_ack_cm_event(ev);
}

static void connect_once(struct rdma_event_channel *channel, struct rdma_cm_id *id, const char *address)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct addrinfo *to;

	if (getaddrinfo(address, PORT, NULL, &to) || rdma_resolve_addr(id, NULL, to->ai_addr, WAIT_MS))
		fail("rdma_resolve_addr");
	freeaddrinfo(to);
	await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, WAIT_MS))
		fail("rdma_resolve_route");
	await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (prepare(id) || rdma_connect(id, &param))
		fail("rdma_connect");
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
	puts("connected");
	rdma_disconnect(id);
	release(id);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (argc > 1)
		connect_once(channel, id, argv[1]);
	else
		serve(channel, id);
	return 0;
}
