/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What may stand between an IP header and UDP: options of IPv4 (RFC 791), extension headers of IPv6 (RFC 8200). Routes have addresses of
 * hosts and routers in them, which become what they are elsewhere. What is not known is blanked where all addresses are to be new: there
 * may be some in it.
 */
#include "analyze/change/rewrite_priv.h"
#include "wire/ip.h"

enum { END_OF_OPTIONS = 0, NO_OPERATION = 1, RECORD_ROUTE = 7, TIMESTAMP = 68, LOOSE_ROUTE = 131, STRICT_ROUTE = 137, ROUTER_ALERT = 148 };
enum { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, AUTHENTICATION = 51, DESTINATION = 60 };
enum { PAD_1 = 0, ROUTER_ALERT_6 = 5, JUMBO = 0xc2, HOME_ADDRESS = 0xc9 };
enum { SOURCE_ROUTE = 0, HOME = 2, SEGMENTS = 4 }; /* types of routing */

static void blank(const struct ur_rewrite *w, uint8_t *at, uint32_t n)
{
	if (w->c.new_addr)
		memset(at, 0, n);
}

static void address4(struct ur_rewrite *w, uint8_t *at)
{
	const struct ur_gid old = ur_gid_from_v4_at(at), new = rewrite_addr(w, &old);

	memcpy(at, new.raw + 12, 4);
}

static void address6(struct ur_rewrite *w, uint8_t *at)
{
	struct ur_gid g;

	memcpy(g.raw, at, sizeof(g.raw));
	g = rewrite_addr(w, &g);
	memcpy(at, g.raw, sizeof(g.raw));
}

/* --- IPv4 --- */

/* Addresses from byte `at` of an option on, every `step` bytes. */
static void list4(struct ur_rewrite *w, uint8_t *option, uint32_t n, uint32_t at, uint32_t step)
{
	for (; n >= at + step; at += step)
		address4(w, option + at);
	if (n > at)
		blank(w, option + at, n - at);
}

static void option4(struct ur_rewrite *w, uint8_t *option, uint32_t n)
{
	const bool stamped = n > 3 && (option[3] & 15); /* by hosts that are named, beside the times */

	switch (option[0]) {
	case RECORD_ROUTE:
	case LOOSE_ROUTE:
	case STRICT_ROUTE: list4(w, option, n, 3, 4); return;
	case TIMESTAMP:
		if (stamped)
			list4(w, option, n, 4, 8);
		return;
	case ROUTER_ALERT: return;
	default: blank(w, option + 2, n - 2);
	}
}

static void options4(struct ur_rewrite *w, uint8_t *at, uint32_t len)
{
	while (len && *at != END_OF_OPTIONS) {
		const uint32_t n = *at == NO_OPERATION ? 1 : len > 1 ? at[1] : 0;

		if (!n || n > len || (n < 2 && *at != NO_OPERATION))
			break;
		if (n > 1)
			option4(w, at, n);
		at += n;
		len -= n;
	}
	blank(w, at, len);
}

/* --- IPv6 --- */

static void option6(struct ur_rewrite *w, uint8_t *option, uint32_t n)
{
	if (option[0] == HOME_ADDRESS && n == 2 + sizeof(struct ur_gid))
		address6(w, option + 2);
	else if (option[0] != ROUTER_ALERT_6 && option[0] != JUMBO)
		blank(w, option + 2, n - 2);
}

static void options6(struct ur_rewrite *w, uint8_t *at, uint32_t len)
{
	while (len) {
		const uint32_t n = *at == PAD_1 ? 1 : len > 1 ? at[1] + 2u : len + 1;

		if (n > len)
			break;
		if (n > 1)
			option6(w, at, n);
		at += n;
		len -= n;
	}
	blank(w, at, len);
}

/*
 * The segments, whose number the header says, and options behind them, which may hold a digest of all addresses. Of the compressed
 * addresses of type 3 (RFC 6554) only the ends are here, so that they cannot be mapped.
 */
static void route(struct ur_rewrite *w, uint8_t *at, uint32_t n)
{
	const uint32_t room = (n - 8) / 16, said = at[2] == SEGMENTS ? at[4] + 1u : room, segments = said < room ? said : room;
	const bool whole = at[2] == SOURCE_ROUTE || at[2] == HOME || at[2] == SEGMENTS;

	for (uint32_t i = 0; whole && i < segments; i++)
		address6(w, at + 8 + 16 * i);
	if (whole)
		blank(w, at + 8 + 16 * segments, n - 8 - 16 * segments);
	else
		blank(w, at + 8, n - 8);
}

static bool is_left(const uint8_t *at, uint32_t n)
{
	return n >= 24 && at[2] == SEGMENTS && at[3];
}

/* One header of the chain: its bytes, 0 when it is none. */
static uint32_t extension(struct ur_rewrite *w, uint8_t proto, uint8_t *at, uint32_t have)
{
	const uint32_t n = proto == FRAGMENT ? 8 : 8u + at[1] * (proto == AUTHENTICATION ? 4u : 8u);

	if (n > have)
		return 0;
	switch (proto) {
	case HOP_BY_HOP:
	case DESTINATION: options6(w, at + 2, n - 2); break;
	case ROUTING: route(w, at, n); break;
	case AUTHENTICATION: blank(w, at + (n < 12 ? n : 12), n < 12 ? 0 : n - 12); break; /* a digest of the addresses, too */
	case FRAGMENT: break;
	default: return 0;
	}
	return n;
}

const uint8_t *rewrite_options(struct ur_rewrite *w, const struct an_pkt *p, uint8_t *ip)
{
	const uint32_t end = (uint32_t)(p->l4 - p->ip);
	uint32_t at = p->ip_version == 4 ? (ip[0] & 15u) * 4 : UR_IP6_LEN;
	uint8_t proto = p->ip_version == 4 ? ip[9] : ip[6];
	const uint8_t *last_hop = NULL;

	if (p->ip_version == 4 && at > UR_IP4_LEN)
		options4(w, ip + UR_IP4_LEN, at - UR_IP4_LEN);
	while (proto != UR_PROTO_UDP && at + 8 <= end) {
		const uint8_t next = ip[at];
		const uint32_t n = extension(w, proto, ip + at, end - at);

		if (!n)
			break;
		if (proto == ROUTING && is_left(ip + at, n))
			last_hop = ip + at + 8;
		proto = next;
		at += n;
	}
	return last_hop;
}
