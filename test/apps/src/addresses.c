/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses, ports and options of librdmacm between two hosts: what a process alone cannot show. Checks itself and exits with 0.
 *
 *   addresses names HOST SERVICE ADDRESS PORT      rdma_getaddrinfo of a name in /etc/hosts and one in /etc/services
 *   addresses fails CODE HOST SERVICE              rdma_getaddrinfo fails with this EAI code
 *   addresses resolve OWN OWN6 PEER PEER6 ABSENT   rdma_resolve_addr by ARP and neighbour discovery
 *   addresses again ABSENT PEER PORT               an id that did not reach one address resolves another one, by another device
 *   addresses local OWN6_LINK_LOCAL IFACE PEER_LINK_LOCAL   scope ids
 *   addresses in-use PORT                          another process listens on PORT of all addresses
 *   addresses conflict 4|6 4|6 ERRNO               two wildcards on one port, by default
 *   addresses ack-timeout ADDRESS PORT             a request that names an ACK timeout and a path of its own
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>

#define CHECK(x)                                                                                                                           \
	do {                                                                                                                               \
		if (!(x)) {                                                                                                                \
			fprintf(stderr, "addresses: line %d: %s is not so (errno %d)\n", __LINE__, #x, errno);                             \
			exit(1);                                                                                                           \
		}                                                                                                                          \
	} while (0)

static struct rdma_event_channel *channel;

static struct sockaddr *address(const char *text, uint16_t port, unsigned scope)
{
	static struct sockaddr_storage ring[8];
	static unsigned next;
	struct sockaddr_storage *ss = &ring[next++ % 8];
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
	} else {
		CHECK(inet_pton(AF_INET6, text, &v6->sin6_addr) == 1);
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		v6->sin6_scope_id = scope;
	}
	return (struct sockaddr *)ss;
}

static int same(const struct sockaddr *a, const char *text, uint16_t port, unsigned scope)
{
	const struct sockaddr *b = address(text, port, scope);

	return !memcmp(a, b, b->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
}

static struct rdma_cm_id *make_id(void)
{
	struct rdma_cm_id *id = NULL;

	CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	return id;
}

static void destroy(struct rdma_cm_id *id)
{
	CHECK(!rdma_destroy_id(id));
}

/* 0 or the errno. */
static int result(int ret)
{
	CHECK(ret == 0 || ret == -1);
	return ret ? errno : 0;
}

static int wait_for(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;
	int status;

	CHECK(!rdma_get_cm_event(channel, &ev));
	if (ev->event != type)
		fprintf(stderr, "%s (%d) came instead of %s\n", rdma_event_str(ev->event), ev->status, rdma_event_str(type));
	CHECK(ev->event == type);
	status = ev->status;
	CHECK(!rdma_ack_cm_event(ev));
	return status;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- names --- */

static void names(char **arg)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res = NULL, *r;
	uint16_t port = (uint16_t)atoi(arg[3]);
	int found = 0;

	CHECK(!rdma_getaddrinfo(arg[0], arg[1], &hints, &res));
	for (r = res; r; r = r->ai_next) {
		CHECK(r->ai_dst_len && r->ai_dst_addr && r->ai_qp_type == IBV_QPT_RC && r->ai_port_space == RDMA_PS_TCP);
		CHECK(r->ai_src_len && r->ai_src_addr->sa_family == r->ai_dst_addr->sa_family); /* routes lead to both */
		found += same(r->ai_dst_addr, arg[2], port, 0);
	}
	CHECK(found == 1 && res->ai_next); /* the name has an IPv6 address, too */
	CHECK(res->ai_dst_canonname && !strcmp(res->ai_dst_canonname, arg[0]));
	rdma_freeaddrinfo(res);
	hints.ai_flags = RAI_FAMILY | RAI_NOROUTE;
	hints.ai_family = AF_INET;
	CHECK(!rdma_getaddrinfo(arg[0], arg[1], &hints, &res));
	CHECK(same(res->ai_dst_addr, arg[2], port, 0) && !res->ai_src_len && !res->ai_next);
	rdma_freeaddrinfo(res);
	hints.ai_port_space = RDMA_PS_UDP; /* where the service is not offered */
	CHECK(rdma_getaddrinfo(arg[0], arg[1], &hints, &res) == EAI_SERVICE);
}

static void fails(char **arg)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {{"EAI_AGAIN", EAI_AGAIN}, {"EAI_NONAME", EAI_NONAME}, {"EAI_SERVICE", EAI_SERVICE}};
	struct rdma_addrinfo *res = NULL;
	int err = rdma_getaddrinfo(arg[1], arg[2], NULL, &res);
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]) && strcmp(codes[i].name, arg[0]); i++)
		;
	CHECK(i < sizeof(codes) / sizeof(codes[0]));
	if (err != codes[i].code)
		fprintf(stderr, "%d (%s) instead of %s\n", err, gai_strerror(err), arg[0]);
	CHECK(err == codes[i].code && !res);
}

