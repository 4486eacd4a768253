/* SPDX-License-Identifier: BSD-3-Clause */
/* Making memory accessible: when it is registered, and on demand. */
#ifndef UR_POPULATE_H
#define UR_POPULATE_H

#include "base/base.h"

/* Does the kernel have what ur_populate needs (Linux 5.14)? */
bool ur_populate_supported(void);
/*
 * Pages in [at, at + len), readable or writable too: true, and an access does not fault unless somebody unmaps it at that moment. False
 * when nothing is mapped there, or not with that right.
 */
bool ur_populate(void *at, uint64_t len, bool write);
/*
 * As ur_populate, for as much as there may be, and on kernels without what that needs: every page is touched there, and what is missing is
 * caught (catch.h), which ur_populate_by_touch does on any kernel. Where nothing can be caught they say true.
 */
bool ur_populate_all(void *at, uint64_t len, bool write);
bool ur_populate_by_touch(void *at, uint64_t len, bool write);
/*
 * memcpy(3) to (`write`) or from memory that other threads may unmap at any moment: false when it was not all there, or not with that
 * right. Costs two microseconds for 4 KiB.
 */
bool ur_user_copy(void *to, const void *from, uint64_t len, bool write);

#endif
