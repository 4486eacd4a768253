/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/ethdev: a DPDK port as a struct ur_port. A struct ur_pkt lives in the private area of an mbuf, so nothing is allocated
 * or translated per packet. Payload segments stay where they are when the PMD copies from any memory (as those for kernel
 * interfaces and shared memory do), and when a NIC behind an IOMMU has been shown them (map); others are gathered into the packet once.
 *
 * The first open in a process starts DPDK's EAL on the calling thread, which takes about 0.1 s. The thread's CPU affinity, its
 * signal mask and the process's signal dispositions are the same afterwards. EAL stays up until the process ends.
 * After fork the child may close the port it inherited and open another on a kernel interface.
 */
#ifndef UR_ETHDEV_H
#define UR_ETHDEV_H

#include "drivers/port.h"

struct ur_ethdev_config {
	/* Which device; exactly one is set, the others are NULL. */
	const char *ifname; /* a kernel interface, shared with the kernel, that is up: "eth0" */
	const char *vdev;   /* a DPDK virtual device and its arguments: "net_memif0,role=server,socket=/run/x.sock" */
	const char *pci;    /* a PCI address in its long form, bound to vfio-pci: "0000:03:00.0" */

	const char *pci_args; /* of a NIC that eal_args do not name: ",key=value,..." for its driver, or empty */
	const uint16_t *vlans; /* whose frames a filter of the device should let in, beside those without a tag */
	unsigned nvlans;
	const char *eal_args; /* more EAL arguments, separated by blanks; they replace ours where they overlap; or NULL */
	uint16_t mtu;         /* IP MTU; 0: that of the kernel interface, or what the port carries. At most UR_PKT_ROOM less 18. */
	unsigned npkts;       /* packet buffers; 0: 2048 */
	bool promisc;         /* all frames, whomever they are for: no filter by addresses */
	unsigned chain_min;   /* average segment bytes from which payload is chained; 0: the default; UINT32_MAX: always gather */
};

/*
 * Opens the device and starts it. Returns 0 and the port, or an errno and one sentence in err (errlen bytes, terminated):
 * ENODEV, ENETDOWN, EPERM, EOPNOTSUPP, EINVAL, ENOMEM, EIO.
 */
int ur_ethdev_open(const struct ur_ethdev_config *cfg, struct ur_port **out, char *err, size_t errlen);

struct ur_ethdev_stats {
	uint64_t rx, tx;       /* frames */
	uint64_t rx_oversize;  /* received in several buffers and too long for one: dropped */
	uint64_t tx_oversize;  /* longer than the port carries: dropped */
	uint64_t tx_chained;   /* frames sent with payload in place */
	uint64_t tx_gathered;  /* frames whose payload segments were copied */
	uint64_t dev_missed;   /* frames that the device dropped because nobody fetched them in time */
};

void ur_ethdev_stats(struct ur_port *p, struct ur_ethdev_stats *out);

#endif