/* --- resolving --- */

static void resolve_one(const char *src, const char *own, const char *peer)
{
	struct rdma_cm_id *id = make_id();
	uint16_t port;

	CHECK(!rdma_resolve_addr(id, src ? address(src, 0, 0) : NULL, address(peer, 4711, 0), 2000));
	CHECK(!wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
	port = ntohs(rdma_get_src_port(id));
	CHECK(port && same(rdma_get_local_addr(id), own, port, 0) && same(rdma_get_peer_addr(id), peer, 4711, 0));
	CHECK(ntohs(rdma_get_dst_port(id)) == 4711 && id->verbs && id->pd && id->port_num == 1);
	CHECK(!rdma_resolve_route(id, 2000) && !wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED) && id->route.num_paths == 1);
	destroy(id);
}

static void resolve_absent(const char *absent, const char *peer, int ms)
{
	struct rdma_cm_id *id = make_id();
	double start = seconds();

	CHECK(!rdma_resolve_addr(id, NULL, address(absent, 1, 0), ms));
	CHECK(wait_for(RDMA_CM_EVENT_ADDR_ERROR) == -ETIMEDOUT && !id->verbs);
	CHECK(seconds() - start >= ms / 1000.0 - 0.01 && seconds() - start < ms / 1000.0 + 3);
	CHECK(!rdma_resolve_addr(id, NULL, address(peer, 1, 0), 2000)); /* the id is good for another try */
	CHECK(!wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
	destroy(id);
}

static void resolve(char **arg)
{
	struct rdma_cm_id *id = make_id();

	resolve_one(NULL, arg[0], arg[2]);
	resolve_one(arg[0], arg[0], arg[2]);
	resolve_one("0.0.0.0", arg[0], arg[2]);
	resolve_one(NULL, arg[1], arg[3]);
	resolve_one(arg[1], arg[1], arg[3]);
	resolve_absent(arg[4], arg[2], 0);
	resolve_absent(arg[4], arg[2], 1200);
	CHECK(result(rdma_resolve_addr(id, NULL, address("203.0.113.1", 1, 0), 1000)) == ENETUNREACH);
	CHECK(result(rdma_resolve_addr(id, NULL, address(arg[3], 1, 0), 1000)) == EINVAL); /* IPv4 has been chosen */
	destroy(id);
}

/* The port is the id's on each device. */
static void again(char **arg)
{
	uint16_t port = (uint16_t)atoi(arg[2]);
	struct rdma_cm_id *id, *other = make_id();
	bool bound = false;

	do {
		id = make_id();
		bound = !bound;
		CHECK(!bound || !rdma_bind_addr(id, address("0.0.0.0", port, 0)));
		for (int i = 0; i < 2; i++) {
			CHECK(result(rdma_resolve_addr(id, NULL, address("203.0.113.1", 1, 0), 1000)) == ENETUNREACH);
			CHECK(!rdma_resolve_addr(id, NULL, address(arg[0], 1, 0), 0) && wait_for(RDMA_CM_EVENT_ADDR_ERROR) == -ETIMEDOUT);
		}
		CHECK(!rdma_resolve_addr(id, NULL, address(arg[1], 1, 0), 2000) && !wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
		CHECK(!bound || ntohs(rdma_get_src_port(id)) == port);
		CHECK(!bound || result(rdma_bind_addr(other, address("0.0.0.0", port, 0))) == EADDRINUSE);
		destroy(id);
	} while (bound);
	CHECK(!rdma_bind_addr(other, address("0.0.0.0", port, 0)));
	destroy(other);
}

/* --- scopes --- */

static int bind_scope(const char *text, unsigned scope)
{
	struct rdma_cm_id *id = make_id();
	int err = result(rdma_bind_addr(id, address(text, 4712, scope)));

	if (!err)
		CHECK(same(rdma_get_local_addr(id), text, 4712, scope) && id->verbs);
	destroy(id);
	return err;
}

static void local(char **arg)
{
	unsigned scope = if_nametoindex(arg[1]), lo = if_nametoindex("lo");
	struct rdma_cm_id *id = make_id();

	CHECK(scope && lo);
	CHECK(bind_scope(arg[0], 0) == EINVAL && bind_scope(arg[0], lo) == ENODEV && bind_scope(arg[0], 9999) == ENODEV);
	CHECK(bind_scope(arg[0], scope) == 0);
	CHECK(result(rdma_resolve_addr(id, NULL, address(arg[2], 5, lo), 1000)) == ENETUNREACH);
	CHECK(!rdma_resolve_addr(id, NULL, address(arg[2], 5, scope), 2000) && !wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(same(rdma_get_local_addr(id), arg[0], ntohs(rdma_get_src_port(id)), scope));
	CHECK(same(rdma_get_peer_addr(id), arg[2], 5, scope));
	destroy(id);
}

/* --- ports --- */

static void in_use(char **arg)
{
	uint16_t port = (uint16_t)atoi(arg[0]);
	struct rdma_cm_id *id = make_id();
	int on = 1;

	CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on))); /* one side alone does not share */
	CHECK(result(rdma_bind_addr(id, address("0.0.0.0", port, 0))) == EADDRINUSE);
	CHECK(!rdma_bind_addr(id, address("0.0.0.0", (uint16_t)(port + 1), 0)));
	destroy(id);
}

