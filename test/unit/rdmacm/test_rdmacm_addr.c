/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/rdmacm: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3) and what tells an id's addresses and ports. Expected errors
 * are those of librdmacm 44 on Linux 6.1 with rdma_rxe where the pages name none. Tests run in children, on a device of their own with
 * the addresses 10.0.0.1/24 and fd00::1/64.
 */
#include "rdmacm_fixture.h"
#include "wire/gid_set.h"

void ur_suite_rdmacm_addr(void);

#define OURS "10.0.0.1"
#define OURS6 "fd00::1"

static struct sockaddr *at(const char *text, uint16_t port)
{
	static struct sockaddr_storage ring[4];
	static unsigned next;
	struct sockaddr_storage *ss = &ring[next++ % 4];

	memcpy(ss, rx_address(text, port), sizeof(*ss));
	return (struct sockaddr *)ss;
}

static struct sockaddr *any(bool v6, uint16_t port)
{
	return at(v6 ? "::" : "0.0.0.0", port);
}

static bool is(const struct sockaddr *sa, const char *text, uint16_t port)
{
	const struct sockaddr *want = at(text, port);

	return memcmp(sa, want, ur_sa_len(want->sa_family)) == 0;
}

static bool is_zero(const struct sockaddr *sa)
{
	static const struct sockaddr_storage zero;

	return memcmp(sa, &zero, sizeof(zero)) == 0;
}

static int open_ids(struct rx_side *s, unsigned n)
{
	while (n--)
		WANT(!rx_open_in(&s[n], RDMA_PS_TCP));
	return 0;
}

static int close_ids(struct rx_side *s, unsigned n)
{
	while (n--)
		WANT(!rx_close(&s[n]));
	return 0;
}

static int set(struct rx_side *s, int option, int value)
{
	return rdma_set_option(s->id, RDMA_OPTION_ID, option, &value, sizeof(value));
}

/* --- binding --- */

static int bind_fresh(void)
{
	struct rx_side s;

	WANT(!open_ids(&s, 1));
	WANT(is_zero(rdma_get_local_addr(s.id)) && is_zero(rdma_get_peer_addr(s.id)));
	WANT(!rdma_get_src_port(s.id) && !rdma_get_dst_port(s.id) && !s.id->verbs);
	WANT(!rdma_get_src_port(NULL) && !rdma_get_dst_port(NULL));
	return close_ids(&s, 1);
}

static int bind_addresses(void)
{
	static const struct {
		const char *addr;
		uint16_t port;
		bool device;
	} t[] = {
		{OURS, 7000, true},	 {OURS6, 7000, true},	 {OURS, 80, true},	{"0.0.0.0", 7000, false}, {"::", 7000, false},
		{"127.0.0.1", 7000, false}, {"127.9.9.9", 7000, false}, {"::1", 7000, false},
	};
	struct rx_side s;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		WANT(!open_ids(&s, 1));
		WANT(!rdma_bind_addr(s.id, at(t[i].addr, t[i].port)));
		WANT(is(rdma_get_local_addr(s.id), t[i].addr, t[i].port) && ntohs(rdma_get_src_port(s.id)) == t[i].port);
		WANT(!!s.id->verbs == t[i].device && !!s.id->pd == t[i].device && s.id->port_num == t[i].device);
		WANT(is_zero(rdma_get_peer_addr(s.id)) && !rdma_get_dst_port(s.id));
		WANT_ERRNO(rdma_bind_addr(s.id, at(t[i].addr, t[i].port)), EINVAL);
		WANT(!close_ids(&s, 1));
	}
	return 0;
}

static int bind_errors(void)
{
	static const struct {
		const char *addr;
		int err;
	} t[] = {
		{"10.0.0.2", EADDRNOTAVAIL},	    {"fd00::2", EADDRNOTAVAIL},	  {"224.1.1.1", EADDRNOTAVAIL},
		{"255.255.255.255", EADDRNOTAVAIL}, {"10.0.0.255", EADDRNOTAVAIL}, {"ff02::1", EADDRNOTAVAIL},
	};
	struct sockaddr odd[] = {{.sa_family = AF_UNIX}, {.sa_family = AF_UNSPEC}, {.sa_family = 0xffff}};
	struct rx_side s;

	WANT(!open_ids(&s, 1));
	for (unsigned i = 0; i < ur_array_size(t); i++)
		WANT_ERRNO(rdma_bind_addr(s.id, at(t[i].addr, 0)), t[i].err);
	for (unsigned i = 0; i < ur_array_size(odd); i++)
		WANT_ERRNO(rdma_bind_addr(s.id, &odd[i]), EINVAL);
	WANT_ERRNO(rdma_bind_addr(s.id, NULL), EINVAL);
	WANT(is_zero(rdma_get_local_addr(s.id)));
	WANT(!rdma_bind_addr(s.id, at(OURS, 0)));
	return close_ids(&s, 1);
}

