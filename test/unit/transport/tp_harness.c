/* SPDX-License-Identifier: BSD-3-Clause */
/* See tp_harness.h. Frames go through ur_frame_finish and ur_frame_parse, so lengths, padding and ICRC of everything sent are checked on
 * the way. */
#include "tp_harness.h"

#include <stdlib.h>

#include "test/port/hide.h"

const struct th_opt th_default = {
	.mtu = IBV_MTU_1024,
	.psn = {100, 200},
	.timeout = 8,
	.retry_cnt = 7,
	.rnr_retry = 6,
	.min_rnr = 1,
	.max_rd = 4,
	.wr = 64,
	.sge = 4,
	.cqe = 255,
	.access = TH_ALL_ACCESS,
};

/* Where trains go back to; packets have no home. */
#define TRAIN ((struct ur_queue *)(void *)&no_queue)
static char no_queue;

/* --- packets --- */

static unsigned pkt_alloc(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct th_node *node = ctx;

	if (n > node->room)
		n = node->room;
	for (unsigned i = 0; i < n; i++) {
		pkts[i] = calloc(1, sizeof(struct ur_pkt));
		pkts[i]->data = malloc(UR_PKT_ROOM);
		pkts[i]->room = UR_PKT_ROOM;
	}
	node->room -= n;
	node->live += (int)n;
	return n;
}

static struct ur_pkt *pkt_alloc_train(void *ctx)
{
	struct th_node *node = ctx;
	struct ur_pkt *p;

	if (!node->trains)
		return NULL;
	p = calloc(1, sizeof(*p));
	p->room = UR_PKT_ROOM + node->h->opt.train_bytes;
	p->data = malloc(p->room);
	p->home = TRAIN;
	node->trains--;
	node->live++;
	return p;
}

static void pkt_free(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct th_node *node = ctx;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned s = 0; s < pkts[i]->nseg; s++)
			atomic_fetch_sub(&pkts[i]->seg[s].ref->n, 1);
		node->room += !pkts[i]->home;
		node->trains += pkts[i]->home != NULL;
		free(pkts[i]->data);
		free(pkts[i]);
	}
	node->live -= (int)n;
}

static void on_event(struct ur_qp *qp, enum ibv_event_type ev)
{
	struct th_node *node = ur_qp_context(qp);

	if (ev == IBV_EVENT_COMM_EST && ur_qp_state(qp) != IBV_QPS_RTR)
		return; /* every first packet brings one; lib/verbs keeps it from programs */
	if (node->nevents < ur_array_size(node->event))
		node->event[node->nevents++] = ev;
}

static void on_notify(struct ur_cq *cq)
{
	struct th_node *node = ur_cq_context(cq);

	node->notified++;
}

/* Parses the frame that is in out->buf. */
static void parse(struct th_pkt *out, uint32_t len)
{
	struct ur_counters c = {{0}};

	memset(&out->p, 0, sizeof(out->p));
	out->p.data = out->buf;
	out->p.len = len;
	out->p.room = sizeof(out->buf);
	CU_ASSERT_FATAL(ur_frame_parse(&out->p, &c));
	CU_ASSERT_FATAL(out->p.kind == UR_PKT_ROCE);
}

/* Finishes the frame, makes it contiguous and parses it. */
static void to_wire(struct ur_pkt *p, struct th_pkt *out)
{
	uint8_t *to = out->buf;

	CU_ASSERT_FATAL(!p->stride);
	if (!(p->flags & UR_PKT_COMPLETE))
		ur_frame_finish(p, p->bth.pad);
	CU_ASSERT_FATAL(ur_pkt_frame_len(p) <= sizeof(out->buf));
	memcpy(to, p->data, p->len);
	to += p->len;
	for (unsigned i = 0; i < p->nseg; i++) {
		memcpy(to, p->seg[i].data, p->seg[i].len);
		to += p->seg[i].len;
	}
	memcpy(to, p->tail, p->tail_len);
	parse(out, ur_pkt_frame_len(p));
}

bool th_wire(struct ur_pkt *p, struct ur_train_cursor *at, struct th_pkt *out)
{
	struct ur_pkt one = {.data = out->buf, .room = sizeof(out->buf)};

	if (p->stride) {
		if (!ur_train_cut(p, at, &one))
			return false;
		parse(out, one.len);
		return true;
	}
	if (at->place++)
		return false;
	to_wire(p, out);
	return true;
}

