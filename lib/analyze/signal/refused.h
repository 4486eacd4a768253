/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_AN_REFUSED_H
#define UR_AN_REFUSED_H

#include "analyze/state/state.h"

/* A phrase for {s1} of a NAK for an access, and the values that it needs, as far as accepted requests tell; "" otherwise. */
const char *an_refused_access(const struct an_stream *s, uint64_t psn, struct ur_finding *say);
/* The same of a NAK for an invalid request. */
const char *an_refused_request(const struct an_stream *s, uint64_t psn, struct ur_finding *say);

#endif
