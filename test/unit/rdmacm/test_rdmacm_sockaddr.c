/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/rdmacm: socket addresses as GIDs. */
#define _GNU_SOURCE
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "rdmacm/internal.h"

void ur_suite_rdmacm_sockaddr(void);

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

void ur_suite_rdmacm_sockaddr(void)
{
	CU_pSuite s = CU_add_suite("rdmacm_sockaddr", NULL, NULL);

	CU_add_test(s, "sockaddr__round_trip", sockaddr__round_trip);
	CU_add_test(s, "sockaddr__special_addresses", sockaddr__special_addresses);
}
