/* SPDX-License-Identifier: BSD-3-Clause */
/* From the configuration to a device: an interface shared with the kernel, or a port of our own with configured addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "drivers/ethdev/ethdev.h"
#include "base/hash.h"
#include "engine/engine_priv.h"
#include "engine/reach.h"
#include "wire/frame.h"

/* In its network namespace: what it names lives there. */
static uint64_t device_key(const struct ur_engine *e)
{
	uint64_t h = ur_hash_bytes(UR_HASH_BEGIN, e->info.ifname, strlen(e->info.ifname));

	if (e->info.owned)
		return ur_hash_bytes(ur_hash_bytes(h, e->cfg.vdev, strlen(e->cfg.vdev)), e->cfg.ip, strlen(e->cfg.ip));
	return ur_hash_bytes(h, e->info.mac.b, 6);
}

static uint64_t eui64(const struct ur_mac *m)
{
	return (uint64_t)(m->b[0] ^ 2) << 56 | (uint64_t)m->b[1] << 48 | (uint64_t)m->b[2] << 40 | 0xfffeull << 24 |
	       (uint64_t)m->b[3] << 16 | (uint64_t)m->b[4] << 8 | m->b[5];
}

/* --- addresses from the configuration --- */

static bool parse_addr(const char *text, struct ur_gid *gid, unsigned *bits)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		*gid = ur_gid_from_v4(v4.s_addr);
		*bits = 32;
		return true;
	}
	*bits = 128;
	return inet_pton(AF_INET6, text, gid->raw) == 1;
}

static int add_owned_addr(struct ur_engine *e, char *item)
{
	char *slash = strchr(item, '/'), *end;
	struct ur_net_addr a = {.vlan = 0};
	unsigned bits;
	unsigned long len;
	int err;

	if (slash)
		*slash = 0;
	if (!parse_addr(item, &a.gid, &bits) || ur_gid_is_mcast(&a.gid) || ur_gid_is_zero(&a.gid)) {
		ur_engine_set_error("'%s' is not an address: give --ip ADDRESS/LENGTH, such as 10.0.0.1/24", item);
		return EINVAL;
	}
	len = slash ? strtoul(slash + 1, &end, 10) : bits;
	if (slash && (!slash[1] || *end || len > bits)) {
		ur_engine_set_error("'%s' is not a prefix length of address %s: give a number from 0 to %u", slash + 1, item, bits);
		return EINVAL;
	}
	a.prefix_len = (uint8_t)len;
	err = ur_net_addr_add(e->nic->net, &a);
	if (err)
		ur_engine_set_error("address %s cannot be used: %s", item, err == EEXIST ? "it is given twice" : strerror(err));
	return err;
}

static int add_owned_gateway(struct ur_engine *e, char *item)
{
	struct ur_net_route r = {.prefix_len = 0};
	unsigned bits;

	if (!parse_addr(item, &r.gateway, &bits) || ur_gid_is_mcast(&r.gateway)) {
		ur_engine_set_error("'%s' is not the address of a gateway: give --gw ADDRESS, such as 10.0.0.254", item);
		return EINVAL;
	}
	if (bits == 32)
		r.dst = ur_gid_from_v4(0);
	if (ur_net_route_add(e->nic->net, &r)) {
		ur_engine_set_error("gateway %s cannot be used: it may be given twice", item);
		return EINVAL;
	}
	return 0;
}

static int for_each_item(struct ur_engine *e, const char *list, int (*fn)(struct ur_engine *e, char *item))
{
	char copy[UR_CONFIG_STR], *save, *item;
	int err = 0;

	strcpy(copy, list);
	for (item = strtok_r(copy, ", ", &save); item && !err; item = strtok_r(NULL, ", ", &save))
		err = fn(e, item);
	return err;
}

/* --- which device --- */

