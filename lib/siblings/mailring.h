/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of packets between two processes: bytes that one of them writes and the other reads, and two counters that run freely, `tail` by
 * the writer and `head` by the reader. How the counters and the memory reach the other one is the caller's business (local.c). Neither
 * trusts the other: whatever the counters and the bytes say, both stay within the ring, each word of the other's is read once, and what is
 * wrong costs the packets of this ring alone.
 *
 * Each packet is a record: what its fields have to say, then its bytes; records begin at multiples of 16 and do not wrap.
 */
#ifndef UR_MAILRING_H
#define UR_MAILRING_H

#include "host/page.h"
#include "wire/pkt.h"

/*
 * A ring has `size` bytes, one of those in host/page.h. Appends a packet after *tail, where the reader has come to `head`,
 * and moves *tail. False when there is no room, or `head` is none that this ring can have. The packet stays the caller's; a longer one than
 * UR_PKT_ROOM is left out.
 */
bool ur_mailring_put(uint8_t *ring, uint32_t size, uint32_t *tail, uint32_t head, const struct ur_pkt *p);
/* Copies the packet at *head into `p`, a fresh one, and moves *head. False when there is none before `tail`, or nothing that makes sense:
 * *head is `tail` then. */
bool ur_mailring_take(const uint8_t *ring, uint32_t size, uint32_t *head, uint32_t tail, struct ur_pkt *p);

#endif
