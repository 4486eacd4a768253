/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operations, and the posting of random send requests, legal or not. */
#include <string.h>

#include "test/sim/prog.h"

#define S(x) (1u << (x))
#define RELIABLE (S(RC) | S(XRC))
#define CONNECTED (RELIABLE | S(UC))
#define ALL (CONNECTED | S(UD))
#define ATOMIC_LEN 8

/* A row for each operation: what it looks like to the poster, and how often it is drawn. */
const struct row rows[] = {
	{"SEND", IBV_WR_SEND, IBV_WC_SEND, K_SEND, true, false, false, ALL, 4},
	{"SEND with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, K_SEND, true, true, false, ALL, 3},
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, K_WRITE, false, false, false, CONNECTED, 5},
	{"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, K_WRITE, true, true, false, CONNECTED, 3},
	{"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, K_READ, false, false, false, RELIABLE, 5},
	{"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, K_FADD, false, false, false, RELIABLE, 2},
	{"CMP_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, K_CSWAP, false, false, false, RELIABLE, 2},
	{"ATOMIC WRITE", IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE, K_AWRITE, false, false, false, RELIABLE, 1},
	{"SEND with invalidate", IBV_WR_SEND_WITH_INV, IBV_WC_SEND, K_SEND, true, false, true, S(RC), 2},
	{"BIND_MW", IBV_WR_BIND_MW, IBV_WC_BIND_MW, K_BIND, false, false, false, S(RC), 2},
	{"LOCAL_INV", IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV, K_INV, false, false, false, S(RC), 1},
};
const unsigned nrows = ur_array_size(rows);

const char *const sin_names[SINS] = {
	"",      "no such rkey", "stale rkey",  "remote range", "remote right", "remote PD", "alignment",
	"Q_Key", "no such lkey", "local range", "local right",  "local PD",     "too long",
};

const char *const status_names[STATUSES] = {
	"success",
	"local length",
	"local QP operation",
	"local EEC",
	"local protection",
	"flushed",
	"MW bind",
	"bad response",
	"local access",
	"remote invalid request",
	"remote access",
	"remote operation",
	"retries exceeded",
	"RNR retries exceeded",
	"local RDD",
	"remote RD",
	"remote abort",
	"EECN",
	"EEC state",
	"fatal",
	"response timeout",
	"general",
	"tag matching",
	"TM RNDV",
};

#define NO_KEY 0xfffff0ffu

/* --- what is drawn --- */

static const struct row *draw_row(struct prog *p, const struct sim_qp *q)
{
	unsigned sum = 0, pick;

	for (unsigned i = 0; i < nrows; i++)
		sum += rows[i].services & S(q->svc) ? rows[i].weight : 0;
	pick = below(p, sum);
	for (unsigned i = 0;; i++) {
		unsigned w = rows[i].services & S(q->svc) ? rows[i].weight : 0;

		if (pick < w)
			return &rows[i];
		pick -= w;
	}
}

static uint32_t draw_len(struct prog *p, const struct sim_op *op)
{
	uint32_t mtu = p->mtu_bytes;

	if (op->row->kind < K_SEND)
		return 0;
	if (op->row->kind >= K_FADD || op->row->kind == K_AWRITE)
		return ATOMIC_LEN;
	if (op->qp->svc == UD)
		return one_in(p, 3) ? mtu - below(p, 2) : below(p, mtu + 1);
	switch (below(p, 8)) {
	case 0: return 0;
	case 1:
	case 2: return below(p, 65);
	case 3:
	case 4: return 1 + below(p, mtu);
	case 5: return mtu * (1 + below(p, 3));
	case 6: return mtu * (1 + below(p, 3)) - 1 + below(p, 3);
	default: return below(p, p->max_len + 1);
	}
}

static enum sin draw_sin(struct prog *p, const struct sim_op *op)
{
	enum kind k = op->row->kind;
	enum sin s;

	if (!p->sins || !op->len || !one_in(p, 100))
		return SIN_NONE;
	s = (enum sin)(1 + below(p, SINS - 1));
	if (s == SIN_QKEY)
		return op->qp->svc == UD ? s : SIN_LKEY;
	if (s == SIN_ALIGN)
		return k >= K_FADD || k == K_AWRITE ? s : SIN_LKEY;
	if (s <= SIN_REMOTE_LAST && k == K_SEND)
		return SIN_LKEY;
	if (s == SIN_LRIGHT && k < K_READ)
		return SIN_LRANGE;
	return s;
}

/* --- local side --- */

static enum key_id local_key(struct prog *p, struct sim_host *h, bool writes)
{
	enum key_id id = (enum key_id)below(p, writes ? 2 : 3);

	return h->key[id].mr ? id : K_SLOTS;
}

static void spoil(struct sim_host *h, enum sin sin, struct ibv_sge *s)
{
	switch (sin) {
	case SIN_LKEY: s->lkey = NO_KEY; break;
	case SIN_LRANGE:
		s->addr = h->key[K_SLOTS].iova + h->key[K_SLOTS].size - s->length + 1;
		s->lkey = h->key[K_SLOTS].mr->lkey;
		break;
	case SIN_LRIGHT:
		s->addr = h->key[K_SLOTS_RO].iova;
		s->lkey = h->key[K_SLOTS_RO].mr->lkey;
		break;
	case SIN_LPD:
		s->addr = h->key[K_FOREIGN].iova;
		s->lkey = h->key[K_FOREIGN].mr->lkey;
		break;
	case SIN_TOO_LONG: s->length = UR_MAX_MSG + 1; break;
	default: break;
	}
}

unsigned make_sges(struct prog *p, struct sim_host *h, const struct buf *b, enum sin sin, bool writes, struct ibv_sge *sge, uint8_t *keys)
{
	bool spoilt = false;

	*keys = 0;
	for (unsigned i = 0; i < b->n; i++) {
		enum key_id id = local_key(p, h, writes);
		const struct key *k = &h->key[id];

		sge[i] = (struct ibv_sge){
			.addr = k->iova + (uint64_t)(b->piece[i].p - k->base), .length = b->piece[i].len, .lkey = k->mr->lkey};
		if (!sge[i].length) {
			sge[i].lkey = ur_rng_u32(&p->rng); /* nobody looks at the key of nothing */
			continue;
		}
		*keys |= (uint8_t)S(id);
		if (!spoilt && sin >= SIN_LKEY)
			spoil(h, sin, &sge[i]);
		spoilt = true;
	}
	return b->n;
}

/* --- remote side --- */

static enum key_id board_key(struct prog *p, unsigned board, bool writes)
{
	if (board >= BOARDS - BOARDS_VOLATILE)
		return K_VOLATILE;
	return one_in(p, 2) ? K_BOARDS : writes ? K_BOARDS_WO : K_BOARDS_RO;
}

/* Draws board, place and key; false when the board can take no further version now. */
static bool aim(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	struct sim_host *h = &p->host[op->qp->peer->host];
	unsigned n = below(p, h->key[K_VOLATILE].mr ? BOARDS : BOARDS - BOARDS_VOLATILE);
	struct sim_mw *mw = !op->sin && op->len && one_in(p, 2) ? window_for(p, op) : NULL;
	struct board *bd = &h->m.board[mw ? mw->board : n];
	bool writes = op->row->kind != K_READ;
	const struct key *k;

	op->mw = mw;
	op->rkey = mw ? K_BOARDS : board_key(p, n, writes);
	op->at = below(p, bd->size - op->len + 1);
	if (op->row->kind == K_AWRITE)
		op->at &= ~7u;
	if (op->sin == SIN_RIGHT)
		op->rkey = writes ? K_BOARDS_RO : K_BOARDS_WO;
	else if (op->sin == SIN_PD)
		op->rkey = K_FOREIGN;
	k = &h->key[op->rkey];
	wr->wr.rdma.remote_addr = k->iova + (uint64_t)(bd->mem + op->at - k->base);
	wr->wr.rdma.rkey = mw ? mw->rkey : k->mr->rkey;
	if (op->sin == SIN_RKEY)
		wr->wr.rdma.rkey = NO_KEY;
	else if (op->sin == SIN_STALE)
		wr->wr.rdma.rkey = h->key[K_VOLATILE].stale;
	else if (op->sin == SIN_RANGE)
		wr->wr.rdma.remote_addr = k->iova + k->size - op->len + (op->row->kind == K_AWRITE ? 8 : 1 + below(p, 64));
	else if (op->sin == SIN_ALIGN)
		wr->wr.rdma.remote_addr++;
	if ((op->sin && op->sin <= SIN_REMOTE_LAST) || !op->len)
		return true; /* it touches nothing */
	op->board = bd;
	if (!writes)
		bd->readers++;
	else
		op->v = board_write(bd, op, p->clock);
	op->vtag = op->tag;
	return !writes || op->v;
}

/* A datagram goes to the peer, to any other QP of its kind, or to all that are attached to the group. */
static bool address(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	struct sim_qp *q = op->qp, *o = one_in(p, 3) ? &p->qp[below(p, p->nqp)] : q->peer;
	bool group = one_in(p, 5);
	struct ur_ah *ah = get_ah(p, host_of(p, q), group ? WORLD_HOSTS : (o->svc == UD ? o : q->peer)->host);

	op->target = group ? NULL : o->svc == UD ? o : q->peer;
	op->qpn = q->qpn;
	if (!ah)
		return false;
	wr->wr.ud.ah = &ah->api;
	wr->wr.ud.remote_qpn = group ? 0xffffff : op->target->qpn;
	wr->wr.ud.remote_qkey = op->sin == SIN_QKEY ? 0x2222 : q->qkey;
	return true;
}

static bool aim_any(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	if (op->qp->svc == XRC)
		wr->qp_type.xrc.remote_srqn = ur_srq_num(op->qp->peer->rq->srq);
	if (op->qp->svc == UD)
		return address(p, op, wr);
	if (op->row->kind == K_BIND)
		return window_bind(p, op, wr);
	if (op->row->kind == K_INV || op->row->inv)
		return window_invalidate(p, op, wr);
	if (op->row->kind == K_SEND)
		return true;
	return op->row->kind >= K_FADD ? cell_aim(p, op, wr) : aim(p, op, wr);
}

/* --- posting --- */

void ring(struct prog *p, struct sim_qp *q)
{
	if (ur_qp_doorbell(q->qp))
		ur_nic_ring(nic_of(p, q), q->qp);
}

static bool may_post(struct prog *p, const struct sim_qp *q, bool quiet)
{
	enum ibv_qp_state st;

	if (!q->sends || !q->qp || q->life == DOWN || p->nops == OPS_MAX ||
	    (!quiet && host_of(p, q)->m.nfree < host_of(p, q)->m.nslots / 2) || q->stail - q->shead >= p->sq_wr)
		return false;
	st = ur_qp_state(q->qp);
	return st == IBV_QPS_RTS || st == IBV_QPS_SQD || ((st == IBV_QPS_ERR || st == IBV_QPS_SQE) && one_in(p, 4));
}

static unsigned draw_flags(struct prog *p, struct sim_op *op, bool quiet)
{
	struct sim_qp *q = op->qp;

	op->signaled = quiet || one_in(p, 4) ? true : !one_in(p, 3);
	if (q->stail - q->shead + 1 >= p->sq_wr)
		op->signaled = true; /* or nobody would ever hear of them */
	op->fence = !quiet && one_in(p, 10);
	op->solicited = one_in(p, 4);
	return (op->signaled ? IBV_SEND_SIGNALED : 0) | (op->fence ? IBV_SEND_FENCE : 0) | (op->solicited ? IBV_SEND_SOLICITED : 0);
}

static bool draw_data(struct prog *p, struct sim_op *op, struct ibv_send_wr *wr)
{
	struct sim_host *h = host_of(p, op->qp);
	bool lands = op->row->kind >= K_READ;

	if (op->row->kind < K_SEND)
		return true;
	if (!buf_lay(p, &h->m, &op->local, op->len, p->max_sge))
		return false;
	wr->num_sge = (int)make_sges(p, h, &op->local, op->sin, lands, wr->sg_list, &op->keys);
	if (lands)
		buf_poison(&op->local);
	else
		buf_fill(&op->local, op->tag, op->row->kind == K_WRITE || op->row->kind == K_AWRITE ? op->at : 0);
	if (lands || op->len > op->qp->cap.max_inline_data || op->sin >= SIN_LKEY || !one_in(p, 3))
		return true;
	wr->send_flags |= IBV_SEND_INLINE;
	for (unsigned i = 0; i < op->local.n; i++) {
		wr->sg_list[i].addr = (uintptr_t)op->local.piece[i].p;
		wr->sg_list[i].lkey = ur_rng_u32(&p->rng); /* no memory region is needed */
	}
	op->keys = 0;
	return true;
}

static void forget(struct prog *p, struct sim_op *op)
{
	window_unposted(op);
	slot_give(&host_of(p, op->qp)->m, &op->local);
	if (op->v)
		op->v->used = false;
	else if (op->board && op->row->kind == K_READ)
		op->board->readers--;
}

static void posted(struct prog *p, struct sim_op *op, const struct ibv_send_wr *wr)
{
	struct sim_qp *q = op->qp;

	SAY(p, "qp %u: post send %u: %s, %u bytes in %u%s%s%s%s%s%s%s, to key %u at %#x, immediate %#x", q->index, p->nops, op->row->name,
	    op->len, op->local.n, op->signaled || q->sig_all ? ", signalled" : "", op->fence ? ", fence" : "",
	    op->solicited ? ", solicited" : "", wr->send_flags & IBV_SEND_INLINE ? ", inline" : "", op->sin ? ", wrong: " : "",
	    sin_names[op->sin], op->len ? "" : ", no data", op->rkey, op->at, op->imm);
	op->signaled |= q->sig_all;
	op->open = true;
	if (op->cell)
		cell_posted(op);
	if (op->fence)
		q->fence = (uint16_t)(op->seq + 1);
	if (op->row->recv) {
		op->rindex = q->nrops;
		q->rops[q->nrops++] = op->seq;
	}
	q->sent[q->stail++] = (uint16_t)p->nops++;
	p->stats->ops[op->row - rows]++;
	p->stats->windowed += op->mw && op->row->kind >= K_WRITE;
	p->stats->sins[op->sin]++;
	if (wr->send_flags & IBV_SEND_INLINE)
		slot_give(&host_of(p, q)->m, &op->local); /* taken at once */
}

static void draw_op(struct prog *p, struct sim_qp *q, bool quiet, struct sim_op *op)
{
	memset(op, 0, offsetof(struct sim_op, local));
	op->local.slot = -1;
	op->local.n = 0;
	op->row = !quiet ? draw_row(p, q) : q->svc == UD ? &rows[0] : &rows[2];
	op->qp = q;
	op->epoch = q->epoch;
	op->seq = q->stail;
	op->tag = ur_rng_u64(&p->rng);
	op->len = quiet ? 0 : draw_len(p, op);
	op->imm = ur_rng_u32(&p->rng);
	op->sin = quiet ? SIN_NONE : draw_sin(p, op);
	op->posted = ++p->clock;
	op->keys = 0;
	op->rkey = K_SLOTS;
	op->board = NULL;
	op->v = NULL;
	op->cell = NULL;
	op->mw = NULL;
	op->target = q->peer;
	if (op->sin == SIN_STALE && !p->host[q->peer->host].key[K_VOLATILE].stale)
		op->sin = SIN_RKEY;
}

/* The same by the builders of ibv_wr_post(3). */
static int post_built(struct sim_qp *q, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf data[UR_MAX_SGE];
	struct ur_wr_batch b;
	struct ibv_send_wr *to;

	ur_wr_start(q->qp, &b);
	to = ur_wr_next(q->qp, &b);
	*to = *wr;
	to->num_sge = 0;
	to->send_flags &= ~(unsigned)IBV_SEND_INLINE;
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		ur_wr_list(q->qp, &b, wr->sg_list, (size_t)wr->num_sge);
		return ur_wr_complete(q->qp, &b);
	}
	for (int i = 0; i < wr->num_sge; i++)
		data[i] = (struct ibv_data_buf){.addr = (void *)(uintptr_t)wr->sg_list[i].addr, .length = wr->sg_list[i].length};
	ur_wr_inline(q->qp, &b, data, (size_t)wr->num_sge);
	return ur_wr_complete(q->qp, &b);
}

bool post_send(struct prog *p, struct sim_qp *q, bool quiet)
{
	struct ibv_sge sge[UR_MAX_SGE];
	struct ibv_send_wr wr = {.sg_list = sge}, *bad;
	struct sim_op *op = &p->ops[p->nops];
	int err;

	if (!may_post(p, q, quiet))
		return false;
	draw_op(p, q, quiet, op);
	wr.wr_id = (uint64_t)(p->o.seed & 0xffff) << 48 | p->nops;
	wr.opcode = op->row->opcode;
	wr.send_flags = draw_flags(p, op, quiet);
	wr.imm_data = op->imm;
	if (!aim_any(p, op, &wr) || !draw_data(p, op, &wr)) {
		forget(p, op);
		return false;
	}
	err = one_in(p, 3) ? post_built(q, &wr) : ur_qp_post_send(q->qp, &wr, &bad);
	if (err) {
		broke(p, "qp %u: send %u was refused with error %d", q->index, p->nops, err);
		forget(p, op);
		return false;
	}
	posted(p, op, &wr);
	return true;
}
