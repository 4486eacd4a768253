/* SPDX-License-Identifier: BSD-3-Clause */
/* An acknowledgement that was sent, for who sends it again when its QP has gone. */
#ifndef UR_LAST_ACK_H
#define UR_LAST_ACK_H

#include "wire/hdr.h"
#include "wire/path.h"

#define UR_LAST_ACK_LEN (UR_BTH_LEN + 4)

struct ur_last_ack {
	const struct ur_path *path;
	uint8_t headers[UR_LAST_ACK_LEN]; /* BTH and AETH */
};

#endif