/* --- nodes --- */

static void path_init(struct th *h, unsigned i)
{
	struct ur_path *path = &h->n[i].path;
	struct ur_mac mac[2] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};
	struct ur_gid gid[2];

	for (unsigned k = 0; k < 2; k++) {
		const uint8_t v4[4] = {10, 0, 0, (uint8_t)(k + 1)};
		uint32_t addr;

		memcpy(&addr, v4, 4);
		gid[k] = h->opt.v6 ? (struct ur_gid){{0xfe, 0x80, [15] = (uint8_t)(k + 1)}} : ur_gid_from_v4(addr);
	}
	ur_path_build(path, &mac[i], &mac[!i], h->opt.v6 ? 7 : 0, &gid[i], &gid[!i], 0, 64, 0, 0xc123);
	path->ready = true;
}

/* Memory of closed nodes, for the next ones: a test may open thousands, and fresh pages take long. Nobody may touch it meanwhile. */
static uint8_t *unused[4];

static uint8_t *take_memory(void)
{
	for (unsigned i = 0; i < ur_array_size(unused); i++)
		if (unused[i]) {
			uint8_t *mem = unused[i];

			unused[i] = NULL;
			ur_show(mem, TH_MEM);
			return mem;
		}
	return malloc(TH_MEM);
}

static void give_memory(uint8_t *mem)
{
	for (unsigned i = 0; i < ur_array_size(unused); i++)
		if (!unused[i]) {
			unused[i] = mem;
			ur_hide(mem, TH_MEM);
			return;
		}
	free(mem);
}

static void node_open(struct th *h, unsigned i)
{
	struct th_node *n = &h->n[i];
	const struct ur_seed seed = ur_seed_of(i + 1);
	const struct ur_tp_config c = {
		.ctx = n,
		.alloc = pkt_alloc,
		.free = pkt_free,
		.alloc_train = pkt_alloc_train,
		.wheel = h->wheel,
		.counters = &n->c,
		.random = &n->random,
		.slot = (uint8_t)(i + 1),
		.window = h->opt.window,
		.cc = h->opt.cc,
		.cwnd = h->opt.cwnd,
		.selective_repeat = h->opt.selective,
		.reorder_bytes = h->opt.reorder_bytes,
	};
	struct ur_qp_init init = {
		.type = h->opt.type ? h->opt.type : IBV_QPT_RC,
		.cap = {h->opt.wr, h->opt.wr, h->opt.sge, h->opt.sge, h->opt.inline_data},
		.sq_sig_all = h->opt.sig_all,
		.context = n,
		.event = on_event,
	};

	n->h = h;
	n->room = n->trains = 1u << 20;
	ur_random_init(&n->random, &seed);
	n->mem = take_memory();
	th_fill(n, i + 1);
	CU_ASSERT_FATAL(ur_tp_create(&c, &n->tp) == 0);
	ur_tp_set_train(n->tp, h->opt.train, h->opt.train_bytes);
	CU_ASSERT_FATAL(ur_pd_create(n->tp, &n->pd) == 0);
	CU_ASSERT_FATAL(ur_mr_reg(n->tp, n->pd, n->mem, TH_MEM, (uintptr_t)n->mem, TH_MR_ACCESS, &n->mr) == 0);
	CU_ASSERT_FATAL(ur_cq_create(n->tp, h->opt.cqe, n, on_notify, &n->scq) == 0);
	CU_ASSERT_FATAL(ur_cq_create(n->tp, h->opt.cqe, n, on_notify, &n->rcq) == 0);
	init.pd = n->pd;
	init.send_cq = n->scq;
	init.recv_cq = n->rcq;
	CU_ASSERT_FATAL(ur_qp_create(n->tp, &init, &n->qp) == 0);
	path_init(h, i);
}

/* What each service requires, besides the state. */
struct needs {
	int init, rtr, rts;
};

#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRY (IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT)

static const struct needs *needs_of(enum ibv_qp_type type)
{
	static const struct needs rc = {IBV_QP_ACCESS_FLAGS, CONNECT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, RETRY},
				  uc = {IBV_QP_ACCESS_FLAGS, CONNECT, 0}, ud = {IBV_QP_QKEY, 0, 0};

	return type == IBV_QPT_UC ? &uc : type == IBV_QPT_UD ? &ud : &rc;
}

