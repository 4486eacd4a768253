/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/base: what every layer stands on. PSN arithmetic, big-endian access, intrusive lists, id and hash tables, the timing
 * wheel, random generators and the counters. It knows no protocol, reads no clock, does no I/O, and has one lock, for lanes
 * (spin.h). Objects allocate when they are created, and tables (table.h, idtab.h) when they grow.
 */
#ifndef UR_BASE_H
#define UR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Structs of the wire are read where they lie, and keys and ids are kept in pointers. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || __SIZEOF_POINTER__ < 8
#error "uroce runs on little-endian machines with 64-bit pointers only: build on x86_64, aarch64 or riscv64"
#endif

/* Nanoseconds on a clock that never goes back. Its origin is the caller's affair. */
typedef uint64_t ur_time;

#define UR_TIME_NEVER UINT64_MAX
#define UR_NS_PER_US 1000ull
#define UR_NS_PER_MS 1000000ull
#define UR_NS_PER_S 1000000000ull

#define ur_likely(x) __builtin_expect(!!(x), 1)
#define ur_unlikely(x) __builtin_expect(!!(x), 0)
#define ur_container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define ur_array_size(a) (sizeof(a) / sizeof((a)[0]))

/* An IP address as a GID (IBTA annex A17): IPv6 as it is, IPv4 as ::ffff:a.b.c.d. */
struct ur_gid {
	uint8_t raw[16];
};

struct ur_mac {
	uint8_t b[6];
};

/* Can a frame be sent to one host by it, or from it? Not by that of a group, and not by 0, which an interface shows that has none. */
static inline bool ur_mac_is_host(const struct ur_mac *m)
{
	return !(m->b[0] & 1) && (m->b[0] | m->b[1] | m->b[2] | m->b[3] | m->b[4] | m->b[5]);
}

static inline uint32_t ur_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t ur_max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The end of a noun that follows this number in a sentence. */
static inline const char *ur_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* In a loop that waits for another CPU. */
static inline void ur_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline ur_time ur_max_time(ur_time a, ur_time b)
{
	return a > b ? a : b;
}

static inline ur_time ur_min_time(ur_time a, ur_time b)
{
	return a < b ? a : b;
}

#endif
