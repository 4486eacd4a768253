/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from the opcode table. The attacker knows what is on the wire: numbers of QPs and packets, keys and addresses. Each field is
 * right, nearly right or wrong as the input says.
 */
#include "nic.h"
#include "transport/state/qp_priv.h"
#include "wire/msg/icmp.h"
#include "wire/sack.h"

/* What may be wrong about a packet, a bit each. */
enum lie {
	LIE_SOURCE = 1,
	LIE_PKEY = 2,
	LIE_ICRC = 4,
	LIE_QPN = 8,
	LIE_VERSION = 16,
	LIE_MAC = 32,
	LIE_LENGTH = 64,
	LIE_SERVICE = 128,
};

static uint8_t choose_opcode(struct fuzz *f, const struct lane *l, uint8_t lies)
{
	static const uint8_t services[] = {
		[IBV_QPT_RC] = UR_RC, [IBV_QPT_UC] = UR_UC, [IBV_QPT_UD] = UR_UD, [IBV_QPT_XRC_SEND] = UR_XRC, [IBV_QPT_XRC_RECV] = UR_XRC};
	uint8_t v = take(&f->in), op;

	if (lies & LIE_SERVICE)
		return v;
	if (v >= 0xf8)
		return UR_OP_CNP;
	if (v >= 0xf0)
		return UR_OP_SACK;
	for (op = v & UR_OP_MASK; !ur_opcode(services[l->type] | op)->name; op = (op + 1) & UR_OP_MASK)
		;
	return services[l->type] | op;
}

/* The number that comes next, mostly. */
static uint32_t choose_psn(struct fuzz *f, const struct lane *l, bool response)
{
	uint8_t v = take(&f->in);
	uint32_t next = response ? l->qp->req.una : l->qp->resp.epsn;

	if (v < 0xa0)
		return next;
	if (v < 0xf0)
		return (next + v - 0xc8) & 0xffffff;
	return take16(&f->in) << 8 | v;
}

static uint32_t choose_key(struct fuzz *f, const struct key **out)
{
	static const uint8_t keys[] = {R_OPEN,     R_OPEN,     R_READ,    R_WRITE, R_CELLS, R_CELLS,  R_LOCAL,      R_WINDOW,
				       R_VOLATILE, R_VOLATILE, R_FOREIGN, R_BOARD, K_SLOTS, K_WINDOW, K_WINDOW + 1, K_WINDOW + 1};
	uint8_t v = take(&f->in);
	const struct key *k = &f->side[VICTIM].key[v & 0x40 ? f->focus_key : keys[v % ur_array_size(keys)]];

	*out = k;
	if (v < 0xd0)
		return k->rkey;
	return v & 0x20 ? k->stale : k->rkey ^ 1u << (v & 31);
}

/* Mostly what fits into `room`, what is left of a region; then one byte more or less, or any other. */
static uint32_t choose_length(struct fuzz *f, uint32_t room)
{
	static const uint32_t lengths[] = {0, 1, 64, 256, 257, 512, 1024, 0x80000000, 0xffffffff, 0x7fffffff, 0x10000};
	uint8_t v = take(&f->in);

	if (v < 0xa0)
		return ur_min_u32(v * 2u, room);
	return v < 0xe0 ? room + (v & 3) - 1 : lengths[(v & 31) % ur_array_size(lengths)];
}

/* Mostly within the region; otherwise near its end, before it, or where numbers wrap. */
static uint64_t choose_address(struct fuzz *f, const struct key *k)
{
	uint8_t v = take(&f->in), how = take(&f->in);

	if (how < 0x80)
		return k->iova + v * (how < 0x20 ? 1u : 8u) % (k->len ? k->len : 1);
	if (how < 0xd0)
		return k->iova + k->len - v;
	return how < 0xe8 ? k->iova - v : k->iova + k->len - v + ((uint64_t)(how & 7) << 61);
}