void th_connect(struct th *h, unsigned i)
{
	struct th_node *n = &h->n[i];
	const struct needs *need = needs_of(h->opt.type);
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = (unsigned)h->opt.access,
		.qkey = h->opt.qkey,
		.path_mtu = h->opt.mtu,
		.dest_qp_num = ur_qp_num(h->n[!i].qp),
		.rq_psn = h->opt.psn[!i],
		.sq_psn = h->opt.psn[i],
		.max_dest_rd_atomic = h->opt.max_rd,
		.max_rd_atomic = h->opt.max_rd,
		.min_rnr_timer = h->opt.min_rnr,
		.timeout = h->opt.timeout,
		.retry_cnt = h->opt.retry_cnt,
		.rnr_retry = h->opt.rnr_retry,
	};

	CU_ASSERT_FATAL(ur_qp_modify(n->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | need->init, NULL, h->now) == 0);
	a.qp_state = IBV_QPS_RTR;
	CU_ASSERT_FATAL(ur_qp_modify(n->qp, &a, IBV_QP_STATE | need->rtr, need->rtr ? &n->path : NULL, h->now) == 0);
	if (h->opt.stay_rtr)
		return;
	a.qp_state = IBV_QPS_RTS;
	CU_ASSERT_FATAL(ur_qp_modify(n->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | need->rts, NULL, h->now) == 0);
}

void th_open(struct th *h, const struct th_opt *opt)
{
	memset(h, 0, sizeof(*h));
	h->opt = *opt;
	h->opt.train_bytes = opt->train_bytes ? opt->train_bytes : 65000;
	h->now = 1000000;
	h->wheel = ur_wheel_create(h->now);
	CU_ASSERT_FATAL(h->wheel != NULL);
	node_open(h, 0);
	node_open(h, 1);
	th_connect(h, 0);
	th_connect(h, 1);
}

void th_close(struct th *h)
{
	for (unsigned i = 0; i < 2; i++) {
		struct th_node *n = &h->n[i];

		CU_ASSERT_EQUAL(ur_qp_destroy(n->qp), 0);
		CU_ASSERT_EQUAL(ur_cq_destroy(n->scq), 0);
		CU_ASSERT_EQUAL(ur_cq_destroy(n->rcq), 0);
		if (n->mr)
			CU_ASSERT_EQUAL(ur_mr_dereg(n->mr), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(n->pd), 0);
		ur_tp_destroy(n->tp);
		CU_ASSERT_EQUAL(n->live, 0);
		CU_ASSERT_EQUAL(n->c.v[UR_C_TX_STALLED], 0);
		give_memory(n->mem);
	}
	ur_wheel_destroy(h->wheel);
}

void th_fill(struct th_node *n, uint64_t seed)
{
	static uint64_t random[2][TH_MEM / sizeof(uint64_t)], of[2] = {1, 0}; /* what an even seed and an odd one give; none yet */
	uint64_t *v = random[seed % 2];

	if (of[seed % 2] != seed) {
		struct ur_rng r = {seed};

		for (size_t i = 0; i < ur_array_size(random[0]); i++)
			v[i] = ur_rng_u64(&r);
		of[seed % 2] = seed;
	}
	memcpy(n->mem, v, TH_MEM);
}

/* --- the wire --- */

bool th_pull(struct th *h, unsigned node, struct th_pkt *out)
{
	struct th_node *n = &h->n[node];
	struct ur_pkt *p;

	if (ur_tp_tx(n->tp, &p, 1, h->now) != 1)
		return false;
	h->sent[node]++;
	to_wire(p, out);
	pkt_free(n, &p, 1);
	return true;
}

unsigned th_drain(struct th *h, unsigned node)
{
	struct th_pkt p;
	unsigned n = 0;

	while (th_pull(h, node, &p))
		n++;
	return n;
}

void th_feed(struct th *h, unsigned node, struct th_pkt *in)
{
	ur_tp_rx(h->n[node].tp, &in->p, h->now);
}

void th_free(struct th *h, unsigned node, struct ur_pkt **pkts, unsigned n)
{
	pkt_free(&h->n[node], pkts, n);
}

