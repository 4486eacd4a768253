/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains of packets to send (pkt.h): which packets make one, and the identification that each has in it. */
#ifndef UR_TRAIN_H
#define UR_TRAIN_H

#include "wire/pkt.h"

/*
 * Packets follow one another in a train when they go the same way and have as many bytes after the UDP header; the last may have fewer.
 * This gives each of the packets, built but not finished, its place in a train of at most `max_pkts` packets and `max_bytes` bytes of UDP
 * payload: the kernel numbers the packets of an IPv4 train from 0 on, and the ICRC covers that number.
 */
void ur_train_mark(struct ur_pkt **pkts, unsigned n, unsigned max_pkts, uint32_t max_bytes);

/* Of finished packets: how many of them, from the first on, leave as one train, by the places that they were given. At least 1. */
unsigned ur_train_length(struct ur_pkt *const *pkts, unsigned n, unsigned max_pkts, uint32_t max_bytes);

/* Gives a finished packet another place, since its train was torn apart, and mends its ICRC. */
void ur_train_move(struct ur_pkt *p, uint8_t place);

#endif
