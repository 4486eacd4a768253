/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device list: ibv_get_device_list(3) and what can be asked of a device that is not open. There is one for each of the process's
 * engines; after fork the child's engines have their own. A device lives as long as a list or a context refers to it, and the
 * current ones always.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <endian.h>

#include "engine/fork.h"
#include "host/device/sysfs.h"
#include "verbs/device.h"

static struct uv_device *current[UR_DEVICES]; /* in the order of the engines; under UR_FORK_DEVICE */

static struct uv_device *device_new(struct ur_engine *engine)
{
	struct ur_device_info info;
	struct uv_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	ur_engine_info(engine, &info);
	atomic_init(&d->refs, 1);
	d->engine = engine;
	d->guid = info.guid;
	ur_list_init(&d->xrcds);
	d->dev.node_type = IBV_NODE_CA;
	d->dev.transport_type = IBV_TRANSPORT_IB;
	/* Paths that no kernel device has: programs that look there must not find a stranger's attributes. */
	snprintf(d->dev.name, sizeof(d->dev.name), "%.55s", info.name);
	snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), UR_DEV_PREFIX "%.55s", info.name);
	snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), UR_SYSFS_CLASS "_verbs/" UR_DEV_PREFIX "%.55s", info.name);
	snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), UR_SYSFS_CLASS "/%.55s", info.name);
	return d;
}

void uv_device_get(struct uv_device *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
}

void uv_device_put(struct uv_device *d)
{
	if (atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) == 1)
		free(d);
}

/* Having no device is nothing to complain about, unless the user named one, or wants the program to run on one (uroce run). */
static void explain(int err)
{
	static const char *const wishes[] = {"UROCE_DEV", "UROCE_VDEV", "UROCE_PCI", "UROCE_IP", "UROCE_CONF", "UROCE_RUN_PID"};
	static atomic_bool said;
	bool wanted = err != ENODEV;

	for (unsigned i = 0; i < ur_array_size(wishes); i++)
		wanted |= secure_getenv(wishes[i]) != NULL;
	if (wanted && !atomic_exchange(&said, true))
		fprintf(stderr, "uroce: %s\n", ur_engine_error());
}

/* Makes *at the device of that engine; what was there instead, a parent's, is put into *old. */
static int renew(struct uv_device **at, struct ur_engine *engine, struct uv_device **old)
{
	struct uv_device *d;

	if (*at && (*at)->engine == engine && !ur_engine_foreign(engine))
		return 0;
	d = device_new(engine);
	if (!d)
		return ENOMEM;
	*old = *at;
	*at = d;
	return 0;
}

int uv_devices_current(struct uv_device *out[UR_DEVICES], unsigned *n)
{
	struct uv_device *old[UR_DEVICES] = {NULL};
	struct ur_engine *engine;
	int err = ur_engine_open(&engine);

	*n = 0;
	if (err) {
		explain(err);
		return err;
	}
	ur_fork_lock(UR_FORK_DEVICE);
	for (unsigned i = 0; engine && !err; i++, engine = ur_engine_next(engine)) {
		err = renew(&current[i], engine, &old[i]);
		if (err)
			break;
		uv_device_get(current[i]);
		out[(*n)++] = current[i];
	}
	ur_fork_unlock(UR_FORK_DEVICE);
	for (unsigned i = 0; i < UR_DEVICES; i++)
		if (old[i])
			uv_device_put(old[i]);
	if (err)
		uv_devices_put(out, n);
	return err;
}

void uv_devices_put(struct uv_device *devices[UR_DEVICES], unsigned *n)
{
	while (*n)
		uv_device_put(devices[--*n]);
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(UR_DEVICES + 1, sizeof(*list));
	struct uv_device *d[UR_DEVICES];
	unsigned n;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return uv_null(ENOMEM);
	uv_devices_current(d, &n);
	for (unsigned i = 0; i < n; i++)
		list[i] = &d[i]->dev;
	if (num_devices)
		*num_devices = (int)n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	if (!list)
		return;
	for (unsigned i = 0; list[i]; i++)
		uv_device_put(uv_device(list[i]));
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* The kernel knows no device of this name. */
int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(uv_device(device)->guid);
}
