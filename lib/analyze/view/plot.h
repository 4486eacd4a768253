/* SPDX-License-Identifier: BSD-3-Clause */
/* What is drawn of the requests of one end: PSNs, rate, what is in flight, round trips, and events. Memory is bounded. */
#ifndef UR_AN_PLOT_H
#define UR_AN_PLOT_H

#include "analyze/analyze.h"
#include "analyze/state/curve.h"

#define UR_PLOT_POINTS 2048 /* of a curve */
#define UR_PLOT_MARKS 1024  /* of a kind of events */
#define UR_PLOT_BINS 256

/* What is summed up of intervals: bytes of payload. */
enum ur_plot_sum { UR_PLOT_BYTES, UR_PLOT_BYTES_AGAIN, UR_PLOT_SUMS };

/* In the texts of marks: what it is called in a key. */
/* clang-format off */
#define UR_PLOT_MARK_KINDS(X) \
	X(NAK, "NAK") \
	X(RNR, "RNR NAK") \
	X(TIMEOUT, "timeout") \
	X(LOSS, "loss repaired") \
	X(NEEDLESS, "needless repeat") \
	X(MARKED, "ECN mark") \
	X(CNP, "CNP") \
	X(PAUSE, "pause") \
	X(ICMP, "ICMP error") \
	X(FATAL, "refused")
/* clang-format on */

enum ur_plot_mark {
#define UR_PLOT_MARK_ENUM(id, name) UR_PLOT_##id,
	UR_PLOT_MARK_KINDS(UR_PLOT_MARK_ENUM)
#undef UR_PLOT_MARK_ENUM
		UR_PLOT_MARK_COUNT
};
extern const char *const ur_plot_mark_names[UR_PLOT_MARK_COUNT];

struct ur_plot {
	/* PSNs, counted on beyond 24 bits. The window: how far the most that was in flight so far would reach. */
	struct ur_curve sent, again, responses, acked, has, window;
	struct ur_curve flight, rtt; /* PSNs; ns */
	struct ur_curve marks[UR_PLOT_MARK_COUNT];
	uint64_t counts[UR_PLOT_MARK_COUNT];
	struct ur_bins bins;
	uint64_t most;        /* PSNs in flight */
	uint64_t first, last; /* PSNs */
	ur_time begin, end;
	bool begun, sent_any;
	ur_time paused; /* the newest PAUSE frame */
};

void ur_plot_init(struct ur_plot *p);
void ur_plot_fini(struct ur_plot *p);
/* Of the end that is drawn. */
void ur_plot_event(struct ur_plot *p, const struct ur_an_event *e);
/* Values that memory was too short for. */
uint64_t ur_plot_lost(const struct ur_plot *p);

#endif
