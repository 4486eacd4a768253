/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload of bulk packets (wire/bulk.h) that lies in memory which this process can map as well as its owner (map_file.h): such memory is
 * mapped here once, and then copied from without a system call. Which region the payload belongs to its sender says by a number that no
 * other region of his ever has; after a few copies by the kernel from one region, its memory is looked for, by a thread of its own, which
 * may wait for another process and thereby delays nothing else.
 *
 * A mapping says what the region was when it was mapped, as registering memory with a NIC does: if the other process maps something else
 * there while it is registered, the copy is of what was there. It is given up when the region has ended (its token has changed), and at the
 * latest UR_MAPPED_KEPT_MS after the last copy from it; as long may memory last here that its owner has given back.
 *
 * Everything except opening and closing is called by the holder of the NIC.
 */
#ifndef UR_MAPPED_H
#define UR_MAPPED_H

#include "host/page.h"
#include "wire/bulk.h"

#define UR_MAPPED_KEPT_MS 1250
#define UR_MAPPED_REGIONS 256        /* of all the other processes, at a time */
#define UR_MAPPED_BYTES (1ull << 40) /* of address space for them: nothing that costs memory */

struct ur_mapped;

/* Faults of ur_touch_copy are caught. NULL when there is no memory. Its thread starts when there is something to be mapped. */
struct ur_mapped *ur_mapped_open(void);
void ur_mapped_close(struct ur_mapped *m);
/* In a forked child, which has neither the thread nor the mappings. */
void ur_mapped_abandon(struct ur_mapped *m);

/* As ur_tp_config.fetch, if all of `from` is mapped here. False: it is not; or it has vanished, and any part may have been copied. */
bool ur_mapped_copy(struct ur_mapped *m, const struct ur_sibling *s, const struct ur_piece *to, unsigned nto,
		    const struct ur_bulk_seg *from, unsigned nfrom);

#endif
