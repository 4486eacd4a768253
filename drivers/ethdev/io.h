/* SPDX-License-Identifier: BSD-3-Clause */
/* The port as io.c, port.c and close.c see it, and where a packet lives: [struct rte_mbuf][struct ur_epkt][headroom][frame]. */
#ifndef UR_ETHDEV_IO_H
#define UR_ETHDEV_IO_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "drivers/ethdev/internal.h"
#include "drivers/pci/vfio.h"

#define UR_ETHDEV_BURST 64
#define UR_ETHDEV_CHAIN (1 + 2 * UR_PKT_SEGS + 1) /* buffers of a frame: headers, segments that lie in two pieces each, the tail */

struct ur_epkt {
	struct ur_pkt pkt;
	bool ready; /* the mbuf chain holds the whole frame, and the counts on segments are the chain's to drop */
};

/* In the private area of the mbufs that stand for payload segments. */
struct ur_eseg {
	struct rte_mbuf_ext_shared_info shinfo;
};

#define UR_EPKT_PRIV RTE_ALIGN_CEIL(sizeof(struct ur_epkt), RTE_CACHE_LINE_SIZE)
#define UR_ESEG_PRIV RTE_ALIGN_CEIL(sizeof(struct ur_eseg), RTE_MBUF_PRIV_ALIGN)
#define UR_ESEG_ROOM 64 /* the last mbuf of a chain holds the tail */

_Static_assert(sizeof(((struct ur_pkt *)0)->tail) <= UR_ESEG_ROOM, "the tail must fit in a segment mbuf");

struct ur_ethdev {
	struct ur_port port;
	struct ur_queue queue;
	struct ur_port_ops port_ops;
	struct ur_queue_ops queue_ops;
	uint16_t id;
	bool chains;         /* tx takes chains of external memory */
	bool dma;            /* but only of what the device has been shown (dma.c) */
	uint32_t chain_min;  /* average segment bytes from which that pays */
	uint32_t piece;      /* an mbuf's external memory lies within one aligned piece of this many bytes, a power of two */
	uint32_t pushes;     /* of `dma`: frames after which the device has let go of all that was chained (dma.c) */
	uint16_t tx_desc;    /* of the ring */
	struct ur_vfio_memory *memory; /* of `dma` */
	struct ur_vfio_fds vfio;       /* of `is_nic` */
	uint32_t max_frame;  /* without FCS and VLAN tag */
	unsigned lcore, outer_lcore;
	struct rte_mempool *pkts, *segs;
	const struct ur_pmd *pmd; /* NULL: like hardware */
	struct ur_kif kif;
	bool has_kif;
	int wake;            /* the socket whose ring DPDK reads; DPDK owns it */
	bool promisc;        /* the interface was so before */
	bool has_mcast_kif;  /* `kif` is good for multicast memberships only */
	char dev[64];        /* DPDK's name of the device */
	bool is_vdev, is_nic, probed, configured;
	struct ur_ethdev_stats stats;
};

static inline struct ur_ethdev *ur_ethdev_of(struct ur_port *p)
{
	return ur_container_of(p, struct ur_ethdev, port);
}

static inline struct ur_ethdev *ur_ethdev_of_queue(struct ur_queue *q)
{
	return ur_container_of(q, struct ur_ethdev, queue);
}

static inline bool ur_ethdev_has_link(const struct ur_ethdev *d)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* close.c */
int ur_ethdev_stop(const struct ur_ethdev *d); /* 0, or a negative errno of DPDK's */
void ur_ethdev_close(struct ur_port *p);       /* also of one that was opened halfway */

/* dma.c, for NICs. `vfio` is what there was before DPDK opened the NIC, then what DPDK opened. True when memory can be shown to it. */
bool ur_ethdev_dma_open(struct ur_ethdev *d);
void ur_ethdev_dma_close(struct ur_ethdev *d);
/* Adds the operations that a NIC has. */
void ur_ethdev_dma_ops(struct ur_ethdev *d);

unsigned ur_ethdev_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
unsigned ur_ethdev_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
unsigned ur_ethdev_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
void ur_ethdev_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n);
void ur_ethdev_enter(struct ur_queue *q);
void ur_ethdev_leave(struct ur_queue *q);

#endif
