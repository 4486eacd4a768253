/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the NIC does with received packets: whose they are, what they are, and who handles them. Trains, and packets of a burst that have
 * the headers of the one before them, are executed together as long as they are what a QP waits for; all others are looked at one by one,
 * those of a train as views of its bytes.
 */
#include <string.h>

#include "base/bytes.h"
#include "capture/capture.h"
#include "fault/inject.h"
#include "nic/internal.h"
#include "wire/bulk.h"
#include "wire/frame.h"
#include "wire/row.h"
#include "wire/slim.h"
#include "wire/train.h"

#define VLAN_ID_MASK 0xfff

/* The kernel has looked at the MAC address of a bare packet. */
static bool nic_mac_is_ours(const struct ur_nic *nic, const struct ur_pkt *p)
{
	return p->flags & UR_PKT_BARE || (p->data[0] & 1) || memcmp(p->data, nic->cfg.mac.b, 6) == 0;
}

static bool nic_is_in_vlan(const struct ur_nic *nic, uint16_t vlan)
{
	for (unsigned i = 0; i < UR_NET_GIDS; i++)
		if (ur_net_gid(nic->net, i) && ur_net_gid(nic->net, i)->vlan == vlan)
			return true;
	return false;
}

/* VLAN 0 is no VLAN, only a priority. */
static bool nic_vlan_is_ours(const struct ur_nic *nic, const struct ur_pkt *p)
{
	int index = ur_net_gid_find(nic->net, &p->dst);

	if (ur_gid_is_mcast(&p->dst))
		return nic_is_in_vlan(nic, p->vlan & VLAN_ID_MASK);
	return index >= 0 && ur_net_gid(nic->net, (unsigned)index)->vlan == (p->vlan & VLAN_ID_MASK);
}

/*
 * What we send to ourselves does not come from the wire, except for a multicast that the port brings as well: a loopback interface does, or
 * one that shows what other processes send. Everything else from the wire that bears our address, or that of no host, is a forgery.
 */
static enum ur_counter nic_martian(const struct ur_pkt *p, enum ur_net_claim claim)
{
	bool echo = claim == UR_NET_FROM_US && p->bth.dqpn == UR_QPN_MCAST;

	return claim == UR_NET_NOT_TO_US || echo ? UR_C_RX_OTHER_HOST : UR_C_DROP_MARTIAN;
}

__attribute__((noinline)) static void count_refused(struct ur_nic *nic, const struct ur_pkt *p, enum ur_counter why)
{
	ur_count(&nic->counters, why);
	UR_TRACE(nic->trace, REFUSED, p->bth.dqpn, why);
}

/* UR_C_RX_ROCE when the headers before the BTH are those of a packet, or a train, for us; else why not. */
static enum ur_counter nic_judge_headers(const struct ur_nic *nic, const struct ur_pkt *p)
{
	enum ur_net_claim claim = ur_net_claim(nic->net, &p->src, &p->dst);

	if (ur_unlikely(!nic_mac_is_ours(nic, p)))
		return UR_C_RX_OTHER_HOST;
	if (ur_unlikely(claim != UR_NET_TO_US) && (claim == UR_NET_NOT_TO_US || !(p->flags & UR_PKT_LOCAL)))
		return nic_martian(p, claim);
	if (ur_unlikely((p->vlan & VLAN_ID_MASK) && !nic_vlan_is_ours(nic, p)))
		return UR_C_DROP_VLAN;
	return UR_C_RX_ROCE;
}

/*
 * True when the packet went to the transport: addresses, VLAN and slot are right, and so they are in packets with the same headers.
 * `judged`: what stands before its BTH is known to be right already.
 */
