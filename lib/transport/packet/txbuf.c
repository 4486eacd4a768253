/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/packet/txbuf.h"

#include "base/psn.h"
#include "transport/memory/sge.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/crc/crc32.h"
#include "wire/crc/icrc.h"
#include "wire/crc/icrc_run.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/slim.h"
#include "wire/train.h"

#define BTH_MASKED 4 /* the byte of the BTH that the ICRC takes as 0xff */

/* --- headers --- */

static void put_template(const struct ur_path *path, struct ur_pkt *p)
{
	ur_path_put_headers(p->data, path->hdr);
	p->kind = UR_PKT_ROCE;
	p->flags |= path->local ? UR_PKT_LOCAL : 0;
	p->ip_version = path->ip_version;
	p->l3_off = path->l3_off;
	p->l4_off = (uint16_t)(path->hdr_len - UR_UDP_LEN);
	p->bth_off = path->hdr_len;
	p->len = path->hdr_len;
}

uint8_t *ur_pkt_begin_to(const struct ur_path *path, uint32_t dqpn, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	uint8_t *b;

	if (ur_likely(!p->len)) /* otherwise it follows others in their train */
		put_template(path, p);
	b = p->data + p->len;
	p->bth.pkey = UR_PKEY_DEFAULT;
	p->bth.migreq = true; /* no path migration: always in the migrated state */
	p->bth.dqpn = dqpn;
	ur_bth_put(b, &p->bth);
	p->len += UR_BTH_LEN + op->ext_len;
	p->payload_off = (uint16_t)p->len;
	return b + UR_BTH_LEN;
}

/* --- buffers --- */

void ur_txbuf_reset(struct ur_txbuf *b, struct ur_pkt **pkts)
{
	b->pkts = pkts;
	b->n = 0;
	b->open = b->last = NULL;
	b->filling = false;
}

void ur_txbuf_close(struct ur_txbuf *b)
{
	b->open = b->last = NULL;
}

/* All that stands before the BTH is as in the newest train. */
__attribute__((noinline)) static bool same_way(const struct ur_txbuf *b, const struct ur_path *path)
{
	return b->hdr_len == path->hdr_len && memcmp(b->hdr, path->hdr, path->hdr_len) == 0;
}

static bool fits(const struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	const struct ur_txbuf *b = &tp->tx;
	uint32_t all = b->open->len - b->open->bth_off + bytes;

	return bytes <= b->stride && b->count < tp->train_pkts && all <= tp->train_bytes && !path->local &&
	       (ur_likely(b->path == path) || same_way(b, path));
}

/* An open train that holds one packet at first, or a packet. */
static struct ur_pkt *fresh(struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	struct ur_txbuf *b = &tp->tx;
	struct ur_pkt *p = tp->train_pkts > 1 && !path->local ? tp->c.alloc_train(tp->c.ctx) : NULL;

	b->open = p;
	if (!p)
		p = ur_tp_pkt(tp);
	if (ur_unlikely(!p))
		return NULL;
	if (b->open || path->local || tp->copies)
		p->flags = UR_PKT_COMPLETE;
	if (ur_unlikely(!same_way(b, path))) {
		memcpy(b->hdr, path->hdr, sizeof(b->hdr));
		b->hdr_len = path->hdr_len;
		memset(b->base, 0, sizeof(b->base));
	}
	b->path = path;
	b->stride = bytes;
	b->count = 0;
	return p;
}

__attribute__((noinline)) static struct ur_pkt *begin_fresh(struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	struct ur_txbuf *b = &tp->tx;
	struct ur_pkt *p;

	if (b->filling) {
		tp->starved = true;
		return NULL;
	}
	p = fresh(tp, path, bytes);
	if (ur_likely(p != NULL))
		b->pkts[b->n++] = p;
	b->start = path->hdr_len;
	return p;
}

