/* SPDX-License-Identifier: BSD-3-Clause */
/* The device for an observer that takes no slot, starts no port and sends nothing: what the settings select, with its addresses. */
#ifndef UR_VIEW_H
#define UR_VIEW_H

#include "base/counters.h"
#include "host/device/device.h"

struct ur_view {
	struct ur_device device;
	struct ur_net *net; /* GIDs and routes, as of a process that opens the device now */
	struct ur_wheel *wheel;
	struct ur_counters counters; /* of `net`, which has nothing to count */
};

/*
 * Of device `index`. 0, or an errno and one sentence in err: a malformed setting, an unknown interface, no address. Nothing is to be closed
 * then.
 */
int ur_view_open(struct ur_view *v, unsigned index, char *err, size_t errlen);
/* How many devices the settings name; 1 when the settings cannot be read, as ur_view_open will say. */
unsigned ur_view_count(void);
void ur_view_close(struct ur_view *v);

#endif
