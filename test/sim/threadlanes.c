/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lanes, each driven by a thread under a lock of its own. They have a protection domain, a region, a CQ and an SRQ in common; another
 * thread is the application, and a fourth one registers and deregisters regions meanwhile, under both locks, also the one that is in use:
 * its keys stay. Each lane has a fabric of its own with a peer there, so that nothing but what lanes have in common orders their threads
 * for the sanitizer; for the same reason the counters here are relaxed.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/threadtest.h"

#define LANES 2
#define DEPTH 16
#define SIZE 1000
#define BUFFER 1024
#define RECEIVES (DEPTH / 2) /* fewer than are asked for at a time */
#define TARGETS (LANES * DEPTH + RECEIVES)
#define BUFFERS (TARGETS + LANES) /* sources, receives, where the WRITEs to each QP go */
#define TICK (20 * UR_NS_PER_US)
#define LONGEST (36000 * UR_NS_PER_S) /* time also passes while a lane waits for another thread */
#define RECV (1ull << 63)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct end { /* of a connection */
	struct ur_nic *nic;
	struct ur_qp *qp;
	struct ur_net_path path;
	unsigned posted, received; /* of the thread that posts, and of the one that polls */
	atomic_uint completed;
};

struct side { /* of all connections: the device with lanes; or of one: its peer */
	struct ur_pd *pd;
	struct ur_mr *mr;
	uint32_t key;
	struct ur_cq *cq;
	struct ur_srq *srq;
	uint8_t *mem;
	struct end end[LANES];
};

static struct world world[LANES];
static struct side device, peer[LANES];
static pthread_mutex_t lane_lock[LANES] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static unsigned ops;
static _Atomic(const char *) broken;

static unsigned completed(struct end *e)
{
	return atomic_load_explicit(&e->completed, memory_order_relaxed);
}

static bool is_broken(void)
{
	return atomic_load_explicit(&broken, memory_order_relaxed);
}

static void broke(const char *what)
{
	atomic_store_explicit(&broken, what, memory_order_relaxed);
}

static bool is_over(void)
{
	for (unsigned k = 0; k < LANES; k++)
		if (completed(&device.end[k]) < ops || completed(&peer[k].end[k]) < ops)
			return is_broken();
	return true;
}

/* --- objects --- */

static uint8_t *buffer(const struct side *s, unsigned no)
{
	return s->mem + (size_t)no * BUFFER;
}

static void ignore_event(struct ur_cq *cq)
{
	(void)cq;
}

static bool create_qp(struct side *s, struct end *e, struct ur_nic *nic)
{
	struct ur_qp_init init = {.type = IBV_QPT_RC,
				  .pd = s->pd,
				  .send_cq = s->cq,
				  .recv_cq = s->cq,
				  .srq = s->srq,
				  .sq_sig_all = true,
				  .cap = {.max_send_wr = DEPTH, .max_send_sge = 1}};

	e->nic = nic;
	ur_cq_share(s->cq, nic->tp);
	ur_srq_share(s->srq, nic->tp);
	return ur_qp_create(nic->tp, &init, &e->qp) == 0;
}

static bool create(struct side *s, struct ur_nic *nic)
{
	struct ur_srq_init init = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};

	s->mem = calloc(BUFFERS, BUFFER);
	if (!s->mem || ur_pd_create(nic->tp, &s->pd) ||
	    ur_mr_reg(nic->tp, s->pd, s->mem, (size_t)BUFFERS * BUFFER, (uintptr_t)s->mem, ACCESS, &s->mr) ||
	    ur_cq_create(nic->tp, RECEIVES + LANES * DEPTH, s, ignore_event, &s->cq))
		return false;
	s->key = s->mr->rkey;
	init.pd = s->pd;
	return ur_srq_create(nic->tp, &init, &s->srq) == 0;
}

static bool connect_end(struct end *e, unsigned lane, unsigned to, const struct end *other)
{
	return connect_qp(e->nic, e->qp, &e->path, &world[lane].gid[to], ur_qp_num(other->qp), world[lane].now);
}

