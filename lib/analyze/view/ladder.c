/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What became of packets, in a window around one frame. The rules are those of the analysis, which reports only the first packet of a run;
 * here each packet has its place. First the packets are collected, then missing ones get rows, then repetitions and refusals say what
 * became of the packets before them.
 */
#include "analyze/view/ladder.h"

#include <stdlib.h>

#include "analyze/flow/hidden.h"
#include "analyze/frame/recorded_train.h"
#include "analyze/frame/twice.h"
#include "analyze/state/sacks.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define JUMP_MAX 65536                  /* PSNs; what is farther away belongs to something else */
#define OVERTAKEN_NS (1 * UR_NS_PER_MS) /* what is late by less was not lost */
#define TOO_SOON_NS (50 * UR_NS_PER_US) /* what comes again sooner has not been missed */
#define DUE_MAX 256                     /* READs whose responses are looked for */
#define MAD_ATTR 16

const char *const ur_ladder_fate_texts[UR_LADDER_FATE_COUNT] = {
#define TEXT(id, text) text,
	UR_LADDER_FATES(TEXT)
#undef TEXT
};

struct due { /* a READ or atomic request: its responses are PSNs [psn, psn + n), of which `got` is expected next */
	uint32_t psn, n, got;
};

struct ur_ladder {
	struct ur_an_conn c;
	uint32_t at, after;
	struct ur_ladder_row *rows;
	uint32_t n, room;
	bool done;
	struct an_twice twice;
	struct ur_ladder_aside asides[UR_LADDER_ASIDES];
	uint32_t nasides, newest; /* newest: frame of a packet */
	struct an_mirror mirror;
	/* of each direction, while rows are gone through */
	struct side {
		bool known;
		uint32_t next;      /* after the newest request */
		uint32_t back_next; /* after the newest repetition */
		bool back;
		struct due due[DUE_MAX];
		uint32_t ndue;
	} side[2];
};

struct ur_ladder *ur_ladder_create(const struct ur_an_conn *c, uint32_t at)
{
	struct ur_ladder *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->c = *c;
	l->at = at;
	if (c->twice)
		an_twice_begin(&l->twice);
	return l;
}

void ur_ladder_destroy(struct ur_ladder *l)
{
	if (!l)
		return;
	an_twice_free(&l->twice);
	free(l->rows);
	free(l);
}

/* --- collecting --- */

static bool of_half(const struct ur_an_half *h, const struct an_pkt *p)
{
	return ur_gid_eq(&h->from, &p->src) && ur_gid_eq(&h->to, &p->dst);
}

/* Which end sent a message of the connection manager, which tells it of no QPN: both ends may have one address. */
static int half_of_cm(const struct ur_an_conn *c, uint32_t frame)
{
	const struct {
		uint32_t frame;
		int half;
	} messages[] = {{c->req_frame, 0},
			{c->rep_frame, 1},
			{c->rtu_frame, 0},
			{c->rej_frame, c->rej_by_second},
			{c->dreq_frame, c->dreq_by_second},
			{c->drep_frame, !c->dreq_by_second}};

	for (unsigned i = 0; i < ur_array_size(messages); i++)
		if (messages[i].frame == frame)
			return messages[i].half;
	return -1;
}

/* 0 or 1: the half whose host has sent it; -1: it is not of this connection. */
static int half_of(const struct ur_an_conn *c, const struct an_pkt *p)
{
	const int cm = p->bth.dqpn == 1 ? half_of_cm(c, p->frame) : -1;

	for (int i = 0; i < 2; i++)
		if (of_half(&c->half[i], p) && (p->bth.dqpn == 1 ? i == cm : c->half[i].dqpn && p->bth.dqpn == c->half[i].dqpn))
			return i;
	return -1;
}

static void fill_ext(struct ur_ladder_row *r, const struct an_pkt *p)
{
	struct ur_reth reth;
	struct ur_aeth aeth;

	if (p->op->flags & UR_OPF_RETH) {
		ur_reth_get(p->ext + p->op->off_reth, &reth);
		r->va = reth.va;
		r->rkey = reth.rkey;
		r->dma_len = reth.len;
	}
	if (p->op->flags & UR_OPF_AETH) {
		ur_aeth_get(p->ext + p->op->off_aeth, &aeth);
		r->syndrome = aeth.syndrome;
		r->msn = aeth.msn;
	}
}

