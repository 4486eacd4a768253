/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening: probe a device, size its buffers, configure one queue pair. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>

#include "drivers/ethdev/io.h"
#include "drivers/pci/pci.h"

#define PKTS_DEFAULT 2048
#define SEGS 1024
#define CACHE 128 /* the burst a caller holds, twice over: more would only spread the working set over the L2 cache */
#define RX_DESC 512
#define TX_DESC 512
#define VLAN_TAG 4
#define MEET_TRIES 300 /* of MEET_WAIT_MS each: three seconds */
#define MEET_WAIT_MS 10
#define MEET_AGAIN 25
#define PAGE 4096 /* the smallest that an IOMMU has, on x86 and arm64 */
#define ANYWHERE (1u << 31)
/* The other end of a NIC's cable may tell it to pause (IEEE 802.3x, PFC), and an emulated NIC's host may be busy: nothing is lost then. */
#define NIC_PATIENCE_NS (200 * UR_NS_PER_MS)
#define MIN_LIMIT 512  /* a device whose frames are shorter carries not even the smallest RoCE MTU */
/* Measured with test/bench/portbench: two more mbufs cost what a copy of 1 KiB costs, and win from 2 KiB. */
#define CHAIN_MIN 1536
#define CHAIN_MIN_NIC 512 /* not measured: beside the instructions, a copy takes twice the memory's bandwidth and room in the cache */

/*
 * af_packet's ring. Frames divide blocks without remainder (DPDK assumes it), blocks nearly fill a power of two pages (the kernel
 * allocates that), and both rings together stay below 8 MB, the usual limit on locked memory.
 */
struct ring_shape {
	unsigned frame, block, count;
};

static const struct ring_shape ring_small = {2048, 65536, 1536};
static const struct ring_shape ring_full = {4608, 258048, 784};
#define RING_FRAME_OVERHEAD 80 /* kernel's header, address and alignment in each frame of the ring */

static const struct ring_shape *ring_for(uint16_t mtu)
{
	return mtu + UR_ETH_OVERHEAD + RING_FRAME_OVERHEAD <= (int)ring_small.frame ? &ring_small : &ring_full;
}

/* From the narrowest that the device can do to the widest. */
static int set_device_mcast(struct ur_ethdev *d, const struct ur_mac *macs, unsigned n)
{
	int rc;

	_Static_assert(sizeof(struct ur_mac) == sizeof(struct rte_ether_addr), "the list is handed on as it is");
	rc = rte_eth_dev_set_mc_addr_list(d->id, (struct rte_ether_addr *)(uintptr_t)macs, n);
	if (rc)
		rc = n ? rte_eth_allmulticast_enable(d->id) : rte_eth_allmulticast_disable(d->id);
	if (rc)
		rc = n ? rte_eth_promiscuous_enable(d->id) : rte_eth_promiscuous_disable(d->id);
	return rc == -ENOTSUP ? EOPNOTSUPP : -rc;
}

static int set_mcast(struct ur_port *p, const struct ur_mac *macs, unsigned n)
{
	struct ur_ethdev *d = ur_ethdev_of(p);

	if (d->has_kif || d->has_mcast_kif)
		return ur_kif_set_mcast(&d->kif, macs, n);
	if (d->pmd && (d->pmd->flags & UR_PMD_ALL_FRAMES))
		return 0;
	return set_device_mcast(d, macs, n);
}

static int wake_fd(struct ur_queue *q)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);

	return d->wake;
}

/* The interrupt of the receive queue. What it counted is taken only when no more should come, or one that comes meanwhile would be lost. */
static void arm(struct ur_queue *q, bool on)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);
	uint64_t count;

	if (on) {
		rte_eth_dev_rx_intr_enable(d->id, 0);
		return;
	}
	rte_eth_dev_rx_intr_disable(d->id, 0);
	while (read(d->wake, &count, sizeof(count)) < 0 && errno == EINTR)
		continue;
}

static bool link_up(struct ur_port *p)
{
	struct ur_ethdev *d = ur_ethdev_of(p);

	return d->has_kif ? ur_kif_running(&d->kif) : ur_ethdev_has_link(d);
}