static bool nic_rx_roce(struct ur_nic *nic, struct ur_pkt *p, bool judged)
{
	enum ur_counter verdict = judged ? UR_C_RX_ROCE : nic_judge_headers(nic, p);

	if (ur_unlikely(verdict != UR_C_RX_ROCE)) {
		count_refused(nic, p, verdict);
		return false;
	}
	if (ur_unlikely(p->bth.dqpn <= 1)) {
		ur_nic_rx_mad(nic, p);
		return false;
	}
	if (ur_unlikely(ur_slot_of(p->bth.dqpn) != nic->cfg.tp.slot && p->bth.dqpn != UR_QPN_MCAST)) {
		count_refused(nic, p, UR_C_RX_OTHER_SLOT);
		return false;
	}
	ur_count(&nic->counters, UR_C_RX_ROCE);
	if (ur_unlikely(ur_tos_is_ce(p->tos)))
		ur_count(&nic->counters, UR_C_CE_MARKED);
	ur_tp_rx(nic->tp, p, nic->now);
	return true;
}

__attribute__((noinline)) static bool nic_rx_guessed(struct ur_nic *nic, struct ur_pkt *p, bool judged)
{
	if (!ur_idents_accept(&nic->idents, p, nic->now)) {
		count_refused(nic, p, UR_C_ICRC);
		return false;
	}
	p->kind = UR_PKT_ROCE;
	return nic_rx_roce(nic, p, judged);
}

/* A peer in the wrong RoCE mode is worth a counter of its own; everything else that we do not speak is the host's. */
static void nic_rx_other(struct ur_nic *nic, const struct ur_pkt *p)
{
	bool v1 = ur_get16(p->data + p->l3_off - 2) == UR_ETHERTYPE_ROCE_V1 && nic_mac_is_ours(nic, p);

	ur_count(&nic->counters, v1 ? UR_C_DROP_ROCE_V1 : UR_C_RX_OTHER_HOST);
}

/* Which counter a frame has raised that is none; the headers after the fault have not been read. */
__attribute__((noinline)) static void nic_trace_bad(struct ur_nic *nic, struct ur_pkt *p)
{
	struct ur_counters one = {{0}};
	unsigned why = 0;

	if (ur_frame_parse(p, &one))
		return;
	while (why + 1 < UR_C_COUNT && !one.v[why])
		why++;
	UR_TRACE(nic->trace, REFUSED, 0, why);
}

/* As above. */
static bool nic_rx_frame(struct ur_nic *nic, struct ur_pkt *p, bool judged)
{
	if (ur_unlikely(!ur_frame_parse(p, &nic->counters))) {
		if (nic->trace)
			nic_trace_bad(nic, p);
		return false;
	}
	if (ur_likely(p->kind == UR_PKT_ROCE))
		return nic_rx_roce(nic, p, judged);
	if (p->kind == UR_PKT_ROCE_GUESSED)
		return nic_rx_guessed(nic, p, judged);
	if (p->kind == UR_PKT_OTHER)
		nic_rx_other(nic, p);
	else
		ur_net_rx(nic->net, p, nic->now);
	return false;
}

/* Packets of `bytes` bytes altogether. From another process of this host; what goes to ourselves has been counted and recorded as sent. */
static void count_local(struct ur_nic *nic, const struct ur_queue *q, unsigned n, uint64_t bytes)
{
	if (q == &nic->loop.queue)
		return;
	nic->counters.v[UR_C_RX_LOCAL_PACKETS] += n;
	nic->counters.v[UR_C_RX_LOCAL_BYTES] += bytes;
}

static void count_received(struct ur_nic *nic, unsigned n, uint64_t bytes)
{
	nic->counters.v[UR_C_RX_PACKETS] += n;
	nic->counters.v[UR_C_RX_BYTES] += bytes;
}

#define SLOT_AT 5 /* in the BTH: the top byte of the QPN */

/* Of a queue that also brings packets for other processes: bare ones, so they begin with the BTH. Those with our slot are ours. */
static inline bool may_be_others(const struct ur_nic *nic, const struct ur_queue *q, const struct ur_pkt *p)
{
	return q->caps & UR_QUEUE_STEERED && (p->len <= SLOT_AT || p->data[SLOT_AT] != nic->cfg.tp.slot);
}

