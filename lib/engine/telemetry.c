/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process publishes (lib/observe/status.h), on DPDK's telemetry socket: the counters of the device, and of each queue pair. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/dpdk.h"
#include "engine/engine_priv.h"
#include "observe/publish.h"
#include "observe/status.h"

_Static_assert(UR_STATUS_COUNTERS <= UR_ETHDEV_VALUES, "the counters fit");

static void put(struct ur_ethdev_value *v, const char *name, uint64_t value)
{
	snprintf(v->name, sizeof(v->name), "%s", name);
	v->value = value;
}

/* Takes the NIC. NULL when nothing is published. */
static const struct ur_status *renewed(struct ur_engine *e)
{
	struct ur_nic *nic = ur_engine_lock(e);

	if (!e->publisher)
		return NULL;
	ur_publisher_write(e->publisher, nic, ur_engine_now());
	return ur_publisher_status(e->publisher);
}

static unsigned device_counters(void *ctx, const char *params, struct ur_ethdev_value *v, unsigned n)
{
	const struct ur_status *s = renewed(ctx);
	unsigned got = 0;

	(void)params;
	for (; s && got < s->counters && got < n; got++)
		put(&v[got], s->counter[got].name, s->counter[got].value);
	ur_engine_unlock(ctx);
	return got;
}

/* Which there are, by number, with their states. */
static unsigned list_qps(const struct ur_status *s, struct ur_ethdev_value *v, unsigned n)
{
	unsigned got = 0;
	char number[16];

	put(&v[got++], "count", s->total);
	for (unsigned i = 0; i < s->qps && got < n; i++) {
		snprintf(number, sizeof(number), "%u", s->qp[i].qpn);
		put(&v[got++], number, s->qp[i].state);
	}
	return got;
}

static unsigned one_qp(const struct ur_status *s, const char *number, struct ur_ethdev_value *v, unsigned n)
{
	uint32_t qpn = (uint32_t)strtoul(number, NULL, 0);
	const uint64_t *values;
	unsigned i = 0;

	while (i < s->qps && s->qp[i].qpn != qpn)
		i++;
	if (i == s->qps || n < UR_QP_COUNTER_COUNT)
		return 0;
	values = (const uint64_t *)&s->qp[i].n;
	for (i = 0; i < UR_QP_COUNTER_COUNT; i++)
		put(&v[i], ur_qp_counter_name(i), values[i]);
	return UR_QP_COUNTER_COUNT;
}

static unsigned qp_counters(void *ctx, const char *params, struct ur_ethdev_value *v, unsigned n)
{
	const struct ur_status *s = renewed(ctx);
	unsigned got = 0;

	if (s)
		got = params && *params ? one_qp(s, params, v, n) : list_qps(s, v, n);
	ur_engine_unlock(ctx);
	return got;
}

int ur_telemetry_offer(struct ur_engine *e, const struct ur_ethdev_module *dpdk)
{
	int err = dpdk->telemetry("/uroce/counters", "Returns the counters of the device. No parameters.", device_counters, e);

	if (!err)
		err = dpdk->telemetry("/uroce/qp",
				      "Returns the counters of a queue pair, or the numbers and states of all. Parameter: number",
				      qp_counters, e);
	return err;
}
