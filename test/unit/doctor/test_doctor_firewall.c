/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/doctor/firewall.c: rules as nft 1.0.6 prints them, one for each row, and what becomes of a packet to UDP port 4791. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/firewall.h"

void ur_suite_doctor_firewall(void);

#define HEAD                                                                                                                               \
	"{\"nftables\":[{\"metainfo\":{\"version\":\"1.0.6\",\"json_schema_version\":1}},{\"table\":{\"family\":\"inet\",\"name\":\"t\","  \
	"\"handle\":1}},"
#define TAIL "]}"
#define CHAIN(name, more) "{\"chain\":{\"family\":\"inet\",\"table\":\"t\",\"name\":\"" name "\",\"handle\":1" more "}}"
#define INPUT(policy) CHAIN("in", ",\"type\":\"filter\",\"hook\":\"input\",\"prio\":0,\"policy\":\"" policy "\"")
#define OUTPUT(policy) CHAIN("out", ",\"type\":\"filter\",\"hook\":\"output\",\"prio\":0,\"policy\":\"" policy "\"")
#define RULE(chain, expr) ",{\"rule\":{\"family\":\"inet\",\"table\":\"t\",\"chain\":\"" chain "\",\"handle\":7,\"expr\":[" expr "]}}"
#define MATCH(op, left, right) "{\"match\":{\"op\":\"" op "\",\"left\":" left ",\"right\":" right "}},"
#define UDP "{\"payload\":{\"protocol\":\"udp\",\"field\":\"dport\"}}"
#define TCP "{\"payload\":{\"protocol\":\"tcp\",\"field\":\"dport\"}}"
#define TH "{\"payload\":{\"protocol\":\"th\",\"field\":\"dport\"}}"
#define SADDR "{\"payload\":{\"protocol\":\"ip\",\"field\":\"saddr\"}}"
#define SADDR6 "{\"payload\":{\"protocol\":\"ip6\",\"field\":\"saddr\"}}"
#define META(key) "{\"meta\":{\"key\":\"" key "\"}}"
#define STATE "{\"ct\":{\"key\":\"state\"}}"
#define DROP "{\"drop\":null}"
#define ACCEPT "{\"accept\":null}"
#define ON_4791(verdict) MATCH("==", UDP, "4791") verdict
#define IN(expr) HEAD INPUT("accept") RULE("in", expr) TAIL
#define SUB(expr, rest) HEAD INPUT("accept") "," CHAIN("sub", "") RULE("sub", expr) rest TAIL
#define SET(elements)                                                                                                                      \
	",{\"set\":{\"family\":\"inet\",\"name\":\"s\",\"table\":\"t\",\"type\":\"ipv4_addr\",\"handle\":3,\"elem\":[" elements "]}}"
#define IN_SET(elements) HEAD INPUT("accept") SET(elements) RULE("in", MATCH("==", SADDR, "\"@s\"") DROP) TAIL

#define PASSES UR_FIREWALL_PASSES
#define MAY UR_FIREWALL_MAY_DROP
#define DROPS UR_FIREWALL_DROPS
#define UNKNOWN UR_FIREWALL_UNKNOWN

