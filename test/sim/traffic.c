/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 32 /* work requests under way on a side, and receives posted */
#define SLOT_SIZE (64 * 1024)
#define WRITE_AREA 0 /* per side: where the peer writes; what the peer reads; where receives land; sources; READ targets */
#define READ_AREA 1
#define RECV_AREA 2
#define SOURCE_AREA 3
#define AREAS 4
#define MEM_SIZE ((size_t)AREAS * SLOTS * SLOT_SIZE)

enum op { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_COUNT };

struct wr { /* one posted work request */
	enum op op;
	uint32_t len;
	uint64_t tag; /* its bytes are a function of this */
	bool signaled;
};

struct recv {
	uint32_t len;
};

struct side {
	struct ur_nic *nic;
	struct ur_pd *pd;
	struct ur_cq *scq, *rcq;
	struct ur_qp *qp;
	struct ur_mr *mr;
	struct ur_net_path path;
	uint8_t *mem;
	struct wr wr[SLOTS];
	uint64_t posted, completed; /* send requests; slot = number % SLOTS */
	uint64_t expect[SLOTS];     /* numbers of the sends that consume the peer's receives, in order */
	uint64_t expect_head, expect_tail;
	uint64_t recv_posted, recv_completed;
	bool flushing; /* an error completion was seen: only flushes may follow */
	bool gave_up;
};

struct traffic {
	struct world *w;
	struct side s[2];
	unsigned ops;
	char broken[256];
};

static uint8_t *area(struct side *s, unsigned which, uint64_t number)
{
	return s->mem + ((size_t)which * SLOTS + number % SLOTS) * SLOT_SIZE;
}

static void fill(uint8_t *p, uint32_t len, uint64_t tag)
{
	struct ur_rng r = {.state = tag};
	uint32_t i = 0;

	for (; i + 8 <= len; i += 8) {
		uint64_t v = ur_rng_u64(&r);

		memcpy(p + i, &v, 8);
	}
	for (; i < len; i++)
		p[i] = (uint8_t)(tag + i);
}

static bool matches(const uint8_t *p, uint32_t len, uint64_t tag)
{
	static uint8_t want[SLOT_SIZE];

	fill(want, len, tag);
	return memcmp(p, want, len) == 0;
}

static const char *broke(struct traffic *t, const char *fmt, unsigned side, unsigned long long number, int a, int b)
{
	if (!t->broken[0])
		snprintf(t->broken, sizeof(t->broken), fmt, side, number, a, b);
	return t->broken;
}

/* --- creating --- */

static void no_notify(struct ur_cq *cq)
{
	(void)cq;
}

static bool create_side(struct side *s, struct ur_nic *nic, struct ur_rng *rng)
{
	struct ur_qp_init init = {
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 3, .max_recv_sge = 2, .max_inline_data = 64}};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	s->nic = nic;
	s->mem = calloc(1, MEM_SIZE);
	init.sq_sig_all = ur_rng_below(rng, 2);
	if (!s->mem || ur_pd_create(nic->tp, &s->pd) || ur_mr_reg(nic->tp, s->pd, s->mem, MEM_SIZE, (uintptr_t)s->mem, access, &s->mr) ||
	    ur_cq_create(nic->tp, 2 * SLOTS, NULL, no_notify, &s->scq) || ur_cq_create(nic->tp, 2 * SLOTS, NULL, no_notify, &s->rcq))
		return false;
	init.pd = s->pd;
	init.send_cq = s->scq;
	init.recv_cq = s->rcq;
	return ur_qp_create(nic->tp, &init, &s->qp) == 0;
}

static bool connect_side(struct traffic *t, unsigned i, enum ibv_mtu mtu, const uint32_t psn[2], uint8_t depth)
{
	struct side *s = &t->s[i];
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	if (ur_nic_modify_qp(s->nic, s->qp, &s->path, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, t->w->now))
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				 .path_mtu = mtu,
				 .dest_qp_num = ur_qp_num(t->s[!i].qp),
				 .rq_psn = psn[!i],
				 .max_dest_rd_atomic = depth,
				 .min_rnr_timer = 5,
				 .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 0, .hop_limit = 64}}};
	memcpy(a.ah_attr.grh.dgid.raw, t->w->gid[!i].raw, 16);
	if (ur_nic_modify_qp(s->nic, s->qp, &s->path, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER,
			     t->w->now))
		return false;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = psn[i], .max_rd_atomic = depth};
	return !ur_nic_modify_qp(
		s->nic, s->qp, &s->path, &a,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, t->w->now);
}

