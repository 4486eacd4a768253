/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 (polynomial 0x04c11db7, reflected: zlib's), alone and while copying, by the fastest means that this CPU has. The state between
 * calls is the CRC of all bytes so far, 0 for none, as zlib's crc32 and ISA-L's crc32_gzip_refl keep it.
 */
#ifndef UR_CRC32_H
#define UR_CRC32_H

#include "base/base.h"

uint32_t ur_crc32(uint32_t crc, const void *data, size_t len);
/*
 * memcpy(3) and the CRC of what it copies, of which each byte is read and written a few times at most, in no certain order. If somebody
 * changes `src` meanwhile, the CRC may be that of neither the old nor the new bytes. Like memcpy, it may be left in the middle by
 * ur_touch_call (base/touch.h).
 */
uint32_t ur_crc32_copy(uint32_t crc, void *dst, const void *src, size_t len);

#endif
