/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/sack.h"

#include "base/bytes.h"

enum { VERSION, FLAGS, COUNT = 2, EXPECTED = 4, BASE = 8 };

static uint64_t get_le64(const uint8_t *p)
{
	return (uint64_t)ur_get_le32(p + 4) << 32 | ur_get_le32(p);
}

static void put_le64(uint8_t *p, uint64_t v)
{
	ur_put_le32(p, (uint32_t)v);
	ur_put_le32(p + 4, (uint32_t)(v >> 32));
}

bool ur_sack_get(const struct ur_pkt *p, struct ur_sack *s)
{
	const uint8_t *bits = p->data + p->payload_off, *h = bits - UR_SACKETH_LEN;

	if (p->bth.opcode != UR_OP_SACK || p->bth.pad || h[VERSION] != UR_SACK_VERSION || h[FLAGS] || h[EXPECTED] || h[BASE])
		return false;
	*s = (struct ur_sack){.n = ur_get16(h + COUNT), .expected = ur_get24(h + EXPECTED + 1), .base = ur_get24(h + BASE + 1)};
	if (!s->n || s->n > UR_SACK_BITS || s->n % UR_SACK_STEP || p->payload_len != ur_sack_len(s))
		return false;
	for (unsigned i = 0; i < s->n / 64; i++)
		s->bits[i] = get_le64(bits + i * sizeof(s->bits[0]));
	return true;
}

uint8_t *ur_sack_put(uint8_t *at, const struct ur_sack *s)
{
	at[VERSION] = UR_SACK_VERSION;
	at[FLAGS] = 0;
	ur_put16(at + COUNT, (uint16_t)s->n);
	ur_put32(at + EXPECTED, s->expected & UR_PSN_MASK);
	ur_put32(at + BASE, s->base & UR_PSN_MASK);
	at += UR_SACKETH_LEN;
	for (unsigned i = 0; i < s->n / 64; i++, at += sizeof(s->bits[0]))
		put_le64(at, s->bits[i]);
	return at;
}
