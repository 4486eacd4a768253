/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, for the contexts that refer to them. */
#ifndef UV_DEVICE_H
#define UV_DEVICE_H

#include "verbs/internal.h"

static inline struct uv_device *uv_device(struct ibv_device *d)
{
	return ur_container_of(d, struct uv_device, dev);
}

/* The device of this process's engine, with a reference for the caller. 0, or an errno with the sentence in ur_engine_error. */
int uv_device_current(struct uv_device **out);
void uv_device_get(struct uv_device *d);
void uv_device_put(struct uv_device *d);

#endif