static int bind_port_zero(void)
{
	struct rx_side s[3];
	uint16_t port[3];

	WANT(!open_ids(s, 3));
	WANT(!rdma_bind_addr(s[0].id, at(OURS, 0)) && !rdma_bind_addr(s[1].id, any(false, 0)) && !rdma_bind_addr(s[2].id, any(true, 0)));
	for (unsigned i = 0; i < 3; i++) {
		port[i] = ntohs(rdma_get_src_port(s[i].id));
		WANT(port[i] >= 32768 && port[i] <= 60999);
		for (unsigned k = 0; k < i; k++)
			WANT(port[i] != port[k]);
	}
	WANT(is(rdma_get_local_addr(s[0].id), OURS, port[0]));
	return close_ids(s, 3);
}

/* -1: the option is not set. A listener with an address takes nothing from one with a wildcard of the other family. */
static int bind_conflicts(void)
{
	static const struct {
		const char *a, *b;
		int a_only, b_only, err;
	} t[] = {
		{"0.0.0.0", "0.0.0.0", -1, -1, EADDRINUSE}, {"0.0.0.0", "::", -1, -1, EADDRINUSE},
		{"0.0.0.0", "::", -1, 0, EADDRINUSE},       {"0.0.0.0", "::", -1, 1, 0},
		{"0.0.0.0", "::", 1, 1, 0},		       {"0.0.0.0", "::", 0, 1, EADDRINUSE},
		{"::", "0.0.0.0", -1, -1, EADDRINUSE},      {"::", "0.0.0.0", 1, -1, 0},
		{"::", "0.0.0.0", 1, 0, EADDRINUSE},	       {"::", "::", 1, 1, EADDRINUSE},
		{"0.0.0.0", OURS, -1, -1, EADDRINUSE},      {OURS, "0.0.0.0", -1, -1, EADDRINUSE},
		{"::", OURS, -1, -1, EADDRINUSE},	       {"::", OURS, 1, -1, 0},
		{OURS, "::", -1, 1, 0},			       {OURS, "::", -1, -1, EADDRINUSE},
		{"::", OURS6, 1, 1, EADDRINUSE},	       {"0.0.0.0", OURS6, -1, 1, 0},
		{OURS, OURS, -1, -1, EADDRINUSE},	       {OURS6, OURS6, 1, 1, EADDRINUSE},
		{OURS, OURS6, -1, -1, 0},		       {OURS6, OURS, 0, 0, 0},
		{"127.0.0.1", "0.0.0.0", -1, -1, EADDRINUSE},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct rx_side s[2];
		int ret;

		WANT(!open_ids(s, 2));
		WANT(t[i].a_only < 0 || !set(&s[0], RDMA_OPTION_ID_AFONLY, t[i].a_only));
		WANT(t[i].b_only < 0 || !set(&s[1], RDMA_OPTION_ID_AFONLY, t[i].b_only));
		WANT(!rdma_bind_addr(s[0].id, at(t[i].a, 7100)));
		ret = rdma_bind_addr(s[1].id, at(t[i].b, 7100));
		if ((ret ? errno : 0) != t[i].err)
			fprintf(stderr, "\n%s (%d) and %s (%d): %d", t[i].a, t[i].a_only, t[i].b, t[i].b_only, ret ? errno : 0);
		WANT((ret ? errno : 0) == t[i].err);
		if (!ret)
			WANT(!rdma_listen(s[0].id, 1) && !rdma_listen(s[1].id, 1));
		WANT(!close_ids(s, 2));
	}
	return 0;
}

