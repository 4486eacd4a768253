/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rule or policy of nftables, as `nft list ruleset` prints them, drops UDP port 4791 or may do so. Rules about protocols, ports,
 * interfaces and states of connections are understood; whatever else a rule asks for may be so, and the user judges it.
 */
#ifndef UR_FIREWALL_H
#define UR_FIREWALL_H

#include "base/base.h"

enum ur_firewall_verdict {
	UR_FIREWALL_PASSES,
	UR_FIREWALL_MAY_DROP,
	UR_FIREWALL_DROPS,
	UR_FIREWALL_UNKNOWN,
};

struct ur_firewall {
	enum ur_firewall_verdict verdict;
	char where[560];  /* the rule or policy as it stands, and a rule before it that may let the packet pass; of UNKNOWN: why */
	char remedy[320]; /* a command of nft's that lets the packets pass */
	unsigned rules;
};

/* Which packets: those to and from the interface, over IPv4, IPv6 or both. */
struct ur_firewall_packet {
	const char *dev;
	bool v4, v6;
};

/* Cuts up the text. */
void ur_firewall_judge(char *text, const struct ur_firewall_packet *p, struct ur_firewall *out);

#endif
