/* SPDX-License-Identifier: BSD-3-Clause */
/* What tables say of the members of the transport's structures (hash_fields.h). hash_self_check sees to it that none is missing. */
#include "test/explore/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/explore/transport/hash_fields.h"
#include "transport/queues/rwqe.h"
#include "transport/state/srq_priv.h"

static const struct table *const tables[] = {
	&window_table,    &rtt_table,        &tail_probe_table,     &cwnd_table,      &timer_table,
	&qp_cwnd_table,   &scoreboard_table, &retransmission_table, &requester_table, &read_resend_table,
	&responder_table, &rd_res_table,     &dcqcn_table,          &cc_table,        &qp_table,
};

/* How many bytes before a member, or the end (`i` is n), may be there for alignment: its size is a multiple of that. */
static uint32_t most_padding(const struct table *x, uint32_t i)
{
	const uint32_t size = i < x->n ? x->fields[i].size : x->align;

	return ur_min_u32(ur_max_u32(size & -size, 1), x->align) - 1;
}

void hash_self_check(void)
{
	for (size_t t = 0; t < ur_array_size(tables); t++) {
		const struct table *x = tables[t];
		uint32_t at = 0;

		for (uint32_t i = 0; i <= x->n; i++) {
			const uint32_t next = i < x->n ? x->fields[i].at : x->size;

			if (next < at || next - at > most_padding(x, i)) {
				fprintf(stderr, "explore: hash_fields.h does not say whether the member at byte %u of struct %s counts\n",
					at, x->name);
				exit(2);
			}
			at = i < x->n ? next + x->fields[i].size : at;
		}
	}
}

/* --- hashing --- */

static void add(struct state_hash *h, uint64_t v)
{
	const __uint128_t x = (__uint128_t)(h->a ^ v) * 0x9e3779b97f4a7c15u;

	h->a = (uint64_t)x ^ (uint64_t)(x >> 64) ^ 0xd1b54a32d192ed03u;
	h->b = (h->b ^ v ^ h->a) * 0xff51afd7ed558ccdu;
	h->b ^= h->b >> 29;
}

static void add_bytes(struct state_hash *h, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t v;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		add(h, v);
	}
	if (!n)
		return;
	v = n;
	memcpy(&v, p, n < 7 ? n : 7);
	add(h, v);
}

/*
 * Nothing looks back farther than a second (UR_RTT_MAX; LOSS_MEMORY of tail_probe.c, LOSSY of read_req.c), but for a window that follows
 * the path: two states that differ in what was longer ago are one.
 */
#define FORGOTTEN (UR_NS_PER_S + UR_NS_PER_S / 8)

static void add_time(struct state_hash *h, ur_time t)
{
	if (t && t + FORGOTTEN < w->now && !w->s->cwnd)
		t = w->now - FORGOTTEN;
	add(h, t == 0 || t == UR_TIME_NEVER ? t : t - w->now + (1ull << 62));
}

static void add_table(struct state_hash *h, const struct table *t, const void *object)
{
	const uint8_t *p = object;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct field *f = &t->fields[i];
		ur_time at;

		if (f->how == VALUE)
			add_bytes(h, p + f->at, f->size);
		else if (f->how == TIME) {
			memcpy(&at, p + f->at, sizeof(at));
			add_time(h, at);
		}
	}
}

/* --- the requester --- */

static void add_map(struct state_hash *h, const uint64_t *map, uint32_t from, uint32_t to)
{
	const uint32_t rows = (((to - from) & UR_PSN_MASK) + from % 64) / 64 + 1;

	for (uint32_t i = 0; i < rows; i++)
		add(h, map[(from / 64 + i) % (UR_SPAN / 64)]);
}

static void add_evidence(struct state_hash *h, const struct ur_scoreboard *m)
{
	const struct ur_evidence *const all[] = {m->seen, m->waits, m->ripe};

	for (unsigned i = 0; i < ur_array_size(all); i++)
		for (unsigned way = 0; way < UR_WAYS; way++) {
			add(h, (uint64_t)all[i][way].psn << 32 | all[i][way].mark);
			add(h, all[i][way].rep - m->head);
		}
}

static void add_scoreboard(struct state_hash *h, const struct ur_requester *r)
{
	const struct ur_scoreboard *m = &r->scoreboard;

	add_table(h, &scoreboard_table, m);
	if (!m->maps)
		return;
	add_evidence(h, m);
	add(h, m->tail - m->head);
	for (uint32_t i = m->head; i != m->tail; i++)
		add_table(h, &retransmission_table, &m->maps->queue[i & (UR_RETRANSMISSIONS - 1)]);
	if (!m->busy)
		return;
	add_map(h, m->maps->arrived, m->base, r->max);
	add_map(h, m->maps->lost, m->base, r->max);
	add_map(h, m->maps->retransmitted, m->base, r->max);
	add_map(h, m->maps->kept, m->base, r->max);
}

static void add_requester(struct state_hash *h, const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	add_table(h, &requester_table, r);
	add_table(h, &window_table, &r->window);
	add_table(h, &rtt_table, &r->rtt);
	add_table(h, &tail_probe_table, &r->probe);
	add_scoreboard(h, r);
	if (w->s->cwnd) {
		add_table(h, &qp_cwnd_table, &r->cwnd);
		add_table(h, &cwnd_table, &r->cwnd.w);
		add_table(h, &timer_table, &r->cwnd.timer);
		add(h, (uint64_t)(r->rtt.samples - r->cwnd.samples) << 1 | (r->rtt.samples != 0));
		add(h, r->scoreboard.losses - r->cwnd.losses);
		add_time(h, qp->heard);
	}
	for (uint32_t i = r->head; i != r->fresh; i++) {
		const struct ur_swqe *x = ur_sq_at(qp, i);

		add(h, (uint64_t)x->psn << 32 | x->npkts << 8 | x->rd_shift);
	}
}