struct ur_pkt *ur_txbuf_begin(struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	struct ur_txbuf *b = &tp->tx;
	struct ur_pkt *p = b->open;

	b->last_len = path->hdr_len + bytes;
	if (!p || !fits(tp, path, bytes))
		return begin_fresh(tp, path, bytes);
	b->start = p->len;
	p->bth = (struct ur_bth){.opcode = 0};
	p->payload_len = 0;
	return p;
}

void ur_txbuf_undo(struct ur_tp *tp, struct ur_pkt *p)
{
	struct ur_txbuf *b = &tp->tx;

	if (p == b->open && b->count) {
		p->len = b->start;
		ur_bth_get(p->data + p->bth_off, &p->bth); /* the first one's again, by which rules judge what goes alone */
		return;
	}
	b->open = b->last = NULL;
	b->n--;
	ur_tp_pkt_drop(tp, p);
}

/* --- the ICRC, and what stands before the BTH --- */

/* The state after the headers of a packet of that length; a shorter last one has others than the train shows. */
static inline uint32_t base(struct ur_txbuf *b, const struct ur_pkt *p, uint32_t bytes)
{
	const unsigned i = UR_TXBUF_BASE(bytes);

	if (ur_unlikely(b->base[i].len != bytes)) {
		b->base[i].state = ur_icrc_headers(p->data + p->l3_off, p->ip_version, bytes + UR_UDP_LEN);
		b->base[i].len = bytes;
	}
	return b->base[i].state;
}

/* The state after the first `len` bytes from the BTH on, of a packet of `bytes` bytes, number `place` of its train. */
static inline uint32_t begin_icrc(struct ur_txbuf *b, const struct ur_pkt *p, uint8_t *bth, uint32_t len, uint32_t bytes, unsigned place)
{
	const uint8_t kept = bth[BTH_MASKED];
	uint32_t crc = base(b, p, bytes);

	if (place && p->ip_version == 4)
		crc ^= ur_icrc_id_term((uint8_t)place);
	bth[BTH_MASKED] = 0xff;
	crc = ur_icrc_add(crc, bth, len);
	bth[BTH_MASKED] = kept;
	return crc;
}

static void put_icrc(struct ur_txbuf *b, struct ur_pkt *p)
{
	uint8_t *bth = p->data + b->start;
	uint32_t bytes, crc;

	memset(p->data + p->len, 0, 4);
	p->len += p->bth.pad;
	bytes = p->len + UR_ICRC_LEN - b->start;
	if (!b->count)
		ur_udp_put_lengths(p->data + p->l3_off, p->ip_version, bytes + UR_UDP_LEN);
	crc = begin_icrc(b, p, bth, bytes - UR_ICRC_LEN, bytes, b->count);
	ur_icrc_end(crc, p->data + p->len);
	p->len += UR_ICRC_LEN;
	if (b->count++)
		p->stride = b->stride;
	if (bytes < b->stride || p->flags & UR_PKT_GROUP) /* a group's members here get copies of packets, not of trains */
		b->open = NULL;
}

/* Nobody looks at what it sends to its peer, a process of this host. */
static bool may_be_slim(const struct ur_qp *qp, const struct ur_pkt *p)
{
	return ur_slim_serves(qp->service) && ur_tp_takes(qp) & UR_TP_SLIM && (p->bth.opcode & UR_SERVICE_MASK) == qp->service;
}

static void finish_slim(struct ur_pkt *p, uint8_t slot)
{
	memset(p->data + p->len, 0, 4);
	p->len += p->bth.pad;
	p->slot = slot;
	p->flags |= UR_PKT_COMPLETE | UR_PKT_SLIM;
}

void ur_txbuf_end(struct ur_qp *qp, struct ur_pkt *p)
{
	struct ur_txbuf *b = &qp->tp->tx;

	UR_TRACE(qp->tp->trace, TX, qp->qpn, p->bth.dqpn, p->bth.opcode, p->bth.psn, p->payload_len, p->bth.ackreq);
	b->last = p == b->open ? NULL : p;
	b->row.psn = UR_TXBUF_NO_ROW;
	if (ur_unlikely(p->flags & UR_PKT_LOCAL) && !p->nseg && may_be_slim(qp, p)) {
		finish_slim(p, qp->tp->c.slot);
	} else if (p == b->open || !p->nseg) {
		put_icrc(b, p);
		p->flags |= UR_PKT_COMPLETE;
	}
}

