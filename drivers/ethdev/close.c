/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing: let the device send what it has, stop it, and give everything back. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rte_bus_vdev.h>

#include "drivers/ethdev/io.h"

#define DRAIN_MAX_US 200000
#define FETCH_US 20000

/* In a child that shares DPDK's memory with its parent: lets go of the descriptors and touches nothing else. */
static void abandon(struct ur_ethdev *d)
{
	if (d->has_kif) {
		close(d->wake);
		ur_kif_close(&d->kif);
	}
	if (d->has_mcast_kif)
		ur_kif_close(&d->kif);
	free(d);
}

/*
 * What the NIC has not sent yet is lost when it stops. No driver says when it has: it gets the time that a full ring takes. A port in
 * shared memory takes with it what the peer has not fetched yet.
 */
static void drain(const struct ur_ethdev *d)
{
	uint64_t us = (uint64_t)d->tx_desc * d->max_frame * 8 / (d->port.speed_mbps ? d->port.speed_mbps : 1000);

	if (d->is_nic && ur_ethdev_has_link(d))
		nanosleep(&(struct timespec){.tv_nsec = (long)ur_min_u32((uint32_t)us + 1000, DRAIN_MAX_US) * 1000}, NULL);
	else if (!d->is_nic && !d->has_kif)
		nanosleep(&(struct timespec){.tv_nsec = FETCH_US * 1000L}, NULL);
}

/* Where a driver works in EAL's service thread, too, it takes no lock: DPDK 22.11's memif frees its rings there when the peer goes. */
static void where_driver_works(const struct ur_ethdev *d, void (*fn)(void *), void *arg)
{
	if (d->pmd && d->pmd->flags & UR_PMD_SERVICE)
		ur_eal_in_service(fn, arg);
	else
		fn(arg);
}

struct stopping {
	uint16_t id;
	int rc;
};

static void stop_device(void *arg)
{
	struct stopping *s = arg;

	s->rc = rte_eth_dev_stop(s->id);
}

int ur_ethdev_stop(const struct ur_ethdev *d)
{
	struct stopping s = {.id = d->id};

	where_driver_works(d, stop_device, &s);
	return s.rc;
}

static void stop_and_remove(void *arg)
{
	struct ur_ethdev *d = arg;

	if (d->configured)
		rte_eth_dev_stop(d->id);
	rte_eth_dev_close(d->id);
	if (d->is_vdev)
		rte_vdev_uninit(d->dev);
}

void ur_ethdev_close(struct ur_port *p)
{
	struct ur_ethdev *d = ur_ethdev_of(p);

	if (ur_eal_forked() && !ur_eal_private())
		return abandon(d);
	if (d->configured)
		drain(d);
	if (d->probed)
		where_driver_works(d, stop_and_remove, d);
	if (d->has_kif && !ur_eal_forked())
		ur_afp_restore(&d->kif, d->promisc);
	if (d->has_kif || d->has_mcast_kif)
		ur_kif_close(&d->kif);
	rte_mempool_free(d->pkts);
	rte_mempool_free(d->segs);
	ur_ethdev_dma_close(d);
	free(d);
}
