/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between the processes of one device and one user, which the wire would not return. Each process has a mailbox in its page
 * (page.h), which only it can write: a ring of packets for each of the others, how far it has read theirs, and whether it sleeps. So no
 * process waits for another's lock, and one that dies, stops or writes nonsense loses only its own packets.
 */
#ifndef UR_LOCAL_H
#define UR_LOCAL_H

#include "drivers/port.h"
#include "siblings/registry.h"
#include "wire/bulk.h"

struct ur_local;

/* 0 or ENOMEM. The registry outlives it. */
int ur_local_open(struct ur_registry *r, struct ur_local **out);
/* Every packet of the inbox has come back. */
void ur_local_close(struct ur_local *l);
/* In a forked child, which has none of the threads. */
void ur_local_abandon(struct ur_local *l);
/* From now on memory that others have mapped from a file in memory is mapped here, too (mapped.h): faults are caught (base/touch.h). */
void ur_local_map(struct ur_local *l);
/* From now on somebody reads what the others send, and tells them so. */
void ur_local_announce(struct ur_local *l);

/* What the other processes sent, each packet a private copy. It takes none. */
struct ur_queue *ur_local_inbox(struct ur_local *l);
/*
 * The queue to the process that has the slot now; NULL when there is none. It stays valid for later holders of the slot. It takes whole,
 * bare and slim packets as far as there is room, and copies them; there is nothing to receive from it.
 */
struct ur_queue *ur_local_to(struct ur_local *l, uint8_t slot);
/* The slots of those processes, and how many there are. */
unsigned ur_local_known(struct ur_local *l, uint8_t slot[UR_SLOTS]);

/* As ur_tp_config.fetch, from the process that has the slot now. */
enum ur_fetched_by ur_local_fetch(struct ur_local *l, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				  unsigned nfrom);
/* As ur_tp_config.token; and what we show there. */
uint64_t ur_local_token(const struct ur_local *l, uint8_t slot, uint32_t at);
_Atomic uint64_t *ur_local_tokens(const struct ur_local *l);
/* Does somebody look at our packets? The others are to send frames then: no UR_QUEUE_FETCHES, no UR_QUEUE_SLIM. At first nobody does. */
void ur_local_set_watched(struct ur_local *l, bool watched);

/* Becomes readable when a packet arrives while we said that we sleep. */
int ur_local_fd(const struct ur_local *l);
/*
 * True when another process has had no time to read since this was last asked: perhaps it waits for our CPU, and should get it once the
 * NIC's lock is given up. For one that does not use it this ends some time.
 */
bool ur_local_gives_way(struct ur_local *l);
/* Says whether senders have to wake us. Returns false when packets wait already. */
bool ur_local_sleep(struct ur_local *l, bool asleep);

#endif
