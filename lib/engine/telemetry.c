/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of a running process on DPDK's telemetry socket: of the device, and of each queue pair. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "drivers/ethdev/ethdev.h"
#include "engine/engine_priv.h"

_Static_assert((int)UR_C_COUNT <= UR_ETHDEV_VALUES, "the counters fit");

static unsigned device_counters(void *ctx, const char *params, struct ur_ethdev_value *v, unsigned n)
{
	struct ur_nic *nic = ur_engine_lock(ctx);

	(void)params;
	for (unsigned i = 0; i < UR_C_COUNT && i < n; i++) {
		snprintf(v[i].name, sizeof(v[i].name), "%s", ur_counter_name((enum ur_counter)i));
		v[i].value = nic->counters.v[i];
	}
	ur_engine_unlock(ctx);
	return UR_C_COUNT;
}

/* Which there are, by number, with their states. */
static unsigned list_qps(struct ur_tp *tp, struct ur_ethdev_value *v, unsigned n)
{
	uint32_t qpns[UR_ETHDEV_VALUES];
	unsigned found = ur_tp_qps(tp, qpns, n - 1);

	snprintf(v[0].name, sizeof(v[0].name), "count");
	v[0].value = found;
	for (unsigned i = 0; i < found; i++) {
		const struct ur_qp *qp = ur_qp_find(tp, qpns[i]); /* which is there, because the NIC is ours; compilers cannot know */

		snprintf(v[i + 1].name, sizeof(v[i + 1].name), "%u", qpns[i]);
		v[i + 1].value = qp ? ur_qp_state(qp) : IBV_QPS_RESET;
	}
	return found + 1;
}

static unsigned one_qp(struct ur_tp *tp, const char *number, struct ur_ethdev_value *v, unsigned n)
{
	const struct ur_qp *qp = ur_qp_find(tp, (uint32_t)strtoul(number, NULL, 0));
	const uint64_t *values;

	if (!qp || n < UR_QP_COUNTER_COUNT)
		return 0;
	values = &ur_qp_counters(qp)->tx_packets;
	for (unsigned i = 0; i < UR_QP_COUNTER_COUNT; i++) {
		snprintf(v[i].name, sizeof(v[i].name), "%s", ur_qp_counter_name(i));
		v[i].value = values[i];
	}
	return UR_QP_COUNTER_COUNT;
}

static unsigned qp_counters(void *ctx, const char *params, struct ur_ethdev_value *v, unsigned n)
{
	struct ur_nic *nic = ur_engine_lock(ctx);
	unsigned got;

	got = params && *params ? one_qp(nic->tp, params, v, n) : list_qps(nic->tp, v, n);
	ur_engine_unlock(ctx);
	return got;
}

int ur_telemetry_offer(struct ur_engine *e)
{
	int err = ur_ethdev_telemetry("/uroce/counters", "Returns the counters of the device. No parameters.", device_counters, e);

	if (!err)
		err = ur_ethdev_telemetry("/uroce/qp",
					  "Returns the counters of a queue pair, or the numbers and states of all. Parameter: number",
					  qp_counters, e);
	return err;
}