static bool create_all(void)
{
	if (!create(&device, world[0].nic[0]))
		return false;
	for (unsigned k = 0; k < LANES; k++) {
		struct end *here = &device.end[k], *there = &peer[k].end[k];

		if (!create_qp(&device, here, world[k].nic[0]) || !create(&peer[k], world[k].nic[1]) ||
		    !create_qp(&peer[k], there, world[k].nic[1]) || !connect_end(here, k, 1, there) || !connect_end(there, k, 0, here))
			return false;
	}
	return true;
}

/* --- an application: SENDs, and WRITEs with immediate, which take a receive each --- */

static bool is_write(unsigned no)
{
	return no % 2;
}

static void post_recv(struct side *s, unsigned r)
{
	struct ibv_sge sge = {(uintptr_t)buffer(s, LANES * DEPTH + r), BUFFER, s->key};
	struct ibv_recv_wr wr = {.wr_id = RECV | r, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ur_srq_post(s->srq, &wr, &bad))
		broke("a receive was not taken");
}

static void post_send(struct side *s, const struct side *to, unsigned k)
{
	struct end *e = &s->end[k];
	const unsigned no = e->posted++;
	uint8_t *from = buffer(s, k * DEPTH + no % DEPTH);
	struct ibv_sge sge = {(uintptr_t)from, SIZE, s->key};
	struct ibv_send_wr wr = {.wr_id = (uint64_t)k << 32 | no, .sg_list = &sge, .num_sge = 1, .imm_data = no}, *bad;

	memset(from, (int)no, SIZE);
	wr.opcode = is_write(no) ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
	wr.wr.rdma.remote_addr = (uintptr_t)buffer(to, TARGETS + k);
	wr.wr.rdma.rkey = to->key;
	if (ur_qp_post_send(e->qp, &wr, &bad))
		broke("a send was not taken");
	if (ur_qp_doorbell(e->qp))
		ur_nic_ring(e->nic, e->qp);
}

static void post_sends(struct side *s, const struct side *to, unsigned k)
{
	while (s->end[k].posted < ops && s->end[k].posted - completed(&s->end[k]) < DEPTH)
		post_send(s, to, k);
}

static bool holds(const uint8_t *p, unsigned no)
{
	for (unsigned i = 0; i < SIZE; i++)
		if (p[i] != (uint8_t)no)
			return false;
	return true;
}

static void on_receive(struct side *s, const struct ibv_wc *wc)
{
	const unsigned r = (unsigned)(wc->wr_id & ~RECV);
	const unsigned k = !s->end[1].qp || (s->end[0].qp && wc->qp_num == ur_qp_num(s->end[0].qp)) ? 0 : 1;
	struct end *e = &s->end[k];
	const unsigned no = e->received++;

	if (wc->imm_data != no || wc->byte_len != SIZE || (wc->opcode == IBV_WC_RECV) == is_write(no))
		broke("messages came out of order");
	else if (!is_write(no) && !holds(buffer(s, LANES * DEPTH + r), no))
		broke("a SEND brought wrong bytes");
	post_recv(s, r);
}

static void on_completion(struct side *s, const struct ibv_wc *wc)
{
	struct end *e = &s->end[wc->wr_id >> 32 & 1];

	if (wc->status != IBV_WC_SUCCESS)
		broke("a request failed");
	else if (wc->wr_id & RECV)
		on_receive(s, wc);
	else if ((uint32_t)wc->wr_id != atomic_fetch_add_explicit(&e->completed, 1, memory_order_relaxed))
		broke("sends completed out of order");
}

static void poll_cq(struct side *s)
{
	struct ibv_wc wc[8];
	int n;

	n = ur_cq_poll(s->cq, 8, wc);
	for (int i = 0; i < n; i++)
		on_completion(s, &wc[i]);
	if (n < 0)
		broke("the completion queue overran");
}

/* --- threads --- */

static void *drive_lane(void *arg)
{
	const unsigned k = (unsigned)(uintptr_t)arg;
	struct world *w = &world[k];

	while (!is_over()) {
		post_sends(&device, &peer[k], k);
		post_sends(&peer[k], &device, k);
		pthread_mutex_lock(&lane_lock[k]);
		world_step(w, w->now + TICK);
		pthread_mutex_unlock(&lane_lock[k]);
		poll_cq(&peer[k]);
		if (w->now > LONGEST)
			broke("it does not come to an end");
		sched_yield();
	}
	return NULL;
}

static void *application(void *arg)
{
	(void)arg;
	while (!is_over()) {
		poll_cq(&device);
		sched_yield();
	}
	return NULL;
}

