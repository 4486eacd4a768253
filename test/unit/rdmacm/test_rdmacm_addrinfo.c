/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/rdmacm: rdma_getaddrinfo(3), sentence by sentence of its page. The resolver of libc is behind one of our own here, which notes what
 * it is asked for and can fail with any error or answer with a list of any length.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

#include <infiniband/ib.h>
#include <infiniband/sa.h>

#include "rdmacm/address/addrinfo.h"
#include "rdmacm/internal.h"
#include "verbs_fixture.h"
#include "wire/frame.h"

void ur_suite_rdmacm_addrinfo(void);

/* --- the resolver --- */

static struct {
	int err, err_no;       /* to fail with */
	struct addrinfo *list; /* to answer with */
	struct addrinfo asked;
	unsigned asked_n, freed;
} resolver;

int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
		struct addrinfo **restrict res)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	resolver.asked_n++;
	resolver.asked = hints ? *hints : (struct addrinfo){0};
	if (resolver.err) {
		errno = resolver.err_no;
		return resolver.err;
	}
	if (resolver.list) {
		*res = resolver.list;
		return 0;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(node, service, hints, res);
}

void freeaddrinfo(struct addrinfo *ai)
{
	void (*real)(struct addrinfo *);

	if (ai == resolver.list) {
		resolver.freed++;
		return;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
	real(ai);
}

/* --- */

static struct sockaddr *put(struct sockaddr_storage *ss, const char *text, uint16_t port)
{
	struct in_addr v4;
	struct ur_gid gid;

	if (inet_pton(AF_INET, text, &v4) == 1)
		gid = ur_gid_from_v4(v4.s_addr);
	else
		CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, gid.raw), 1);
	ur_sa_put(ss, &gid, port);
	return (struct sockaddr *)ss;
}

static struct sockaddr *sa(const char *text, uint16_t port)
{
	static struct sockaddr_storage ring[4];
	static unsigned next;

	return put(&ring[next++ % 4], text, port);
}

static bool is_addr(const struct sockaddr *a, socklen_t len, const char *text, uint16_t port)
{
	struct sockaddr_storage ss;
	const struct sockaddr *want = put(&ss, text, port);

	return a && len == ur_sa_len(want->sa_family) && memcmp(a, want, len) == 0;
}

static int lookup(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	memset(&resolver, 0, sizeof(resolver));
	*res = NULL;
	return rdma_getaddrinfo(node, service, hints, res);
}

static struct rdma_addrinfo *found(const char *node, const char *service, struct rdma_addrinfo hints)
{
	struct rdma_addrinfo *res;

	CU_ASSERT_EQUAL_FATAL(lookup(node, service, &hints, &res), 0);
	return res;
}

/* --- errors --- */

static void errors__of_the_resolver_are_passed_on(void)
{
	static const int codes[] = {EAI_ADDRFAMILY, EAI_AGAIN,	EAI_BADFLAGS, EAI_FAIL,	   EAI_FAMILY, EAI_MEMORY,
				    EAI_NODATA,	    EAI_NONAME, EAI_SERVICE,  EAI_SOCKTYPE, EAI_SYSTEM};
	struct rdma_addrinfo *res = NULL;

	for (unsigned i = 0; i < ur_array_size(codes); i++) {
		memset(&resolver, 0, sizeof(resolver));
		resolver.err = codes[i];
		resolver.err_no = EMFILE;
		errno = 0;
		CU_ASSERT_EQUAL(rdma_getaddrinfo("host.example", "1", NULL, &res), codes[i]);
		CU_ASSERT_EQUAL(errno, EMFILE);
		CU_ASSERT_EQUAL(resolver.asked_n, 1);
		CU_ASSERT_PTR_NULL(res);
	}
	memset(&resolver, 0, sizeof(resolver));
}

