/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A recorded frame into a packet. Unlike ur_frame_parse it looks through more encapsulations, goes on with what a recorder has cut short,
 * and says what is wrong instead of counting it.
 */
#ifndef UR_AN_DISSECT_H
#define UR_AN_DISSECT_H

#include "analyze/analyze.h"
#include "analyze/frame/mirror.h"

enum an_icrc { AN_ICRC_OK, AN_ICRC_WRONG, AN_ICRC_UNKNOWN };

struct an_pkt {
	uint32_t frame;
	ur_time when;
	bool roce;    /* to UDP port 4791 */
	bool cut;     /* not all of it was recorded */
	bool ext_cut; /* not even the headers after the BTH: `ext` is nothing but zeros. an_dissect does not give such packets */
	enum an_icrc icrc;
	bool bad_opcode;
	uint8_t strange;   /* enum ur_an_strange: what it is instead of RoCEv2 */
	const char *wrong; /* what makes it no packet that a receiver takes; NULL */
	const char *why;   /* of a wrong ICRC */
	uint32_t diff;     /* and what it differs by from the right one */
	uint8_t ip_version, tos;
	uint16_t sport;
	struct ur_gid src, dst;
	struct ur_bth bth;
	const struct ur_opcode_info *op;
	const uint8_t *l3, *udp; /* the IP header, and udp_len bytes after the UDP header; NULL when cut, or with options */
	uint32_t udp_len;
	/* where everything lies, as far as it was recorded, for code that changes it: of the innermost packet */
	const uint8_t *eth;         /* NULL when it has no Ethernet header, or other headers than tags between that and the IP header */
	const uint8_t *ip;          /* ip_have bytes of the packet were recorded, of ip_len on the wire */
	const uint8_t *l4, *bth_at; /* UDP header and BTH; NULL when they are not all there */
	uint32_t ip_have, ip_len;
	const uint8_t *ext;     /* after the BTH: op->ext_len bytes are there */
	const uint8_t *payload; /* payload_len bytes of it, unless `cut` */
	uint32_t payload_len;
	/*
	 * Of a train of which the recorder kept only the beginning: packets after this one that are not here, the most that they can be,
	 * and the bytes after the UDP header of all and of the last of them.
	 */
	uint32_t behind, most, rest, tail;
	struct an_stamp mirror; /* of the switch that mirrored it */
};

/* Of what stands at p->eth: the bytes that were recorded; 0 when there is no Ethernet header. */
static inline uint32_t an_eth_have(const struct ur_an_frame *f, const struct an_pkt *p)
{
	const uint32_t have = f->have < f->len ? f->have : f->len, at = p->eth ? (uint32_t)(p->eth - f->data) : have;

	return have > at ? have - at : 0;
}

static inline uint64_t an_mac(const uint8_t *at)
{
	return (uint64_t)ur_get16(at) << 32 | ur_get32(at + 2);
}

/* True when `p` is a RoCEv2 packet whose BTH and extended headers can be read, or one with something wrong in it. */
bool an_dissect(const struct ur_an_frame *f, struct an_pkt *p);

/* A packet that an_dissect refuses because only its BTH was recorded. Makes it one with `ext_cut`; false when it is none. */
bool an_bth_alone(struct an_pkt *p);

/*
 * The ICRC of a packet without what stands between its IP header and UDP, which is put in and taken out on the way: `len` bytes follow the
 * UDP header at `l4`, with the ICRC. `last_hop` is its destination where a segment routing header has another one; NULL: that of the
 * header.
 */
uint32_t an_icrc_bare(const uint8_t *l3, uint8_t version, const uint8_t *last_hop, const uint8_t *l4, uint32_t len);

/* The ICRC of the `covered` bytes from the IP header on, as the word that ur_get_le32 reads. */
uint32_t an_icrc(const uint8_t *l3, uint8_t version, size_t covered);

static inline bool an_is_answer(const struct an_pkt *p)
{
	return p->op->flags & UR_OPF_RESPONSE;
}

#endif
