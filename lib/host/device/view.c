/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/device/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/clock.h"

/* There is no packet to send. */
static unsigned alloc_none(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	(void)ctx;
	(void)pkts;
	(void)n;
	return 0;
}

static int create_net(struct ur_view *v)
{
	struct ur_net_config c = {.alloc = alloc_none,
				  .counters = &v->counters,
				  .mac = v->device.info.mac,
				  .mtu = v->device.info.mtu,
				  .owned = v->device.info.owned};
	int err;

	v->wheel = c.wheel = ur_wheel_create(ur_clock_now());
	if (!v->wheel)
		return ENOMEM;
	err = ur_net_create(&c, &v->net);
	if (err)
		ur_wheel_destroy(v->wheel);
	return err;
}

static int load(struct ur_config *c, char *err, size_t errlen)
{
	int r = ur_config_load(c, err, errlen);

	return r ? r : ur_device_expand(c, err, errlen);
}

unsigned ur_view_count(void)
{
	struct ur_config c;
	char err[512];

	return load(&c, err, sizeof(err)) ? 1 : ur_device_count(&c);
}

int ur_view_open(struct ur_view *v, unsigned index, char *err, size_t errlen)
{
	struct ur_config c;
	int r = load(&c, err, errlen);

	memset(v, 0, sizeof(*v));
	if (!r)
		r = ur_device_find(&c, index, &v->device, err, errlen);
	if (r)
		return r;
	r = create_net(v);
	if (r) {
		snprintf(err, errlen, "out of memory: free some and try again");
		return r;
	}
	r = ur_device_addresses(&c, &v->device, v->net, err, errlen);
	if (r)
		ur_view_close(v);
	return r;
}

void ur_view_close(struct ur_view *v)
{
	ur_net_destroy(v->net);
	ur_wheel_destroy(v->wheel);
}
