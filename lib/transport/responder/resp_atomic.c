/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's side of CMP_SWAP and FETCH_ADD (IBTA volume 1, 9.4.5, 9.7.5.1.4 and 9.7.5.2.5), ATOMIC WRITE and FLUSH (annex A19).
 * Each is executed when it arrives, and has an entry in the resource table: its answer waits there for those of earlier READs, and a
 * duplicate is answered from it instead of being executed again.
 *
 * Atomics are the CPU's own on the host's memory, in its byte order: atomic against everybody who can reach that memory.
 */
#include "base/bytes.h"
#include "base/touch.h"
#include "transport/memory/memory.h"
#include "transport/memory/mr.h"
#include "transport/memory/mw.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/atomic.h"
#include "transport/responder/resp_atomic.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/verdict.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

enum { PLACE_GLOBAL = 1, PLACE_PERSISTENT = 2 }; /* bits of the placement type */
enum { SELECT_RANGE, SELECT_MR };

#define CACHE_LINE 64u

/* The address and key that a request names: RETH and AtomicETH begin alike. */
static void get_target(const struct ur_pkt *p, const struct ur_opcode_info *op, uint64_t *va, uint32_t *rkey)
{
	const uint8_t *h = ur_bth_ext(p) + (op->flags & UR_OPF_RETH ? op->off_reth : op->off_atomiceth);

	*va = ur_get64(h);
	*rkey = ur_get32(h + 8);
}

/* The eight bytes at `va`. They must be aligned both for the peer and in this process, whose addresses may differ. */
static enum ur_resp_verdict target(struct ur_qp *qp, uint64_t va, uint32_t rkey, int access, uint64_t **out)
{
	struct ur_mr *mr;
	uint8_t *at;

	if (va % UR_ATOMIC_LEN)
		return UR_RESP_MISALIGNED;
	at = ur_mr_at(qp, rkey, va, UR_ATOMIC_LEN, access, &mr);
	if (!at)
		return UR_RESP_ACCESS;
	if ((uintptr_t)at % UR_ATOMIC_LEN)
		return UR_RESP_MISALIGNED;
	if (!ur_mr_accessible(qp->tp, mr, at, UR_ATOMIC_LEN, true))
		return UR_RESP_ACCESS;
	*out = (uint64_t *)(void *)at;
	return UR_RESP_DONE;
}

struct access { /* to eight bytes that may be gone */
	uint64_t *at;
	uint64_t operand, compare, result;
};

static void fetch_add(void *arg)
{
	struct access *a = arg;

	a->result = __atomic_fetch_add(a->at, a->operand, __ATOMIC_SEQ_CST);
}

