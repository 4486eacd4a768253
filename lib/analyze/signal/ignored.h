/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs and atomics that were answered once, as recorded, are asked for again, and then nothing answers them. Such a request is not open:
 * its answer is in the recording. But the requester never got it, and in the end gives up. (rdma_rxe answers no part of a READ that begins
 * below one that it has repeated.)
 */
#ifndef UR_AN_IGNORED_H
#define UR_AN_IGNORED_H

#include "analyze/state/state.h"

/* A READ or atomic comes again. */
void an_ignored_asked(struct an_flow *f, const struct an_pkt *p, uint64_t psn);
/* Something answers `psn`, or refuses it. */
void an_ignored_answered(struct an_stream *s, uint64_t psn);
/* Nothing has answered it up to the end, at which it was still asked for: then the facts say that it is open, and the
 * oldest of what is open. */
void an_ignored_finish(struct an_flow *f);

#endif
