/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA volume 1, 7.8.1, and annex A17): CRC-32, incremental over header and payload segments. The
 * state between calls is the running value as ISA-L's crc32_gzip_refl keeps it.
 */
#ifndef UR_ICRC_H
#define UR_ICRC_H

#include "base/base.h"

/* Starts with the pseudo LRH, the masked IP and UDP headers at `l3` and the masked BTH; all of it contiguous, `len` bytes from
 * `l3` to the end of the BTH or further (bytes behind the BTH are taken as they are). */
uint32_t ur_icrc_begin(const uint8_t *l3, uint8_t ip_version, size_t len);
uint32_t ur_icrc_add(uint32_t crc, const void *data, size_t len);
/* Stores the four bytes as they go on the wire. */
void ur_icrc_end(uint32_t crc, uint8_t out[4]);

#endif
