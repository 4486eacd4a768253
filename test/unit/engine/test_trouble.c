/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/engine/trouble.c: the sentence about a connection that fails, and when it is said. */
#include <CUnit/Basic.h>
#include <string.h>

#include "engine/trouble.h"

#define SERVICE 0x01061c06ull /* TCP port space, port 7174 */
#define DOCTOR "; 'uroce doctor --dev eth0 10.0.0.9' finds out more"

static const struct ur_gid peer = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9}};

static const struct {
	struct ur_cm_trouble t;
	const char *text;
} sentences[] = {
	{{.waited = 5 * UR_NS_PER_S}, "10.0.0.9 has not answered for 5 s, and will be asked again for about a minute" DOCTOR},
	{{.over = true, .waited = 78 * UR_NS_PER_S},
	 "no connection to 10.0.0.9: nothing came back in 78 s: it is down, or a firewall or cloud security group drops UDP port "
	 "4791" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_PATIENCE, .service_id = SERVICE, .waited = 90 * UR_NS_PER_S},
	 "no connection to 10.0.0.9: it asked for more time (MRA), and did not answer in 90 s: its program on port 7174 is stopped or "
	 "busy" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_NO_NEIGHBOUR},
	 "no connection to 10.0.0.9: no host has this address, or the router to it is down: ARP or neighbour discovery gets no "
	 "answer" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_ICMP, .from.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9}, .why = UR_ICMP_NO_PORT},
	 "no connection to 10.0.0.9: it reports by ICMP that UDP port 4791 is closed: no RoCE program runs there, or a firewall rejects "
	 "it" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_ICMP, .from.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}, .why = UR_ICMP_PROHIBITED},
	 "no connection to 10.0.0.9: 10.0.0.1 reports by ICMP that a firewall prohibits it" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_ICMP, .why = UR_ICMP_NO_WAY},
	 "no connection to 10.0.0.9: a host that is not known reports by ICMP that 10.0.0.9 cannot be reached" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_REJ, .service_id = SERVICE, .reason = UR_CM_REJ_INVALID_SERVICE_ID},
	 "no connection to 10.0.0.9: it refuses (REJ 8): nobody listens there on port 7174" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_REJ, .reason = UR_CM_REJ_INVALID_MTU, .mtu = 5, .peer_mtu = 3},
	 "no connection to 10.0.0.9: it refuses (REJ 26) because the path MTU differs: here 4096, there at most 1024; give both interfaces "
	 "the same MTU, at least 4192 for 4096" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_REJ, .reason = UR_CM_REJ_INVALID_MTU, .mtu = 3},
	 "no connection to 10.0.0.9: it refuses (REJ 26) because the path MTU differs: here 1024, there it is smaller; give both "
	 "interfaces "
	 "the same MTU, at least 1120 for 1024" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_REJ, .reason = 0xffff},
	 "no connection to 10.0.0.9: it refuses (REJ 65535): for a reason without a name" DOCTOR},
	{{.over = true, .seen = UR_CM_SEEN_SIDR_STATUS, .service_id = SERVICE, .reason = UR_CM_SIDR_UNSUPPORTED},
	 "no connection to 10.0.0.9: it refuses (SIDR status 1): no datagram service listens there on port 7174" DOCTOR},
};

static void trouble__sentences(void)
{
	char text[UR_TROUBLE_TEXT];

	for (unsigned i = 0; i < ur_array_size(sentences); i++) {
		struct ur_cm_trouble t = sentences[i].t;

		t.dgid = peer;
		CU_ASSERT_STRING_EQUAL(ur_trouble_text(&t, "eth0", text), sentences[i].text);
		CU_ASSERT_PTR_NULL(strstr(ur_trouble_text(&t, NULL, text), "doctor"));
	}
}

static void trouble__link_local(void)
{
	const struct ur_cm_trouble t = {.dgid = {.raw = {0xfe, 0x80, [15] = 1}}, .over = true};
	char text[UR_TROUBLE_TEXT];

	CU_ASSERT_PTR_NOT_NULL(strstr(ur_trouble_text(&t, "eth0", text), "'uroce doctor --dev eth0 fe80::1%eth0'"));
}

/* Each thing once for each destination, and for no more destinations than a human would read of. */
static void trouble__once(void)
{
	struct ur_cm_trouble t = {.dgid = peer};
	struct ur_troubles s = {0};

	CU_ASSERT_FALSE(ur_trouble_is_new(&s, UR_TROUBLE_QUIET, &t));
	for (unsigned reason = 0; reason < 100000; reason += reason < 60 ? 1 : 997) {
		t = (struct ur_cm_trouble){.dgid = peer, .over = true, .seen = UR_CM_SEEN_REJ, .reason = (uint16_t)reason};
		CU_ASSERT_EQUAL(ur_trouble_is_new(&s, UR_TROUBLE_ALL, &t), reason < 40);
		CU_ASSERT_FALSE(ur_trouble_is_new(&s, UR_TROUBLE_ALL, &t));
	}
	for (unsigned i = 0; i < ur_array_size(sentences); i++) {
		bool rej = sentences[i].t.seen == UR_CM_SEEN_REJ;

		t = sentences[i].t;
		t.dgid = peer;
		CU_ASSERT_EQUAL(ur_trouble_is_new(&s, UR_TROUBLE_FAILURES, &t), !rej);
		CU_ASSERT_FALSE(ur_trouble_is_new(&s, UR_TROUBLE_FAILURES, &t));
	}
	for (unsigned i = 1; i < 2 * UR_TROUBLE_PEERS; i++) {
		t = (struct ur_cm_trouble){.dgid = {.raw = {[15] = (uint8_t)i}}};
		CU_ASSERT_EQUAL(ur_trouble_is_new(&s, UR_TROUBLE_FAILURES, &t), i < UR_TROUBLE_PEERS);
	}
}

/* A program's own rejections are its way of working. */
static void trouble__of_programs(void)
{
	const struct ur_cm_trouble rej = {.dgid = peer, .over = true, .seen = UR_CM_SEEN_REJ, .reason = UR_CM_REJ_CONSUMER_DEFINED};
	const struct ur_cm_trouble sidr = {.dgid = peer, .over = true, .seen = UR_CM_SEEN_SIDR_STATUS, .reason = UR_CM_SIDR_REJECT};
	struct ur_troubles s = {0};

	CU_ASSERT_FALSE(ur_trouble_is_new(&s, UR_TROUBLE_FAILURES, &rej));
	CU_ASSERT_FALSE(ur_trouble_is_new(&s, UR_TROUBLE_FAILURES, &sidr));
	CU_ASSERT_TRUE(ur_trouble_is_new(&s, UR_TROUBLE_ALL, &rej));
	CU_ASSERT_TRUE(ur_trouble_is_new(&s, UR_TROUBLE_ALL, &sidr));
}

void ur_suite_trouble(void);
void ur_suite_trouble(void)
{
	CU_pSuite s = CU_add_suite("trouble", NULL, NULL);

	CU_ADD_TEST(s, trouble__sentences);
	CU_ADD_TEST(s, trouble__link_local);
	CU_ADD_TEST(s, trouble__once);
	CU_ADD_TEST(s, trouble__of_programs);
}
