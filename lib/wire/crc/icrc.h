/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA volume 1, 7.8.1, and annex A17): CRC-32, incremental over header and payload segments. The
 * state between calls is that of ur_crc32 (wire/crc/crc32.h).
 */
#ifndef UR_ICRC_H
#define UR_ICRC_H

#include "wire/pkt.h"

/* Starts with the pseudo LRH, the masked IP and UDP headers at `l3` and the masked BTH; all of it contiguous, `len` bytes from
 * `l3` to the end of the BTH or further (bytes after the BTH are taken as they are). */
uint32_t ur_icrc_begin(const uint8_t *l3, uint8_t ip_version, size_t len);
uint32_t ur_icrc_add(uint32_t crc, const void *data, size_t len);
/*
 * The state after the masked IP and UDP headers at `l3`, were they those of a datagram of `udp_len` bytes with its UDP header. The BTH
 * follows, with its byte 4 (FECN, BECN, resv6) as 0xff.
 */
uint32_t ur_icrc_headers(const uint8_t *l3, uint8_t ip_version, uint32_t udp_len);
/*
 * The same of a received packet, or of one in a received train, with `udp_len` bytes of UDP header and payload and, on IPv4, identification
 * `id`; its other headers are p's. Of a bare packet they are not at hand: its addresses, ip_version and sport are in the fields, and
 * fragmentation is taken to be forbidden. `len` bytes from the BTH on.
 */
uint32_t ur_icrc_begin_of(const struct ur_pkt *p, const uint8_t *bth, size_t len, uint32_t udp_len, uint16_t id);
/*
 * What changes in the ICRC when the 16 bits of the IPv4 header at its byte `at` (4: identification, 6: flags and fragment offset) change by
 * the XOR `bits`; `covered` bytes from the IP header to the ICRC. To be XORed to the state, or to the ICRC read as a little-endian word.
 */
uint32_t ur_icrc_change(uint16_t bits, unsigned at, size_t covered);
/* The reverse: whether a change of those 16 bits explains the difference, and which. 1 of 65536 random differences can be explained. */
bool ur_icrc_explain(uint32_t difference, unsigned at, size_t covered, uint16_t *bits);
/* What the state before byte `at` has to differ by for the ICRC to differ by `difference`. */
uint32_t ur_icrc_state_change(uint32_t difference, size_t at, size_t covered);
/*
 * The other way: the difference that a difference between two states becomes when both go on over the same bytes, at most 65535. `ahead` is
 * ur_icrc_ahead of their number, which takes longer than the rest.
 */
uint32_t ur_icrc_ahead(size_t bytes);
uint32_t ur_icrc_carry(uint32_t difference, uint32_t ahead);
/*
 * Whether a single bit explains the difference, and which: of byte `byte`, counted from the IP header to the end of the ICRC. Takes time
 * for each byte. One of 500000 random differences is explained by a bit of a kilobyte.
 */
bool ur_icrc_wrong_bit(uint32_t difference, size_t covered, uint32_t *byte, unsigned *bit);
/* Stores the four bytes as they go on the wire. */
void ur_icrc_end(uint32_t crc, uint8_t out[4]);

#endif
