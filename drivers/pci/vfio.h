/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process has open of VFIO, and memory that it shows to its devices through the container's IOMMU. DPDK opens the container and
 * shows its own memory. What programs register goes to bus addresses of its own (iova.h) and past DPDK, which keeps no more than 256 pieces
 * (rte_vfio_container_dma_map) or about a hundred (rte_extmem_register); the kernel keeps 65535.
 */
#ifndef UR_VFIO_H
#define UR_VFIO_H

#include "drivers/pci/iova.h"

#define UR_VFIO_FDS 32

/* Descriptors of containers, groups and devices. */
struct ur_vfio_fds {
	int fd[UR_VFIO_FDS];
	unsigned n;
	int container; /* the first of them that is one; -1: none */
};

/* Those that this process has open, except for those of `before`, which may be NULL. */
void ur_vfio_find(const struct ur_vfio_fds *before, struct ur_vfio_fds *out);
/*
 * Neither programs that this process executes nor children that it forks should keep the NIC from the next program: closes the descriptors
 * at exec(2), and leaves the mappings of devices' registers out of children. Those close the descriptors (ur_vfio_leave).
 */
void ur_vfio_keep_private(const struct ur_vfio_fds *fds);
void ur_vfio_leave(const struct ur_vfio_fds *fds);

struct ur_vfio_memory;

/* 0; ENOMEM; EOPNOTSUPP: the container's devices are behind no IOMMU, or one that reaches too little. */
int ur_vfio_open(int container, struct ur_vfio_memory **out);
/* All that is still shown is taken away. */
void ur_vfio_close(struct ur_vfio_memory *m);
/*
 * Shows the pages of [addr, addr + len), which stay in memory and where they are from now on; *shift leads from addresses here to those of
 * the bus. Any thread. 0, or an errno: ENOMEM: more memory than this process may lock (RLIMIT_MEMLOCK); ENOSPC: too many pieces; EFAULT:
 * memory that is not there, or that may not be written, which the IOMMU does not tell apart.
 */
int ur_vfio_map(struct ur_vfio_memory *m, const void *addr, size_t len, uint64_t *shift);
void ur_vfio_unmap(struct ur_vfio_memory *m, const void *addr, size_t len, uint64_t shift);

#endif
