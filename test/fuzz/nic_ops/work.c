/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Honest work: requests and receives of victim and peer, and what their completions have to be. A completion says its queue and its place
 * in it, so one that comes twice, out of order or without a request is found out. What the spared pair sends is known to the byte.
 */
#include "nic.h"

#define SHARED 64 /* numbers of queues: lanes, 32 + lanes, and this and the next for the SRQs */
#define SHARED_OPEN 6 /* receives of an SRQ: they are not flushed, and what they take others have not */
#define PIECE 304 /* of the board, which has one more that is read and never written */
#define PIECES 2

static uint64_t make_id(unsigned queue, unsigned index)
{
	return (uint64_t)queue << 32 | index;
}

static const char *op_name(unsigned op)
{
	static const char *const names[] = {"WRITE", "WRITE_IMM", "SEND", "SEND_IMM", "READ", "CMP_SWAP", "FETCH_ADD", "LOCAL_INV",
					    "BIND_MW", "SEND_INV"};

	return op < ur_array_size(names) ? names[op] : "ATOMIC_WRITE";
}

static struct wqe *append(struct queue *q)
{
	struct wqe *w;

	if (q->tail - q->head >= WQES)
		return NULL;
	w = &q->w[q->tail % WQES];
	*w = (struct wqe){.slot = -1};
	return w;
}

/* It has been posted. */
static void appended(struct queue *q, struct wqe *w)
{
	w->open = true;
	q->tail++;
	q->nopen++;
}

/* --- receives --- */

static unsigned recv_number(const struct lane *l)
{
	if (l->type == IBV_QPT_XRC_RECV)
		return SHARED + 1;
	return pair_of(l)->srq ? SHARED : 32 + (unsigned)(l - l->f->lane);
}

bool work_recv(struct fuzz *f, unsigned lane, uint32_t len)
{
	struct lane *l = lane_get(f, lane);
	struct queue *q;
	struct side *s;
	struct wqe *w;
	struct ibv_recv_wr wr = {.num_sge = 1}, *bad;
	struct ibv_sge sge;
	unsigned number;
	int err;

	if (!l || l->type == IBV_QPT_XRC_SEND)
		return false;
	s = side_of(f, l);
	q = recv_queue(f, l);
	number = recv_number(l);
	w = append(q);
	if (!w || (number >= SHARED && q->nopen >= SHARED_OPEN) || (w->slot = (int8_t)slot_take(&s->arena, pair_of(l)->spared)) < 0)
		return false;
	w->len = (uint16_t)ur_min_u32(len, MESSAGE_MAX);
	sge.addr = s->key[domain_of(l) == PD_SPARED ? K_SLOTS_SPARED : K_SLOTS].iova + (uint32_t)w->slot * SLOT;
	sge.lkey = s->key[domain_of(l) == PD_SPARED ? K_SLOTS_SPARED : K_SLOTS].mr->lkey;
	sge.length = w->len;
	wr.sg_list = &sge;
	wr.wr_id = make_id(number, q->tail);
	if (number >= SHARED)
		err = ur_srq_post(number == SHARED ? s->srq : s->xrc_srq, &wr, &bad);
	else
		err = ur_qp_post_recv(l->qp, &wr, &bad);
	if (err) {
		slot_give(&s->arena, w->slot);
		return false;
	}
	appended(q, w);
	if (number < SHARED && ur_qp_doorbell(l->qp))
		ur_nic_ring(s->nic, l->qp);
	return true;
}

/* --- sends --- */