/* --- rows --- */

#define LIKE 96 /* bytes that are copied: headers with an extended one of up to 16 bytes, and what comes behind them */
_Static_assert(UR_PATH_HDR_MAX + UR_BTH_LEN + 16 <= LIKE, "all headers");

/* What the bytes do not tell of a packet of the same way. */
static inline void copy_fields(struct ur_pkt *to, const struct ur_pkt *from)
{
	to->kind = from->kind;
	to->flags = (from->flags & (UR_PKT_LOCAL | UR_PKT_SLIM)) | UR_PKT_COMPLETE;
	to->slot = from->slot;
	to->ip_version = from->ip_version;
	to->l3_off = from->l3_off;
	to->l4_off = from->l4_off;
	to->bth_off = from->bth_off;
	to->bth = from->bth;
}

/* Sets row.psn to the PSN of the packet after `last`, and where that has one, makes ready its ICRC. */
static void next_of_row(struct ur_txbuf *b, const struct ur_pkt *last)
{
	uint8_t bth[UR_BTH_LEN];

	if (ur_unlikely(last->flags & UR_PKT_SLIM)) {
		b->row.psn = ur_psn_add(last->bth.psn, 1);
		return;
	}
	if (b->row.psn == UR_TXBUF_NO_ROW) {
		memcpy(bth, last->data + last->bth_off, UR_BTH_LEN);
		bth[UR_BTH_ACKREQ] = 0;
		b->row = (struct ur_icrc_run){.psn = last->bth.psn};
		b->row.state = begin_icrc(b, last, bth, UR_BTH_LEN, last->len - last->bth_off, 0);
	}
	ur_icrc_run_next(&b->row);
}

struct ur_pkt *ur_txbuf_like(struct ur_qp *qp, bool asks)
{
	struct ur_txbuf *b = &qp->tp->tx;
	const struct ur_pkt *last = b->last;
	struct ur_pkt *p;

	if (!last || last->nseg || last->payload_off > LIKE)
		return NULL;
	p = ur_tp_pkt(qp->tp);
	if (ur_unlikely(!p))
		return NULL;
	next_of_row(b, last);
	memcpy(p->data, last->data, LIKE);
	copy_fields(p, last);
	p->payload_off = last->payload_off;
	p->payload_len = last->payload_len;
	p->len = last->len;
	p->bth.psn = b->row.psn;
	p->bth.ackreq = asks;
	ur_put32(p->data + p->bth_off + UR_BTH_ACKREQ, (uint32_t)asks << 31 | b->row.psn);
	b->pkts[b->n++] = p;
	return p;
}

void ur_txbuf_end_like(struct ur_qp *qp, struct ur_pkt *p)
{
	struct ur_txbuf *b = &qp->tp->tx;
	const bool slim = p->flags & UR_PKT_SLIM;
	uint32_t from = p->bth_off + UR_BTH_LEN, end = p->len - (slim ? 0 : UR_ICRC_LEN);
	uint32_t crc = b->row.state ^ (p->bth.ackreq ? UR_ICRC_ACKREQ : 0);

	memset(p->data + end - p->bth.pad, 0, p->bth.pad);
	if (!slim)
		ur_icrc_end(ur_icrc_add(crc, p->data + from, end - from), p->data + end);
	b->last = p;
	UR_TRACE(qp->tp->trace, TX, qp->qpn, p->bth.dqpn, p->bth.opcode, p->bth.psn, p->payload_len, p->bth.ackreq);
}

/* --- runs --- */

