/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A recording that may be shown to others: frames come out with other addresses, QPNs, PSNs and payload, inside the messages of the
 * connection manager too, and with lengths and checksums that fit. What was wrong stays wrong in the same way: an analysis says the same
 * of the result as of the recording, but what it says of payload that is no longer there, and of ICMP errors, which do not come out. Of a
 * frame that the recorder cut, what it kept is changed.
 *
 * A frame is done as it comes, so memory is bounded by the hosts. What hangs together gets the same number everywhere: a QPN by its host,
 * a PSN by the pair of hosts, whichever of them sends it.
 *
 * What comes out is Ethernet. Outer headers (VXLAN) and cooked ones are left off; a train comes out as the packets that it holds.
 */
#ifndef UR_REWRITE_H
#define UR_REWRITE_H

#include "analyze/analyze.h"
#include "base/random.h"

struct ur_rewrite_addr { /* the first `bits` bits of a GID that begins as `old` does become those of `new` */
	struct ur_gid old, new;
	uint8_t bits;
};

struct ur_rewrite_qpn {
	uint32_t old, new;
};

struct ur_rewrite_mac {
	struct ur_mac old, new;
};

enum ur_rewrite_payload {
	UR_PAYLOAD_KEEP,
	UR_PAYLOAD_ZERO,
	UR_PAYLOAD_SCRAMBLE, /* equal contents remain equal, and different ones different */
};

struct ur_rewrite_config {
	const struct ur_rewrite_addr *addr; /* the first that fits counts */
	const struct ur_rewrite_qpn *qpn;
	const struct ur_rewrite_mac *mac;
	unsigned naddr, nqpn, nmac;
	bool new_addr, new_qpn, new_mac, new_psn; /* of all that the lists do not name */
	uint32_t psn_add;
	enum ur_rewrite_payload payload;
	struct ur_seed seed; /* nobody who does not know it learns what was there */
};

struct ur_rewrite_totals {
	uint64_t frames, written;
	uint64_t other; /* not RoCEv2: nothing comes out */
	uint64_t hosts; /* packets of more hosts than can get new addresses: nothing comes out */
};

struct ur_rewrite;
typedef void (*ur_rewrite_fn)(void *ctx, const struct ur_an_frame *f);

/* `out` is called for each frame that comes out. NULL when memory is short. The lists of *c must stay. */
struct ur_rewrite *ur_rewrite_create(const struct ur_rewrite_config *c, ur_rewrite_fn out, void *ctx);
void ur_rewrite_destroy(struct ur_rewrite *w);
void ur_rewrite_frame(struct ur_rewrite *w, const struct ur_an_frame *f);
void ur_rewrite_totals(const struct ur_rewrite *w, struct ur_rewrite_totals *t);

#endif