static const struct ur_queue_ops queue_ops = {
	.rx = ur_ethdev_rx,
	.tx = ur_ethdev_tx,
	.alloc = ur_ethdev_alloc,
	.release = ur_ethdev_release,
	.wake_fd = wake_fd,
	.enter = ur_ethdev_enter,
	.leave = ur_ethdev_leave,
};

static const struct ur_port_ops ops = {
	.set_mcast = set_mcast,
	.link_up = link_up,
	.close = ur_ethdev_close,
};

void ur_ethdev_stats(struct ur_port *p, struct ur_ethdev_stats *out)
{
	struct ur_ethdev *d = ur_ethdev_of(p);
	struct rte_eth_stats st;

	*out = d->stats;
	out->tx_chained = d->queue.tx_chained;
	out->tx_gathered = d->queue.tx_gathered;
	if (rte_eth_stats_get(d->id, &st) == 0)
		out->dev_missed = st.imissed + st.rx_nombuf;
}

/* Does a driver of the bus of virtual devices know the name? */
static bool has_driver(const char *dev)
{
	struct rte_devargs da;
	bool known;

	memset(&da, 0, sizeof(da));
	known = rte_devargs_parse(&da, dev) == 0;
	free(da.data); /* rte_devargs_reset is not stable yet */
	return known;
}

static int probe_vdev(struct ur_ethdev *d, const char *args, char *err, size_t errlen)
{
	int rc = rte_vdev_init(d->dev, args);

	if (rc == -EEXIST)
		return ur_port_fail(err, errlen, EEXIST, "the device '%s' is already open: give the second one another number", d->dev);
	if (rc)
		return has_driver(d->dev) ? ur_port_fail(err, errlen, EIO, "DPDK cannot open '%s%s%s' with these arguments (%s)%s", d->dev,
							 *args ? "," : "", args, ur_eal_last_log(), ur_eal_more_log())
					  : ur_port_fail(err, errlen, EINVAL,
							 "DPDK has no driver for '%s': the name of a virtual device is that of its driver "
							 "and a number, such as net_memif0, net_tap0 or net_af_packet0",
							 d->dev);
	d->is_vdev = true;
	return 0;
}

static int probe_kif(struct ur_ethdev *d, char *err, size_t errlen)
{
	static atomic_uint serial;
	const struct ring_shape *r = ring_for(d->kif.mtu);
	struct ur_afp_fds before;
	char args[160];
	int rc;

	snprintf(d->dev, sizeof(d->dev), "net_af_packet%u", atomic_fetch_add(&serial, 1));
	snprintf(args, sizeof(args), "iface=%s,blocksz=%u,framesz=%u,framecnt=%u,qdisc_bypass=0", d->kif.name, r->block, r->frame,
		 r->count);
	ur_afp_scan(&d->kif, &before);
	rc = probe_vdev(d, args, err, errlen);
	if (rc)
		return rc;
	rc = ur_afp_adopt(&d->kif, &before, &d->wake);
	return rc ? ur_port_fail(err, errlen, rc, "the packet socket of %s was not found: is /proc mounted?", d->kif.name) : 0;
}

static int probe_given_vdev(struct ur_ethdev *d, const char *vdev, char *args, size_t argslen, char *err, size_t errlen)
{
	size_t n = strcspn(vdev, ",");

	if (n >= sizeof(d->dev) || ur_pmd_args(ur_pmd_find(vdev), vdev[n] ? vdev + n + 1 : "", args, argslen))
		return ur_port_fail(err, errlen, EINVAL, "the device description is too long: '%.60s...'", vdev);
	snprintf(d->dev, sizeof(d->dev), "%.*s", (int)n, vdev);
	ur_pmd_unlink_stale(args);
	return probe_vdev(d, args, err, errlen);
}

/* DPDK calls a NIC as the EAL arguments do, in the long or the short form. */
static bool find_nic(struct ur_ethdev *d)
{
	char name[RTE_ETH_NAME_MAX_LEN], addr[UR_PCI_ADDR_TEXT];
	uint16_t id;

	RTE_ETH_FOREACH_DEV(id)
	{
		if (rte_eth_dev_get_name_by_port(id, name) || !ur_pci_addr(name, addr) || strcmp(addr, d->dev))
			continue;
		snprintf(d->dev, sizeof(d->dev), "%s", name);
		return true;
	}
	return false;
}