/* As it was on the wire: with the IPv4 identification that the ICRC covers, and a socket does not show. */
__attribute__((noinline)) static void record(struct ur_nic *nic, const struct ur_pkt *p)
{
	struct ur_pkt whole = *p;

	if (p->flags & UR_PKT_BARE)
		ur_frame_find_id(&whole);
	ur_capture_frame(nic->capture, &whole, nic->now, UR_CAPTURE_IN);
}

static void note_local(struct ur_nic *nic, const struct ur_queue *q, const struct ur_pkt *p)
{
	count_local(nic, q, 1, p->len);
	if (ur_unlikely(nic->capture != NULL) && q != &nic->loop.queue)
		record(nic, p);
}

static void note_received(struct ur_nic *nic, const struct ur_pkt *p)
{
	count_received(nic, 1, p->len);
	if (ur_unlikely(nic->capture != NULL))
		record(nic, p);
}

/* Those of n packets that are executed as a run, with the headers of `like`, which was received before them: returns how many. */
static unsigned execute_row(struct ur_nic *nic, struct ur_row *row, const struct ur_pkt *like, struct ur_pkt **pkts, unsigned n)
{
	unsigned run;

	if (!ur_row_of_burst(row, like, pkts, n))
		return 0;
	run = ur_tp_rx_run(nic->tp, row, nic->now);
	nic->counters.v[UR_C_RX_ROCE] += run;
	return run;
}

/* --- trains --- */

/* As many packets as a QP waits for in a row; returns how many there were. */
static unsigned rx_train_run(struct ur_nic *nic, const struct ur_pkt *t, struct ur_train_cursor *at)
{
	const struct ur_row row = ur_row_of_train(t, at);
	const unsigned run = ur_tp_rx_run(nic->tp, &row, nic->now);

	ur_row_passed(&row, run, at);
	nic->counters.v[UR_C_RX_ROCE] += run;
	return run;
}

/* Trains that are all ours, and whose packets have been noted. */
static void execute_train(struct ur_nic *nic, const struct ur_pkt *t)
{
	const bool judged = nic_judge_headers(nic, t) == UR_C_RX_ROCE;
	struct ur_train_cursor at = {.place = t->place};
	struct ur_pkt view = {.data = NULL};

	do {
		if (judged && ur_train_left(t, &at) >= 2 * t->stride)
			rx_train_run(nic, t, &at);
		if (!ur_train_view(t, &at, &view))
			return;
		nic_rx_frame(nic, &view, judged);
	} while (true);
}

/* What faults have left of packets and trains that have been noted. */
static void rx_left(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct ur_nic *nic = ctx;
	struct ur_row row;

	for (unsigned i = 0; i < n;) {
		struct ur_pkt *p = pkts[i++];

		if (p->stride)
			execute_train(nic, p);
		else if (nic_rx_frame(nic, p, false))
			i += execute_row(nic, &row, p, pkts + i, n - i);
	}
	ur_pkts_release(pkts, n);
}

/* A packet of a train that is not only ours: faults may keep it. */
static void rx_kept(struct ur_nic *nic, const struct ur_pkt *view)
{
	struct ur_pkt *copy = ur_nic_copy(nic, view);

	if (copy)
		ur_faults_apply(nic->faults, nic->now, UR_FAULT_RX, &copy, 1, rx_left);
	else
		nic->port->queue->rx_missed++;
}

/* One packet after another, though as many in a row as a QP waits for. The headers are those of all of them. */
static void rx_train(struct ur_nic *nic, const struct ur_queue *q, const struct ur_pkt *t)
{
	const bool judged = nic_judge_headers(nic, t) == UR_C_RX_ROCE, runs = judged && !nic->faults && !nic->capture;
	const uint32_t two = 2 * t->stride;
	struct ur_train_cursor at = {.place = t->place};
	struct ur_pkt view;

	view.data = NULL;
	for (;;) {
		if (runs && ur_train_left(t, &at) >= two) {
			const unsigned run = rx_train_run(nic, t, &at);

			count_received(nic, run, (uint64_t)run * (t->bth_off + t->stride));
		}
		if (!ur_train_view(t, &at, &view))
			return;
		if (may_be_others(nic, q, &view) && ur_nic_hand_on_view(nic, &view))
			continue;
		note_received(nic, &view);
		if (ur_unlikely(nic->faults != NULL))
			rx_kept(nic, &view);
		else
			nic_rx_frame(nic, &view, judged);
	}
}