/* Without a name server: what arguments alone bring about. */
static void errors__at_their_causes(void)
{
	static const struct {
		const char *node, *service;
		struct rdma_addrinfo hints;
		int err;
	} t[] = {
		{"192.0.2.7", NULL, {.ai_flags = RAI_FAMILY, .ai_family = AF_INET6}, EAI_ADDRFAMILY},
		{"2001:db8::7", NULL, {.ai_flags = RAI_FAMILY, .ai_family = AF_INET}, EAI_ADDRFAMILY},
		{"192.0.2.7", NULL, {.ai_flags = 0x10}, EAI_BADFLAGS},
		{"192.0.2.7", NULL, {.ai_flags = INT32_MIN}, EAI_BADFLAGS},
		{"192.0.2.7", NULL, {.ai_flags = RAI_FAMILY, .ai_family = AF_UNIX}, EAI_FAMILY},
		{"192.0.2.7", NULL, {.ai_family = 255}, EAI_FAMILY},
		{"no.number", NULL, {.ai_flags = RAI_NUMERICHOST}, EAI_NONAME},
		{"", NULL, {.ai_flags = RAI_NUMERICHOST}, EAI_NONAME},
		{NULL, NULL, {.ai_flags = 0}, EAI_NONAME},
		{NULL, NULL, {.ai_flags = RAI_PASSIVE}, EAI_NONAME},
		{"192.0.2.7", "no-such-service-anywhere", {.ai_flags = 0}, EAI_SERVICE},
		{"192.0.2.7", NULL, {.ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_TCP}, EAI_SOCKTYPE},
	};
	struct rdma_addrinfo *res;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		CU_ASSERT_EQUAL(lookup(t[i].node, t[i].service, &t[i].hints, &res), t[i].err);
		CU_ASSERT_PTR_NULL(res);
	}
}

static void errors__minus_one_has_an_errno(void)
{
	struct sockaddr_in dst = {.sin_family = AF_INET};
	struct sockaddr_in6 dst6 = {.sin6_family = AF_INET6};
	struct sockaddr unix_addr = {.sa_family = AF_UNIX};
	const struct rdma_addrinfo bad[] = {
		{.ai_dst_addr = (struct sockaddr *)&dst, .ai_dst_len = 1},
		{.ai_dst_addr = (struct sockaddr *)&dst, .ai_dst_len = sizeof(dst) - 1},
		{.ai_src_addr = (struct sockaddr *)&dst6, .ai_src_len = sizeof(dst)},
		{.ai_dst_addr = NULL, .ai_dst_len = sizeof(dst)},
		{.ai_src_addr = NULL, .ai_src_len = 1},
		{.ai_flags = 0x100},
	};
	struct rdma_addrinfo no_family = {.ai_dst_addr = &unix_addr, .ai_dst_len = sizeof(unix_addr)}, *res;

	for (unsigned i = 0; i < ur_array_size(bad); i++) {
		errno = 0;
		CU_ASSERT_EQUAL(lookup(NULL, NULL, &bad[i], &res), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
		errno = 0;
		CU_ASSERT_EQUAL(lookup("192.0.2.7", NULL, &bad[i], &res), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
	}
	errno = 0;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, NULL, &res), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_getaddrinfo("192.0.2.7", NULL, NULL, NULL), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &no_family, &res), EAI_FAMILY);
	rdma_freeaddrinfo(NULL);
}

/* --- QP types and port spaces --- */

