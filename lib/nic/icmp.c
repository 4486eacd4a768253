/* SPDX-License-Identifier: BSD-3-Clause */
/* What ICMP errors say of packets of ours, and whom that concerns; and hops of which none tells. */
#include "nic/internal.h"
#include "wire/hdr.h"
#include "wire/msg/icmp.h"

#define REPORTS 4 /* at once, and then one in this time: */
#define REPORT_NS (10 * UR_NS_PER_S)

/* A peer, too, can say that of its own address as often as it likes, and of as many addresses as it has. */
static void call_narrow(struct ur_nic *nic, const struct ur_gid *dst, uint32_t path_mtu, uint16_t hop_mtu)
{
	if (nic->cfg.narrow && ur_bucket_take(&nic->narrow_reports, REPORTS, REPORT_NS, nic->now))
		nic->cfg.narrow(nic->cfg.ctx, dst, path_mtu, hop_mtu);
}

/* Is it about a packet of ours that is too long for a hop? No MAD is. What is believed counts for connections to come. */
static bool is_too_long(struct ur_nic *nic, const struct ur_gid *dst, uint16_t hop_mtu, const uint8_t *bth)
{
	const uint32_t path_mtu = ur_tp_too_long(nic->tp, dst, hop_mtu, bth, nic->now);

	if (!path_mtu)
		return false;
	ur_count(&nic->counters, UR_C_NARROW_HOP);
	if (ur_net_narrow(nic->net, dst, hop_mtu, nic->now))
		call_narrow(nic, dst, path_mtu, hop_mtu);
	return true;
}

void ur_nic_undelivered(void *ctx, const struct ur_undelivered *u)
{
	struct ur_nic *nic = ctx;
	bool ours = false;

	if (u->len >= UR_BTH_LEN && u->hop_mtu)
		ours = is_too_long(nic, &u->dst, u->hop_mtu, u->quote);
	else if (u->len >= UR_BTH_LEN)
		ours = ur_cm_icmp_error(nic->cm, u, nic->now) || ur_tp_unreachable(nic->tp, &u->dst, u->quote, nic->now);
	if (!ours)
		ur_count(&nic->counters, UR_C_DROP_ICMP_QUOTE);
}

void ur_nic_only_short(void *ctx, const struct ur_gid *dst, uint32_t path_mtu)
{
	struct ur_nic *nic = ctx;

	ur_count(&nic->counters, UR_C_ONLY_SHORT);
	if (ur_net_narrow_mtu(nic->net, dst, nic->now))
		return; /* no riddle */
	call_narrow(nic, dst, path_mtu, 0);
}
