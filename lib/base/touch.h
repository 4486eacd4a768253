/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to the program's memory, which may have disappeared: a region outlives munmap(2), a file is truncated while it is mapped,
 * mprotect(2) removes access rights. A NIC has the pages pinned; we only have the address. The functions here return false where a plain
 * access would have killed the process, provided that a handler catches the fault (lib/engine/catch.h); without one they are plain
 * accesses.
 *
 * The cost is that of saving a place to return to: about twenty instructions for each call, none for each byte.
 */
#ifndef UR_TOUCH_H
#define UR_TOUCH_H

#include "base/base.h"

/* memcpy(3). False: any part of it may have been copied. */
bool ur_touch_copy(void *to, const void *from, size_t len);
/* ur_copy_end_last (bytes.h). */
bool ur_touch_copy_end_last(uint8_t *to, const uint8_t *from, size_t len);
/*
 * fn(arg), for whatever else touches. False: it was left in the middle, and what it had done until then stays done; so it keeps what it
 * has to remember where `arg` points, and takes nothing that it would have to give back. It may call the functions here.
 */
bool ur_touch_call(void (*fn)(void *arg), void *arg);

/*
 * For the handler of faults. A signal handler may not ask for thread-local memory, which the first access in a thread allocates: so the
 * thread hands out the place of its state before, and the handler looks there whether an access may be given up.
 */
const void *ur_touch_mine(void);
bool ur_touch_pending(const void *thread);
/* Gives it up: the call above returns false. Not from a signal handler: its thread continues there. */
_Noreturn void ur_touch_give_up(void);

#endif
