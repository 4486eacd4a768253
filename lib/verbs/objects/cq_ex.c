/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended completion queues: ibv_create_cq_ex(3) and its iterator. A batch of polling has a lock of its own, because the program runs
 * between start_poll and end_poll and may call anything: the consumer's lock, for which others wait under the engine's, is held only while
 * a completion is taken out. Timestamps are of the engine's clock in nanoseconds; ibv_query_rt_values_ex(3) reads the same clock.
 */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "host/clock.h"
#include "verbs/internal.h"

#define WC_FLAGS (IBV_WC_STANDARD_FLAGS | UV_WC_STAMPS)
#define CQ_FLAGS (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static struct uv_cq *to_cq(struct ibv_cq_ex *cq)
{
	return ur_container_of(cq, struct uv_cq, ex);
}

/* --- the iterator --- */

/* 1, 0 when there is none, -1 after an overrun. */
static int take_completion(struct uv_cq *u)
{
	int got;

	if (ur_cq_is_empty(u->tp))
		return 0;
	uv_spin_lock(&u->lock);
	got = ur_cq_take(u->tp, &u->wc, &u->at);
	uv_spin_unlock(&u->lock);
	if (got > 0) {
		u->ex.wr_id = u->wc.wr_id;
		u->ex.status = u->wc.status;
	}
	return got;
}

static int result(int got)
{
	return got > 0 ? 0 : got < 0 ? EIO : ENOENT;
}

static void batch_begin(struct uv_cq *u)
{
	if (!u->single)
		uv_spin_lock(&u->batch);
}

static void batch_end(struct uv_cq *u)
{
	if (!u->single)
		uv_spin_unlock(&u->batch);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct uv_cq *u = to_cq(cq);
	int got;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (ur_unlikely(ur_engine_foreign(u->engine)))
		return ENOENT; /* before any lock: a thread of the parent may have held it at the fork */
	batch_begin(u);
	u->wall_compared = false;
	got = take_completion(u);
	if (got == 0 && uv_cq_drive(u))
		got = take_completion(u);
	if (got <= 0)
		batch_end(u);
	return result(got);
}

static int next_poll(struct ibv_cq_ex *cq)
{
	return result(take_completion(to_cq(cq)));
}

static void end_poll(struct ibv_cq_ex *cq)
{
	batch_end(to_cq(cq));
}

/* --- fields; what RoCE does not have reads as 0, as in struct ibv_wc --- */

#define READER(type, field)                                                                                                                \
	static type read_##field(struct ibv_cq_ex *cq)                                                                                     \
	{                                                                                                                                  \
		return to_cq(cq)->wc.field;                                                                                                \
	}

READER(enum ibv_wc_opcode, opcode)
READER(uint32_t, vendor_err)
READER(uint32_t, byte_len)
READER(__be32, imm_data) /* or the invalidated rkey: one union */
READER(uint32_t, qp_num)
READER(uint32_t, src_qp)
READER(unsigned int, wc_flags)
READER(uint32_t, slid)
READER(uint8_t, sl)
READER(uint8_t, dlid_path_bits)

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->at;
}

#define COMPARISONS 8
#define CLOSE_NS 2000 /* a comparison that took no longer is good enough */

/*
 * By how much the wall clock is ahead of the engine's, modulo 2^64. The two run at the same rate until somebody sets the wall clock, and
 * cannot be read at the same moment: the known difference, which is exact to `error`, stays in force as long as a comparison is compatible
 * with it, so that completions keep their order and distance on the wall clock.
 */
static uint64_t wall_ahead(void)
{
	static _Atomic uint64_t known, error;
	uint64_t ahead = atomic_load_explicit(&known, memory_order_relaxed), e = atomic_load_explicit(&error, memory_order_relaxed);
	struct ur_clock_ahead best = {.gap = UINT64_MAX};

	for (unsigned i = 0; i < COMPARISONS && best.gap > CLOSE_NS; i++) {
		struct ur_clock_ahead c = ur_clock_compare();

		if (ahead - (c.least - e) <= c.gap + 2 * e)
			return ahead;
		if (c.gap < best.gap) /* the thread was not interrupted in between, or for less long */
			best = c;
	}
	ahead = best.least + best.gap / 2;
	atomic_store_explicit(&known, ahead, memory_order_relaxed);
	atomic_store_explicit(&error, best.gap / 2 + 1, memory_order_relaxed);
	return ahead;
}

/* The clocks are compared once in a batch, so that a wall clock that has been set counts from the next batch on. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	struct uv_cq *u = to_cq(cq);

	if (!u->wall_compared) {
		u->wall_ahead = wall_ahead();
		u->wall_compared = true;
	}
	return u->at + u->wall_ahead;
}

/* Readers of what was not asked for stay NULL, as other providers leave them: such a program is wrong, and should not find out elsewhere.
 */
static void set_readers(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
#define SET(flag, field)                                                                                                                   \
	if (wc_flags & IBV_WC_EX_WITH_##flag)                                                                                              \
	ex->read_##field = read_##field

	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	SET(BYTE_LEN, byte_len);
	SET(IMM, imm_data);
	SET(QP_NUM, qp_num);
	SET(SRC_QP, src_qp);
	SET(SLID, slid);
	SET(SL, sl);
	SET(DLID_PATH_BITS, dlid_path_bits);
	SET(COMPLETION_TIMESTAMP, completion_ts);
	SET(COMPLETION_TIMESTAMP_WALLCLOCK, completion_wallclock_ns);
#undef SET
}

/* --- making --- */

#define CQ_ATTRS (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)

static bool supported(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)CQ_ATTRS || attr->wc_flags & ~(uint64_t)WC_FLAGS)
		return false;
	return !(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~(uint32_t)CQ_FLAGS);
}

/* A CQ belongs to no protection domain: what it may be given is a parent domain, for its allocator. */
static bool domain_ok(const struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_pd *pd = attr->parent_domain;

	return !(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) || (pd && pd->context == context && uv_pd(pd)->base);
}

struct ibv_cq_ex *uv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex known = *attr;
	struct uv_cq *u;

	if (!supported(attr))
		return uv_null(EOPNOTSUPP);
	if (!domain_ok(context, attr))
		return uv_null(EINVAL);
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS))
		known.flags = 0;
	u = uv_cq_create(context, &known);
	if (!u)
		return NULL;
	u->single = known.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	u->ex.start_poll = start_poll;
	u->ex.next_poll = next_poll;
	u->ex.end_poll = end_poll;
	set_readers(&u->ex, known.wc_flags);
	return &u->ex;
}

/* --- the clock --- */

/* Providers hand out the counter of the device's clock whole in tv_nsec; here its unit is a nanosecond. */
int uv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){.tv_nsec = (long)ur_engine_now()};
	return 0;
}