static void conflict(char **arg)
{
	struct rdma_cm_id *a = make_id(), *b = make_id();

	CHECK(!rdma_bind_addr(a, address(*arg[0] == '4' ? "0.0.0.0" : "::", 4713, 0)));
	CHECK(result(rdma_bind_addr(b, address(*arg[1] == '4' ? "0.0.0.0" : "::", 4713, 0))) == (strcmp(arg[2], "0") ? EADDRINUSE : 0));
	destroy(a);
	destroy(b);
}

/* --- on the wire: nobody listens, the request alone is looked at --- */

static void refused(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = {.qp_num = 0x123};

	CHECK(!rdma_connect(id, &p));
	CHECK(wait_for(RDMA_CM_EVENT_REJECTED) == 8); /* no such service */
	destroy(id);
}

static void ack_timeout(char **arg)
{
	struct ibv_path_data d = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL};
	uint16_t port = (uint16_t)atoi(arg[1]);
	struct rdma_cm_id *id = make_id();
	uint8_t value = 13, tos = 0x28;

	CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, sizeof(value)));
	CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	CHECK(!rdma_resolve_addr(id, NULL, address(arg[0], port, 0), 2000) && !wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(!rdma_resolve_route(id, 2000) && !wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED));
	refused(id);
	id = make_id();
	d.path.flowlabel_hoplimit = htonl(0xabcde << 8 | 17);
	d.path.tclass = 0x48;
	d.path.mtu = IBV_MTU_256;
	d.path.packetlifetime = 9;
	CHECK(!rdma_resolve_addr(id, NULL, address(arg[0], port, 0), 2000) && !wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(!rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &d, sizeof(d)) && !wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED));
	refused(id);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
		void (*run)(char **arg);
	} commands[] = {
		{"names", 4, names}, {"fails", 3, fails},   {"resolve", 5, resolve},   {"again", 3, again},
		{"local", 3, local}, {"in-use", 1, in_use}, {"conflict", 3, conflict}, {"ack-timeout", 2, ack_timeout},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc != 2 + commands[i].args || strcmp(argv[1], commands[i].name))
			continue;
		channel = rdma_create_event_channel();
		CHECK(channel);
		commands[i].run(argv + 2);
		rdma_destroy_event_channel(channel);
		return 0;
	}
	fprintf(stderr, "addresses: unknown arguments; the comment at the top of addresses.c has the commands\n");
	return 2;
}
