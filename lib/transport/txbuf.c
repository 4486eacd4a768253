/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/txbuf.h"

#include "base/psn.h"
#include "transport/qp_priv.h"
#include "transport/tp_priv.h"
#include "wire/crc32.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/icrc_run.h"
#include "wire/ip.h"
#include "wire/train.h"

#define BTH_MASKED 4 /* the byte of the BTH that the ICRC takes as 0xff */

void ur_txbuf_reset(struct ur_txbuf *b, struct ur_pkt **pkts)
{
	b->pkts = pkts;
	b->n = 0;
	b->open = NULL;
	b->filling = false;
}

void ur_txbuf_close(struct ur_txbuf *b)
{
	b->open = NULL;
}

/* All that stands before the BTH is as in the newest train. */
static bool same_way(const struct ur_txbuf *b, const struct ur_path *path)
{
	return b->hdr_len == path->hdr_len && memcmp(b->hdr, path->hdr, path->hdr_len) == 0;
}

static bool fits(const struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	const struct ur_txbuf *b = &tp->tx;
	uint32_t all = b->open->len - b->open->bth_off + bytes;

	return bytes <= b->stride && b->count < tp->train_pkts && all <= tp->train_bytes && !path->local && same_way(b, path);
}

/* An open train that holds one packet at first, or a packet. */
static struct ur_pkt *fresh(struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	struct ur_txbuf *b = &tp->tx;
	struct ur_pkt *p = tp->train_pkts > 1 && !path->local ? tp->c.alloc_train(tp->c.ctx) : NULL;

	b->open = p;
	if (!p)
		return ur_tp_pkt(tp);
	p->flags = UR_PKT_COMPLETE;
	if (!same_way(b, path)) {
		memcpy(b->hdr, path->hdr, sizeof(b->hdr));
		b->hdr_len = path->hdr_len;
		memset(b->base, 0, sizeof(b->base));
	}
	b->stride = bytes;
	b->count = 0;
	return p;
}

struct ur_pkt *ur_txbuf_begin(struct ur_tp *tp, const struct ur_path *path, uint32_t bytes)
{
	struct ur_txbuf *b = &tp->tx;
	struct ur_pkt *p = b->open;