static void put_target(struct fuzz *f, uint8_t *h, const struct ur_opcode_info *op, uint32_t *len)
{
	const struct key *k;
	uint32_t rkey = choose_key(f, &k);
	uint64_t va = choose_address(f, k);

	if (op->flags & UR_OPF_ATOMICETH) {
		ur_atomiceth_put(h + op->off_atomiceth, &(struct ur_atomiceth){va & ~7ull, rkey, 1 + (take(&f->in) & 3), 0});
		return;
	}
	*len = choose_length(f, (uint32_t)(k->iova + k->len - va));
	ur_reth_put(h + op->off_reth, &(struct ur_reth){va, rkey, *len});
}

static void put_extended(struct fuzz *f, uint8_t *h, const struct lane *l, const struct ur_opcode_info *op, uint32_t *len)
{
	uint32_t flags = op->flags;

	*len = f->mtu;
	if (flags & UR_OPF_DETH)
		ur_deth_put(h + op->off_deth, &(struct ur_deth){take(&f->in) < 0xe0 ? 0x1ee7 : 0x1ee6, l->dqpn});
	if (flags & UR_OPF_XRCETH)
		ur_xrceth_put(h, ur_srq_num(f->side[VICTIM].xrc_srq) ^ (take(&f->in) >= 0xe0));
	if (flags & UR_OPF_FETH)
		ur_feth_put(h + op->off_feth, &(struct ur_feth){take(&f->in) & 7, take(&f->in) & 3});
	if (flags & (UR_OPF_RETH | UR_OPF_ATOMICETH))
		put_target(f, h, op, len);
	if (flags & UR_OPF_AETH) {
		uint8_t syndrome = take(&f->in);

		ur_aeth_put(h + op->off_aeth, &(struct ur_aeth){syndrome < 0x60 ? 0x1f : syndrome, take(&f->in)});
	}
	if (flags & UR_OPF_ATOMICACKETH)
		ur_put64(h + op->off_atomicacketh, take(&f->in));
	if (flags & UR_OPF_IMM)
		ur_put32(h + op->off_imm, take(&f->in));
	if (flags & UR_OPF_IETH)
		ur_put32(h + op->off_ieth, f->side[VICTIM].key[K_WINDOW + (take(&f->in) & 1)].rkey);
}

/* First and middle packets are full; others are as long as was said, or the input has it otherwise. */
static uint32_t payload_length(struct fuzz *f, const struct ur_opcode_info *op, uint32_t said)
{
	uint8_t v = take(&f->in);

	if (v >= 0xe0)
		return (v & 31) * 9u;
	if (!(op->flags & UR_OPF_PAYLOAD))
		return 0;
	if (!(op->flags & UR_OPF_LAST))
		return f->mtu;
	return op->flags & UR_OPF_RETH ? ur_min_u32(said, f->mtu) : v;
}

static void put_payload(struct ur_pkt *p, uint32_t len, uint8_t seed)
{
	memset(p->data + p->len, seed, len);
	p->len += len;
	p->bth.pad = -len & 3;
}

/* Of what the victim has sent, mostly; its bits are as they come. */
static void put_sack(struct fuzz *f, struct ur_pkt *p, const struct lane *l)
{
	struct ur_sack s = {.n = UR_SACK_STEP * (1 + take(&f->in) % (UR_SACK_BITS / UR_SACK_STEP))};

	s.expected = choose_psn(f, l, true);
	s.base = choose_psn(f, l, true);
	for (unsigned i = 0; i < s.n / 64; i++)
		s.bits[i] = 0x0101010101010101u * take(&f->in);
	p->len = (uint32_t)(ur_sack_put(p->data + p->len - UR_SACKETH_LEN, &s) - p->data);
	p->data[p->len - 1] = take(&f->in);
	p->bth.pad = 0;
}

static bool to_group(const struct lane *l, uint8_t flags)
{
	return l->type == IBV_QPT_UD && flags & 32;
}