struct traffic *traffic_create(struct world *w, unsigned ops)
{
	struct traffic *t = calloc(1, sizeof(*t));
	unsigned max = ur_nic_max_mtu(w->nic[0]->cfg.mtu);
	enum ibv_mtu mtu = 1 + ur_rng_below(&w->rng, max);
	uint32_t psn[2] = {ur_rng_u32(&w->rng) & 0xffffff, 0xfffff0 + ur_rng_below(&w->rng, 16)};
	uint8_t depth = (uint8_t)(1 + ur_rng_below(&w->rng, 16));

	if (!t)
		return NULL;
	t->w = w;
	t->ops = ops;
	if (create_side(&t->s[0], w->nic[0], &w->rng) && create_side(&t->s[1], w->nic[1], &w->rng) && connect_side(t, 0, mtu, psn, depth) &&
	    connect_side(t, 1, mtu, psn, depth))
		return t;
	traffic_destroy(t);
	return NULL;
}

/* --- posting --- */

static uint32_t random_len(struct ur_rng *r)
{
	switch (ur_rng_below(r, 8)) {
	case 0: return 0;
	case 1:
	case 2:
	case 3: return ur_rng_below(r, 65);
	case 4:
	case 5: return ur_rng_below(r, 8192);
	default: return ur_rng_below(r, SLOT_SIZE + 1);
	}
}

static void post_receives(struct traffic *t, struct side *s)
{
	while (s->recv_posted - s->recv_completed < SLOTS && ur_rng_below(&t->w->rng, 4)) {
		uint64_t no = s->recv_posted;
		uint32_t half = ur_rng_below(&t->w->rng, SLOT_SIZE);
		uint8_t *p = area(s, RECV_AREA, no);
		struct ibv_sge sge[2] = {{.addr = (uintptr_t)p, .length = half, .lkey = s->mr->lkey},
					 {.addr = (uintptr_t)p + half, .length = SLOT_SIZE - half, .lkey = s->mr->lkey}};
		struct ibv_recv_wr wr = {.wr_id = no, .sg_list = sge, .num_sge = 2}, *bad;

		if (ur_qp_post_recv(s->qp, &wr, &bad))
			break;
		s->recv_posted++;
	}
}

/* Splits [p, p+len) at random into up to three parts. */
static int scatter(struct ur_rng *r, struct side *s, uint8_t *p, uint32_t len, struct ibv_sge sge[3])
{
	int n = (int)(1 + ur_rng_below(r, 3));
	uint32_t at = 0;

	for (int i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len - at : ur_rng_below(r, len - at + 1);

		sge[i] = (struct ibv_sge){.addr = (uintptr_t)p + at, .length = part, .lkey = s->mr->lkey};
		at += part;
	}
	return n;
}

static const enum ibv_wr_opcode wr_opcodes[OP_COUNT] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
							IBV_WR_RDMA_READ};