static void cmp_swap(void *arg)
{
	struct access *a = arg;

	a->result = a->compare; /* becomes what is there when that is something else */
	__atomic_compare_exchange_n(a->at, &a->result, a->operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void store(void *arg)
{
	struct access *a = arg;

	__atomic_store_n(a->at, a->operand, __ATOMIC_SEQ_CST);
}

static bool touch(const struct ur_qp *qp, void (*fn)(void *arg), struct access *a)
{
	return ur_likely(ur_touch_call(fn, a)) || ur_mr_gone(qp->tp);
}

static enum ur_resp_verdict do_atomic(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint64_t *result)
{
	struct ur_atomiceth h;
	enum ur_resp_verdict v;
	struct access a;

	ur_atomiceth_get(ur_bth_ext(p) + op->off_atomiceth, &h);
	v = target(qp, h.va, h.rkey, IBV_ACCESS_REMOTE_ATOMIC, &a.at);
	if (v)
		return v;
	a.operand = h.swap_add;
	a.compare = h.compare;
	if (!touch(qp, (p->bth.opcode & UR_OP_MASK) == UR_OP_FETCH_ADD ? fetch_add : cmp_swap, &a))
		return UR_RESP_ACCESS;
	*result = a.result;
	ur_qp_count(qp, UR_C_RX_ATOMIC);
	return UR_RESP_DONE;
}

static enum ur_resp_verdict do_atomic_write(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	enum ur_resp_verdict v;
	struct ur_reth h;
	struct access a;

	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	if (h.len != UR_ATOMIC_LEN || p->payload_len != UR_ATOMIC_LEN)
		return UR_RESP_BAD_LENGTH;
	v = target(qp, h.va, h.rkey, IBV_ACCESS_REMOTE_WRITE, &a.at);
	if (v)
		return v;
	memcpy(&a.operand, p->data + p->payload_off, sizeof(a.operand));
	if (!touch(qp, store, &a))
		return UR_RESP_ACCESS;
	ur_qp_count(qp, UR_C_RX_WRITE);
	return UR_RESP_DONE;
}

/* --- FLUSH --- */

static void get_feth(const struct ur_pkt *p, const struct ur_opcode_info *op, struct ur_feth *h)
{
	ur_feth_get(ur_bth_ext(p) + op->off_feth, h);
}

int ur_resp_flush_access(const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_feth h;

	get_feth(p, op, &h);
	if (!h.placement || h.placement & ~(PLACE_GLOBAL | PLACE_PERSISTENT) || h.selectivity > SELECT_MR)
		return ~0;
	return (h.placement & PLACE_GLOBAL ? UR_ACCESS_FLUSH_GLOBAL : 0) |
	       (h.placement & PLACE_PERSISTENT ? UR_ACCESS_FLUSH_PERSISTENT : 0);
}

struct slice {
	const uint8_t *from;
	uint64_t len;
};

/* Writes the CPU's caches back, which is what makes data last in memory that keeps it. Memory of other kinds has nothing more to give. */
static void write_back(void *arg)
{
#if UR_FLUSH_PERSISTS
	const struct slice *s = arg;
	const uint8_t *from = s->from - (uintptr_t)s->from % CACHE_LINE, *end = s->from + s->len;

	for (; from < end; from += CACHE_LINE)
		__builtin_ia32_clflush(from);
#else
	(void)arg;
#endif
}

/* The whole of what a key stands for has the address and length that its owner knows, not those of the request. */
static void whole_region(const struct ur_qp *qp, uint32_t rkey, uint64_t *va, uint64_t *len)
{
	const struct ur_mr *mr = ur_mr_find(qp->tp, rkey);

	*va = mr ? mr->iova : 0;
	*len = mr ? mr->length : 0;
}

/* A fence makes the WRITEs visible everywhere. */
static void flush_done(struct ur_qp *qp)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ur_qp_count(qp, UR_C_RX_FLUSH);
}

/* Of on-demand memory no more than a message could have brought: a peer could have every page of a huge region made otherwise. */
static bool too_much(const struct ur_mr *mr, uint64_t len, uint8_t placement)
{
	return ur_mr_unusual(mr) && placement & PLACE_PERSISTENT && len > UR_MAX_MSG;
}

/*
 * What it asks for is looked at when it arrives. Writing back gigabytes takes seconds, in which nobody else would be served, so that is
 * done in slices when its response is to be sent: WRITEs before it were stores of this thread, and what comes after it may be written back
 * too.
 */
static enum ur_resp_verdict do_flush(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint64_t *left)
{
	struct ur_feth f;
	struct ur_reth h;
	struct ur_mr *mr;
	uint64_t len;

	get_feth(p, op, &f);
	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	len = h.len;
	if (f.selectivity == SELECT_MR)
		whole_region(qp, h.rkey, &h.va, &len);
	if (!ur_mr_at(qp, h.rkey, h.va, len, ur_resp_flush_access(p, op), &mr) || too_much(mr, len, f.placement))
		return UR_RESP_ACCESS;
	*left = f.placement & PLACE_PERSISTENT ? len : 0;
	if (!*left)
		flush_done(qp);
	return UR_RESP_DONE;
}

static void begin_flush(struct ur_rd_res *e, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_feth f;
	struct ur_reth h;

	get_feth(p, op, &f);
	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	e->len = h.len;
	e->flush_access = (uint16_t)ur_resp_flush_access(p, op);
	e->flush_whole = f.selectivity == SELECT_MR;
}

enum ur_flush ur_resp_flush_on(struct ur_qp *qp, struct ur_rd_res *e)
{
	struct slice s = {.len = e->result < UR_FLUSH_SLICE ? e->result : UR_FLUSH_SLICE};
	uint64_t va = e->va, len = e->len;
	struct ur_mr *mr;
	uint8_t *at;

	if (e->flush_whole)
		whole_region(qp, e->rkey, &va, &len);
	at = e->result <= len ? ur_mr_at(qp, e->rkey, va, len, e->flush_access, &mr) : NULL;
	if (!at)
		return UR_FLUSH_GONE;
	at += len - e->result;
	s.from = at;
	if (!(mr->access & UR_ACCESS_NULL) && !ur_mr_accessible(qp->tp, mr, at, s.len, false))
		return UR_FLUSH_GONE;
	if (!(mr->access & UR_ACCESS_NULL) && !ur_touch_call(write_back, &s)) {
		ur_mr_gone(qp->tp);
		return UR_FLUSH_GONE;
	}
	e->result -= s.len;
	if (e->result)
		return UR_FLUSH_MORE;
	e->flush_access = 0;
	flush_done(qp);
	return UR_FLUSH_DONE;
}

/* --- both --- */

enum ur_resp_verdict ur_resp_atomic(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	enum ur_resp_verdict v = ur_resp_rd_admit(qp);
	uint64_t result = 0;
	struct ur_rd_res *e;

	if (v)
		return v;
	if (op->flags & UR_OPF_ATOMIC)
		v = do_atomic(qp, p, op, &result);
	else
		v = op->flags & UR_OPF_FLUSH ? do_flush(qp, p, op, &result) : do_atomic_write(qp, p, op);
	if (v)
		return v;
	e = ur_resp_rd_add(qp, p);
	get_target(p, op, &e->va, &e->rkey);
	e->result = result;
	e->len = 0;
	e->npkts = 1;
	if (op->flags & UR_OPF_FLUSH && result)
		begin_flush(e, p, op);
	ur_resp_rd_run(e, 0, 1, 0, false);
	return UR_RESP_DONE;
}

void ur_resp_atomic_again(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	uint32_t rkey;
	uint64_t va;

	get_target(p, op, &va, &rkey);
	for (uint32_t n = 1; n <= r->rd_count; n++) {
		struct ur_rd_res *e = ur_resp_rd_newest(r, n);

		if (e->psn != p->bth.psn)
			continue;
		if (e->opcode != p->bth.opcode || e->va != va || e->rkey != rkey)
			return;
		ur_resp_rd_oldest(qp); /* so that what lies before rd_cur is finished */
		ur_resp_rd_run(e, 0, 1, 0, ur_resp_rd_answered(e));
		ur_resp_rd_again(qp, n);
		return;
	}
}
