/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/tracer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/output.h"
#include "engine/internal.h"
#include "observe/trace_file.h"
#include "observe/usdt.h"

struct ur_tracer {
	struct ur_trace trace;
	struct ur_nic *nic;
	struct ur_trace_file *file; /* NULL: none */
	const char *path;
	bool probes; /* somebody is attached */
};

static void on_event(struct ur_trace *trace, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	struct ur_tracer *t = ur_container_of(trace, struct ur_tracer, trace);

	if (t->file)
		ur_trace_file_put(t->file, t->nic->now, id, v);
	if (t->probes)
		ur_usdt_fire(id, v);
}

static void set_trace(struct ur_tracer *t)
{
	ur_nic_set_trace(t->nic, t->file || t->probes ? &t->trace : NULL);
}

int ur_tracer_open(struct ur_engine *e, struct ur_tracer **out)
{
	struct ur_tracer *t = calloc(1, sizeof(*t));
	int err = 0;

	if (!t)
		return ENOMEM;
	t->trace.event = on_event;
	t->nic = e->nic;
	t->path = e->cfg.trace;
	if (e->cfg.trace[0])
		err = ur_trace_file_open(e->cfg.trace, ur_engine_now(), &t->file);
	if (err) {
		ur_engine_set_error("cannot write the trace '%s': %s", e->cfg.trace, ur_output_reason(err));
		free(t);
		return err;
	}
	t->probes = ur_usdt_wanted();
	set_trace(t);
	*out = t;
	return 0;
}

void ur_tracer_check_probes(struct ur_tracer *t, struct ur_engine *e)
{
	if (ur_likely(!t || ur_usdt_wanted() == t->probes) || !ur_engine_try(e))
		return;
	t->probes = !t->probes;
	set_trace(t);
	ur_engine_unlock(e);
}

void ur_tracer_forget(struct ur_tracer *t)
{
	if (t->file)
		ur_trace_file_forget(t->file);
}

void ur_tracer_close(struct ur_tracer *t)
{
	uint64_t lost;
	int err;

	ur_nic_set_trace(t->nic, NULL);
	lost = t->file ? ur_trace_file_close(t->file, &err) : 0;
	if (lost)
		fprintf(stderr, "uroce: the trace '%s' lacks its last %" PRIu64 " event%s: %s\n", t->path, lost, ur_plural(lost),
			!err               ? "they came faster than they could be written"
			: err == ETIMEDOUT ? "nobody reads it"
					   : ur_output_reason(err));
	free(t);
}
