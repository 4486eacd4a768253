/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of a device: DPDK's if only this process uses it; for an interface shared with the kernel one of the kinds in a table: the one
 * that the setting `port` names, or the first that can be opened.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drivers/packet/packet.h"
#include "drivers/udp/udp.h"
#include "engine/dpdk/dpdk.h"
#include "engine/internal.h"
#include "wire/frame.h"

#define SENTENCE 400
#define TURN_MS 500 /* how long we wait for another process that joins those that share the port */
#define STEER_AGAIN_NS UR_NS_PER_MS

static struct ur_ethdev_config ethdev_config(const struct ur_engine *e)
{
	return (struct ur_ethdev_config){.eal_args = e->cfg.eal[0] ? e->cfg.eal : NULL, .mtu = (uint16_t)e->cfg.mtu};
}

/*
 * The process of which a thread is loading or starting DPDK, or opens a device; 0: none. A child that is forked meanwhile has a piece of
 * what that makes, and locks that nobody will release.
 */
static atomic_int in_dpdk;

/* One device after the other. */
static int open_ethdev(const struct ur_ethdev_config *ec, struct ur_port **out, char *err)
{
	static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
	int pid = atomic_load(&in_dpdk), r;
	const struct ur_ethdev_module *dpdk;

	if (pid && pid != getpid()) {
		snprintf(err, SENTENCE,
			 "this process was forked while its parent was starting DPDK, and has only a piece of it: exec after fork");
		return EOPNOTSUPP;
	}
	pthread_mutex_lock(&opening);
	atomic_store(&in_dpdk, getpid());
	r = ur_dpdk(&dpdk, err, SENTENCE);
	r = r ? r : dpdk->open(ec, out, err, SENTENCE);
	atomic_store(&in_dpdk, 0);
	pthread_mutex_unlock(&opening);
	return r;
}

/* Those of the addresses, of which several may be in one. */
static unsigned vlans_of(const struct ur_net *net, uint16_t vlans[UR_NET_GIDS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < UR_NET_GIDS; i++) {
		const struct ur_net_addr *a = ur_net_gid(net, i);

		if (a && a->vlan)
			vlans[n++] = a->vlan;
	}
	return n;
}

static int open_owned(struct ur_engine *e, struct ur_port **out, char *err)
{
	struct ur_ethdev_config ec = ethdev_config(e);
	uint16_t vlans[UR_NET_GIDS];
	char pci[UR_PCI_ADDR_TEXT];

	ec.vlans = vlans;
	pthread_mutex_lock(&e->nic_lock); /* application threads look up addresses meanwhile */
	ec.nvlans = vlans_of(e->nic->net, vlans);
	pthread_mutex_unlock(&e->nic_lock);
	if (e->cfg.vdev[0]) {
		ec.vdev = e->cfg.vdev;
	} else if (ur_device_pci(&e->cfg, pci)) {
		ec.pci = pci;
		ec.pci_args = e->cfg.pci[0] ? e->cfg.pci + strcspn(e->cfg.pci, ",") : NULL;
	} else {
		snprintf(err, SENTENCE, "the EAL arguments '%s' name no device: use --pci, --dev or --vdev", e->cfg.eal);
		return EINVAL;
	}
	return open_ethdev(&ec, out, err);
}

/* --- kinds of port for a shared interface --- */

static int open_dpdk(struct ur_engine *e, struct ur_port **out, char *err)
{
	struct ur_ethdev_config ec = ethdev_config(e);

	ec.ifname = e->hostif.name;
	return open_ethdev(&ec, out, err);
}

static int open_packet(struct ur_engine *e, struct ur_port **out, char *err)
{
	const struct ur_packet_config pc = {.ifname = e->hostif.name, .mtu = (uint16_t)e->cfg.mtu};

	return ur_packet_open(&pc, out, err, SENTENCE);
}

/* Tells the kernel which of the processes gets what; without it the NIC passes on what is another process's. */
static void steer(struct ur_engine *e, struct ur_port *port, const uint8_t *slots, unsigned n)
{
	struct ur_port_sharing s = {.sharers = n};
	uint16_t ports[UR_PORTS_LISTENED];

	memcpy(s.slot, slots, n);
	for (unsigned i = 0; i < n; i++) {
		unsigned listens = ur_registry_listened(e->registry, slots[i], ports);

		for (unsigned j = 0; j < listens && s.listens < UR_PORT_LISTENS; j++, s.listens++) {
			s.listen[s.listens].port = ports[j];
			s.listen[s.listens].sharer = (uint8_t)i;
		}
	}
	port->ops->steer(port, &s);
}

/* The processes that share the socket's port take turns to open and close it, so that all know the order in which they did. */
static int open_in_turn(struct ur_engine *e, struct ur_port **out, char *err)
{
	const struct ur_udp_config uc = {
		.ifname = e->hostif.name, .mac = e->hostif.mac, .mtu = e->hostif.mtu, .speed_mbps = e->hostif.speed_mbps};
	uint8_t slots[256];
	unsigned n = e->registry ? ur_registry_sharers_begin(e->registry, slots, false) : 0;
	int r = ur_udp_open(&uc, out, err, SENTENCE);

	if (!r && e->registry) {
		slots[n++] = ur_registry_slot(e->registry);
		steer(e, *out, slots, n);
	}
	if (e->registry)
		ur_registry_sharers_end(e->registry, !r);
	return r;
}

static bool has_turn(struct ur_engine *e)
{
	bool ours;

	pthread_mutex_lock(&e->nic_lock);
	ours = !e->registry || ur_registry_turn(e->registry);
	pthread_mutex_unlock(&e->nic_lock);
	return ours;
}