/* The packet: on eth0, IPv4, the peer 192.0.2.7. */
static const struct {
	const char *what, *json;
	enum ur_firewall_verdict verdict;
} rows[] = {
	{"no rules", HEAD INPUT("accept") TAIL, PASSES},
	{"policy", HEAD INPUT("drop") TAIL, DROPS},
	{"policy of output", HEAD OUTPUT("drop") TAIL, DROPS},
	{"forward is not ours", HEAD CHAIN("f", ",\"type\":\"filter\",\"hook\":\"forward\",\"prio\":0,\"policy\":\"drop\"") TAIL, PASSES},
	{"a chain without hook", HEAD CHAIN("sub", "") RULE("sub", DROP) TAIL, PASSES},
	{"port", IN(ON_4791(DROP)), DROPS},
	{"port of th", IN(MATCH("==", TH, "4791") DROP), DROPS},
	{"reject", IN(ON_4791("{\"reject\":{\"type\":\"icmpx\",\"expr\":\"port-unreachable\"}}")), DROPS},
	{"counter in between", IN(MATCH("==", UDP, "4791") "{\"counter\":{\"packets\":0,\"bytes\":0}}," DROP), DROPS},
	{"another port", IN(MATCH("==", UDP, "53") DROP), PASSES},
	{"all but a port", IN(MATCH("!=", UDP, "53") DROP), DROPS},
	{"range", IN(MATCH("==", UDP, "{\"range\":[1000,5000]}") DROP), DROPS},
	{"range beside", IN(MATCH("==", UDP, "{\"range\":[4792,5000]}") DROP), PASSES},
	{"above", IN(MATCH(">=", UDP, "1024") DROP), DROPS},
	{"above beside", IN(MATCH(">", UDP, "4791") DROP), PASSES},
	{"set in place", IN(MATCH("==", UDP, "{\"set\":[22,{\"range\":[4000,5000]}]}") DROP), DROPS},
	{"set without it", IN(MATCH("==", UDP, "{\"set\":[22,53]}") DROP), PASSES},
	{"tcp is not it, whatever its port", IN(MATCH("!=", TCP, "22") DROP), PASSES},
	{"protocol", IN(MATCH("==", META("l4proto"), "\"udp\"") DROP), DROPS},
	{"protocol by number", IN(MATCH("==", META("l4proto"), "17") DROP), DROPS},
	{"protocols", IN(MATCH("==", META("l4proto"), "{\"set\":[\"tcp\",\"icmp\"]}") DROP), PASSES},
	{"interface", IN(MATCH("==", META("iifname"), "\"eth0\"") DROP), DROPS},
	{"interfaces by pattern", IN(MATCH("==", META("iifname"), "\"eth*\"") DROP), DROPS},
	{"another interface", IN(MATCH("==", META("iifname"), "\"eth1\"") DROP), PASSES},
	{"IPv6 alone", IN(MATCH("==", META("nfproto"), "\"ipv6\"") DROP), PASSES},
	{"an address of IPv6", IN(MATCH("!=", SADDR6, "\"fd00::1\"") DROP), PASSES},
	{"the peer", IN(MATCH("==", SADDR, "\"192.0.2.7\"") DROP), DROPS},
	{"the peer's network", IN(MATCH("==", SADDR, "{\"prefix\":{\"addr\":\"192.0.2.0\",\"len\":24}}") DROP), DROPS},
	{"another network", IN(MATCH("==", SADDR, "{\"prefix\":{\"addr\":\"192.0.3.0\",\"len\":24}}") DROP), PASSES},
	{"addresses about it", IN(MATCH("==", SADDR, "{\"range\":[\"192.0.2.1\",\"192.0.2.9\"]}") DROP), DROPS},
	{"addresses beside it", IN(MATCH("==", SADDR, "{\"range\":[\"192.0.2.8\",\"192.0.2.9\"]}") DROP), PASSES},
	{"a set that holds it", IN_SET("{\"prefix\":{\"addr\":\"10.0.0.0\",\"len\":8}},{\"elem\":{\"val\":\"192.0.2.7\",\"timeout\":60}}"),
	 DROPS},
	{"a set that does not", IN_SET("{\"prefix\":{\"addr\":\"10.0.0.0\",\"len\":8}}"), PASSES},
	{"a mark", IN(MATCH("==", META("mark"), "18") DROP), MAY},
	{"a limit", IN("{\"limit\":{\"rate\":10,\"burst\":5,\"per\":\"second\"}}," DROP), MAY},
	{"what we do not know", IN("{\"xt\":{\"type\":\"match\",\"name\":\"u32\"}}," DROP), MAY},
	{"accept, then drop", HEAD INPUT("accept") RULE("in", ON_4791(ACCEPT)) RULE("in", ON_4791(DROP)) TAIL, PASSES},
	{"accept, then policy", HEAD INPUT("drop") RULE("in", ON_4791(ACCEPT)) TAIL, PASSES},
	{"drop, then accept", HEAD INPUT("accept") RULE("in", ON_4791(DROP)) RULE("in", ON_4791(ACCEPT)) TAIL, DROPS},
	{"perhaps accepted, then policy", HEAD INPUT("drop") RULE("in", MATCH("==", META("mark"), "18") ACCEPT) TAIL, MAY},
	{"accepted in one chain, dropped in another", HEAD INPUT("accept") RULE("in", ON_4791(ACCEPT)) "," OUTPUT("drop") TAIL, DROPS},
	{"answers may have a known flow", HEAD INPUT("drop") RULE("in", MATCH("in", STATE, "[\"established\",\"related\"]") ACCEPT) TAIL,
	 MAY},
	{"new flows", IN(MATCH("in", STATE, "\"new\"") DROP), MAY},
	{"related ones", HEAD INPUT("drop") RULE("in", MATCH("in", STATE, "\"related\"") ACCEPT) TAIL, DROPS},
	{"invalid ones", IN(MATCH("in", STATE, "\"invalid\"") DROP), PASSES},
	{"queue", IN(ON_4791("{\"queue\":{\"num\":0}}")), MAY},
	{"jump", SUB(DROP, RULE("in", ON_4791("{\"jump\":{\"target\":\"sub\"}}"))), DROPS},
	{"jump that is not taken", SUB(DROP, RULE("in", MATCH("==", UDP, "53") "{\"jump\":{\"target\":\"sub\"}}")), PASSES},
	{"perhaps a jump", SUB(DROP, RULE("in", MATCH("==", META("mark"), "1") "{\"jump\":{\"target\":\"sub\"}}")), MAY},
	{"return before it", SUB("{\"return\":null}", RULE("sub", DROP) RULE("in", "{\"jump\":{\"target\":\"sub\"}}")), PASSES},
	{"back from a jump", SUB("{\"return\":null}", RULE("in", "{\"jump\":{\"target\":\"sub\"}}") RULE("in", DROP)), DROPS},
	{"accept in a jump", SUB(ACCEPT, RULE("in", "{\"jump\":{\"target\":\"sub\"}}") RULE("in", DROP)), PASSES},
	{"no way back from goto", SUB("{\"return\":null}", RULE("in", "{\"goto\":{\"target\":\"sub\"}}") RULE("in", DROP)), PASSES},
	{"a chain that jumps to itself",
	 SUB("{\"jump\":{\"target\":\"sub\"}}", RULE("in", "{\"jump\":{\"target\":\"sub\"}}") RULE("in", DROP)), DROPS},
	{"a chain that is not there", IN("{\"jump\":{\"target\":\"gone\"}}"), PASSES},
	{"verdict map", IN("{\"vmap\":{\"key\":" UDP ",\"data\":{\"set\":[[53,{\"accept\":null}],[4791,{\"drop\":null}]]}}}"), DROPS},
	{"verdict map without it", IN("{\"vmap\":{\"key\":" UDP ",\"data\":{\"set\":[[53,{\"drop\":null}]]}}}"), PASSES},
	{"verdict map of states", IN("{\"vmap\":{\"key\":" STATE ",\"data\":{\"set\":[[\"invalid\",{\"drop\":null}]]}}}"), PASSES},
	{"verdict map by name",
	 HEAD INPUT("accept") ",{\"map\":{\"family\":\"inet\",\"name\":\"m\",\"table\":\"t\",\"map\":\"verdict\",\"elem\":"
			      "[[22,{\"accept\":null}],[4791,{\"drop\":null}]]}}" RULE("in", "{\"vmap\":{\"key\":" UDP ",\"data\":\"@m\"}}")
				      TAIL,
	 DROPS},
	{"no JSON", "Error: syntax", UNKNOWN},
	{"another JSON", "{\"nftables\":7}", UNKNOWN},
	{"nothing", "", UNKNOWN},
	{"things of wrong types", "{\"nftables\":[7,null,{\"chain\":[]},{\"rule\":7},{\"rule\":{\"expr\":{}}}" TAIL, PASSES},
	{"a rule of wrong types", IN("7,{\"match\":7},{\"vmap\":[]},{\"match\":{\"op\":7,\"left\":[],\"right\":null}},{\"jump\":7}"),
	 PASSES},
};

