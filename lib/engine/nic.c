/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of the engine: what the settings mean (host/device/device.h) as a NIC, among the other processes that use it; and events of
 * the interface.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/internal.h"
#include "engine/populate.h"
#include "host/limits.h"
#include "host/thread.h"
#include "wire/frame.h"
#include "wire/path.h"

static bool other_answers(void *ctx, uint64_t service_id, const struct ur_gid *dst)
{
	struct ur_engine *e = ctx;

	return e->registry && ur_registry_other_answers(e->registry, (uint16_t)(service_id >> 16), (uint16_t)service_id, dst);
}

static bool orphaned(void *ctx, uint8_t slot)
{
	struct ur_engine *e = ctx;

	return e->registry && ur_registry_orphaned(e->registry, slot);
}

static bool alive(void *ctx, uint8_t slot)
{
	struct ur_engine *e = ctx;

	return !e->registry || ur_registry_alive(e->registry, slot);
}

/* The CM is the first lane's, and asks about QPs of all; their locks come after its own. */
static ur_time last_received(void *ctx, uint32_t qpn)
{
	struct ur_engine *device = ctx;
	const struct ur_qp *qp;
	ur_time last = 0;

	if (ur_engine_foreign(device)) /* the process ends, and this thread has the lanes' locks */
		return 0;
	for (unsigned i = 1; i < atomic_load(&device->lanes); i++)
		if (device->at[i]->nic->cfg.tp.slot == ur_slot_of(qpn)) {
			qp = ur_qp_find(ur_engine_lock(device->at[i])->tp, qpn);
			last = qp ? ur_qp_last_received(qp) : 0;
			ur_engine_unlock(device->at[i]);
		}
	return last;
}

static struct ur_queue *sibling(void *ctx, uint8_t slot)
{
	return ur_local_to(((struct ur_engine *)ctx)->local, slot);
}

static unsigned siblings(void *ctx, uint8_t slot[UR_NIC_OUTS])
{
	return ur_local_known(((struct ur_engine *)ctx)->local, slot);
}

static enum ur_fetched_by fetch(void *ctx, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				unsigned nfrom)
{
	return ur_local_fetch(((struct ur_engine *)ctx)->local, slot, to, nto, from, nfrom);
}

static uint64_t token(void *ctx, uint8_t slot, uint32_t at)
{
	return ur_local_token(((struct ur_engine *)ctx)->local, slot, at);
}

static void watched(void *ctx, bool is_watched)
{
	ur_local_set_watched(((struct ur_engine *)ctx)->local, is_watched);
}

static void put_farewell(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad)
{
	struct ur_engine *e = ctx;

	if (e->farewells)
		ur_farewells_put_mad(e->farewells, place, to, mad);
}

static void put_group_farewells(void *ctx, const struct ur_gid *groups, unsigned n)
{
	struct ur_engine *e = ctx;

	if (e->farewells)
		ur_farewells_put_groups(e->farewells, groups, n);
}

static void take_narrow(struct ur_errand *errand, ur_time now)
{
	struct ur_engine *lane = ur_container_of(errand, struct ur_engine, narrow.errand);

	ur_net_narrow(lane->device->nic->net, &lane->narrow.dst, lane->narrow.hop_mtu, now);
	atomic_store_explicit(&lane->narrow.on_its_way, false, memory_order_release);
}

/* One after the other: what finds another on its way is found again by the next connection. */
static void tell_first_lane(struct ur_engine *lane, const struct ur_gid *dst, uint16_t hop_mtu)
{
	if (atomic_exchange_explicit(&lane->narrow.on_its_way, true, memory_order_acquire))
		return;
	lane->narrow.errand.run = take_narrow;
	lane->narrow.dst = *dst;
	lane->narrow.hop_mtu = hop_mtu;
	ur_engine_errand(lane->device, &lane->narrow.errand);
}

