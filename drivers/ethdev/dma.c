/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs that read a program's memory by themselves, behind an IOMMU: showing it to them, and having them let go of it. A driver gives a
 * buffer back when it needs its place in the ring, and so not at all while nothing more is sent. Frames that go nowhere make it do so:
 * to the NIC's own address, which no switch forwards to where it came from, with an EtherType for experiments (IEEE 802, 0x88b5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bytes.h"
#include "drivers/ethdev/io.h"

#define ETHERTYPE_NOWHERE 0x88b5
#define NOWHERE_LEN 60

/* --- showing --- */

static unsigned long long lockable_kib(void)
{
	struct rlimit r = {0};

	getrlimit(RLIMIT_MEMLOCK, &r);
	return r.rlim_cur / 1024;
}

static int why_not(int rc, const struct ur_ethdev *d, size_t len, char *err, size_t errlen)
{
	if (rc == ENOMEM)
		return ur_port_fail(err, errlen, rc,
				    "%zu KiB of registered memory cannot be locked for %s, so what is sent from there is copied: raise the "
				    "limit on locked memory, 'ulimit -l', which is %llu KiB",
				    len / 1024, d->dev, lockable_kib());
	if (rc == ENOSPC)
		return ur_port_fail(err, errlen, rc,
				    "too many pieces of memory are mapped for %s, so what is sent from others is copied: register fewer "
				    "and larger ones, or raise vfio_iommu_type1.dma_entry_limit",
				    d->dev);
	return ur_port_fail(err, errlen, rc,
			    "registered memory cannot be mapped for %s (%s), so what is sent from there is copied: it may be mapped from a "
			    "file, or not be writable",
			    d->dev, strerror(rc));
}

static int map(struct ur_port *p, void *addr, size_t len, struct ur_dma *dma, char *err, size_t errlen)
{
	struct ur_ethdev *d = ur_ethdev_of(p);
	int rc;

	dma->mapped = false;
	if (len < d->chain_min)
		return 0;
	rc = ur_vfio_map(d->memory, addr, len, &dma->shift);
	dma->mapped = rc == 0;
	return rc ? why_not(rc, d, len, err, errlen) : 0;
}

static void unmap(struct ur_port *p, void *addr, size_t len, const struct ur_dma *dma)
{
	ur_vfio_unmap(ur_ethdev_of(p)->memory, addr, len, dma->shift);
}

/* --- letting go --- */

static void make_frame_to_nowhere(const struct ur_ethdev *d, struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	memset(f, 0, NOWHERE_LEN);
	memcpy(f, d->port.mac.b, 6);
	memcpy(f + 6, d->port.mac.b, 6);
	ur_put16(f + 12, ETHERTYPE_NOWHERE);
	m->data_len = NOWHERE_LEN;
	m->pkt_len = NOWHERE_LEN;
}

/* Some drivers can be asked, though few of them give back all. Once the ring has gone round since the last chain, there is nothing left. */
static void reclaim(struct ur_queue *q)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);
	struct rte_mbuf *m[UR_ETHDEV_BURST];
	unsigned n = ur_min_u32(d->pushes, UR_ETHDEV_BURST), sent;

	rte_eth_tx_done_cleanup(d->id, 0, 0);
	if (!n || rte_pktmbuf_alloc_bulk(d->segs, m, n))
		return;
	for (unsigned i = 0; i < n; i++)
		make_frame_to_nowhere(d, m[i]);
	sent = rte_eth_tx_burst(d->id, 0, m, (uint16_t)n);
	rte_pktmbuf_free_bulk(m + sent, n - sent);
	d->pushes -= sent;
}

/* --- opening and closing --- */

static void forsake(struct ur_port *p)
{
	ur_vfio_leave(&ur_ethdev_of(p)->vfio);
}

bool ur_ethdev_dma_open(struct ur_ethdev *d)
{
	struct ur_vfio_fds before = d->vfio;

	ur_vfio_find(&before, &d->vfio);
	ur_vfio_keep_private(&d->vfio);
	return ur_vfio_open(d->vfio.container, &d->memory) == 0;
}

void ur_ethdev_dma_close(struct ur_ethdev *d)
{
	if (d->memory)
		ur_vfio_close(d->memory);
}

void ur_ethdev_dma_ops(struct ur_ethdev *d)
{
	d->port_ops.forsake = forsake;
	if (!d->dma)
		return;
	d->port_ops.map = map;
	d->port_ops.unmap = unmap;
	d->queue_ops.reclaim = reclaim;
}
