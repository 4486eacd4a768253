/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/memory/mr.c and the lookup in mr.h. */
#include <errno.h>

#include "tp_harness.h"
#include "transport/memory/mr.h"
#include "transport/memory/mw.h"

static void mr_reg__arguments(void)
{
	static const struct {
		uintptr_t addr;
		size_t len;
		uint64_t iova;
		int access, err;
	} t[] = {
		{0x1000, 16, 0, 0, 0},
		{0x1000, 0, 0, 0, 0},
		{0x1000, SIZE_MAX, 0, 0, EINVAL},
		{0x1000, 16, UINT64_MAX - 8, 0, EINVAL},
		{0x1000, 16, UINT64_MAX - 16, 0, 0},
		{0x1000, 16, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL},
		{0x1000, 16, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
		{0x1000, 16, 0, IBV_ACCESS_REMOTE_READ, 0},
		{0x1000, 16, 0, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE, 0},
	};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_mr *mr;
		int err = ur_mr_reg(h.n[0].tp, h.n[0].pd, (void *)t[i].addr, t[i].len, t[i].iova, t[i].access, &mr);

		CU_ASSERT_EQUAL(err, t[i].err);
		if (!err) {
			CU_ASSERT_EQUAL(mr->lkey, mr->rkey);
			CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		}
	}
	th_close(&h);
}

static void mr_at__range_access_pd(void)
{
	static uint8_t buf[256];
	static struct th h;
	static const struct {
		uint64_t va, len;
		int access;
		bool ok;
	} t[] = {
		{0x5000, 256, 0, true},
		{0x5000, 257, 0, false},
		{0x50ff, 1, 0, true},
		{0x50ff, 2, 0, false},
		{0x5100, 0, 0, true},
		{0x5101, 0, 0, false},
		{0x4fff, 1, 0, false},
		{0x4fff, 0, 0, false},
		{0x5001, UINT64_MAX, 0, false},
		{UINT64_MAX, 2, 0, false},
		{0, 1, 0, false},
		{0x5000, 1, IBV_ACCESS_LOCAL_WRITE, true},
		{0x5000, 1, IBV_ACCESS_REMOTE_READ, true},
		{0x5000, 1, IBV_ACCESS_REMOTE_WRITE, false},
	};
	struct ur_mr *mr, *got;
	struct ur_pd *other;
	struct ur_qp *qp;

	th_open(&h, &th_default);
	qp = h.n[0].qp;
	CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, buf, 256, 0x5000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, &mr) == 0);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint8_t *p = ur_mr_at(qp, mr->rkey, t[i].va, t[i].len, t[i].access, &got);

		CU_ASSERT_PTR_EQUAL(p, t[i].ok ? buf + (t[i].va - 0x5000) : NULL);
	}
	CU_ASSERT_PTR_NULL(ur_mr_at(qp, mr->rkey ^ 1, 0x5000, 1, 0, &got));
	CU_ASSERT_PTR_NULL(ur_mr_at(qp, mr->rkey + 256, 0x5000, 1, 0, &got));
	CU_ASSERT_PTR_NULL(ur_mr_at(qp, UINT32_MAX, 0x5000, 1, 0, &got));
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	CU_ASSERT_FATAL(ur_pd_create(h.n[0].tp, &other) == 0);
	CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, other, buf, 256, 0x5000, IBV_ACCESS_LOCAL_WRITE, &mr) == 0);
	CU_ASSERT_PTR_NULL(ur_mr_at(qp, mr->rkey, 0x5000, 1, 0, &got));
	CU_ASSERT_EQUAL(ur_pd_destroy(other), EBUSY);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	CU_ASSERT_EQUAL(ur_pd_destroy(other), 0);
	th_close(&h);
}

static void mr_dereg__waits_for_frames_and_hides_the_key(void)
{
	static uint8_t buf[64];
	static struct th h;
	struct ur_mr *mr;
	uint32_t key;

	th_open(&h, &th_default);
	CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, buf, 64, 0, 0, &mr) == 0);
	key = mr->lkey;
	CU_ASSERT_PTR_EQUAL(ur_mr_find(h.n[0].tp, key), mr);
	atomic_fetch_add(&mr->frames.n, 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), EBUSY);
	CU_ASSERT_PTR_NULL(ur_mr_find(h.n[0].tp, key));
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), EBUSY);
	atomic_fetch_sub(&mr->frames.n, 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
}

