/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 (the general services interface): management datagrams between the wire and the connection manager. */
#include <string.h>

#include "nic/internal.h"
#include "wire/frame.h"

#define SIBLINGS_NS (500 * UR_NS_PER_MS)

bool ur_nic_other_answers(void *ctx, uint64_t service_id, const struct ur_gid *dst)
{
	struct ur_nic *nic = ctx;

	return nic->cfg.other_answers && nic->cfg.other_answers(nic->cfg.ctx, service_id, dst);
}

bool ur_nic_orphaned(void *ctx, uint8_t slot)
{
	struct ur_nic *nic = ctx;

	return nic->cfg.orphaned && nic->cfg.orphaned(nic->cfg.ctx, slot);
}

void ur_nic_trouble(void *ctx, const struct ur_cm_trouble *t)
{
	struct ur_nic *nic = ctx;

	nic->cfg.trouble(nic->cfg.ctx, t);
}

/* --- ends --- */

static bool is_here(void *ctx, const struct ur_gid *peer)
{
	const struct ur_nic *nic = ctx;

	return ur_net_gid_find(nic->net, peer) >= 0;
}

static bool is_alive(void *ctx, uint8_t slot)
{
	const struct ur_nic *nic = ctx;

	return slot == nic->cfg.tp.slot || nic->cfg.alive(nic->cfg.ctx, slot);
}

/* A process of this host tells nobody that it was killed: the wire would not return it. The kernel knows. */
static void check_siblings(struct ur_timer *t, ur_time now)
{
	struct ur_nic *nic = ur_container_of(t, struct ur_nic, siblings);

	if (ur_cm_check_peers(nic->cm, is_here, is_alive, now))
		ur_timer_arm(nic->wheel, t, now + SIBLINGS_NS);
}

void ur_nic_mad_init(struct ur_nic *nic)
{
	ur_timer_init(&nic->siblings, check_siblings);
}

/* Those on this host find out themselves. Into a VLAN a datagram of the kernel's would not go. */
void ur_nic_farewell(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad)
{
	struct ur_nic *nic = ctx;
	bool here = ur_net_gid_find(nic->net, &to->dgid) >= 0;

	if (here && mad && nic->cfg.alive && !ur_timer_armed(&nic->siblings))
		ur_timer_arm(nic->wheel, &nic->siblings, nic->now + SIBLINGS_NS);
	if (nic->cfg.farewell)
		nic->cfg.farewell(nic->cfg.ctx, place, to, here || to->vlan ? NULL : mad);
}

/* --- messages --- */

static void mad_put_headers(struct ur_pkt *p, unsigned at, uint32_t psn)
{
	uint8_t *h = p->data + at;
	struct ur_deth deth = {.qkey = UR_GSI_QKEY, .sqpn = 1};

	p->bth = (struct ur_bth){.opcode = UR_UD | UR_OP_SEND_ONLY, .migreq = true, .pkey = UR_PKEY_DEFAULT, .dqpn = 1, .psn = psn};
	ur_bth_put(h, &p->bth);
	ur_deth_put(h + UR_BTH_LEN, &deth);
}

void ur_nic_send_mad(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn)
{
	struct ur_nic *nic = ctx;
	struct ur_net_path_attr attr = {.sgid = to->sgid,
					.dgid = to->dgid,
					.tclass = to->tclass,
					.hop_limit = to->hop_limit,
					.flow_label = to->flow_label,
					.sport = ur_nic_sport(nic, 0, 1, 1)};
	unsigned ext = ur_opcode(UR_UD | UR_OP_SEND_ONLY)->ext_len;
	struct ur_pkt *p;
	unsigned at;

	if (!ur_nic_alloc(nic, &p, 1))
		return; /* the connection manager sends it again */
	at = ur_net_headroom(nic->net, &attr);
	mad_put_headers(p, at, psn);
	memcpy(p->data + at + UR_BTH_LEN + ext, mad, UR_MAD_LEN);
	p->bth_off = (uint16_t)at;
	p->len = at + UR_BTH_LEN + ext + UR_MAD_LEN;
	ur_count(&nic->counters, UR_C_TX_ROCE);
	ur_net_send(nic->net, p, &attr, nic->now);
}

static bool mad_is_acceptable(struct ur_nic *nic, const struct ur_pkt *p)
{
	struct ur_deth deth;

	if (p->bth.dqpn != 1 || ur_gid_is_mcast(&p->dst)) {
		ur_count(&nic->counters, UR_C_DROP_QPN);
		return false;
	}
	if (p->bth.opcode != (UR_UD | UR_OP_SEND_ONLY)) {
		ur_count(&nic->counters, UR_C_DROP_OPCODE);
		return false;
	}
	if (!ur_pkey_ok(p->bth.pkey)) {
		ur_count(&nic->counters, UR_C_DROP_PKEY);
		return false;
	}
	ur_deth_get(ur_bth_ext(p), &deth);
	if (deth.qkey != UR_GSI_QKEY) {
		ur_count(&nic->counters, UR_C_DROP_QKEY);
		return false;
	}
	if (p->payload_len < UR_MAD_LEN) {
		ur_count(&nic->counters, UR_C_DROP_MAD);
		return false;
	}
	return true;
}

void ur_nic_rx_mad(struct ur_nic *nic, struct ur_pkt *p)
{
	struct ur_cm_addr from;

	if (!mad_is_acceptable(nic, p))
		return;
	ur_count(&nic->counters, UR_C_RX_ROCE);
	from = (struct ur_cm_addr){
		.sgid = p->dst, .dgid = p->src, .tclass = p->tos & 0xfc, .hop_limit = 64, .flow_label = p->flow_label, .vlan = p->vlan};
	ur_cm_rx(nic->cm, &from, p->data + p->payload_off, p->payload_len, nic->now);
}