static void fill_sack(struct ur_ladder_row *r, const struct an_pkt *p)
{
	struct ur_sack s;

	if (!an_sack_get(p, &s))
		return;
	r->expected = s.expected;
	for (unsigned i = 0; i < s.n; i++) {
		const uint32_t psn = ur_psn_add(s.base, i);
		const bool begins = !i || !ur_sack_has(&s, ur_psn_add(psn, UR_PSN_MASK));

		if (!ur_sack_has(&s, psn))
			continue;
		r->nhas += begins;
		if (r->nhas > UR_LADDER_RUNS)
			continue;
		if (begins)
			r->has[r->nhas - 1].from = psn;
		r->has[r->nhas - 1].to = psn;
	}
}

static void fill(const struct ur_an_conn *c, struct ur_ladder_row *r, const struct an_pkt *p, int half)
{
	const bool bad = p->icrc == AN_ICRC_WRONG || p->wrong || p->bad_opcode;

	*r = (struct ur_ladder_row){.frame = p->frame,
				    .when = p->when,
				    .second = half,
				    .answer = p->op->flags & UR_OPF_RESPONSE,
				    .opcode = p->bth.opcode,
				    .tos = p->tos,
				    .ackreq = p->bth.ackreq,
				    .cut = p->cut,
				    .cm = p->bth.dqpn == 1,
				    .sport = p->sport,
				    .dqpn = p->bth.dqpn,
				    .psn = p->bth.psn,
				    .n = 1,
				    .len = p->payload_len};
	if (bad) {
		r->fate = UR_LADDER_DAMAGED;
		r->wrong = p->wrong ? p->wrong : p->why ? p->why : "its opcode is unknown";
		return;
	}
	if (p->bth_at && !r->cm && !r->answer)
		r->hello = ur_hello_is(p->bth_at);
	if (p->ext) {
		fill_ext(r, p);
		fill_sack(r, p);
	}
	if (p->op->flags & UR_OPF_READ)
		r->n = c->mtu ? an_npkts(r->dma_len, c->mtu) : 1;
	else if (p->behind && p->bth.dqpn != 1 && p->op->flags & UR_OPF_PAYLOAD)
		r->n = 1 + p->behind - (p->tail == AN_ACK_LEN && !r->answer);
	if (r->cm && !p->cut && p->payload_len == UR_MAD_LEN)
		r->attr = ur_get16(p->payload + MAD_ATTR);
}

static struct ur_ladder_row *new_row(struct ur_ladder *l)
{
	uint32_t room = l->room ? 2 * l->room : 256;
	struct ur_ladder_row *rows;

	if (l->n < l->room)
		return &l->rows[l->n++];
	rows = realloc(l->rows, room * sizeof(*rows));
	if (!rows)
		return NULL;
	l->rows = rows;
	l->room = room;
	return &l->rows[l->n++];
}

static void keep_packet(struct ur_ladder *l, const struct an_pkt *p)
{
	int half = half_of(&l->c, p);
	struct ur_ladder_row *r;
	struct an_pkt first;

	if (half < 0 || l->after >= UR_LADDER_KEEP_AFTER)
		return;
	if (p->frame <= l->at && l->n >= 2 * UR_LADDER_KEEP_BEFORE) {
		l->n = UR_LADDER_KEEP_BEFORE;
		memmove(l->rows, l->rows + UR_LADDER_KEEP_BEFORE, l->n * sizeof(*l->rows));
	}
	r = new_row(l);
	l->newest = p->frame;
	if (p->cut && p->ext) {
		first = *p;
		an_hidden_count(&first, l->c.mtu);
		p = &first;
	}
	if (r)
		fill(&l->c, r, p, half);
	l->after += p->frame > l->at;
}

static void keep_aside(struct ur_ladder *l, const struct ur_an_frame *f, const struct an_pkt *p)
{
	const struct ur_an_half *h = &l->c.half[0];
	struct ur_ladder_aside *last = l->nasides ? &l->asides[l->nasides - 1] : NULL;
	struct ur_aside one;

	if (!an_aside_of(f, p, &h->from, &h->to, &one))
		return;
	if (last && last->after == l->newest && an_aside_again(&last->aside, &one)) {
		last->aside.n++;
		last->aside.last = one.when;
		last->aside.last_frame = one.frame;
		return;
	}
	if (l->nasides == UR_LADDER_ASIDES && f->number > l->at)
		return;
	if (l->nasides == UR_LADDER_ASIDES) {
		l->nasides /= 2;
		memmove(l->asides, l->asides + l->nasides, l->nasides * sizeof(l->asides[0]));
	}
	l->asides[l->nasides++] = (struct ur_ladder_aside){one, l->newest};
}

