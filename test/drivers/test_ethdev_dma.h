/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_TEST_ETHDEV_DMA_H
#define UR_TEST_ETHDEV_DMA_H

void dma__chains_what_is_mapped(void);
void dma__reclaim_pushes(void);

#endif
