/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP echo, destination unreachable and packet too big (RFC 792, RFC 4443) and neighbour discovery (RFC 4861: solicitation and
 * advertisement with link-layer address options): parse and build; and the addresses that multicast uses (RFC 1112, RFC 2464, RFC 4291).
 */
#ifndef UR_ICMP_H
#define UR_ICMP_H

#include "wire/frame.h"

enum ur_icmp_kind {
	UR_ICMP_OTHER, /* well formed, of no interest */
	UR_ICMP_ECHO_REQUEST4,
	UR_ICMP_ECHO_REPLY4,
	UR_ICMP_ECHO_REQUEST6,
	UR_ICMP_ECHO_REPLY6,
	UR_ICMP_NS, /* neighbour solicitation */
	UR_ICMP_NA, /* neighbour advertisement */
	UR_ICMP_UNREACHABLE, /* a RoCEv2 packet did not arrive, and the next would not either */
	UR_ICMP_TOO_LONG,    /* it did not because it is too long for a hop (RFC 1191, RFC 8201) */
};

/* The RoCEv2 packet that an error quotes. */
struct ur_icmp_quote {
	struct ur_gid src, dst;
	uint16_t bth_off, len; /* what there is of it from its BTH on, perhaps nothing; counted from p->data */
};

/* A neighbour solicitation or advertisement. */
struct ur_nd {
	struct ur_gid target;
	bool has_lladdr; /* the source (NS) or target (NA) link-layer address option is there */
	struct ur_mac lladdr;
	bool router, solicited, override; /* NA only */
};

/* Why packets do not arrive, in the words of "destination unreachable". */
enum ur_icmp_why {
	UR_ICMP_NO_WAY,     /* no route, or no such host */
	UR_ICMP_NO_PORT,    /* nobody has the UDP port */
	UR_ICMP_PROHIBITED, /* a filter */
};

/* As much of a quoted packet as is looked at: from the BTH to the communication id of a CM message's sender. */
#define UR_QUOTE_LEN 48

/* The error that says a packet did not reach `dst`, which anybody can send in another's name. */
struct ur_undelivered {
	struct ur_gid dst;
	struct ur_gid from;   /* who says so; zero: not known */
	enum ur_icmp_why why; /* where hop_mtu is 0 */
	uint16_t hop_mtu;     /* it was too long for a hop, which carries this number of IP bytes; 0: nothing gets there at present */
	const uint8_t *quote; /* the packet's first bytes from the BTH on, perhaps none */
	unsigned len;
};

struct ur_icmp {
	enum ur_icmp_kind kind;
	uint8_t type, code;
	uint16_t id, seq;            /* echo */
	uint16_t data_off, data_len; /* echo: the data, counted from p->data */
	struct ur_nd nd;             /* NS, NA */
	struct ur_icmp_quote quote;  /* UNREACHABLE, TOO_LONG */
	uint16_t hop_mtu;            /* TOO_LONG */
};

/*
 * Reads a packet of kind UR_PKT_ICMP4 or UR_PKT_ICMP6. False when it is cut short, its checksum is wrong, or it breaks the rules of
 * RFC 4861, 7.1 (hop limit 255, code 0, target not multicast, options that fit, ...); the caller counts UR_C_DROP_ICMP. An error about
 * anything but a RoCEv2 packet is of no interest.
 */
bool ur_icmp_parse(const struct ur_pkt *p, struct ur_icmp *m);
/* IP bytes that a hop carries which says `told` (RFC 1191, 4; RFC 4443, 3.2); 0: no hop may say that (RFC 791, RFC 8201, 4). */
uint16_t ur_icmp_hop_mtu(bool v4, uint32_t told);
/* By the code of an error of that type. */
enum ur_icmp_why ur_icmp_why(bool v4, uint8_t code);
/*
 * Of the message that payload_off and payload_len enclose, with the pseudo header of RFC 8200 in IPv6: 0 when its checksum field holds the
 * right value; that value when it holds zero. IGMP's is the same.
 */
uint16_t ur_icmp_checksum(const struct ur_pkt *p);

/*
 * Makes `out` the reply to the echo request `in` (which ur_icmp_parse accepted); `out` may be `in`. The addresses are swapped, so the
 * request must have been sent to an address of ours, not to a group. Data that does not fit `out->room` is cut off (RFC 1122, 3.2.2.6).
 */
void ur_icmp_echo_reply(struct ur_pkt *out, const struct ur_pkt *in, const struct ur_mac *own);

/*
 * Writes a whole frame into `p` (room for 90 bytes): `kind` is UR_ICMP_NS or UR_ICMP_NA, hop limit 255. nd->lladdr goes into the
 * source (NS) or target (NA) link-layer address option when has_lladdr is set.
 */
void ur_nd_build(struct ur_pkt *p, enum ur_icmp_kind kind, const struct ur_mac *eth_src, const struct ur_mac *eth_dst, uint16_t vlan,
		 const struct ur_gid *sip, const struct ur_gid *dip, const struct ur_nd *nd);

/* ff02::1:ff00:0 with the last 24 bits of the address: the group at which the owner of an IPv6 address hears solicitations. */
struct ur_gid ur_nd_solicited_node(const struct ur_gid *ip);

/* The MAC address of an IPv4 (01:00:5e and 23 bits) or IPv6 (33:33 and 32 bits) group. */
struct ur_mac ur_mcast_mac(const struct ur_gid *group);

#endif
