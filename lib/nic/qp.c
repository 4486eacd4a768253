/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs at the NIC: their doorbells and their paths. */
#include <errno.h>
#include <string.h>

#include "nic/internal.h"
#include "wire/frame.h"
#include "wire/last_ack.h"

/* --- doorbells: a stack that any thread pushes to and the NIC takes whole --- */

void ur_nic_ring(struct ur_nic *nic, struct ur_qp *qp)
{
	struct ur_qp **next = ur_qp_doorbell_link(qp);
	struct ur_qp *head = atomic_load_explicit(&nic->doorbell, memory_order_relaxed);

	do
		*next = head;
	while (!atomic_compare_exchange_weak_explicit(&nic->doorbell, &head, qp, memory_order_seq_cst, memory_order_relaxed));
}

bool ur_nic_rang(const struct ur_nic *nic)
{
	return atomic_load_explicit(&nic->doorbell, memory_order_seq_cst) != NULL;
}

void ur_nic_drain_doorbells(struct ur_nic *nic)
{
	struct ur_qp *qp, *list = NULL, *next;

	if (ur_likely(!atomic_load_explicit(&nic->doorbell, memory_order_relaxed)))
		return;
	nic->doorbells++;
	qp = atomic_exchange_explicit(&nic->doorbell, NULL, memory_order_acquire);
	for (; qp; qp = next) { /* newest first: turn it round */
		next = *ur_qp_doorbell_link(qp);
		*ur_qp_doorbell_link(qp) = list;
		list = qp;
	}
	for (; list; list = next) {
		next = *ur_qp_doorbell_link(list); /* once answered it may ring again, which writes the link */
		ur_qp_answer(list, nic->now);
	}
}

/* --- what a QP that goes has said last --- */

#define ASKS_WITHIN (2 * UR_NS_PER_S) /* who has heard nothing for longer will hardly ask again */

/* Those on this host lose nothing, and into a VLAN a datagram of the kernel's would not go. */
static void show_last_ack(struct ur_nic *nic, const struct ur_qp *qp, ur_time now)
{
	const ur_time since = now > ASKS_WITHIN ? now - ASKS_WITHIN : 0;
	const struct ur_net_addr *from;
	struct ur_last_ack ack;
	int i;

	if (!nic->cfg.last_ack || !ur_qp_last_ack(qp, since, &ack) || ur_net_gid_find(nic->net, &ack.path->dgid) >= 0)
		return;
	i = ur_net_gid_find(nic->net, &ack.path->sgid);
	from = i < 0 ? NULL : ur_net_gid(nic->net, (unsigned)i);
	if (from && !from->vlan)
		nic->cfg.last_ack(nic->cfg.ctx, &ack, now);
}

void ur_nic_show_last_acks(struct ur_nic *nic, ur_time now)
{
	const struct ur_qp *qp;
	uint32_t place = 0;

	while (nic->cfg.last_ack && (qp = ur_tp_next_qp(nic->tp, &place)))
		show_last_ack(nic, qp, now);
}

/* --- paths --- */

static void path_changed(struct ur_net_path *path, int err, ur_time now)
{
	if (!err) {
		ur_qp_kick(path->owner, now);
		return;
	}
	ur_qp_unreachable(path->owner);
	ur_net_path_retry(path, now); /* the QP's own retry counter decides when to give up */
}

int ur_nic_path_attr(const struct ur_nic *nic, const struct ibv_ah_attr *ah, uint32_t lqpn, uint32_t rqpn, struct ur_net_path_attr *a)
{
	const struct ur_net_addr *src = ur_net_gid(nic->net, ah->grh.sgid_index);
	struct ur_gid chosen, hop;

	if (!ah->is_global || !src)
		return EINVAL;
	*a = (struct ur_net_path_attr){.sgid = src->gid, .tclass = ah->grh.traffic_class, .hop_limit = ah->grh.hop_limit,
				       .flow_label = ah->grh.flow_label & 0xfffff,
				       .sport = ur_nic_sport(nic, ah->grh.flow_label & 0xfffff, lqpn, rqpn)};
	memcpy(a->dgid.raw, ah->grh.dgid.raw, 16);
	if (ur_gid_is_zero(&a->dgid) || ur_gid_is_v4(&a->dgid) != ur_gid_is_v4(&a->sgid))
		return EINVAL;
	return ur_net_route_lookup(nic->net, &a->dgid, &a->sgid, &chosen, &hop);
}

/* Without ECT no switch marks. A program that set the bits itself has its way. */
static uint8_t ecn_capable(const struct ur_nic *nic, uint8_t tclass)
{
	return nic->cfg.tp.cc && !(tclass & 3) ? tclass | 2 : tclass;
}

int ur_nic_modify_qp(struct ur_nic *nic, struct ur_qp *qp, struct ur_net_path *path, const struct ibv_qp_attr *attr, int mask, ur_time now)
{
	struct ur_net_path_attr pa;
	int err;

	nic->now = now;
	if (!(mask & IBV_QP_AV)) {
		if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
			show_last_ack(nic, qp, now);
		err = ur_qp_modify(qp, attr, mask, NULL, now);
		if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
			ur_net_path_close(path);
		return err;
	}
	err = ur_nic_path_attr(nic, &attr->ah_attr, ur_qp_num(qp), attr->dest_qp_num, &pa);
	if (!err && ur_gid_is_mcast(&pa.dgid))
		err = EINVAL;
	if (!err)
		err = ur_qp_modify(qp, attr, mask, &path->wire, now);
	if (err)
		return err;
	pa.tclass = ecn_capable(nic, pa.tclass);
	ur_net_path_close(path);
	path->owner = qp;
	path->changed = path_changed;
	err = ur_net_path_open(nic->net, path, &pa, now);
	if (err) { /* out of memory: without a path the QP is useless */
		struct ibv_qp_attr broken = {.qp_state = IBV_QPS_ERR};

		ur_qp_modify(qp, &broken, IBV_QP_STATE, NULL, now);
		return err;
	}
	ur_qp_kick(qp, now);
	return 0;
}

int ur_nic_destroy_qp(struct ur_nic *nic, struct ur_qp *qp, struct ur_net_path *path)
{
	int err;

	/* Acknowledgements that it owes leave with this round; without the last one its peer would run out of retries. */
	ur_nic_poll(nic, nic->now);
	show_last_ack(nic, qp, nic->now);
	err = ur_qp_destroy(qp);
	if (!err)
		ur_net_path_close(path);
	return err;
}
