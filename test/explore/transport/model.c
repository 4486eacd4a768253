/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/transport/model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED 0xee /* memory as it was at first */
#define USED 0xdd      /* the program has it again */

static const struct kind {
	char letter;
	enum ibv_wr_opcode op;
	uint8_t blocks;
} kinds[] = {
	{'s', IBV_WR_SEND, 1},
	{'S', IBV_WR_SEND, 2},
	{'Z', IBV_WR_SEND, 3},
	{'i', IBV_WR_RDMA_WRITE_WITH_IMM, 1},
	{'I', IBV_WR_RDMA_WRITE_WITH_IMM, 2},
	{'w', IBV_WR_RDMA_WRITE, 1},
	{'W', IBV_WR_RDMA_WRITE, 2},
	{'V', IBV_WR_RDMA_WRITE, 3},
	{'r', IBV_WR_RDMA_READ, 1},
	{'R', IBV_WR_RDMA_READ, 2},
	{'Y', IBV_WR_RDMA_READ, 3},
	{'a', IBV_WR_ATOMIC_FETCH_AND_ADD, 0},
	{'c', IBV_WR_ATOMIC_CMP_AND_SWP, 0},
};

/* The messages of one end; the same in all states. */
struct script {
	unsigned n, receives; /* messages; those that take a receive */
	const struct kind *kind[MESSAGES];
	unsigned flags[MESSAGES];      /* enum ibv_send_flags */
	unsigned ordinal[MESSAGES];    /* among those that take a receive */
	unsigned taker[MESSAGES];      /* the other way round */
	uint64_t before[MESSAGES + 1]; /* the word before that message */
	uint8_t bytes[MESSAGES][SLOT]; /* what it carries */
};
static struct script scripts[QPS][NODES];
static uint8_t untouched[sizeof(struct area)], used[sizeof(struct area)];

