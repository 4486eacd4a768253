/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slim packets: what goes from one RC or UC QP of this host to another while nobody looks at packets is handed over in memory, so neither
 * the headers before its BTH nor an ICRC protect anything. They are not written, checked or passed on: `data` from bth_off on is the BTH,
 * the extended headers, the payload and the pad. The receiver knows which process it came from, instead of the address.
 */
#ifndef UR_SLIM_H
#define UR_SLIM_H

#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/pkt.h"

/* Bytes of the frame that it stands for: `before` are those before its BTH. */
static inline uint32_t ur_slim_wire_len(const struct ur_pkt *p, uint32_t before)
{
	return before + p->len - p->bth_off + UR_ICRC_LEN;
}

/* Those whose receiver wants to know no more of the sender than that it is the QP's peer. */
static inline bool ur_slim_serves(uint8_t service)
{
	return service == UR_RC || service == UR_UC;
}

/*
 * Parses a received one, which nobody else can write any more: fills bth, payload_off, payload_len and kind. False: it makes no sense, as
 * one that would be a bulk packet as well.
 */
static inline bool ur_slim_parse(struct ur_pkt *p)
{
	const struct ur_opcode_info *op;
	uint32_t off;

	if (ur_unlikely(p->len < (uint32_t)p->bth_off + UR_BTH_LEN || p->flags & UR_PKT_BULK))
		return false;
	ur_bth_get(p->data + p->bth_off, &p->bth);
	op = ur_opcode(p->bth.opcode);
	off = p->bth_off + UR_BTH_LEN + (uint32_t)op->ext_len;
	if (ur_unlikely(!op->name || !ur_slim_serves(p->bth.opcode & UR_SERVICE_MASK) || p->bth.tver || p->len < off + p->bth.pad))
		return false;
	p->payload_off = (uint16_t)off;
	p->payload_len = p->len - off - p->bth.pad;
	p->kind = UR_PKT_ROCE;
	return true;
}

#endif