bool ur_ladder_frame(struct ur_ladder *l, const struct ur_an_frame *f)
{
	const struct an_pkt *p;
	struct an_train t;

	an_train_first(&t, f);
	if (t.whole.roce)
		t.whole.when = an_mirror_time(&l->mirror, &t.whole.mirror, f->when);
	if (an_twice_is_copy(&l->twice, &t.whole))
		return true;
	if (!t.read)
		keep_aside(l, f, &t.whole);
	while (t.read && (p = an_train_next(&t)))
		keep_packet(l, p);
	return l->after < UR_LADDER_KEEP_AFTER;
}

bool ur_ladder_is_of(const struct ur_an_conn *c, const struct ur_an_frame *f)
{
	const struct an_pkt *p;
	struct an_train t;

	an_train_first(&t, f);
	while (t.read && (p = an_train_next(&t)))
		if (half_of(c, p) >= 0)
			return true;
	return false;
}

/* --- what is not there --- */

static bool has(const struct ur_ladder_row *r, uint32_t psn)
{
	return ((psn - r->psn) & UR_PSN_MASK) < r->n;
}

static bool is_request(const struct ur_ladder_row *r, bool second)
{
	return !r->answer && !r->cm && r->second == second && r->opcode != UR_OP_CNP;
}

static bool is_data(const struct ur_ladder_row *r)
{
	return r->answer && r->opcode % 32 != UR_OP_ACK;
}

static bool is_nak(const struct ur_ladder_row *r)
{
	return r->answer && r->opcode % 32 == UR_OP_ACK && ur_syndrome_type(r->syndrome) != UR_AETH_ACK;
}

/* A packet that came damaged is missing in the order of the others, and has its row. */
static bool damaged_before(const struct ur_ladder *l, const struct ur_ladder_row *like, uint32_t psn)
{
	for (uint32_t i = l->n, tries = 256; i-- && tries--;)
		if (l->rows[i].fate == UR_LADDER_DAMAGED && l->rows[i].second == like->second && l->rows[i].psn == psn)
			return true;
	return false;
}

/* PSNs [psn, psn + n) of the direction of `like` are not in the file. */
static void add_missing(struct ur_ladder *l, const struct ur_ladder_row *like, uint32_t psn, uint32_t n, uint8_t opcode)
{
	const struct ur_ladder_row as = *like;
	struct ur_ladder_row *r;

	for (; n && damaged_before(l, &as, psn); n--)
		psn = ur_psn_add(psn, 1);
	r = n ? new_row(l) : NULL;
	if (r)
		*r = (struct ur_ladder_row){.when = as.when,
					    .second = as.second,
					    .answer = as.answer,
					    .fate = UR_LADDER_MISSED,
					    .opcode = opcode,
					    .dqpn = as.dqpn,
					    .psn = psn,
					    .n = n};
}

static void miss_requests(struct ur_ladder *l, const struct ur_ladder_row *r)
{
	struct side *s = &l->side[r->second];
	int32_t jump = s->known ? ur_psn_diff(r->psn, s->next) : 0;

	if (jump > 0 && jump < JUMP_MAX)
		add_missing(l, r, s->next, (uint32_t)jump, r->opcode);
	if (!s->known || (jump >= 0 && jump < JUMP_MAX) || ur_psn_diff(ur_psn_add(r->psn, r->n), s->next) > 0)
		s->next = ur_psn_add(r->psn, r->n);
	s->known = true;
	if (!an_takes_answer(ur_opcode(r->opcode)))
		return;
	if (s->ndue == DUE_MAX) {
		memmove(s->due, s->due + DUE_MAX / 2, DUE_MAX / 2 * sizeof(s->due[0]));
		s->ndue = DUE_MAX / 2;
	}
	s->due[s->ndue++] = (struct due){r->psn, r->n, 0};
}

/* The oldest request that has not had response `psn` yet says what is missing before it; to all it has come now. */
static void miss_response(struct ur_ladder *l, const struct ur_ladder_row *r, uint32_t psn)
{
	struct side *s = &l->side[!r->second];
	bool found = false;

	for (uint32_t i = 0; i < s->ndue; i++) {
		struct due *d = &s->due[i];
		uint32_t k = (psn - d->psn) & UR_PSN_MASK;

		if (k >= d->n || k < d->got)
			continue;
		if (!found && k > d->got)
			add_missing(l, r, ur_psn_add(d->psn, d->got), k - d->got, UR_OP_READ_RESP_MIDDLE | (r->opcode & UR_SERVICE_MASK));
		found = true;
		d->got = k + 1;
	}
}

