/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport with one QP that stands for one side of a recorded connection. Its attributes are those that the CM messages gave the
 * recorded QP; remote memory has the recorded addresses, so that only keys and QPNs are rewritten in what it is fed.
 */
#include <errno.h>
#include <stdlib.h>

#include "replay/replay.h"
#include "wire/crc/icrc.h"

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define WINDOW 65536 /* so that a long READ goes out as the recorded host sent it, whatever its own window was */
#define BURST 16

/* --- packets --- */

static bool pkt_room(struct ur_pkt *p, uint32_t room)
{
	memset(p, 0, sizeof(*p));
	p->data = malloc(room);
	p->room = room;
	return p->data;
}

static unsigned pkt_alloc(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct side *s = ctx;

	for (unsigned i = 0; i < n; i++) {
		pkts[i] = calloc(1, sizeof(*pkts[i]));
		if (!pkts[i] || !pkt_room(pkts[i], UR_PKT_ROOM)) {
			free(pkts[i]);
			n = i;
		}
	}
	s->live += (int)n;
	return n;
}

static void pkt_free(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct side *s = ctx;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < pkts[i]->nseg; k++)
			atomic_fetch_sub(&pkts[i]->seg[k].ref->n, 1);
		pkt_drop(pkts[i]);
		free(pkts[i]);
	}
	s->live -= (int)n;
}

/* The packet as the peer would parse it. */
static bool to_wire(struct ur_pkt *p, struct ur_pkt *out)
{
	struct ur_counters count = {.v = {0}};
	uint8_t *to;

	if (!(p->flags & UR_PKT_COMPLETE))
		ur_frame_finish(p, p->bth.pad);
	if (!pkt_room(out, ur_pkt_frame_len(p)))
		return false;
	out->len = out->room;
	to = out->data;
	memcpy(to, p->data, p->len);
	to += p->len;
	for (unsigned i = 0; i < p->nseg; i++) {
		memcpy(to, p->seg[i].data, p->seg[i].len);
		to += p->seg[i].len;
	}
	memcpy(to, p->tail, p->tail_len);
	return ur_frame_parse(out, &count) && out->kind == UR_PKT_ROCE;
}

void side_drain(struct side *s)
{
	struct ur_pkt *p[BURST], wire;
	unsigned n;

	while ((n = ur_tp_tx(s->tp, p, BURST, s->now)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			if (to_wire(p[i], &wire))
				s->sent(s, &wire);
			else
				report_text(s->rep, 0, "frame", "well formed", "malformed");
			pkt_drop(&wire);
		}
		pkt_free(s, p, n);
	}
}

/* The RETH and the AtomicETH both have the key after the address. */
static void rewrite_key(const struct side *s, struct ur_pkt *p)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	const struct region *g;
	struct ur_reth h;

	if (!pkt_remote(p, &h))
		return;
	g = side_region(s, h.rkey, h.va, h.len);
	if (g)
		ur_put32(p->data + p->bth_off + UR_BTH_LEN + (op->flags & UR_OPF_RETH ? op->off_reth : op->off_atomiceth) + 8, g->mr->rkey);
}

void side_feed(struct side *s, const struct rec *r)
{
	struct ur_counters count = {.v = {0}};
	uint32_t body;
	struct ur_pkt p;

	pkt_load(&p, r->pkt.data, r->pkt.len);
	if (!p.data)
		return;
	p.bth = r->pkt.bth;
	p.bth_off = r->pkt.bth_off;
	if (p.bth.dqpn != UR_QPN_MCAST)
		ur_put24(p.data + p.bth_off + UR_BTH_QPN, ur_qp_num(s->qp));
	xrc_rename(s, &p);
	rewrite_key(s, &p);
	body = p.len - UR_ICRC_LEN;
	ur_icrc_end(ur_icrc_begin(p.data + r->pkt.l3_off, r->pkt.ip_version, body - r->pkt.l3_off), p.data + body);
	if (ur_frame_parse(&p, &count))
		ur_tp_rx(s->tp, &p, s->now);
	else
		report_text(s->rep, r->frame, "frame", "well formed", "malformed");
	pkt_drop(&p);
}

/* --- memory --- */

