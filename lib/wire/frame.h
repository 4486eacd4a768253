/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/wire: bytes on the wire. Parse and build, as pure functions without state: frame.h for whole frames, hdr.h for BTH and
 * the extended headers, opcode.h for the opcode table, icrc.h, arp.h, icmp.h (echo and neighbour discovery), and cm_msg.h.
 */
#ifndef UR_FRAME_H
#define UR_FRAME_H

#include "base/counters.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/path.h"
#include "wire/pkt.h"

#define UR_ETH_LEN 14
#define UR_VLAN_LEN 4
#define UR_IP4_LEN 20
#define UR_IP6_LEN 40
#define UR_UDP_LEN 8

enum ur_ethertype {
	UR_ETHERTYPE_IP4 = 0x0800,
	UR_ETHERTYPE_ARP = 0x0806,
	UR_ETHERTYPE_VLAN = 0x8100,
	UR_ETHERTYPE_IP6 = 0x86dd,
	UR_ETHERTYPE_ROCE_V1 = 0x8915,
};

/*
 * Parses a received frame (p->data, p->len) and sets the parsed fields; trims padding that Ethernet added. Checks everything up
 * to and including the extended headers' length, the pad count and, for RoCEv2, the ICRC.
 * Returns true when the frame is well formed (p->kind says what it is, UR_PKT_OTHER included) or false after raising one drop
 * counter in *c. IPv4 fragments are drops. It does not ask whether the addresses are ours.
 *
 * Of a train that came in with its headers (p->stride) it checks and sets these alone: p->place, but not p->bth and what follows it.
 */
bool ur_frame_parse(struct ur_pkt *p, struct ur_counters *c);

/*
 * Begins a frame other than RoCEv2: the Ethernet header (a VLAN tag when `vlan` is not 0), `len` after it, kind, vlan and l3_off, no
 * segments, no tail, no flags.
 */
void ur_frame_start(struct ur_pkt *p, enum ur_pkt_kind kind, const struct ur_mac *smac, const struct ur_mac *dmac, uint16_t vlan,
		    enum ur_ethertype type);

/*
 * Completes a RoCEv2 packet whose headers (from a ur_path, BTH, extended headers), inline payload and segments are in place and
 * whose bth_off, l3_off and ip_version are set: IP and UDP lengths, IPv4 header checksum, pad bytes and ICRC in p->tail.
 * `pad` is 0 to 3 and already in the BTH.
 */
void ur_frame_finish(struct ur_pkt *p, unsigned pad);

/* The IP header that a bare packet (UR_PKT_BARE), parsed or not, had, as far as that is known: 20 or 40 bytes, by its ip_version. */
void ur_frame_put_ip(const struct ur_pkt *p, uint8_t *to);
/* Finds out the IPv4 identification of a bare packet, as ur_frame_parse does: sets `kind`, `place` and `may_fragment`. */
void ur_frame_find_id(struct ur_pkt *p);
/* A frame of a bare packet's headers, with the Ethernet addresses zero: what stands before its BTH. Returns how many bytes, at most 62. */
unsigned ur_frame_put_headers(const struct ur_pkt *p, uint8_t *to);

/*
 * Fills a path's template: Ethernet (a VLAN tag when `vlan` is not 0), IP, UDP to port 4791. The IP version follows from the GIDs.
 * `ready` and `local` are left to the caller.
 */
void ur_path_build(struct ur_path *path, const struct ur_mac *smac, const struct ur_mac *dmac, uint16_t vlan, const struct ur_gid *sgid,
		   const struct ur_gid *dgid, uint8_t tclass, uint8_t hop_limit, uint32_t flow_label, uint16_t sport);
void ur_path_set_dmac(struct ur_path *path, const struct ur_mac *dmac);

/*
 * UDP source ports as the field chooses them (ibv_flow_label_to_udp_sport in verbs.h): from a flow label, or from the two QPNs
 * when the label is 0.
 */
uint16_t ur_udp_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn);

/* IPv4 in GID form? */
static inline bool ur_gid_is_v4(const struct ur_gid *g)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(g->raw, prefix, 12) == 0;
}

static inline bool ur_gid_eq(const struct ur_gid *a, const struct ur_gid *b)
{
	return memcmp(a->raw, b->raw, 16) == 0;
}

static inline bool ur_gid_is_zero(const struct ur_gid *g)
{
	static const struct ur_gid zero;

	return ur_gid_eq(g, &zero);
}

static inline bool ur_gid_is_mcast(const struct ur_gid *g)
{
	return g->raw[0] == 0xff || (ur_gid_is_v4(g) && (g->raw[12] & 0xf0) == 0xe0);
}

/* `addr` is in network byte order. */
static inline struct ur_gid ur_gid_from_v4(uint32_t addr)
{
	struct ur_gid g = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(g.raw + 12, &addr, 4);
	return g;
}

/* The same of an address as it lies in a header. */
static inline struct ur_gid ur_gid_from_v4_at(const uint8_t *at)
{
	uint32_t addr;

	memcpy(&addr, at, 4);
	return ur_gid_from_v4(addr);
}

#define UR_GID_TEXT 40
#define UR_IP_TEXT 46 /* INET6_ADDRSTRLEN */

/* gid.c: all 16 bytes, as the kernel shows a GID: "fe80:0000:0000:0000:5054:00ff:fe12:3456". Returns `text`. */
const char *ur_gid_text(const struct ur_gid *g, char text[UR_GID_TEXT]);
/* The IP address that a GID stands for: "10.0.0.1", "fd00::1". Returns `text`. */
const char *ur_gid_ip(const struct ur_gid *g, char text[UR_IP_TEXT]);

/* Puts a VLAN tag into a frame, whose beginning moves forward for it: returns where it is now. */
static inline uint8_t *ur_vlan_insert(uint8_t *frame, uint16_t tpid, uint16_t tci)
{
	uint8_t *to = memmove(frame - UR_VLAN_LEN, frame, 12);

	ur_put16(to + 12, tpid);
	ur_put16(to + 14, tci);
	return to;
}

/* RFC 1071 checksum of `len` bytes on top of `sum` (unfolded); the header field itself must be zero or included to verify. */
uint32_t ur_csum_add(uint32_t sum, const void *data, size_t len);
/* The complement, in network byte order when stored with memcpy. */
static inline uint16_t ur_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

#endif