static const struct ur_firewall_packet packet = {.dev = "eth0", .v4 = true, .peer = "192.0.2.7"};

static void firewall__rows(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_firewall f;

		ur_firewall_judge(rows[i].json, strlen(rows[i].json), &packet, &f);
		if (f.verdict != rows[i].verdict)
			printf("# %s: %d instead of %d\n", rows[i].what, f.verdict, rows[i].verdict);
		CU_ASSERT_EQUAL(f.verdict, rows[i].verdict);
		CU_ASSERT_EQUAL(f.remedy[0] != 0, f.verdict != PASSES);
	}
}

static void firewall__says_where(void)
{
	const char *json = IN(ON_4791(DROP));
	struct ur_firewall f;

	ur_firewall_judge(json, strlen(json), &packet, &f);
	CU_ASSERT_STRING_EQUAL(f.where, "the rule with handle 7 in chain in of nftables' table inet t");
	CU_ASSERT_STRING_EQUAL(f.remedy, "nft insert rule inet t in udp dport 4791 accept");
	CU_ASSERT_EQUAL(f.rules, 1);
}

/* Without a peer, rules about addresses are open questions; an interface without IPv6 has no packets of it. */
static void firewall__of_whom(void)
{
	const char *about_peer = IN(MATCH("==", SADDR, "\"192.0.2.7\"") DROP),
		   *about_v6 = IN(MATCH("==", META("nfproto"), "\"ipv6\"") DROP);
	struct ur_firewall_packet p = {.dev = "eth0", .v4 = true};
	struct ur_firewall f;

	ur_firewall_judge(about_peer, strlen(about_peer), &p, &f);
	CU_ASSERT_EQUAL(f.verdict, MAY);
	p.v6 = true;
	ur_firewall_judge(about_v6, strlen(about_v6), &p, &f);
	CU_ASSERT_EQUAL(f.verdict, DROPS);
}