struct region *side_region(const struct side *s, uint32_t rkey, uint64_t va, uint64_t len)
{
	for (unsigned i = 0; i < s->nregion && len; i++) {
		struct region *g = &s->region[i];

		if (g->rkey == rkey && va - g->va < g->len && len <= g->len - (va - g->va))
			return g;
	}
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (x->rkey != y->rkey)
		return x->rkey < y->rkey ? -1 : 1;
	return (x->va > y->va) - (x->va < y->va);
}

static void merge(struct side *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nregion; i++) {
		const struct region *g = &s->region[i];
		struct region *last = n ? &s->region[n - 1] : NULL;

		if (!last || g->rkey != last->rkey || g->va > last->va + last->len)
			s->region[n++] = *g;
		else if (g->va + g->len > last->va + last->len)
			last->len = g->va + g->len - last->va;
	}
	s->nregion = n;
}

/* What the recorded host refused to give is not there for us either; nor what is asked for after that. */
static bool refused_access(const struct side *s, const struct rec *r)
{
	const uint32_t at = stream_slot(&s->in, r->pkt.bth.psn);

	return at == s->in.n || s->in.msg[s->in.slot[at].msg].status != IBV_WC_SUCCESS;
}

/* Every range that the peer refers to; what touches becomes one. */
static int make_regions(struct side *s)
{
	const struct conn *c = s->conn;
	uint64_t sum = 0;
	int err = 0;

	s->region = calloc((size_t)c->n + 1, sizeof(*s->region));
	if (!s->region)
		return ENOMEM;
	for (unsigned i = 0; i < c->n; i++) {
		struct ur_reth h;

		if (c->from[i] == s->me || !pkt_remote(&c->rec[i]->pkt, &h) || !h.len || h.va + h.len < h.va ||
		    refused_access(s, c->rec[i]))
			continue;
		s->region[s->nregion++] = (struct region){.rkey = h.rkey, .va = h.va, .len = h.len};
	}
	qsort(s->region, s->nregion, sizeof(*s->region), by_address);
	merge(s);
	for (unsigned i = 0; i < s->nregion; i++)
		sum += s->region[i].len;
	if (sum > c->memory_max)
		return ENOMEM;
	for (unsigned i = 0; i < s->nregion && !err; i++) {
		struct region *g = &s->region[i];

		g->mem = calloc(1, g->len);
		err = g->mem ? ur_mr_reg(s->tp, s->pd, g->mem, g->len, g->va, ALL_ACCESS, &g->mr) : ENOMEM;
	}
	return err;
}

static bool has_receive(const struct message *m)
{
	return m->op->flags & UR_OPF_SEND;
}

/* Payload to be sent goes into the WQE's buffer; what is going to be read or received finds other bytes there. */
static void fill_message(const struct stream *out, struct message *m)
{
	memset(m->buf, 0x5a, m->len);
	if (m->op->flags & (UR_OPF_READ | UR_OPF_ATOMIC))
		return;
	for (uint32_t k = 0, at = 0; k < m->n; k++) {
		const struct ur_pkt *p = &out->slot[m->at + k].req->pkt;

		memcpy(m->buf + at, pkt_payload(p), p->payload_len);
		at += p->payload_len;
	}
}

static int make_slab(struct side *s)
{
	uint64_t size = 1, at = 0;

	for (uint32_t i = 0; i < s->out.nmsg; i++)
		size += s->out.msg[i].len;
	for (uint32_t i = 0; i < s->in.nmsg; i++)
		size += has_receive(&s->in.msg[i]) ? s->in.msg[i].len : 0;
	s->slab = size > s->conn->memory_max ? NULL : calloc(1, size);
	if (!s->slab)
		return ENOMEM;
	for (uint32_t i = 0; i < s->out.nmsg; at += s->out.msg[i++].len) {
		s->out.msg[i].buf = s->slab + at;
		fill_message(&s->out, &s->out.msg[i]);
	}
	for (uint32_t i = 0; i < s->in.nmsg; i++) {
		s->in.msg[i].buf = s->slab + at;
		at += has_receive(&s->in.msg[i]) ? s->in.msg[i].len : 0;
	}
	return ur_mr_reg(s->tp, s->pd, s->slab, size, (uintptr_t)s->slab, IBV_ACCESS_LOCAL_WRITE, &s->slab_mr);
}

