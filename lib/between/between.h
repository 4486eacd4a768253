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

#define UR_BETWEEN_RULES 256     /* at a time */
#define UR_BETWEEN_RULE_TEXT 256 /* bytes of the text of one, with its end */
#define UR_BETWEEN_FRAME 65600   /* bytes of the longest frame that can be held */
#define UR_BETWEEN_EXTRA 12      /* bytes that go with a frame and are not looked at */
#define UR_BETWEEN_CHANGES 16    /* rules that corrupt, mark or trim one frame; further ones do not act on the frame */
#define UR_BETWEEN_QUEUE_MAX (1u << 30)

/*
 * A bottleneck in each direction. What waits is counted in bytes, including the rest of the frame that is leaving. ECN-capable
 * packets are marked when more than mark_at wait: all of them, or with mark_full, a share that grows from there up to mark_most at
 * mark_full, and all beyond that. The host whose frames wait is paused when more than pause_at do, until no more than pause_until do.
 */
struct ur_between_limit {
	uint64_t rate;        /* bits in a second; 0: no limit, and no queue */
	uint32_t queue;       /* bytes that may wait; at most UR_BETWEEN_QUEUE_MAX */
	uint32_t mark_at;     /* 0: none are marked */
	uint32_t mark_full;   /* 0: there is no share */
	uint32_t mark_most;   /* in parts per million */
	uint32_t pause_at;    /* 0: no host is paused */
	uint32_t pause_until; /* less than pause_at */
	bool obey; /* obey pause frames for this class: meanwhile nothing leaves for that host; the pause frame is not passed on */
	uint8_t pause_class; /* the priority, 0 to 7 (802.1Qbb), or UR_BETWEEN_PAUSE_LINK: all of them (802.3, annex 31B) */
};
#define UR_BETWEEN_PAUSE_LINK 8
#define UR_BETWEEN_PAUSE_FRAME 60 /* bytes of a pause frame */

/* Pauses of the host at one end. */
struct ur_between_pauses {
	uint64_t times, frames; /* how often it was paused; pause frames that were sent to it */
	uint64_t obeyed;        /* pause frames of its own */
};

/* A rule of the cable. */
struct ur_between_rule {
	struct ur_fault_row row;
	unsigned number; /* from 1, and never given again */
	bool deleted;    /* it acts no more; it is forgotten when another one needs its place */
	ur_time base;    /* its times count from then; 0: from the first frame on */
	char text[UR_BETWEEN_RULE_TEXT];
};

struct ur_between_host {
	/* A frame leaves at `end`; `extra` is what came with it. It may be sent while another one comes in. */
	void (*send)(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra);
	/* What becomes of a frame that came in at `end`, before a rule changes it, and before it leaves; NULL: nobody wants to know. */
	void (*judged)(void *ctx, ur_time now, unsigned end, const uint8_t *frame, uint32_t len, const struct ur_between_fate *fate);
	void *ctx;
};

struct ur_between;

/* A cable without rules and limits. NULL when there is no memory. `host` is copied. */
struct ur_between *ur_between_create(uint64_t seed, const struct ur_between_host *host);
/* Frames that are held are gone. NULL is nothing. */
void ur_between_destroy(struct ur_between *b);

/*
 * One more rule, behind the others, whose times count from `now`, or if that is 0 from the first frame on: its number, or 0 when there are
 * UR_BETWEEN_RULES, or no memory.
 */
unsigned ur_between_add(struct ur_between *b, ur_time now, const struct ur_fault_rule *r, const char *text);
/* False when there is no rule of this number. What it holds leaves with the next run. */
bool ur_between_delete(struct ur_between *b, ur_time now, unsigned number);
/* In the order of their numbers, from 0 on; NULL beyond the last. */
const struct ur_between_rule *ur_between_rule(const struct ur_between *b, unsigned i);
/* 0 or ENOMEM. What waits leaves at the new rate, or with the next run when there is none, before what comes later. */
int ur_between_set_limit(struct ur_between *b, ur_time now, const struct ur_between_limit *l);
const struct ur_between_limit *ur_between_limit(const struct ur_between *b);

/* The cable is about to end: paused hosts may send again. */
void ur_between_unpause(struct ur_between *b);
const struct ur_between_pauses *ur_between_pauses(const struct ur_between *b, unsigned end);
/* Releases with the next run what a rule holds, or with 0 what all rules hold. Returns how many frames. */
unsigned ur_between_release(struct ur_between *b, ur_time now, unsigned number);

/*
 * A frame comes in at an end, 0 or 1. It may be changed. `extra` has UR_BETWEEN_EXTRA bytes; they begin with a struct virtio_net_hdr. Those
 * of a frame whose checksums were computed here, because a rule changed it, or are to stay wrong, are all zero when it leaves, as are those
 * of a pause frame.
 */
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

/* Are there rules, a bottleneck, or frames that wait, so that each packet has to come in by itself? */
bool ur_between_acts(const struct ur_between *b);
const struct ur_account *ur_between_account(const struct ur_between *b);

#endif
