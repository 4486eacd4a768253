/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of the members of the transport's structures say which of them are part of a state and which are not, and why. hash_self_check
 * sees to it that none is missing.
 */
#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/keep.h"
#include "transport/rd_table.h"
#include "world.h"

enum how { VALUE, TIME, NOT };

struct field {
	uint32_t at, size;
	enum how how;
};

struct table {
	const char *name;
	const struct field *fields;
	uint32_t n, size, align;
};

#define SIZE_OF(m) sizeof(((struct T *)NULL)->m)
#define IS(m)                                                                                                                              \
	{                                                                                                                                  \
		offsetof(struct T, m), SIZE_OF(m), VALUE                                                                                   \
	}
#define AT(m)                                                                                                                              \
	{                                                                                                                                  \
		offsetof(struct T, m), SIZE_OF(m), TIME                                                                                    \
	}
#define NO(m, why)                                                                                                                         \
	{                                                                                                                                  \
		offsetof(struct T, m), SIZE_OF(m), NOT                                                                                     \
	}
/* Alignment between the two. */
#define GAP(after, before)                                                                                                                 \
	{                                                                                                                                  \
		offsetof(struct T, after) + SIZE_OF(after), offsetof(struct T, before) - offsetof(struct T, after) - SIZE_OF(after), NOT   \
	}
#define TABLE(fields, what)                                                                                                                \
	{                                                                                                                                  \
		what, fields, ur_array_size(fields), sizeof(struct T), _Alignof(struct T)                                                  \
	}

#define T ur_window
static const struct field window_fields[] = {
	IS(size), IS(max),   IS(ack_every), IS(grow_from), IS(rd_shift), IS(young), IS(tight),
	IS(rate), IS(sheds), IS(shed_at),   AT(moved_at),  IS(n),        IS(ns),
};
static const struct table window_table = TABLE(window_fields, "ur_window");
#undef T

#define T ur_rtt
static const struct field rtt_fields[] = {
	IS(mean), IS(var),
	IS(least), IS(high),
	IS(handshake), IS(last),
	NO(samples, "follow.c alone asks whether it has changed, and notes it"), IS(psn),
	AT(at), IS(resent),
};
static const struct table rtt_table = TABLE(rtt_fields, "ur_rtt");
#undef T

#define T ur_probe
static const struct field probe_fields[] = {
	IS(what),
	IS(times),
	IS(sent),
	IS(all),
	IS(copies),
	IS(turn),
	IS(one),
	IS(eager),
	IS(spent),
	NO(earned, "a way is too short to use the budget up"),
	NO(budget, "likewise"),
	AT(since),
	AT(sent_at),
	AT(loss_at),
	AT(news),
	IS(doubt.n),
	IS(doubt.from),
	IS(doubt.upto),
	GAP(doubt.upto, doubt.took),
	IS(doubt.took),
	AT(doubt.loss_at),
};
static const struct table probe_table = TABLE(probe_fields, "ur_probe");
#undef T

#define T ur_cwnd
static const struct field cwnd_fields[] = {
	IS(size),   IS(first),   IS(max),       IS(base),      IS(last),    IS(delay),     IS(before),   IS(noise),    IS(slope),
	IS(lowest), IS(samples), AT(lowest_at), IS(single),    IS(singles), AT(single_at), IS(unmet),    AT(based_at), AT(dipped_at),
	IS(acked),  IS(lost),    IS(seen),      IS(seen_lost), IS(longest), IS(low_sent),  IS(low_lost), IS(times),    IS(chance),
	IS(growth), IS(lossy),   IS(marked),    IS(heavy),     IS(kept),    AT(period_at), AT(cut_at),   AT(harm_at),
};
static const struct table cwnd_table = TABLE(cwnd_fields, "ur_cwnd");
#undef T

#define T ur_timer
static const struct field timer_fields[] = {
	NO(link, "its place in the wheel follows from its time"),
	AT(when),
	NO(fn, "always the same"),
};
static const struct table timer_table = TABLE(timer_fields, "ur_timer");
#undef T

