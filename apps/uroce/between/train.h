/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains of RoCEv2 packets that the kernel carries as one, their packets, and parts of them, as the kernel would have cut them. */
#ifndef UR_APP_BETWEEN_TRAIN_H
#define UR_APP_BETWEEN_TRAIN_H

#include "apps/uroce/between/end.h"

struct ur_between_train {
	const struct ur_between_frame *frame;
	uint32_t l3;    /* where the IP header begins */
	uint32_t begin; /* and the first packet, with its BTH; each is frame->vnet.gso_size bytes long, the last may be shorter */
	uint8_t head[UR_BETWEEN_HEAD];   /* the headers as they came */
	uint8_t single[UR_BETWEEN_HEAD]; /* those of one packet of the full length */
};

/* Is the frame a train? It has to stay until the train is done with. */
bool ur_between_train_begin(struct ur_between_train *t, const struct ur_between_frame *f);
/*
 * The headers of its bytes from `from` to `to`, one packet or several: t->begin bytes, at most UR_BETWEEN_HEAD. And what the kernel has to
 * know to send them.
 */
void ur_between_head(const struct ur_between_train *t, uint32_t from, uint32_t to, uint8_t *head);
void ur_between_head_vnet(const struct ur_between_train *t, uint32_t from, uint32_t to, struct virtio_net_hdr *vnet);

#endif
