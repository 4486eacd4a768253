/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: rdma_getaddrinfo(3), and addresses as GIDs. */
#define _GNU_SOURCE
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "rdmacm/rdmacm_priv.h"

void ur_suite_rdmacm_getaddrinfo(void);

/* --- rdma_getaddrinfo --- */

static uint16_t port_of(const struct sockaddr *sa)
{
	struct ur_gid gid;
	uint16_t port = 0;

	CU_ASSERT_TRUE(ur_sa_gid(sa, &gid, &port));
	return port;
}

static void getaddrinfo__active_side_has_a_destination(void)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *res = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("192.0.2.7", "7174", &hints, &res), 0);
	CU_ASSERT_EQUAL(res->ai_family, AF_INET);
	CU_ASSERT_EQUAL(res->ai_qp_type, IBV_QPT_RC);
	CU_ASSERT_EQUAL(res->ai_port_space, RDMA_PS_TCP);
	CU_ASSERT_EQUAL(res->ai_dst_len, sizeof(struct sockaddr_in));
	CU_ASSERT_EQUAL(port_of(res->ai_dst_addr), 7174);
	CU_ASSERT_PTR_NULL(res->ai_src_addr);
	CU_ASSERT_EQUAL(res->ai_src_len, 0);
	CU_ASSERT_EQUAL(res->ai_route_len, 0);
	CU_ASSERT_PTR_NULL(res->ai_next);
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__passive_side_has_a_source(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST, .ai_qp_type = IBV_QPT_UD}, *res = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("2001:db8::1", "80", &hints, &res), 0);
	CU_ASSERT_EQUAL(res->ai_flags, RAI_PASSIVE | RAI_NUMERICHOST);
	CU_ASSERT_EQUAL(res->ai_family, AF_INET6);
	CU_ASSERT_EQUAL(res->ai_port_space, RDMA_PS_UDP);
	CU_ASSERT_EQUAL(res->ai_src_len, sizeof(struct sockaddr_in6));
	CU_ASSERT_EQUAL(port_of(res->ai_src_addr), 80);
	CU_ASSERT_PTR_NULL(res->ai_dst_addr);
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__no_node_is_the_wildcard(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_FAMILY, .ai_family = AF_INET}, *res = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	CU_ASSERT_EQUAL(((struct sockaddr_in *)(void *)res->ai_src_addr)->sin_addr.s_addr, INADDR_ANY);
	CU_ASSERT_EQUAL(port_of(res->ai_src_addr), 7471);
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__source_hint_is_copied(void)
{
	struct sockaddr_in src = {.sin_family = AF_INET, .sin_port = htons(5), .sin_addr.s_addr = htonl(0xc0000201)};
	struct rdma_addrinfo hints = {.ai_src_addr = (struct sockaddr *)&src, .ai_src_len = sizeof(src)}, *res = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("192.0.2.7", "1", &hints, &res), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(res->ai_src_addr);
	CU_ASSERT_PTR_NOT_EQUAL(res->ai_src_addr, hints.ai_src_addr);
	CU_ASSERT_EQUAL(memcmp(res->ai_src_addr, &src, sizeof(src)), 0);
	rdma_freeaddrinfo(res);
	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo("2001:db8::1", "1", &hints, &res), 0);
	CU_ASSERT_PTR_NULL(res->ai_src_addr); /* of another family */
	rdma_freeaddrinfo(res);
}

static void getaddrinfo__hints_alone(void)
{
	struct sockaddr_in dst = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000202)};
	struct rdma_addrinfo hints = {.ai_dst_addr = (struct sockaddr *)&dst, .ai_dst_len = sizeof(dst)}, *res = NULL;

	CU_ASSERT_EQUAL_FATAL(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	CU_ASSERT_EQUAL(memcmp(res->ai_dst_addr, &dst, sizeof(dst)), 0);
	CU_ASSERT_EQUAL(res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
	hints.ai_dst_len = 4; /* shorter than its family's */
	CU_ASSERT_EQUAL(rdma_getaddrinfo(NULL, NULL, &hints, &res), EAI_FAMILY);
}

static void getaddrinfo__errors(void)
{
	static const struct {
		const char *node;
		struct rdma_addrinfo hints;
		int err;
	} cases[] = {
		{"not-a-number", {.ai_flags = RAI_NUMERICHOST}, EAI_NONAME},
		{"192.0.2.7", {.ai_flags = 0x100}, EAI_BADFLAGS},
		{"192.0.2.7", {.ai_flags = RAI_FAMILY, .ai_family = AF_UNIX}, EAI_FAMILY},
		{"192.0.2.7", {.ai_qp_type = IBV_QPT_UD, .ai_port_space = RDMA_PS_TCP}, EAI_SOCKTYPE},
		{"192.0.2.7", {.ai_qp_type = IBV_QPT_RC, .ai_port_space = RDMA_PS_UDP}, EAI_SOCKTYPE},
		{"192.0.2.7", {.ai_port_space = 0x999}, EAI_SOCKTYPE},
		{"192.0.2.7", {.ai_flags = RAI_FAMILY | RAI_NUMERICHOST, .ai_family = AF_INET6}, EAI_ADDRFAMILY},
		{NULL, {.ai_flags = 0}, EAI_NONAME},
	};
	struct rdma_addrinfo *res;

	for (unsigned i = 0; i < ur_array_size(cases); i++)
		CU_ASSERT_EQUAL(rdma_getaddrinfo(cases[i].node, NULL, &cases[i].hints, &res), cases[i].err);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_getaddrinfo("192.0.2.7", NULL, NULL, NULL), -1);
	rdma_freeaddrinfo(NULL);
}

