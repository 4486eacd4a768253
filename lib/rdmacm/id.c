/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication identifiers: rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3). */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/internal.h"
#include "verbs/verbs.h"

static const char *const state_names[UR_ID_STATE_COUNT] = {
	[UR_ID_IDLE] = "IDLE",
	[UR_ID_BOUND] = "BOUND",
	[UR_ID_ADDR_QUERY] = "ADDR_QUERY",
	[UR_ID_ADDR_RESOLVED] = "ADDR_RESOLVED",
	[UR_ID_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
	[UR_ID_CONNECT] = "CONNECT",
	[UR_ID_DISCONNECT] = "DISCONNECT",
	[UR_ID_LISTEN] = "LISTEN",
};

const char *ur_id_state_name(enum ur_id_state s)
{
	return (unsigned)s < UR_ID_STATE_COUNT ? state_names[s] : "?";
}

bool ur_id_known(const struct rdma_cm_id *id)
{
	return id && ur_live_has(id);
}

struct ur_id *ur_id_get(struct rdma_cm_id *id)
{
	struct ur_id *u = (struct ur_id *)id;

	if (!ur_id_known(id)) {
		errno = EINVAL;
		return NULL;
	}
	if (ur_engine_foreign(u->engine)) {
		errno = EIO;
		return NULL;
	}
	return u;
}

struct ur_id *ur_id_enter(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_get(id);

	if (u)
		ur_id_lock(u);
	return u;
}

struct ur_id *ur_id_enter_started(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_get(id);
	int err;

	if (!u)
		return NULL;
	err = ur_id_start(u);
	if (err) {
		errno = err;
		return NULL;
	}
	ur_id_lock(u);
	return u;
}

int ur_id_leave(struct ur_id *u, int err)
{
	ur_id_unlock(u);
	return ur_result(err);
}

struct ur_id *ur_id_alloc(struct ur_channel *ch, void *context, enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct ur_id *u = calloc(1, sizeof(*u));

	if (!u) {
		errno = ENOMEM;
		return NULL;
	}
	u->id.channel = ch ? &ch->ch : NULL;
	u->id.context = context;
	u->id.ps = ps;
	u->port_space = (uint16_t)ps;
	u->id.qp_type = type;
	ur_list_init(&u->mcs);
	ur_list_init(&u->events);
	ur_timer_init(&u->timer, ur_id_resolve_timer);
	ur_timer_init(&u->unread, ur_id_unread_timer);
	return u;
}

void ur_id_set_sync(struct ur_id *u, bool sync)
{
	int value = sync;

	u->sync = sync;
	memcpy(u->slack + UR_ID_SLACK_SYNC, &value, sizeof(value));
}

int ur_id_open(struct ur_id *u)
{
	struct ur_id_device *d[UR_DEVICES];

	if (!ur_id_devices(d))
		return errno ? errno : ENODEV;
	ur_id_set_device(u, d[0]);
	return 0;
}

int ur_id_create(struct rdma_event_channel *ch, void *context, enum rdma_port_space ps, enum ibv_qp_type type, struct ur_id **out)
{
	struct ur_id *u = ur_id_alloc((struct ur_channel *)ch, context, ps, type);
	int err;

	if (!u)
		return errno;
	err = ur_id_open(u);
	if (!err && !ch) {
		ur_id_set_sync(u, true);
		u->id.channel = rdma_create_event_channel();
		if (!u->id.channel)
			err = errno;
	}
	if (err) {
		free(u);
		return err;
	}
	ur_id_handed_out(u);
	*out = u;
	return 0;
}

void ur_id_handed_out(struct ur_id *u)
{
	if (u->live.handle)
		return;
	ur_channel_hold((struct ur_channel *)u->id.channel);
	ur_live_add(&u->live, &u->id);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	struct ur_id *u;
	int err;

	if (!id)
		return ur_fail(EINVAL);
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB: err = ur_id_create(channel, context, ps, IBV_QPT_RC, &u); break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB: err = ur_id_create(channel, context, ps, IBV_QPT_UD, &u); break;
	default: err = EINVAL;
	}
	if (err)
		return ur_fail(err);
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): set where err is 0 */
	u->any_type = ps == RDMA_PS_IB;
	*id = &u->id;
	return 0;
}

void ur_id_attach(struct ur_id *u)
{
	struct rdma_ib_addr *ib = &u->id.route.addr.addr.ibaddr;

	u->id.verbs = u->ctx;
	u->id.port_num = UR_RDMACM_PORT;
	if (!u->id.pd)
		u->id.pd = u->default_pd;
	memcpy(ib->sgid.raw, u->sgid.raw, 16);
	memcpy(ib->dgid.raw, u->dgid.raw, 16);
	ib->pkey = htobe16(UR_RDMACM_PKEY);
}

/* Under the lock. */
static void close_id(struct ur_id *u, ur_time now)
{
	ur_id_resolve_cancel(u);
	ur_timer_cancel(u->nic->wheel, &u->unread);
	ur_id_unlisten(u);
	ur_id_mc_close(u, now);
	if (u->conn)
		ur_cm_conn_destroy(u->conn, now);
	u->conn = NULL;
	ur_cm_sidr_destroy(u->lookup, now);
	u->lookup = NULL;
	ur_id_unbind(u);
	ur_id_await_no_rtu(u);
}

static void lock_and_close(struct ur_id *u)
{
	ur_id_lock(u);
	close_id(u, ur_engine_now());
	ur_id_unlock(u);
}

static void free_id(struct ur_id *u)
{
	struct ur_channel *ch = (struct ur_channel *)u->id.channel;

	ur_live_del(&u->id);
	ur_channel_release(ch);
	if (u->sync)
		ur_channel_close(ch);
	ur_id_mc_free(u);
	free(u->ep_attr);
	free(u->ep_connect);
	free(u);
}

/* Takes an id out of the layers below, and with it the connections that it announced and nobody has seen. Frees unread events. */
static void shut_id(struct ur_id *u)
{
	struct ur_list events, *n;

	ur_list_init(&events);
	lock_and_close(u);
	ur_id_free_twins(u);
	ur_channel_take(u, &events);
	while ((n = ur_list_pop(&events)) != NULL) {
		struct ur_event *e = ur_container_of(n, struct ur_event, link);

		if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct ur_id *child = (struct ur_id *)e->ev.id;

			lock_and_close(child);
			ur_channel_take(child, &events);
			free_id(child);
		}
		free(e);
	}
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct ur_id *u = ur_id_get(id);

	if (!u)
		return -1;
	shut_id(u);
	ur_id_drop_event(u);
	ur_channel_wait_acked(u);
	free_id(u);
	return 0;
}

int ur_id_migrate(struct ur_id *u, struct rdma_event_channel *ch)
{
	struct rdma_event_channel *old = u->id.channel;
	bool was_sync = u->sync, moved;

	if (was_sync)
		ur_id_drop_event(u);
	ur_id_set_sync(u, !ch);
	if (!ch)
		ch = rdma_create_event_channel();
	if (!ch) {
		ur_id_set_sync(u, was_sync);
		return errno;
	}
	do {
		ur_channel_wait_acked(u);
		ur_id_lock_all(u);
		moved = ur_channel_move(u, (struct ur_channel *)ch);
		ur_id_unlock_all(u);
	} while (!moved); /* somebody reads the old channel, which he should not */
	if (was_sync)
		ur_channel_close((struct ur_channel *)old);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct ur_id *u = ur_id_get(id);

	return u ? ur_result(ur_id_migrate(u, channel)) : -1;
}
