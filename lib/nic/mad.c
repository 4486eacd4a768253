/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1 (the general services interface): management datagrams between the wire and the connection manager. */
#include <string.h>

#include "nic/internal.h"
#include "wire/frame.h"
#include "wire/train.h"

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

/* --- messages that leave together --- */

#define AT_ONCE 8 /* messages, and then one, or a train, in this time, so long the first of a train waits: */
#define AT_ONCE_NS (50 * UR_NS_PER_US)
#define TOGETHER 32 /* messages at most */

static bool may_leave(struct ur_nic *nic)
{
	return ur_bucket_take(&nic->mads.at_once, AT_ONCE, AT_ONCE_NS, nic->now);
}

void ur_nic_flush_mads(struct ur_nic *nic)
{
	struct ur_pkt *t = nic->mads.train;

	ur_timer_cancel(nic->wheel, &nic->mads.timer);
	nic->mads.train = NULL;
	if (t && t->len) {
		may_leave(nic);
		ur_nic_send_one(nic, t);
	} else {
		ur_pkts_release(&t, t != NULL);
	}
}

static void send_held(struct ur_timer *t, ur_time now)
{
	(void)now;
	ur_nic_flush_mads(ur_container_of(t, struct ur_nic, mads.timer));
}

/* Of two messages of one length: all but IPv4 identification and header checksum. */
static bool is_same_way(const struct ur_pkt *a, const struct ur_pkt *b)
{
	const unsigned id = a->l3_off + 4u, sum = a->l3_off + 10u;

	if (a->bth_off != b->bth_off || a->ip_version != b->ip_version)
		return false;
	if (a->ip_version == 6)
		return !memcmp(a->data, b->data, a->bth_off);
	return !memcmp(a->data, b->data, id) && !memcmp(a->data + id + 2, b->data + id + 2, sum - id - 2) &&
	       !memcmp(a->data + sum + 2, b->data + sum + 2, a->bth_off - sum - 2);
}

static bool joins(struct ur_nic *nic, struct ur_pkt *p)
{
	const struct ur_queue *q = nic->port->queue;
	struct ur_pkt *t = nic->mads.train;

	return (!t->len || is_same_way(t, p)) && ur_train_append(t, p, ur_min_u32(q->train_pkts, TOGETHER), q->train_bytes);
}

static bool begins(struct ur_nic *nic, struct ur_pkt *p)
{
	struct ur_queue *q = nic->port->queue;

	ur_nic_flush_mads(nic);
	nic->mads.train = q->ops->alloc_train(q);
	if (!nic->mads.train)
		return false;
	ur_timer_arm(nic->wheel, &nic->mads.timer, nic->now + AT_ONCE_NS);
	return joins(nic, p);
}

static bool may_be_held(const struct ur_nic *nic, const struct ur_pkt *p)
{
	const struct ur_queue *q = nic->port->queue;

	return nic->routed && !nic->faults && q->train_pkts > 1 && q->ops->alloc_train && p->kind == UR_PKT_ROCE &&
	       !(p->flags & (UR_PKT_LOCAL | UR_PKT_GROUP));
}

/*
 * The kernel takes as long for a train as for a packet, several microseconds. A few messages leave at once, as those of connections that
 * are made one after another do; where there are many, they wait for more to the same host.
 */
bool ur_nic_hold_mad(struct ur_nic *nic, struct ur_pkt *p)
{
	if (!may_be_held(nic, p) || (!nic->mads.train && may_leave(nic)))
		return false;
	if (!(nic->mads.train && joins(nic, p)) && !begins(nic, p))
		return false;
	ur_pkts_release(&p, 1);
	return true;
}

void ur_nic_mad_init(struct ur_nic *nic)
{
	ur_timer_init(&nic->siblings, check_siblings);
	ur_timer_init(&nic->mads.timer, send_held);
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