static int probe(struct ur_ethdev *d, const struct ur_ethdev_config *cfg, char *args, size_t argslen, char *err, size_t errlen)
{
	int rc = 0;

	if (d->has_kif) {
		rc = probe_kif(d, err, errlen);
	} else if (cfg->vdev) {
		rc = probe_given_vdev(d, cfg->vdev, args, argslen, err, errlen);
	} else {
		snprintf(d->dev, sizeof(d->dev), "%s", cfg->pci);
		if (!find_nic(d) && rte_dev_probe(d->dev))
			return ur_ethdev_why_no_nic(cfg->pci, err, errlen);
	}
	if (rc == 0 && rte_eth_dev_get_port_by_name(d->dev, &d->id))
		rc = ENODEV;
	else if (rc == 0)
		d->probed = true;
	if (rc == ENODEV)
		return cfg->pci ? ur_ethdev_why_no_nic(cfg->pci, err, errlen)
				: ur_port_fail(err, errlen, rc, "'%s' is not an Ethernet device", d->dev);
	return rc;
}

static int make_pools(struct ur_ethdev *d, unsigned npkts, int socket, char *err, size_t errlen)
{
	unsigned room = UR_PKT_ROOM;
	char name[32];

	if (d->has_kif && ring_for(d->kif.mtu)->frame > room)
		room = ring_for(d->kif.mtu)->frame; /* DPDK asks for the whole frame of the ring */
	snprintf(name, sizeof(name), "uroce_pkts%u", d->id);
	d->pkts = rte_pktmbuf_pool_create(name, npkts ? npkts : PKTS_DEFAULT, CACHE, UR_EPKT_PRIV, (uint16_t)(room + RTE_PKTMBUF_HEADROOM),
					  socket);
	snprintf(name, sizeof(name), "uroce_segs%u", d->id);
	if (d->pkts && d->chains)
		d->segs = rte_pktmbuf_pool_create(name, SEGS, CACHE, UR_ESEG_PRIV, UR_ESEG_ROOM + RTE_PKTMBUF_HEADROOM, socket);
	if (!d->pkts || (d->chains && !d->segs))
		return ur_port_fail(err, errlen, ENOMEM,
				    "out of memory for packet buffers (%s): allow EAL more with -m, or free huge pages",
				    rte_strerror(rte_errno));
	return 0;
}

/* The port's MTU and longest frame. A device that the kernel has too keeps the kernel's MTU: DPDK must not change it. */
static int settle_mtu(struct ur_ethdev *d, const struct ur_ethdev_config *cfg, const char *args, char *err, size_t errlen)
{
	const uint32_t room = UR_PKT_ROOM - UR_ETH_OVERHEAD;
	unsigned long limit = UR_PKT_ROOM;
	uint16_t mtu = cfg->mtu;

	if (mtu > room)
		return ur_port_fail(err, errlen, EINVAL, "an MTU of %u is more than a packet buffer holds: at most %u", mtu, room);
	if (d->has_kif) {
		if (mtu > d->kif.mtu)
			return ur_port_fail(err, errlen, EINVAL, "%s has an MTU of %u, less than %u: ip link set %s mtu %u", d->kif.name,
					      d->kif.mtu, mtu, d->kif.name, mtu);
		mtu = mtu ? mtu : d->kif.mtu;
	} else if (d->pmd && d->pmd->mtu) {
		mtu = mtu ? mtu : d->pmd->mtu;
	} else {
		if (mtu && rte_eth_dev_set_mtu(d->id, mtu))
			return ur_port_fail(err, errlen, EINVAL, "%s does not accept an MTU of %u: choose a smaller one", d->dev, mtu);
		rte_eth_dev_get_mtu(d->id, &mtu);
		if (mtu > room && rte_eth_dev_set_mtu(d->id, (uint16_t)room) == 0)
			mtu = (uint16_t)room; /* a hypervisor may offer more than a packet buffer holds */
	}
	if (d->pmd && d->pmd->limit)
		limit = ur_pmd_arg_num(args, d->pmd->limit, UR_PKT_ROOM);
	if (limit < MIN_LIMIT)
		return ur_port_fail(err, errlen, EINVAL, "%s carries frames of %lu bytes only: give it %u or more", d->dev, limit,
				      MIN_LIMIT);
	d->port.mtu = ur_pmd_mtu(d->pmd, args, mtu);
	d->max_frame = d->port.mtu + UR_ETH_OVERHEAD - VLAN_TAG;
	return 0;
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = MEET_WAIT_MS * 1000000}, NULL);
}

