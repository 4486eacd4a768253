/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that were recorded as one frame. */
#ifndef UR_AN_RECORDED_TRAIN_H
#define UR_AN_RECORDED_TRAIN_H

#include "analyze/frame/dissect.h"

/* After the UDP header: of any packet, and of an ACK. */
#define AN_LEAST_LEN (UR_BTH_LEN + UR_ICRC_LEN)
#define AN_ACK_LEN (AN_LEAST_LEN + 4)

struct an_train {                 /* the packets of a frame */
	struct an_pkt whole, one; /* the frame as it stands; the packet that was given last */
	uint32_t size, place;     /* bytes of UDP payload of each packet; 0: the frame is one packet */
	uint32_t all, have;       /* bytes of UDP payload; those that were recorded */
	bool read;                /* what an_dissect said of the frame */
	uint8_t room[UR_PKT_ROOM + 64];
};

void an_train_first(struct an_train *t, const struct ur_an_frame *f);
/*
 * One packet after the other, NULL after the last. A frame that is no train gives itself, whether it could be read or not. Of a train that
 * was cut come the packets whose headers are here; the last one of these stands for the rest of the frame, and counts what is `behind`.
 */
const struct an_pkt *an_train_next(struct an_train *t);

#endif
