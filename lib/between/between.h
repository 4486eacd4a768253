/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/between: a cable with two ends, for `uroce between`. Frames come in at an end with the time, and leave at the other one by a
 * callback, at once or when they are due; on the way rules apply to them, and a bottleneck may limit their rate. What was done is kept with
 * what the hosts did about it (account.h). It reads no clock and does no I/O; its memory is bounded, and allocated when it is created.
 *
 * The direction of rules is as a host at the first end sees it: UR_FAULT_TX is from end 0 to end 1, UR_FAULT_RX from end 1 to end 0.
 */
#ifndef UR_BETWEEN_H
#define UR_BETWEEN_H

#include "between/account.h"
#include "fault/rule.h"

#define UR_BETWEEN_RULES 256
#define UR_BETWEEN_FRAME 65600 /* bytes of the longest frame that can be held */
#define UR_BETWEEN_EXTRA 12    /* bytes that go with a frame and are not looked at */
#define UR_BETWEEN_QUEUE_MAX (1u << 30)

struct ur_between_config {
	const struct ur_fault_rule *rules; /* copied */
	unsigned nrules;                   /* at most UR_BETWEEN_RULES */
	uint64_t seed;
	/* of each direction: */
	uint64_t rate;    /* bits in a second; 0: no limit, and no queue */
	uint32_t queue;   /* bytes that may wait; at most UR_BETWEEN_QUEUE_MAX */
	uint32_t mark_at; /* bytes from which on ECN-capable packets are marked; 0: none are */
};

struct ur_between_host {
	/* A frame leaves at `end`; `extra` is what came with it. */
	void (*send)(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra);
	/* What becomes of a frame that came in at `end`, before a rule changes it, and before it leaves; NULL: nobody wants to know. */
	void (*judged)(void *ctx, ur_time now, unsigned end, const uint8_t *frame, uint32_t len, const struct ur_between_fate *fate);
	void *ctx;
};

struct ur_between;

/* 0 or ENOMEM. `host` is copied. */
int ur_between_create(const struct ur_between_config *cfg, const struct ur_between_host *host, struct ur_between **out);
/* Frames that are held are gone. */
void ur_between_destroy(struct ur_between *b);

/* A frame comes in at an end, 0 or 1. It may be changed. `extra` has UR_BETWEEN_EXTRA bytes. */
void ur_between_in(struct ur_between *b, ur_time now, unsigned end, uint8_t *frame, uint32_t len, const uint8_t *extra);
/*
 * Counts a frame of `len` bytes, of which the first `have` are here, that the caller passes on by itself, as it may where there is nothing
 * to do to frames.
 */
void ur_between_note(struct ur_between *b, ur_time now, unsigned end, const uint8_t *frame, uint32_t have, uint32_t len);
/* Sends what is due. */
void ur_between_run(struct ur_between *b, ur_time now);
/* When the next frame is due, or UR_TIME_NEVER. */
ur_time ur_between_next(const struct ur_between *b);

/* Are there rules or a bottleneck, so that each packet has to come in by itself? */
bool ur_between_acts(const struct ur_between *b);
unsigned ur_between_hits(const struct ur_between *b, unsigned rule);
const struct ur_account *ur_between_account(const struct ur_between *b);

#endif
