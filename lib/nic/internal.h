/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/nic share with one another. */
#ifndef UR_NIC_PRIV_H
#define UR_NIC_PRIV_H

#include "nic/nic.h"
#include "wire/frame.h"

/* send.c: complete frames, to the port or to this host; takes them. */
void ur_nic_send(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n);
void ur_nic_send_one(struct ur_nic *nic, struct ur_pkt *p);

/* What others look at has changed: whether this process, and those that send to it, may leave packets out (bulk.h, slim.h). */
void ur_nic_set_watched(struct ur_nic *nic);

/* out.c */
/* As ur_tp_config.alloc, from the port, if there is one; counts when that has none. */
unsigned ur_nic_alloc(void *ctx, struct ur_pkt **pkts, unsigned n);
void ur_nic_out_init(struct ur_nic *nic);
/* Gives back all that waits to be sent, or to be received from ourselves. */
void ur_nic_out_clear(struct ur_nic *nic);
/* Hands packets to a queue of nic->out, after what waits for it already; takes them. */
void ur_nic_out(struct ur_nic *nic, uint8_t to, struct ur_pkt **pkts, unsigned n);
void ur_nic_out_port(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n);
/* The same for packets to our own address, to the processes that they are for. */
void ur_nic_out_local(struct ur_nic *nic, struct ur_pkt **pkts, unsigned n);
/* Tries again what waits. */
void ur_nic_flush(struct ur_nic *nic);
/* As ur_tp_config.unread. */
bool ur_nic_unread(void *ctx, uint8_t to);
/* A copy of the packet, contiguous, in one of the port's; NULL when there is none. */
struct ur_pkt *ur_nic_copy(struct ur_nic *nic, const struct ur_pkt *p);
/* Sends a copy with these flags to another process; to each other process, except to the one with the slot `but` (0: to all). */
void ur_nic_tell_sibling(struct ur_nic *nic, uint8_t slot, const struct ur_pkt *p, uint8_t flags);
void ur_nic_tell_siblings(struct ur_nic *nic, const struct ur_pkt *p, uint8_t flags, uint8_t but);
/* At a further lane: is a packet that all processes of this host get for the first one alone? */
bool ur_nic_is_for_first_lane(const struct ur_nic *nic, const struct ur_pkt *p);
/* True when a packet from the wire was another process's, which has it now. Not of trains, which are looked at packet by packet. */
bool ur_nic_hand_on(struct ur_nic *nic, struct ur_pkt *p);
/* The same for a packet that cannot be kept: the other process gets a copy. */
bool ur_nic_hand_on_view(struct ur_nic *nic, const struct ur_pkt *view);

/* rx.c: handles a burst of the queue; returns how many packets there were. */
unsigned ur_nic_rx(struct ur_nic *nic, struct ur_queue *q);

/* icmp.c: as ur_net_config.undelivered. */
void ur_nic_undelivered(void *ctx, const struct ur_undelivered *u);
/*
 * As struct ur_port has it. Of the processes that share a steered port the kernel tells one, whichever: what is not about its packets it
 * passes on, as a message of flags UR_PKT_TOLD. ur_nic_rx_told takes that, and passes nothing on.
 */
void ur_nic_port_undelivered(struct ur_port *port, const struct ur_undelivered *u);
void ur_nic_rx_told(struct ur_nic *nic, const struct ur_pkt *p);
/* As ur_tp_config.only_short. */
void ur_nic_only_short(void *ctx, const struct ur_gid *dst, uint32_t path_mtu);

/* QP 1. */
void ur_nic_mad_init(struct ur_nic *nic);
/* True when it has kept the packet, a message to QP 1, to send it soon together with others. */
bool ur_nic_hold_mad(struct ur_nic *nic, struct ur_pkt *p);
void ur_nic_send_mad(void *ctx, const struct ur_cm_addr *to, const uint8_t mad[UR_MAD_LEN], uint32_t psn);
void ur_nic_rx_mad(struct ur_nic *nic, struct ur_pkt *p);
bool ur_nic_other_answers(void *ctx, uint64_t service_id, const struct ur_gid *dst);
bool ur_nic_orphaned(void *ctx, uint8_t slot);
void ur_nic_trouble(void *ctx, const struct ur_cm_trouble *t);
void ur_nic_farewell(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad);

/* The UDP source port of packets with that flow label, or between these QPs: a socket of the kernel's has one for all. */
static inline uint16_t ur_nic_sport(const struct ur_nic *nic, uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
	return nic->routed ? UR_ROCE_PORT : ur_udp_sport(flow_label, lqpn, rqpn);
}

void ur_nic_drain_doorbells(struct ur_nic *nic);

/* The path that an address vector names, for packets between two QPs (0 for any): 0, EINVAL, ENETUNREACH or EADDRNOTAVAIL. */
int ur_nic_path_attr(const struct ur_nic *nic, const struct ibv_ah_attr *ah, uint32_t lqpn, uint32_t rqpn, struct ur_net_path_attr *a);

#endif
