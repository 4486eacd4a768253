/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening, accepting, and the end of connections. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>

#include "apps/responder/responder.h"

#define RDMA_CM_HEADER_LEN 36 /* annex A11 */

static const char help[] = "uroce-responder: offer what 'uroce conform' needs to judge an RDMA device\n"
			   "\n"
			   "  uroce-responder [ADDRESS [PORT]]\n"
			   "\n"
			   "Listens at ADDRESS, an IP address of an RDMA device (default ::, all addresses), and at PORT of the\n"
			   "RDMA CM (default 7174). It runs on any RDMA device, until it is interrupted.\n"
			   "\n"
			   "Options:\n"
			   "  --help              explain the command and exit\n"
			   "\n"
			   "Exit status: 0 after --help; 1 when the device, the address or the port cannot be served; 2 when\n"
			   "something is wrong with the command line.\n"
			   "\n"
			   "Examples:\n"
			   "  uroce-responder 192.0.2.1\n"
			   "  uroce run --dev eth0 -- uroce-responder\n";

static struct shared shared;
static struct rdma_event_channel *events;

void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "uroce-responder: %s failed: %s\n", what, strerror(errno));
	exit(1);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- listening --- */

static const struct service {
	const char *name;
	int space;
	enum ibv_qp_type type;
} services[] = {
	{"reliable connections", RDMA_PS_TCP, IBV_QPT_RC},
	{"unreliable connections", RDMA_PS_IB, IBV_QPT_UC},
	{"datagrams", RDMA_PS_UDP, IBV_QPT_UD},
};

static bool listen_for(const struct service *v, struct sockaddr *where, socklen_t len)
{
	struct rdma_addrinfo res = {
		.ai_flags = RAI_PASSIVE, .ai_port_space = v->space, .ai_qp_type = v->type, .ai_src_addr = where, .ai_src_len = len};
	struct rdma_cm_id *id;

	if (rdma_create_ep(&id, &res, NULL, NULL))
		return false;
	return !rdma_migrate_id(id, events) && !rdma_listen(id, 64);
}

static socklen_t any_address(struct sockaddr_storage *to, const char *text, uint16_t port)
{
	struct sockaddr_in *v4 = (void *)to;
	struct sockaddr_in6 *v6 = (void *)to;

	memset(to, 0, sizeof(*to));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	memset(to, 0, sizeof(*to));
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
		return 0;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof(*v6);
}

/* --- connections --- */

/* What the judge asks for. In some port spaces the RDMA CM leaves its own header before the program's part. */
static struct wish wish_of(const struct rdma_conn_param *asked)
{
	static const unsigned starts[] = {0, RDMA_CM_HEADER_LEN};
	const uint32_t magic = htonl(UR_CF_MAGIC);
	struct wish w = {.serve = UR_CF_SERVE_READY};

	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		const uint8_t *from = asked->private_data;

		if (asked->private_data_len < starts[i] + UR_CF_REQ_LEN)
			continue;
		from += starts[i];
		if (memcmp(from, &magic, sizeof(magic)) != 0)
			continue;
		w.serve = from[4] < UR_CF_SERVES && can_serve(&shared, from[4]) ? from[4] : UR_CF_SERVE_READY;
		memcpy(&w.psn, from + 5, sizeof(w.psn));
		w.psn = ntohl(w.psn);
		break;
	}
	return w;
}

static bool make_qp(struct conn *c, struct rdma_cm_id *id, const struct wish *wish)
{
	struct ibv_qp_init_attr attr = conn_attributes(&shared, id->qp_type);

	if (wish->serve > UR_CF_SERVE_LATE)
		return make_own_qp(&shared, c, id, &attr, wish);
	if (rdma_create_qp(id, shared.pd, &attr))
		return false;
	c->qp = id->qp;
	return true;
}