static void kinds__what_belongs_together(void)
{
	static const struct {
		int qp, ps, got_qp, got_ps, socktype, protocol; /* got_qp 0: EAI_SOCKTYPE */
	} t[] = {
		{0, 0, IBV_QPT_RC, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_RC, 0, IBV_QPT_RC, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP, SOCK_DGRAM, IPPROTO_UDP},
		{IBV_QPT_UC, 0, IBV_QPT_UC, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_XRC_SEND, 0, IBV_QPT_XRC_SEND, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_XRC_RECV, 0, IBV_QPT_XRC_RECV, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
		{0, RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
		{0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP, SOCK_DGRAM, IPPROTO_UDP},
		{0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB, SOCK_DGRAM, IPPROTO_UDP},
		{0, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB, SOCK_DGRAM, IPPROTO_UDP},
		{IBV_QPT_UC, RDMA_PS_IB, IBV_QPT_UC, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_XRC_SEND, RDMA_PS_IB, IBV_QPT_XRC_SEND, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_XRC_RECV, RDMA_PS_IB, IBV_QPT_XRC_RECV, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
		{IBV_QPT_UD, RDMA_PS_TCP, 0, 0, 0, 0},
		{IBV_QPT_RC, RDMA_PS_UDP, 0, 0, 0, 0},
		{IBV_QPT_UC, RDMA_PS_TCP, 0, 0, 0, 0},
		{IBV_QPT_XRC_SEND, RDMA_PS_IPOIB, 0, 0, 0, 0},
		{IBV_QPT_RAW_PACKET, 0, 0, 0, 0, 0},
		{77, 0, 0, 0, 0, 0},
		{0, 0x77, 0, 0, 0, 0},
		{-1, -1, 0, 0, 0, 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct rdma_addrinfo hints = {.ai_qp_type = t[i].qp, .ai_port_space = t[i].ps}, *res;

		CU_ASSERT_EQUAL(lookup("192.0.2.7", "7", &hints, &res), t[i].got_qp ? 0 : EAI_SOCKTYPE);
		CU_ASSERT_EQUAL(resolver.asked.ai_socktype, t[i].socktype);
		CU_ASSERT_EQUAL(resolver.asked.ai_protocol, t[i].protocol);
		if (!res)
			continue;
		CU_ASSERT_EQUAL(res->ai_qp_type, t[i].got_qp);
		CU_ASSERT_EQUAL(res->ai_port_space, t[i].got_ps);
		rdma_freeaddrinfo(res);
	}
}

/* --- nodes and services --- */

static void node__active_side(void)
{
	struct rdma_addrinfo *res = found("192.0.2.7", "7174", (struct rdma_addrinfo){0});

	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "192.0.2.7", 7174));
	CU_ASSERT_EQUAL(res->ai_family, AF_INET);
	CU_ASSERT_EQUAL(res->ai_flags, 0);
	CU_ASSERT_EQUAL(res->ai_src_len, 0); /* no route goes there */
	CU_ASSERT_PTR_NULL(res->ai_src_addr);
	CU_ASSERT_EQUAL(res->ai_route_len, 0);
	CU_ASSERT_PTR_NULL(res->ai_route);
	CU_ASSERT_EQUAL(res->ai_connect_len, 0);
	CU_ASSERT_PTR_NULL(res->ai_connect);
	CU_ASSERT_PTR_NULL(res->ai_next);
	rdma_freeaddrinfo(res);
	CU_ASSERT_EQUAL(lookup("2001:db8::7", NULL, NULL, &res), 0);
	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "2001:db8::7", 0));
	CU_ASSERT_EQUAL(res->ai_family, AF_INET6);
	rdma_freeaddrinfo(res);
}

static void node__passive_side(void)
{
	struct rdma_addrinfo *res = found("10.0.0.1", "7174", (struct rdma_addrinfo){.ai_flags = RAI_PASSIVE});

	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "10.0.0.1", 7174));
	CU_ASSERT_EQUAL(res->ai_dst_len, 0);
	CU_ASSERT_PTR_NULL(res->ai_dst_addr);
	CU_ASSERT_EQUAL(res->ai_flags, RAI_PASSIVE);
	CU_ASSERT_TRUE(resolver.asked.ai_flags & AI_PASSIVE);
	rdma_freeaddrinfo(res);
	res = found(NULL, "7174", (struct rdma_addrinfo){.ai_flags = RAI_PASSIVE | RAI_FAMILY, .ai_family = AF_INET6});
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "::", 7174));
	rdma_freeaddrinfo(res);
}

/* Without RAI_PASSIVE no node is this host. */
static void node__service_alone(void)
{
	struct rdma_addrinfo *res = found(NULL, "7174", (struct rdma_addrinfo){.ai_flags = RAI_FAMILY, .ai_family = AF_INET});

	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "127.0.0.1", 7174));
	CU_ASSERT_EQUAL(res->ai_src_len, 0);
	CU_ASSERT_PTR_NULL(res->ai_dst_canonname);
	rdma_freeaddrinfo(res);
}

static void node__flags_reach_the_resolver(void)
{
	struct rdma_addrinfo *res;

	rdma_freeaddrinfo(found("10.0.0.9", NULL, (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST}));
	CU_ASSERT_EQUAL(resolver.asked.ai_flags & (AI_NUMERICHOST | AI_PASSIVE), AI_NUMERICHOST);
	CU_ASSERT_EQUAL(resolver.asked.ai_family, AF_UNSPEC);
	rdma_freeaddrinfo(found("fd00::9", NULL, (struct rdma_addrinfo){.ai_flags = RAI_FAMILY, .ai_family = AF_INET6}));
	CU_ASSERT_EQUAL(resolver.asked.ai_family, AF_INET6);
	/* librdmacm does not insist on the flag when a family is given */
	rdma_freeaddrinfo(found("fd00::9", NULL, (struct rdma_addrinfo){.ai_family = AF_INET6}));
	CU_ASSERT_EQUAL(resolver.asked.ai_family, AF_INET6);
	CU_ASSERT_EQUAL(lookup("fd00::9", NULL, &(struct rdma_addrinfo){.ai_family = AF_INET}, &res), EAI_ADDRFAMILY);
}