/* The lock is for the registry, which application threads use as well; nobody waits with it. */
static int open_udp(struct ur_engine *e, struct ur_port **out, char *err)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int r;

	for (unsigned i = 0; i < TURN_MS && !has_turn(e); i++)
		nanosleep(&ms, NULL);
	pthread_mutex_lock(&e->nic_lock);
	r = open_in_turn(e, out, err);
	pthread_mutex_unlock(&e->nic_lock);
	return r;
}

static void close_plain(struct ur_engine *e, struct ur_port *port)
{
	(void)e;
	port->ops->close(port);
}

/* Under the lock. */
static void close_udp(struct ur_engine *e, struct ur_port *port)
{
	uint8_t slots[256];
	unsigned n;

	if (!e->registry) {
		close_plain(e, port);
		return;
	}
	n = ur_registry_sharers_begin(e->registry, slots, true);
	steer(e, port, slots, n);
	port->ops->close(port);
	ur_registry_sharers_end(e->registry, false);
}

/*
 * Under the lock. One that has the socket for itself gets all there is. While another process joins or leaves, that is put off: until then
 * requests for the new port may have to be passed on.
 */
static void listens_udp(struct ur_engine *e, struct ur_port *port)
{
	uint8_t slots[256];
	unsigned n;

	if (!e->registry)
		return;
	if (!ur_registry_turn(e->registry)) {
		atomic_store(&e->steer_at, ur_engine_now() + STEER_AGAIN_NS);
		ur_progress_wake(e);
		return;
	}
	n = ur_registry_sharers_begin(e->registry, slots, false);
	if (n > 1)
		steer(e, port, slots, n);
	ur_registry_sharers_end(e->registry, false);
}

/* In the order in which `auto` tries them. */
static const struct ur_port_kind kinds[] = {
	{"udp", true, false, open_udp, close_udp, listens_udp},
	{"packet", false, true, open_packet, close_plain, NULL},
	{"dpdk", false, true, open_dpdk, close_plain, NULL},
};

static const struct ur_port_kind owned = {"dpdk", false, false, open_owned, close_plain, NULL};

static int open_shared(struct ur_engine *e, struct ur_port **out, char *err)
{
	const char *wanted = e->lane ? e->device->kind->name : e->cfg.port;
	bool any = !strcmp(wanted, "auto");
	char other[SENTENCE] = "";
	int r = 0;

	for (unsigned i = 0; i < ur_array_size(kinds); i++) {
		int failed;

		if (!any && strcmp(wanted, kinds[i].name))
			continue;
		failed = kinds[i].open(e, out, r ? other : err);
		if (!failed) {
			e->kind = &kinds[i];
			if (r && strcmp(e->cfg.log, "error"))
				fprintf(stderr, "uroce: the port is %s, because %s\n", kinds[i].name, err);
			return 0;
		}
		r = r ? r : failed;
	}
	if (!r) {
		snprintf(err, SENTENCE, "there is no kind of port '%s': choose auto, udp, packet or dpdk", e->cfg.port);
		return EINVAL;
	}
	return r;
}

int ur_engine_port_open(struct ur_engine *e, struct ur_port **out)
{
	struct ur_port *inherited = ur_engine_take_inherited_port(e);
	char err[SENTENCE] = "";
	bool obstacle;
	int r;

	if (inherited)
		inherited->ops->close(inherited);
	e->kind = &owned;
	r = e->info.owned ? owned.open(e, out, err) : open_shared(e, out, err);
	if (r) {
		ur_engine_set_error("%s", err);
		return r;
	}
	pthread_mutex_lock(&e->nic_lock);
	obstacle = ur_device_obstacle(&e->info, &e->hostif, e->nic->net, err, sizeof(err));
	pthread_mutex_unlock(&e->nic_lock);
	if (obstacle && !e->lane)
		fprintf(stderr, "uroce: %s\n", err);
	if (e->kind->frames && !e->lane)
		e->silence_fd = ur_hostif_silence((*out)->queue->train_pkts > 1);
	if (!e->info.owned && !e->lane)
		e->monitor_fd = ur_hostif_monitor();
	pthread_mutex_lock(&e->info_lock);
	if (ur_mac_is_host(&(*out)->mac))
		e->info.mac = (*out)->mac;
	e->info.mtu = (*out)->mtu;
	if ((*out)->speed_mbps)
		e->info.speed_mbps = (*out)->speed_mbps;
	if (e->info.owned && (*out)->ops->link_up)
		e->info.link_up = (*out)->ops->link_up(*out);
	pthread_mutex_unlock(&e->info_lock);
	return 0;
}

void ur_engine_port_listens(struct ur_engine *e)
{
	if (e->kind->listens)
		e->kind->listens(e, e->nic->port);
}

void ur_engine_check_group(struct ur_engine *e, const struct ur_gid *group)
{
	char text[UR_IP_TEXT];

	if (e->warned_of_scope || group->raw[0] != 0xff || (group->raw[1] & 15) > 1 || !e->nic->port ||
	    !(e->nic->port->queue->caps & UR_QUEUE_LOCAL_SCOPE) || !strcmp(e->cfg.log, "error"))
		return;
	e->warned_of_scope = true;
	fprintf(stderr,
		"uroce: datagrams to %s do not leave this host, because its scope is interface-local: use a group of ff02::/16 or of a "
		"wider scope, or choose --port packet as root\n",
		ur_gid_ip(group, text));
}

void ur_engine_port_close(struct ur_engine *e)
{
	e->kind->close(e, e->nic->port);
}

void ur_engine_port_info(struct ur_engine *e, struct ur_device_info *info)
{
	ur_engine_info(e, info);
	if (ur_engine_started(e) && e->nic->port->ops->link_up)
		info->link_up = e->nic->port->ops->link_up(e->nic->port);
}
