/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/engine/dma.c and who uses it in lib/verbs/objects/mr.c: memory is shown to a NIC as it is registered, and taken away when the NIC
 * has let go of its last frame. The NIC is one that only writes down what it is asked for.
 */
#include "verbs_fixture.h"

#include "engine/internal.h"
#include "fake_port.h"

void ur_suite_verbs_dma(void);

static struct fake_port fake;
static char buf[8192], other[4096];

static struct {
	unsigned maps, unmaps, reclaims;
	void *addr;
	size_t len;
	int err;             /* what the next map says */
	struct ur_ref *held; /* by frames that the NIC has */
	unsigned holds;      /* for this number of reclaims */
} nic;

static int map(struct ur_port *p, void *addr, size_t len, struct ur_dma *dma, char *err, size_t errlen)
{
	(void)p;
	CU_ASSERT_PTR_NOT_NULL(err);
	CU_ASSERT_TRUE(errlen > 0);
	nic.addr = addr;
	nic.len = len;
	nic.maps++;
	*err = 0;
	dma->mapped = !nic.err;
	dma->shift = nic.maps << 20;
	return nic.err;
}

static void unmap(struct ur_port *p, void *addr, size_t len, const struct ur_dma *dma)
{
	(void)p;
	CU_ASSERT_TRUE(dma->mapped);
	CU_ASSERT_TRUE(!nic.held || !nic.holds); /* nobody takes memory from under the NIC */
	nic.addr = addr;
	nic.len = len;
	nic.unmaps++;
}

static void reclaim(struct ur_queue *q)
{
	(void)q;
	nic.reclaims++;
	if (nic.held && nic.holds && !--nic.holds)
		ur_ref_put(nic.held);
}

static unsigned nothing(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	(void)q;
	(void)pkts;
	(void)n;
	return 0;
}

static bool up(struct ur_port *p)
{
	(void)p;
	return true;
}

/* A device that is a NIC, whose port is open; no thread looks after it. */
static struct ur_engine *begin(struct verbs_fixture *f)
{
	static const struct ur_queue_ops queue_ops = {
		.rx = nothing, .tx = nothing, .alloc = fake_port_alloc, .release = fake_port_release, .reclaim = reclaim};
	static const struct ur_port_ops ops = {.link_up = up, .map = map, .unmap = unmap};
	struct ur_engine *e;

	verbs_fixture_make(f);
	e = uv_context(f->ctx)->engine;
	fake_port_init(&fake, 64);
	fake.port.ops = &ops;
	fake.queue.ops = &queue_ops;
	memset(&nic, 0, sizeof(nic));
	e->is_nic = true;
	e->nic->port = &fake.port;
	e->nic->out[0].queue = &fake.queue;
	e->state = UR_ENGINE_RUNNING;
	return e;
}

static void end(struct verbs_fixture *f, struct ur_engine *e)
{
	CU_ASSERT_EQUAL(fake.allocated, fake.freed);
	e->state = UR_ENGINE_COLD;
	e->nic->port = NULL;
	e->nic->out[0].queue = NULL;
	e->is_nic = false;
	verbs_fixture_unmake(f);
}

static struct ur_mr *tp(struct ibv_mr *mr)
{
	return ur_container_of(mr, struct uv_mr, mr)->tp;
}

static uint64_t count(const struct ur_engine *e)
{
	return e->nic->counters.v[UR_C_MR_UNMAPPED];
}

static void reg__is_mapped(void)
{
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);
	struct ibv_mr *mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_TRUE(nic.maps == 1 && nic.addr == buf && nic.len == sizeof(buf));
	CU_ASSERT_TRUE(tp(mr)->frames.dma.mapped);
	CU_ASSERT_EQUAL(tp(mr)->frames.dma.shift, 1 << 20);
	nic.addr = NULL;
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_TRUE(nic.unmaps == 1 && nic.addr == buf && nic.len == sizeof(buf));
	CU_ASSERT_EQUAL(nic.reclaims, 0); /* nothing was in flight */
	CU_ASSERT_EQUAL(count(e), 0);
	end(&f, e);
}

/* Memory that is not simply there is never shown. */
static void reg__unusual_memory(void)
{
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);
	struct ibv_mr *mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *null = ibv_alloc_null_mr(f.pd);

	CU_ASSERT_TRUE_FATAL(mr && null);
	CU_ASSERT_FALSE(tp(mr)->frames.dma.mapped || tp(null)->frames.dma.mapped);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(null), 0);
	CU_ASSERT_EQUAL(nic.maps + nic.unmaps, 0);
	CU_ASSERT_EQUAL(count(e), 0);
	end(&f, e);
}