/* --- the QP --- */

#define ATTR_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define ATTR_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define ATTR_RTS (IBV_QP_STATE | IBV_QP_SQ_PSN)

static const struct service {
	uint8_t service;
	enum ibv_qp_type type;
	int rtr, rts; /* attributes besides those that every service has */
} services[] = {
	{UR_RC, IBV_QPT_RC, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT},
	{UR_UC, IBV_QPT_UC, 0, 0},
	{UR_XRC, IBV_QPT_XRC_SEND, 0, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT},
	{UR_XRC, IBV_QPT_XRC_RECV, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, IBV_QP_TIMEOUT},
};

/* Of XRC the one that asks, or the one that answers. */
static const struct service *service_of(const struct side *s)
{
	const enum ibv_qp_type half = s->in.requests ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND;

	for (unsigned i = 0; i < ur_array_size(services); i++)
		if (services[i].service == s->conn->service && (services[i].service != UR_XRC || services[i].type == half))
			return &services[i];
	return NULL;
}

/* The time that the recorded host's RNR NAKs name. */
static uint8_t min_rnr(const struct stream *in)
{
	struct ur_aeth h;

	for (uint32_t k = 0; k < in->n; k++) {
		if (!in->slot[k].nak)
			continue;
		ur_aeth_get(pkt_ext(&in->slot[k].nak->pkt), &h);
		if (ur_syndrome_type(h.syndrome) == UR_AETH_RNR)
			return (uint8_t)ur_syndrome_value(h.syndrome);
	}
	return 0;
}

static int connect_qp(struct side *s, const struct service *v)
{
	const struct endpoint *me = &s->conn->end[s->me], *peer = &s->conn->end[!s->me];
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
		.path_mtu = s->conn->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = s->in.base,
		.sq_psn = s->out.base,
		.max_rd_atomic = me->max_rd,
		.max_dest_rd_atomic = me->max_dest_rd,
		.min_rnr_timer = min_rnr(&s->in),
		.timeout = me->timeout,
		.retry_cnt = me->retry_cnt,
		.rnr_retry = me->rnr_retry,
	};
	const struct ur_mac mac[2] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};
	int err;

	ur_path_build(&s->path, &mac[0], &mac[1], 0, &me->gid, &peer->gid, 0, 64, 0, 0xc000);
	s->path.ready = true;
	err = ur_qp_modify(s->qp, &a, ATTR_INIT, NULL, s->now);
	a.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ur_qp_modify(s->qp, &a, ATTR_RTR | v->rtr, &s->path, s->now);
	a.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ur_qp_modify(s->qp, &a, ATTR_RTS | v->rts, NULL, s->now);
	s->qp->resp.msn = s->in.msn;                          /* that of a connection whose beginning was not recorded */
	s->qp->resp.peer_sacks = !s->conn->cm && s->in.sacks; /* and with it the peer's hello */
	return err;
}