/* --- socket addresses --- */

static void sockaddr__round_trip(void)
{
	static const char *const texts[] = {"10.1.2.3", "255.255.255.255", "2001:db8::42", "fe80::1", "::1"};

	for (unsigned i = 0; i < ur_array_size(texts); i++) {
		struct sockaddr_storage ss;
		struct ur_gid gid, again;
		struct in_addr v4;
		uint16_t port;
		bool is_v4 = inet_pton(AF_INET, texts[i], &v4) == 1;

		if (is_v4) {
			memset(gid.raw, 0, 10);
			memset(gid.raw + 10, 0xff, 2);
			memcpy(gid.raw + 12, &v4, 4);
		} else {
			CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, texts[i], gid.raw), 1);
		}
		ur_sa_put(&ss, &gid, 1234);
		CU_ASSERT_EQUAL(ss.ss_family, is_v4 ? AF_INET : AF_INET6);
		ur_sa_set_port(&ss, 4321);
		CU_ASSERT_TRUE(ur_sa_gid((struct sockaddr *)&ss, &again, &port));
		CU_ASSERT_EQUAL(memcmp(&gid, &again, sizeof(gid)), 0);
		CU_ASSERT_EQUAL(port, 4321);
		CU_ASSERT_FALSE(ur_gid_any(&gid));
	}
}

static void sockaddr__special_addresses(void)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct ur_gid gid;
	uint16_t port;

	CU_ASSERT_TRUE(ur_sa_gid((struct sockaddr *)&v4, &gid, &port) && ur_gid_any(&gid) && !ur_gid_loopback(&gid));
	v4.sin_addr.s_addr = htonl(0x7f010203);
	CU_ASSERT_TRUE(ur_sa_gid((struct sockaddr *)&v4, &gid, &port) && ur_gid_loopback(&gid) && !ur_gid_any(&gid));
	CU_ASSERT_TRUE(ur_sa_gid((struct sockaddr *)&v6, &gid, &port) && ur_gid_any(&gid) && !ur_gid_loopback(&gid));
	v6.sin6_addr = in6addr_loopback;
	CU_ASSERT_TRUE(ur_sa_gid((struct sockaddr *)&v6, &gid, &port) && ur_gid_loopback(&gid) && !ur_gid_any(&gid));
	CU_ASSERT_FALSE(ur_sa_gid(&other, &gid, &port));
	CU_ASSERT_EQUAL(ur_sa_len(AF_UNIX), 0);
}

void ur_suite_rdmacm_getaddrinfo(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_getaddrinfo", NULL, NULL);

	CU_add_test(s, "getaddrinfo__active_side_has_a_destination", getaddrinfo__active_side_has_a_destination);
	CU_add_test(s, "getaddrinfo__passive_side_has_a_source", getaddrinfo__passive_side_has_a_source);
	CU_add_test(s, "getaddrinfo__no_node_is_the_wildcard", getaddrinfo__no_node_is_the_wildcard);
	CU_add_test(s, "getaddrinfo__source_hint_is_copied", getaddrinfo__source_hint_is_copied);
	CU_add_test(s, "getaddrinfo__hints_alone", getaddrinfo__hints_alone);
	CU_add_test(s, "getaddrinfo__errors", getaddrinfo__errors);
	CU_add_test(s, "sockaddr__round_trip", sockaddr__round_trip);
	CU_add_test(s, "sockaddr__special_addresses", sockaddr__special_addresses);
}
