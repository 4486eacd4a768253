/* SPDX-License-Identifier: BSD-3-Clause */
/* IP headers for the builders and the parser of this folder: RFC 791 and RFC 8200; options and extension headers are gmp_build.c's. */
#ifndef UR_IP_H
#define UR_IP_H

#include "wire/frame.h"

enum ur_ip_proto { UR_PROTO_HOPOPTS = 0, UR_PROTO_ICMP4 = 1, UR_PROTO_IGMP = 2, UR_PROTO_UDP = 17, UR_PROTO_ICMP6 = 58 };

/* Folds a sum of 32-bit words to one that ur_csum_fold takes. */
static inline uint32_t ur_csum_narrow(uint64_t s)
{
	return (uint32_t)(s & 0xffff) + (uint32_t)(s >> 16 & 0xffff) + (uint32_t)(s >> 32);
}

/* The sum over the 20 bytes of an IPv4 header; with `skip`, as if total length and checksum were zero. */
static inline uint32_t ur_ip4_sum(const uint8_t *ip, bool skip)
{
	static const uint8_t keep[8] = {0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff}; /* each stands third and fourth in its word */
	uint64_t a, b, mask;
	uint32_t d;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	memcpy(&d, ip + 16, 4);
	if (skip) {
		memcpy(&mask, keep, 8);
		a &= mask;
		b &= mask;
	}
	return ur_csum_narrow((a & UINT32_MAX) + (a >> 32) + (b & UINT32_MAX) + (b >> 32) + d);
}

/* All but total length and checksum, which ur_ip4_finish puts in. */
static inline void ur_ip4_put(uint8_t *ip, const struct ur_gid *src, const struct ur_gid *dst, uint8_t tos, uint8_t ttl, uint8_t proto)
{
	memset(ip, 0, UR_IP4_LEN);
	ip[0] = 0x45;
	ip[1] = tos;
	ur_put16(ip + 6, 0x4000); /* do not fragment: the identification may then stay zero (RFC 6864) */
	ip[8] = ttl;
	ip[9] = proto;
	memcpy(ip + 12, src->raw + 12, 4);
	memcpy(ip + 16, dst->raw + 12, 4);
}

static inline void ur_ip4_finish(uint8_t *ip, uint32_t total)
{
	uint16_t len = __builtin_bswap16((uint16_t)total);
	uint16_t sum = ur_csum_fold(ur_ip4_sum(ip, true) + len);

	memcpy(ip + 2, &len, 2);
	memcpy(ip + 10, &sum, 2);
}

/* Updates the checksum after a field has changed. */
static inline void ur_ip4_finish_again(uint8_t *ip)
{
	ur_ip4_finish(ip, ur_get16(ip + 2));
}

/* All but the payload length. */
static inline void ur_ip6_put(uint8_t *ip, const struct ur_gid *src, const struct ur_gid *dst, uint8_t tclass, uint8_t hops, uint8_t proto,
			      uint32_t flow_label)
{
	ur_put32(ip, 6u << 28 | (uint32_t)tclass << 20 | (flow_label & 0xfffff));
	ur_put16(ip + 4, 0);
	ip[6] = proto;
	ip[7] = hops;
	memcpy(ip + 8, src->raw, 16);
	memcpy(ip + 24, dst->raw, 16);
}

static inline void ur_ip6_finish(uint8_t *ip, uint32_t payload)
{
	ur_put16(ip + 4, (uint16_t)payload);
}

/* The sum over the pseudo header of a UDP datagram, `udp_len` bytes with the UDP header, behind this IP header (RFC 768; RFC 8200, 8.1). */
static inline uint32_t ur_udp_pseudo_sum(const uint8_t *l3, unsigned ip_version, uint32_t udp_len)
{
	const uint8_t rest[4] = {(uint8_t)(udp_len >> 8), (uint8_t)udp_len, 0, UR_PROTO_UDP};
	const uint32_t sum = ur_csum_add(0, rest, sizeof(rest));

	return ip_version == 4 ? ur_csum_add(sum, l3 + 12, 8) : ur_csum_add(sum, l3 + 8, 32);
}

/* Of a UDP datagram: its length, `udp_len` with the UDP header, in both headers, and the checksum of IPv4. */
static inline void ur_udp_put_lengths(uint8_t *l3, unsigned ip_version, uint32_t udp_len)
{
	if (ur_likely(ip_version == 4)) {
		ur_ip4_finish(l3, udp_len + UR_IP4_LEN);
		ur_put16(l3 + UR_IP4_LEN + 4, (uint16_t)udp_len);
	} else {
		ur_ip6_finish(l3, udp_len);
		ur_put16(l3 + UR_IP6_LEN + 4, (uint16_t)udp_len);
	}
}

#endif