/* The option may still be set when the id is bound. */
static int bind_afonly_afterwards(void)
{
	struct rx_side s[2];

	WANT(!open_ids(s, 2));
	WANT(!rdma_bind_addr(s[0].id, any(true, 7101)));
	WANT_ERRNO(rdma_bind_addr(s[1].id, any(false, 7101)), EADDRINUSE);
	WANT(!set(&s[0], RDMA_OPTION_ID_AFONLY, 1));
	WANT(!rdma_bind_addr(s[1].id, any(false, 7101)));
	WANT_ERRNO(set(&s[0], RDMA_OPTION_ID_AFONLY, 0), EADDRINUSE); /* the other has it now */
	WANT(!rdma_listen(s[0].id, 1) && !rdma_listen(s[1].id, 1));
	WANT_ERRNO(set(&s[0], RDMA_OPTION_ID_AFONLY, 0), EINVAL);
	return close_ids(s, 2);
}

static int connect_one(struct rx_side *l, const char *to, uint16_t port)
{
	struct rdma_conn_param p = {.qp_num = 5};
	struct rx_side c;

	WANT(!rx_resolve_to(&c, RDMA_PS_TCP, at(to, port)));
	WANT(!rdma_connect(c.id, &p));
	if (l) {
		WANT(!rx_next(l, RDMA_CM_EVENT_CONNECT_REQUEST));
		WANT(!rdma_reject(l->ev->id, NULL, 0));
	}
	WANT(!rx_next(&c, RDMA_CM_EVENT_REJECTED));
	WANT(c.ev->status == (l ? UR_CM_REJ_CONSUMER_DEFINED : UR_CM_REJ_INVALID_SERVICE_ID));
	if (l)
		WANT(!rdma_destroy_id(l->ev->id));
	return rx_close(&c);
}

/* Each IP version has a listener of its own on one port. */
static int listen_on_both_wildcards(void)
{
	struct rx_side l[2];

	WANT(!open_ids(l, 2));
	WANT(!set(&l[1], RDMA_OPTION_ID_AFONLY, 1));
	for (unsigned i = 0; i < 2; i++)
		WANT(!rdma_bind_addr(l[i].id, any(i, 7102)) && !rdma_listen(l[i].id, 4));
	WANT(!connect_one(&l[0], OURS, 7102) && !connect_one(&l[1], OURS6, 7102));
	WANT(!rx_close(&l[0]));
	WANT(!connect_one(NULL, OURS, 7102) && !connect_one(&l[1], OURS6, 7102));
	return rx_close(&l[1]);
}

/* --- shared ports --- */

static int reuse_address(void)
{
	struct rx_side s[3];

	WANT(!open_ids(s, 3));
	WANT(!set(&s[0], RDMA_OPTION_ID_REUSEADDR, 1));
	WANT(!rdma_bind_addr(s[0].id, at(OURS, 7200)));
	WANT_ERRNO(rdma_bind_addr(s[1].id, at(OURS, 7200)), EADDRINUSE);
	WANT(!set(&s[1], RDMA_OPTION_ID_REUSEADDR, 1));
	WANT(!rdma_bind_addr(s[1].id, at(OURS, 7200)));
	WANT_ERRNO(rdma_listen(s[0].id, 1), EADDRINUSE); /* that takes the port alone */
	WANT(!rx_close(&s[1]));
	WANT(!rdma_listen(s[0].id, 1));
	WANT(!set(&s[2], RDMA_OPTION_ID_REUSEADDR, 1));
	WANT_ERRNO(rdma_bind_addr(s[2].id, at(OURS, 7200)), EADDRINUSE);
	WANT_ERRNO(rdma_bind_addr(s[2].id, any(false, 7200)), EADDRINUSE);
	WANT(!rx_close(&s[0]));
	WANT(!rdma_bind_addr(s[2].id, at(OURS, 7200)));
	return rx_close(&s[2]);
}

/* Turned on when the id is bound already, it counts as well. */
static int reuse_afterwards(void)
{
	struct rx_side s[2];

	WANT(!open_ids(s, 2));
	WANT(!set(&s[1], RDMA_OPTION_ID_REUSEADDR, 1));
	WANT(!rdma_bind_addr(s[0].id, at(OURS, 7201)));
	WANT_ERRNO(rdma_bind_addr(s[1].id, at(OURS, 7201)), EADDRINUSE);
	WANT(!set(&s[0], RDMA_OPTION_ID_REUSEADDR, 1));
	WANT(!rdma_bind_addr(s[1].id, at(OURS, 7201)));
	return close_ids(s, 2);
}

