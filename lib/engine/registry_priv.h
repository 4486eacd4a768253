/* SPDX-License-Identifier: BSD-3-Clause */
/* What registry.c (slots, mailboxes, looking) and registry_ports.c (the ports) share: the layout of the file, and its locks. */
#ifndef UR_REGISTRY_PRIV_H
#define UR_REGISTRY_PRIV_H

#include "engine/registry.h"

#define UR_REGISTRY_SLOTS 256 /* slot 0 is never handed out */
#define UR_REGISTRY_PORTS 65536
#define UR_REGISTRY_CHAINS 8192 /* a power of two */

/* Entries are named by their number from 1 on; 0 is none. */
struct ur_port_entry {
	uint8_t slot; /* 0: free */
	uint8_t listening, reuse, pad;
	uint16_t port_space, port;
	uint32_t lease; /* the slot's lease at binding: entries of an earlier owner are stale */
	uint32_t next;  /* of its chain, or of the free ones */
	struct ur_gid gid;
};

struct ur_registry_file {
	uint64_t magic;
	uint32_t next_slot;                /* where to look first, so that a slot comes round late */
	uint32_t lease[UR_REGISTRY_SLOTS]; /* counts the owners that a slot has had */
	int32_t owner[UR_REGISTRY_SLOTS];  /* pids, for people: a slot's lock and lease tell whether it is taken and by whom */
	struct {
		int32_t pid; /* 0: no mailbox */
		int32_t fd;
	} mailbox[UR_REGISTRY_SLOTS];
	bool started[UR_REGISTRY_SLOTS];
	char kind[UR_REGISTRY_SLOTS][UR_REGISTRY_KIND];
	uint8_t sharer[UR_REGISTRY_SLOTS]; /* slots of those that share a socket's port */
	uint32_t sharers;
	uint32_t next_ephemeral;
	uint32_t ports_used;                /* entries beyond have never been used, and the file has no page for them */
	uint32_t ports_free;                /* the first free entry of those that have */
	uint32_t chain[UR_REGISTRY_CHAINS]; /* the first entry of each chain, by port space and port */
	struct ur_port_entry ports[UR_REGISTRY_PORTS];
};

struct ur_registry {
	int fd;
	uint8_t slot;
	uint64_t key;
	char path[64];
	struct ur_registry_file *f;
};

/* registry.c */
void ur_registry_lock(struct ur_registry *r);
void ur_registry_unlock(struct ur_registry *r);
/* Has the file system find room for these bytes of the file. 0 or an errno: ENOSPC. */
int ur_registry_reserve(struct ur_registry *r, size_t off, size_t len);

/* registry_ports.c: gives back all ports of this process; with the lock. */
void ur_registry_release_all(struct ur_registry *r);

#endif