static bool takes_receive(const struct kind *k)
{
	return k->op == IBV_WR_SEND || k->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool writes(const struct kind *k)
{
	return k->op == IBV_WR_RDMA_WRITE || k->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(const struct kind *k)
{
	return k->op == IBV_WR_ATOMIC_FETCH_AND_ADD || k->op == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* --- setting up --- */

static const struct kind *kind_of(char letter)
{
	for (size_t i = 0; i < ur_array_size(kinds); i++)
		if (kinds[i].letter == letter)
			return &kinds[i];
	fprintf(stderr, "explore: there is no message '%c'\n", letter);
	exit(2);
}

/* Each eight bytes say which message they are of: message m is number m + 1. */
static void fill(struct script *s, unsigned q, unsigned node, unsigned m)
{
	for (unsigned i = 0; i < SLOT / 8; i++) {
		const uint8_t word[8] = {(uint8_t)(m + 1), (uint8_t)(q << 1 | node), (uint8_t)(i * 8 / BLOCK), (uint8_t)i, 0xa5};

		memcpy(s->bytes[m] + 8 * (size_t)i, word, sizeof(word));
	}
}

static void script_open(struct script *s, unsigned q, unsigned node, const char *text)
{
	*s = (struct script){.n = 0};
	for (; *text; text++) {
		const unsigned m = s->n;
		const struct kind *k = kind_of(*text);

		if (m == MESSAGES) {
			fprintf(stderr, "explore: more than %u messages\n", MESSAGES);
			exit(2);
		}
		s->kind[m] = k;
		s->flags[m] = text[1] == '\'' ? 0 : text[1] == '^' ? IBV_SEND_SIGNALED | IBV_SEND_FENCE : IBV_SEND_SIGNALED;
		text += text[1] == '\'' || text[1] == '^';
		s->ordinal[m] = s->receives;
		if (takes_receive(k))
			s->taker[s->receives++] = m;
		s->before[m + 1] = s->before[m] + (is_atomic(k) ? 1ull << 8 * m : 0);
		fill(s, q, node, m);
		memcpy(w->node[node].end[q].mem->source[m], s->bytes[m], SLOT);
		s->n++;
	}
}

void model_open(void)
{
	memset(untouched, UNTOUCHED, sizeof(untouched));
	memset(used, USED, sizeof(used));
	for (unsigned q = 0; q < QPS && w->s->post[q][0]; q++)
		for (unsigned i = 0; i < NODES; i++)
			script_open(&scripts[q][i], q, i, w->s->post[q][i]);
	for (unsigned q = 0; q < QPS && w->s->post[q][0]; q++)
		for (unsigned i = 0; i < NODES; i++)
			while (!w->s->late[i] && model_can_receive(q, i))
				model_receive(q, i);
}

/* --- posting --- */

bool model_can_post(unsigned q, unsigned node)
{
	return w->node[node].end[q].qp && w->node[node].end[q].posted < scripts[q][node].n;
}

bool model_can_receive(unsigned q, unsigned node)
{
	const struct node *n = &w->node[node];
	unsigned all = 0;

	for (unsigned k = 0; k < QPS && n->srq; k++)
		all += scripts[k][!node].receives;
	if (n->srq)
		return !q && n->receives < all;
	return n->end[q].qp && n->end[q].receives < scripts[q][!node].receives;
}

static void ring(struct ur_qp *qp)
{
	if (ur_qp_doorbell(qp))
		ur_qp_answer(qp, w->now);
}

static void receive_by_rq(unsigned q, unsigned node)
{
	struct end *e = &w->node[node].end[q];
	struct ibv_sge sge = {world_address(node, e->mem->receive[e->receives]), SLOT, w->node[node].mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = e->receives, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ur_qp_post_recv(e->qp, &wr, &bad))
		violation("a receive cannot be posted");
	e->receives++;
	ring(e->qp);
}

static void receive_by_srq(struct node *n, unsigned node)
{
	struct ibv_sge sge = {world_address(node, n->mem[0].receive[n->receives]), SLOT, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = n->receives, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ur_srq_post(n->srq, &wr, &bad))
		violation("a receive cannot be posted to the SRQ");
	n->receives++;
}

void model_receive(unsigned q, unsigned node)
{
	if (w->node[node].srq) {
		receive_by_srq(&w->node[node], node);
		return;
	}
	receive_by_rq(q, node);
}

void model_post(unsigned q, unsigned node)
{
	const struct node *peer = &w->node[!node];
	const struct script *s = &scripts[q][node];
	struct end *e = &w->node[node].end[q];
	const unsigned m = e->posted;
	const struct kind *k = s->kind[m];
	struct ibv_sge sge = {world_address(node, e->mem->source[m]), k->blocks * BLOCK, w->node[node].mr->lkey};
	struct ibv_send_wr wr = {.wr_id = m, .sg_list = &sge, .num_sge = 1, .opcode = k->op, .imm_data = 0x1000 + m}, *bad;

	wr.send_flags = s->flags[m];
	if (k->op == IBV_WR_RDMA_READ)
		sge.addr = world_address(node, e->mem->answer[m]);
	if (is_atomic(k)) {
		sge.addr = world_address(node, &e->mem->result[m]);
		sge.length = 8;
		wr.wr.atomic.remote_addr = world_address(!node, &peer->end[q].mem->word);
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = k->op == IBV_WR_ATOMIC_CMP_AND_SWP ? s->before[m] : s->before[m + 1] - s->before[m];
		wr.wr.atomic.swap = s->before[m + 1];
	} else {
		wr.wr.rdma.remote_addr = world_address(!node, peer->end[q].mem->target);
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	if (ur_qp_post_send(e->qp, &wr, &bad))
		violation("message %u cannot be posted", m);
	e->posted++;
	ring(e->qp);
}

char model_letter(unsigned q, unsigned node, unsigned message)
{
	return message < scripts[q][node].n ? scripts[q][node].kind[message]->letter : '-';
}

/* --- what memory shows of the messages from `node` --- */

/* One more than the message that a block is of; 0: of none. */
static unsigned block_of(const uint8_t *block, const struct script *s, unsigned b)
{
	const unsigned m = block[0];

	if (!memcmp(block, untouched, BLOCK))
		return 0;
	if (!m || m > s->n || memcmp(block, s->bytes[m - 1] + (size_t)b * BLOCK, BLOCK) != 0) {
		violation("memory has bytes that no message carries there");
		return 0;
	}
	return m;
}

struct seen {
	unsigned block[BLOCKS]; /* of the target: one more than the last WRITE there */
	unsigned word;          /* one more than the last atomic */
	unsigned received;      /* receives completed */
	unsigned filling;       /* one more than the message whose receive is being filled */
};

static unsigned word_of(uint64_t v, const struct script *s)
{
	for (unsigned m = s->n; m; m--)
		if (is_atomic(s->kind[m - 1]) && v == s->before[m])
			return m;
	if (v)
		violation("the word of the atomics is %#llx", (unsigned long long)v);
	return 0;
}

/* Has that message been executed, as far as can be seen? READs cannot. */
static bool is_done(const struct script *s, const struct seen *seen, unsigned m)
{
	const struct kind *k = s->kind[m];

	if (takes_receive(k) && seen->received <= s->ordinal[m])
		return false;
	if (is_atomic(k) && seen->word < m + 1)
		return false;
	for (unsigned b = 0; writes(k) && b < k->blocks; b++)
		if (seen->block[b] < m + 1)
			return false;
	return true;
}

/* One more than the last message that has begun. */
static unsigned begun(const struct script *s, const struct seen *seen)
{
	unsigned last = ur_max_u32(seen->word, seen->filling);

	for (unsigned b = 0; b < BLOCKS; b++)
		last = ur_max_u32(last, seen->block[b]);
	if (seen->received)
		last = ur_max_u32(last, s->taker[seen->received - 1] + 1);
	return last;
}

/* Receive r is not complete, and the next message that takes one is the sender's `next`th: has it begun to fill this one? */
static unsigned filling_of(const uint8_t *bytes, const struct script *s, unsigned next, unsigned r)
{
	unsigned m = next < s->receives ? s->taker[next] + 1 : 0, n = 0;

	for (unsigned b = 0; b < BLOCKS; b++) {
		const unsigned got = block_of(bytes + (size_t)b * BLOCK, s, b);

		if (got && (got != m || s->kind[m - 1]->op != IBV_WR_SEND || b >= s->kind[m - 1]->blocks || n != b))
			violation("receive %u has what does not belong there", r);
		n += got != 0;
	}
	return n ? m : 0;
}

/* Is it being filled from that connection? */
static bool is_filled_by(const uint8_t *bytes, unsigned q)
{
	for (unsigned b = 0; b < BLOCKS; b++)
		if (memcmp(bytes + (size_t)b * BLOCK, untouched, BLOCK) != 0)
			return bytes[(size_t)b * BLOCK + 1] >> 1 == q;
	return false;
}

/* Receives of an SRQ: those that have completed, at most one that each connection fills, and others. */
static void look_at_srq(const struct node *n, const struct script *s, const struct end *e, struct seen *seen)
{
	const unsigned q = (unsigned)(e - n->end);

	seen->filling = 0;
	for (unsigned r = 0; r < MESSAGES; r++) {
		const uint8_t *bytes = n->mem[0].receive[r];

		if (n->taken & 1u << r) {
			if (memcmp(bytes, used, SLOT) != 0)
				violation("receive %u has been touched after its completion", r);
		} else if (is_filled_by(bytes, q)) {
			if (seen->filling || r >= n->receives)
				violation("receive %u has been touched before its turn", r);
			seen->filling = filling_of(bytes, s, e->received, r);
		} else if (!is_filled_by(bytes, !q) && memcmp(bytes, untouched, SLOT) != 0) {
			violation("receive %u has what does not belong there", r);
		}
	}
}

static void look_at_receives(const struct area *mem, const struct script *s, const struct end *e, struct seen *seen)
{
	seen->filling = e->received < MESSAGES ? filling_of(mem->receive[e->received], s, e->received, e->received) : 0;
	for (unsigned r = e->received + 1; r < MESSAGES; r++)
		if (memcmp(mem->receive[r], untouched, SLOT) != 0)
			violation("receive %u has been touched before its turn", r);
	for (unsigned r = 0; r < e->received; r++)
		if (memcmp(mem->receive[r], used, SLOT) != 0)
			violation("receive %u has been touched after its completion", r);
}

static void look(const struct node *n, const struct script *s, const struct end *e, struct seen *seen)
{
	const struct area *mem = e->mem;

	for (unsigned b = 0; b < BLOCKS; b++)
		seen->block[b] = block_of(mem->target + (size_t)b * BLOCK, s, b);
	seen->word = word_of(mem->word, s);
	seen->received = e->received;
	if (n->srq)
		look_at_srq(n, s, e, seen);
	else
		look_at_receives(mem, s, e, seen);
}

/* --- completions --- */

/* The bytes of the receive that has completed as the next one of that end; NULL when it cannot be that. */
static uint8_t *completed(struct node *n, const struct end *e, uint64_t r)
{
	if (!n->srq)
		return r == e->received ? e->mem->receive[r] : NULL;
	if (r >= n->receives || n->taken & 1u << r)
		return NULL;
	n->taken |= 1u << r;
	return n->mem[0].receive[r];
}

static void check_receive(const struct script *s, struct node *n, struct end *e, const struct ibv_wc *wc)
{
	const unsigned m = s->taker[e->received < s->receives ? e->received : 0];
	const struct kind *k = s->kind[m];
	const uint32_t len = k->op == IBV_WR_SEND ? k->blocks * BLOCK : 0;
	uint8_t *bytes = NULL;

	if (wc->status == IBV_WC_SUCCESS && e->received < s->receives)
		bytes = completed(n, e, wc->wr_id);
	if (!bytes) {
		violation("receive completion %llu with status %d in the place of %u", (unsigned long long)wc->wr_id, (int)wc->status,
			  e->received);
		return;
	}
	if (wc->byte_len != k->blocks * BLOCK || (k->op == IBV_WR_SEND) != (wc->opcode == IBV_WC_RECV))
		violation("receive completion %u with opcode %d and %u bytes", e->received, (int)wc->opcode, wc->byte_len);
	else if (k->op != IBV_WR_SEND && (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->imm_data != 0x1000 + m))
		violation("receive completion %u with immediate data %#x", e->received, wc->imm_data);
	else if (memcmp(bytes, s->bytes[m], len) != 0)
		violation("receive %u has not the bytes of its message", e->received);
	else if (memcmp(bytes + len, untouched, SLOT - len) != 0)
		violation("receive %u has more than its message", e->received);
	memset(bytes, USED, SLOT);
	e->received++;
}

/* A READ saw what was written before it was posted, or since. */
static void check_read(const struct script *s, const struct end *e, unsigned m)
{
	for (unsigned b = 0; b < s->kind[m]->blocks; b++) {
		const unsigned got = block_of(e->mem->answer[m] + (size_t)b * BLOCK, s, b);
		unsigned least = 0;

		for (unsigned k = 0; k < m; k++)
			if (writes(s->kind[k]) && b < s->kind[k]->blocks)
				least = k + 1;
		if (got < least || got > e->posted || (got && !writes(s->kind[got - 1])))
			violation("READ %u has block %u of message %d, not of %d or later", m, b, (int)got - 1, (int)least - 1);
	}
}

/* Message m completes, as the next one. */
static void check_sent(const struct script *s, struct end *e, const struct seen *seen, unsigned m)
{
	const struct kind *k = s->kind[m];

	if (k->op == IBV_WR_RDMA_READ)
		check_read(s, e, m);
	else if (is_atomic(k) && e->mem->result[m] != s->before[m])
		violation("atomic %u has the result %#llx", m, (unsigned long long)e->mem->result[m]);
	if (!is_done(s, seen, m))
		violation("message %u is complete and has not been executed", m);
	memset(e->mem->source[m], USED, SLOT);
	memset(e->mem->answer[m], USED, SLOT);
	memset(&e->mem->result[m], USED, 8);
	e->sent++;
}

static void check_send(const struct script *s, struct end *e, const struct seen *seen, const struct ibv_wc *wc)
{
	while (e->sent < e->posted && !s->flags[e->sent])
		check_sent(s, e, seen, e->sent);
	if (wc->status != IBV_WC_SUCCESS || wc->wr_id != e->sent || e->sent >= e->posted)
		violation("send completion %llu with status %d in the place of %u", (unsigned long long)wc->wr_id, (int)wc->status,
			  e->sent);
	else
		check_sent(s, e, seen, e->sent);
}

/* --- all --- */

/* Memory of the requests: untouched before they complete, but for answers, which may have come in part. */
static void check_requests(const struct script *s, const struct end *e)
{
	for (unsigned m = e->sent; m < s->n; m++) {
		if (memcmp(e->mem->source[m], s->bytes[m], SLOT) != 0)
			violation("the source of message %u has changed", m);
		for (unsigned b = 0; b < BLOCKS; b++)
			if (block_of(e->mem->answer[m] + (size_t)b * BLOCK, s, b) && (m >= e->posted || b >= s->kind[m]->blocks))
				violation("the answer to message %u came before it", m);
		if (memcmp(&e->mem->result[m], untouched, 8) != 0 && e->mem->result[m] != s->before[m])
			violation("atomic %u has a wrong result before its completion", m);
	}
	for (unsigned m = 0; m < e->sent; m++)
		if (memcmp(e->mem->source[m], used, SLOT) != 0 || memcmp(e->mem->answer[m], used, SLOT) != 0 ||
		    memcmp(&e->mem->result[m], used, 8) != 0)
			violation("memory of message %u was touched after its completion", m);
}

static void check_guards(const struct area *a)
{
	const uint8_t *const guards[] = {a->g0, a->g1, a->g2, a->g3, a->g4, a->g5, a->g6};

	for (unsigned i = 0; i < ur_array_size(guards); i++)
		if (memcmp(guards[i], untouched, GUARD) != 0)
			violation("memory beside what was posted has been touched (%u)", i);
}

static void check_order(const struct script *s, const struct seen *seen, const struct end *from)
{
	const unsigned last = begun(s, seen);

	if (last > from->posted)
		violation("message %u was executed before it was posted", last - 1);
	for (unsigned m = 0; m + 1 < last; m++)
		if (!is_done(s, seen, m))
			violation("message %u was executed before message %u", last - 1, m);
}

/* Messages that go from `node`. */
static void check_way(unsigned q, unsigned node)
{
	const struct script *s = &scripts[q][node];
	struct end *from = &w->node[node].end[q], *to = &w->node[!node].end[q];
	struct seen seen;
	struct ibv_wc wc;

	while (!violated() && ur_cq_poll(to->rcq, 1, &wc) > 0)
		check_receive(s, &w->node[!node], to, &wc);
	if (violated())
		return;
	look(&w->node[!node], s, to, &seen);
	while (!violated() && ur_cq_poll(from->scq, 1, &wc) > 0)
		check_send(s, from, &seen, &wc);
	check_order(s, &seen, from);
	check_requests(s, from);
	check_guards(to->mem);
}

/* Where nothing was lost, late or there twice, and receives were posted in time, nothing is sent again, and nothing waits for a timer. */
static void check_calm(unsigned node)
{
	const uint64_t *v = w->node[node].counters.v;

	if (w->faults || w->s->late[0] || w->s->late[1])
		return;
	if (v[UR_C_RETRANSMIT] || v[UR_C_PROBE] || v[UR_C_ACK_TIMEOUT])
		violation("nothing was lost, and something was sent again");
}

bool model_is_over(void)
{
	for (unsigned q = 0; q < QPS && w->s->post[q][0] && w->s->rd_n; q++)
		for (unsigned i = 0; i < NODES; i++)
			if (ur_qp_state(w->node[i].end[q].qp) != IBV_QPS_RTS)
				return true;
	return false;
}

/* What says that it has something to send, sends or does something. */
static void check_stalls(void)
{
	for (unsigned i = 0; i < NODES; i++)
		if (w->node[i].counters.v[UR_C_TX_STALLED])
			violation("a QP had something to send, and moved nothing");
}

void model_check(void)
{
	check_stalls();
	if (model_is_over())
		return;
	for (unsigned q = 0; q < QPS && w->s->post[q][0]; q++)
		for (unsigned i = 0; i < NODES && !violated(); i++) {
			check_way(q, i);
			check_calm(i);
			if (ur_qp_state(w->node[i].end[q].qp) != IBV_QPS_RTS)
				violation("a QP has failed");
		}
}

static void check_end_of(unsigned q, unsigned node)
{
	const struct script *s = &scripts[q][node];
	struct end *e = &w->node[node].end[q];
	struct seen seen;

	look(&w->node[!node], s, &w->node[!node].end[q], &seen);
	while (e->sent < s->n && !s->flags[e->sent] && e->qp->req.head >= e->sent + 1)
		check_sent(s, e, &seen, e->sent);
	if (e->sent != s->n)
		violation("nothing will happen any more, and message %u of connection %u from node %u is not complete", e->sent, q, node);
	if (w->node[!node].end[q].received != s->receives)
		violation("nothing will happen any more, and receive %u of connection %u at node %u is not complete",
			  w->node[!node].end[q].received, q, !node);
}

void model_check_end(void)
{
	for (unsigned q = 0; q < QPS && w->s->post[q][0]; q++)
		for (unsigned i = 0; i < NODES && !violated(); i++)
			check_end_of(q, i);
}
