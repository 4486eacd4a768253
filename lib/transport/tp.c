/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport instance: where received packets find their QP, and who sends next. */
#include <errno.h>
#include <stdlib.h>

#include "transport/tp_priv.h"

#define WINDOW_MAX 65536u

static uint32_t pow2_floor(uint32_t v)
{
	return 1u << (31 - __builtin_clz(v));
}

int ur_tp_create(const struct ur_tp_config *c, struct ur_tp **out)
{
	struct ur_tp *tp;

	if (!c->alloc || !c->free || !c->wheel || !c->counters || !c->slot || c->window > WINDOW_MAX)
		return EINVAL;
	tp = calloc(1, sizeof(*tp));
	if (!tp)
		return ENOMEM;
	tp->c = *c;
	tp->window = c->window ? c->window : UR_WINDOW_DEFAULT;
	tp->ack_every = ur_min_u32(UR_ACK_EVERY, tp->window < 4 ? 1 : tp->window / 4);
	tp->rd_piece = pow2_floor(tp->window < 2 ? 1 : tp->window / 2);
	tp->rng.state = c->seed;
	/* Over the whole table no QPN ends in 0xffff: in slot 255 that would be the multicast QPN. */
	tp->qpn_base = ur_rng_u32(&tp->rng) % (UR_QPN_LOW - UR_MAX_QP);
	ur_idtab_init(&tp->qps, 1, UR_MAX_QP + 1);
	ur_idtab_init(&tp->mrs, 1, UR_MAX_MR + 1);
	for (unsigned i = 0; i < UR_TXQ_COUNT; i++)
		ur_list_init(&tp->txq[i]);
	*out = tp;
	return 0;
}

void ur_tp_destroy(struct ur_tp *tp)
{
	if (tp->nstash)
		tp->c.free(tp->c.ctx, tp->stash, tp->nstash);
	ur_idtab_fini(&tp->qps);
	ur_idtab_fini(&tp->mrs);
	free(tp->mr_gen);
	free(tp);
}

struct ur_qp *ur_qp_find(struct ur_tp *tp, uint32_t qpn)
{
	if (ur_unlikely(qpn >> 16 != tp->c.slot))
		return NULL;
	return ur_idtab_get(&tp->qps, (qpn - tp->qpn_base) & UR_QPN_LOW);
}

/* --- receive --- */

enum { RX_REQUESTS = 1, RX_RESPONSES = 2 };

static const uint8_t rx_allowed[] = {
	[IBV_QPS_RESET] = 0,
	[IBV_QPS_INIT] = 0,
	[IBV_QPS_RTR] = RX_REQUESTS,
	[IBV_QPS_RTS] = RX_REQUESTS | RX_RESPONSES,
	[IBV_QPS_SQD] = RX_REQUESTS | RX_RESPONSES,
	[IBV_QPS_SQE] = RX_REQUESTS,
	[IBV_QPS_ERR] = 0,
};

static const uint8_t service_of_type[] = {
	[IBV_QPT_RC] = UR_RC,
	[IBV_QPT_UC] = UR_UC,
	[IBV_QPT_UD] = UR_UD,
};

/* The low 15 bits decide which partition; at least one side must be a full member, and ours is. */
static bool pkey_ok(uint16_t pkey)
{
	return (pkey & 0x7fff) == (UR_PKEY_DEFAULT & 0x7fff);
}

/*
 * A packet of a service that the QP does not have. Congestion notifications are a service of their own, but for all QPs that send
 * (annex A17): a peer that follows them expects an effect, and there is none here.
 */
static enum ur_counter why_foreign(const struct ur_qp *qp, const struct ur_pkt *p)
{
	if (p->bth.opcode != UR_OP_CNP || qp->type != IBV_QPT_RC)
		return UR_C_DROP_OPCODE;
	if (!rx_allowed[ur_qp_st(qp)])
		return UR_C_DROP_QP_STATE;
	return ur_gid_eq(&p->src, &qp->path->dgid) ? UR_C_CNP_IGNORED : UR_C_DROP_SOURCE;
}

void ur_tp_rx(struct ur_tp *tp, struct ur_pkt *p, ur_time now)
{
	struct ur_qp *qp = ur_qp_find(tp, p->bth.dqpn);
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	unsigned need = op->flags & UR_OPF_RESPONSE ? RX_RESPONSES : RX_REQUESTS;

	if (ur_unlikely(!qp)) {
		ur_count(tp->c.counters, UR_C_DROP_QPN);
		return;
	}
	if (ur_unlikely(!op->name || (p->bth.opcode & 0xe0) != service_of_type[qp->type])) {
		ur_qp_count(qp, why_foreign(qp, p));
		return;
	}
	if (ur_unlikely(!(rx_allowed[ur_qp_st(qp)] & need))) {
		ur_qp_count(qp, UR_C_DROP_QP_STATE);
		return;
	}
	if (ur_unlikely(!pkey_ok(p->bth.pkey))) {
		ur_qp_count(qp, UR_C_DROP_PKEY);
		return;
	}
	if (ur_unlikely(!ur_gid_eq(&p->src, &qp->path->dgid))) {
		ur_qp_count(qp, UR_C_DROP_SOURCE);
		return;
	}
	if (need == RX_RESPONSES)
		ur_comp_rx(qp, p, op, now);
	else
		ur_resp_rx(qp, p, op);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}

