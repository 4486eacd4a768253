/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast: rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3). A join makes the host a member, which the network
 * is told of, and announces itself; the id's QP is attached when the program retrieves that event. A send-only member needs neither.
 */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/internal.h"
#include "verbs/verbs.h"
#include "wire/frame.h"

static struct ur_mc *mc_of(struct ur_list *n)
{
	return ur_container_of(n, struct ur_mc, of_id);
}

/* --- addresses --- */

/* The id's own address, or of the group's family the one that a route or the link suggests. */
static int choose_source(struct ur_id *u, struct ur_mc *mc)
{
	struct ur_gid hop;
	int index, err = 0;

	mc->sgid = u->sgid;
	if (ur_gid_is_v4(&u->sgid) != ur_gid_is_v4(&mc->group))
		err = ur_net_route_lookup(u->nic->net, &mc->group, NULL, &mc->sgid, &hop);
	if (err)
		return err;
	index = ur_net_gid_find(u->nic->net, &mc->sgid);
	if (index < 0)
		return EADDRNOTAVAIL;
	mc->vlan = ur_net_gid(u->nic->net, (unsigned)index)->vlan;
	return 0;
}

/* --- the QP --- */

static bool attached_by_another(const struct ur_mc *mc)
{
	const struct ur_list *all = &mc->id->mcs;

	for (struct ur_list *n = all->next; n != all; n = n->next)
		if (mc_of(n) != mc && mc_of(n)->attached && ur_gid_eq(&mc_of(n)->group, &mc->group))
			return true;
	return false;
}

static void detach(struct ur_mc *mc)
{
	struct ur_id *u = mc->id;

	if (!mc->attached)
		return;
	mc->attached = false;
	if (u->id.qp && !attached_by_another(mc))
		ur_nic_detach_mcast(u->nic, ur_verbs_qp(u->id.qp), &mc->group);
}

void ur_id_mc_detach(struct ur_id *u)
{
	for (struct ur_list *n = u->mcs.next; n != &u->mcs; n = n->next)
		detach(mc_of(n));
}

static int attach(struct ur_mc *mc)
{
	struct ur_id *u = mc->id;
	int err;

	if (mc->closed || mc->send_only || !mc->member || !u->id.qp)
		return 0;
	err = ur_nic_attach_mcast(u->nic, ur_verbs_qp(u->id.qp), &mc->group);
	mc->attached = !err;
	return err;
}

void ur_mc_event_read(struct ur_event *e)
{
	struct ur_id *u = e->owner;
	int err;

	if (!e->mc || e->ev.event != RDMA_CM_EVENT_MULTICAST_JOIN || ur_engine_foreign(u->engine))
		return;
	ur_id_lock(u);
	err = attach(e->mc);
	ur_id_unlock(u);
	if (!err)
		return;
	e->ev.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	e->ev.status = -err;
}

/* --- membership --- */

static void give_up_membership(struct ur_mc *mc, ur_time now)
{
	if (!mc->member)
		return;
	mc->member = false;
	ur_list_del(&mc->of_all);
	if (!mc->send_only)
		ur_nic_leave_mcast(mc->id->nic, &mc->group, mc->vlan, now);
}

static void close_mc(struct ur_mc *mc, ur_time now)
{
	detach(mc);
	give_up_membership(mc, now);
	mc->closed = true;
}

void ur_id_mc_close(struct ur_id *u, ur_time now)
{
	for (struct ur_list *n = u->mcs.next; n != &u->mcs; n = n->next)
		close_mc(mc_of(n), now);
}

void ur_id_mc_free(struct ur_id *u)
{
	struct ur_list *n;

	while ((n = ur_list_pop(&u->mcs)))
		free(mc_of(n));
}

static struct ur_event *event_of(struct ur_mc *mc, enum rdma_cm_event_type type, int status)
{
	struct ur_event *e = ur_event_new(type, mc->id, mc->id);

	if (!e)
		return NULL;
	e->mc = mc;
	e->ev.status = status;
	e->ev.param.ud.private_data = mc->context;
	return e;
}

/* Our address is gone, and with it the link that we were a member on. */
static void lost(struct ur_mc *mc, ur_time now)
{
	struct ur_event *e = event_of(mc, RDMA_CM_EVENT_MULTICAST_ERROR, -EADDRNOTAVAIL);

	detach(mc);
	give_up_membership(mc, now);
	if (e)
		ur_event_push(e);
}

static void device_changed(struct ur_engine_watch *w, enum ibv_event_type type)
{
	struct ur_id_device *d = ur_container_of(w, struct ur_id_device, watch);
	struct ur_list *n, *tmp;

	if (type != IBV_EVENT_GID_CHANGE)
		return;
	ur_list_for_each_safe (n, tmp, &d->joins) {
		struct ur_mc *mc = ur_container_of(n, struct ur_mc, of_all);

		if (ur_net_gid_find(mc->id->nic->net, &mc->sgid) < 0)
			lost(mc, ur_engine_now());
	}
}

