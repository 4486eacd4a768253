/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/doctor/firewall.c: rules as nft 1.0.6 prints them, one for each row, and what becomes of a packet to UDP port 4791. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/firewall.h"

void ur_suite_doctor_firewall(void);

#define TABLE(family, chains) "table " family " t {\n" chains "}\n"
#define SUB(name, rules) "\tchain " name " {\n" rules "\t}\n\n"
#define BASE(name, hook, policy, rules) SUB(name, "\t\ttype filter hook " hook " priority filter; policy " policy ";\n" rules)
#define RULE(text) "\t\t" text "\n"
#define IN(text) TABLE("inet", BASE("in", "input", "accept", RULE(text)))
#define BUT(text) TABLE("inet", BASE("in", "input", "drop", RULE(text))) /* all but that is dropped */

#define PASSES UR_FIREWALL_PASSES
#define MAY UR_FIREWALL_MAY_DROP
#define DROPS UR_FIREWALL_DROPS

/* The packet: on eth0, IPv4. */
static const struct {
	const char *what, *rules;
	enum ur_firewall_verdict verdict;
} rows[] = {
	{"nothing", "", PASSES},
	{"no rules", TABLE("inet", BASE("in", "input", "accept", "")), PASSES},
	{"policy", TABLE("inet", BASE("in", "input", "drop", "")), DROPS},
	{"policy of output", TABLE("inet", BASE("out", "output", "drop", "")), DROPS},
	{"forward is not ours", TABLE("inet", BASE("f", "forward", "drop", "")), PASSES},
	{"nor is IPv6", TABLE("ip6", BASE("in", "input", "drop", "")), PASSES},
	{"nor is a bridge", TABLE("bridge", BASE("in", "input", "drop", "")), PASSES},
	{"a chain without hook", TABLE("inet", SUB("sub", RULE("drop"))), PASSES},
	{"a comment before the policy",
	 TABLE("inet", SUB("in", RULE("comment \"mine\"") RULE("type filter hook input priority 0; policy drop;"))), DROPS},
	{"a set is no chain", "table inet t {\n\tset s {\n\t\ttype inet_service\n\t\telements = { 4791 }\n\t}\n}\n", PASSES},
	{"another device", TABLE("netdev", BASE("in", "ingress device \"eth1\"", "accept", RULE("drop"))), PASSES},
	{"this device", TABLE("netdev", BASE("in", "ingress device \"eth0\"", "accept", RULE("drop"))), MAY},
	{"port", IN("udp dport 4791 drop"), DROPS},
	{"port of th", IN("th dport 4791 drop"), DROPS},
	{"reject", IN("udp dport 4791 reject with icmpx port-unreachable"), DROPS},
	{"counter in between", IN("udp dport 4791 counter packets 0 bytes 0 drop"), DROPS},
	{"log in between", IN("udp dport 4791 log prefix \"accept \" drop comment \"return\""), DROPS},
	{"another port", IN("udp dport 53 drop"), PASSES},
	{"all but a port", IN("udp dport != 53 drop"), DROPS},
	{"range", IN("udp dport 1000-5000 drop"), DROPS},
	{"range beside", IN("udp dport 4792-5000 drop"), PASSES},
	{"above", IN("udp dport >= 1024 drop"), MAY},
	{"source port", IN("udp sport 4791 drop"), MAY},
	{"set in place", IN("udp dport { 22, 4000-5000 } drop"), DROPS},
	{"set without it", IN("udp dport { 22, 53 } drop"), PASSES},
	{"set that has a name", IN("udp dport @s drop"), MAY},
	{"several values in one", IN("meta l4proto . th dport { tcp . 22, udp . 4791 } drop"), MAY},
	{"tcp is not it, whatever its port", IN("tcp dport != 22 drop"), PASSES},
	{"whatever it asks besides", IN("ip saddr 192.0.2.0/24 tcp dport 22 drop"), PASSES},
	{"protocol", IN("meta l4proto udp drop"), DROPS},
	{"protocols", IN("meta l4proto { tcp, icmp } drop"), PASSES},
	{"as iptables-nft says it", IN("meta l4proto udp udp dport 4791 counter packets 7 bytes 420 drop"), DROPS},
	{"interface", IN("iifname \"eth0\" drop"), DROPS},
	{"interfaces by pattern", IN("iifname \"eth*\" drop"), DROPS},
	{"another interface", IN("iifname { \"eth1\", \"lo\" } drop"), PASSES},
	{"the other way", IN("oifname \"eth0\" drop"), PASSES},
	{"addresses", IN("ip saddr 192.0.2.7 drop"), MAY},
	{"a mark", IN("meta mark 0x00000012 drop"), MAY},
	{"a limit", IN("limit rate 10/second burst 5 packets drop"), MAY},
	{"what we do not know", IN("xt match \"u32\" drop"), MAY},
	{"accept, then drop", IN("udp dport 4791 accept\n\t\tudp dport 4791 drop"), PASSES},
	{"accept, then policy", BUT("udp dport 4791 accept"), PASSES},
	{"drop, then accept", IN("udp dport 4791 drop\n\t\tudp dport 4791 accept"), DROPS},
	{"something else is accepted", BUT("iifname \"lo\" accept\n\t\ttcp dport 22 accept\n\t\tct state related accept"), DROPS},
	{"perhaps accepted, then policy", BUT("meta mark 0x00000012 accept"), MAY},
	{"accepted in one chain, dropped in another",
	 TABLE("inet", BASE("in", "input", "accept", RULE("udp dport 4791 accept")) BASE("out", "output", "drop", "")), DROPS},
	{"answers may have a known flow", BUT("ct state established,related accept"), MAY},
	{"new flows", IN("ct state new drop"), MAY},
	{"invalid ones", IN("ct state invalid drop"), PASSES},
	{"queue", IN("udp dport 4791 queue to 0"), MAY},
	{"jump", TABLE("inet", SUB("sub", RULE("drop")) BASE("in", "input", "accept", RULE("udp dport 4791 jump sub"))), DROPS},
	{"jump that is not taken", TABLE("inet", SUB("sub", RULE("drop")) BASE("in", "input", "accept", RULE("udp dport 53 jump sub"))),
	 PASSES},
	{"perhaps a jump", TABLE("inet", SUB("sub", RULE("drop")) BASE("in", "input", "accept", RULE("meta mark 1 jump sub"))), MAY},
	{"into a chain of another name", TABLE("inet", SUB("sub2", RULE("drop")) BASE("in", "input", "accept", RULE("jump sub"))), PASSES},
	{"of another table", TABLE("ip", SUB("sub", RULE("drop"))) TABLE("inet", BASE("in", "input", "accept", RULE("jump sub"))), PASSES},
	{"return before it", TABLE("inet", SUB("sub", RULE("return") RULE("drop")) BASE("in", "input", "accept", RULE("jump sub"))), MAY},
	{"perhaps a return before it",
	 TABLE("inet", SUB("sub", RULE("fib daddr type local return") RULE("drop")) BASE("in", "input", "accept", RULE("jump sub"))), MAY},
	{"accept in a jump", TABLE("inet", SUB("sub", RULE("accept")) BASE("in", "input", "drop", RULE("jump sub"))), PASSES},
	{"a chain that jumps to itself", TABLE("inet", BASE("in", "input", "accept", RULE("jump in") RULE("accept"))), PASSES},
	{"verdict map", IN("udp dport vmap { 53 : accept, 4791 : drop }"), DROPS},
	{"verdict map without it", IN("udp dport vmap { 53 : drop }"), PASSES},
	{"verdict map of states", BUT("ct state vmap { established : accept, related : accept, invalid : drop }"), MAY},
	{"verdict map that accepts", IN("ct state vmap { established : accept, related : accept, invalid : drop }"), PASSES},
	{"verdict map that jumps",
	 TABLE("inet",
	       SUB("sub", RULE("drop")) BASE("in", "input", "accept", RULE("iifname vmap { \"lo\" : accept, \"eth0\" : jump sub }"))),
	 DROPS},
	{"verdict map by name", IN("udp dport vmap @m"), MAY},
	{"no rules at all", "Error: syntax", PASSES},
	{"a table that does not end", "table inet t {\n\tchain in {\n\t\ttype filter hook input priority 0; policy drop;", DROPS},
	{"a set that does not", IN("udp dport { 4791 drop"), PASSES},
};

