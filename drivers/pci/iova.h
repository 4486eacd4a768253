/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bus addresses for the memory that a device behind an IOMMU is shown: an address space of its own, of which a window is given out in
 * pieces. Each piece has an address that no other one has, so the same memory may be shown twice, and what was given back is used last:
 * a device that goes on reading there finds nothing, rather than somebody else's memory. No I/O and no lock.
 */
#ifndef UR_IOVA_H
#define UR_IOVA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pieces lie as their memory does within this many bytes, so that the IOMMU can use its large pages where the memory has them. */
#define UR_IOVA_ALIGN (2ull << 20)

struct ur_iova_range {
	uint64_t first, last; /* both included */
};

struct ur_iova_space {
	uint64_t begin, end, next; /* the window [begin, end), and where the next search starts */
	struct ur_iova_range *used; /* in ascending order; one that was given back is empty, and stays for a while: last < first */
	size_t n, gone, room;       /* of the `n`, `gone` are empty */
};

/*
 * The window of a device that reaches the addresses of `ranges`: one where neither physical addresses nor those of a program's memory lie,
 * one of which DPDK uses for memory of its own. False when there is none.
 */
bool ur_iova_window(const struct ur_iova_range *ranges, size_t n, uint64_t *begin, uint64_t *end);

void ur_iova_init(struct ur_iova_space *s, uint64_t begin, uint64_t end);
void ur_iova_fini(struct ur_iova_space *s);
/* A place for `len` bytes that begin at `addr`. 0, ENOSPC or ENOMEM. */
int ur_iova_take(struct ur_iova_space *s, uint64_t addr, uint64_t len, uint64_t *at);
/* Gives back the piece that begins there. */
void ur_iova_give(struct ur_iova_space *s, uint64_t at);

#endif
