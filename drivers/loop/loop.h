/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/loop: a queue without a port. What is sent into it is received from it, contiguous, as the same packet: it stays one of the queue
 * that it was allocated from, and goes back there.
 */
#ifndef UR_LOOP_H
#define UR_LOOP_H

#include "drivers/port.h"

struct ur_loop {
	struct ur_queue queue;
	struct ur_pkt *head, **tail;
};

void ur_loop_init(struct ur_loop *l);
/* Gives back what waits. */
void ur_loop_clear(struct ur_loop *l);

#endif