/* On the wire nothing can be done for connections that are there. That they end is no mystery then. */
static void narrow(void *ctx, const struct ur_gid *dst, uint32_t path_mtu, uint16_t hop_mtu)
{
	const uint32_t least = 256 + UR_PATH_OVERHEAD;
	struct ur_engine *e = ctx;
	const char *dev = e->nic->port->name;
	char peer[UR_IP_TEXT];

	if (e->lane && hop_mtu)
		tell_first_lane(e, dst, hop_mtu);
	ur_gid_ip(dst, peer);
	if (hop_mtu >= least)
		fprintf(stderr,
			"uroce: a router on the path to %s forwards at most %u bytes, so connections with path MTU %u will fail; new "
			"connections of the connection manager use path MTU %u for ten minutes: raise the MTU of that router, or lower "
			"that of %s and of the peer's interface\n",
			peer, hop_mtu, path_mtu, 128u << ur_max_path_mtu(hop_mtu), dev);
	else if (hop_mtu)
		fprintf(stderr,
			"uroce: a router on the path to %s forwards at most %u bytes, which is too small for RoCE, whose smallest path "
			"MTU needs %u, so connections will fail: raise the MTU of that router\n",
			peer, hop_mtu, least);
	else
		fprintf(stderr,
			"uroce: a connection to %s failed: the peer answered, but never acknowledged a message longer than the path MTU "
			"(%u): a router on the path may forward less; 'uroce doctor --dev %s %s' can tell\n",
			peer, path_mtu, dev, peer);
}

static void trouble(void *ctx, const struct ur_cm_trouble *t)
{
	ur_engine_trouble(ctx, t);
}

static void put_last_ack(void *ctx, const struct ur_last_ack *ack, ur_time now)
{
	struct ur_engine *device = ((struct ur_engine *)ctx)->device;

	if (device->farewells)
		ur_farewells_put_ack(device->farewells, ack, now);
}

/* A port of our own is gone with us, and nobody could send by it. */
static void open_farewells(struct ur_engine *e)
{
	if (e->cfg.keeper && !e->info.owned && !e->lane)
		ur_farewells_open(e->hostif.name, e->hostif.ifindex, ur_progress_wake, e, &e->farewells);
}

static uint8_t cwnd_when(const char *congestion)
{
	if (!strcmp(congestion, "auto"))
		return UR_CWND_LOSSES;
	return !strcmp(congestion, "window") ? UR_CWND_ALWAYS : UR_CWND_NEVER;
}

/*
 * A program has some descriptors for each connection that it accepts, mostly two, for channels of its own: those of connections that nobody
 * confirms then take no more than half of what it may have.
 */
static uint32_t half_open_most(void)
{
	enum { LEAST = 64, SHARE = 4 };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / SHARE >= UR_CM_HALF_OPEN)
		return UR_CM_HALF_OPEN;
	return files.rlim_cur / SHARE < LEAST ? LEAST : (uint32_t)(files.rlim_cur / SHARE);
}

static int create_nic(struct ur_engine *e)
{
	struct ur_nic_config nc = {.guid = e->info.guid,
				   .owned = e->info.owned,
				   .mac = e->info.mac,
				   .mtu = e->info.mtu,
				   .half_open = half_open_most(),
				   .ctx = e,
				   .other_answers = other_answers,
				   .orphaned = orphaned,
				   .narrow = narrow,
				   .trouble = trouble,
				   .last_received = last_received,
				   .tp.cc = strcmp(e->cfg.congestion, "off") != 0,
				   .tp.cwnd = cwnd_when(e->cfg.congestion),
				   .packets = !e->cfg.one_copy,
				   .tp.selective_repeat = e->cfg.selective_repeat != 0,
				   .tp.populate = ur_populate_supported() ? ur_populate : NULL,
				   .tp.copy = ur_user_copy,
				   .tp.yield = ur_thread_yield};
	int err;

	open_farewells(e);
	if (e->farewells) {
		nc.farewell = put_farewell;
		nc.group_farewells = put_group_farewells;
	}
	if (e->device->farewells)
		nc.last_ack = put_last_ack;
	if (e->local) {
		nc.inbox = ur_local_inbox(e->local);
		nc.sibling = sibling;
		nc.siblings = siblings;
		nc.fetch = fetch;
		nc.token = token;
		nc.tp.tokens = ur_local_tokens(e->local);
		nc.watched = watched;
		nc.alive = alive;
	}
	if (getrandom(&nc.seed, sizeof(nc.seed), 0) != sizeof(nc.seed)) {
		ur_engine_set_error("the kernel provides no random numbers (%s): allow the system call getrandom", strerror(errno));
		return EIO;
	}
	if (e->lane)
		nc.first_slot = e->device->nic->cfg.tp.slot;
	nc.tp.slot = e->registry ? ur_registry_slot(e->registry) : (uint8_t)(1 + getpid() % 255);
	err = ur_nic_create(&nc, ur_engine_now(), &e->nic);
	explicit_bzero(&nc.seed, sizeof(nc.seed));
	if (err)
		ur_engine_set_error("cannot create the device: %s", ur_limit_reason(err));
	return err;
}

