/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes what strangers have sent without waiting for it. The last close(2) of a socket with SO_LINGER waits as long as its owner chose,
 * and closing a connection also closes the descriptors that were sent over it and never received. So each such close has a thread of its
 * own, which is interrupted after UR_HANG_UP_MS, and their number is limited.
 */
#ifndef UR_HANG_UP_H
#define UR_HANG_UP_H

#define UR_HANG_UPS 64
#define UR_HANG_UP_MS 250

struct ur_hang_up_job;

/* The closes that one thread has started. All zeros: none. */
struct ur_hang_ups {
	struct ur_hang_up_job *job[UR_HANG_UPS]; /* the oldest first */
	unsigned n;
};

/*
 * Closes fd, which may be open for a moment after this returns. Waits only while UR_HANG_UPS others have not ended, at most UR_HANG_UP_MS.
 * When no thread can be started it is closed here.
 */
void ur_hang_up(struct ur_hang_ups *h, int fd);
/*
 * Prepares a listening socket for close(2), which would also close all connections that nobody has accepted, with what was sent over them:
 * refuses new ones and hangs up on those.
 */
void ur_hang_up_waiting(struct ur_hang_ups *h, int listener);
/* Waits for all, at most UR_HANG_UP_MS, and interrupts those that have not ended. */
void ur_hang_ups_end(struct ur_hang_ups *h);

#endif