static const struct ur_firewall_packet packet = {.dev = "eth0", .v4 = true};

static void judge(const char *rules, const struct ur_firewall_packet *p, struct ur_firewall *f)
{
	char *text = strdup(rules);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	ur_firewall_judge(text, p, f);
	free(text);
}

static void firewall__rows(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		struct ur_firewall f;

		judge(rows[i].rules, &packet, &f);
		if (f.verdict != rows[i].verdict)
			printf("# %s: %d instead of %d\n", rows[i].what, f.verdict, rows[i].verdict);
		CU_ASSERT_EQUAL(f.verdict, rows[i].verdict);
		CU_ASSERT_EQUAL(f.remedy[0] != 0, f.verdict != PASSES);
	}
}

static void firewall__shows_it(void)
{
	struct ur_firewall f;

	judge(IN("udp dport 4000-5000 counter packets 0 bytes 0 drop"), &packet, &f);
	CU_ASSERT_STRING_EQUAL(f.where, "'udp dport 4000-5000 counter packets 0 bytes 0 drop' in chain in of nftables' table inet t");
	CU_ASSERT_STRING_EQUAL(f.remedy, "nft insert rule inet t in udp dport 4791 accept");
	CU_ASSERT_EQUAL(f.rules, 1);
	judge(TABLE("ip",
		    BASE("in", "input", "drop", RULE("ct state established,related accept") RULE("jump sub")) SUB("sub", RULE("drop"))),
	      &packet, &f);
	CU_ASSERT_STRING_EQUAL(f.where, "'drop' in chain sub of nftables' table ip t (after 'ct state established,related accept')");
	CU_ASSERT_STRING_EQUAL(f.remedy, "nft insert rule ip t in udp dport 4791 accept");
	CU_ASSERT_EQUAL(f.rules, 3);
}