#define T ur_follow
static const struct field follow_fields[] = {
	IS(on),
	IS(first),
	IS(slow),
	IS(paused),
	IS(seen),
	NO(losses, "hashed below, as news"),
	NO(samples, "likewise"),
	NO(traced, "nobody traces"),
	NO(w, "a table of its own"),
	NO(timer, "a table of its own"),
};
static const struct table follow_table = TABLE(follow_fields, "ur_follow");
#undef T

#define T ur_repair
static const struct field repair_fields[] = {
	NO(board, "as far as it is in use it is hashed below"),
	IS(busy),
	IS(sacks),
	IS(one_hole),
	IS(wanted),
	IS(base),
	IS(top),
	IS(done),
	IS(split),
	IS(gone),
	IS(spare),
	IS(rd_early),
	IS(nlost),
	IS(first),
	NO(losses, "follow.c alone asks whether it has changed, and notes it"),
	NO(head, "a number that runs on: the queue is hashed from it to tail"),
	NO(tail, "likewise"),
	NO(answers, "counts some in the queue"),
	IS(scan),
	NO(seen, "evidence is hashed below, relative to head"),
	NO(waits, "likewise"),
	NO(ripe, "likewise"),
	AT(due),
	IS(patience),
	IS(calm),
};
static const struct table repair_table = TABLE(repair_fields, "ur_repair");
#undef T

#define T ur_repeat
static const struct field repeat_fields[] = {
	IS(psn), IS(n), IS(mark), IS(upto), IS(answer), IS(first), AT(at),
};
static const struct table repeat_table = TABLE(repeat_fields, "ur_repeat");
#undef T

#define T ur_requester
static const struct field requester_fields[] = {
	IS(head),
	IS(cur),
	IS(fresh),
	IS(tail),
	IS(una),
	IS(next),
	IS(max),
	IS(pos),
	IS(rpos),
	IS(since_ack),
	IS(asked),
	IS(packets_until),
	IS(restart),
	IS(rd_out),
	IS(rd_wqes),
	IS(locals),
	IS(max_rd),
	IS(retry_cnt),
	IS(retry_left),
	IS(rnr_cnt),
	IS(rnr_left),
	IS(halt),
	IS(rnr),
	IS(hole),
	IS(reseek),
	IS(hello),
	IS(hello_end),
	IS(hello_most),
	IS(timeout),
	IS(wait),
	AT(deadline),
	AT(retried_at),
	AT(sent_at),
	NO(refused_at, "the peers' RNR timers are longer than what it makes longer"),
	IS(refused),
	IS(refused_until),
	NO(window, "a table of its own"),
	NO(rtt, "likewise"),
	NO(follow, "likewise"),
	NO(probe, "likewise"),
	NO(repair, "likewise"),
	IS(first),
	IS(answers),
	IS(unreachable),
	IS(unreachable_una),
	AT(unreachable_due),
};
static const struct table requester_table = TABLE(requester_fields, "ur_requester");
#undef T

#define T ur_remind
static const struct field remind_fields[] = {
	AT(asked_at), NO(sent, "whether it is as much as now is hashed below"),
	IS(times),    IS(series),
	IS(from),     IS(newest),
	IS(epsn),     NO(timer, "a table of its own"),
};
static const struct table remind_table = TABLE(remind_fields, "ur_remind");
#undef T

#define T ur_responder
static const struct field responder_fields[] = {
	IS(epsn),
	IS(msn),
	IS(head),
	IS(tail),
	NO(w, "whether there is one is hashed below; which one, head says"),
	IS(expect),
	IS(nak_sent),
	IS(dying),
	IS(odd),
	IS(peer_sacks),
	IS(goes_back),
	IS(rd_larger),
	IS(ack_pending),
	IS(ack_again),
	IS(ack_syndrome),
	IS(min_rnr),
	IS(ack_psn),
	IS(ack_msn),
	IS(probed),
	IS(pos),
	IS(got),
	IS(rkey),
	IS(va),
	IS(left),
	IS(dma_len),
	NO(rd_cur, "hashed relative to rd_tail"),
	NO(rd_tail, "a number that runs on"),
	IS(rd_count),
	IS(rd_n),
	NO(rd, "as far as its entries are valid they are hashed below"),
	NO(side_head, "as rd_cur"),
	NO(side_tail, "as rd_tail"),
	NO(keep, "what is kept is hashed below"),
	NO(paced_at, "nothing is farther away than what is kept of any peer"),
	NO(paced_from, "likewise"),
	NO(shown, "likewise"),
	NO(listens, "runs down from more packets than a way has that does not come back to a state"),
	IS(beyond),
	NO(remind, "a table of its own"),
};
static const struct table responder_table = TABLE(responder_fields, "ur_responder");
#undef T