/* --- resolving --- */

static int resolve(struct rx_side *s, struct sockaddr *src, struct sockaddr *dst, int timeout, enum rdma_cm_event_type type)
{
	WANT(!rdma_resolve_addr(s->id, src, dst, timeout));
	return rx_next(s, type);
}

static int resolve_addresses(void)
{
	static const struct {
		const char *src, *dst, *local, *peer, *sgid, *dgid;
	} t[] = {
		{NULL, OURS, OURS, OURS, OURS, OURS},
		{NULL, OURS6, OURS6, OURS6, OURS6, OURS6},
		{OURS, OURS, OURS, OURS, OURS, OURS},
		{"0.0.0.0", OURS, OURS, OURS, OURS, OURS},
		{NULL, "127.0.0.1", "127.0.0.1", "127.0.0.1", OURS, OURS},
		{NULL, "::1", "::1", "::1", OURS6, OURS6},
		{NULL, "0.0.0.0", "127.0.0.1", "0.0.0.0", OURS, OURS},
		{NULL, "::", "::1", "::", OURS6, OURS6},
		{OURS, "127.0.0.1", OURS, "127.0.0.1", OURS, OURS},
		{"127.0.0.5", "127.0.0.1", "127.0.0.5", "127.0.0.1", OURS, OURS},
	};
	struct rx_side s;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const struct rdma_ib_addr *ib;
		struct ur_gid sgid = rx_gid(t[i].sgid), dgid = rx_gid(t[i].dgid);

		WANT(!open_ids(&s, 1));
		WANT(!resolve(&s, t[i].src ? at(t[i].src, 0) : NULL, at(t[i].dst, 77), 0, RDMA_CM_EVENT_ADDR_RESOLVED) && !s.ev->status);
		WANT(s.id->verbs && s.id->pd && s.id->port_num == 1);
		WANT(is(rdma_get_local_addr(s.id), t[i].local, ntohs(rdma_get_src_port(s.id))) && rdma_get_src_port(s.id));
		WANT(is(rdma_get_peer_addr(s.id), t[i].peer, 77) && ntohs(rdma_get_dst_port(s.id)) == 77);
		ib = &s.id->route.addr.addr.ibaddr;
		WANT(!memcmp(ib->sgid.raw, sgid.raw, 16) && !memcmp(ib->dgid.raw, dgid.raw, 16) && ib->pkey == htobe16(0xffff));
		WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at(t[i].dst, 77), 100), EINVAL);
		WANT_ERRNO(rdma_bind_addr(s.id, at(OURS, 0)), EINVAL);
		WANT(!close_ids(&s, 1));
	}
	return 0;
}