/* What it is called: the word that names it, or a NIC's address. */
static void name_owned(struct ur_engine *e)
{
	char pci[UR_PCI_ADDR_TEXT];
	const char *words = e->cfg.vdev[0] ? e->cfg.vdev : e->cfg.eal;

	if (!e->cfg.vdev[0] && ur_device_pci(&e->cfg, pci))
		words = pci;
	snprintf(e->info.ifname, sizeof(e->info.ifname), "%.*s", (int)strcspn(words, ", "), words);
}

static int describe_owned(struct ur_engine *e)
{
	char pci[UR_PCI_ADDR_TEXT];
	uint64_t h;

	if (!e->cfg.ip[0]) {
		ur_engine_set_error("a port of uroce's own has no address: give one with --ip ADDRESS/LENGTH");
		return EINVAL;
	}
	e->info.owned = true;
	e->is_nic = !e->cfg.vdev[0] && ur_device_pci(&e->cfg, pci);
	name_owned(e);
	/* The port's MAC address is known once it is open; until then one of our own, the same in each run. */
	h = ur_hash_bytes(UR_HASH_BEGIN, e->cfg.ip, strlen(e->cfg.ip));
	memcpy(e->info.mac.b, &h, 6);
	e->info.mac.b[0] = 0x02;
	if (e->cfg.vdev[0])
		e->info.mtu = ur_ethdev_mtu(e->cfg.vdev, (uint16_t)e->cfg.mtu);
	if (!e->info.mtu)
		e->info.mtu = (uint16_t)(e->cfg.mtu ? e->cfg.mtu : 1500);
	e->info.link_up = true;
	return 0;
}

static int describe_shared(struct ur_engine *e)
{
	char err[256];
	int r = ur_hostif_find(e->cfg.dev, &e->hostif, err, sizeof(err));

	if (r) {
		ur_engine_set_error("%s", err);
		return r;
	}
	snprintf(e->info.ifname, sizeof(e->info.ifname), "%s", e->hostif.name);
	e->info.mac = e->hostif.mac;
	e->info.mtu = e->hostif.mtu;
	e->info.link_up = e->hostif.up;
	e->info.speed_mbps = e->hostif.speed_mbps;
	return 0;
}

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

static struct ur_queue *sibling(void *ctx, uint8_t slot)
{
	return ur_local_to(((struct ur_engine *)ctx)->local, slot);
}

static void will(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad)
{
	struct ur_engine *e = ctx;

	if (e->will)
		ur_will_mad(e->will, place, to, mad);
}

static void will_groups(void *ctx, const struct ur_gid *groups, unsigned n)
{
	struct ur_engine *e = ctx;

	if (e->will)
		ur_will_groups(e->will, groups, n);
}

/* A port of our own is gone with us, and nobody could send by it. */
static void open_will(struct ur_engine *e)
{
	if (e->cfg.keeper && !e->info.owned && !e->onlooker)
		ur_will_open(e->hostif.name, e->hostif.ifindex, ur_progress_wake, e, &e->will);
}

static int create_nic(struct ur_engine *e)
{
	struct ur_nic_config nc = {.guid = e->info.guid,
				   .owned = e->info.owned,
				   .mac = e->info.mac,
				   .mtu = e->info.mtu,
				   .ctx = e,
				   .other_answers = other_answers,
				   .orphaned = orphaned,
				   .cc = e->cfg.cc != 0,
				   .reach = ur_reach_supported() ? ur_reach : NULL,
				   .copy = ur_reach_copy};
	int err;

	open_will(e);
	if (e->will) {
		nc.will = will;
		nc.will_groups = will_groups;
	}
	if (e->local) {
		nc.inbox = ur_local_inbox(e->local);
		nc.sibling = sibling;
		nc.alive = alive;
	}
	if (getrandom(&nc.seed, sizeof(nc.seed), 0) != sizeof(nc.seed)) {
		ur_engine_set_error("the kernel gives no random numbers (%s): allow the system call getrandom", strerror(errno));
		return EIO;
	}
	nc.slot = e->registry ? ur_registry_slot(e->registry) : (uint8_t)(1 + getpid() % 255);
	err = ur_nic_create(&nc, ur_engine_now(), &e->nic);
	explicit_bzero(&nc.seed, sizeof(nc.seed));
	if (err)
		ur_engine_set_error("cannot create the device: %s", strerror(err));
	return err;
}