#define T ur_rd_res
static const struct field rd_res_fields[] = {
	IS(va),  IS(result), IS(rkey), IS(len),   IS(psn),    IS(npkts),        IS(msn),         IS(start), IS(k),
	IS(end), IS(stop),   IS(why),  IS(again), IS(opcode), IS(flush_access), IS(flush_whole), IS(srqn),
};
static const struct table rd_res_table = TABLE(rd_res_fields, "ur_rd_res");
#undef T

#define T ur_dcqcn
static const struct field dcqcn_fields[] = {
	IS(active), IS(timer_stage), IS(byte_stage), GAP(byte_stage, line), IS(line),        IS(rate), IS(target),
	IS(alpha),  IS(bytes),       AT(cut_at),     AT(alpha_at),          AT(increase_at),
};
static const struct table dcqcn_table = TABLE(dcqcn_fields, "ur_dcqcn");
#undef T

#define T ur_cc
static const struct field cc_fields[] = {
	NO(rate, "a table of its own"), IS(blocked), IS(cnp_due), IS(cnp_sent), AT(cnp_at), AT(next), NO(timer, "a table of its own"),
};
static const struct table cc_table = TABLE(cc_fields, "ur_cc");
#undef T

#define T ur_qp
static const struct field qp_fields[] = {
	NO(tp, "always the same"),
	NO(path, "likewise"),
	NO(pd, "likewise"),
	IS(qpn),
	IS(dqpn),
	IS(mtu),
	IS(mtu_shift),
	IS(state),
	IS(access),
	NO(send_cq, "emptied after each step"),
	NO(recv_cq, "likewise"),
	NO(srq, "none"),
	NO(xrcd, "none"),
	NO(link, "the lists are hashed below"),
	NO(stalled, "none has"),
	NO(timer, "a table of its own"),
	NO(req, "likewise"),
	NO(resp, "likewise"),
	NO(windows, "none are bound"),
	NO(cc, "a table of its own"),
	NO(n, "counts"),
	NO(heard, "follow.c alone asks for it: hashed there"),
	IS(broken),
	IS(no_mcast_loopback),
	IS(sig_all),
	IS(sqd_notify),
	IS(srq_only),
	IS(type),
	IS(service),
	IS(ngroups),
	NO(cap, "always the same"),
	NO(attr, "for queries"),
	NO(context, "the program's"),
	NO(event, "the program's"),
	NO(doorbell_link, "the doorbell is answered at once"),
	GAP(doorbell_link, db),
	NO(db, "likewise"),
	GAP(db, sq),
	NO(sq, "what is posted is known by its number, and hashed below"),
	NO(rq, "likewise"),
	NO(sq_ext, "likewise"),
};
static const struct table qp_table = TABLE(qp_fields, "ur_qp");
#undef T

