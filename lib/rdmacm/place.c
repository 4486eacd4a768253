/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which device an id is, in a process with several; rdma_bind_addr(3). One that is bound to nothing is on the first. A local address
 * belongs to one device; without one the destination decides, as the kernel's routes do. An id that is bound to all addresses has a twin on
 * each other device, which holds its port there and listens for it, until the id is destroyed; the program never sees a twin.
 *
 * Nobody holds two engines' locks here, but for ur_id_lock_all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/internal.h"
#include "wire/gid_set.h"

#define EPHEMERAL_TRIES 100 /* a port that is free on the first device may be taken on another */

static bool has_several(void)
{
	const struct ur_engine *first = ur_engine_current();

	return first && ur_engine_next(first);
}

/* --- choosing --- */

static bool has_address(struct ur_engine *e, const struct sockaddr *addr, const struct ur_gid *gid)
{
	bool has = ur_net_gid_find(ur_engine_lock(e)->net, gid) >= 0;

	ur_engine_unlock(e);
	return has && !ur_scope_check(e, addr);
}

/* Has the device an address of that family, or a loopback one? */
static bool has_family(struct ur_engine *e, const struct sockaddr *addr, bool loopback)
{
	const struct ur_net *net = ur_engine_lock(e)->net;
	bool has = false;

	for (unsigned i = 0; i < UR_NET_GIDS && !has; i++) {
		const struct ur_net_addr *a = ur_net_gid(net, i);

		has = a && (addr->sa_family == AF_IB || ur_gid_is_v4(&a->gid) == (addr->sa_family == AF_INET)) &&
		      (!loopback || ur_gid_loopback(&a->gid));
	}
	ur_engine_unlock(e);
	return has;
}

static uint64_t route_rank(struct ur_engine *e, const struct sockaddr *addr, const struct ur_gid *gid)
{
	uint64_t rank;

	if (ur_scope_check(e, addr))
		return 0;
	rank = ur_net_route_rank(ur_engine_lock(e)->net, gid);
	ur_engine_unlock(e);
	return rank;
}

/* What an engine that has not started knows of its interface is of the time when it was opened. */
static void look_at_all_again(void)
{
	for (struct ur_engine *e = ur_engine_current(); e; e = ur_engine_next(e))
		ur_engine_look_again(e);
}

/* The one whose device has the address; NULL when there is none. */
static struct ur_engine *engine_with(const struct sockaddr *src)
{
	struct ur_gid gid;
	uint16_t port;

	if (!ur_sa_gid(src, &gid, &port) || ur_gid_any(&gid))
		return NULL;
	look_at_all_again();
	for (struct ur_engine *e = ur_engine_current(); e; e = ur_engine_next(e))
		if (has_address(e, src, &gid))
			return e;
	for (struct ur_engine *e = ur_engine_current(); e && ur_gid_loopback(&gid); e = ur_engine_next(e))
		if (has_family(e, src, true))
			return e;
	return NULL;
}

struct ur_engine *ur_id_engine_towards(const struct sockaddr *dst)
{
	struct ur_engine *best = NULL;
	uint64_t rank, most = 0;
	struct ur_gid gid;
	uint16_t port;

	if (!ur_sa_gid(dst, &gid, &port))
		return NULL;
	look_at_all_again();
	for (struct ur_engine *e = ur_engine_current(); e; e = ur_engine_next(e)) {
		if (ur_gid_any(&gid) || ur_gid_loopback(&gid))
			rank = has_address(e, dst, &gid) ? 2 : has_family(e, dst, false);
		else
			rank = route_rank(e, dst, &gid);
		if (rank > most) {
			best = e;
			most = rank;
		}
	}
	return best;
}

/* --- moving --- */

void ur_id_set_device(struct ur_id *u, struct ur_id_device *d)
{
	u->device = d;
	u->ctx = d->ctx;
	u->default_pd = d->default_pd;
	__atomic_store_n(&u->engine, d->engine, __ATOMIC_RELEASE);
}

/* rdma_resolve_addr has bound it to a wildcard on one device alone, and binds it to another port if this one is taken on the new one. */
static void bind_again(struct ur_id *u)
{
	const struct sockaddr_storage addr = u->id.route.addr.src_storage; /* with the port */

	ur_id_lock(u);
	u->state = UR_ID_IDLE;
	ur_id_bind(u, (const struct sockaddr *)&addr);
	ur_id_unlock(u);
}

/* A wildcard's twin there has the port, too: they change places. */
static void move_to(struct ur_id *u, struct ur_id_device *to)
{
	struct ur_id_device *from = u->device;
	struct ur_id *t = u->twins;
	bool bound;

	while (t && t->device != to)
		t = t->twins;
	ur_id_lock(u);
	bound = u->bound && !t;
	if (bound)
		ur_id_unbind(u);
	ur_id_set_device(u, to);
	if (t)
		ur_id_set_device(t, from);
	ur_engine_unlock(from->engine);
	if (bound)
		bind_again(u);
}

static void go_to(struct ur_id *u, const struct ur_engine *e)
{
	struct ur_id_device *d = e ? ur_id_device_of(e) : NULL;

	if (d && d != u->device)
		move_to(u, d);
}

static enum ur_id_state state_of(struct ur_id *u, bool *wild)
{
	enum ur_id_state s;

	ur_id_lock(u);
	s = u->state;
	*wild = s == UR_ID_BOUND && ur_gid_is_wild(&u->bound_gid);
	ur_id_unlock(u);
	return s;
}