static void node__every_result_is_listed(void)
{
	struct addrinfo third = {.ai_addr = sa("192.0.2.3", 5), .ai_addrlen = sizeof(struct sockaddr_in)};
	struct addrinfo second = {.ai_addr = sa("fd00::2", 5), .ai_addrlen = sizeof(struct sockaddr_in6), .ai_next = &third};
	struct addrinfo first = {.ai_addr = sa("10.0.0.77", 5), .ai_addrlen = sizeof(struct sockaddr_in), .ai_next = &second,
				 .ai_canonname = "canon.example"};
	struct rdma_addrinfo *res, *r;

	memset(&resolver, 0, sizeof(resolver));
	resolver.list = &first;
	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("host.example", "5", NULL, &res), 0);
	CU_ASSERT_EQUAL(resolver.freed, 1);
	resolver.list = NULL;
	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "10.0.0.77", 5));
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "10.0.0.1", 0));
	CU_ASSERT_STRING_EQUAL(res->ai_dst_canonname, "canon.example");
	r = res->ai_next;
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->ai_family, AF_INET6);
	CU_ASSERT_TRUE(is_addr(r->ai_dst_addr, r->ai_dst_len, "fd00::2", 5));
	CU_ASSERT_TRUE(is_addr(r->ai_src_addr, r->ai_src_len, "fd00::1", 0));
	r = r->ai_next;
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_TRUE(is_addr(r->ai_dst_addr, r->ai_dst_len, "192.0.2.3", 5));
	CU_ASSERT_EQUAL(r->ai_src_len, 0);
	CU_ASSERT_PTR_NULL(r->ai_next);
	rdma_freeaddrinfo(res);
}

static void node__canonical_names(void)
{
	struct rdma_addrinfo *res = found("10.0.0.9", NULL, (struct rdma_addrinfo){0});

	CU_ASSERT_STRING_EQUAL(res->ai_dst_canonname, "10.0.0.9");
	CU_ASSERT_PTR_NULL(res->ai_src_canonname);
	rdma_freeaddrinfo(res);
	res = found("10.0.0.1", NULL, (struct rdma_addrinfo){.ai_flags = RAI_PASSIVE});
	CU_ASSERT_STRING_EQUAL(res->ai_src_canonname, "10.0.0.1");
	CU_ASSERT_PTR_NULL(res->ai_dst_canonname);
	rdma_freeaddrinfo(res);
}

/* --- source addresses --- */

static void source__of_the_local_route(void)
{
	static const struct {
		const char *dst;
		int flags;
		const char *src;
	} t[] = {
		{"10.0.0.9", 0, "10.0.0.1"},	      {"fd00::9", 0, "fd00::1"},      {"10.0.0.1", 0, "10.0.0.1"},
		{"10.0.0.9", RAI_NOROUTE, NULL},      {"203.0.113.1", 0, NULL},	      {"2001:db8::1", 0, NULL},
		{"127.0.0.1", 0, NULL},		      {"0.0.0.0", 0, NULL},	      {"10.0.0.9", RAI_NUMERICHOST, "10.0.0.1"},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct rdma_addrinfo *res = found(t[i].dst, "9", (struct rdma_addrinfo){.ai_flags = t[i].flags});

		if (t[i].src)
			CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, t[i].src, 0));
		if (!t[i].src)
			CU_ASSERT_TRUE(!res->ai_src_addr && !res->ai_src_len);
		rdma_freeaddrinfo(res);
	}
}

static void source__of_the_hints(void)
{
	struct rdma_addrinfo hints = {.ai_src_addr = sa("192.0.2.1", 5), .ai_src_len = sizeof(struct sockaddr_in)}, *res;

	res = found("10.0.0.9", "1", hints);
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "192.0.2.1", 5));
	CU_ASSERT_PTR_NOT_EQUAL(res->ai_src_addr, hints.ai_src_addr);
	CU_ASSERT_EQUAL(resolver.asked.ai_family, AF_INET); /* what does not go with it is of no use */
	rdma_freeaddrinfo(res);
	CU_ASSERT_EQUAL(lookup("2001:db8::1", "1", &hints, &res), EAI_ADDRFAMILY);
	hints.ai_flags = RAI_PASSIVE; /* where the node is the source */
	res = found("10.0.0.1", "1", hints);
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "10.0.0.1", 1));
	rdma_freeaddrinfo(res);
}

