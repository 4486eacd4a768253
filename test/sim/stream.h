/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steady streams in virtual time: one or several hosts move memory to (or, with READ, from) host 0 as fast as they may, over a fabric of
 * chosen rate, round trip, loss and marking. What losstable prints and cctest asserts.
 */
#ifndef UR_TEST_STREAM_H
#define UR_TEST_STREAM_H

#include "drivers/sim/sim.h"
#include "nic/nic.h"

#define STREAM_SENDERS 4

struct stream_opt {
	unsigned senders;                 /* 1 to STREAM_SENDERS */
	bool read;                        /* READs from host 0 rather than WRITEs to it */
	bool cc, plain;                   /* congestion control; ur_tp_config.plain_recovery */
	unsigned window;                  /* as in ur_tp_config */
	uint32_t mbps;                    /* of every link */
	ur_time rtt;                      /* of an empty fabric */
	uint32_t loss_ppm;                /* of the packets of each direction */
	uint32_t queue_bytes, mark_bytes; /* of the link to host 0, as in struct ur_sim_link */
	uint8_t timeout;                  /* of the QPs */
	ur_time warm, span;               /* the stream runs for `warm` before `span` is measured */
	uint64_t seed;
};

struct stream_result {
	uint64_t bytes[STREAM_SENDERS]; /* completed within `span`, by sender */
	uint64_t queue_drops, marked;   /* of the fabric, within `span` */
	uint64_t counters[UR_C_COUNT];  /* of all hosts, from the beginning */
	bool failed;                    /* a request completed with an error */
};

void stream_run(const struct stream_opt *o, struct stream_result *out);
/* Payload of sender `i`, or of all when it is -1, as a share of what a link carries. */
double stream_share(const struct stream_opt *o, const struct stream_result *r, int i);

#endif
