/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long packets towards an address may be. To ask the port is several system calls, and a thousand connections to one peer ask a
 * thousand times within a moment; so its answer counts for that long.
 */
#include "base/table.h"
#include "nic/internal.h"

#define MOMENT (20 * UR_NS_PER_MS)

static struct ur_nic_path_mtu *place_of(struct ur_nic *nic, const struct ur_gid *dst)
{
	uint64_t w[2];

	memcpy(w, dst->raw, sizeof(w));
	return &nic->path_mtu[ur_table_hash(0, w[0], w[1]) % UR_NIC_PATH_MTUS];
}

/* Of the route; 0: it says nothing. */
static uint16_t ask_port(struct ur_nic *nic, const struct ur_gid *dst)
{
	struct ur_nic_path_mtu *p = place_of(nic, dst);
	struct ur_port *port = nic->port;

	if (!port->ops->path_mtu)
		return 0;
	if (nic->now >= p->until || !ur_gid_eq(&p->dst, dst))
		*p = (struct ur_nic_path_mtu){.dst = *dst, .mtu = port->ops->path_mtu(port, dst), .until = nic->now + MOMENT};
	return p->mtu;
}

uint16_t ur_nic_path_mtu(struct ur_nic *nic, const struct ur_gid *dst)
{
	uint16_t mtu = nic->cfg.mtu, route, hop;

	if (!nic->port || ur_net_gid_find(nic->net, dst) >= 0)
		return mtu;
	route = ask_port(nic, dst);
	hop = ur_net_narrow_mtu(nic->net, dst, nic->now);
	if (route && route < mtu)
		mtu = route;
	return hop && hop < mtu ? hop : mtu;
}