/* --- the responder --- */

static void add_reordered(struct state_hash *h, struct ur_qp *qp)
{
	struct ur_sack s;

	add(h, qp->resp.reorder != NULL);
	if (!qp->resp.reorder)
		return;
	add(h, ur_min_time(w->now - ur_reorder_news_at(qp), UR_REORDER_OLD + 1));
	/* It says all that there is as long as that is less than a SACK holds, and what was said before does not matter then. */
	if (ur_reorder_sack(qp, &s))
		violation("more is kept than a SACK says");
	add_bytes(h, s.bits, s.n / 8);
	for (uint32_t i = 0; i < s.n; i++) {
		const struct ur_reordered *k = s.bits[i / 64] >> i % 64 & 1 ? ur_reorder_at(qp, ur_psn_add(s.base, i)) : NULL;

		if (!k)
			continue;
		add(h, k->psn);
		add_bytes(h, k->bytes, (size_t)k->payload_off + k->payload_len);
	}
}

static void add_responder(struct state_hash *h, struct ur_qp *qp)
{
	const struct ur_responder *r = &qp->resp;
	const uint32_t n = ur_max_u32(r->rd_count, r->rd_tail - r->rd_cur);

	add_table(h, &responder_table, r);
	add_table(h, &read_resend_table, &r->resend);
	add_table(h, &timer_table, &r->resend.timer);
	add(h, r->resend.sent == qp->n.tx_bytes);
	add(h, r->w != NULL);
	add(h, r->rd_tail - r->rd_cur);
	for (uint32_t i = 1; i <= n; i++)
		add_table(h, &rd_res_table, &r->rd[(r->rd_tail - i) & (UR_RD_SLOTS - 1)]);
	add(h, r->side_tail - r->side_head);
	for (uint32_t i = r->side_head; i != r->side_tail; i++)
		add_table(h, &rd_res_table, &r->rd[UR_RD_SLOTS + (i & (UR_RD_SIDE - 1))]);
	add_reordered(h, qp);
}

/* --- all --- */

static void add_lists(struct state_hash *h, const struct node *n)
{
	for (unsigned k = 0; k < n->lanes; k++) {
		const struct ur_tp *tp = n->tp[k];

		for (unsigned i = 0; i < UR_TXQ_COUNT; i++) {
			for (const struct ur_list *l = tp->txq[i].next; l != &tp->txq[i]; l = l->next)
				add(h, ur_container_of(l, struct ur_qp, link[i])->qpn);
			add(h, i);
		}
		add(h, ur_list_empty(&tp->paused));
	}
}

/* What is in it are the receives from its head on to those that have been posted. */
static void add_srq(struct state_hash *h, const struct node *n)
{
	if (!n->srq)
		return;
	add(h, (uint64_t)n->srq->head << 32 | n->receives);
	add(h, n->taken);
	for (unsigned q = 0; q < QPS; q++)
		add(h, n->end[q].qp->resp.w ? n->end[q].qp->resp.w->wr_id : UINT64_MAX);
}

/*
 * model_check has seen to it that each block is of one message, untouched or given back, so its first bytes tell what it is; and that the
 * sources are what the numbers of completions say.
 */
static void add_area(struct state_hash *h, const struct area *a)
{
	for (unsigned i = 0; i < SLOT; i += BLOCK)
		add_bytes(h, a->target + i, 8);
	for (unsigned m = 0; m < MESSAGES; m++)
		for (unsigned i = 0; i < SLOT; i += BLOCK) {
			add_bytes(h, a->receive[m] + i, 8);
			add_bytes(h, a->answer[m] + i, 8);
		}
	add(h, a->word);
	add_bytes(h, a->result, sizeof(a->result));
}

/* Addresses and ports are always the same. The ICRC says what the payload is. */
static void add_frame(struct state_hash *h, const struct frame *f)
{
	const uint32_t from = UR_ETH_LEN + UR_IP4_LEN + UR_UDP_LEN;

	add(h, (uint64_t)f->len << 8 | f->bytes[UR_ETH_LEN + 1]);
	add_bytes(h, f->bytes + from, ur_min_u32(UR_BTH_LEN + 28, f->len - from));
	add_bytes(h, f->bytes + f->len - UR_ICRC_LEN, UR_ICRC_LEN);
}

static void add_node(struct state_hash *h, const struct node *n)
{
	add_lists(h, n);
	add_srq(h, n);
	for (unsigned q = 0; q < QPS && n->end[q].qp; q++) {
		const struct end *e = &n->end[q];

		add(h, (uint64_t)e->posted << 48 | (uint64_t)e->receives << 32 | (uint64_t)e->sent << 16 | e->received);
		add_table(h, &qp_table, e->qp);
		add_table(h, &timer_table, &e->qp->timer);
		if (w->s->mbps) {
			add_table(h, &dcqcn_table, &e->qp->cc.rate);
			add_table(h, &cc_table, &e->qp->cc);
			add_table(h, &timer_table, &e->qp->cc.timer);
		}
		add_requester(h, e->qp);
		add_responder(h, e->qp);
		add_area(h, e->mem);
	}
}

struct state_hash hash_state(void)
{
	struct state_hash h = {1, 2};

	for (unsigned i = 0; i < NODES; i++) {
		const struct wire *x = &w->wire[i];

		add_node(&h, &w->node[i]);
		add(&h, x->n);
		for (unsigned k = 0; k < x->n; k++)
			add_frame(&h, &x->frame[x->order[k]]);
	}
	return h;
}