static bool move(struct th *h, unsigned from)
{
	struct th_node *n = &h->n[from];
	static struct th_pkt wire[32];
	struct ur_pkt *p[32];
	unsigned got = ur_tp_tx(n->tp, p, 32, h->now), kept = 0, all = 0;

	/* The whole burst leaves before it arrives, as with a real port. */
	for (unsigned i = 0; i < got; i++) {
		struct ur_train_cursor at = {0};

		all += ur_train_count(p[i]);
		CU_ASSERT_FATAL(all <= 32);
		for (unsigned k = ur_train_count(p[i]); k && th_wire(p[i], &at, &wire[kept]); k--) {
			bool lost = h->lose && h->lose(h, from, &wire[kept].p);

			h->sent[from]++;
			kept += !lost;
		}
	}
	pkt_free(n, p, got);
	for (unsigned i = 0; i < kept; i++)
		th_feed(h, !from, &wire[i]);
	return got > 0;
}

void th_pump(struct th *h)
{
	for (unsigned i = 0; i < 1000000; i++) {
		bool a = move(h, 0), b = move(h, 1);

		if (!a && !b)
			return;
	}
	CU_FAIL_FATAL("the nodes never become quiet");
}

void th_run(struct th *h, ur_time limit)
{
	ur_time end = h->now + limit;

	for (;;) {
		ur_time t;

		th_pump(h);
		t = ur_wheel_next(h->wheel);
		if (t > end)
			break;
		h->now = t > h->now ? t : h->now + 1;
		ur_wheel_advance(h->wheel, h->now);
	}
	if (ur_wheel_next(h->wheel) != UR_TIME_NEVER)
		h->now = end;
}

void th_sleep(struct th *h, ur_time d)
{
	ur_time end = h->now + d;

	while (h->now < end) {
		h->now += ur_min_time(end - h->now, UR_WHEEL_TICK_NS * 64);
		ur_wheel_advance(h->wheel, h->now);
	}
}

bool th_lose_mask(struct th *h, unsigned from, const struct ur_pkt *p)
{
	const uint64_t *mask = h->arg;

	(void)p;
	return h->sent[from] < 64 && mask[from] >> h->sent[from] & 1;
}

/* --- packets made by hand --- */

static void put_ext(uint8_t *ext, const struct ur_opcode_info *op, const struct th_hdr *x)
{
	if (op->flags & UR_OPF_XRCETH)
		ur_xrceth_put(ext, x->srqn);
	if (op->flags & UR_OPF_DETH)
		ur_deth_put(ext + op->off_deth, &(struct ur_deth){x->qkey, x->sqpn});
	if (op->flags & UR_OPF_RETH)
		ur_reth_put(ext + op->off_reth, &(struct ur_reth){x->va, x->rkey, x->len});
	if (op->flags & UR_OPF_AETH)
		ur_aeth_put(ext + op->off_aeth, &(struct ur_aeth){x->syndrome, x->msn});
	if (op->flags & UR_OPF_IMM)
		memcpy(ext + op->off_imm, &x->imm, 4);
	if (op->flags & UR_OPF_IETH)
		ur_put32(ext + op->off_ieth, x->ieth);
	if (op->flags & UR_OPF_ATOMICETH)
		ur_atomiceth_put(ext + op->off_atomiceth, &(struct ur_atomiceth){x->va, x->rkey, x->swap_add, x->compare});
	if (op->flags & UR_OPF_ATOMICACKETH)
		ur_put64(ext + op->off_atomicacketh, x->original);
	if (op->flags & UR_OPF_FETH)
		ur_feth_put(ext + op->off_feth, &x->feth);
}

void th_make(struct th *h, unsigned node, struct th_pkt *out, uint8_t opcode, uint32_t psn, bool ackreq, const struct th_hdr *ext,
	     const void *payload, uint32_t len)
{
	static uint8_t room[UR_PKT_ROOM];
	static const struct th_hdr none;
	const struct ur_path *path = &h->n[!node].path;
	const struct ur_opcode_info *op = ur_opcode(opcode);
	struct ur_pkt p = {.data = room, .room = sizeof(room)};

	p.bth = (struct ur_bth){.opcode = opcode, .pad = -len & 3, .pkey = 0xffff, .ackreq = ackreq, .psn = psn & UR_PSN_MASK};
	p.bth.dqpn = ur_qp_num(h->n[node].qp);
	memcpy(room, path->hdr, path->hdr_len);
	p.l3_off = path->l3_off;
	p.bth_off = path->hdr_len;
	p.ip_version = path->ip_version;
	ur_bth_put(room + p.bth_off, &p.bth);
	put_ext(room + p.bth_off + UR_BTH_LEN, op, ext ? ext : &none);
	p.len = (uint32_t)p.bth_off + UR_BTH_LEN + op->ext_len;
	if (len)
		memcpy(room + p.len, payload, len);
	p.len += len;
	to_wire(&p, out);
}