static void post_one(struct traffic *t, struct side *s, struct side *peer)
{
	struct ur_rng *r = &t->w->rng;
	uint64_t no = s->posted;
	struct wr *w = &s->wr[no % SLOTS];
	uint8_t *mine = area(s, SOURCE_AREA, no);
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {.wr_id = no, .sg_list = sge}, *bad;

	*w = (struct wr){
		.op = (enum op)ur_rng_below(r, OP_COUNT), .len = random_len(r), .tag = ur_rng_u64(r), .signaled = ur_rng_below(r, 4) != 0};
	wr.opcode = wr_opcodes[w->op];
	wr.send_flags = (w->signaled ? IBV_SEND_SIGNALED : 0) | (ur_rng_below(r, 8) ? 0 : IBV_SEND_FENCE) |
			(ur_rng_below(r, 2) ? 0 : IBV_SEND_SOLICITED);
	wr.imm_data = (uint32_t)no;
	wr.num_sge = scatter(r, s, mine, w->len, sge);
	if (w->op == OP_READ) {
		fill(area(peer, READ_AREA, no), w->len, w->tag);
		memset(mine, 0, w->len);
		wr.wr.rdma.remote_addr = (uintptr_t)area(peer, READ_AREA, no);
	} else {
		fill(mine, w->len, w->tag);
		if (w->len <= 64 && ur_rng_below(r, 2))
			wr.send_flags |= IBV_SEND_INLINE;
		if (w->op == OP_WRITE || w->op == OP_WRITE_IMM) {
			memset(area(peer, WRITE_AREA, no), 0, w->len);
			wr.wr.rdma.remote_addr = (uintptr_t)area(peer, WRITE_AREA, no);
		}
	}
	wr.wr.rdma.rkey = w->op >= OP_WRITE ? peer->mr->rkey : 0;
	if (ur_qp_post_send(s->qp, &wr, &bad))
		return;
	if (wr.send_flags & IBV_SEND_INLINE)
		memset(mine, 0xee, w->len); /* inline data is taken at once */
	if (w->op == OP_SEND || w->op == OP_SEND_IMM || w->op == OP_WRITE_IMM)
		s->expect[s->expect_tail++ % SLOTS] = no;
	s->posted++;
	if (ur_qp_doorbell(s->qp))
		ur_nic_ring(s->nic, s->qp);
}

static void post_sends(struct traffic *t, struct side *s, struct side *peer)
{
	/* A slot's number is used again only when the request is complete and the peer has seen what it delivered. */
	while (s->posted < t->ops && !s->flushing && s->posted - s->completed < SLOTS && ur_rng_below(&t->w->rng, 6)) {
		if (s->expect_tail - s->expect_head == SLOTS ||
		    (s->expect_head < s->expect_tail && s->posted - s->expect[s->expect_head % SLOTS] >= SLOTS))
			break;
		post_one(t, s, peer);
	}
}

/* --- completions against the model --- */

static const enum ibv_wc_opcode wc_opcodes[OP_COUNT] = {IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};

static bool check_delivered(struct side *s, struct side *peer, uint64_t no)
{
	struct wr *w = &s->wr[no % SLOTS];

	if (w->op == OP_READ)
		return matches(area(s, SOURCE_AREA, no), w->len, w->tag);
	if (w->op == OP_WRITE || w->op == OP_WRITE_IMM)
		return matches(area(peer, WRITE_AREA, no), w->len, w->tag);
	return true; /* SENDs are checked where they are received */
}

static void on_send_wc(struct traffic *t, unsigned i, const struct ibv_wc *wc)
{
	struct side *s = &t->s[i];

	/* Unsignalled requests complete with the next one that is seen; errors are always seen. */
	while (s->completed < wc->wr_id && !s->flushing) {
		if (!check_delivered(s, &t->s[!i], s->completed))
			broke(t, "side %u: unsignalled request %llu completed without its bytes", i, s->completed, 0, 0);
		s->completed++;
	}
	if (wc->wr_id != s->completed) {
		broke(t, "side %u: request %llu completed out of order (status %d, expected another number, low bits %d)", i, wc->wr_id,
		      wc->status, (int)s->completed);
		return;
	}
	s->completed++;
	if (wc->status == IBV_WC_SUCCESS) {
		if (s->flushing)
			broke(t, "side %u: request %llu succeeded after an error", i, wc->wr_id, 0, 0);
		if (wc->opcode != wc_opcodes[s->wr[wc->wr_id % SLOTS].op])
			broke(t, "side %u: request %llu completed as opcode %d", i, wc->wr_id, (int)wc->opcode, 0);
		if (!check_delivered(s, &t->s[!i], wc->wr_id))
			broke(t, "side %u: request %llu completed without its bytes", i, wc->wr_id, 0, 0);
		return;
	}
	if (!s->flushing && wc->status == IBV_WC_RETRY_EXC_ERR)
		s->gave_up = true;
	else if (wc->status != IBV_WC_WR_FLUSH_ERR)
		broke(t, "side %u: request %llu failed with status %d", i, wc->wr_id, wc->status, 0);
	s->flushing = true;
}