static const struct table *const tables[] = {
	&window_table,    &rtt_table,    &probe_table,     &cwnd_table,   &timer_table, &follow_table, &repair_table, &repeat_table,
	&requester_table, &remind_table, &responder_table, &rd_res_table, &dcqcn_table, &cc_table,     &qp_table,
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
				fprintf(stderr, "explore: hash.c does not say whether the member at byte %u of struct %s counts\n", at,
					x->name);
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
 * Nothing looks back farther than a second (UR_RTT_MAX; LOSS_MEMORY of probe.c, LOSSY of read_req.c), but for a window that follows the
 * path: two states that differ in what was longer ago are one.
 */
#define FORGOTTEN (UR_NS_PER_S + UR_NS_PER_S / 8)

static void add_time(struct state_hash *h, ur_time t)
{
	if (t && t + FORGOTTEN < w->now && !w->s->follow)
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

static void add_evidence(struct state_hash *h, const struct ur_repair *m)
{
	const struct ur_evidence *const all[] = {m->seen, m->waits, m->ripe};

	for (unsigned i = 0; i < ur_array_size(all); i++)
		for (unsigned way = 0; way < UR_WAYS; way++) {
			add(h, (uint64_t)all[i][way].psn << 32 | all[i][way].mark);
			add(h, all[i][way].rep - m->head);
		}
}

static void add_repair(struct state_hash *h, const struct ur_requester *r)
{
	const struct ur_repair *m = &r->repair;

	add_table(h, &repair_table, m);
	if (!m->board)
		return;
	add_evidence(h, m);
	add(h, m->tail - m->head);
	for (uint32_t i = m->head; i != m->tail; i++)
		add_table(h, &repeat_table, &m->board->queue[i & (UR_REPEATS - 1)]);
	if (!m->busy)
		return;
	add_map(h, m->board->arrived, m->base, r->max);
	add_map(h, m->board->lost, m->base, r->max);
	add_map(h, m->board->repeated, m->base, r->max);
	add_map(h, m->board->kept, m->base, r->max);
}

static void add_requester(struct state_hash *h, const struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	add_table(h, &requester_table, r);
	add_table(h, &window_table, &r->window);
	add_table(h, &rtt_table, &r->rtt);
	add_table(h, &probe_table, &r->probe);
	add_repair(h, r);
	if (w->s->follow) {
		add_table(h, &follow_table, &r->follow);
		add_table(h, &cwnd_table, &r->follow.w);
		add_table(h, &timer_table, &r->follow.timer);
		add(h, (uint64_t)(r->rtt.samples - r->follow.samples) << 1 | (r->rtt.samples != 0));
		add(h, r->repair.losses - r->follow.losses);
		add_time(h, qp->heard);
	}
	for (uint32_t i = r->head; i != r->fresh; i++) {
		const struct ur_swqe *x = ur_sq_at(qp, i);

		add(h, (uint64_t)x->psn << 32 | x->npkts << 8 | x->rd_shift);
	}
}

/* --- the responder --- */

static void add_kept(struct state_hash *h, struct ur_qp *qp)
{
	struct ur_sack s;

	add(h, qp->resp.keep != NULL);
	if (!qp->resp.keep)
		return;
	add(h, ur_min_time(w->now - ur_keep_news_at(qp), UR_KEEP_OLD + 1));
	/* It says all that there is as long as that is less than a SACK holds, and what was said before does not matter then. */
	if (ur_keep_sack(qp, &s))
		violation("more is kept than a SACK says");
	add_bytes(h, s.bits, s.n / 8);
	for (uint32_t i = 0; i < s.n; i++) {
		const struct ur_kept *k = s.bits[i / 64] >> i % 64 & 1 ? ur_keep_at(qp, ur_psn_add(s.base, i)) : NULL;

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
	add_table(h, &remind_table, &r->remind);
	add_table(h, &timer_table, &r->remind.timer);
	add(h, r->remind.sent == qp->n.tx_bytes);
	add(h, r->w != NULL);
	add(h, r->rd_tail - r->rd_cur);
	for (uint32_t i = 1; i <= n; i++)
		add_table(h, &rd_res_table, &r->rd[(r->rd_tail - i) & (UR_RD_SLOTS - 1)]);
	add(h, r->side_tail - r->side_head);
	for (uint32_t i = r->side_head; i != r->side_tail; i++)
		add_table(h, &rd_res_table, &r->rd[UR_RD_SLOTS + (i & (UR_RD_SIDE - 1))]);
	add_kept(h, qp);
}

/* --- all --- */

static void add_lists(struct state_hash *h, const struct node *n)
{
	for (unsigned i = 0; i < UR_TXQ_COUNT; i++) {
		for (const struct ur_list *l = n->tp->txq[i].next; l != &n->tp->txq[i]; l = l->next)
			add(h, ur_container_of(l, struct ur_qp, link[i])->qpn);
		add(h, i);
	}
	add(h, ur_list_empty(&n->tp->paused));
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
