/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel leaves to the sender of a frame (struct virtio_net_hdr), for ends that send frames as they are: checksums are computed,
 * and trains and merged segments are cut into frames. The description of a peer's frame is not trusted.
 */
#ifndef UR_BETWEEN_FINISH_H
#define UR_BETWEEN_FINISH_H

#include <linux/virtio_net.h>

#include "base/base.h"

struct ur_cut {
	uint8_t *frame; /* whole, and contiguous */
	uint32_t len;
	struct virtio_net_hdr vnet;
	uint32_t head;     /* bytes of headers; 0: it stays one frame */
	uint32_t l3, size; /* where the IP header begins; payload bytes of each */
	uint32_t at;       /* the payload that comes next */
};

/* False: the description does not fit the frame, which cannot be sent then. */
bool ur_cut_begin(struct ur_cut *c, uint8_t *frame, uint32_t len, const struct virtio_net_hdr *vnet);
/* How long the next frame is; 0: there is none. */
uint32_t ur_cut_next(const struct ur_cut *c);
/* Writes it. */
void ur_cut_put(struct ur_cut *c, uint8_t *to);

#endif