static int resolve_bound(void)
{
	struct rx_side s[3];

	WANT(!open_ids(s, 3));
	WANT(!resolve(&s[0], at(OURS, 5555), at(OURS, 0), 100, RDMA_CM_EVENT_ADDR_RESOLVED)); /* as by rdma_bind_addr */
	WANT(is(rdma_get_local_addr(s[0].id), OURS, 5555) && !rdma_get_dst_port(s[0].id));
	WANT_ERRNO(rdma_resolve_addr(s[1].id, at(OURS, 5555), at(OURS, 1), 100), EADDRINUSE);
	WANT(!rdma_bind_addr(s[1].id, any(false, 5556)));
	WANT(!resolve(&s[1], NULL, at(OURS, 1), 100, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(is(rdma_get_local_addr(s[1].id), OURS, 5556));
	WANT(!rdma_bind_addr(s[2].id, at(OURS, 5557))); /* what it is bound to is not changed */
	WANT(!resolve(&s[2], at("10.0.0.77", 9), at(OURS, 1), 100, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(is(rdma_get_local_addr(s[2].id), OURS, 5557));
	return close_ids(s, 3);
}

static int resolve_errors(void)
{
	struct sockaddr odd = {.sa_family = AF_UNIX}, none = {.sa_family = AF_UNSPEC};
	const struct {
		struct sockaddr *src, *dst;
		int err;
	} t[] = {
		{NULL, NULL, EINVAL},		  {NULL, &odd, EINVAL},
		{NULL, &none, EINVAL},		  {&odd, at(OURS, 1), EINVAL},
		{&none, at(OURS, 1), EINVAL},	  {at(OURS6, 0), at(OURS, 1), EINVAL},
	};
	struct rx_side s;

	WANT(!open_ids(&s, 1));
	for (unsigned i = 0; i < ur_array_size(t); i++)
		WANT_ERRNO(rdma_resolve_addr(s.id, t[i].src, t[i].dst, 100), t[i].err);
	WANT_ERRNO(rdma_resolve_addr(s.id, at("10.0.0.77", 0), at(OURS, 1), 100), EADDRNOTAVAIL);
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at("203.0.113.1", 1), 100), ENETUNREACH);
	WANT(is_zero(rdma_get_peer_addr(s.id)));
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at("203.0.113.1", 1), 100), ENETUNREACH); /* and again */
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at(OURS6, 1), 100), EINVAL); /* it is bound to a wildcard of IPv4 now */
	WANT(!resolve(&s, NULL, at(OURS, 1), 100, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!close_ids(&s, 1));
	WANT(!open_ids(&s, 1) && !rdma_bind_addr(s.id, at("127.0.0.1", 0)));
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at("10.0.0.9", 1), 100), EINVAL); /* no way leads from there but to this host */
	WANT(!resolve(&s, NULL, at(OURS, 1), 100, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!close_ids(&s, 1));
	WANT(!rx_listen_at(&s, RDMA_PS_TCP, at(OURS, 7300), 0));
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at(OURS, 1), 100), EINVAL);
	return close_ids(&s, 1);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Nobody answers ARP on a null device. An id that waits longer tells how long it takes at most: on a busy machine both are late. */
static int resolve_timeouts(void)
{
	static const struct {
		int ms, longer_ms;
		double least;
	} t[] = {{0, 1000, 0}, {1, 1000, 0}, {700, 3000, 0.69}};
	struct rdma_cm_id *longer;
	struct rx_side s;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		double start = seconds();

		WANT(!open_ids(&s, 1));
		WANT(!rdma_create_id(s.ch, &longer, NULL, RDMA_PS_TCP));
		WANT(!rdma_resolve_addr(longer, NULL, at("10.0.0.9", 7), t[i].longer_ms));
		WANT(!resolve(&s, NULL, at("10.0.0.9", 7), t[i].ms, RDMA_CM_EVENT_ADDR_ERROR));
		WANT(s.ev->id == s.id && s.ev->status == -ETIMEDOUT && !s.id->verbs);
		WANT(seconds() - start >= t[i].least);
		WANT(!rdma_destroy_id(longer));
		WANT(is(rdma_get_peer_addr(s.id), "10.0.0.9", 7));
		WANT_ERRNO(rdma_resolve_route(s.id, 100), EINVAL);
		WANT(!resolve(&s, NULL, at("10.0.0.8", 7), 1, RDMA_CM_EVENT_ADDR_ERROR)); /* it may try again */
		WANT(!resolve(&s, NULL, at(OURS, 7), 1, RDMA_CM_EVENT_ADDR_RESOLVED));
		WANT(is(rdma_get_local_addr(s.id), OURS, ntohs(rdma_get_src_port(s.id))));
		WANT(!close_ids(&s, 1));
	}
	return 0;
}

/* A negative time has no end, and neither has one of weeks: only the id's destruction ends them. */
static int resolve_patiently(void)
{
	static const int ms[] = {-1, INT32_MIN, INT32_MAX};
	struct rx_side s[3];

	WANT(!open_ids(s, 3));
	for (unsigned i = 0; i < 3; i++) {
		WANT(!rdma_resolve_addr(s[i].id, NULL, at("10.0.0.9", 7), ms[i]));
		WANT_ERRNO(rdma_resolve_addr(s[i].id, NULL, at("10.0.0.9", 7), 1), EINVAL); /* one at a time */
		WANT_ERRNO(rdma_bind_addr(s[i].id, at(OURS, 0)), EINVAL);
	}
	usleep(1200000);
	for (unsigned i = 0; i < 3; i++)
		WANT(((struct ur_id *)s[i].id)->state == UR_ID_ADDR_QUERY);
	return close_ids(s, 3);
}

