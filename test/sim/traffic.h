/* SPDX-License-Identifier: BSD-3-Clause */
/* A random program of work requests on one pair of connected RC QPs, and the model that every completion is held against. */
#ifndef UR_TEST_TRAFFIC_H
#define UR_TEST_TRAFFIC_H

#include "world.h"

struct traffic;

/* Creates QPs, CQs and memory on both hosts and connects them. `ops` work requests are posted on each side over time. */
struct traffic *traffic_create(struct world *w, unsigned ops);
/* Posts what fits and reaps what completed. The sentence of the first broken promise, or NULL. */
const char *traffic_run(struct traffic *t);
bool traffic_done(const struct traffic *t);
/* Did a QP give up after its last retry? Then everything behind it must have been flushed, which traffic_run checks. */
bool traffic_gave_up(const struct traffic *t);
/* Destroys the objects; the sentence of what could not be destroyed, or NULL. */
const char *traffic_destroy(struct traffic *t);

#endif