static int keep_faults(struct ur_engine *device, const struct ur_fault_spec *spec)
{
	struct ur_fault_spec *copy = spec ? malloc(sizeof(*copy)) : NULL;

	if (spec && !copy)
		return ENOMEM;
	if (copy)
		*copy = *spec;
	free(device->faults);
	device->faults = copy;
	return 0;
}

int ur_engine_set_faults(struct ur_engine *device, const struct ur_fault_spec *spec)
{
	int err;

	ur_engine_lock_all(device);
	err = keep_faults(device, spec);
	for (unsigned i = 0; i < atomic_load(&device->lanes) && !err; i++)
		err = ur_nic_set_faults(device->at[i]->nic, device->faults);
	ur_engine_unlock_all(device);
	return err;
}

static int apply_faults(struct ur_engine *e)
{
	struct ur_fault_spec spec;
	char err[512];

	if (!e->cfg.fault[0])
		return 0;
	if (ur_fault_parse(e->cfg.fault, &spec, err, sizeof(err))) {
		ur_engine_set_error("%s", err);
		return EINVAL;
	}
	return ur_engine_set_faults(e, &spec);
}

static int find_device(struct ur_engine *e, struct ur_device *d)
{
	char err[512];
	int r = ur_device_find(&e->cfg, e->index, d, err, sizeof(err));

	if (r) {
		ur_engine_set_error("%s", err);
		return r;
	}
	e->info = d->info;
	e->hostif = d->hostif;
	e->is_nic = d->is_nic;
	return 0;
}

static int add_addresses(struct ur_engine *e, const struct ur_device *d)
{
	char err[512];
	int r = ur_device_addresses(&e->cfg, d, e->nic->net, err, sizeof(err));

	if (r)
		ur_engine_set_error("%s", err);
	return r;
}

int ur_engine_nic_open(struct ur_engine *e)
{
	struct ur_device d;
	int err = ur_progress_bind(e);

	err = err ? err : find_device(e, &d);
	if (err)
		return err;
	err = ur_registry_open(d.key, &e->registry);
	if (err == EAGAIN) {
		ur_engine_set_error("all 255 slots of %s are taken: end processes that use it ('ss -xap | grep uroce' shows who)",
				    e->info.ifname);
		return err;
	}
	/* Any other failure (no descriptor is left) only means that the processes of this device do not know of one another. */
	if (err)
		fprintf(stderr, "uroce: this process and others that use the device cannot find each other: %s\n", ur_limit_reason(err));
	else
		ur_local_open(e->registry, &e->local);
	err = create_nic(e);
	if (!err)
		err = ur_tracer_open(e, &e->tracer);
	if (!err)
		err = add_addresses(e, &d);
	return err ? err : apply_faults(e);
}

int ur_engine_nic_join(struct ur_engine *e)
{
	struct ur_engine *device = e->device;
	uint64_t key = 0;
	int err = 0;

	ur_engine_info(device, &e->info);
	ur_engine_lock(device);
	e->hostif = device->hostif;
	if (device->registry)
		key = ur_registry_key(device->registry);
	else
		err = ENOTSUP;
	ur_engine_unlock(device);
	err = err ? err : ur_registry_open_further(key, &e->registry);
	if (err) {
		ur_engine_set_error("%s", err == EAGAIN ? "no slot of this device is left" : ur_limit_reason(err));
		return err;
	}
	ur_local_open(e->registry, &e->local);
	err = create_nic(e);
	return err ? err : ur_tracer_open(e, &e->tracer); /* for probes: a trace has one lane */
}