/* Negotiation takes a NIC seconds, and what is sent before is lost; a cable that is not there keeps nobody from starting. */
static void wait_for_link(const struct ur_ethdev *d)
{
	for (unsigned i = 0; i < MEET_TRIES && !ur_ethdev_has_link(d); i++)
		wait_a_little();
}

/*
 * A client whose server is not there yet waits for it: programs on both sides may open their ports at the same moment. And it waits until
 * both have agreed on their rings: what is sent before is lost, and the first packets of a short-tempered program are soon given up.
 */
static int start_port(const struct ur_ethdev *d, const char *args)
{
	bool client = ur_pmd_is_client(d->pmd, args);
	int rc = rte_eth_dev_start(d->id);

	for (unsigned i = 0; client && i < MEET_TRIES && (rc || !ur_ethdev_has_link(d)); i++) {
		wait_a_little();
		/* A server that is there but not open yet turns its client away, which does not come back by itself. */
		if (!rc && i % MEET_AGAIN == MEET_AGAIN - 1 && !ur_ethdev_has_link(d))
			rc = ur_ethdev_stop(d) ? 0 : EAGAIN;
		if (rc)
			rc = rte_eth_dev_start(d->id);
	}
	return rc;
}

/* Headers, what they refer to, and the tail: a buffer each. */
static bool can_chain(const struct rte_eth_dev_info *info)
{
	uint16_t most = info->tx_desc_lim.nb_mtu_seg_max;

	return info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS && (!most || most >= UR_ETHDEV_CHAIN);
}

/* Positive errnos have their sentence. */
static int set_up(struct ur_ethdev *d, const struct ur_ethdev_config *cfg, const char *args, const struct rte_eth_dev_info *info,
		  const struct rte_eth_conf *conf, char *err, size_t errlen)
{
	unsigned socket = (unsigned)rte_eth_dev_socket_id(d->id);
	struct rte_eth_txconf txc = info->default_txconf;
	uint16_t nrx = RX_DESC, ntx = TX_DESC;
	int rc = rte_eth_dev_configure(d->id, 1, 1, conf);

	rc = rc ? rc : settle_mtu(d, cfg, args, err, errlen);
	rc = rc ? rc : rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &nrx, &ntx);
	rc = rc ? rc : rte_eth_rx_queue_setup(d->id, 0, nrx, socket, NULL, d->pkts);
	d->tx_desc = ntx;
	txc.offloads = conf->txmode.offloads;
	rc = rc ? rc : rte_eth_tx_queue_setup(d->id, 0, ntx, socket, &txc);
	return rc ? rc : start_port(d, args);
}

/* Drivers without these filters let all addresses or tags in. */
static int let_in(struct ur_ethdev *d, const struct ur_ethdev_config *cfg, const struct rte_eth_conf *conf, char *err, size_t errlen)
{
	const bool filters = conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;

	if (cfg->promisc && !(d->pmd && d->pmd->flags & UR_PMD_ALL_FRAMES) && rte_eth_promiscuous_enable(d->id))
		return ur_port_fail(err, errlen, EIO, "%s receives no frames for others: choose another port", d->dev);
	for (unsigned i = 0; filters && i < cfg->nvlans; i++) {
		int rc = rte_eth_dev_vlan_filter(d->id, cfg->vlans[i], 1);

		if (rc)
			return ur_port_fail(err, errlen, EIO, "%s does not accept VLAN %u: %s", d->dev, cfg->vlans[i], rte_strerror(-rc));
	}
	return 0;
}

