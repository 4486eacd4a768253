/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings in memory, and falsified copies of them: one packet dropped, duplicated, moved or changed, with lengths and an ICRC that are
 * correct again unless they are what is falsified. To test peers and analysers, including this one.
 */
#ifndef UR_MUTATE_H
#define UR_MUTATE_H

#include "analyze/frame/dissect.h"

struct ur_rec_frame {
	uint8_t *data;
	uint32_t have, len;
	ur_time when;
};

struct ur_recording {
	const char *name;
	enum ur_an_link link;
	struct ur_rec_frame *f;
	uint32_t n, room;
};

/* False when memory is short. Frames are numbered from 1 as they lie. */
bool ur_recording_add(struct ur_recording *r, const struct ur_an_frame *f);
/* A copy whose frames may be changed and rearranged; n is 0 when memory is short. */
struct ur_recording ur_recording_copy(const struct ur_recording *r);
void ur_recording_free(struct ur_recording *r);
struct ur_an_frame ur_recording_frame(const struct ur_recording *r, uint32_t i);
/* Reads frame `i`; false when it holds no RoCEv2 packet that is whole and parses, with a right ICRC. */
bool ur_recording_pkt(const struct ur_recording *r, uint32_t i, struct an_pkt *p);
/* The BTH in a frame that was read, to be changed. */
uint8_t *ur_recording_bth(const struct ur_recording *r, uint32_t i);
/* Makes lengths, checksums and ICRC right again; `less`: bytes cut off the end of the payload, before. */
void ur_recording_fix_checksums(const struct ur_recording *r, uint32_t i, uint32_t less);
void ur_recording_remove(struct ur_recording *r, uint32_t i);
/* A copy of frame `i` after it, at the same time. False when memory is short. */
bool ur_recording_repeat(struct ur_recording *r, uint32_t i);
/* Frame `i` moves to where frame `to` is; times stay. */
void ur_recording_move(struct ur_recording *r, uint32_t i, uint32_t to);

/* --- faults --- */

struct ur_fault {
	const char *name;
	const char *rules; /* names, with spaces between: any of them says what is wrong */
};

/* The table of faults; false after its end. */
bool ur_fault(unsigned fault, struct ur_fault *f);

/* What is known of the packets of a recording, which must not change meanwhile. NULL when memory is short. */
struct ur_mutator;
struct ur_mutator *ur_mutator_create(const struct ur_recording *r);
void ur_mutator_destroy(struct ur_mutator *m);

/* Has packet `i` what the fault falsifies, and does the recording let anybody decide that it is false? */
bool ur_mutation_fits(const struct ur_mutator *m, unsigned fault, uint32_t i);
/*
 * Falsifies packet `i`, which fits, in a copy of the recording, and says at which frames that may be named. False when it cannot be done to
 * this packet.
 */
bool ur_mutate(const struct ur_mutator *m, unsigned fault, uint32_t i, struct ur_recording *copy, uint32_t frames[2]);
/* Does a finding name the fault: at one of the frames, by one of the fault's rules? */
bool ur_mutation_named(unsigned fault, const uint32_t frames[2], const struct ur_finding *f);

#endif