int side_make_qp(struct side *s, enum ibv_qp_type type)
{
	struct ur_qp_init init = {
		.type = type,
		.cap = {.max_send_wr = UR_MAX_QP_WR, .max_recv_wr = RECV_WRS, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = true,
		.context = s,
	};
	int err = ur_pd_create(s->tp, &s->pd);

	if (!err)
		err = ur_cq_create(s->tp, UR_MAX_QP_WR, s, NULL, &s->scq);
	if (!err)
		err = ur_cq_create(s->tp, RECV_WRS, s, NULL, &s->rcq);
	init.pd = s->pd;
	init.send_cq = s->scq;
	init.recv_cq = s->rcq;
	if (type == IBV_QPT_XRC_RECV && !err)
		err = xrc_lend(s);
	init.xrcd = s->xrcd;
	return err ? err : ur_qp_create(s->tp, &init, &s->qp);
}

int side_make_tp(struct side *s)
{
	const struct ur_seed seed = ur_seed_of(1);
	const struct ur_tp_config c = {
		.ctx = s,
		.alloc = pkt_alloc,
		.free = pkt_free,
		.counters = &s->count,
		.random = &s->random,
		.slot = 1,
		.window = WINDOW,
		.selective_repeat = s->selective,
		.wheel = s->wheel = ur_wheel_create(s->now),
	};

	ur_random_init(&s->random, &seed);
	return s->wheel ? ur_tp_create(&c, &s->tp) : ENOMEM;
}

/* --- life --- */

/* Requests that the responder refuses because they refer to nothing that exists. */
static const struct {
	uint32_t flag;
	const char *why;
} responder_lacks[] = {
	{UR_OPF_IETH, "the recording does not show how the memory window that the peer invalidates was bound"},
};

static const char *lacking(const struct stream *in)
{
	for (uint32_t m = 0; m < in->nmsg; m++)
		for (unsigned i = 0; i < ur_array_size(responder_lacks); i++)
			if (in->msg[m].op->flags & responder_lacks[i].flag)
				return responder_lacks[i].why;
	return NULL;
}

static enum side_state build_streams(struct side *s, const char **why)
{
	static const enum side_state states[] = {[STREAM_OK] = SIDE_OK, [STREAM_SKIP] = SIDE_SKIP, [STREAM_BROKEN] = SIDE_BROKEN};
	enum stream_state st = stream_build(&s->out, s->conn, s->me, why);

	if (!st)
		st = stream_build(&s->in, s->conn, !s->me, why);
	if (st)
		return states[st];
	*why = lacking(&s->in);
	return *why ? SIDE_SKIP : SIDE_OK;
}

enum side_state side_open(struct side *s, const struct conn *c, unsigned me, struct report *rep, const char **why)
{
	const struct service *v;
	enum side_state st;
	int err;

	memset(s, 0, sizeof(*s));
	*why = "out of memory";
	if (c->incomplete)
		return SIDE_BROKEN;
	s->conn = c;
	s->me = me;
	s->rep = rep;
	*why = "this side has no host that could be replaced";
	if (me >= conn_sides(c))
		return SIDE_SKIP;
	s->now = UR_NS_PER_MS;
	s->sent = compare_sent;
	s->run = connection_run;
	if (c->service == UR_UD)
		return datagram_open(s, why);
	if (c->service == SERVICE_CM)
		return talk_open(s, why);
	st = build_streams(s, why);
	if (st)
		return st;
	v = service_of(s);
	*why = v ? "both ends send requests, which only one can over XRC" : "the service is unknown";
	if (!v || (c->service == UR_XRC && s->in.requests && s->out.requests))
		return SIDE_SKIP;
	*why = "the transport could not be set up as recorded";
	s->selective = s->out.hello || s->in.sacks;
	err = side_make_tp(s);
	if (!err)
		err = side_make_qp(s, v->type);
	if (err)
		return SIDE_BROKEN;
	s->answered_psn = s->in.base;
	*why = "the QP or its memory could not be set up as recorded";
	s->held = calloc((size_t)c->n + 1, sizeof(*s->held));
	return !s->held || connect_qp(s, v) || make_regions(s) || make_slab(s) ? SIDE_BROKEN : SIDE_OK;
}

static void close_memory(struct side *s)
{
	for (unsigned i = 0; i < s->nregion; i++) {
		if (s->region[i].mr && ur_mr_dereg(s->region[i].mr))
			report_text(s->rep, 0, "memory region", "free at the end", "still referred to");
		free(s->region[i].mem);
	}
	if (s->slab_mr && ur_mr_dereg(s->slab_mr))
		report_text(s->rep, 0, "send buffers", "free at the end", "still referred to");
	free(s->region);
	free(s->slab);
}

void side_close(struct side *s)
{
	talk_close(s);
	if (s->qp)
		ur_qp_destroy(s->qp);
	xrc_close(s);
	if (s->scq)
		ur_cq_destroy(s->scq);
	if (s->rcq)
		ur_cq_destroy(s->rcq);
	close_memory(s);
	if (s->pd && ur_pd_destroy(s->pd))
		report_text(s->rep, 0, "protection domain", "free at the end", "still in use");
	if (s->tp)
		ur_tp_destroy(s->tp);
	if (s->live)
		report_num(s->rep, 0, "packets in flight at the end", 0, (uint64_t)s->live);
	if (s->wheel)
		ur_wheel_destroy(s->wheel);
	stream_free(&s->out);
	stream_free(&s->in);
	free(s->held);
}
