/* SPDX-License-Identifier: BSD-3-Clause */
/* What ICMP errors say of packets of ours, and whom that concerns; and hops of which none tells. */
#include <string.h>

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

static bool is_ours(struct ur_nic *nic, const struct ur_undelivered *u)
{
	if (u->len < UR_BTH_LEN)
		return false;
	if (u->hop_mtu)
		return is_too_long(nic, &u->dst, u->hop_mtu, u->quote);
	return ur_cm_icmp_error(nic->cm, u, nic->now) || ur_tp_unreachable(nic->tp, &u->dst, u->quote, nic->now);
}

/* True when it may be about a packet of another process: of the one with the slot *of, or (0) of any. */
static bool is_anothers(struct ur_nic *nic, const struct ur_undelivered *u, uint8_t *of)
{
	*of = ur_cm_quoted_slot(u);
	if (*of && *of != nic->cfg.tp.slot) {
		ur_count(&nic->counters, UR_C_RX_OTHER_SLOT);
		return true;
	}
	if (is_ours(nic, u))
		return false;
	ur_count(&nic->counters, UR_C_DROP_ICMP_QUOTE);
	return !*of && u->len >= UR_BTH_LEN;
}

void ur_nic_undelivered(void *ctx, const struct ur_undelivered *u)
{
	uint8_t of;

	is_anothers(ctx, u, &of);
}

/* --- from one process to another --- */

void ur_nic_port_undelivered(struct ur_port *port, const struct ur_undelivered *u)
{
	struct ur_nic *nic = port->owner;
	uint8_t quote[UR_QUOTE_LEN], of;
	struct ur_pkt p = {.data = quote,
			   .len = ur_min_u32(u->len, sizeof(quote)),
			   .flags = UR_PKT_TOLD,
			   .ip_version = ur_gid_is_v4(&u->dst) ? 4 : 6,
			   .place = u->hop_mtu,
			   .ttl = (uint8_t)u->why,
			   .src = u->from,
			   .dst = u->dst};

	if (!is_anothers(nic, u, &of) || !(port->queue->caps & UR_QUEUE_STEERED))
		return;
	memcpy(quote, u->quote, p.len);
	if (of)
		ur_nic_tell_sibling(nic, of, &p, p.flags);
	else
		ur_nic_tell_siblings(nic, &p, p.flags, 0);
}

void ur_nic_rx_told(struct ur_nic *nic, const struct ur_pkt *p)
{
	const struct ur_undelivered u = {
		.dst = p->dst, .from = p->src, .why = p->ttl, .hop_mtu = p->place, .quote = p->data, .len = p->len};

	if (u.why > UR_ICMP_PROHIBITED || (u.hop_mtu && !ur_icmp_hop_mtu(ur_gid_is_v4(&u.dst), u.hop_mtu)))
		ur_count(&nic->counters, UR_C_DROP_ICMP);
	else
		ur_nic_undelivered(nic, &u);
}

void ur_nic_only_short(void *ctx, const struct ur_gid *dst, uint32_t path_mtu)
{
	struct ur_nic *nic = ctx;

	ur_count(&nic->counters, UR_C_ONLY_SHORT);
	if (ur_net_narrow_mtu(nic->net, dst, nic->now))
		return; /* no riddle */
	call_narrow(nic, dst, path_mtu, 0);
}
