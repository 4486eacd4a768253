/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a host. What must not leave it holds marks: words that begin alike and that nobody would make up, which is how a frame is
 * searched for them. What lies between the regions, and slots that nobody has posted, holds marks too. A copy tells what has changed.
 */
#include <stdlib.h>

#include "nic.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC
#define BIND IBV_ACCESS_MW_BIND

#define POISON 0xb7
#define MARK 8

const struct region regions[REGIONS] = {
	[R_OPEN] = {"the open region", 64, 1024, LW | RW | RR | BIND | UR_ACCESS_FLUSH_GLOBAL, PD_OPEN, false},
	[R_READ] = {"the region to read", 1152, 512, RR, PD_OPEN, false},
	[R_WRITE] = {"the region to write", 1728, 512, LW | RW, PD_OPEN, true},
	[R_CELLS] = {"the cells", 2304, 64, LW | RA, PD_OPEN, false},
	[R_LOCAL] = {"the local region", 2432, 256, LW, PD_OPEN, true},
	[R_WINDOW] = {"the region of windows", 2752, 512, LW | BIND, PD_OPEN, true},
	[R_VOLATILE] = {"the volatile region", 3328, 512, LW | RW | RR | RA | UR_ACCESS_FLUSH, PD_OPEN, false},
	[R_SOURCE] = {"the source", 3904, 1024, 0, PD_OPEN, false},
	[R_FOREIGN] = {"the foreign region", 4992, 512, LW | RW | RR | RA, PD_SPARED, true},
	[R_BOARD] = {"the board of the spared pair", 5568, 912, LW | RW | RR, PD_SPARED, false},
	[R_COUNTER] = {"the counter of the spared pair", 6544, 64, LW | RA, PD_SPARED, false},
};

static const uint8_t mark[6] = {0x9d, 0x3b, 0xc6, 0x71, 0xe4, 0x5a};

static void put_marks(uint8_t *mem, uint32_t at, uint32_t len)
{
	for (uint32_t i = 0; i + MARK <= len; i += MARK) {
		memcpy(mem + at + i, mark, sizeof(mark));
		ur_put16(mem + at + i + sizeof(mark), (uint16_t)((at + i) / MARK));
	}
}

static void put_plain(uint8_t *mem, uint32_t at, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		mem[at + i] = (uint8_t)(seed + i * 7 + (i >> 8) * 3);
}

/* The same in all arenas, made once. */
static const uint8_t *blank(void)
{
	static uint8_t mem[ARENA];

	if (mem[0])
		return mem;
	put_marks(mem, 0, ARENA);
	for (unsigned r = 0; r < REGIONS; r++)
		if (!regions[r].marked)
			put_plain(mem, regions[r].at, regions[r].size, (uint8_t)r);
	put_plain(mem, regions[R_WINDOW].at, WINDOW_PLAIN, R_WINDOW);
	memset(mem + regions[R_CELLS].at, 0, regions[R_CELLS].size);
	memset(mem + regions[R_COUNTER].at, 0, regions[R_COUNTER].size);
	return mem;
}

void arena_init(struct arena *a)
{
	memcpy(a->mem, blank(), ARENA);
	memcpy(a->was, blank(), ARENA);
	a->taken = 0;
}

void arena_mark(struct arena *a, uint32_t at, uint32_t len)
{
	put_marks(a->mem, at, len);
	put_marks(a->was, at, len);
}

void arena_fill(struct arena *a, uint32_t at, uint32_t len, uint8_t seed)
{
	put_plain(a->mem, at, len, seed);
	put_plain(a->was, at, len, seed);
}

/* --- slots --- */

int slot_take(struct arena *a, bool spared)
{
	unsigned i;

	if (__builtin_popcount(a->taken) >= (spared ? SLOTS : SLOTS - SLOTS_SPARED))
		return -1;
	i = (unsigned)__builtin_ctz(~a->taken);
	a->taken |= 1u << i;
	memset(a->mem + slot_at((int)i), POISON, SLOT);
	memset(a->was + slot_at((int)i), POISON, SLOT);
	return (int)i;
}

void slot_give(struct arena *a, int slot)
{
	if (slot < 0)
		return;
	a->taken &= ~(1u << slot);
	memcpy(a->mem + slot_at(slot), blank() + slot_at(slot), SLOT);
	memcpy(a->was + slot_at(slot), blank() + slot_at(slot), SLOT);
}

bool slot_untouched(const struct arena *a, int slot, uint32_t from, uint32_t to)
{
	const uint8_t *p = a->mem + slot_at(slot) + from;

	return from >= to || (p[0] == POISON && !memcmp(p, p + 1, to - from - 1));
}

/* --- changes --- */

void may_change(struct spans *s, uint32_t at, uint32_t len)
{
	if (!len)
		return;
	if (s->n == SPANS)
		abort(); /* a bug of the fuzzer's own: the table is too small */
	s->s[s->n++] = (struct span){at, len};
}

static bool within(const struct spans *may, uint32_t at)
{
	for (unsigned i = 0; i < may->n; i++)
		if (at - may->s[i].at < may->s[i].len)
			return true;
	return false;
}

static bool line_check(const struct arena *a, const struct spans *may, uint32_t from, uint32_t to, uint32_t *bad)
{
	for (uint32_t i = from; i < to; i++)
		if (a->mem[i] != a->was[i] && !within(may, i)) {
			*bad = i;
			return false;
		}
	return true;
}

/* Most of it is as it was: large parts are compared first, and what differs in smaller ones. */
#define PART 1024u
#define LINE 64u

static bool part_check(struct arena *a, const struct spans *may, uint32_t from, uint32_t to, uint32_t *bad)
{
	for (uint32_t i = from; i < to; i += LINE) {
		if (!memcmp(a->mem + i, a->was + i, LINE))
			continue;
		if (!line_check(a, may, i, i + LINE, bad))
			return false;
		memcpy(a->was + i, a->mem + i, LINE);
	}
	return true;
}

bool arena_check(struct arena *a, const struct spans *may, uint32_t *bad)
{
	for (uint32_t i = 0; i < ARENA; i += PART) {
		const uint32_t len = ur_min_u32(PART, ARENA - i);

		if (memcmp(a->mem + i, a->was + i, len) && !part_check(a, may, i, i + len, bad))
			return false;
	}
	return true;
}

/* Not instrumented: a fuzzer that sees what is compared would write marks into its inputs. */
__attribute__((noinline))
#ifdef __clang__
__attribute__((no_sanitize("coverage")))
#endif
bool holds_mark(const uint8_t *p, size_t len)
{
	for (const uint8_t *end = p + len; end - p >= MARK; p++) {
		p = memchr(p, mark[0], (size_t)(end - p) - (MARK - 1));
		if (!p)
			return false;
		if (p[1] == mark[1] && p[2] == mark[2] && p[3] == mark[3] && p[4] == mark[4] && p[5] == mark[5])
			return true;
	}
	return false;
}

const char *place_name(uint32_t at)
{
	for (unsigned r = 0; r < REGIONS; r++)
		if (at - regions[r].at < regions[r].size)
			return regions[r].name;
	return at >= SLOTS_AT && at < SLOTS_AT + SLOTS * SLOT ? "a slot for messages" : "what lies between the regions";
}