static bool answered(unsigned op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void set_target(struct ibv_send_wr *wr, bool atomic, uint64_t addr, uint32_t rkey)
{
	if (atomic) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

/* Where the request goes, in the memory of the other side. */
static void aim(struct fuzz *f, struct lane *l, struct wqe *w, struct ibv_send_wr *wr)
{
	bool atomic = answered(w->op) && w->op != IBV_WR_RDMA_READ;
	unsigned other = l->host == VICTIM ? pair_of(l)->other : VICTIM;
	unsigned k = atomic ? R_CELLS : w->op == IBV_WR_RDMA_READ ? R_READ : R_OPEN;
	const struct key *key;

	if (other == ATTACKER) { /* who answers without looking */
		set_target(wr, atomic, 0x1000, 0x1234);
		return;
	}
	if (pair_of(l)->spared)
		k = atomic ? R_COUNTER : R_BOARD;
	key = &f->side[other].key[k];
	w->at = key->at;
	if (pair_of(l)->spared && w->op == IBV_WR_RDMA_READ)
		w->at += PIECES * PIECE;
	else if (pair_of(l)->spared && !atomic)
		w->at += l->writes % PIECES * PIECE;
	set_target(wr, atomic, key->iova + w->at - key->at, key->rkey);
}

static struct ur_ah *get_ah(struct fuzz *f, struct lane *l)
{
	struct side *s = side_of(f, l);
	struct ibv_ah_attr a = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	memcpy(a.grh.dgid.raw, f->gid[l->host == VICTIM ? PEER : VICTIM].raw, 16);
	if (!s->ah && ur_nic_create_ah(s->nic, s->pd[PD_OPEN], &a, f->w.now, &s->ah))
		broke(f, "host %u cannot make an address handle", l->host);
	return s->ah;
}

/* What the spared pair does has to succeed: its receives are there before its messages. */
static bool prepare_spared(struct fuzz *f, struct lane *l, struct wqe *w)
{
	struct lane *o = &f->lane[(l - f->lane) ^ 1];

	switch (w->op) {
	case IBV_WR_SEND_WITH_IMM: return work_recv(f, (unsigned)(o - f->lane), MESSAGE_MAX);
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ: return true;
	case IBV_WR_ATOMIC_FETCH_AND_ADD: w->result = l->adds; return true;
	default: return false;
	}
}

static void count_spared(struct lane *l, const struct wqe *w)
{
	l->writes += w->op == IBV_WR_RDMA_WRITE;
	l->adds += w->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	l->posted += w->op == IBV_WR_SEND_WITH_IMM;
}

static void fill(struct fuzz *f, struct lane *l, struct wqe *w, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	struct side *s = side_of(f, l);
	const struct key *from = &s->key[domain_of(l) == PD_SPARED ? K_SOURCE_SPARED : (unsigned)R_SOURCE];
	const struct key *slots = &s->key[domain_of(l) == PD_SPARED ? K_SLOTS_SPARED : K_SLOTS];

	sge->length = w->len;
	if (answered(w->op)) {
		sge->addr = slots->iova + (uint32_t)w->slot * SLOT;
		sge->lkey = slots->mr->lkey;
	} else {
		sge->addr = from->iova + w->source;
		sge->lkey = from->mr->lkey;
	}
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->imm_data = (uint32_t)w->source << 16 | w->len;
	if (l->type == IBV_QPT_UD) {
		wr->wr.ud.ah = &get_ah(f, l)->api;
		wr->wr.ud.remote_qpn = l->dqpn;
		wr->wr.ud.remote_qkey = 0x1ee7;
		return;
	}
	if (l->type == IBV_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = ur_srq_num(f->side[VICTIM].xrc_srq);
	if (w->op == IBV_WR_SEND_WITH_INV) {
		wr->invalidate_rkey = f->side[VICTIM].key[K_WINDOW + 1].rkey;
		return;
	}
	if (w->op != IBV_WR_SEND && w->op != IBV_WR_SEND_WITH_IMM)
		aim(f, l, w, wr);
}

bool work_post(struct fuzz *f, unsigned lane, unsigned op, uint32_t len, unsigned flags)
{
	struct lane *l = lane_get(f, lane);
	struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)op, .send_flags = flags}, *bad;
	struct ibv_sge sge;
	struct side *s;
	struct wqe *w;

	if (!l || l->type == IBV_QPT_XRC_RECV)
		return false;
	s = side_of(f, l);
	w = append(&l->sq);
	if (!w)
		return false;
	if (pair_of(l)->spared)
		wr.send_flags |= IBV_SEND_SIGNALED;
	w->op = (uint8_t)op;
	w->signaled = wr.send_flags & IBV_SEND_SIGNALED;
	w->len = (uint16_t)ur_min_u32(len, MESSAGE_MAX);
	w->source = (uint16_t)(l->sq.tail * 13 % (regions[R_SOURCE].size - MESSAGE_MAX));
	if ((answered(op) && op != IBV_WR_RDMA_READ) || op == IBV_WR_ATOMIC_WRITE)
		w->len = 8;
	if (pair_of(l)->spared && (l->sq.nopen >= SPARED_OPEN || !prepare_spared(f, l, w)))
		return false;
	if (answered(op) && (w->slot = (int8_t)slot_take(&s->arena, pair_of(l)->spared)) < 0)
		return false;
	fill(f, l, w, &wr, &sge);
	wr.wr_id = make_id(lane % LANES, l->sq.tail);
	if (ur_qp_post_send(l->qp, &wr, &bad)) {
		slot_give(&s->arena, w->slot);
		return false;
	}
	count_spared(l, w);
	if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV)
		l->sent[l->nsent++ % SENT] = (struct message){w->source, w->len};
	appended(&l->sq, w);
	trace(f, "lane %u posts %s, %u bytes", lane % LANES, op_name(op), w->len);
	if (ur_qp_doorbell(l->qp))
		ur_nic_ring(s->nic, l->qp);
	return true;
}