struct run_headers {
	const struct ur_txrun *run;
	struct ur_icrc_run icrc;
	uint8_t *to;          /* where the first packet of a train goes; or */
	struct ur_pkt **pkts; /* their buffers */
	const uint8_t *like;  /* the BTH that it takes after */
	uint32_t mtu, n;
	bool refer;                     /* payload stays where it is */
	volatile uint32_t done, ask_in; /* survive a fault */
};

/* The BTH of the next packet; returns the ICRC's state after it. */
static inline uint32_t put_bth(struct run_headers *r, uint8_t *to, bool asks)
{
	ur_icrc_run_next(&r->icrc);
	memcpy(to, r->like, 8);
	ur_put32(to + 8, (uint32_t)asks << 31 | r->icrc.psn);
	return r->icrc.state ^ (asks ? UR_ICRC_ACKREQ : 0);
}

/* Reads the program's memory: what has been done when it is missing stays. */
__attribute__((always_inline)) static inline void build_run(struct run_headers *r, bool apart)
{
	uint8_t *from = r->run->from, *to = r->to;
	uint32_t ask_in = r->run->ask_in;

	for (uint32_t i = 0; i < r->n; from += r->mtu, to += UR_BTH_LEN + r->mtu + UR_ICRC_LEN) {
		bool asks = !ask_in;
		uint32_t crc;

		if (apart)
			to = r->pkts[i]->data + r->pkts[i]->bth_off;
		crc = put_bth(r, to, asks);
		if (apart && r->refer) {
			ur_icrc_end(ur_icrc_add(crc, from, r->mtu), r->pkts[i]->tail);
		} else {
			crc = ur_crc32_copy(crc, to + UR_BTH_LEN, from, r->mtu);
			ur_icrc_end(crc, to + UR_BTH_LEN + r->mtu);
		}
		ask_in = asks ? r->run->ask_every - 1 : ask_in - 1;
		r->ask_in = ask_in;
		r->done = ++i;
	}
}

static void build_train(void *arg)
{
	build_run(arg, false);
}

static void build_apart(void *arg)
{
	build_run(arg, true);
}

static void trace_run(const struct ur_qp *qp, const uint8_t *bth)
{
	UR_TRACE(qp->tp->trace, TX, qp->qpn, qp->dqpn, bth[UR_BTH_OPCODE], ur_get24(bth + UR_BTH_PSN), qp->mtu, bth[UR_BTH_ACKREQ] >> 7);
}

/* After the packet whose BTH is at `bth` in `p`, as number `place` of its train. */
static void begin_run(struct ur_txbuf *b, struct run_headers *r, const struct ur_pkt *p, const uint8_t *bth, uint8_t like[UR_BTH_LEN],
		      uint32_t bytes, unsigned place)
{
	memcpy(like, bth, UR_BTH_LEN);
	like[0] = r->run->opcode;
	like[1] &= (uint8_t)~0xb0; /* SE, and the pad */
	like[8] = 0;
	r->icrc = (struct ur_icrc_run){
		.psn = ur_get24(like + UR_BTH_PSN), .place = (uint8_t)place, .ip_version = b->open ? p->ip_version : 0};
	r->icrc.state = begin_icrc(b, p, like, UR_BTH_LEN, bytes, place);
	r->like = like;
}

/* --- runs in a train --- */

static uint32_t room(const struct ur_tp *tp, const struct ur_txbuf *b)
{
	uint32_t all = b->open->len - b->open->bth_off;

	return all < tp->train_bytes ? ur_min_u32(tp->train_pkts - b->count, (tp->train_bytes - all) / b->stride) : 0;
}

static void repeat_in_train(struct ur_qp *qp, struct run_headers *r)
{
	struct ur_txbuf *b = &qp->tp->tx;
	struct ur_pkt *p = b->open;
	uint8_t like[UR_BTH_LEN];

	if (b->stride != UR_BTH_LEN + qp->mtu + UR_ICRC_LEN)
		return;
	r->n = ur_min_u32(r->n, room(qp->tp, b));
	if (!r->n)
		return;
	begin_run(b, r, p, p->data + p->len - b->stride, like, b->stride, b->count - 1);
	r->to = p->data + p->len;
	ur_touch_call(build_train, r);
	if (!r->done)
		return;
	p->len += r->done * b->stride;
	p->stride = b->stride;
	b->count += r->done;
	if (ur_unlikely(qp->tp->trace != NULL))
		for (uint32_t i = r->done; i; i--)
			trace_run(qp, p->data + p->len - i * p->stride);
}