/* Sleeping needs the interrupt and its descriptor; without them the engine naps. */
static void use_interrupt(struct ur_ethdev *d, const struct rte_eth_conf *conf)
{
	int fd = conf->intr_conf.rxq ? rte_eth_dev_rx_intr_ctl_q_get_fd(d->id, 0) : -1, flags = fcntl(fd, F_GETFL);

	if (fd < 0 || flags < 0 || rte_eth_dev_rx_intr_enable(d->id, 0))
		return;
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	d->wake = fd;
	d->queue_ops.arm = arm;
	arm(&d->queue, false);
}

static int configure(struct ur_ethdev *d, const struct ur_ethdev_config *cfg, const char *args, char *err, size_t errlen)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(d->id, &info), socket = rte_eth_dev_socket_id(d->id);

	if (rc)
		return ur_port_fail(err, errlen, EIO, "cannot query the properties of %s: %s", d->dev, rte_strerror(-rc));
	d->pmd = ur_pmd_find(info.driver_name);
	d->chains = can_chain(&info) && cfg->chain_min != UINT32_MAX;
	if (d->is_nic)
		d->chains = d->chains && ur_ethdev_dma_open(d);
	else
		d->chains = d->chains && d->pmd && (d->pmd->flags & UR_PMD_COPIES) && !ur_pmd_arg_is(args, "zero-copy", "yes");
	d->dma = d->is_nic && d->chains;
	d->piece = d->pmd && d->pmd->flags & UR_PMD_PAGES ? PAGE : ANYWHERE;
	d->chain_min = cfg->chain_min ? cfg->chain_min : d->dma ? CHAIN_MIN_NIC : CHAIN_MIN;
	if (!d->chains)
		d->queue.caps |= UR_QUEUE_COPIES;
	rc = make_pools(d, cfg->npkts, socket, err, errlen);
	/* Not between queues and start: drivers that are closed there have panicked. */
	rc = rc || !cfg->pci ? rc : ur_ethdev_check_memory(cfg->pci, err, errlen);
	if (rc)
		return rc;
	conf.txmode.offloads = info.tx_offload_capa & (d->chains ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
	conf.rxmode.offloads = cfg->nvlans ? info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER : 0;
	conf.intr_conf.lsc = cfg->pci && *info.dev_flags & RTE_ETH_DEV_INTR_LSC; /* asking for the link then costs nothing */
	conf.intr_conf.rxq = d->is_nic && d->pmd && d->pmd->flags & UR_PMD_WAKES;
	rc = set_up(d, cfg, args, &info, &conf, err, errlen);
	if (rc < 0 && conf.intr_conf.rxq) { /* perhaps it has no interrupt to sleep on */
		conf.intr_conf.rxq = 0;
		rc = set_up(d, cfg, args, &info, &conf, err, errlen);
	}
	if (rc > 0)
		return rc;
	if (rc)
		return ur_port_fail(err, errlen, EIO, "cannot start %s: %s (%s)", d->dev, rte_strerror(-rc), ur_eal_last_log());
	d->configured = true;
	rc = cfg->pci ? ur_ethdev_check_memory(cfg->pci, err, errlen) : 0; /* the rings' */
	rc = rc ? rc : let_in(d, cfg, &conf, err, errlen);
	if (!rc && d->is_nic) {
		use_interrupt(d, &conf);
		wait_for_link(d);
	}
	return rc;
}

/* The packet socket has received since it was made, a little before it had its filter: the kernel's own frames as well. */
static void forget_early_frames(struct ur_ethdev *d)
{
	struct rte_mbuf *early[32];
	uint16_t n;

	for (unsigned i = 0; i < 64 && (n = rte_eth_rx_burst(d->id, 0, early, ur_array_size(early))) > 0; i++)
		rte_pktmbuf_free_bulk(early, n);
}

