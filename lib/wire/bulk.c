/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/bulk.h"

#include "base/touch.h"
#include "wire/frame.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/path.h"

uint64_t ur_bulk_wire_len(const struct ur_pkt *p)
{
	const struct ur_bulk *b = ur_bulk_of(p);
	uint64_t payload = b->len + (-b->len & 3), ext = ur_opcode(p->bth.opcode)->ext_len;

	if (p->bth.opcode == UR_OP_READ_RESP_ONLY && b->npkts > 1)
		ext *= 2; /* the first and the last have one */
	return (uint64_t)b->npkts * (b->hdr_len + UR_BTH_LEN + UR_ICRC_LEN) + payload + ext;
}

static bool adds_up(const struct ur_bulk *b)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < b->nseg; i++) {
		if (b->seg[i].len > b->len)
			return false;
		sum += b->seg[i].len;
	}
	return sum == b->len;
}

bool ur_bulk_parse(struct ur_pkt *p)
{
	const struct ur_bulk *b = ur_bulk_of(p);
	const struct ur_opcode_info *op;

	if (p->len < ur_bulk_bytes(0) || b->nseg > UR_BULK_SEGS || p->len != ur_bulk_bytes(b->nseg))
		return false;
	if (!b->npkts || b->npkts > UR_BULK_PKTS || b->hdr_len > UR_PATH_HDR_MAX || !b->len || b->len > UR_BULK_LEN || !adds_up(b))
		return false;
	if (b->token_at >= UR_TOKENS || !b->token)
		return false;
	ur_bth_get(b->headers, &p->bth);
	op = ur_opcode(p->bth.opcode);
	if (!op->name || (p->bth.opcode & UR_SERVICE_MASK) != UR_RC || !(op->flags & UR_OPF_PAYLOAD) || op->flags & UR_OPF_ATOMIC_WRITE)
		return false;
	p->kind = UR_PKT_ROCE;
	p->bth_off = 0;
	p->payload_len = b->len;
	return true;
}

/* Packets are copied twice, so that a program may send to where it sends from. */
static bool copy_apart(uint8_t *to, const uint8_t *from, size_t n)
{
	return (to + n <= from || from + n <= to) && ur_touch_copy(to, from, n);
}

bool ur_bulk_copy(const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from, unsigned nfrom)
{
	size_t at = 0, done = 0;

	while (nfrom && nto) {
		const size_t room = to->len - at, left = from->len - done, n = room < left ? room : left;

		if (!copy_apart((uint8_t *)to->at + at, (const uint8_t *)(uintptr_t)from->at + done, n))
			return false;
		at += n;
		done += n;
		if (at == to->len)
			to++, nto--, at = 0;
		if (done == from->len)
			from++, nfrom--, done = 0;
	}
	return !nfrom;
}