bool work_post_local(struct fuzz *f, struct lane *l, struct ibv_send_wr *wr, uint32_t rkey)
{
	struct wqe *w = append(&l->sq);
	struct ibv_send_wr *bad;

	if (!w)
		return false;
	w->op = (uint8_t)wr->opcode;
	w->signaled = wr->send_flags & IBV_SEND_SIGNALED;
	w->result = rkey;
	wr->wr_id = make_id((unsigned)(l - f->lane), l->sq.tail);
	if (ur_qp_post_send(l->qp, wr, &bad))
		return false;
	appended(&l->sq, w);
	trace(f, "lane %u posts %s for key %#x", (unsigned)(l - f->lane), op_name(w->op), rkey);
	if (ur_qp_doorbell(l->qp))
		ur_nic_ring(side_of(f, l)->nic, l->qp);
	return true;
}

/* --- completions --- */

static void finish(struct side *s, struct queue *q, struct wqe *w)
{
	w->open = false;
	q->nopen--;
	slot_give(&s->arena, w->slot);
	w->slot = -1;
	while (q->head != q->tail && !q->w[q->head % WQES].open)
		q->head++;
}

static const uint8_t *source_at(const struct side *s, uint32_t off)
{
	return s->arena.mem + regions[R_SOURCE].at + off;
}

static void check_spared_send(struct fuzz *f, struct lane *l, const struct wqe *w)
{
	struct side *s = side_of(f, l);
	const uint8_t *got = w->slot < 0 ? NULL : s->arena.mem + slot_at(w->slot);
	uint64_t value;

	if (w->op == IBV_WR_RDMA_READ && memcmp(got, s->arena.mem + regions[R_BOARD].at + PIECES * PIECE, w->len) != 0)
		broke(f, "a READ of the spared pair brought something else than what is there");
	if (w->op != IBV_WR_ATOMIC_FETCH_AND_ADD)
		return;
	memcpy(&value, got, 8);
	if (value != w->result)
		broke(f, "FETCH_ADD number %llu of the spared pair found %llu", (unsigned long long)w->result, (unsigned long long)value);
}

static void on_sent(struct fuzz *f, struct side *s, struct lane *l, unsigned index, const struct ibv_wc *wc)
{
	struct queue *q = &l->sq;
	struct wqe *w = &q->w[index % WQES];

	if (index - q->head >= q->tail - q->head || !w->open)
		broke(f, "lane %u: send %u completes twice, or was never posted", (unsigned)(l - f->lane), index);
	for (; q->head != index; finish(s, q, &q->w[q->head % WQES]))
		if (q->w[q->head % WQES].open && (q->w[q->head % WQES].signaled || q->failed))
			broke(f, "lane %u: send %u completes before send %u", (unsigned)(l - f->lane), index, q->head);
	if (wc->status == IBV_WC_SUCCESS && (!w->signaled || q->failed))
		broke(f, "lane %u: send %u completes %s", (unsigned)(l - f->lane), index,
		      q->failed ? "well after a failed one" : "unasked");
	if (pair_of(l)->spared && wc->status && !f->ending)
		broke(f, "the spared pair: %s fails with status %u", op_name(w->op), wc->status);
	q->failed |= wc->status != 0;
	if (answered(w->op) && !slot_untouched(&s->arena, w->slot, w->len, SLOT))
		broke(f, "lane %u: the answer to %s is longer than what was asked for", (unsigned)(l - f->lane), op_name(w->op));
	if (pair_of(l)->spared && !wc->status)
		check_spared_send(f, l, w);
	if (w->op == IBV_WR_BIND_MW)
		window_bound(f, l->host, (uint32_t)w->result, !wc->status);
	if (w->op == IBV_WR_LOCAL_INV && !wc->status)
		window_gone(f, l->host, (uint32_t)w->result);
	finish(s, q, w);
}

