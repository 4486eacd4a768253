/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an id or a listener may be bound to: one address, or all addresses of one family or of both. A wildcard is a GID that no packet
 * carries: all zeros stands for every address, ::ffff:0.0.0.0 for every IPv4 address, and a multicast address of the reserved scope 0 for
 * every IPv6 address.
 */
#ifndef UR_GID_SET_H
#define UR_GID_SET_H

#include "wire/frame.h"

static const struct ur_gid ur_gid_all = {{0}};
static const struct ur_gid ur_gid_all_v4 = {{[10] = 0xff, [11] = 0xff}};
static const struct ur_gid ur_gid_all_v6 = {{[0] = 0xff}};

static inline bool ur_gid_is_wild(const struct ur_gid *g)
{
	return ur_gid_is_zero(g) || ur_gid_eq(g, &ur_gid_all_v4) || ur_gid_eq(g, &ur_gid_all_v6);
}

/* Is the address `g` in `set`? */
static inline bool ur_gid_covers(const struct ur_gid *set, const struct ur_gid *g)
{
	if (ur_gid_is_zero(set) || ur_gid_eq(set, g))
		return true;
	return ur_gid_is_v4(g) ? ur_gid_eq(set, &ur_gid_all_v4) : ur_gid_eq(set, &ur_gid_all_v6);
}

/* Is there an address in both? */
static inline bool ur_gid_overlap(const struct ur_gid *a, const struct ur_gid *b)
{
	return ur_gid_is_zero(a) || ur_gid_is_zero(b) || ur_gid_covers(a, b) || ur_gid_covers(b, a);
}

#endif
