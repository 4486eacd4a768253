/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of another process of this user, mapped here as well: where it is a file in memory (memfd_create(2), tmpfs and so shm_open(3),
 * hugetlbfs), and the kernel lets us open that. Which one it is says /proc/PID/maps; all that stands there is the
 * other process's doing, and changes while it is read. So what was opened must be the file that was meant, and be in memory: then it is
 * the other process's, whatever the process says, and to read it waits for no device and no other process.
 *
 * The memory may shrink, or be taken from below: it is read by lib/base/touch.h alone. Where the file has a hole, reading it
 * fails as well: the page would be made on this process's account, here or when the program locks its memory. Segments of shmget(2)
 * cannot be guarded so, and are not mapped, except for the superuser, to whom they are files.
 */
#ifndef UR_MAP_FILE_H
#define UR_MAP_FILE_H

#include <sys/types.h>

#include "siblings/fetch.h"

/* Memory of another process as it is mapped here, to be read. */
struct ur_map {
	const uint8_t *here;
	uint64_t there; /* its address in the other process */
	uint64_t len;
};

/* How the file is opened, in the order in which they are tried. */
enum ur_map_way {
	UR_MAP_BY_LINK = 1, /* /proc/PID/map_files: the superuser alone */
	UR_MAP_BY_FD = 2,   /* a descriptor that the process has open still */
	UR_MAP_BY_PATH = 4, /* the name that it had when it was mapped; from Linux 5.12 on */
	UR_MAP_ANY = 7,
};

/* What guards mappings, a descriptor (userfaultfd(2)): as long as it is open. -1: this kernel, or a filter, does not let us; Linux 5.11. */
int ur_map_guard(void);
/*
 * Maps the region of another process that a piece of payload is of, as far as the same file lies there, and at most 2 MiB (or a page of the
 * file, if that is more) before and behind it; if that is no more than `most` bytes. Takes as long as the process has mappings, and
 * /proc may wait for it: not under any lock. Children of a fork do not inherit the mapping.
 */
bool ur_map_file(const struct ur_owner *o, const struct ur_bulk_seg *piece, uint64_t most, unsigned ways, int guard, struct ur_map *out);
void ur_map_drop(struct ur_map *m);

#endif