void ur_id_place_source(struct ur_id *u, const struct sockaddr *src)
{
	bool wild;

	if (ur_unlikely(has_several()) && state_of(u, &wild) == UR_ID_IDLE)
		go_to(u, engine_with(src));
}

/* What rdma_resolve_addr will refuse changes nothing here. */
void ur_id_place_towards(struct ur_id *u, const struct sockaddr *src, const struct sockaddr *dst)
{
	const struct ur_engine *e = NULL;
	enum ur_id_state s;
	bool wild;

	if (ur_likely(!has_several()))
		return;
	s = state_of(u, &wild);
	if (!ur_sa_len(dst->sa_family) || (s != UR_ID_IDLE && (!wild || u->id.route.addr.src_addr.sa_family != dst->sa_family)))
		return;
	if (s == UR_ID_IDLE && src && src->sa_family != dst->sa_family)
		return;
	if (s == UR_ID_IDLE && src)
		e = engine_with(src);
	go_to(u, e ? e : ur_id_engine_towards(dst));
}

/* --- twins --- */

static struct ur_id *twin_new(struct ur_id *u, struct ur_id_device *d)
{
	struct ur_id *t = ur_id_alloc((struct ur_channel *)u->id.channel, u->id.context, u->id.ps, u->id.qp_type);

	if (!t)
		return NULL;
	t->main = u;
	t->any_type = u->any_type;
	t->afonly = u->afonly;
	t->afonly_set = true;
	t->reuse = u->reuse;
	t->tos = u->tos;
	t->ack_timeout = u->ack_timeout;
	t->ack_timeout_set = u->ack_timeout_set;
	ur_id_set_device(t, d);
	return t;
}

static void twin_free(struct ur_id *t)
{
	ur_id_lock(t);
	ur_id_unlisten(t);
	ur_id_unbind(t);
	ur_id_unlock(t);
	free(t);
}

void ur_id_free_twins(struct ur_id *u)
{
	struct ur_id *t;

	while ((t = u->twins)) {
		u->twins = t->twins;
		twin_free(t);
	}
}

/* In the place of a twin, which is the last of its list that holds nothing. */
static void take_place_of(struct ur_id *u, struct ur_id *t)
{
	move_to(u, t->device);
	u->twins = t->twins;
	twin_free(t);
}

int ur_id_start_all(struct ur_id *u)
{
	struct ur_id **at = &u->twins, *t;
	int err;

	while ((err = ur_id_start(u)) && u->twins)
		take_place_of(u, u->twins);
	while ((t = *at)) {
		if (!ur_id_start(t)) {
			at = &t->twins;
			continue;
		}
		*at = t->twins;
		twin_free(t);
	}
	return err;
}

static int add_twin(struct ur_id *u, struct ur_id_device *d)
{
	const struct sockaddr_storage addr = u->id.route.addr.src_storage; /* with the port */
	struct ur_id *t = twin_new(u, d);
	int err;

	if (!t)
		return ENOMEM;
	ur_id_lock(t);
	err = ur_id_bind(t, (const struct sockaddr *)&addr);
	t->loopback = u->loopback;
	ur_id_unlock(t);
	if (err) {
		free(t);
		return err;
	}
	t->twins = u->twins;
	u->twins = t;
	return 0;
}

static int add_twins(struct ur_id *u)
{
	struct ur_id_device *d[UR_DEVICES];
	unsigned n = ur_id_devices(d);
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		if (d[i] != u->device)
			err = add_twin(u, d[i]);
	if (err)
		ur_id_free_twins(u);
	return err;
}

static int bind_locked(struct ur_id *u, const struct sockaddr *addr, bool *wild)
{
	int err;

	ur_id_lock(u);
	err = ur_id_bind(u, addr);
	*wild = !err && ur_gid_is_wild(&u->bound_gid);
	ur_id_unlock(u);
	return err;
}

static void undo_bind(struct ur_id *u)
{
	ur_id_lock(u);
	ur_id_unbind(u);
	u->state = UR_ID_IDLE;
	ur_id_unlock(u);
}

int ur_id_bind_everywhere(struct ur_id *u, const struct sockaddr *addr)
{
	const bool several = has_several();
	int err = EADDRINUSE;
	struct ur_gid gid;
	uint16_t port = 1;
	bool wild;

	ur_sa_gid(addr, &gid, &port);
	for (unsigned i = 0; i < (port ? 1 : EPHEMERAL_TRIES) && err == EADDRINUSE; i++) {
		err = bind_locked(u, addr, &wild);
		if (err || !several || !wild)
			return err;
		err = add_twins(u);
		if (err)
			undo_bind(u);
	}
	return err;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	if (!addr)
		return ur_fail(EINVAL);
	ur_id_place_source(u, addr);
	return ur_result(ur_id_bind_everywhere(u, addr));
}

/* --- all of them --- */

static void by_device(struct ur_id *u, struct ur_id *all[UR_DEVICES])
{
	memset(all, 0, UR_DEVICES * sizeof(all[0]));
	for (struct ur_id *t = u; t; t = t->twins)
		all[t->device->index] = t;
}

void ur_id_lock_all(struct ur_id *u)
{
	struct ur_id *all[UR_DEVICES];

	by_device(u, all);
	for (unsigned i = 0; i < UR_DEVICES; i++)
		if (all[i])
			ur_id_lock(all[i]);
}

/* The other way round, since each engine puts back what it found in the thread. */
void ur_id_unlock_all(struct ur_id *u)
{
	struct ur_id *all[UR_DEVICES];

	by_device(u, all);
	for (unsigned i = UR_DEVICES; i-- > 0;)
		if (all[i])
			ur_id_unlock(all[i]);
}