static void lock_all(void)
{
	for (unsigned k = 0; k < LANES; k++)
		pthread_mutex_lock(&lane_lock[k]);
}

static void unlock_all(void)
{
	for (unsigned k = LANES; k-- > 0;)
		pthread_mutex_unlock(&lane_lock[k]);
}

static void make_another(struct side *s, unsigned round, struct ur_mr **mr, struct ur_mw **mw)
{
	struct ur_tp *tp = s->end[round % LANES].nic->tp;

	lock_all();
	if (ur_mr_reg(tp, s->pd, s->mem, BUFFER, (uintptr_t)s->mem, ACCESS, mr) || ur_mw_alloc(tp, s->pd, IBV_MW_TYPE_1, mw))
		broke("a region or a window could not be made");
	unlock_all();
}

static struct ur_mr *make_anew(struct side *s)
{
	struct ur_mr *old = s->mr;

	lock_all();
	if (ur_mr_rereg(old, old, &s->mr))
		broke("the region could not be registered anew");
	unlock_all();
	return old;
}

/* Frames may refer to it for a while; then nobody else has it. */
static bool is_gone(struct ur_mr *mr)
{
	int err;

	lock_all();
	err = ur_mr_dereg(mr);
	unlock_all();
	return !err;
}

static void *change_regions(void *arg)
{
	struct side *s = &device;

	(void)arg;
	for (unsigned round = 0; !is_over(); round++) {
		struct ur_mr *another, *old;
		struct ur_mw *mw;

		make_another(s, round, &another, &mw);
		old = make_anew(s);
		sched_yield();
		while (!is_gone(old) && !is_broken())
			sched_yield();
		lock_all();
		ur_mw_dealloc(mw);
		unlock_all();
		if (!is_gone(another))
			broke("frames refer to a region that nobody uses");
	}
	return NULL;
}

/* --- all of it --- */

static bool start_and_end(void)
{
	static void *(*const threads[])(void *) = {drive_lane, drive_lane, application, change_regions};
	pthread_t thread[ur_array_size(threads)];

	for (unsigned i = 0; i < ur_array_size(threads); i++)
		if (pthread_create(&thread[i], NULL, threads[i], (void *)(uintptr_t)i))
			return false; /* those that run need not be waited for: the program ends */
	for (unsigned i = 0; i < ur_array_size(threads); i++)
		pthread_join(thread[i], NULL);
	return true;
}

static bool destroy(struct side *s, unsigned lanes)
{
	int err = 0;

	for (unsigned k = 0; k < LANES; k++)
		if (s->end[k].qp)
			err |= ur_nic_destroy_qp(s->end[k].nic, s->end[k].qp, &s->end[k].path);
	for (unsigned i = 0; i < 1000 && ur_mr_dereg(s->mr); i++)
		for (unsigned k = 0; k < LANES; k++)
			if (lanes & 1u << k)
				world_step(&world[k], world[k].now + TICK);
	err |= ur_srq_destroy(s->srq) | ur_cq_destroy(s->cq) | ur_pd_destroy(s->pd);
	free(s->mem);
	return !err;
}

static bool destroy_all(void)
{
	bool done = destroy(&device, 3);

	for (unsigned k = 0; k < LANES; k++)
		done &= destroy(&peer[k], 1u << k);
	return done;
}

const char *run_lanes(unsigned n)
{
	unsigned left = 0;

	ops = n;
	for (unsigned k = 0; k < LANES; k++)
		world_init(&world[k], k + 1, &fabric_plain);
	if (ur_tp_join(world[1].nic[0]->tp, world[0].nic[0]->tp) || !create_all())
		return "the objects of lanes could not be created";
	for (unsigned r = 0; r < RECEIVES; r++) {
		post_recv(&device, r);
		for (unsigned k = 0; k < LANES; k++)
			post_recv(&peer[k], r);
	}
	if (!start_and_end())
		return "no thread could be started";
	if (is_broken())
		return atomic_load(&broken); /* the rest is as it is */
	if (!destroy_all())
		return "an object of lanes could not be destroyed";
	for (unsigned k = LANES; k-- > 0;) /* the first lane last */
		left += world_fini(&world[k]);
	return left ? "packet buffers of lanes leaked" : NULL;
}
