/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Group management, which RFC 4604 calls GMP: IGMP (versions 1 to 3: RFC 1112, RFC 2236, RFC 3376) and MLD (versions 1 and 2: RFC 2710,
 * RFC 3810). MLD is IGMP in ICMPv6 with a version number that is lower by one, so one description does for both: versions count as IGMP's
 * do, MLDv1 being 2 and MLDv2 being 3, and the family follows from the addresses.
 */
#ifndef UR_GMP_H
#define UR_GMP_H

#include "wire/frame.h"

enum ur_gmp_kind {
	UR_GMP_OTHER,   /* well formed, of no interest */
	UR_GMP_QUERY,   /* who is a member? */
	UR_GMP_REPORT,  /* versions 1 and 2: I am, of this group */
	UR_GMP_LEAVE,   /* version 2: I was, of this group; MLD calls it Done */
	UR_GMP_RECORDS, /* version 3: a list of records */
};

/* RFC 3376, 4.2.12; RFC 3810, 5.2.12. */
enum ur_gmp_record_type {
	UR_GMP_IS_IN = 1, /* answers to queries */
	UR_GMP_IS_EX,
	UR_GMP_TO_IN, /* changes: with no sources, a leave ... */
	UR_GMP_TO_EX, /* ... and a join */
	UR_GMP_ALLOW,
	UR_GMP_BLOCK,
};

struct ur_gmp {
	enum ur_gmp_kind kind;
	bool v4;
	uint8_t version;         /* 1 to 3 */
	struct ur_gid group;     /* of a query (zero: of all groups), report or leave */
	ur_time max_resp;        /* of a query: answers come within this time */
	bool suppress;           /* of a version 3 query: routers need not start timers */
	uint8_t robustness;      /* of a version 3 query: 0 when not said */
	uint32_t interval;       /* of a version 3 query: its interval in seconds, 0 when not said */
	unsigned count;          /* sources of a version 3 query, or records */
	const uint8_t *at, *end; /* where they stand in the packet */
};

struct ur_gmp_record {
	uint8_t type; /* enum ur_gmp_record_type, or one yet unknown */
	struct ur_gid group;
	unsigned nsources;
	const uint8_t *sources; /* parsed: in the packet, 4 or 16 bytes each */
};

/*
 * Reads a packet of kind UR_PKT_GMP. False when it is cut short, its checksum is wrong, a list does not fit, the group is none, or, in MLD,
 * it was not sent from this link as RFC 3810, 5 demands (link-local source, hop limit 1, Router Alert). The Router Alert of IGMP is not
 * asked for: version 1 has none, and not all queriers set it.
 */
bool ur_gmp_parse(const struct ur_pkt *p, struct ur_gmp *m);
/* Takes the first of the remaining records; false when there is none. Every record of a message that parsed fits. */
bool ur_gmp_next(struct ur_gmp *m, struct ur_gmp_record *r);
/* Source number `i` of a query (m->at) or of a record. */
struct ur_gid ur_gmp_source(const uint8_t *sources, bool v4, unsigned i);

/* --- building: frames with hop limit 1 and Router Alert, to the MAC address of the group that `dst` is --- */

struct ur_gmp_to {
	struct ur_mac smac;
	uint16_t vlan;
	struct ur_gid src, dst; /* `dst` tells the family; `src` may be 0.0.0.0 or :: */
};

/* A query without sources, a report of version 1 or 2, or a leave. Kind, version, group and what the kind has are read. */
void ur_gmp_build(struct ur_pkt *p, const struct ur_gmp_to *to, const struct ur_gmp *m);
/* Appends a source to a version 3 query that ur_gmp_build made. */
void ur_gmp_add_source(struct ur_pkt *p, const struct ur_gid *source);

/* An empty version 3 report. */
void ur_gmp_report_begin(struct ur_pkt *p, const struct ur_gmp_to *to);
/* Appends a record. False, and nothing has changed, when the IP packet would be longer than `mtu`. */
bool ur_gmp_report_add(struct ur_pkt *p, uint8_t type, const struct ur_gid *group, const struct ur_gid *sources, unsigned nsources,
		       uint32_t mtu);
/* Lengths and checksums, after the last record. */
void ur_gmp_report_end(struct ur_pkt *p);

/* Where messages go: all hosts, all routers, and the routers that version 3 reports are for. */
struct ur_gid ur_gmp_all_hosts(bool v4);   /* 224.0.0.1, ff02::1 */
struct ur_gid ur_gmp_all_routers(bool v4); /* 224.0.0.2, ff02::2 */
struct ur_gid ur_gmp_reporters(bool v4);   /* 224.0.0.22, ff02::16 */

#endif