void th_inject(struct th *h, unsigned node, uint8_t opcode, uint32_t psn, bool ackreq, const struct th_hdr *ext, const void *payload,
	       uint32_t len)
{
	struct th_pkt p;

	th_make(h, node, &p, opcode, psn, ackreq, ext, payload, len);
	th_feed(h, node, &p);
}

void th_ack(struct th *h, unsigned node, uint32_t psn, uint8_t syndrome)
{
	const struct th_hdr ext = {.syndrome = syndrome};

	th_inject(h, node, UR_OP_ACK, psn, false, &ext, NULL, 0);
}

void th_expect_ack(struct th *h, unsigned node, uint32_t psn, uint8_t syndrome)
{
	struct th_pkt p;
	struct ur_aeth a;

	if (!th_pull(h, node, &p)) {
		CU_FAIL("no acknowledgement");
		return;
	}
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_ACK);
	CU_ASSERT_EQUAL(p.p.bth.psn, psn & UR_PSN_MASK);
	ur_aeth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &a);
	CU_ASSERT_EQUAL(a.syndrome, syndrome);
}

void th_expect_quiet(struct th *h, unsigned node)
{
	CU_ASSERT_EQUAL(th_drain(h, node), 0);
	CU_ASSERT_FALSE(ur_tp_tx_pending(h->n[node].tp));
}

void th_expect_refused(struct th *h, unsigned node, uint32_t psn, enum ur_nak_code code, int event)
{
	th_expect_ack(h, node, psn, NAK(code));
	CU_ASSERT_EQUAL(ur_qp_state(h->n[node].qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(h->n[node].nevents, event >= 0);
	if (event >= 0)
		CU_ASSERT_EQUAL((int)h->n[node].event[0], event);
	th_expect_quiet(h, node);
}

struct th_hdr th_reth(const struct th *h, unsigned node, uint32_t off, uint32_t len)
{
	const struct th_node *n = &h->n[node];

	return (struct th_hdr){.va = (uintptr_t)n->mem + off, .rkey = n->mr->rkey, .len = len, .imm = 0x55667788};
}

/* --- requests and completions --- */

int th_post_wr(struct th *h, unsigned node, struct ibv_send_wr *wr)
{
	struct ur_qp *qp = h->n[node].qp;
	struct ibv_send_wr *bad;
	int err = ur_qp_post_send(qp, wr, &bad);

	if (ur_qp_doorbell(qp))
		ur_qp_answer(qp, h->now);
	return err;
}

int th_post_sge(struct th *h, unsigned node, enum ibv_wr_opcode op, uint64_t wr_id, struct ibv_sge *sge, int nsge, uint64_t raddr,
		uint32_t rkey, unsigned flags)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = nsge, .opcode = op, .send_flags = flags};

	wr.wr.rdma.remote_addr = raddr;
	wr.wr.rdma.rkey = rkey;
	wr.imm_data = 0x11223344;
	return th_post_wr(h, node, &wr);
}

int th_post(struct th *h, unsigned node, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len, uint32_t roff, unsigned flags)
{
	struct th_node *n = &h->n[node], *peer = &h->n[!node];
	struct ibv_sge sge = {(uintptr_t)(n->mem + off), len, n->mr->lkey};

	return th_post_sge(h, node, op, wr_id, &sge, len ? 1 : 0, (uintptr_t)(peer->mem + roff), peer->mr ? peer->mr->rkey : 0, flags);
}

int th_recv(struct th *h, unsigned node, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct th_node *n = &h->n[node];
	struct ibv_sge sge = {(uintptr_t)(n->mem + off), len, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = len ? 1 : 0}, *bad;
	int err = ur_qp_post_recv(n->qp, &wr, &bad);

	if (ur_qp_doorbell(n->qp))
		ur_qp_answer(n->qp, h->now);
	return err;
}

struct ibv_wc th_expect_wc(struct ur_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {0};

	if (ur_cq_poll(cq, 1, &wc) != 1) {
		CU_FAIL("no completion");
		return wc;
	}
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
	CU_ASSERT_EQUAL(wc.status, status);
	return wc;
}

void th_expect_no_wc(struct ur_cq *cq)
{
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(ur_cq_poll(cq, 1, &wc), 0);
}
