/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process shows to the others of its user that use the same device: its page, anonymous shared memory that only it can write,
 * sealed so that it can neither shrink nor grow while others read it. No memory is written by two processes, so no lock is needed: a
 * process that dies, stops or writes nonsense harms only itself. A reader of another's page reads each word once, and trusts none of them.
 */
#ifndef UR_PAGE_H
#define UR_PAGE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "wire/bulk.h"

#define UR_SLOTS 256 /* slot 0 is never handed out */
#define UR_KIND 8
#define UR_MAILRING_BYTES (1u << 20) /* of a ring of packets (siblings/mailring.h); a power of two, as the smaller ones are */
#define UR_MAILRING_SIZES {UR_MAILRING_BYTES, 1u << 18, 1u << 15} /* the later ones where a limit forbids those before */

#define UR_PORTS 65536
#define UR_PORT_CHAINS 8192 /* a power of two */

enum ur_port_state { UR_PORT_FREE, UR_PORT_TRYING, UR_PORT_HELD };

/* A port that the process is bound to. Entries are named by their number from 1 on; 0 is none. */
struct ur_port_entry {
	uint32_t next; /* of its chain, or of the free ones */
	uint16_t port_space, port;
	uint8_t state, listening, reuse, zero;
	struct ur_gid gid;
};

struct ur_port_table {
	_Atomic uint32_t changes; /* odd while the owner changes something */
	uint32_t used;            /* entries beyond have never been used */
	uint32_t free;            /* the first free entry of those that have */
	uint32_t chain[UR_PORT_CHAINS]; /* the first entry of each chain, by port space and port */
	struct ur_port_entry entry[UR_PORTS];
};

/* The ports that the process listened on until a moment ago, newer ones in the place of older ones (UR_CM_LEFT). */
#define UR_PORTS_LEFT 8
struct ur_ports_left {
	struct {
		_Atomic uint64_t at; /* CLOCK_MONOTONIC, ns; 0: none */
		uint16_t port, zero[3];
		struct ur_gid gid;
	} last[UR_PORTS_LEFT];
	uint32_t n; /* ever */
};

/* What a process shows one other (local.c). A cache line: it is written for each burst, and read by that one alone. */
struct ur_pair {
	_Alignas(64) _Atomic uint64_t tail; /* of our ring to it, for the process whose id is in the upper half */
	_Atomic uint64_t head;              /* as far as we have read its ring, if its id is in the upper half */
	_Atomic uint64_t takes;             /* what besides frames it may send: enum ur_page_takes, if its id is in the upper half */
};

enum ur_page_takes {
	UR_TAKES_BULK = 1, /* wire/bulk.h: we can read its memory, and do when it asks us to (fetch.h) */
	UR_TAKES_SLIM = 2, /* wire/slim.h */
	UR_WANTS_BULK = 4, /* the kernel does not let us read its memory: it may ask the kernel to */
};

/* The ports that the process listens on, for those who steer packets to it (registry.c); those beyond are not shown. */
#define UR_PORTS_LISTENED 64
struct ur_ports_listened {
	uint32_t n;
	uint16_t port[UR_PORTS_LISTENED];
};

struct ur_page {
	_Atomic uint32_t reads;   /* the owner takes what the rings to it bring */
	_Atomic uint32_t started; /* its port is open */
	_Atomic uint32_t met, fetched;    /* the others that it knows of; those whose memory it reads */
	_Atomic uint64_t proof_at, proof; /* an address of the owner's and what stands there, and nowhere else (siblings/fetch.h) */
	char kind[UR_KIND];       /* of its port, once it has started */
	struct {                  /* who shares a socket's port, when this process joined them (registry.c) */
		_Atomic uint32_t turn; /* 0: it has not */
		uint32_t n;
		uint8_t slot[UR_SLOTS];
	} sharers;
	struct ur_ports_left left;
	struct ur_ports_listened listened;
	_Alignas(64) _Atomic uint32_t sleeps; /* odd while the owner sleeps */
	struct ur_port_table ports;
	_Alignas(4096) struct ur_pair with[UR_SLOTS];
	_Alignas(4096) _Atomic uint64_t token[UR_TOKENS]; /* of bulk packets: another value as soon as what it stood for is given up */
}; /* a ring to each slot follows */
#define UR_PAGE_SHOWN sizeof(struct ur_page) /* what each of the others maps, besides its ring */

/* Ours. */
struct ur_own_page {
	struct ur_page *page;
	uint32_t ring_bytes; /* of each of its rings */
	int memfd, wake_fd; /* wake_fd: an eventfd, for the others to write to while we sleep */
	uint32_t id;        /* tells this process from all that ever had its slot; not 0 */
	uint8_t slot;
};

static inline size_t ur_page_bytes(uint32_t ring_bytes)
{
	return UR_PAGE_SHOWN + (size_t)UR_SLOTS * ring_bytes;
}

/* The ring to a slot, which follows the page. */
static inline uint8_t *ur_page_ring(const struct ur_own_page *own, uint8_t slot)
{
	return (uint8_t *)own->page + UR_PAGE_SHOWN + (size_t)slot * own->ring_bytes;
}

/*
 * 0 or an errno. Closing it may follow a failure. The rings are as large as the limits of address space and of file sizes permit: the whole
 * takes no more than an eighth of the former, unless it is the smallest.
 */
int ur_page_create(struct ur_own_page *own, uint8_t slot);
void ur_page_close(struct ur_own_page *own);
/* The ring to that slot can be written from now on; until then none can. False: it cannot, for want of memory. */
bool ur_page_open_ring(const struct ur_own_page *own, uint8_t slot);

/* Another process of this user, as it introduced itself. */
struct ur_sibling {
	const struct ur_page *page; /* without the rings */
	const uint8_t *ring;        /* from it to us */
	uint32_t ring_bytes;
	int wake_fd;
	pid_t pid; /* as it is called here; 0: in another pid namespace */
	uint32_t id;
	uint8_t slot;
};

/*
 * The bytes of each ring of a page, if it is memory that can be read without fear: sealed against shrinking, of a right size, and not of
 * huge pages that may run out. Otherwise 0.
 */
uint32_t ur_page_check(int memfd);
/*
 * Maps what another process handed over; takes both descriptors, which may be anything. NULL when they are not what they should be, or
 * memory is short.
 */
struct ur_sibling *ur_sibling_map(const struct ur_own_page *own, int memfd, int wake_fd, uint32_t id, uint8_t slot, pid_t pid);
void ur_sibling_free(struct ur_sibling *s);

#endif