static void check_spared_recv(struct fuzz *f, struct lane *l, struct side *s, const struct wqe *w, const struct ibv_wc *wc)
{
	const struct lane *o = &f->lane[(l - f->lane) ^ 1];
	uint32_t from = wc->imm_data >> 16, len = wc->imm_data & 0xffff;

	if (wc->status && f->ending)
		return;
	if (wc->status || !(wc->wc_flags & IBV_WC_WITH_IMM) || wc->byte_len != len || l->messages >= o->posted)
		broke(f, "the spared pair: a message arrives with status %u and %u bytes", wc->status, wc->byte_len);
	if (memcmp(s->arena.mem + slot_at(w->slot), source_at(s, from), len) != 0)
		broke(f, "the spared pair: a message arrives with other bytes than were sent");
	l->messages++;
}

/*
 * What the victim receives from its peer, while nobody else passed for him, is one of his messages from the first byte to the last, on
 * whatever service; some may be missing, or come again.
 */
static void check_content(struct fuzz *f, struct lane *l, struct side *s, const struct wqe *w, const struct ibv_wc *wc)
{
	const struct lane *o = &f->lane[(l - f->lane) ^ 1];
	uint32_t grh = l->type == IBV_QPT_UD ? 40 : 0, len = wc->byte_len - grh;
	const uint8_t *got = s->arena.mem + slot_at(w->slot) + grh;

	if (l->host != VICTIM || !lane_is_real(o) || l->touched || wc->opcode != IBV_WC_RECV || wc->byte_len < grh)
		return;
	for (unsigned i = 0; i < SENT && i < o->nsent; i++)
		if (o->sent[i].len == len && !memcmp(got, source_at(s, o->sent[i].source), len))
			return;
	broke(f, "lane %u: a message of %u bytes arrives that nobody has sent", (unsigned)(l - f->lane), len);
}

static struct lane *lane_of(struct fuzz *f, const struct side *s, uint32_t qpn)
{
	for (unsigned i = 0; i < LANES; i++)
		if (f->lane[i].qp && &f->side[f->lane[i].host] == s && f->lane[i].qpn == qpn)
			return &f->lane[i];
	return NULL;
}

/* How much of a receive may have been written. On UC one serves for the next message when the end of one is lost. */
static uint32_t written(const struct lane *l, const struct wqe *w, const struct ibv_wc *wc)
{
	if (wc->status || l->type == IBV_QPT_UC)
		return w->len;
	return wc->opcode == IBV_WC_RECV ? wc->byte_len : 0;
}

static void on_received(struct fuzz *f, struct side *s, unsigned number, unsigned index, const struct ibv_wc *wc)
{
	struct lane *l = lane_of(f, s, wc->qp_num);
	struct queue *q;
	struct wqe *w;

	if (!l || recv_number(l) != number)
		broke(f, "a receive of queue %u completes with the QP number %#x", number, wc->qp_num);
	q = recv_queue(f, l);
	w = &q->w[index % WQES];
	if (index - q->head >= q->tail - q->head || !w->open)
		broke(f, "lane %u: receive %u completes twice, or was never posted", (unsigned)(l - f->lane), index);
	if (number < SHARED && index != q->head)
		broke(f, "lane %u: receive %u completes before receive %u", (unsigned)(l - f->lane), index, q->head);
	if (number < SHARED && wc->status == IBV_WC_SUCCESS && q->failed)
		broke(f, "lane %u: receive %u completes well after a failed one", (unsigned)(l - f->lane), index);
	q->failed |= wc->status != 0;
	if (!wc->status && wc->opcode == IBV_WC_RECV && wc->byte_len > w->len)
		broke(f, "lane %u: a message of %u bytes is in a receive of %u", (unsigned)(l - f->lane), wc->byte_len, w->len);
	if (!slot_untouched(&s->arena, w->slot, written(l, w, wc), SLOT))
		broke(f, "lane %u: a message of %u bytes wrote more", (unsigned)(l - f->lane), wc->byte_len);
	if (!wc->status)
		check_content(f, l, s, w, wc);
	if (!wc->status && wc->wc_flags & IBV_WC_WITH_INV)
		window_gone(f, l->host, wc->invalidated_rkey);
	if (pair_of(l)->spared)
		check_spared_recv(f, l, s, w, wc);
	finish(s, q, w);
}

