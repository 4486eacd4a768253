/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC. What routers may change counts as ones; the headers that hold such fields are masked in a copy on the stack. */
#include "base/bytes.h"
#include "wire/crc/crc32.h"
#include "wire/crc/icrc.h"
#include "wire/frame.h"
#include "wire/ip.h"

/* State after the eight bytes of 0xff that stand for the InfiniBand LRH. */
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

/* What follows the masked bytes is copied after them when it is short: one call of the kernel costs more than the copy. */
#define SHORT 64

static inline __attribute__((always_inline)) uint32_t crc_masked(const uint8_t *l3, size_t len, const uint64_t *mask, unsigned words)
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
		return ur_crc32(AFTER_LRH, copy.byte, len);
	}
	crc = ur_crc32(AFTER_LRH, copy.byte, head);
	return ur_crc32(crc, l3 + head, rest);
}

uint32_t ur_icrc_begin(const uint8_t *l3, uint8_t ip_version, size_t len)
{
	return ip_version == 4 ? crc_masked(l3, len, mask4.word, IP4_WORDS) : crc_masked(l3, len, mask6.word, IP6_WORDS);
}

union headers {
	uint64_t word[(UR_IP6_LEN + UR_UDP_LEN + SHORT) / 8];
	uint8_t byte[UR_IP6_LEN + UR_UDP_LEN + SHORT]; /* and what follows them */
};

/* The masked IP and UDP headers at `l3`, were they of a datagram of that length; returns how many bytes. */
static size_t copy_masked(union headers *to, const uint8_t *l3, uint8_t ip_version, uint32_t udp_len)
{
	const uint64_t *mask = ip_version == 4 ? mask4.word : mask6.word;
	const size_t len = (ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN) + UR_UDP_LEN;

	to->word[len / 8] = 0;
	memcpy(to->byte, l3, len);
	ur_udp_put_lengths(to->byte, ip_version, udp_len);
	for (unsigned i = 0; i < (len + 7) / 8; i++)
		to->word[i] |= mask[i];
	return len;
}

uint32_t ur_icrc_headers(const uint8_t *l3, uint8_t ip_version, uint32_t udp_len)
{
	union headers copy;
	const size_t len = copy_masked(&copy, l3, ip_version, udp_len);

	return ur_crc32(AFTER_LRH, copy.byte, len);
}

/* The same from the fields of a bare packet. */
static size_t put_masked(uint8_t *to, const struct ur_pkt *p, uint32_t udp_len, uint16_t id)
{
	size_t len = UR_IP4_LEN;

	if (ur_likely(p->ip_version == 4)) {
		ur_put32(to, 0x45ffu << 16 | (uint16_t)(udp_len + UR_IP4_LEN));
		ur_put32(to + 4, (uint32_t)id << 16 | 0x4000);
		ur_put32(to + 8, 0xff11ffff);
		memcpy(to + 12, p->src.raw + 12, 4);
		memcpy(to + 16, p->dst.raw + 12, 4);
	} else {
		len = UR_IP6_LEN;
		ur_put32(to, 0x6fffffff);
		ur_put32(to + 4, udp_len << 16 | 0x11ff);
		memcpy(to + 8, p->src.raw, 16);
		memcpy(to + 24, p->dst.raw, 16);
	}
	ur_put32(to + len, (uint32_t)p->sport << 16 | UR_ROCE_PORT);
	ur_put32(to + len + 4, udp_len << 16 | 0xffff);
	return len + UR_UDP_LEN;
}

static size_t put_headers(union headers *to, const struct ur_pkt *p, uint32_t udp_len, uint16_t id)
{
	size_t len;

	if (p->flags & UR_PKT_BARE)
		return put_masked(to->byte, p, udp_len, id);
	len = copy_masked(to, p->data + p->l3_off, p->ip_version, udp_len);
	if (p->ip_version == 4)
		ur_put16(to->byte + 4, id);
	return len;
}