/* --- runs of packets that are apart --- */

/* All of a packet but what is behind the headers before its BTH. */
static void put_headers(struct ur_pkt *to, const struct ur_pkt *from, const uint8_t *hdr, const struct run_headers *r)
{
	ur_path_put_headers(to->data, hdr);
	copy_fields(to, from);
	to->bth.opcode = r->run->opcode;
	to->bth.se = false;
	to->bth.pad = 0;
	to->payload_off = (uint16_t)(from->bth_off + UR_BTH_LEN);
	to->payload_len = r->mtu;
	to->len = to->payload_off + (r->refer ? 0 : r->mtu + UR_ICRC_LEN);
	if (!r->refer)
		return;
	to->seg[0] = (struct ur_seg){r->run->from, r->mtu, &r->run->mr->frames};
	to->tail_len = UR_ICRC_LEN;
}

/* What was built of them gets the fields that say so, and the rest goes back. */
static void end_apart(struct ur_qp *qp, const struct ur_pkt *from, struct run_headers *r)
{
	struct ur_txbuf *b = &qp->tp->tx;

	for (uint32_t i = 0; i < r->done; i++) {
		struct ur_pkt *p = r->pkts[i];

		p->bth.psn = ur_psn_add(from->bth.psn, 1 + i);
		p->bth.ackreq = p->data[p->bth_off + UR_BTH_ACKREQ] >> 7;
		if (r->refer) {
			p->seg[0].data += i * r->mtu;
			p->nseg = 1;
			ur_ref_get(p->seg[0].ref);
		}
		if (ur_unlikely(qp->tp->trace != NULL))
			trace_run(qp, p->data + p->bth_off);
	}
	for (uint32_t i = r->done; i < r->n; i++)
		ur_tp_pkt_drop(qp->tp, r->pkts[i]);
	b->n += r->done;
	b->last = NULL;
}

static void repeat_apart(struct ur_qp *qp, struct run_headers *r)
{
	struct ur_tp *tp = qp->tp;
	struct ur_txbuf *b = &tp->tx;
	const struct ur_pkt *from = b->last;
	const uint32_t bytes = UR_BTH_LEN + qp->mtu + UR_ICRC_LEN;
	uint8_t hdr[UR_PATH_HDR_MAX], like[UR_BTH_LEN];
	uint32_t n = 0;

	memcpy(hdr, from->data, sizeof(hdr));
	ur_udp_put_lengths(hdr + from->l3_off, from->ip_version, bytes + UR_UDP_LEN);
	r->refer = !r->run->copy && !tp->copies && !(from->flags & UR_PKT_LOCAL) && qp->mtu > UR_COPY_MAX;
	r->pkts = b->pkts + b->n;
	for (; n < r->n && (r->pkts[n] = ur_tp_pkt(tp)); n++)
		put_headers(r->pkts[n], from, hdr, r);
	r->n = n;
	begin_run(b, r, from, from->data + from->bth_off, like, bytes, 0);
	ur_touch_call(build_apart, r);
	end_apart(qp, from, r);
}

uint32_t ur_txbuf_repeat(struct ur_qp *qp, struct ur_txrun *run)
{
	struct run_headers r = {.run = run, .mtu = qp->mtu, .n = run->n};

	if (!ur_txbuf_repeats(&qp->tp->tx) || ur_unlikely(ur_opcode(run->opcode)->ext_len)) /* of XRC all packets have an extended header */
		return 0;
	if (qp->tp->tx.open)
		repeat_in_train(qp, &r);
	else
		repeat_apart(qp, &r);
	if (r.done)
		run->ask_in = r.ask_in;
	return r.done;
}