void work_reap(struct fuzz *f, unsigned host)
{
	struct side *s = &f->side[host];
	struct ibv_wc wc[16];
	int n;

	while ((n = ur_cq_poll(s->cq, 16, wc)) > 0) {
		queue_check(f, host, true);
		if (host == VICTIM)
			f->completions += (unsigned)n;
		for (int i = 0; i < n; i++) {
			unsigned number = (unsigned)(wc[i].wr_id >> 32), index = (uint32_t)wc[i].wr_id;

			trace(f, "host %u: completion of %u in queue %u, status %u", host, index, number, wc[i].status);
			if (number < LANES && f->lane[number].qp && f->lane[number].qpn == wc[i].qp_num)
				on_sent(f, s, &f->lane[number], index, &wc[i]);
			else
				on_received(f, s, number, index, &wc[i]);
		}
	}
	if (n < 0)
		broke(f, "the CQ of host %u has overrun", host);
	queue_check(f, host, false);
}

static void forget(struct fuzz *f, unsigned host, struct queue *q)
{
	for (unsigned i = q->head; i != q->tail; i++) {
		const struct wqe *w = &q->w[i % WQES];

		if (!w->open)
			continue;
		if (w->op == IBV_WR_BIND_MW)
			window_unsure(f, host, (uint32_t)w->result);
		slot_give(&f->side[host].arena, w->slot);
	}
	q->head = q->tail;
	q->nopen = 0;
	q->failed = false;
}

void work_forget(struct fuzz *f, struct lane *l)
{
	forget(f, l->host, &l->sq);
	forget(f, l->host, &l->rq);
}

/* --- what may change --- */

static void queue_spans(const struct queue *q, bool recv, struct spans *s)
{
	for (unsigned i = q->head; i != q->tail; i++) {
		const struct wqe *w = &q->w[i % WQES];

		if (w->open && (recv || answered(w->op)))
			may_change(s, slot_at(w->slot), w->len);
	}
}

void recv_spans(struct fuzz *f, struct lane *l, struct spans *s)
{
	queue_spans(recv_queue(f, l), true, s);
}

void answer_spans(struct lane *l, struct spans *s)
{
	queue_spans(&l->sq, false, s);
}

void work_spans(struct fuzz *f, unsigned host, struct spans *s)
{
	struct side *side = &f->side[host];

	may_change(s, regions[R_OPEN].at, regions[R_OPEN].size);
	may_change(s, regions[R_WRITE].at, regions[R_WRITE].size);
	may_change(s, regions[R_CELLS].at, regions[R_CELLS].size);
	may_change(s, regions[R_BOARD].at, PIECES * PIECE);
	may_change(s, regions[R_COUNTER].at, 8);
	may_change(s, regions[R_WINDOW].at, WINDOW_PLAIN);
	if (side->key[R_VOLATILE].live)
		may_change(s, regions[R_VOLATILE].at, regions[R_VOLATILE].size);
	queue_spans(&side->srq_q, true, s);
	queue_spans(&side->xrc_q, true, s);
	for (unsigned i = 0; i < LANES; i++) {
		if (!f->lane[i].qp || f->lane[i].host != host)
			continue;
		queue_spans(&f->lane[i].sq, false, s);
		queue_spans(&f->lane[i].rq, true, s);
	}
}

/* Everything that the spared pair has posted is done: the boards hold the last that was written, and the counters count. */
void spared_check(struct fuzz *f)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct lane *l = &f->lane[i], *o = &f->lane[i ^ 1];
		const struct side *s = &f->side[o->host];
		uint64_t count;

		memcpy(&count, s->arena.mem + regions[R_COUNTER].at, 8);
		if (count != l->adds)
			broke(f, "the spared pair: %llu FETCH_ADDs count as %llu", (unsigned long long)l->adds, (unsigned long long)count);
		if (l->sq.nopen || o->messages != l->posted)
			broke(f, "the spared pair: %u requests of host %u never complete, %u messages of %u arrived", l->sq.nopen, l->host,
			      o->messages, l->posted);
	}
}
