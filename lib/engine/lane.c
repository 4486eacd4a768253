/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes of a device. A lane is what another process of this host would be: an engine with a slot, a port, mailboxes and a progress thread
 * of its own, so packets find their way to it as they find it to other processes. What it has in common with the device's first lane: the
 * regions and windows (ur_tp_join), the addresses and the link, which the first one watches, a capture, and faults.
 */
#include <stdio.h>
#include <string.h>

#include "engine/fork.h"
#include "engine/internal.h"
#include "host/processes.h"
#include "observe/counters_file.h"
#include "observe/status.h"

_Static_assert(UR_COUNTERS_SOURCES >= UR_LANES && UR_STATUS_LANES >= UR_LANES && UR_PROCESS_LANES >= UR_LANES - 1,
	       "all lanes of a device are shown");

unsigned ur_engine_lanes(const struct ur_engine *device)
{
	return device->info.owned || device->cfg.trace[0] ? 1 : (unsigned)device->cfg.lanes;
}

unsigned ur_engine_lane_number(const struct ur_engine *e)
{
	return e->lane;
}

struct ur_engine *ur_engine_device(struct ur_engine *e)
{
	return e->device;
}

unsigned ur_engine_running_lanes(const struct ur_engine *device)
{
	return atomic_load_explicit(&device->lanes, memory_order_acquire);
}

struct ur_engine *ur_engine_at(struct ur_engine *device, unsigned lane)
{
	return device->at[lane];
}

struct ur_nic *ur_engine_nic(const struct ur_engine *e)
{
	return e->nic;
}

const char *ur_engine_spread(const struct ur_engine *device)
{
	return device->cfg.spread;
}

/* --- what is the device's --- */

struct ur_capture *ur_engine_set_capture(struct ur_engine *device, struct ur_capture *c)
{
	struct ur_capture *before = ur_engine_lock_all(device)->capture;

	for (unsigned i = 0; i < atomic_load(&device->lanes); i++)
		ur_nic_set_capture(device->at[i]->nic, c);
	ur_engine_unlock_all(device);
	return before;
}

/* --- making one --- */

/* Of lanes the device has one after the other. */
static int add(struct ur_engine *device, struct ur_engine *e)
{
	int err;

	ur_engine_lock_all(device);
	err = device->faults ? ur_nic_set_faults(e->nic, device->faults) : 0;
	err = err ? err : ur_tp_join(e->nic->tp, device->nic->tp); /* the last that can fail: one that has joined may not just be freed */
	if (!err) {
		ur_engine_mirror(e);
		ur_nic_set_capture(e->nic, device->nic->capture);
		if (device->cfg.counters[0])
			ur_counters_add(device->index, &e->nic->counters);
		device->at[e->lane] = e;
		atomic_store_explicit(&device->lanes, e->lane + 1, memory_order_release);
	}
	if (err)
		ur_engine_unlock_all(device);
	else
		ur_engine_unlock_lanes(device, e->lane); /* it was not locked itself */
	return err;
}

static int make(struct ur_engine *device, unsigned lane)
{
	struct ur_engine *e;
	int err = ur_engine_create(&device->cfg, device->index, device, lane, &e);

	if (err)
		return err;
	err = add(device, e);
	if (err) {
		ur_engine_free(e);
		return err;
	}
	ur_engine_append(e);
	return 0;
}

/* Lanes are made in their order, so that those that there are have no gap. It is tried and explained once. */
static void bring(struct ur_engine *device, unsigned lane)
{
	int state, err = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ur_fork_lock(UR_FORK_LANES);
	for (unsigned i = atomic_load(&device->lanes); i <= lane && !err && !device->lacks_lanes; i++)
		err = make(device, i);
	if (err) {
		device->lacks_lanes = true;
		fprintf(stderr, "uroce: lane %u cannot start, so other lanes do its work: %s\n", lane, ur_engine_error());
	}
	ur_fork_unlock(UR_FORK_LANES);
	pthread_setcancelstate(state, NULL);
}

struct ur_engine *ur_engine_lane(struct ur_engine *device, unsigned lane)
{
	if (!lane || ur_engine_foreign(device) || ur_engine_start(device) || !device->kind->lanes)
		return device;
	if (lane >= atomic_load_explicit(&device->lanes, memory_order_acquire))
		bring(device, lane);
	if (lane >= atomic_load_explicit(&device->lanes, memory_order_acquire) || ur_engine_start(device->at[lane]))
		return device;
	return device->at[lane];
}
