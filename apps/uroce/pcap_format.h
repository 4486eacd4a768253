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

/* A file whose version, behind the first four bytes, is 2.3 or less may have the two lengths of a frame the other way round. */
static inline bool ur_pcap_is_crossed(const uint8_t version[4], bool swapped)
{
	return ur_pcap_get16(version, swapped) == 2 && ur_pcap_get16(version + 2, swapped) <= 3;
}

/* In such a file: the bytes recorded are not more than those on the wire. */
static inline void ur_pcap_uncross(uint32_t *have, uint32_t *len)
{
	const uint32_t more = *have;

	if (more <= *len)
		return;
	*have = *len;
	*len = more;
}

/* What stands in a block takes whole words of 32 bits. */
static inline uint32_t ur_ng_padded(uint32_t n)
{
	return (n + 3) & ~3u;
}

struct ur_ng_options {     /* of a block of pcapng */
	const uint8_t *at; /* what has not been looked at, `n` bytes */
	uint32_t n;
	const uint8_t *value; /* of the newest option, `len` bytes */
	uint16_t code, len;
};

/* False when there is no other, or it is longer than what is left. */
static inline bool ur_ng_next_option(struct ur_ng_options *o, bool swapped)
{
	uint32_t all;

	if (o->n < 4)
		return false;
	o->code = ur_pcap_get16(o->at, swapped);
	o->len = ur_pcap_get16(o->at + 2, swapped);
	all = 4 + ur_ng_padded(o->len);
	if (!o->code || all > o->n)
		return false;
	o->value = o->at + 4;
	o->at += all;
	o->n -= all;
	return true;
}

#endif
