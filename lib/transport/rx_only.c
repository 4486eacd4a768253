/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/rx_only.h"

#include "base/psn.h"
#include "transport/memory/memory.h"
#include "transport/memory/mr.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/rx_walk.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/crc/crc32.h"
#include "wire/opcode.h"

#define SOLICITED 0x80 /* of the second byte of a BTH */
#define PAD_AT 4
#define VERSION 0x0f
#define RETH_LEN 16
#define RETH_KEY 8 /* rkey and length, as they are in the packet */

#define WRITE_ONLY (UR_RC | UR_OP_WRITE_ONLY)
#define SEND_ONLY (UR_RC | UR_OP_SEND_ONLY)

struct only {
	struct ur_rx_walk walk;
	struct ur_qp *qp;
	uint32_t n;    /* packets, at the most */
	uint32_t len;  /* bytes of payload of each */
	uint32_t icrc; /* from the BTH to the ICRC */
	bool solicited;
	/* of WRITEs */
	const struct ur_mr *mr;
	uint64_t key_len;     /* of the first one's RETH */
	volatile uint64_t va; /* of the last that was executed */
};

bool ur_rx_only_may(const uint8_t *bth)
{
	return (bth[UR_BTH_OPCODE] == WRITE_ONLY || bth[UR_BTH_OPCODE] == SEND_ONLY) && !(bth[UR_BTH_FLAGS] & VERSION);
}

static bool icrc_ok(const struct only *o, const uint8_t *b, uint32_t crc)
{
	return ur_crc32(crc, b + UR_BTH_LEN, o->icrc - UR_BTH_LEN) == ur_get_le32(b + o->icrc);
}

/* --- WRITE ONLY --- */

/* The region is looked up once, and each packet's bytes have to lie in it. A memory window is not found here. */
static bool find_region(struct only *o)
{
	const struct ur_qp *qp = o->qp;
	const uint8_t *reth = o->walk.row->bth + UR_BTH_LEN;
	struct ur_mr *mr;
	struct ur_reth h;

	ur_reth_get(reth, &h);
	if (!(qp->access & IBV_ACCESS_REMOTE_WRITE) || !h.len || h.len != o->len)
		return false;
	if (!ur_mr_local(qp, h.rkey, h.va, h.len, IBV_ACCESS_REMOTE_WRITE, &mr) || ur_mr_unusual(mr))
		return false;
	o->mr = mr;
	memcpy(&o->key_len, reth + RETH_KEY, sizeof(o->key_len));
	return true;
}

__attribute__((always_inline)) static inline void write_row(struct only *o, bool apart)
{
	const struct ur_row *row = o->walk.row;
	const struct ur_mr *mr = o->mr;
	const uint8_t *b = row->bth;

	for (uint32_t i = 0; i < o->n; i++, b += row->stride) {
		uint64_t va, key_len;
		uint32_t crc;

		b = ur_rx_walk_at(&o->walk, b, i, apart, &crc);
		if (ur_unlikely(!b))
			return;
		va = ur_get64(b + UR_BTH_LEN);
		memcpy(&key_len, b + UR_BTH_LEN + RETH_KEY, sizeof(key_len));
		if (ur_unlikely(key_len != o->key_len || va - mr->iova > mr->length || o->len > mr->length - (va - mr->iova)))
			return;
		if (ur_unlikely(!icrc_ok(o, b, crc)))
			return;
		atomic_thread_fence(memory_order_release); /* who sees this message sees those before it */
		ur_copy_end_last(mr->addr + (va - mr->iova), b + UR_BTH_LEN + RETH_LEN, o->len);
		atomic_signal_fence(memory_order_seq_cst); /* a packet that meets a fault has not been executed */
		o->va = va;
		ur_rx_walk_on(&o->walk, b, i);
	}
}

static void write_train(void *arg)
{
	write_row(arg, false);
}

static void write_burst(void *arg)
{
	write_row(arg, true);
}

/* What the last of them leaves behind. */
static void wrote(const struct only *o)
{
	struct ur_responder *r = &o->qp->resp;

	r->rkey = o->mr->rkey;
	r->va = o->va + o->len;
	r->left = 0;
	r->dma_len = o->len;
	ur_qp_count_many(o->qp, UR_C_RX_WRITE, o->walk.done);
}

/* --- SEND ONLY --- */

/* As many as there are receives, and room for their completions. */
static bool find_receives(struct only *o)
{
	struct ur_qp *qp = o->qp;

	if (qp->srq_only || qp->resp.w) /* a message that was given up has left one */
		return false;
	o->n = ur_cq_room(qp->recv_cq, ur_recv_posted(qp, o->n));
	return o->n;
}