static void miss_responses(struct ur_ladder *l, const struct ur_ladder_row *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		miss_response(l, r, ur_psn_add(r->psn, i));
}

/* Goes through the rows once more, with those that are missing put in. */
static void put_missing(struct ur_ladder *l)
{
	struct ur_ladder_row *old = l->rows;
	const uint32_t n = l->n;

	l->rows = NULL;
	l->n = l->room = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct ur_ladder_row *r = &old[i];
		struct ur_ladder_row *to;

		if (!r->cm && r->fate == UR_LADDER_ARRIVED && r->opcode != UR_OP_CNP) {
			if (!r->answer)
				miss_requests(l, r);
			else if (is_data(r))
				miss_responses(l, r);
		}
		to = new_row(l);
		if (to)
			*to = *r;
	}
	free(old);
}

/* --- what became of each --- */

static void set_fate(struct ur_ladder_row *r, enum ur_ladder_fate fate, uint32_t by)
{
	if (r->fate != UR_LADDER_ARRIVED && r->fate != UR_LADDER_MISSED)
		return;
	r->fate = fate;
	r->by = by;
}

/* The newest transmission of a request before row `i`; l->n for none. */
static uint32_t request_before(const struct ur_ladder *l, uint32_t i)
{
	const struct ur_ladder_row *r = &l->rows[i];

	for (uint32_t j = i; j--;)
		if (is_request(&l->rows[j], r->second) && l->rows[j].fate != UR_LADDER_DAMAGED && has(&l->rows[j], r->psn))
			return j;
	return l->n;
}

/* The newest NAK for that PSN between the rows `j` and `i`; what is refused for want of a receive buffer makes what follows it look
 * missing. */
static uint32_t nak_between(const struct ur_ladder *l, uint32_t j, uint32_t i)
{
	uint32_t found = l->n;

	for (uint32_t k = i; k-- > j;) {
		if (!is_nak(&l->rows[k]) || l->rows[k].second == l->rows[i].second || l->rows[k].psn != l->rows[i].psn)
			continue;
		if (ur_syndrome_type(l->rows[k].syndrome) == UR_AETH_RNR)
			return k;
		found = found == l->n ? k : found;
	}
	return found;
}

/* What the receiver said about a request that comes again in row `i`. */
static void refused(struct ur_ladder *l, uint32_t j, uint32_t k)
{
	const struct ur_ladder_row *nak = &l->rows[k];
	const bool rnr = ur_syndrome_type(nak->syndrome) == UR_AETH_RNR;
	struct ur_ladder_row *lost = &l->rows[j];

	set_fate(lost, !lost->frame ? UR_LADDER_BEFORE : rnr ? UR_LADDER_NO_BUFFER : UR_LADDER_BEHIND, nak->frame);
	for (uint32_t m = j + 1; m < k; m++)
		if (is_request(&l->rows[m], lost->second) && l->rows[m].frame && ur_psn_diff(l->rows[m].psn, nak->psn) > 0)
			set_fate(&l->rows[m], UR_LADDER_EARLY, nak->frame);
}

/* A READ asks again: what of its responses passed the recorder did not arrive, or came too late. */
static void asked_again(struct ur_ladder *l, uint32_t j, uint32_t i)
{
	const struct ur_ladder_row *r = &l->rows[i], *first = &l->rows[j];
	const bool to_end = ur_psn_add(r->psn, r->n) == ur_psn_add(first->psn, first->n);
	bool any = false;

	for (uint32_t k = j; k < i; k++) {
		struct ur_ladder_row *a = &l->rows[k];

		if (!is_data(a) || a->second == r->second || !(has(r, a->psn) || has(a, r->psn)))
			continue;
		any = true;
		if (!a->frame)
			set_fate(a, UR_LADDER_BEFORE, r->frame);
		else
			set_fate(a, to_end && a->psn != r->psn ? UR_LADDER_EARLY : UR_LADDER_BEHIND, r->frame);
	}
	/* The responses before the ones that it asks for say that the request has arrived. */
	for (uint32_t k = j; k < i && !any; k++)
		any = is_data(&l->rows[k]) && l->rows[k].second != r->second && has(first, l->rows[k].psn);
	if (!any && first->psn == r->psn && an_since(r->when, first->when) >= TOO_SOON_NS)
		set_fate(&l->rows[j], UR_LADDER_FAR, r->frame);
}

