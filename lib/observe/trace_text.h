/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a trace as text: JSON for files (doc/trace.md), a shorter form for eyes. */
#ifndef UR_TRACE_TEXT_H
#define UR_TRACE_TEXT_H

#include "base/trace.h"

#define UR_TRACE_LINE 640 /* no line of either is longer */

/* The name of a value, of whatever layer; NULL when it has none. */
const char *ur_trace_name(enum ur_trace_type type, uint64_t v);
/* One object with a line feed after it; `when` in ns since 1970. Returns its length. */
unsigned ur_trace_json(char to[UR_TRACE_LINE], uint64_t when, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS]);
/* "qp_state qpn=17 from=RTR to=RTS", without a line feed. */
unsigned ur_trace_line(char to[UR_TRACE_LINE], enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS]);

#endif