/* Where the payload goes in a receive; NULL: to the usual way, which knows all kinds of them. */
static uint8_t *find_place(const struct only *o, const struct ur_rwqe *w)
{
	const struct ibv_sge *s = w->sge;
	struct ur_mr *mr;
	uint8_t *to;

	if (ur_unlikely(w->nsge != 1 || o->len > s->length))
		return NULL;
	to = ur_mr_local(o->qp, s->lkey, s->addr, s->length, IBV_ACCESS_LOCAL_WRITE, &mr);
	return to && !ur_mr_unusual(mr) ? to : NULL;
}

/* The payload goes into one receive after another, and they complete together when all is written. */
__attribute__((always_inline)) static inline void send_row(struct only *o, bool apart)
{
	const struct ur_row *row = o->walk.row;
	const uint8_t *b = row->bth;

	for (uint32_t i = 0; i < o->n; i++, b += row->stride) {
		uint8_t *to = find_place(o, ur_recv_ahead(o->qp, i));
		uint32_t crc;

		b = ur_rx_walk_at(&o->walk, b, i, apart, &crc);
		if (ur_unlikely(!to || !b) || ur_unlikely(!icrc_ok(o, b, crc)))
			return;
		ur_copy_end_last(to, b + UR_BTH_LEN, o->len);
		atomic_signal_fence(memory_order_seq_cst); /* as above */
		ur_rx_walk_on(&o->walk, b, i);
	}
}

static void send_train(void *arg)
{
	send_row(arg, false);
}

static void send_burst(void *arg)
{
	send_row(arg, true);
}

static void sent(const struct only *o)
{
	struct ur_responder *r = &o->qp->resp;

	r->got = o->len;
	r->pos = (struct ur_sge_pos){0, o->len};
	ur_qp_count_many(o->qp, UR_C_RX_SEND, o->walk.done);
	ur_recv_done_row(o->qp, o->walk.done, o->len, o->solicited);
}

/* --- both --- */

/* They are done: on to the next PSN. An acknowledgement is of the last that asked for one. */
static void accept(const struct only *o, uint32_t first)
{
	struct ur_responder *r = &o->qp->resp;
	const uint32_t n = o->walk.done, to_asked = ur_psn_add(o->walk.asked_psn, 1) - first;
	const uint32_t msn = r->msn;

	r->epsn = ur_psn_add(r->epsn, n);
	if (o->walk.asked) {
		r->msn = ur_psn_add(msn, to_asked & UR_PSN_MASK);
		ur_resp_ack(o->qp, o->walk.asked_psn, ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID));
	}
	r->msn = ur_psn_add(msn, n);
}

/* Do all packets of the row have the length of such a message, of at most the path MTU? */
static bool find_payload(struct only *o)
{
	const struct ur_row *row = o->walk.row;
	const uint32_t ext = row->bth[UR_BTH_OPCODE] == WRITE_ONLY ? RETH_LEN : 0, pad = row->bth[UR_BTH_FLAGS] >> PAD_AT & 3;

	if (row->stride < UR_BTH_LEN + ext + pad + UR_ICRC_LEN)
		return false;
	o->icrc = row->stride - UR_ICRC_LEN;
	o->len = o->icrc - UR_BTH_LEN - ext - pad;
	return o->len <= o->qp->mtu;
}

unsigned ur_rx_only(struct ur_qp *qp, const struct ur_row *row, ur_time now)
{
	const bool write = row->bth[UR_BTH_OPCODE] == WRITE_ONLY;
	const uint32_t first = qp->resp.epsn;
	struct only o = {.qp = qp, .n = row->n, .solicited = row->bth[UR_BTH_FLAGS] & SOLICITED};

	o.walk.row = row;
	if (ur_get24(row->bth + UR_BTH_PSN) != first || qp->resp.expect || !ur_resp_is_ready(&qp->resp) || !find_payload(&o))
		return 0;
	if (write ? !find_region(&o) : !find_receives(&o))
		return 0;
	ur_rx_walk_begin(&o.walk, row);
	/* A packet that meets missing memory goes the usual way, which knows what that means. */
	if (write)
		ur_touch_call(row->apart ? write_burst : write_train, &o);
	else
		ur_touch_call(row->apart ? send_burst : send_train, &o);
	if (ur_unlikely(!o.walk.done))
		return 0;
	ur_rx_walk_heard(&o.walk, qp, o.len, now);
	if (write)
		wrote(&o);
	else
		sent(&o);
	accept(&o, first);
	return o.walk.done;
}
