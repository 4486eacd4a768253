/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of pcapng (draft-ietf-opsawg-pcapng). They stand in the byte order of the machine that wrote them. */
#ifndef UR_NG_FORMAT_H
#define UR_NG_FORMAT_H

#include <string.h>

#include "base/base.h"

#define UR_NG_ETHERNET 1        /* type of link, as tcpdump.org numbers them */
#define UR_NG_ORDER 0x1a2b3c4du /* in each section's block: shows its byte order */

enum ur_ng_block_type {
	UR_NG_SECTION = 0x0a0d0d0a, /* reads the same in both orders */
	UR_NG_INTERFACE = 1,
	UR_NG_OLD_PACKET = 2,
	UR_NG_SIMPLE_PACKET = 3,
	UR_NG_STATISTICS = 5,
	UR_NG_PACKET = 6,
};

enum ur_ng_option { /* of any block; of a section, an interface, a packet, and statistics */
		    UR_NG_COMMENT = 1,
		    UR_NG_PROGRAM = 4,
		    UR_NG_IF_NAME = 2,
		    UR_NG_IF_TSRESOL = 9,
		    UR_NG_IF_TSOFFSET = 14,
		    UR_NG_PACKET_FLAGS = 2,
		    UR_NG_PACKET_DROPCOUNT = 4,
		    UR_NG_IFDROP = 5,
};

struct ur_ng_frame {
	ur_time when;
	const uint8_t *data;
	uint32_t have, len; /* bytes recorded, and on the wire */
	uint32_t interface; /* counted from 0; 0 in pcap */
	uint32_t options;   /* where its block's options begin in the block; 0: there is no place for any */
	uint16_t link;      /* its type */
	uint8_t direction;  /* 1: it came, 2: it left, 0: unknown */
	bool swapped;       /* the block has the other byte order */
};

static inline uint16_t ur_ng_get16(const uint8_t *p, bool swapped)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t ur_ng_get32(const uint8_t *p, bool swapped)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return swapped ? __builtin_bswap32(v) : v;
}

/* What stands in a block takes whole words of 32 bits. */
static inline uint32_t ur_ng_padded(uint32_t n)
{
	return (n + 3) & ~3u;
}

#endif
