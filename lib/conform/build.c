/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that scripts send: complete and correct, except for the errors that a step specifies. */
#include "conform/internal.h"

static const struct ur_cf_place nowhere = {.va = 0x10000, .rkey = 0xdead5eedu, .len = UR_CF_REGION_LEN};

static struct ur_cf_place place_in_region(const struct ur_cf_run *r, uint8_t region)
{
	struct ur_cf_place p = nowhere;

	if (region == UR_CF_OURS)
		return (struct ur_cf_place){UR_CF_OUR_VA, UR_CF_OUR_RKEY, UR_CF_REGION_LEN};
	if (r->offers && region == UR_CF_WINDOW_OTHER) {
		p = r->place[UR_CF_WINDOW];
		p.rkey ^= 0x80; /* the tag is the low byte */
	} else if (r->offers && region <= UR_CF_OFFERED) {
		p = r->place[region < UR_CF_OFFERED ? region : UR_CF_RW];
		if (region == UR_CF_UNKNOWN)
			p.rkey ^= 0x00a5a500u;
	}
	return p;
}

static void put_ext(const struct ur_cf_run *r, const struct ur_cf_step *s, const struct ur_opcode_info *op, uint8_t *ext)
{
	const struct ur_cf_place at = place_in_region(r, s->region);
	const uint64_t va = at.va + (uint64_t)(int64_t)(int32_t)s->off;
	const uint32_t qkey = s->flags & UR_CF_BAD_QKEY ? r->conn.qkey ^ 0x1111 : r->conn.qkey;

	memset(ext, 0, op->ext_len);
	if (op->flags & UR_OPF_XRCETH)
		ur_xrceth_put(ext, s->srq == UR_CF_SRQ_UNKNOWN ? r->srqn[UR_CF_SRQ] ^ 0x5a5a5a : r->srqn[s->srq]);
	if (op->flags & UR_OPF_DETH)
		ur_deth_put(ext + op->off_deth, &(struct ur_deth){.qkey = qkey, .sqpn = r->conn.qpn});
	if (op->flags & UR_OPF_FETH)
		ur_feth_put(ext + op->off_feth, &(struct ur_feth){.placement = (uint8_t)s->x, .selectivity = (uint8_t)s->y});
	if (op->flags & UR_OPF_RETH)
		ur_reth_put(ext + op->off_reth,
			    &(struct ur_reth){.va = va, .rkey = at.rkey, .len = s->flags & UR_CF_HUGE ? 0x80000004u : s->dma_len});
	if (op->flags & UR_OPF_ATOMICETH)
		ur_atomiceth_put(ext + op->off_atomiceth,
				 &(struct ur_atomiceth){.va = va, .rkey = at.rkey, .swap_add = s->x, .compare = s->y});
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(ext + op->off_aeth, &(struct ur_aeth){.syndrome = s->code, .msn = (uint32_t)s->msn & UR_PSN_MASK});
	if (op->flags & UR_OPF_IETH)
		ur_put32(ext + op->off_ieth, at.rkey);
}

static void put_payload(const struct ur_cf_step *s, uint8_t *to)
{
	if (s->flags & UR_CF_ADVERT) {
		memset(to, 0, s->len);
		if (!s->dma_len)
			return;
		ur_put64(to, UR_CF_OUR_VA);
		ur_put32(to + 8, UR_CF_OUR_RKEY);
		ur_put32(to + 12, s->dma_len);
		return;
	}
	for (unsigned i = 0; i < s->len; i++)
		to[i] = s->flags & UR_CF_ZERO ? 0 : ur_cf_pattern(s->fill, s->at + i);
}

/* Headers before the BTH, and the fields that ur_frame_finish wants. */
static uint8_t *put_path(const struct ur_path *path, struct ur_pkt *p)
{
	memcpy(p->data, path->hdr, path->hdr_len);
	p->kind = UR_PKT_ROCE;
	p->ip_version = path->ip_version;
	p->l3_off = path->l3_off;
	p->l4_off = (uint16_t)(path->hdr_len - UR_UDP_LEN);
	p->bth_off = path->hdr_len;
	p->src = path->sgid;
	p->dst = path->dgid;
	ur_bth_put(p->data + p->bth_off, &p->bth);
	p->len = p->bth_off + UR_BTH_LEN;
	return p->data + p->len;
}

void ur_cf_build(struct ur_cf_run *r, const struct ur_cf_step *s, struct ur_pkt *p)
{
	const struct ur_opcode_info *op = ur_opcode(s->opcode);
	const unsigned pad = -s->len & 3u;
	uint16_t pkey = s->flags & UR_CF_BAD_PKEY ? 0x9234 : UR_PKEY_DEFAULT;
	uint8_t *ext;

	if (s->flags & UR_CF_LIMITED_PKEY)
		pkey = 0x7fff;
	p->bth = (struct ur_bth){.opcode = s->opcode,
				 .pad = (uint8_t)(s->flags & UR_CF_BAD_PAD ? 3 : pad),
				 .tver = s->flags & UR_CF_BAD_TVER ? 5 : 0,
				 .migreq = true,
				 .ackreq = s->flags & UR_CF_ACKREQ,
				 .pkey = pkey,
				 .dqpn = s->flags & UR_CF_BAD_QPN ? r->conn.dqpn ^ 0x5a5 : r->conn.dqpn,
				 .psn = ur_cf_psn(r, s)};
	ext = put_path(s->flags & UR_CF_CE ? &r->ce_path : &r->path, p);
	put_ext(r, s, op, ext);
	put_payload(s, ext + op->ext_len);
	p->len += op->ext_len + s->len;
	p->payload_off = (uint16_t)(p->len - s->len);
	p->payload_len = s->len;
	ur_frame_finish(p, pad);
	if (s->flags & UR_CF_BAD_ICRC)
		p->tail[p->tail_len - 1] ^= 0x10;
}

void ur_cf_build_mad(struct ur_cf_run *r, const uint8_t *mad, struct ur_pkt *p)
{
	const uint8_t opcode = UR_UD | UR_OP_SEND_ONLY;
	uint8_t *ext;

	p->bth = (struct ur_bth){.opcode = opcode, .migreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = 1, .psn = r->mad_psn++ & UR_PSN_MASK};
	ext = put_path(&r->path, p);
	ur_deth_put(ext, &(struct ur_deth){.qkey = UR_GSI_QKEY, .sqpn = 1});
	p->len += ur_opcode(opcode)->ext_len;
	memcpy(p->data + p->len, mad, UR_MAD_LEN);
	p->payload_off = (uint16_t)p->len;
	p->payload_len = UR_MAD_LEN;
	p->len += UR_MAD_LEN;
	ur_frame_finish(p, 0);
}