static void begin(struct fuzz *f, struct ur_pkt *p, const struct lane *l, uint8_t lies, uint8_t mark)
{
	const struct ur_gid *from = &f->gid[l->host == VICTIM ? pair_of(l)->other : VICTIM];
	unsigned to = l->host;
	struct ur_path path = {.ready = true};
	struct ur_mac mac = f->mac[to];

	if (lies & LIE_SOURCE)
		from = mark & 4 ? &f->stranger : pair_of(l)->other == PEER ? &f->gid[ATTACKER] : &f->gid[PEER];
	if (lies & LIE_MAC)
		mac.b[5] ^= 0x40;
	if (to_group(l, mark))
		mac = ur_mcast_mac(&f->group);
	ur_path_build(&path, &f->mac[ATTACKER], &mac, 0, from, to_group(l, mark) ? &f->group : &f->gid[to], mark & 3, 64, 0, 0xc000);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->nseg = 0;
}

static void keep(struct fuzz *f, struct ur_pkt *p)
{
	f->out.from = ATTACKER;
	f->out.len = (uint16_t)ur_pkt_frame_len(p);
	if (f->out.len > FRAME_MAX)
		f->out.len = 0;
	else
		ur_pkt_gather(p, 0, f->out.b);
}

/* What cannot be said before the checksums are right. */
static void lie_at_last(struct fuzz *f, uint8_t lies, uint8_t how)
{
	if (lies & LIE_ICRC && f->out.len)
		f->out.b[f->out.len - 1 - (how & 3)] ^= (uint8_t)(1 + (how >> 2));
	if (lies & LIE_LENGTH)
		f->out.len = (uint16_t)(how & 1 ? ur_min_u32(f->out.len + how, FRAME_MAX) : f->out.len - ur_min_u32(f->out.len, how));
}

void forge(struct fuzz *f)
{
	uint8_t which = take(&f->in);
	struct lane *l = &f->lane[2 * (which < 0x80 ? which % PAIRS : f->focus_pair)];
	uint8_t room[FRAME_MAX + 512], lies = take(&f->in), flags = take(&f->in), how = take(&f->in);
	struct ur_pkt p = {.data = room, .room = sizeof(room)};
	const struct ur_opcode_info *op;
	uint32_t said;

	f->focus_pair = l->pair;
	lane_open(f, l->pair);
	stage_settle(f);
	if (how & 1 && !pair_of(l)->spared && ur_qp_state(l->qp) == IBV_QPS_ERR) { /* what came before has ended it */
		lane_close(f, l->pair);
		lane_open(f, l->pair);
	}
	if (how < 0xa0) /* mostly nothing is wrong, or one thing */
		lies = 0;
	else if (how < 0xe0)
		lies = (uint8_t)(1u << (lies & 7));
	begin(f, &p, l, lies, flags);
	p.bth = (struct ur_bth){.opcode = choose_opcode(f, l, lies),
				.se = flags & 8,
				.migreq = true,
				.ackreq = flags & 16,
				.fecn = flags & 32,
				.becn = flags & 64,
				.pkey = lies & LIE_PKEY ? 0x8001 : UR_PKEY_DEFAULT,
				.tver = !!(lies & LIE_VERSION),
				.dqpn = to_group(l, flags) ? UR_QPN_MCAST : l->qpn};
	op = ur_opcode(p.bth.opcode);
	if (lies & LIE_QPN)
		p.bth.dqpn ^= 1u << (how % 24);
	p.bth.psn = choose_psn(f, l, op->flags & UR_OPF_RESPONSE);
	p.len = p.bth_off + UR_BTH_LEN + (uint32_t)op->ext_len;
	memset(p.data + p.bth_off, 0, UR_BTH_LEN + (size_t)op->ext_len);
	put_extended(f, p.data + p.bth_off + UR_BTH_LEN, l, op, &said);
	if (p.bth.opcode == UR_OP_SACK)
		put_sack(f, &p, l);
	else
		put_payload(&p, payload_length(f, op, said), flags);
	if (flags & 128)
		p.bth.pad = how & 3;
	ur_bth_put(p.data + p.bth_off, &p.bth);
	if (how & 8)
		ur_hello_put(p.data + p.bth_off);
	ur_frame_finish(&p, p.bth.pad);
	keep(f, &p);
	lie_at_last(f, lies, how);
	inject(f, false);
}

/* --- keys --- */