	b->last_len = path->hdr_len + bytes;
	if (p && fits(tp, path, bytes)) {
		b->start = p->len;
		p->bth = (struct ur_bth){.opcode = 0};
		p->payload_len = 0;
		return p;
	}
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

void ur_txbuf_undo(struct ur_tp *tp, struct ur_pkt *p)
{
	struct ur_txbuf *b = &tp->tx;

	if (p == b->open && b->count) {
		p->len = b->start;
		return;
	}
	b->open = NULL;
	b->n--;
	ur_tp_pkt_drop(tp, p);
}

/* --- the ICRC, and what stands before the BTH --- */

/* The state after the headers of a packet of that length; a shorter last one has others than the train shows. */
static uint32_t base(struct ur_txbuf *b, const struct ur_pkt *p, uint32_t bytes)
{
	const unsigned i = UR_TXBUF_BASE(bytes);

	if (ur_unlikely(b->base[i].len != bytes)) {
		b->base[i].state = ur_icrc_headers(p->data + p->l3_off, p->ip_version, bytes + UR_UDP_LEN);
		b->base[i].len = bytes;
	}
	return b->base[i].state;
}

/* The state after the first `len` bytes from the BTH on, of a packet of `bytes` bytes that begins its train. */
static uint32_t add_masked(struct ur_txbuf *b, const struct ur_pkt *p, uint8_t *bth, uint32_t len, uint32_t bytes)
{
	const uint8_t kept = bth[BTH_MASKED];
	uint32_t crc = base(b, p, bytes);

	bth[BTH_MASKED] = 0xff;
	crc = ur_icrc_add(crc, bth, len);
	bth[BTH_MASKED] = kept;
	return crc;
}

/* The state after the BTH of the packet at `bth`, number `place` of its train. */
static uint32_t begin_icrc(struct ur_txbuf *b, const struct ur_pkt *p, uint8_t *bth, uint32_t bytes, unsigned place)
{
	uint32_t crc = add_masked(b, p, bth, UR_BTH_LEN, bytes);

	return p->ip_version == 4 ? crc ^ ur_icrc_id_term((uint8_t)place) : crc;
}

static void finish(struct ur_txbuf *b, struct ur_pkt *p)
{
	uint8_t *bth = p->data + b->start;
	uint32_t bytes, crc;

	memset(p->data + p->len, 0, 4);
	p->len += p->bth.pad;
	bytes = p->len + UR_ICRC_LEN - b->start;
	if (b->count) {
		crc = begin_icrc(b, p, bth, bytes, b->count);
		crc = ur_icrc_add(crc, bth + UR_BTH_LEN, bytes - UR_BTH_LEN - UR_ICRC_LEN);
	} else {
		ur_udp_put_lengths(p->data + p->l3_off, p->ip_version, bytes + UR_UDP_LEN);
		crc = add_masked(b, p, bth, bytes - UR_ICRC_LEN, bytes);
	}
	ur_icrc_end(crc, p->data + p->len);
	p->len += UR_ICRC_LEN;
	if (b->count++)
		p->stride = b->stride;
	if (bytes < b->stride || p->flags & UR_PKT_GROUP) /* a group's members here get copies of packets, not of trains */
		b->open = NULL;
}

void ur_txbuf_end(struct ur_qp *qp, struct ur_pkt *p)
{
	struct ur_txbuf *b = &qp->tp->tx;

	UR_TRACE(qp->tp->trace, TX, qp->qpn, p->bth.dqpn, p->bth.opcode, p->bth.psn, p->payload_len, p->bth.ackreq);
	if (p == b->open)
		finish(b, p);
}

/* --- runs --- */

struct repeat {
	const struct ur_txrun *run;
	struct ur_icrc_run icrc;
	uint8_t *to;         /* where the first packet goes */
	const uint8_t *like; /* the BTH that it takes after */
	uint32_t mtu, n;
	volatile uint32_t done, ask_in; /* survive a fault */
};

/* Reads the program's memory: what has been done when it is missing stays. */
static void copy_run(void *arg)
{
	struct repeat *r = arg;
	const uint8_t *from = r->run->from;
	uint32_t ask_in = r->run->ask_in;
	uint8_t *to = r->to;

	for (uint32_t i = 0; i < r->n; from += r->mtu, to += UR_BTH_LEN + r->mtu + UR_ICRC_LEN) {
		uint32_t asks = ask_in ? 0 : 1, crc;

		ur_icrc_run_next(&r->icrc);
		memcpy(to, r->like, 8);
		ur_put32(to + 8, asks << 31 | r->icrc.psn);
		crc = ur_crc32_copy(r->icrc.state ^ (asks ? UR_ICRC_ACKREQ : 0), to + UR_BTH_LEN, from, r->mtu);
		ur_icrc_end(crc, to + UR_BTH_LEN + r->mtu);
		ask_in = asks ? r->run->ask_every - 1 : ask_in - 1;
		r->ask_in = ask_in;
		r->done = ++i;
	}
}

static uint32_t room(const struct ur_tp *tp, const struct ur_txbuf *b)
{
	uint32_t all = b->open->len - b->open->bth_off;

	return all < tp->train_bytes ? ur_min_u32(tp->train_pkts - b->count, (tp->train_bytes - all) / b->stride) : 0;
}

static void trace_run(const struct ur_qp *qp, const struct ur_pkt *p, uint32_t done)
{
	for (uint32_t i = 0; i < done; i++) {
		const uint8_t *bth = p->data + p->len - (done - i) * p->stride;

		UR_TRACE(qp->tp->trace, TX, qp->qpn, qp->dqpn, bth[0], ur_get24(bth + 9), qp->mtu, bth[8] >> 7);
	}
}

uint32_t ur_txbuf_repeat(struct ur_qp *qp, struct ur_txrun *run)
{
	struct ur_txbuf *b = &qp->tp->tx;
	struct ur_pkt *p = b->open;
	struct repeat r = {.run = run, .mtu = qp->mtu};
	uint8_t like[UR_BTH_LEN];

	if (!p || b->stride != UR_BTH_LEN + qp->mtu + UR_ICRC_LEN)
		return 0;
	r.n = ur_min_u32(run->n, room(qp->tp, b));
	if (!r.n)
		return 0;
	memcpy(like, p->data + p->len - b->stride, UR_BTH_LEN);
	like[0] = run->opcode;
	like[8] = 0;
	r.icrc = (struct ur_icrc_run){.psn = ur_get24(like + 9), .place = (uint8_t)(b->count - 1), .ip_version = p->ip_version};
	r.icrc.state = begin_icrc(b, p, like, b->stride, r.icrc.place);
	r.like = like;
	r.to = p->data + p->len;
	ur_touch_call(copy_run, &r);
	if (!r.done)
		return 0;
	run->ask_in = r.ask_in;
	p->len += r.done * b->stride;
	p->stride = b->stride;
	b->count += r.done;
	if (ur_unlikely(qp->tp->trace != NULL))
		trace_run(qp, p, r.done);
	return r.done;
}
