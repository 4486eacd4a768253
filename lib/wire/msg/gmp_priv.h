/* SPDX-License-Identifier: BSD-3-Clause */
/* Type codes and lengths that the parser and the builder of group management share. */
#ifndef UR_GMP_PRIV_H
#define UR_GMP_PRIV_H

#include "wire/ip.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"

enum {
	IGMP_QUERY = 0x11,
	IGMP_V1_REPORT = 0x12,
	IGMP_V2_REPORT = 0x16,
	IGMP_LEAVE = 0x17,
	IGMP_V3_REPORT = 0x22,
	MLD_QUERY = 130,
	MLD_REPORT = 131,
	MLD_DONE = 132,
	MLD_V2_REPORT = 143,

	IGMP_LEN = 8, /* of a version 1 or 2 message */
	MLD_LEN = 24,
	QUERY3_MORE = 4, /* what a version 3 query has after these, before its sources */
	REPORT3_LEN = 8, /* before the records */
	RECORD_LEN = 4,  /* before the group and the sources */
	COUNT_OFF = 6,   /* of the number of records */

	OPT4_LEN = 4, /* IPv4's Router Alert (RFC 2113): 0x94, 4, 0, 0 */
	OPT4_ROUTER_ALERT = 0x94,
	HOPOPTS_LEN = 8, /* a hop-by-hop header with Router Alert (RFC 2711) for MLD, and PadN */
	OPT6_PAD1 = 0,
	OPT6_PADN = 1,
	OPT6_ROUTER_ALERT = 5,
};

#define GMP_TENTH (100 * UR_NS_PER_MS) /* what IGMP counts response times in; MLD's are in milliseconds */

static inline unsigned gmp_addr_len(bool v4)
{
	return v4 ? 4 : 16;
}

static inline unsigned gmp_fixed_len(bool v4)
{
	return v4 ? IGMP_LEN : MLD_LEN;
}

#endif