/* --- trains that somebody looks at --- */

static bool holds_others(const struct ur_nic *nic, const struct ur_queue *q, const struct ur_pkt *t)
{
	struct ur_train_cursor at = {0};
	struct ur_pkt one = {.len = 0};

	while ((one.data = ur_train_next(t, &at, &one.len)))
		if (may_be_others(nic, q, &one))
			return true;
	return false;
}

/* The headers of each packet are laid over the end of the one before it, which is not done with: that comes back. */
static void record_train(struct ur_nic *nic, const struct ur_pkt *t)
{
	struct ur_train_cursor at = {.place = t->place};
	uint8_t under[UR_PATH_HDR_MAX], *front;
	struct ur_pkt view;

	for (;;) {
		front = t->data + at.at;
		memcpy(under, front, t->bth_off);
		view.data = NULL;
		if (!ur_train_view(t, &at, &view))
			return;
		record(nic, &view);
		memcpy(front, under, t->bth_off);
	}
}

/* Before any of it is executed, so that it can be as a train. */
static void note_train(struct ur_nic *nic, const struct ur_pkt *t)
{
	count_received(nic, ur_train_count(t), ur_train_wire_len(t));
	if (nic->capture)
		record_train(nic, t);
}

/* --- bulk packets --- */

/* Nobody but a process of this host can send one, and it has nothing to say but what its QP may. */
__attribute__((noinline)) static void rx_bulk(struct ur_nic *nic, const struct ur_queue *q, struct ur_pkt *p)
{
	uint32_t n;

	if (!ur_bulk_parse(p)) {
		count_refused(nic, p, UR_C_DROP_TRUNCATED);
		return;
	}
	n = ur_pkt_psns(p);
	count_local(nic, q, n, ur_bulk_wire_len(p));
	nic->counters.v[UR_C_RX_ROCE] += n;
	ur_tp_rx_local(nic->tp, p, nic->now);
}

/* --- slim packets --- */

/* The same; of one from another process `place` says how long the headers are that it was sent without. */
static void rx_slim(struct ur_nic *nic, const struct ur_queue *q, struct ur_pkt *p)
{
	if (ur_unlikely(!ur_slim_parse(p))) {
		count_refused(nic, p, UR_C_DROP_TRUNCATED);
		return;
	}
	count_local(nic, q, 1, ur_slim_wire_len(p, p->place));
	nic->counters.v[UR_C_RX_ROCE]++;
	ur_tp_rx_local(nic->tp, p, nic->now);
}

/* --- a burst --- */

enum fate {
	PLAIN, /* done with */
	ALIKE, /* and what has the same headers is right, too */
	KEPT,  /* another process's, from now on */
};

/* Faults have been applied, or are not for it. */
static enum fate rx_one(struct ur_nic *nic, const struct ur_queue *q, struct ur_pkt *p)
{
	if (may_be_others(nic, q, p) && ur_nic_hand_on(nic, p))
		return KEPT;
	if (p->stride) {
		if (ur_likely(!nic->capture) || holds_others(nic, q, p)) {
			rx_train(nic, q, p);
		} else {
			note_train(nic, p);
			execute_train(nic, p);
		}
		return PLAIN;
	}
	if (ur_unlikely(p->flags & (UR_PKT_BULK | UR_PKT_SLIM))) {
		if (p->flags & UR_PKT_SLIM)
			rx_slim(nic, q, p);
		else
			rx_bulk(nic, q, p);
		return PLAIN;
	}
	if (ur_unlikely(nic->cfg.first_slot) && ur_nic_is_for_first_lane(nic, p))
		return PLAIN;
	if (ur_likely(!(p->flags & UR_PKT_LOCAL))) {
		note_received(nic, p);
	} else if (ur_unlikely(p->flags & UR_PKT_BARE)) {
		ur_nic_rx_told(nic, p);
		return PLAIN;
	} else {
		note_local(nic, q, p);
	}
	return nic_rx_frame(nic, p, false) ? ALIKE : PLAIN;
}