static void describe(struct ur_ethdev *d)
{
	struct rte_eth_link link = {0};
	struct rte_ether_addr mac;

	d->queue.ops = &d->queue_ops;
	d->port.ops = &d->port_ops;
	d->port.queue = &d->queue;
	if (d->is_nic) {
		d->queue.patience_ns = NIC_PATIENCE_NS;
		ur_ethdev_dma_ops(d);
	}
	snprintf(d->port.name, sizeof(d->port.name), "%s", d->has_kif ? d->kif.name : d->dev);
	if (d->has_kif) {
		ur_afp_restore(&d->kif, d->promisc);
		forget_early_frames(d);
		d->port.mac = d->kif.mac;
		d->port.speed_mbps = ur_kif_speed(&d->kif);
	} else if (rte_eth_macaddr_get(d->id, &mac) == 0) {
		memcpy(d->port.mac.b, mac.addr_bytes, 6);
	}
	if (!d->port.speed_mbps && rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		d->port.speed_mbps = link.link_speed;
}

/* What can go wrong here DPDK has said better already. */
static void find_kernel_if(struct ur_ethdev *d, const char *args)
{
	char name[IFNAMSIZ];

	if (!d->has_kif && d->pmd && d->pmd->flags & UR_PMD_KERNEL_IF && ur_pmd_arg_text(args, "iface", name, sizeof(name)))
		d->has_mcast_kif = ur_kif_open_for_mcast(&d->kif, name) == 0;
}

static int check_config(const struct ur_ethdev_config *cfg, char *err, size_t errlen)
{
	const struct ur_pmd *pmd = cfg->vdev ? ur_pmd_find(cfg->vdev) : NULL;
	const char *name = cfg->ifname ? cfg->ifname : cfg->vdev ? cfg->vdev : cfg->pci;
	bool shares;

	if (!!cfg->ifname + !!cfg->vdev + !!cfg->pci != 1)
		return ur_port_fail(err, errlen, EINVAL, "name one device: an interface, a virtual device or a PCI address");
	shares = ur_ethdev_shares_memory(cfg);
	if (ur_eal_forked() && (!ur_eal_private() || shares || (pmd && (pmd->flags & UR_PMD_SERVICE))))
		return ur_port_fail(err, errlen, EOPNOTSUPP,
				      "a forked child cannot open '%s': use a kernel interface, or exec after fork", name);
	if (shares && ur_eal_started() && ur_eal_private())
		return ur_port_fail(err, errlen, EOPNOTSUPP, "'%s' must be the first device that the process opens", name);
	return 0;
}

static bool wants_signals(const struct ur_ethdev_config *cfg)
{
	const struct ur_pmd *pmd = cfg->vdev ? ur_pmd_find(cfg->vdev) : NULL;

	return pmd && pmd->flags & UR_PMD_SIGNALS;
}

int ur_ethdev_open(const struct ur_ethdev_config *cfg, struct ur_port **out, char *err, size_t errlen)
{
	struct ur_eal_guard *guard;
	char args[1024] = "";
	struct ur_ethdev *d;
	int rc = check_config(cfg, err, errlen);

	if (rc)
		return rc;
	d = calloc(1, sizeof(*d));
	if (!d)
		return ur_port_fail(err, errlen, ENOMEM, "out of memory");
	rc = cfg->ifname ? ur_kif_open(&d->kif, cfg->ifname, err, errlen) : 0;
	d->has_kif = cfg->ifname && rc == 0;
	d->is_nic = cfg->pci != NULL;
	d->queue_ops = queue_ops;
	d->port_ops = ops;
	d->wake = -1;
	ur_vfio_find(NULL, &d->vfio);
	rc = rc || !d->has_kif ? rc : ur_afp_check(&d->kif, &d->promisc, err, errlen);
	rc = rc || !cfg->pci ? rc : ur_ethdev_check_nic(cfg->pci, err, errlen);
	rc = rc ? rc : ur_eal_start(cfg, err, errlen);
	if (rc) {
		ur_ethdev_close(&d->port);
		return rc;
	}
	ur_eal_forget_log();
	guard = ur_eal_guard_begin(); /* drivers start threads too */
	if (guard && wants_signals(cfg))
		ur_eal_guard_hide_signals(guard);
	rc = probe(d, cfg, args, sizeof(args), err, errlen);
	rc = rc ? rc : configure(d, cfg, args, err, errlen);
	if (guard)
		ur_eal_guard_end(guard);
	if (rc) {
		ur_ethdev_close(&d->port);
		return rc;
	}
	d->lcore = rte_get_main_lcore();
	find_kernel_if(d, args);
	describe(d);
	*out = &d->port;
	return 0;
}