uint32_t ur_icrc_begin_of(const struct ur_pkt *p, const uint8_t *bth, size_t len, uint32_t udp_len, uint16_t id)
{
	union headers copy;
	size_t head = put_headers(&copy, p, udp_len, id), near = len < SHORT ? len : SHORT;
	uint32_t crc;

	ur_copy_few(copy.byte + head, bth, near);
	copy.byte[head + 4] = 0xff; /* FECN, BECN, resv6 */
	crc = ur_crc32(AFTER_LRH, copy.byte, head + near);
	return near < len ? ur_crc32(crc, bth + near, len - near) : crc;
}

/* --- what a change of the IP header does: the CRC is linear, so it depends on the change and its distance from the end alone --- */

#define POLYNOMIAL 0xedb88320u

/* Product of two polynomials modulo that of the CRC; bit 31 is the coefficient of x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a >> 31)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
	}
	return product;
}

/* x^(8 * 2^i) and their inverses: a byte of zeros multiplies the state by x^8. */
static const uint32_t ahead[] = {0x00800000, 0x00008000, 0xedb88320, 0xb1e6b092, 0xa06a2517, 0xed627dae, 0x88d14467, 0xd7bbfe6a,
				 0xec447f11, 0x8e7ea170, 0x6427800e, 0x4d47bae0, 0x09fe548f, 0x83852d0f, 0x30362f1a, 0x7b5a9cc3};
static const uint32_t back[] = {0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226,
				0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5};

static uint32_t shift(uint32_t crc, const uint32_t *powers, size_t bytes)
{
	for (unsigned i = 0; bytes && i < ur_array_size(ahead); i++, bytes >>= 1)
		if (bytes & 1)
			crc = multiply(crc, powers[i]);
	return crc;
}

uint32_t ur_icrc_change(uint16_t bits, unsigned at, size_t covered)
{
	/* To read a byte is to XOR it into the low end of the state and to go one byte ahead. */
	return shift(__builtin_bswap16(bits), ahead, covered - at);
}

uint32_t ur_icrc_state_change(uint32_t difference, size_t at, size_t covered)
{
	return shift(difference, back, covered - at);
}

uint32_t ur_icrc_ahead(size_t bytes)
{
	return shift(1u << 31, ahead, bytes);
}

uint32_t ur_icrc_carry(uint32_t difference, uint32_t power)
{
	return multiply(difference, power);
}

bool ur_icrc_explain(uint32_t difference, unsigned at, size_t covered, uint16_t *bits)
{
	uint32_t state = ur_icrc_state_change(difference, at, covered);

	*bits = __builtin_bswap16((uint16_t)state);
	return state >> 16 == 0;
}

bool ur_icrc_wrong_bit(uint32_t difference, size_t covered, uint32_t *byte, unsigned *bit)
{
	uint32_t state = difference;

	if (state && !(state & (state - 1))) {
		*bit = (unsigned)__builtin_ctz(state);
		*byte = (uint32_t)covered + *bit / 8;
		*bit %= 8;
		return true;
	}
	for (size_t at = covered; at--;) {
		for (unsigned i = 0; i < 8; i++)
			state = state >> 31 ? (state ^ POLYNOMIAL) << 1 | 1 : state << 1;
		if (!state || state > 0xff || state & (state - 1))
			continue;
		*byte = (uint32_t)at;
		*bit = (unsigned)__builtin_ctz(state);
		return true;
	}
	return false;
}

uint32_t ur_icrc_add(uint32_t crc, const void *data, size_t len)
{
	return ur_crc32(crc, data, len);
}

void ur_icrc_end(uint32_t crc, uint8_t out[4])
{
	out[0] = (uint8_t)crc;
	out[1] = (uint8_t)(crc >> 8);
	out[2] = (uint8_t)(crc >> 16);
	out[3] = (uint8_t)(crc >> 24);
}