/* --- hints alone --- */

static void hints__addresses(void)
{
	struct rdma_addrinfo dst = {.ai_dst_addr = sa("10.0.0.9", 9), .ai_dst_len = sizeof(struct sockaddr_in)};
	struct rdma_addrinfo src = {.ai_src_addr = sa("fd00::1", 8), .ai_src_len = sizeof(struct sockaddr_in6)}, *res;

	res = found(NULL, NULL, dst);
	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "10.0.0.9", 9));
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "10.0.0.1", 0));
	CU_ASSERT_EQUAL(res->ai_family, AF_INET);
	CU_ASSERT_EQUAL(resolver.asked_n, 0);
	rdma_freeaddrinfo(res);
	res = found(NULL, NULL, src);
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "fd00::1", 8));
	CU_ASSERT_EQUAL(res->ai_dst_len, 0);
	CU_ASSERT_EQUAL(res->ai_family, AF_INET6);
	rdma_freeaddrinfo(res);
	src.ai_flags = RAI_PASSIVE;
	res = found(NULL, NULL, src);
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "fd00::1", 8));
	rdma_freeaddrinfo(res);
	dst.ai_flags = RAI_PASSIVE;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &dst, &res), EAI_NONAME); /* a destination is not what a listener binds to */
	dst.ai_flags = RAI_FAMILY;
	dst.ai_family = AF_INET6;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &dst, &res), EAI_ADDRFAMILY);
	dst.ai_family = AF_INET;
	dst.ai_src_addr = src.ai_src_addr;
	dst.ai_src_len = src.ai_src_len;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &dst, &res), EAI_ADDRFAMILY);
}

static void hints__routes(void)
{
	struct ibv_path_record rec = {.service_id = htobe64(RDMA_IB_IP_PS_TCP | 7174)};
	struct ibv_path_data data = {.flags = IBV_PATH_FLAG_PRIMARY}, two[2];
	struct rdma_addrinfo hints = {.ai_route = &rec, .ai_route_len = sizeof(rec)}, *res;

	memcpy(rec.dgid.raw, ur_gid_from_v4(htonl(0x0a000009)).raw, 16);
	res = found(NULL, NULL, hints);
	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "10.0.0.9", 7174));
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "10.0.0.1", 0));
	CU_ASSERT_EQUAL(res->ai_route_len, 0); /* RoCE does not require it */
	rdma_freeaddrinfo(res);
	data.path = rec;
	inet_pton(AF_INET6, "fd00::9", data.path.dgid.raw);
	inet_pton(AF_INET6, "fd00::5", data.path.sgid.raw);
	two[0] = two[1] = data;
	hints.ai_route = two;
	hints.ai_route_len = sizeof(two);
	res = found(NULL, NULL, hints);
	CU_ASSERT_TRUE(is_addr(res->ai_dst_addr, res->ai_dst_len, "fd00::9", 7174));
	CU_ASSERT_TRUE(is_addr(res->ai_src_addr, res->ai_src_len, "fd00::5", 0));
	rdma_freeaddrinfo(res);
	hints.ai_route_len = 40;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &hints, &res), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	memset(two, 0, sizeof(two)); /* of nobody */
	hints.ai_route_len = sizeof(two);
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &hints, &res), -1);
	hints.ai_route = NULL;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &hints, &res), -1);
}

/* --- AF_IB --- */

static void check_ib(const struct sockaddr *addr, socklen_t len, const char *gid, uint64_t sid, uint64_t mask)
{
	const struct sockaddr_ib *ib = (const void *)addr;
	struct ur_gid want;

	inet_pton(AF_INET6, gid, want.raw);
	CU_ASSERT_EQUAL_FATAL(len, sizeof(*ib));
	CU_ASSERT_EQUAL(ib->sib_family, AF_IB);
	CU_ASSERT_EQUAL(ib->sib_pkey, htons(0xffff));
	CU_ASSERT_EQUAL(memcmp(&ib->sib_addr, want.raw, 16), 0);
	CU_ASSERT_EQUAL(be64toh(ib->sib_sid), sid);
	CU_ASSERT_EQUAL(be64toh(ib->sib_sid_mask), mask);
}