/* Nobody asked for it: its answer did not come in time. */
static void unasked(struct ur_ladder *l, uint32_t j, uint32_t i)
{
	const struct ur_ladder_row *r = &l->rows[i];

	for (uint32_t k = i; k-- > j;) {
		struct ur_ladder_row *a = &l->rows[k];

		if (!a->answer || a->second == r->second || is_nak(a) || ur_psn_diff(a->psn, r->psn) < 0)
			continue;
		set_fate(a, UR_LADDER_BEHIND, r->frame);
		return;
	}
	set_fate(&l->rows[j], l->rows[j].frame ? UR_LADDER_FAR : UR_LADDER_BEFORE, r->frame);
}

static void repeated(struct ur_ladder *l, uint32_t i)
{
	struct ur_ladder_row *r = &l->rows[i];
	struct side *s = &l->side[r->second];
	uint32_t j = request_before(l, i), k = j < l->n ? nak_between(l, j, i) : l->n;
	const bool goes_on = s->back && r->psn == s->back_next;

	s->back = j < l->n;
	if (!s->back)
		return;
	s->back_next = ur_psn_add(r->psn, r->n);
	r->again = l->rows[j].frame;
	if (k < l->n)
		refused(l, j, k);
	else if (!l->rows[j].frame)
		set_fate(&l->rows[j], r->when - l->rows[j].when < OVERTAKEN_NS ? UR_LADDER_ARRIVED : UR_LADDER_BEFORE, r->frame);
	else if (an_takes_answer(ur_opcode(r->opcode)))
		asked_again(l, j, i);
	else if (!goes_on && an_since(r->when, l->rows[j].when) >= TOO_SOON_NS)
		unasked(l, j, i);
}

/* A response that has been here, or was missed before and asked for again. */
static void response(struct ur_ladder *l, uint32_t i)
{
	struct ur_ladder_row *r = &l->rows[i];

	for (uint32_t j = i; j--;) {
		struct ur_ladder_row *a = &l->rows[j];

		if (!is_data(a) || a->second != r->second || !has(a, r->psn) || a->fate == UR_LADDER_DAMAGED)
			continue;
		r->again = a->frame;
		r->repair = a->fate != UR_LADDER_ARRIVED && a->fate != UR_LADDER_MISSED;
		if (a->fate == UR_LADDER_MISSED && r->when - a->when < OVERTAKEN_NS)
			a->fate = UR_LADDER_ARRIVED; /* overtaken: it is here now */
		return;
	}
}

const struct ur_ladder_row *ur_ladder_rows(struct ur_ladder *l, uint32_t *n)
{
	uint32_t to = 0;

	if (!l->done) {
		put_missing(l);
		for (uint32_t i = 0; i < l->n; i++) {
			const struct ur_ladder_row *r = &l->rows[i];

			if (!r->frame || r->cm || r->fate == UR_LADDER_DAMAGED || r->opcode == UR_OP_CNP)
				continue;
			if (!r->answer)
				repeated(l, i);
			else if (is_data(r))
				response(l, i);
		}
		/* What was thought to be missing, and has come later. */
		for (uint32_t i = 0; i < l->n; i++)
			if (l->rows[i].frame || l->rows[i].fate != UR_LADDER_ARRIVED)
				l->rows[to++] = l->rows[i];
		l->n = to;
		l->done = true;
	}
	*n = l->n;
	return l->n ? l->rows : NULL;
}

const struct ur_ladder_aside *ur_ladder_asides(const struct ur_ladder *l, uint32_t *n)
{
	*n = l->nasides;
	return l->asides;
}

bool ur_ladder_rate(const struct ur_ladder_row *rows, uint32_t n, bool second, ur_time when, uint64_t *before, uint64_t *after)
{
	*before = *after = 0;
	if (!n || rows[0].when + UR_LADDER_RATE_NS > when || rows[n - 1].when < when + UR_LADDER_RATE_NS)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct ur_ladder_row *r = &rows[i];

		if (!r->frame || r->second != second || r->cm)
			continue;
		if (r->when <= when && r->when + UR_LADDER_RATE_NS > when)
			*before += r->len;
		else if (r->when > when && r->when <= when + UR_LADDER_RATE_NS)
			*after += r->len;
	}
	return true;
}
