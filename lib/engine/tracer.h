/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receivers of trace events: the file that the setting `trace` names, and tools that are attached to the USDT probes. Without
 * either the layers below have no trace at all.
 */
#ifndef UR_TRACER_H
#define UR_TRACER_H

struct ur_engine;
struct ur_tracer;

/* Before anything happens on e->nic. 0, or an errno with the engine's sentence set. */
int ur_tracer_open(struct ur_engine *e, struct ur_tracer **out);
/* Now and then, not under the lock: has somebody attached to the probes, or the last of them gone? */
void ur_tracer_check_probes(struct ur_tracer *t, struct ur_engine *e);
/* In a forked child: its parent's. */
void ur_tracer_forget(struct ur_tracer *t);
/* Under the lock; says on standard error what a file lacks. */
void ur_tracer_close(struct ur_tracer *t);

#endif
