/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a ruleset of nftables, as `nft -j list ruleset` prints it (libnftables-json(5)), drop RoCEv2? A packet to UDP port 4791 is led
 * through every chain that the kernel would show it to, in three-valued logic: a rule applies, does not apply, or may apply, for what a
 * match asks of the packet is not always known (its source, a mark, a limit of rate).
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
	char where[256];  /* the rule or policy that drops: family, table, chain; of UNKNOWN: why */
	char remedy[320]; /* a command of nft's that lets the packets pass */
	unsigned rules;
};

/* Which packets: those to and from the interface, over IPv4, IPv6 or both, to and from a peer if it is known. */
struct ur_firewall_packet {
	const char *dev;
	bool v4, v6;
	const char *peer; /* its address as text, or NULL */
};

void ur_firewall_judge(const char *json, size_t len, const struct ur_firewall_packet *p, struct ur_firewall *out);

#endif
