/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of the formats pcap and pcapng, which stand in the byte order of who wrote them. */
#ifndef UR_PCAP_FORMAT_H
#define UR_PCAP_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UR_PCAP_BLOCK_MAX (16u << 20) /* bytes of a block or frame; libpcap takes no more either */

#define UR_NG_SECTION 0x0a0d0d0au
#define UR_NG_ORDER 0x1a2b3c4du

enum ur_ng_block { UR_NG_INTERFACE = 1, UR_NG_OLD_PACKET = 2, UR_NG_SIMPLE_PACKET = 3, UR_NG_PACKET = 6 };

/* Options: of any block, and of an interface. */
enum ur_ng_option { UR_NG_COMMENT = 1, UR_NG_IF_NAME = 2, UR_NG_PACKET_FLAGS = 2, UR_NG_IF_TSRESOL = 9, UR_NG_IF_TSOFFSET = 14 };

struct ur_pcap_kind {    /* of a file in pcap format, by its first four bytes */
	bool swapped;    /* it has the other byte order */
	bool nano;       /* times are in ns, not us */
	uint32_t record; /* bytes before each frame */
};

/* False when they are not those of pcap. */
static inline bool ur_pcap_kind_of(uint32_t magic, struct ur_pcap_kind *k)
{
	static const struct {
		uint32_t magic;
		struct ur_pcap_kind kind;
	} kinds[] = {
		{0xa1b2c3d4u, {.record = 16}},
		{0xa1b23c4du, {.record = 16, .nano = true}},
		{0xa1b2cd34u, {.record = 24}}, /* a Linux of the 1990s */
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		*k = kinds[i].kind;
		k->swapped = magic == __builtin_bswap32(kinds[i].magic);
		if (k->swapped || magic == kinds[i].magic)
			return true;
	}
	return false;
}

static inline uint32_t ur_pcap_get32(const void *p, bool swapped)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return swapped ? __builtin_bswap32(v) : v;
}

static inline uint16_t ur_pcap_get16(const void *p, bool swapped)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return swapped ? __builtin_bswap16(v) : v;
}

#endif