/* --- transmit --- */

struct ur_pkt *ur_tp_pkt(struct ur_tp *tp)
{
	if (ur_unlikely(!tp->nstash)) {
		tp->nstash = tp->c.alloc(tp->c.ctx, tp->stash, UR_TX_STASH);
		if (!tp->nstash) {
			tp->starved = true;
			ur_count(tp->c.counters, UR_C_TX_NO_BUFFER);
			return NULL;
		}
	}
	return tp->stash[--tp->nstash];
}

void ur_tp_pkt_drop(struct ur_tp *tp, struct ur_pkt *p)
{
	tp->c.free(tp->c.ctx, &p, 1);
}

/* All of the template: a constant size takes a few vector moves, the exact one a call. */
static inline void copy_template(uint8_t *to, const uint8_t *from)
{
	_Static_assert(UR_PATH_HDR_MAX == 66, "four vectors and two bytes");
	for (unsigned i = 0; i < 64; i += 16)
		memcpy(to + i, from + i, 16);
	memcpy(to + 64, from + 64, 2);
}

uint8_t *ur_pkt_begin(const struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const struct ur_path *path = qp->path;
	uint32_t off = path->hdr_len;
	uint8_t *b = p->data + off;

	copy_template(p->data, path->hdr);
	p->bth.pkey = UR_PKEY_DEFAULT;
	p->bth.migreq = true; /* no path migration: always in the migrated state */
	p->bth.dqpn = qp->dqpn;
	ur_bth_put(b, &p->bth);
	p->kind = UR_PKT_ROCE;
	p->flags = path->local ? UR_PKT_LOCAL : 0;
	p->ip_version = path->ip_version;
	p->l3_off = path->l3_off;
	p->l4_off = (uint16_t)(off - UR_UDP_LEN);
	p->bth_off = (uint16_t)off;
	p->len = off + UR_BTH_LEN + op->ext_len;
	p->payload_off = (uint16_t)p->len;
	return b + UR_BTH_LEN;
}

/* Serves the QPs of one list in turn. A QP whose function says that it has more goes to the end of the list. */
static unsigned serve(struct ur_tp *tp, enum ur_txq q, struct ur_pkt **pkts, unsigned n, ur_time now)
{
	unsigned done = 0;

	while (done < n && !tp->starved) {
		struct ur_list *l = ur_list_pop(&tp->txq[q]);
		unsigned part = ur_min_u32(n - done, UR_TX_QUANTUM);
		struct ur_qp *qp;
		bool more = false;

		if (!l)
			break;
		qp = ur_container_of(l - q, struct ur_qp, link);
		if (q == UR_TXQ_RESP)
			done += ur_resp_build(qp, pkts + done, part, &more);
		else
			done += ur_req_build(qp, pkts + done, part, now, &more);
		if (more && ur_list_empty(&qp->link[q]))
			ur_list_add_tail(&tp->txq[q], &qp->link[q]);
		if (ur_unlikely(qp->broken))
			ur_qp_to_err(qp);
	}
	return done;
}

/* A few requests need not wait behind acknowledgements: whoever is polled for them waits, nobody waits for an ACK. */
static void requests_first(struct ur_pkt **pkts, unsigned acks, unsigned requests)
{
	struct ur_pkt *held[UR_TX_SWAP];

	if (acks > UR_TX_SWAP || requests > UR_TX_SWAP)
		return;
	for (unsigned i = 0; i < acks; i++)
		if (pkts[i]->payload_len)
			return; /* READ responses are waited for as well */
	memcpy(held, pkts, acks * sizeof(*pkts));
	memmove(pkts, pkts + acks, requests * sizeof(*pkts));
	memcpy(pkts + requests, held, acks * sizeof(*pkts));
}

unsigned ur_tp_tx(struct ur_tp *tp, struct ur_pkt **pkts, unsigned n, ur_time now)
{
	/* Responses are served first, but long READs may not shut out all requests. */
	unsigned first = ur_list_empty(&tp->txq[UR_TXQ_REQ]) ? n : n - n / 4;
	unsigned responses, requests;

	tp->starved = false;
	responses = serve(tp, UR_TXQ_RESP, pkts, first, now);
	requests = serve(tp, UR_TXQ_REQ, pkts + responses, n - responses, now);
	if (responses && requests)
		requests_first(pkts, responses, requests);
	requests += responses;
	return requests + (requests < n ? serve(tp, UR_TXQ_RESP, pkts + requests, n - requests, now) : 0);
}

bool ur_tp_tx_pending(const struct ur_tp *tp)
{
	return !ur_list_empty(&tp->txq[UR_TXQ_RESP]) || !ur_list_empty(&tp->txq[UR_TXQ_REQ]);
}
