/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that change recordings share.
 *
 *   checksums.c       lengths and checksums that fit what has been changed
 *   rewrite.c         the way of a frame
 *   rewrite_cm.c      messages of the connection manager
 *   rewrite_options.c what stands between the IP header and UDP
 *   rewrite_names.c   what addresses, QPNs and PSNs become
 *   rewrite_data.c    what payload becomes
 *   mutate*.c         falsified copies
 */
#ifndef UR_REWRITE_PRIV_H
#define UR_REWRITE_PRIV_H

#include "analyze/change/rewrite.h"
#include "analyze/state/state.h"

struct ur_rewrite {
	struct ur_rewrite_config c;
	ur_rewrite_fn out;
	void *ctx;
	uint64_t key;          /* of QPNs, PSNs and GUIDs */
	uint32_t data_key[8];  /* of payload */
	struct ur_table hosts, macs;
	bool full; /* a host of this frame got no new address */
	uint8_t *room;
	size_t size;
	struct ur_rewrite_totals total;
};

/* --- checksums.c --- */

/* The checksum of the IPv4 header at `ip`, which has `len` bytes. */
void an_checksum_ip4(uint8_t *ip, uint32_t len);
/* The checksum of `len` bytes of UDP header and payload; leaves one that is zero, which is none. `ip` is the header in front. */
void an_checksum_udp(const uint8_t *ip, uint8_t version, uint8_t *udp, uint32_t len);
/* All of a packet whose IP header has no options: `len` bytes at `ip`, of which the last four become the ICRC. */
void an_checksums(uint8_t *ip, uint8_t version, uint32_t len);

/* --- rewrite_names.c --- */

struct ur_gid rewrite_addr(struct ur_rewrite *w, const struct ur_gid *g);
struct ur_mac rewrite_mac(struct ur_rewrite *w, const struct ur_mac *m);
/* A QPN of the host `g`, by its old address. */
uint32_t rewrite_qpn(const struct ur_rewrite *w, const struct ur_gid *g, uint32_t qpn);
/* A PSN of what a host sends alone (`dst` is NULL), or between two. */
uint32_t rewrite_psn(const struct ur_rewrite *w, const struct ur_gid *src, const struct ur_gid *dst, uint32_t psn);
uint64_t rewrite_guid(const struct ur_rewrite *w, uint64_t guid);
void rewrite_names_fini(struct ur_rewrite *w);

/* --- rewrite_options.c --- */

/*
 * Options and extension headers of packet `p`, whose copy begins at `ip`. Gives where the address stands that a segment routing header
 * leads to; NULL when there is none.
 */
const uint8_t *rewrite_options(struct ur_rewrite *w, const struct an_pkt *p, uint8_t *ip);

/* --- rewrite_data.c --- */

void rewrite_data(const struct ur_rewrite *w, uint8_t *data, size_t len);

/* --- rewrite_cm.c --- */

/* The message at `mad` of packet `p`, of which `have` bytes were recorded. False when it is none. */
bool rewrite_cm(struct ur_rewrite *w, const struct an_pkt *p, uint8_t *mad, size_t have);

#endif