static void ib__results(void)
{
	const uint64_t whole = ~0ull, space = RDMA_IB_IP_PS_MASK;
	struct rdma_addrinfo hints = {.ai_flags = RAI_FAMILY | RAI_NUMERICHOST, .ai_family = AF_IB}, *res;

	res = found("fd00::9", "5", hints);
	CU_ASSERT_EQUAL(res->ai_family, AF_IB);
	CU_ASSERT_EQUAL(res->ai_qp_type, IBV_QPT_RC);
	check_ib(res->ai_dst_addr, res->ai_dst_len, "fd00::9", 0x01060005, whole);
	check_ib(res->ai_src_addr, res->ai_src_len, "fd00::1", 0x01060000, space);
	rdma_freeaddrinfo(res);
	hints.ai_port_space = RDMA_PS_IB;
	hints.ai_qp_type = IBV_QPT_UC;
	hints.ai_flags = RAI_FAMILY; /* names are good as well */
	res = found("10.0.0.9", NULL, hints);
	check_ib(res->ai_dst_addr, res->ai_dst_len, "::ffff:10.0.0.9", 0x013f0000, space);
	rdma_freeaddrinfo(res);
	hints.ai_flags |= RAI_PASSIVE;
	res = found(NULL, "6", hints);
	check_ib(res->ai_src_addr, res->ai_src_len, "::", 0x013f0006, whole);
	CU_ASSERT_EQUAL(res->ai_dst_len, 0);
	CU_ASSERT_PTR_NULL(res->ai_next); /* one wildcard */
	rdma_freeaddrinfo(res);
}

static void ib__hints(void)
{
	struct sockaddr_storage ss;
	struct rdma_addrinfo hints = {.ai_dst_addr = (struct sockaddr *)&ss, .ai_dst_len = sizeof(struct sockaddr_ib), .ai_family = AF_IB};
	struct rdma_addrinfo *res;
	struct ur_gid gid = ur_gid_from_v4(htonl(0x0a000009));

	ur_sa_put_ib(&ss, &gid, 0x123456789abcull, ~0ull, 0xffff);
	res = found(NULL, NULL, hints);
	CU_ASSERT_EQUAL(res->ai_family, AF_IB);
	check_ib(res->ai_dst_addr, res->ai_dst_len, "::ffff:10.0.0.9", 0x123456789abcull, ~0ull); /* as it was */
	check_ib(res->ai_src_addr, res->ai_src_len, "::ffff:10.0.0.1", 0x01060000, RDMA_IB_IP_PS_MASK);
	rdma_freeaddrinfo(res);
	hints.ai_dst_len--;
	CU_ASSERT_EQUAL(lookup(NULL, NULL, &hints, &res), -1);
	hints.ai_dst_len = 0; /* an AF_IB source makes all of it AF_IB */
	hints.ai_family = 0;
	hints.ai_src_addr = (struct sockaddr *)&ss;
	hints.ai_src_len = sizeof(struct sockaddr_ib);
	res = found("10.0.0.7", "3", hints);
	check_ib(res->ai_dst_addr, res->ai_dst_len, "::ffff:10.0.0.7", 0x01060003, ~0ull);
	check_ib(res->ai_src_addr, res->ai_src_len, "::ffff:10.0.0.9", 0x123456789abcull, ~0ull);
	rdma_freeaddrinfo(res);
}

void ur_suite_rdmacm_addrinfo(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_addrinfo", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, errors__of_the_resolver_are_passed_on);
	CU_ADD_TEST(s, errors__at_their_causes);
	CU_ADD_TEST(s, errors__minus_one_has_an_errno);
	CU_ADD_TEST(s, kinds__what_belongs_together);
	CU_ADD_TEST(s, node__active_side);
	CU_ADD_TEST(s, node__passive_side);
	CU_ADD_TEST(s, node__service_alone);
	CU_ADD_TEST(s, node__flags_reach_the_resolver);
	CU_ADD_TEST(s, node__every_result_is_listed);
	CU_ADD_TEST(s, node__canonical_names);
	CU_ADD_TEST(s, source__of_the_local_route);
	CU_ADD_TEST(s, source__of_the_hints);
	CU_ADD_TEST(s, hints__addresses);
	CU_ADD_TEST(s, hints__routes);
	CU_ADD_TEST(s, ib__results);
	CU_ADD_TEST(s, ib__hints);
}