/* Memory that cannot be shown is registered all the same, and counted. */
static void reg__not_possible(void)
{
	static const int errs[] = {ENOMEM, ENOSPC, EFAULT};
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);
	uint64_t before = count(e);

	for (unsigned i = 0; i < ur_array_size(errs); i++) {
		struct ibv_mr *mr;

		nic.err = errs[i];
		mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		CU_ASSERT_FALSE(tp(mr)->frames.dma.mapped);
		CU_ASSERT_EQUAL(count(e), before + i + 1);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	CU_ASSERT_EQUAL(nic.unmaps, 0);
	end(&f, e);
}

/* A registration that fails leaves nothing behind. */
static void reg__fails(void)
{
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);

	CU_ASSERT_PTR_NULL(ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE)); /* which wants LOCAL_WRITE */
	CU_ASSERT_EQUAL(nic.maps, 1);
	CU_ASSERT_EQUAL(nic.unmaps, 1);
	end(&f, e);
}

/* It waits for the NIC, and makes it let go. */
static void dereg__waits_for_the_last_frame(void)
{
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);
	struct ibv_mr *mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	nic.held = &tp(mr)->frames;
	nic.holds = 100;
	ur_ref_get(nic.held);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(nic.reclaims, 100);
	CU_ASSERT_EQUAL(nic.unmaps, 1);
	end(&f, e);
}

/* What a region was is taken away when no frame refers to it any more; what it is has a mapping of its own, be it the same memory. */
static void rereg__maps_anew(void)
{
	static const struct {
		int flags, access;
		void *addr;
		bool mapped;
	} t[] = {
		{IBV_REREG_MR_CHANGE_TRANSLATION, 0, other, true},
		{IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, buf, true},
		{IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, buf, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct verbs_fixture f;
		struct ur_engine *e = begin(&f);
		struct ibv_mr *mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		nic.held = &tp(mr)->frames;
		nic.holds = 3;
		ur_ref_get(nic.held);
		CU_ASSERT_EQUAL(ibv_rereg_mr(mr, t[i].flags, NULL, t[i].addr, sizeof(other), t[i].access), 0);
		CU_ASSERT_EQUAL(nic.reclaims, 3);
		CU_ASSERT_EQUAL(nic.maps, t[i].mapped ? 2 : 1);
		CU_ASSERT_TRUE(nic.unmaps == 1 && nic.addr == buf && nic.len == sizeof(buf)); /* the old one */
		CU_ASSERT_EQUAL(tp(mr)->frames.dma.mapped, t[i].mapped);
		CU_ASSERT_TRUE(!t[i].mapped || tp(mr)->frames.dma.shift == 2 << 20);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(nic.unmaps, nic.maps);
		end(&f, e);
	}
}

/* One that is refused changes nothing. */
static void rereg__refused(void)
{
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);
	struct ibv_mr *mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_TRUE(tp(mr)->frames.dma.mapped);
	CU_ASSERT_EQUAL(tp(mr)->frames.dma.shift, 1 << 20);
	CU_ASSERT_EQUAL(nic.maps, nic.unmaps + 1);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	end(&f, e);
}

/* A port that reaches all memory is shown none. */
static void reg__other_ports(void)
{
	static const struct ur_port_ops plain = {.link_up = up};
	struct verbs_fixture f;
	struct ur_engine *e = begin(&f);
	struct ibv_mr *mr;

	fake.port.ops = &plain;
	mr = ibv_reg_mr(f.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_FALSE(tp(mr)->frames.dma.mapped);
	CU_ASSERT_EQUAL(count(e), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	end(&f, e);
}

void ur_suite_verbs_dma(void)
{
	CU_pSuite s = CU_add_suite("verbs_dma", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, reg__is_mapped);
	CU_ADD_TEST(s, reg__unusual_memory);
	CU_ADD_TEST(s, reg__other_ports);
	CU_ADD_TEST(s, reg__fails);
	CU_ADD_TEST(s, dereg__waits_for_the_last_frame);
	CU_ADD_TEST(s, rereg__maps_anew);
	CU_ADD_TEST(s, rereg__refused);
	CU_ADD_TEST(s, reg__not_possible);
}