static void accept_connection(struct rdma_cm_id *id, const struct rdma_conn_param *asked)
{
	const struct wish wish = wish_of(asked);
	uint8_t offer[UR_CF_REP_LEN];
	struct rdma_conn_param p = {.private_data = offer,
				    .private_data_len = sizeof(offer),
				    .responder_resources = asked->responder_resources,
				    .initiator_depth = asked->initiator_depth,
				    .retry_count = 7,
				    .rnr_retry_count = 7};
	struct conn *c = conn_new(&shared);

	if (!c || !make_qp(c, id, &wish)) {
		fprintf(stderr, "uroce-responder: no QP for a connection: %s\n", c ? strerror(errno) : "there are too many");
		if (c)
			conn_free(&shared, c);
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	id->context = c;
	c->id = id;
	p.qp_num = c->qp->qp_num;
	if (wish.serve == UR_CF_SERVE_LATE)
		c->late_until = now_ms() + UR_CF_LATE_MS;
	else
		post_receives(c);
	put_offer(&shared, c, offer);
	if (rdma_accept(id, &p))
		fprintf(stderr, "uroce-responder: a connection could not be accepted: %s\n", strerror(errno));
}

static void answer_lookup(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = {.private_data = NULL};

	if (!shared.conn[0])
		make_datagrams(&shared, id->port_num);
	p.qp_num = shared.conn[0]->qp->qp_num;
	rdma_accept(id, &p);
	rdma_destroy_id(id);
}

static void request(struct rdma_cm_id *id, const struct rdma_conn_param *asked)
{
	if (!shared.verbs)
		share_device(&shared, id->verbs);
	if (id->verbs != shared.verbs) {
		fprintf(stderr, "uroce-responder: a request came through another device: serve one device alone, by its address\n");
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
	} else if (id->ps == RDMA_PS_UDP) {
		answer_lookup(id);
	} else {
		accept_connection(id, asked);
	}
}

static void end_connection(struct rdma_cm_id *id)
{
	struct conn *c = id->context;

	if (!c || c->id != id)
		return;
	rdma_disconnect(id); /* the answer to the peer's, if it has asked for the end */
	if (id->qp)
		rdma_destroy_qp(id);
	conn_free(&shared, c);
	rdma_destroy_id(id);
}

static void take_event(void)
{
	struct rdma_cm_event *ev;
	enum rdma_cm_event_type type;
	struct rdma_conn_param asked;
	uint8_t private[256];
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(events, &ev))
		return;
	type = ev->event;
	id = ev->id;
	asked = ev->param.conn;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && id->ps != RDMA_PS_UDP && asked.private_data_len) {
		memcpy(private, asked.private_data, asked.private_data_len);
		asked.private_data = private;
	}
	rdma_ack_cm_event(ev);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		request(id, &asked);
	else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_UNREACHABLE ||
		 type == RDMA_CM_EVENT_REJECTED)
		end_connection(id);
}

/* --- the loop --- */

static void post_late_receives(uint64_t now)
{
	for (unsigned i = 1; i < CONNS; i++)
		if (shared.conn[i] && shared.conn[i]->late_until && shared.conn[i]->late_until <= now)
			post_receives(shared.conn[i]);
}

static void loop(void)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = events->fd, .events = POLLIN},
					{.fd = shared.channel ? shared.channel->fd : -1, .events = POLLIN}};

		if (poll(fds, 2, 20) < 0 && errno != EINTR)
			need(0, "poll");
		if (fds[1].revents)
			take_completions(&shared);
		if (fds[0].revents)
			take_event();
		post_late_receives(now_ms());
	}
}

int main(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "::";
	unsigned long port = argc > 2 ? strtoul(argv[2], NULL, 10) : UR_CF_PORT;
	struct sockaddr_storage where;
	unsigned served = 0;
	socklen_t len;

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return fputs(help, stdout) < 0 || fflush(stdout) ? 1 : 0;
	len = port && port < 65536 ? any_address(&where, address, (uint16_t)port) : 0;

	if (argc > 3 || !len) {
		fprintf(stderr, "uroce-responder: give the address to serve, an IP address of the device, and optionally a port: "
				"uroce-responder [ADDRESS [PORT]]; --help explains it\n");
		return 2;
	}
	events = rdma_create_event_channel();
	need(events != NULL, "an event channel of the RDMA CM");
	for (unsigned i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		bool ok = listen_for(&services[i], (struct sockaddr *)&where, len);

		if (!ok && (errno == EADDRINUSE || errno == EADDRNOTAVAIL)) {
			fprintf(stderr,
				"uroce-responder: %s, port %lu is not available for %s: end the program that listens there, or give "
				"another address of the device\n",
				address, port, services[i].name);
			return 1;
		}
		if (!ok)
			fprintf(stderr, "uroce-responder: cannot serve %s: %s\n", services[i].name, strerror(errno));
		served += ok;
	}
	need(served > 0, "any service");
	printf("serving %s, port %lu\n", address, port);
	fflush(stdout);
	loop();
}
