/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain program of librdmacm that carries as much private data as each message can, because no packaged program looks at any: the server
 * refuses the client's first request and accepts its second one, and both sides check every byte that comes. Which of the two a request is
 * its data says: one that arrives late or twice, after its answer, is a new one for a CM that has forgotten the first (rdma_rxe), and is
 * answered as the first was.
 *
 *   private_data [-u] server ADDRESS      -u: datagrams (SIDR)
 *   private_data [-u] client ADDRESS      ADDRESS: the server's
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "7322"
#define PATIENCE 3000 /* ms for addresses and routes */

/* Bytes of private data that a program can put into REQ, REP and REJ, or SIDR_REQ and SIDR_REP (IBTA 12.6, less the header of the RDMA CM).
 */
static struct {
	enum rdma_port_space ps;
	enum ibv_qp_type qp;
	uint8_t ask, accept, refuse;
	enum rdma_cm_event_type refused;
} kind = {RDMA_PS_TCP, IBV_QPT_RC, 56, 196, 148, RDMA_CM_EVENT_REJECTED};

static struct rdma_event_channel *channel;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "private_data: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* What a message of each sort carries: every byte says where it is and what it is for. */
static void fill(uint8_t *data, char sort, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		data[i] = (uint8_t)(sort + 7 * i);
}

static struct rdma_conn_param param(uint8_t *data, char sort, uint8_t len)
{
	fill(data, sort, len);
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = len,
					.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 6,
					.rnr_retry_count = 6};
}

/* The next event, which must be of that type. The caller acknowledges it. */
static struct rdma_cm_event *next(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	need(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	if (e->event != type) {
		fprintf(stderr, "private_data: %s, status %d, in place of %s\n", rdma_event_str(e->event), e->status, rdma_event_str(type));
		exit(1);
	}
	return e;
}

static void pass(enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(next(type));
}

static void check(const struct rdma_cm_event *e, char sort, unsigned len, const char *what)
{
	const void *data = kind.ps == RDMA_PS_UDP ? e->param.ud.private_data : e->param.conn.private_data;
	unsigned got = kind.ps == RDMA_PS_UDP ? e->param.ud.private_data_len : e->param.conn.private_data_len;
	uint8_t want[256];

	fill(want, sort, len);
	if (got < len || memcmp(data, want, len)) {
		fprintf(stderr, "private_data: %s: not the %u bytes that were sent, but %u\n", what, len, got);
		exit(1);
	}
	printf("%s with status %d and %u bytes as sent\n", what, e->status, len);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {.qp_type = kind.qp,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};

	need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void drop(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	need(!rdma_destroy_id(id), "rdma_destroy_id");
}

static void hang_up(struct rdma_cm_id *id)
{
	if (kind.ps == RDMA_PS_TCP) {
		need(!rdma_disconnect(id), "rdma_disconnect");
		pass(RDMA_CM_EVENT_DISCONNECTED);
	}
	drop(id);
}

#define FIRST 'q'
#define SECOND 'r'

/* A request: its data, of which each byte counts, begin with the one or the other. */
static struct rdma_cm_id *asked(char *which)
{
	struct rdma_cm_event *e = next(RDMA_CM_EVENT_CONNECT_REQUEST);
	const uint8_t *data = kind.ps == RDMA_PS_UDP ? e->param.ud.private_data : e->param.conn.private_data;
	struct rdma_cm_id *id = e->id;

	*which = data && data[0] == FIRST ? FIRST : SECOND;
	check(e, *which, kind.ask, "asked");
	rdma_ack_cm_event(e);
	return id;
}

static void refuse(struct rdma_cm_id *id)
{
	uint8_t data[256];

	fill(data, 'n', kind.refuse);
	need(!rdma_reject(id, data, kind.refuse), "rdma_reject");
	drop(id);
}

/* As pass, on the side that requests come to: repeated ones are refused. */
static void pass_served(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	for (;;) {
		struct rdma_cm_id *id;

		need(!rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
		id = e->id;
		if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST)
			break;
		rdma_ack_cm_event(e);
		refuse(id);
	}
	if (e->event != type) {
		fprintf(stderr, "private_data: %s, status %d, in place of %s\n", rdma_event_str(e->event), e->status, rdma_event_str(type));
		exit(1);
	}
	rdma_ack_cm_event(e);
}

static void serve(const struct rdma_addrinfo *at)
{
	struct rdma_cm_id *listener, *id;
	struct rdma_conn_param p;
	uint8_t data[256];
	int refused = 0;
	char which;

	need(!rdma_create_id(channel, &listener, NULL, kind.ps), "rdma_create_id");
	need(!rdma_bind_addr(listener, at->ai_src_addr), "rdma_bind_addr");
	need(!rdma_listen(listener, 2), "rdma_listen");
	for (id = asked(&which); which == FIRST; id = asked(&which)) {
		refuse(id);
		refused = 1;
	}
	need(refused, "a second request without a first one");
	make_qp(id);
	p = param(data, 'y', kind.accept);
	p.qp_num = id->qp->qp_num;
	need(!rdma_accept(id, &p), "rdma_accept");
	if (kind.ps == RDMA_PS_TCP) {
		pass_served(RDMA_CM_EVENT_ESTABLISHED);
		pass_served(RDMA_CM_EVENT_DISCONNECTED);
		need(!rdma_disconnect(id), "rdma_disconnect");
	}
	drop(id);
	drop(listener);
}

static struct rdma_cm_id *ask(const struct rdma_addrinfo *at, char which)
{
	struct rdma_cm_id *id;
	struct rdma_conn_param p;
	uint8_t data[256];

	need(!rdma_create_id(channel, &id, NULL, kind.ps), "rdma_create_id");
	need(!rdma_resolve_addr(id, NULL, at->ai_dst_addr, PATIENCE), "rdma_resolve_addr");
	pass(RDMA_CM_EVENT_ADDR_RESOLVED);
	need(!rdma_resolve_route(id, PATIENCE), "rdma_resolve_route");
	pass(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	p = param(data, which, kind.ask);
	need(!rdma_connect(id, &p), "rdma_connect");
	return id;
}

static void answered(enum rdma_cm_event_type type, char sort, unsigned len, const char *what)
{
	struct rdma_cm_event *e = next(type);

	check(e, sort, len, what);
	rdma_ack_cm_event(e);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {0}, *at;
	struct rdma_cm_id *id;
	int server;

	if (argc > 1 && !strcmp(argv[1], "-u")) {
		kind = (typeof(kind)){RDMA_PS_UDP, IBV_QPT_UD, 180, 136, 136, RDMA_CM_EVENT_UNREACHABLE};
		argc--, argv++;
	}
	if (argc != 3) {
		fprintf(stderr, "usage: private_data [-u] server|client ADDRESS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	server = !strcmp(argv[1], "server");
	hints.ai_flags = server ? RAI_PASSIVE : 0;
	hints.ai_port_space = RDMA_PS_TCP;
	need(!rdma_getaddrinfo(argv[2], PORT, &hints, &at), "rdma_getaddrinfo");
	channel = rdma_create_event_channel();
	need(channel != NULL, "rdma_create_event_channel");
	if (server) {
		serve(at);
	} else {
		id = ask(at, FIRST);
		answered(kind.refused, 'n', kind.refuse, "refused");
		drop(id);
		id = ask(at, SECOND);
		answered(RDMA_CM_EVENT_ESTABLISHED, 'y', kind.accept, "accepted");
		hang_up(id);
	}
	rdma_freeaddrinfo(at);
	rdma_destroy_event_channel(channel);
	return 0;
}