/* A table is for one family of addresses, or for both. */
static void firewall__of_which_family(void)
{
	const struct ur_firewall_packet p = {.dev = "eth0", .v6 = true};
	struct ur_firewall f;

	judge(TABLE("ip6", BASE("in", "input", "drop", "")) TABLE("ip", BASE("in", "input", "drop", "")), &p, &f);
	CU_ASSERT_EQUAL(f.verdict, DROPS);
	CU_ASSERT_PTR_NOT_NULL(strstr(f.where, "ip6 t"));
	judge(TABLE("ip", BASE("in", "input", "drop", "")), &p, &f);
	CU_ASSERT_EQUAL(f.verdict, PASSES);
}

/* Chains that jump to the next one a hundred times each: without a bound 100^15 walks of the last one. */
static void firewall__bounded(void)
{
	size_t room = 1 << 20, n = 0;
	char *text = malloc(room);
	struct ur_firewall f;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	n += (size_t)snprintf(text + n, room - n, "table inet t {\n%s", BASE("in", "input", "accept", RULE("jump c0")));
	for (unsigned i = 0; i < 15; i++) {
		n += (size_t)snprintf(text + n, room - n, "\tchain c%u {\n", i);
		for (unsigned k = 0; k < 100; k++)
			n += (size_t)snprintf(text + n, room - n, "\t\tjump c%u\n", i + 1);
		n += (size_t)snprintf(text + n, room - n, "\t}\n");
	}
	snprintf(text + n, room - n, "}\n");
	ur_firewall_judge(text, &packet, &f);
	CU_ASSERT_EQUAL(f.verdict, UR_FIREWALL_UNKNOWN);
	free(text);
}

void ur_suite_doctor_firewall(void)
{
	CU_pSuite s = CU_add_suite("doctor_firewall", NULL, NULL);

	CU_add_test(s, "firewall: rules", firewall__rows);
	CU_add_test(s, "firewall: shows which rule", firewall__shows_it);
	CU_add_test(s, "firewall: of which family", firewall__of_which_family);
	CU_add_test(s, "firewall: chains that jump without end", firewall__bounded);
}
