/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, for the contexts that refer to them. */
#ifndef UV_DEVICE_H
#define UV_DEVICE_H

#include "verbs/internal.h"

static inline struct uv_device *uv_device(struct ibv_device *d)
{
	return ur_container_of(d, struct uv_device, dev);
}

/* The devices of this process's engines, with references for the caller. 0, or an errno with the sentence in ur_engine_error. */
int uv_devices_current(struct uv_device *out[UR_DEVICES], unsigned *n);
/* Gives these references back. */
void uv_devices_put(struct uv_device *devices[UR_DEVICES], unsigned *n);
void uv_device_get(struct uv_device *d);
void uv_device_put(struct uv_device *d);

#endif
