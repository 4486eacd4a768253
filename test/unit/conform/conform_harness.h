/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of lib/conform that is made of the scripts themselves: it answers each step as it is written, or lies at one step about one
 * field.
 */
#ifndef UR_CONFORM_HARNESS_H
#define UR_CONFORM_HARNESS_H

#include "analyze_harness.h"
#include "conform/internal.h"
#include "wire/sack.h"

enum falsehood {
	NONE,
	SILENCE,
	OPCODE,
	PSN,
	SYNDROME,
	MSN,
	LENGTH,
	DATA,
	VALUE,
	ADDRESS,
	EARLY,
	NOISE,
	ILL_FORMED,
	CM_OTHER,
	CM_REASON,
	CM_OTHER_ID,
	BECN,
	FALSEHOODS
};

struct peer {
	const char *only; /* the rule that is played; NULL: all */
	struct ur_cf_run *run;
	const struct ur_cf_step *lie; /* where */
	enum falsehood about;
	ur_time now;
	uint32_t number, sent_psn; /* of the last packet to a QP of ours */
	unsigned lies;
	bool ordinary, alternative, plain; /* it offers nothing; it takes the other way; it serves only the first two modes */
	bool lacks_receives;               /* for what it has kept beyond a gap */
	uint8_t reserved;                  /* what it has in the bits beside AckReq */
	struct ur_recording *recording;    /* of all that goes both ways; NULL: there is none */
	ur_time recorded;                  /* the time of its newest frame */
	uint8_t out[UR_PKT_ROOM], in[UR_PKT_ROOM];
};

/* `only`: the name of the rule that is played; NULL: all. */
void cf_peer_begin(struct peer *p, const char *only);
void cf_peer_end(struct peer *p);
/* Takes all that the judge sends now. */
void cf_peer_drain(struct peer *p);
/* The packet that the step waits for, with one thing wrong about it. */
void cf_peer_answer(struct peer *p, const struct ur_cf_step *s, enum falsehood f);
/* Lets the time pass that the judge waits at most. */
void cf_peer_wait(struct peer *p);
/* Does what the step of the script is waiting for, or `lie`s. */
void cf_peer_react(struct peer *p);
/* Can what the step waits for be false in this way? */
bool cf_peer_applies(const struct ur_cf_step *s, enum falsehood f);
/* To the end of all rules; returns the result of the first one. */
struct ur_cf_result cf_peer_play(struct peer *p);

#endif