static int resolve_synchronously(void)
{
	struct rdma_cm_id *id;

	WANT(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	WANT_ERRNO(rdma_resolve_addr(id, NULL, at("10.0.0.9", 7), 1), ETIMEDOUT);
	WANT(id->event && id->event->event == RDMA_CM_EVENT_ADDR_ERROR);
	WANT(!rdma_resolve_addr(id, NULL, at(OURS, 7), 1));
	WANT(id->event && id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	WANT(!rdma_resolve_route(id, 1));
	WANT(id->event && id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
	WANT(!rdma_destroy_id(id));
	return 0;
}

/* --- routes --- */

static int resolve_the_route(void)
{
	const struct ibv_sa_path_rec *r;
	struct rx_side s;

	WANT(!open_ids(&s, 1));
	WANT_ERRNO(rdma_resolve_route(s.id, 100), EINVAL);
	WANT(!rdma_bind_addr(s.id, at(OURS, 0)));
	WANT_ERRNO(rdma_resolve_route(s.id, 100), EINVAL);
	WANT(!resolve(&s, NULL, at(OURS, 7174), 100, RDMA_CM_EVENT_ADDR_RESOLVED));
	WANT(!s.id->route.num_paths && !s.id->route.path_rec);
	WANT(!rdma_resolve_route(s.id, -1) && !rx_next(&s, RDMA_CM_EVENT_ROUTE_RESOLVED) && !s.ev->status);
	r = s.id->route.path_rec;
	WANT(s.id->route.num_paths == 1 && r);
	WANT(!memcmp(r->sgid.raw, rx_gid(OURS).raw, 16) && !memcmp(r->dgid.raw, rx_gid(OURS).raw, 16));
	WANT(r->hop_limit == 64 && r->pkey == htons(0xffff) && r->reversible && r->numb_path == 1 && r->traffic_class == 0);
	WANT(r->mtu >= IBV_MTU_256 && r->mtu <= IBV_MTU_4096 && r->packet_life_time == 16 && r->mtu_selector == 2);
	WANT(r->flow_label && !(ntohl(r->flow_label) >> 20));
	WANT_ERRNO(rdma_resolve_route(s.id, 100), EINVAL);
	WANT_ERRNO(rdma_resolve_addr(s.id, NULL, at(OURS, 1), 100), EINVAL);
	return close_ids(&s, 1);
}

/* --- loopback: a server and a client on one host that know no address of it --- */

static int loopback_connections(void)
{
	static const struct {
		const char *listen, *to;
	} t[] = {
		{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"}, {"::", "::1"},
		{"::1", "::1"},             {"::", "127.0.0.1"},      {OURS, "0.0.0.0"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct rx_side l, c, s;

		WANT(!rx_listen_at(&l, RDMA_PS_TCP, at(t[i].listen, RX_PORT), 0));
		WANT(!rx_resolve_to(&c, RDMA_PS_TCP, at(t[i].to, RX_PORT)));
		WANT(!rx_join(&l, &c, &s, IBV_QPT_RC, IBV_QPT_RC));
		WANT(is(rdma_get_peer_addr(c.id), t[i].to, RX_PORT));
		/* the passive side sees what the packets bear */
		WANT(is(rdma_get_local_addr(s.id), strchr(t[i].to, ':') ? OURS6 : OURS, RX_PORT));
		WANT(rdma_get_dst_port(s.id) == rdma_get_src_port(c.id));
		WANT(!rx_part(&c, &s) && !rx_close(&c) && !rx_close(&s) && !rx_close(&l));
	}
	return 0;
}

/* On the loopback interface they are addresses of the device. */
static int loopback_device(void)
{
	static const char *const bound[] = {"127.0.0.1", "127.0.0.3", "127.0.0.9", "::1"}; /* and one that has no GID */
	static const struct {
		const char *src, *dst, *sgid, *dgid;
	} t[] = {
		{"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"}, {"127.0.0.1", "127.0.0.3", "127.0.0.1", "127.0.0.3"},
		{"127.0.0.3", "127.0.0.1", "127.0.0.3", "127.0.0.1"}, {"127.0.0.1", OURS, "127.0.0.1", OURS},
		{OURS, "127.0.0.3", OURS, "127.0.0.3"},		      {"127.0.0.9", "127.0.0.8", "127.0.0.1", "127.0.0.1"},
		{"::1", "::1", "::1", "::1"},
	};
	struct rx_side s;

	setenv("UROCE_IP", "127.0.0.1/8,127.0.0.3/8," OURS "/32,::1/128", 1);
	for (unsigned i = 0; i < ur_array_size(bound); i++) {
		WANT(!open_ids(&s, 1) && !rdma_bind_addr(s.id, at(bound[i], 7000)));
		WANT(s.id->verbs && s.id->pd && s.id->port_num == 1 && is(rdma_get_local_addr(s.id), bound[i], 7000));
		WANT(!rdma_listen(s.id, 1) && !connect_one(&s, bound[i], 7000) && !close_ids(&s, 1));
	}
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const struct rdma_ib_addr *ib;
		struct ur_gid sgid = rx_gid(t[i].sgid), dgid = rx_gid(t[i].dgid);

		WANT(!open_ids(&s, 1) && !resolve(&s, at(t[i].src, 0), at(t[i].dst, 77), 100, RDMA_CM_EVENT_ADDR_RESOLVED));
		ib = &s.id->route.addr.addr.ibaddr;
		WANT(s.id->verbs && !memcmp(ib->sgid.raw, sgid.raw, 16) && !memcmp(ib->dgid.raw, dgid.raw, 16));
		WANT(is(rdma_get_peer_addr(s.id), t[i].dst, 77) && !close_ids(&s, 1));
	}
	return 0;
}

/* --- */

#define RUN(test) CU_ASSERT_EQUAL(rx_child(__FILE__, test), 0)

static void bind__a_new_id_has_no_address(void) { RUN(bind_fresh); }
static void bind__addresses(void) { RUN(bind_addresses); }
static void bind__errors(void) { RUN(bind_errors); }
static void bind__port_zero(void) { RUN(bind_port_zero); }
static void bind__conflicts(void) { RUN(bind_conflicts); }
static void bind__afonly_afterwards(void) { RUN(bind_afonly_afterwards); }
static void bind__listen_on_both_wildcards(void) { RUN(listen_on_both_wildcards); }
static void bind__reuse_address(void) { RUN(reuse_address); }
static void bind__reuse_afterwards(void) { RUN(reuse_afterwards); }
static void resolve_addr__addresses(void) { RUN(resolve_addresses); }
static void resolve_addr__bound(void) { RUN(resolve_bound); }
static void resolve_addr__errors(void) { RUN(resolve_errors); }
static void resolve_addr__timeouts(void) { RUN(resolve_timeouts); }
static void resolve_addr__patiently(void) { RUN(resolve_patiently); }
static void resolve_addr__synchronously(void) { RUN(resolve_synchronously); }
static void resolve_route__states_and_record(void) { RUN(resolve_the_route); }
static void loopback__connections(void) { RUN(loopback_connections); }
static void loopback__of_the_device(void) { RUN(loopback_device); }

void ur_suite_rdmacm_addr(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_addr", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, bind__a_new_id_has_no_address);
	CU_ADD_TEST(s, bind__addresses);
	CU_ADD_TEST(s, bind__errors);
	CU_ADD_TEST(s, bind__port_zero);
	CU_ADD_TEST(s, bind__conflicts);
	CU_ADD_TEST(s, bind__afonly_afterwards);
	CU_ADD_TEST(s, bind__listen_on_both_wildcards);
	CU_ADD_TEST(s, bind__reuse_address);
	CU_ADD_TEST(s, bind__reuse_afterwards);
	CU_ADD_TEST(s, resolve_addr__addresses);
	CU_ADD_TEST(s, resolve_addr__bound);
	CU_ADD_TEST(s, resolve_addr__errors);
	CU_ADD_TEST(s, resolve_addr__timeouts);
	CU_ADD_TEST(s, resolve_addr__patiently);
	CU_ADD_TEST(s, resolve_addr__synchronously);
	CU_ADD_TEST(s, resolve_route__states_and_record);
	CU_ADD_TEST(s, loopback__connections);
	CU_ADD_TEST(s, loopback__of_the_device);
}
