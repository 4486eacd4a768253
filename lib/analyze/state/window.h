/* SPDX-License-Identifier: BSD-3-Clause */
/* The request packets of a flow that something may still happen to. */
#ifndef UR_AN_WINDOW_H
#define UR_AN_WINDOW_H

#include "analyze/state/state.h"

/*
 * Makes room for a record before number `i` (n: at the end). What lies before PSN `done` is forgotten when its place is needed, and so is
 * the oldest when memory is short; NULL when there is none at all. Pointers to other records are no longer good.
 */
struct an_req *an_window_insert(struct ur_analysis *a, struct an_window *w, uint32_t i, uint64_t done);
/* Index of the record that has this PSN; w->n when there is none. */
uint32_t an_window_find(const struct an_window *w, uint64_t psn);
/* A hole at place `i`: psn, n, frame, when and further flags are of `hole`. NULL when there is no room. */
struct an_req *an_hole_insert(struct ur_analysis *a, struct an_stream *s, uint32_t i, const struct an_req *hole);
/* Requests were not here: nothing is known of the message that goes on after them, nor of the number of messages. */
void an_message_lost(struct an_stream *s);
void an_window_free(struct ur_analysis *a, struct an_window *w);

/* Where the newest responses of a flow were. */
void an_seen_note(struct ur_analysis *a, struct an_stream *s, uint64_t psn, uint32_t frame);
void an_seen_free(struct ur_analysis *a, struct an_stream *s);
/* The frame that had the response `psn`, or 0; `unknown`: it is too long ago to be known. */
uint32_t an_seen_frame(const struct an_stream *s, uint64_t psn, bool *unknown);

/* A READ or atomic is in flight no more: its answer came, or is due. */
static inline void an_read_over(struct an_stream *s, struct an_req *r)
{
	r->flags |= AN_REPORTED;
	s->depth -= s->depth > 0;
}

void an_fill(struct an_flow *f, struct an_req *r, const struct an_pkt *p, uint64_t psn);

#endif
