/* SPDX-License-Identifier: BSD-3-Clause */
/* What fault injection needs of the NIC: packets for copies, and for parts of trains of which others are hit. */
#include "fault/inject.h"
#include "nic/internal.h"

_Static_assert(UR_FAULT_BURST <= UR_NIC_BURST, "what faults forward at a time is a burst");

static struct ur_pkt *copy_for_faults(void *ctx, const struct ur_pkt *p)
{
	return ur_nic_copy(ctx, p);
}

static void count_lost(struct ur_nic *nic, enum ur_fault_dir dir, unsigned n)
{
	if (dir == UR_FAULT_TX)
		nic->counters.v[UR_C_TX_DROPPED] += n;
	else
		nic->port->queue->rx_missed += n;
}

static struct ur_pkt *part_for_faults(void *ctx, enum ur_fault_dir dir, const struct ur_pkt *t, struct ur_train_cursor at, unsigned n)
{
	struct ur_nic *nic = ctx;
	struct ur_queue *q = nic->port->queue;
	const uint32_t most = t->bth_off + ur_min_u32(n * t->stride, ur_train_left(t, &at));
	struct ur_pkt *p = NULL;

	if (most > UR_PKT_ROOM)
		p = q->ops->alloc_train ? q->ops->alloc_train(q) : NULL;
	else
		ur_queue_alloc(q, &p, 1);
	if (ur_unlikely(!p || most > p->room)) {
		ur_pkts_release(&p, p != NULL);
		count_lost(nic, dir, n);
		return NULL;
	}
	ur_train_part(t, at, n, dir == UR_FAULT_TX, p);
	return p;
}

int ur_nic_set_faults(struct ur_nic *nic, const struct ur_fault_spec *spec)
{
	const struct ur_fault_host host = {.counters = &nic->counters, .copy = copy_for_faults, .part = part_for_faults, .ctx = nic};
	struct ur_faults *fresh = NULL;
	int err = spec ? ur_faults_create(spec, &host, &fresh) : 0;

	if (err)
		return err;
	if (nic->faults)
		ur_faults_destroy(nic->faults);
	nic->faults = fresh;
	ur_nic_set_watched(nic);
	return 0;
}