/* A packet to the victim's QP in which nothing is wrong; the caller puts in what the opcode has. */
static const struct ur_opcode_info *begin_right(struct fuzz *f, struct ur_pkt *p, const struct lane *l, uint8_t opcode)
{
	const struct ur_opcode_info *op = ur_opcode(opcode);

	begin(f, p, l, 0, 0);
	p->bth = (struct ur_bth){
		.opcode = opcode, .migreq = true, .ackreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = l->qpn, .psn = l->qp->resp.epsn};
	p->len = p->bth_off + UR_BTH_LEN + (uint32_t)op->ext_len;
	memset(p->data + p->bth_off, 0, UR_BTH_LEN + (size_t)op->ext_len);
	return op;
}

static void finish_right(struct fuzz *f, struct ur_pkt *p)
{
	ur_bth_put(p->data + p->bth_off, &p->bth);
	ur_frame_finish(p, p->bth.pad);
	keep(f, p);
	inject(f, false);
}

/* NULL when the attacker is to spare the pair, or its QP takes no requests. */
static struct lane *target(struct fuzz *f, unsigned pair)
{
	struct lane *l = &f->lane[2 * pair];

	if (pairs[pair].spared || l->type == IBV_QPT_UD || l->type == IBV_QPT_XRC_RECV)
		return NULL;
	lane_open(f, pair);
	return l;
}

void forge_use(struct fuzz *f, unsigned pair, unsigned key, uint8_t how)
{
	const struct key *k = &f->side[VICTIM].key[key];
	struct lane *l = target(f, pair);
	uint8_t room[FRAME_MAX + 512];
	struct ur_pkt p = {.data = room, .room = sizeof(room)};
	bool write = how & 1 || (l && l->type == IBV_QPT_UC);
	uint32_t len = write ? ur_min_u32(k->len, 32) : k->len;
	const struct ur_opcode_info *op;

	if (!l || !k->len)
		return;
	op = begin_right(f, &p, l, (l->type == IBV_QPT_UC ? UR_UC : UR_RC) | (write ? UR_OP_WRITE_ONLY : UR_OP_READ_REQ));
	ur_reth_put(p.data + p.bth_off + UR_BTH_LEN + op->off_reth,
		    &(struct ur_reth){k->iova, how & 2 && k->stale ? k->stale : k->rkey, len});
	if (write)
		put_payload(&p, len, how);
	finish_right(f, &p);
}

void forge_reads(struct fuzz *f, unsigned pair, unsigned key, unsigned n)
{
	const struct key *k = &f->side[VICTIM].key[key];
	struct lane *l = target(f, pair);
	uint8_t room[FRAME_MAX + 512];

	if (!l || l->type == IBV_QPT_UC)
		return;
	stage_settle(f);
	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt p = {.data = room, .room = sizeof(room)};
		const struct ur_opcode_info *op = begin_right(f, &p, l, UR_RC | UR_OP_READ_REQ);

		p.bth.psn = (p.bth.psn + i) & 0xffffff;
		ur_reth_put(p.data + p.bth_off + UR_BTH_LEN + op->off_reth,
			    &(struct ur_reth){k->iova, k->rkey, ur_min_u32(k->len, f->mtu)});
		ur_bth_put(p.data + p.bth_off, &p.bth);
		ur_frame_finish(&p, 0);
		keep(f, &p);
		put_on_wire(f);
	}
	ur_sim_advance(f->w.sim, f->w.now);
	ur_nic_poll(f->side[VICTIM].nic, f->w.now);
}

void forge_invalidate(struct fuzz *f, unsigned pair, unsigned key)
{
	struct lane *l = target(f, pair);
	uint8_t room[FRAME_MAX + 512];
	struct ur_pkt p = {.data = room, .room = sizeof(room)};
	const struct ur_opcode_info *op;

	if (!l || l->type == IBV_QPT_UC || !work_recv(f, 2 * pair, 64))
		return;
	stage_settle(f);
	op = begin_right(f, &p, l, UR_RC | UR_OP_SEND_ONLY_INV);
	ur_put32(p.data + p.bth_off + UR_BTH_LEN + op->off_ieth, f->side[VICTIM].key[key].rkey);
	finish_right(f, &p);
}