static void raise_port_event(struct ur_engine *e, enum ibv_event_type type)
{
	struct ur_list *pos, *tmp;

	UR_TRACE(e->nic->trace, PORT_EVENT, type);
	ur_list_for_each_safe (pos, tmp, &e->watches) {
		struct ur_engine_watch *w = ur_container_of(pos, struct ur_engine_watch, link);

		w->event(w, type);
	}
}

/* Zero stands for an entry that is not there. */
static void copy_gids(const struct ur_engine *e, struct ur_gid *gids)
{
	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(e->nic->net, i);

		gids[i] = a ? a->gid : (struct ur_gid){{0}};
	}
}

void ur_engine_mirror(struct ur_engine *lane)
{
	const struct ur_engine *device = lane->device;

	ur_net_mirror(lane->nic->net, device->nic->net); /* what finds no memory is unreachable from this lane */
	lane->hostif = device->hostif;
	pthread_mutex_lock(&lane->info_lock);
	lane->info.link_up = device->info.link_up;
	pthread_mutex_unlock(&lane->info_lock);
}

static void refresh(struct ur_engine *e)
{
	struct ur_gid before[UR_NET_GIDS], after[UR_NET_GIDS];
	bool was_up = e->info.link_up;
	struct ur_hostif h;
	char err[256];

	if (ur_hostif_find(e->hostif.name, &h, err, sizeof(err)))
		return;
	e->hostif = h;
	pthread_mutex_lock(&e->info_lock);
	e->info.link_up = h.up;
	pthread_mutex_unlock(&e->info_lock);
	copy_gids(e, before);
	ur_hostif_sync(&e->hostif, e->nic->net);
	copy_gids(e, after);
	if (memcmp(before, after, sizeof(before)))
		raise_port_event(e, IBV_EVENT_GID_CHANGE);
	if (h.up && !was_up)
		ur_net_groups_again(e->nic->net, ur_engine_now());
	if (h.up != was_up)
		raise_port_event(e, h.up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	for (unsigned i = 1; i < atomic_load(&e->lanes); i++) {
		ur_engine_lock(e->at[i]);
		ur_engine_mirror(e->at[i]);
		ur_engine_unlock(e->at[i]);
	}
}

void ur_engine_look_again(struct ur_engine *e)
{
	if (e->info.owned || e->lane || ur_engine_started(e))
		return;
	ur_engine_lock(e);
	refresh(e);
	ur_engine_unlock(e);
}

/*
 * The link of a port of our own, whose changes nobody announces. From the progress thread, without the NIC: a device may take its time to
 * answer.
 */
void ur_engine_check_link(struct ur_engine *e)
{
	bool up = e->nic->port->ops->link_up(e->nic->port);

	if (up == e->info.link_up)
		return;
	ur_engine_lock(e);
	pthread_mutex_lock(&e->info_lock);
	e->info.link_up = up;
	pthread_mutex_unlock(&e->info_lock);
	if (up)
		ur_net_groups_again(e->nic->net, ur_engine_now());
	raise_port_event(e, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	ur_engine_unlock(e);
}

/* Where neighbours are ours to ask, lib/net knows by itself. */
static void neighbour_failed(void *ctx, const struct ur_gid *neighbour)
{
	struct ur_nic *nic = ((struct ur_engine *)ctx)->nic;

	if (nic->routed)
		ur_cm_unreachable(nic->cm, neighbour, nic->now);
}

void ur_engine_read_monitor(struct ur_engine *e)
{
	ur_engine_lock(e);
	if (ur_hostif_changed(e->monitor_fd, e->hostif.ifindex, neighbour_failed, e))
		refresh(e);
	ur_engine_unlock(e);
}