static int apply_faults(struct ur_engine *e)
{
	struct ur_fault_spec spec;
	char err[256];

	if (!e->cfg.fault[0])
		return 0;
	if (ur_fault_parse(e->cfg.fault, &spec, err, sizeof(err))) {
		ur_engine_set_error("%s", err);
		return EINVAL;
	}
	return ur_faults_create(&spec, e->nic, &e->nic->faults);
}

int ur_device_open(struct ur_engine *e)
{
	int err;

	if (e->cfg.dev[0] && (e->cfg.vdev[0] || e->cfg.pci[0] || e->cfg.ip[0])) {
		ur_engine_set_error("an interface shared with the kernel (--dev %s) brings its own addresses: leave out --vdev, --pci "
				    "and --ip",
				    e->cfg.dev);
		return EINVAL;
	}
	if (e->cfg.vdev[0] && e->cfg.pci[0]) {
		ur_engine_set_error("--vdev and --pci name two devices: leave out one of them");
		return EINVAL;
	}
	err = e->cfg.vdev[0] || e->cfg.pci[0] || (e->cfg.eal[0] && !e->cfg.dev[0]) ? describe_owned(e) : describe_shared(e);
	if (err)
		return err;
	strcpy(e->info.name, "uroce0");
	e->info.guid = eui64(&e->info.mac);
	err = e->onlooker ? 0 : ur_registry_open(device_key(e), &e->registry);
	if (err == EAGAIN) {
		ur_engine_set_error("all 255 slots of this device are taken: end processes that use it ('ss -xap | grep uroce' shows who)");
		return err;
	}
	/* Any other failure (no descriptor is left) only means that the processes of this device do not know of one another. */
	if (e->registry)
		ur_local_open(e->registry, &e->local);
	err = create_nic(e);
	if (!err && !e->onlooker)
		err = ur_tracer_open(e, &e->tracer);
	if (!err && e->info.owned) {
		err = for_each_item(e, e->cfg.ip, add_owned_addr);
		if (!err)
			err = for_each_item(e, e->cfg.gw, add_owned_gateway);
	} else if (!err && (err = ur_hostif_sync(&e->hostif, e->nic->net))) {
		ur_engine_set_error("cannot read the addresses of interface '%s': %s", e->hostif.name, strerror(err));
	}
	return err ? err : apply_faults(e);
}

int ur_engine_processes(const struct ur_engine *e, struct ur_registry_view **out)
{
	return ur_registry_look(e->registry ? ur_registry_key(e->registry) : device_key(e), out);
}

static void tell(struct ur_engine *e, enum ibv_event_type type)
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
		tell(e, IBV_EVENT_GID_CHANGE);
	if (h.up && !was_up)
		ur_net_groups_again(e->nic->net, ur_engine_now());
	if (h.up != was_up)
		tell(e, h.up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

/*
 * The link of a port of our own, whose changes nobody announces. From the progress thread, without the NIC: a device may take its time to
 * answer.
 */
void ur_device_look_at_link(struct ur_engine *e)
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
	tell(e, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	ur_engine_unlock(e);
}

/* Where neighbours are ours to ask, lib/net knows by itself. */
static void neighbour_failed(void *ctx, const struct ur_gid *neighbour)
{
	struct ur_nic *nic = ((struct ur_engine *)ctx)->nic;

	if (nic->routed)
		ur_cm_unreachable(nic->cm, neighbour, nic->now);
}

void ur_device_hear(struct ur_engine *e)
{
	ur_engine_lock(e);
	if (ur_hostif_changed(e->monitor_fd, e->hostif.ifindex, neighbour_failed, e))
		refresh(e);
	ur_engine_unlock(e);
}