/* Chains that jump to the next one twice each: without a bound 2^15 walks of the last one are the least. */
static void firewall__bounded(void)
{
	size_t room = 1 << 21, n = 0;
	char *json = malloc(room);
	struct ur_firewall f;

	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	n += (size_t)snprintf(json + n, room - n, "%s", HEAD INPUT("accept") RULE("in", "{\"jump\":{\"target\":\"c0\"}}"));
	for (unsigned i = 0; i < 15; i++) {
		n += (size_t)snprintf(json + n, room - n,
				      ","
				      "{\"chain\":{\"family\":\"inet\",\"table\":\"t\",\"name\":\"c%u\"}}",
				      i);
		for (unsigned k = 0; k < 100; k++)
			n += (size_t)snprintf(json + n, room - n,
					      ",{\"rule\":{\"family\":\"inet\",\"table\":\"t\",\"chain\":\"c%u\",\"expr\":[{\"jump\":"
					      "{\"target\":\"c%u\"}}]}}",
					      i, i + 1);
	}
	n += (size_t)snprintf(json + n, room - n, TAIL);
	ur_firewall_judge(json, n, &packet, &f);
	CU_ASSERT_EQUAL(f.verdict, UNKNOWN);
	free(json);
}

void ur_suite_doctor_firewall(void)
{
	CU_pSuite s = CU_add_suite("doctor_firewall", NULL, NULL);

	CU_add_test(s, "firewall: rules", firewall__rows);
	CU_add_test(s, "firewall: says which rule", firewall__says_where);
	CU_add_test(s, "firewall: over which protocol, from whom", firewall__of_whom);
	CU_add_test(s, "firewall: chains that jump without end", firewall__bounded);
}