static void watch_device(struct ur_id_device *d)
{
	bool first;

	ur_engine_lock(d->engine);
	first = !d->watch.event;
	d->watch.event = device_changed;
	ur_engine_unlock(d->engine);
	if (first)
		ur_engine_watch(d->engine, &d->watch);
}

/* --- joining --- */

static int become_member(struct ur_id *u, struct ur_mc *mc, ur_time now)
{
	int err = choose_source(u, mc);

	if (!err)
		ur_engine_check_group(u->engine, &mc->group);
	if (!err && !mc->send_only)
		err = ur_nic_join_mcast(u->nic, &mc->group, mc->vlan, now);
	if (err)
		return err;
	mc->member = true;
	ur_list_add_tail(&u->device->joins, &mc->of_all);
	ur_list_add_tail(&u->mcs, &mc->of_id);
	return 0;
}

/* What the program needs to send to the group. */
static void fill_event(struct ur_id *u, const struct ur_mc *mc, struct rdma_ud_param *p)
{
	p->ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = UR_RDMACM_PORT};
	memcpy(p->ah_attr.grh.dgid.raw, mc->group.raw, sizeof(mc->group.raw));
	p->ah_attr.grh.sgid_index = (uint8_t)ur_net_gid_find(u->nic->net, &mc->sgid);
	p->ah_attr.grh.hop_limit = UR_RDMACM_HOP_LIMIT;
	p->ah_attr.grh.traffic_class = u->tos;
	p->qp_num = UR_QPN_MCAST;
	p->qkey = ur_id_qkey(u);
}

/* Under the lock. */
static int join_locked(struct ur_id *u, struct ur_mc *mc, struct ur_event *e)
{
	bool ud = u->id.qp_type == IBV_QPT_UD || (u->any_type && !u->id.qp);
	int err;

	if (!u->id.verbs || !ud || !ur_gid_is_mcast(&mc->group))
		return EINVAL;
	err = become_member(u, mc, ur_engine_now());
	if (err)
		return err;
	fill_event(u, mc, &e->ev.param.ud);
	ur_event_push(e);
	return 0;
}

static int join_group(struct ur_id *u, const struct sockaddr *addr, bool send_only, void *context)
{
	struct ur_mc *mc = calloc(1, sizeof(*mc));
	struct ur_event *e = NULL;
	int err = mc ? 0 : ENOMEM;
	uint16_t port;

	if (!err) {
		*mc = (struct ur_mc){.id = u, .context = context, .send_only = send_only};
		ur_list_init(&mc->of_id);
		ur_list_init(&mc->of_all);
		e = event_of(mc, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		err = !e ? ENOMEM : !ur_sa_gid(addr, &mc->group, &port) ? EINVAL : ur_id_start(u);
	}
	if (!err) {
		watch_device(u->device);
		if (!send_only)
			ur_engine_leave_at_signals(u->engine);
		ur_id_lock(u);
		err = join_locked(u, mc, e);
		ur_id_unlock(u);
	}
	if (err) {
		free(e);
		free(mc);
	}
	return err;
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct ur_id *u = ur_id_get(id);
	bool sync;
	int err;

	if (!u)
		return -1;
	if (!attr)
		return ur_fail(EINVAL);
	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return ur_fail(EOPNOTSUPP);
	if (attr->comp_mask != needed || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED || !attr->addr)
		return ur_fail(EINVAL);
	sync = u->sync; /* another thread may read the event, and destroy the id in the end */
	err = join_group(u, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
	return err ? ur_fail(err) : sync ? ur_id_complete(u) : 0;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

/* --- leaving --- */

/* The latest join of the group; NULL when there is none. Takes it from the id. */
static struct ur_mc *take_join(struct ur_id *u, const struct ur_gid *group)
{
	for (struct ur_list *n = u->mcs.prev; n != &u->mcs; n = n->prev) {
		if (!ur_gid_eq(&mc_of(n)->group, group))
			continue;
		close_mc(mc_of(n), ur_engine_now());
		ur_list_del(n);
		return mc_of(n);
	}
	return NULL;
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct ur_id *u = ur_id_get(id);
	struct ur_gid group;
	struct ur_mc *mc;
	uint16_t port;

	if (!u)
		return -1;
	if (!addr || !ur_sa_gid(addr, &group, &port))
		return ur_fail(EINVAL);
	ur_id_lock(u);
	mc = take_join(u, &group);
	if (mc)
		ur_channel_forget_mc(u, mc);
	ur_id_unlock(u);
	if (!mc)
		return ur_fail(EADDRNOTAVAIL);
	if (u->sync && id->event && ((struct ur_event *)id->event)->mc == mc)
		ur_id_drop_event(u);
	ur_channel_wait_mc(u, mc);
	free(mc);
	return 0;
}
