/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/status.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(UR_C_COUNT <= UR_STATUS_COUNTERS, "the counters fit");

void ur_status_init(struct ur_status *s, int32_t pid)
{
	s->layout = UR_STATUS_LAYOUT;
	s->qp_bytes = sizeof(struct ur_status_qp);
	s->pid = pid;
	s->counters = UR_C_COUNT;
	for (unsigned i = 0; i < UR_C_COUNT; i++)
		strncpy(s->counter[i].name, ur_counter_name((enum ur_counter)i), UR_STATUS_TEXT - 1);
	strncpy(s->version, UR_VERSION, UR_STATUS_TEXT - 1);
	s->magic = UR_STATUS_MAGIC;
}

void ur_status_begin(struct ur_status *s)
{
	uint32_t changes = atomic_load_explicit(&s->changes, memory_order_relaxed);

	atomic_store_explicit(&s->changes, changes + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

void ur_status_end(struct ur_status *s)
{
	uint32_t changes = atomic_load_explicit(&s->changes, memory_order_relaxed);

	atomic_store_explicit(&s->changes, changes + 1, memory_order_release);
}

/* --- the onlooker --- */

void ur_status_text(char *to, size_t room, const char *from, size_t n)
{
	size_t i = 0;

	for (; i < n && i + 1 < room && from[i]; i++)
		to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?';
	to[i] = 0;
}

static void take_counters(const struct ur_status *s, struct ur_status_view *v)
{
	uint32_t n = ur_min_u32(s->counters, UR_STATUS_COUNTERS);

	for (unsigned c = 0; c < UR_C_COUNT; c++) {
		const char *name = ur_counter_name((enum ur_counter)c);
		uint32_t k = c; /* in the same place, mostly */

		if (k >= n || strncmp(s->counter[k].name, name, UR_STATUS_TEXT) != 0)
			for (k = 0; k < n && strncmp(s->counter[k].name, name, UR_STATUS_TEXT) != 0; k++)
				continue;
		v->has[c] = k < n;
		v->counter[c] = k < n ? s->counter[k].value : 0;
	}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct ur_status_qp *)a)->qpn, y = ((const struct ur_status_qp *)b)->qpn;

	return x < y ? -1 : x > y;
}

void ur_status_add_lane(struct ur_status_view *v, const struct ur_status_view *lane)
{
	for (unsigned c = 0; c < UR_C_COUNT; c++) {
		v->has[c] |= lane->has[c];
		v->counter[c] += lane->counter[c];
	}
	for (uint32_t i = 0; i < lane->count && v->count < UR_STATUS_QPS; i++)
		v->qp[v->count++] = lane->qp[i];
	qsort(v->qp, v->count, sizeof(v->qp[0]), by_number);
	v->total += lane->total;
	v->at = ur_max_time(v->at, lane->at);
	v->started = ur_min_time(v->started, lane->started);
	v->lanes |= lane->lanes;
}

/* While QPs come and go one may stand in two places: the newer entry counts. */
static void drop_doubles(struct ur_status_view *v)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->count; i++) {
		struct ur_status_qp *last = kept ? &v->qp[kept - 1] : NULL;

		if (!last || last->qpn != v->qp[i].qpn)
			v->qp[kept++] = v->qp[i];
		else if (last->at < v->qp[i].at)
			*last = v->qp[i];
	}
	v->count = kept;
}

static void take_qps(const struct ur_status *s, struct ur_status_view *v)
{
	uint32_t n = ur_min_u32(s->qps, UR_STATUS_QPS);

	v->count = 0;
	for (uint32_t i = 0; i < n; i++)
		if (s->qp[i].qpn)
			v->qp[v->count++] = s->qp[i];
	qsort(v->qp, v->count, sizeof(v->qp[0]), by_number);
	drop_doubles(v);
	v->total = s->total < v->count ? v->count : s->total;
}

enum ur_status_verdict ur_status_check(const struct ur_status *copy, size_t bytes, uint32_t before, uint32_t after, int32_t pid,
				       struct ur_status_view *v)
{
	if (bytes < offsetof(struct ur_status, counters) || copy->magic != UR_STATUS_MAGIC)
		return UR_STATUS_BAD;
	if (copy->pid != pid)
		return UR_STATUS_BAD;
	ur_status_text(v->version, sizeof(v->version), copy->version, sizeof(copy->version));
	if (copy->layout != UR_STATUS_LAYOUT || copy->qp_bytes != sizeof(struct ur_status_qp) || bytes != sizeof(*copy))
		return UR_STATUS_OTHER;
	if ((before & 1) || before != after)
		return UR_STATUS_BUSY;
	ur_status_text(v->device, sizeof(v->device), copy->device, sizeof(copy->device));
	ur_status_text(v->interface, sizeof(v->interface), copy->interface, sizeof(copy->interface));
	ur_status_text(v->port, sizeof(v->port), copy->port, sizeof(copy->port));
	ur_status_text(v->uses, sizeof(v->uses), copy->uses, sizeof(copy->uses));
	v->lanes = 1u << copy->lane % UR_STATUS_LANES;
	v->at = copy->at;
	v->started = copy->started;
	take_counters(copy, v);
	take_qps(copy, v);
	return UR_STATUS_GOOD;
}
