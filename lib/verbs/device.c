/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device list: ibv_get_device_list(3) and what can be asked of a device that is not open. There is one device, that of the
 * process's engine; after fork the child's engine has its own. A device lives as long as a list or a context refers to it, and the
 * current one always.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <endian.h>

#include "engine/fork.h"
#include "host/device/sysfs.h"
#include "verbs/device.h"

static struct uv_device *current; /* under UR_FORK_DEVICE */

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

int uv_device_current(struct uv_device **out)
{
	struct uv_device *old = NULL;
	struct ur_engine *engine;
	int err = ur_engine_open(&engine);

	if (err) {
		explain(err);
		return err;
	}
	ur_fork_lock(UR_FORK_DEVICE);
	if (!current || current->engine != engine || ur_engine_foreign(current->engine)) {
		struct uv_device *d = device_new(engine);

		if (d) {
			old = current;
			current = d;
		} else {
			err = ENOMEM;
		}
	}
	if (!err) {
		uv_device_get(current);
		*out = current;
	}
	ur_fork_unlock(UR_FORK_DEVICE);
	if (old)
		uv_device_put(old);
	return err;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(*list));
	struct uv_device *d = NULL;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return uv_null(ENOMEM);
	if (uv_device_current(&d))
		return list;
	list[0] = &d->dev;
	if (num_devices)
		*num_devices = 1;
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