/* Between the first call of ur_mr_dereg and the last, the place in the table may have gone to another region. */
static void mr_dereg__leaves_the_next_user_of_the_place(void)
{
	enum { TRIES = 4096 };
	static struct ur_mr *mr[TRIES];
	static uint8_t buf[64];
	static struct th h;
	struct ur_mr *old;
	unsigned n = 0;

	th_open(&h, &th_default);
	CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, buf, 64, 0, 0, &old) == 0);
	atomic_fetch_add(&old->frames.n, 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(old), EBUSY);
	do {
		CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, buf, 64, 0, 0, &mr[n]) == 0);
	} while (ur_idtab_find(&h.n[0].tp->keys->table, old->lkey >> 8)->obj != mr[n] && ++n < TRIES);
	CU_ASSERT_FATAL(n < TRIES);
	CU_ASSERT_NOT_EQUAL(mr[n]->lkey, old->lkey);
	atomic_fetch_sub(&old->frames.n, 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(old), 0);
	CU_ASSERT_PTR_EQUAL(ur_mr_find(h.n[0].tp, mr[n]->lkey), mr[n]);
	for (unsigned i = 0; i <= n; i++)
		CU_ASSERT_EQUAL(ur_mr_dereg(mr[i]), 0);
	th_close(&h);
}

static void mr_reg__keys_do_not_come_back_soon(void)
{
	enum { ROUNDS = 255 };
	static uint8_t buf[64];
	static struct th h;
	static uint32_t seen[ROUNDS];
	struct ur_mr *mr;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ROUNDS; i++) {
		CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, h.n[0].pd, buf, 64, 0, 0, &mr) == 0);
		seen[i] = mr->lkey;
		for (unsigned k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(seen[k], seen[i]);
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	}
	th_close(&h);
}

/* The keys go over to the new region at once; the old one waits for its frames and leaves the keys alone. */
static void mr_rereg__takes_over_the_keys(void)
{
	static uint8_t from[64], to[128];
	static struct th h;
	struct ur_mr *old, *mr, *got, as = {.addr = to, .iova = 0x9000, .length = sizeof(to), .access = IBV_ACCESS_LOCAL_WRITE};
	struct ur_pd *pd;

	th_open(&h, &th_default);
	CU_ASSERT_FATAL(ur_pd_create(h.n[0].tp, &pd) == 0);
	CU_ASSERT_FATAL(ur_mr_reg(h.n[0].tp, pd, from, sizeof(from), 0, 0, &old) == 0);
	CU_ASSERT_PTR_EQUAL(ur_mr_of(pd, old->lkey >> 8), old);
	CU_ASSERT_PTR_NULL(ur_mr_of(h.n[0].pd, old->lkey >> 8));
	CU_ASSERT_PTR_NULL(ur_mr_of(pd, 0xffffff));
	as.pd = h.n[0].pd;
	old->windows = 1;
	CU_ASSERT_EQUAL(ur_mr_rereg(old, &as, &mr), EBUSY);
	old->windows = 0;
	as.access = IBV_ACCESS_REMOTE_WRITE;
	CU_ASSERT_EQUAL(ur_mr_rereg(old, &as, &mr), EINVAL);
	as.access = IBV_ACCESS_ON_DEMAND;
	CU_ASSERT_EQUAL(ur_mr_rereg(old, &as, &mr), EOPNOTSUPP);
	CU_ASSERT_PTR_EQUAL(ur_mr_find(h.n[0].tp, old->lkey), old);
	as.access = IBV_ACCESS_LOCAL_WRITE;
	atomic_fetch_add(&old->frames.n, 1);
	CU_ASSERT_EQUAL_FATAL(ur_mr_rereg(old, &as, &mr), 0);
	CU_ASSERT_EQUAL(mr->lkey, old->lkey);
	CU_ASSERT_EQUAL(mr->rkey, old->rkey);
	CU_ASSERT_PTR_EQUAL(ur_mr_local(h.n[0].qp, mr->lkey, 0x9000 + 100, 28, IBV_ACCESS_LOCAL_WRITE, &got), to + 100);
	CU_ASSERT_PTR_EQUAL(got, mr);
	CU_ASSERT_EQUAL(ur_mr_dereg(old), EBUSY);
	atomic_fetch_sub(&old->frames.n, 1);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), EBUSY);
	CU_ASSERT_EQUAL(ur_mr_dereg(old), 0);
	CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
	CU_ASSERT_PTR_EQUAL(ur_mr_find(h.n[0].tp, mr->lkey), mr);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_close(&h);
}

void ur_suite_mr(void);

void ur_suite_mr(void)
{
	CU_pSuite s = CU_add_suite("mr", NULL, NULL);

	CU_ADD_TEST(s, mr_reg__arguments);
	CU_ADD_TEST(s, mr_at__range_access_pd);
	CU_ADD_TEST(s, mr_dereg__waits_for_frames_and_hides_the_key);
	CU_ADD_TEST(s, mr_dereg__leaves_the_next_user_of_the_place);
	CU_ADD_TEST(s, mr_reg__keys_do_not_come_back_soon);
	CU_ADD_TEST(s, mr_rereg__takes_over_the_keys);
}
