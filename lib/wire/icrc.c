/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC. What routers may change counts as ones; the headers that hold such fields are masked in a copy on the stack. */
#include <isa-l/crc.h>

#include "base/bytes.h"
#include "wire/icrc.h"

/* State behind the eight bytes of 0xff that stand for the InfiniBand LRH. */
#define AFTER_LRH 0x2144df1cu

/* IP, UDP and the BTH up to its resv8a byte, in words; the masks are in memory order. */
#define IP4_WORDS 5
#define IP6_WORDS 7

static const union {
	uint8_t byte[IP4_WORDS * 8];
	uint64_t word[IP4_WORDS];
} mask4 = {.byte = {
		   [1] = 0xff, /* type of service */
		   [8] = 0xff, /* time to live */
		   [10] = 0xff,
		   [11] = 0xff, /* header checksum */
		   [20 + 6] = 0xff,
		   [20 + 7] = 0xff, /* UDP checksum */
		   [28 + 4] = 0xff, /* FECN, BECN, resv6 */
	   }};

static const union {
	uint8_t byte[IP6_WORDS * 8];
	uint64_t word[IP6_WORDS];
} mask6 = {.byte = {
		   [0] = 0x0f,
		   [1] = 0xff,
		   [2] = 0xff,
		   [3] = 0xff, /* traffic class and flow label */
		   [7] = 0xff, /* hop limit */
		   [40 + 6] = 0xff,
		   [40 + 7] = 0xff, /* UDP checksum */
		   [48 + 4] = 0xff, /* FECN, BECN, resv6 */
	   }};

/* What follows the masked bytes is copied behind them when it is short: one call of the kernel costs more than the copy. */
#define SHORT 64

static inline __attribute__((always_inline)) uint32_t begin(const uint8_t *l3, size_t len, const uint64_t *mask, unsigned words)
{
	union {
		uint64_t word[IP6_WORDS];
		uint8_t byte[IP6_WORDS * 8 + SHORT];
	} copy;
	size_t head = words * 8, rest = len - head;
	uint32_t crc;

	memcpy(copy.word, l3, head);
	for (unsigned i = 0; i < words; i++)
		copy.word[i] |= mask[i];
	if (rest <= SHORT) {
		memcpy(copy.byte + head, l3 + head, rest);
		return crc32_gzip_refl(AFTER_LRH, copy.byte, len);
	}
	crc = crc32_gzip_refl(AFTER_LRH, copy.byte, head);
	return crc32_gzip_refl(crc, l3 + head, rest);
}

uint32_t ur_icrc_begin(const uint8_t *l3, uint8_t ip_version, size_t len)
{
	return ip_version == 4 ? begin(l3, len, mask4.word, IP4_WORDS) : begin(l3, len, mask6.word, IP6_WORDS);
}

uint32_t ur_icrc_add(uint32_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, data, len);
}

void ur_icrc_end(uint32_t crc, uint8_t out[4])
{
	out[0] = (uint8_t)crc;
	out[1] = (uint8_t)(crc >> 8);
	out[2] = (uint8_t)(crc >> 16);
	out[3] = (uint8_t)(crc >> 24);
}
