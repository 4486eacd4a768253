/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which lane of its device a QP lives in, for its whole life, because its QPN names it; and queues that QPs of several lanes use. The
 * rules, of which the first that applies decides: the thread domain of its parent domain; the lane of its CQs, if QPs use them already; the
 * comp_vector of its CQs; the setting `spread`.
 *
 * Datagrams and XRC are the first lane's: address handles, groups, XRC domains and their SRQs are there.
 */
#include <errno.h>
#include <string.h>

#include "verbs/internal.h"

static struct uv_cq *to_cq(struct ibv_cq *cq)
{
	return ur_container_of(cq, struct uv_cq, cq);
}

static struct ur_srq *to_srq(struct ibv_srq *srq)
{
	return ur_container_of(srq, struct uv_srq, srq)->tp;
}

/* From lane 1 on, because the first one also has the connections, and what no rule moves. */
unsigned uv_next_lane(struct ur_engine *device)
{
	static atomic_uint next = 1;

	return atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % ur_engine_lanes(device);
}

/* The first thread that creates a QP has lane 0, the next one lane 1, and so on. */
static unsigned lane_of_thread(const struct ur_engine *device)
{
	static atomic_uint threads;
	static __thread unsigned mine; /* less one; 0: it has none yet */

	if (!mine)
		mine = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	return (mine - 1) % ur_engine_lanes(device);
}

static bool decides(const struct ibv_cq *cq)
{
	return cq && ur_cq_is_used(ur_container_of(cq, struct uv_cq, cq)->tp);
}

static unsigned choose(struct ur_engine *device, const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ibv_cq *cq = decides(attr->recv_cq) ? attr->recv_cq : decides(attr->send_cq) ? attr->send_cq : NULL, *either;
	const char *spread = ur_engine_spread(device);
	const struct ibv_td *td = pd ? ur_container_of(pd, struct uv_pd, pd)->td : NULL;

	if (td)
		return ur_container_of(td, const struct uv_td, td)->lane % ur_engine_lanes(device);
	if (cq)
		return ur_engine_lane_number(to_cq(cq)->engine);
	either = attr->recv_cq ? attr->recv_cq : attr->send_cq;
	if (either && (to_cq(either)->vector || !strcmp(spread, "vector")))
		return to_cq(either)->vector % ur_engine_lanes(device);
	return !strcmp(spread, "cq") ? uv_next_lane(device) : lane_of_thread(device);
}

struct ur_engine *uv_lane_for(struct ibv_context *ctx, const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	struct ur_engine *device = uv_context(ctx)->engine;

	if (ur_engine_lanes(device) == 1 || (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC))
		return device;
	return ur_engine_lane(device, choose(device, pd, attr));
}

/* --- entering one --- */

struct ur_nic *uv_enter_lane(struct ur_engine *lane)
{
	if (ur_unlikely(ur_engine_foreign(lane)))
		return uv_null(EIO);
	return ur_engine_lock(lane);
}

void uv_leave_lane(struct ur_engine *lane)
{
	ur_engine_unlock(lane);
}

/* --- shared queues --- */

static bool is_of(struct ibv_cq *cq, struct ur_engine *lane)
{
	return !cq || to_cq(cq)->engine == lane || atomic_load(&to_cq(cq)->feeders) & 1u << ur_engine_lane_number(lane);
}

static void share_cq(struct ibv_cq *cq, struct ur_engine *lane)
{
	struct uv_cq *u = cq ? to_cq(cq) : NULL;

	if (is_of(cq, lane))
		return;
	ur_cq_share(u->tp, ur_engine_nic(lane)->tp);
	if (ur_cq_lane(u->tp) == ur_engine_nic(lane)->tp)
		u->engine = lane;
	else
		atomic_fetch_or(&u->feeders, 1u << ur_engine_lane_number(lane) | 1u << ur_engine_lane_number(u->engine));
}

static bool fits(struct ur_engine *lane, const struct ibv_qp_init_attr *attr)
{
	return is_of(attr->send_cq, lane) && is_of(attr->recv_cq, lane) && (!attr->srq || !ur_engine_lane_number(lane));
}

/* While one lane's lock is held, no queue comes to be another lane's: that takes all of them. */
struct ur_nic *uv_enter_for_qp(struct ur_engine *lane, const struct ibv_qp_init_attr *attr, bool *all)
{
	struct ur_nic *nic = uv_enter_lane(lane);

	*all = false;
	if (!nic || fits(lane, attr))
		return nic;
	uv_leave_lane(lane);
	if (ur_engine_foreign(lane))
		return uv_null(EIO);
	ur_engine_lock_all(ur_engine_device(lane));
	*all = true;
	share_cq(attr->send_cq, lane);
	share_cq(attr->recv_cq, lane);
	if (attr->srq)
		ur_srq_share(to_srq(attr->srq), ur_engine_nic(lane)->tp);
	return ur_engine_nic(lane);
}

void uv_leave_for_qp(struct ur_engine *lane, bool all)
{
	if (all)
		ur_engine_unlock_all(ur_engine_device(lane));
	else
		uv_leave_lane(lane);
}

/* --- polling --- */

bool uv_cq_drive_feeders(struct uv_cq *u, unsigned feeders)
{
	struct ur_engine *device = ur_engine_device(u->engine);
	bool moved = false;

	for (unsigned i = 0; feeders; i++, feeders >>= 1)
		if (feeders & 1)
			moved |= ur_engine_drive(ur_engine_at(device, i));
	return moved;
}

void uv_cq_will_block(struct uv_cq *u)
{
	struct ur_engine *e = u->engine, *device = ur_engine_device(e);
	unsigned feeders = atomic_load(&u->feeders);

	if (!feeders)
		ur_engine_will_block(e);
	for (unsigned i = 0; feeders; i++, feeders >>= 1)
		if (feeders & 1)
			ur_engine_will_block(ur_engine_at(device, i));
}