static unsigned rx_row(struct ur_nic *nic, const struct ur_queue *q, const struct ur_pkt *like, struct ur_pkt **pkts, unsigned n)
{
	struct ur_row row;
	uint64_t bytes;
	unsigned run = execute_row(nic, &row, like, pkts, n);

	if (!run)
		return 0;
	for (unsigned i = 0; ur_unlikely(nic->capture != NULL) && q != &nic->loop.queue && i < run; i++)
		record(nic, pkts[i]);
	bytes = (uint64_t)run * (like->bth_off + row.stride);
	if (ur_unlikely(like->flags & UR_PKT_LOCAL))
		count_local(nic, q, run, bytes);
	else
		count_received(nic, run, bytes);
	return run;
}

/* What comes from this host was subject to its sender's faults; a train that is not only ours is looked at packet by packet. */
static bool is_subject(const struct ur_nic *nic, const struct ur_queue *q, const struct ur_pkt *p)
{
	return !(p->flags & (UR_PKT_BULK | UR_PKT_SLIM | UR_PKT_LOCAL)) && !(p->stride && holds_others(nic, q, p));
}

static void apply_faults(struct ur_nic *nic, struct ur_pkt **pkts, unsigned *n)
{
	if (*n)
		ur_faults_apply(nic->faults, nic->now, UR_FAULT_RX, pkts, *n, rx_left);
	*n = 0;
}

/* Packets that are subject to faults are so together: what these leave alone is executed as a burst again. */
static void rx_subject(struct ur_nic *nic, const struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_pkt *mine[UR_NIC_BURST];
	unsigned k = 0;

	for (unsigned i = 0, used = 1; i < n; i += used, used = 1) {
		struct ur_pkt *p = pkts[i];
		enum fate fate;

		if (is_subject(nic, q, p)) {
			if (may_be_others(nic, q, p) && ur_nic_hand_on(nic, p))
				continue;
			if (p->stride)
				note_train(nic, p);
			else
				note_received(nic, p);
			mine[k++] = p;
			continue;
		}
		apply_faults(nic, mine, &k);
		fate = rx_one(nic, q, p);
		used += fate == ALIKE ? rx_row(nic, q, p, pkts + i + 1, n - i - 1) : 0;
		ur_pkts_release(pkts + i, fate == KEPT ? 0 : used);
	}
	apply_faults(nic, mine, &k);
}

static inline void rx_plain(struct ur_nic *nic, const struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	unsigned done = 0;

	for (unsigned i = 0; i < n;) {
		struct ur_pkt *p = pkts[i++];
		enum fate fate = rx_one(nic, q, p);
		unsigned row = fate == ALIKE ? rx_row(nic, q, p, pkts + i, n - i) : 0;

		if (ur_likely(fate != KEPT))
			pkts[done++] = p;
		for (; row; row--)
			pkts[done++] = pkts[i++];
	}
	ur_pkts_release(pkts, done);
}

/*
 * Of n packets and trains: returns how many packets. Those of other processes are kept for them; all others are done with on return, except
 * those that faults hold.
 */
__attribute__((noinline)) static unsigned rx_all(struct ur_nic *nic, const struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	unsigned all = 0;

	for (unsigned i = 0; i < n; i++)
		all += ur_train_count(pkts[i]);
	if (ur_unlikely(nic->faults != NULL))
		rx_subject(nic, q, pkts, n);
	else
		rx_plain(nic, q, pkts, n);
	return all;
}

/* Mostly there is nothing. */
unsigned ur_nic_rx(struct ur_nic *nic, struct ur_queue *q)
{
	struct ur_pkt *pkts[UR_NIC_BURST];
	unsigned n = ur_queue_rx(q, pkts, UR_NIC_BURST);

	if (n)
		n = rx_all(nic, q, pkts, n);
	if (q == nic->port->queue)
		nic->more = n >= UR_NIC_BURST;
	return n;
}
