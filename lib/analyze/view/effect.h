/* SPDX-License-Identifier: BSD-3-Clause */
/* How much was sent in the millisecond before something told a sender to slow down, and in the millisecond after. */
#ifndef UR_AN_EFFECT_H
#define UR_AN_EFFECT_H

#include "analyze/analyze.h"

#define UR_EFFECT_SLOTS 32

/* In the texts: what it is called. */
/* clang-format off */
#define UR_EFFECTS(X) \
	X(CNP, "CNPs") \
	X(MARK, "congestion marks") \
	X(PAUSE, "pause frames")
/* clang-format on */

enum ur_effect_kind {
#define UR_EFFECT_ENUM(id, name) UR_EFFECT_##id,
	UR_EFFECTS(UR_EFFECT_ENUM)
#undef UR_EFFECT_ENUM
		UR_EFFECT_COUNT
};
extern const char *const ur_effect_names[UR_EFFECT_COUNT];

/* Of what comes in a series, less than a millisecond apart, the first one counts. */
struct ur_effect {
	uint64_t series;                               /* with a millisecond before and one after it, as recorded */
	uint64_t before, before_ns, after, after_ns;   /* bytes and time of all of them */
	uint64_t now_before, now_before_ns, now_after; /* of the newest */
	ur_time at, newest;
	bool open;
};

struct ur_effects {
	struct ur_effect of[UR_EFFECT_COUNT];
	uint64_t slots[UR_EFFECT_SLOTS], slot; /* bytes of the newest parts of a millisecond; the number of the newest */
	ur_time first, pause_began;
	bool begun;
};

void ur_effects_sent(struct ur_effects *e, ur_time when, uint32_t bytes);
void ur_effects_slowed(struct ur_effects *e, enum ur_effect_kind kind, ur_time when);
/* Of one half: what it sent, and what slowed it down. */
void ur_effects_event(struct ur_effects *e, const struct ur_an_event *ev);
bool ur_effects_any(const struct ur_effects *e);
/* Bits in a second. */
uint64_t ur_effect_before(const struct ur_effect *f);
uint64_t ur_effect_after(const struct ur_effect *f);

/* --- of all halves, for an analysis that nothing else observes --- */

#define UR_EFFECTS_HALVES 4096 /* more are not looked at */

struct ur_effects_half {
	struct ur_effects_half *next;
	struct ur_effects effects;
};

struct ur_effects_all {
	struct ur_effects_half *first;
	uint32_t n;
};

/* An observer's: `ctx` is a struct ur_effects_all, zero to begin with. */
void ur_effects_observe(void *ctx, const struct ur_an_event *e);
void ur_effects_free(struct ur_effects_all *all);
/* NULL when it is not looked at. */
static inline const struct ur_effects *ur_effects_of(const struct ur_an_half *h)
{
	return h->mine ? &((const struct ur_effects_half *)h->mine)->effects : NULL;
}

#endif
