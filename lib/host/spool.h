/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of bytes and a thread that takes them out: for files about what the NIC does, since nobody may wait for a file who holds the NIC.
 * Putting never waits and makes no system call, except to wake the thread from a long sleep; what finds no room is the caller's to count.
 */
#ifndef UR_SPOOL_H
#define UR_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

struct ur_spool;

/* What the thread calls. */
struct ur_spool_taker {
	/* Records that were put one after the other, n bytes in all. Returns how many it has taken, of whole records; not 0. */
	size_t (*take)(void *ctx, const void *records, size_t n);
	/* There is nothing more for now; NULL: of no interest. */
	void (*pause)(void *ctx);
	/* Nobody needs the context any more: from ur_spool_release, or from the thread that could not be waited for. */
	void (*end)(void *ctx);
};

/* `size` is a power of two and at least twice the longest record; the memory is used as it is needed. 0, ENOMEM or EAGAIN. */
int ur_spool_open(const char *thread, size_t size, const struct ur_spool_taker *taker, void *ctx, struct ur_spool **out);
/* Room for a record of n bytes, a multiple of 4 (of 8 if all are, and then aligned to it); NULL: it is full. One thread at a time. */
void *ur_spool_room(struct ur_spool *s, size_t n);
/* The record is complete. Its n is that of ur_spool_room. */
void ur_spool_put(struct ur_spool *s, size_t n);
/* More than half full: perhaps the thread waits for the CPU of whoever puts. Asked by whoever puts. */
bool ur_spool_is_crowded(struct ur_spool *s);
/* Waits until what was put has been taken, but not for a taker that takes nothing for a second. */
void ur_spool_flush(struct ur_spool *s);
/*
 * Nothing is put any more: waits until all is taken and the thread has ended. False when it takes nothing for a second (a pipe that nobody
 * reads), or after ten: it may go on for ever. ur_spool_release follows in both cases.
 */
bool ur_spool_stop(struct ur_spool *s);
void ur_spool_release(struct ur_spool *s);

#endif