static void on_recv_wc(struct traffic *t, unsigned i, const struct ibv_wc *wc)
{
	struct side *s = &t->s[i], *peer = &t->s[!i];
	struct wr *w;
	uint64_t no;

	if (wc->wr_id != s->recv_completed++)
		broke(t, "side %u: receive %llu completed out of order (status %d)", i, wc->wr_id, wc->status, 0);
	if (wc->status != IBV_WC_SUCCESS) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			broke(t, "side %u: receive %llu failed with status %d", i, wc->wr_id, wc->status, 0);
		return;
	}
	if (peer->expect_head == peer->expect_tail) {
		broke(t, "side %u: receive %llu completed though nothing was sent", i, wc->wr_id, 0, 0);
		return;
	}
	no = peer->expect[peer->expect_head++ % SLOTS];
	w = &peer->wr[no % SLOTS];
	if (wc->byte_len != w->len)
		broke(t, "side %u: receive %llu has %d bytes, sent were %d", i, wc->wr_id, (int)wc->byte_len, (int)w->len);
	if (w->op != OP_SEND && (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->imm_data != (uint32_t)no))
		broke(t, "side %u: receive %llu has the wrong immediate %d, sent was %d", i, wc->wr_id, (int)wc->imm_data, (int)no);
	if (w->op == OP_WRITE_IMM ? !matches(area(s, WRITE_AREA, no), w->len, w->tag)
				  : !matches(area(s, RECV_AREA, wc->wr_id), w->len, w->tag))
		broke(t, "side %u: receive %llu has the wrong bytes", i, wc->wr_id, 0, 0);
}

static void reap(struct traffic *t, unsigned i)
{
	struct ibv_wc wc[8];
	int n;

	/* Receives first: a send completes only after its message was delivered. */
	for (unsigned k = 0; k < 2; k++)
		while ((n = ur_cq_poll(t->s[k].rcq, 8, wc)) > 0)
			for (int j = 0; j < n; j++)
				on_recv_wc(t, k, &wc[j]);
	while ((n = ur_cq_poll(t->s[i].scq, 8, wc)) > 0)
		for (int j = 0; j < n; j++)
			on_send_wc(t, i, &wc[j]);
	if (n < 0)
		broke(t, "side %u: the send CQ overran", i, 0, 0, 0);
}

const char *traffic_run(struct traffic *t)
{
	for (unsigned i = 0; i < 2; i++) {
		reap(t, i);
		if (ur_qp_state(t->s[i].qp) == IBV_QPS_RTS)
			post_receives(t, &t->s[i]);
		post_sends(t, &t->s[i], &t->s[!i]);
	}
	return t->broken[0] ? t->broken : NULL;
}

static bool side_done(const struct traffic *t, const struct side *s)
{
	if (s->flushing)
		return s->completed == s->posted;
	if (s->posted < t->ops)
		return false;
	for (uint64_t no = s->completed; no < s->posted; no++)
		if (s->wr[no % SLOTS].signaled)
			return false;
	return s->expect_head == s->expect_tail;
}

bool traffic_gave_up(const struct traffic *t)
{
	return t->s[0].gave_up || t->s[1].gave_up;
}

bool traffic_done(const struct traffic *t)
{
	if (traffic_gave_up(t)) /* the peer of a QP that gave up hears nothing more */
		return (!t->s[0].gave_up || side_done(t, &t->s[0])) && (!t->s[1].gave_up || side_done(t, &t->s[1]));
	return side_done(t, &t->s[0]) && side_done(t, &t->s[1]);
}

/* --- destroying --- */

const char *traffic_destroy(struct traffic *t)
{
	const char *left = NULL;

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &t->s[i];

		if (s->qp && ur_nic_destroy_qp(s->nic, s->qp, &s->path))
			left = "a QP could not be destroyed";
		if (s->scq && ur_cq_destroy(s->scq))
			left = "a send CQ could not be destroyed";
		if (s->rcq && ur_cq_destroy(s->rcq))
			left = "a receive CQ could not be destroyed";
	}
	/* Frames under way may still refer to the memory: let them arrive. */
	for (unsigned n = 0; n < 10000 && (atomic_load(&t->s[0].mr->frames.n) || atomic_load(&t->s[1].mr->frames.n)); n++)
		world_step(t->w, t->w->now + UR_NS_PER_MS);
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &t->s[i];

		if (s->mr && ur_mr_dereg(s->mr))
			left = "frames still refer to a memory region";
		if (s->pd && ur_pd_destroy(s->pd))
			left = "a PD could not be destroyed";
		free(s->mem);
	}
	free(t);
	return left;
}
