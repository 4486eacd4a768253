/* SPDX-License-Identifier: BSD-3-Clause */
/* Complete packets on their way out: captures, faults, copies of multicasts, and whether they go to the port or to this host. */
#include "capture/capture.h"
#include "fault/inject.h"
#include "nic/internal.h"
#include "wire/bulk.h"
#include "wire/slim.h"
#include "wire/train.h"

__attribute__((noinline)) static void capture_sent(struct ur_nic *nic, const struct ur_pkt *p)
{
	uint8_t bytes[UR_PKT_ROOM];
	struct ur_pkt one = {.data = bytes, .room = sizeof(bytes)};
	struct ur_train_cursor at = {0};

	if (!p->stride) {
		ur_capture_frame(nic->capture, p, nic->now, UR_CAPTURE_OUT);
		return;
	}
	while (ur_train_cut(p, &at, &one))
		ur_capture_frame(nic->capture, &one, nic->now, UR_CAPTURE_OUT);
}

static void nic_wire_send(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		nic->counters.v[UR_C_TX_BYTES] += ur_train_wire_len(pkts[i]);
		nic->counters.v[UR_C_TX_PACKETS] += ur_train_count(pkts[i]);
		if (ur_unlikely(nic->capture != NULL))
			capture_sent(nic, pkts[i]);
	}
	ur_nic_out_port(nic, pkts, n);
}

/* A multicast goes to the port, and a copy of it to all QPs attached on this host, its sender included (IBTA volume 1, 10.5.2.2). */
static void nic_echo(struct ur_nic *nic, struct ur_pkt *p)
{
	struct ur_pkt *copy;

	if ((!nic->cfg.sibling && !ur_mcast_list(nic->tp, NULL, 0)) || !(copy = ur_nic_copy(nic, p)))
		return;
	copy->flags = UR_PKT_LOCAL;
	ur_nic_out_local(nic, &copy, 1);
}

/* Bytes on the wire, without FCS, of what goes to a process of this host. */
static uint64_t local_bytes(const struct ur_pkt *p)
{
	if (p->flags & UR_PKT_BULK)
		return ur_bulk_wire_len(p);
	return p->flags & UR_PKT_SLIM ? ur_slim_wire_len(p, p->bth_off) : ur_pkt_frame_len(p);
}

/* Packets that do not come to the port: to other processes of this host, or to this one. */
static void nic_local_send(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		nic->counters.v[UR_C_TX_LOCAL_PACKETS] += ur_pkt_psns(pkts[i]);
		nic->counters.v[UR_C_TX_LOCAL_BYTES] += local_bytes(pkts[i]);
		if (ur_unlikely(nic->capture != NULL)) /* so it is a frame */
			ur_capture_frame(nic->capture, pkts[i], nic->now, UR_CAPTURE_OUT);
	}
	ur_nic_out_local(nic, pkts, n);
}

__attribute__((noinline)) static void sort_mixed(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	struct ur_pkt *wire[UR_NIC_BURST], *local[UR_NIC_BURST];
	unsigned wires = 0, locals = 0;

	for (unsigned i = 0; i < n; i++)
		if (!(pkts[i]->flags & UR_PKT_LOCAL))
			wire[wires++] = pkts[i];
		else
			local[locals++] = pkts[i];
	nic_local_send(nic, local, locals);
	if (wires)
		nic_wire_send(nic, wire, wires);
}

/* Sorts complete frames by where they go: the port, or processes of this host. Mostly all go the same way. */
static void nic_sort(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	uint8_t flags = 0;

	for (unsigned i = 0; i < n; i++)
		flags |= pkts[i]->flags;
	if (ur_likely(!(flags & UR_PKT_LOCAL)))
		nic_wire_send(ctx, pkts, n);
	else
		sort_mixed(ctx, pkts, n);
}

void ur_nic_send(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (ur_unlikely(pkts[i]->flags & UR_PKT_GROUP))
			nic_echo(nic, pkts[i]);
	if (ur_unlikely(nic->faults != NULL))
		ur_faults_apply(nic->faults, nic->now, UR_FAULT_TX, pkts, n, nic_sort);
	else
		nic_sort(nic, pkts, n);
}

void ur_nic_send_one(struct ur_nic *nic, struct ur_pkt *p)
{
	ur_nic_send(nic, &p, 1);
}
