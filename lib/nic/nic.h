/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * struct ur_nic: the software RNIC. It introduces the layers to one another: a port, the transport, the connection manager and
 * the network layer around one timing wheel. No threads and no clock here: the caller passes `now` and holds the NIC's lock, so the
 * same code runs under the engine's threads (engine.h) and in a simulation in virtual time (test/sim).
 */
#ifndef UR_NIC_H
#define UR_NIC_H

#include "base/bucket.h"
#include "base/counters.h"
#include "base/list.h"
#include "base/random.h"
#include "base/wheel.h"
#include "cm/cm.h"
#include "drivers/loop/loop.h"
#include "drivers/port.h"
#include "net/idents.h"
#include "net/net.h"
#include "transport/transport.h"

struct ur_capture; /* capture.h */
struct ur_faults;  /* fault/inject.h */
struct ur_fault_spec;

#define UR_NIC_BURST 64
#define UR_NIC_OUTS 256

/* A queue that packets leave by, and those that it has not taken yet. */
struct ur_nic_out {
	struct ur_queue *queue; /* NULL: there was nobody yet */
	struct ur_pkt *head, *last; /* the backlog, oldest first; `last` counts while there is one */
	unsigned n;
	bool stuck;    /* it has taken nothing for so long that its backlog was given up */
	ur_time since; /* when it last took one of the backlog */
	struct ur_list link; /* in nic->waiting while there is a backlog */
};

struct ur_nic_config {
	struct ur_seed seed; /* of all that peers must not guess */
	uint64_t guid;       /* CA GUID, derived from the MAC address */
	/* Of the transport: its settings, `slot`, `populate`, `copy` and `tokens`. The NIC sets all else in it. */
	struct ur_tp_config tp;
	uint8_t first_slot; /* of a further lane, without QP 1 or groups: the slot of the first one; else 0 */
	uint32_t half_open; /* as in ur_cm_config */
	bool packets;       /* nothing but packets is exchanged on this host, no bulk packets */
	bool owned;         /* the addresses are ours alone: answer ARP, ND and echo */
	struct ur_mac mac;
	uint16_t mtu;
	void *ctx;
	/* As ur_cm_config.other_answers; NULL means that nobody else listens. */
	bool (*other_answers)(void *ctx, uint64_t service_id, const struct ur_gid *dst);
	/* As ur_cm_config.orphaned. */
	bool (*orphaned)(void *ctx, uint8_t slot);
	/* Does a process of this host have the slot? NULL: there are no others. */
	bool (*alive)(void *ctx, uint8_t slot);
	/*
	 * As ur_cm_config.farewell, but never for peers on this host; and the groups that were joined, where the port's end does not leave
	 * them. Both may be NULL.
	 */
	void (*farewell)(void *ctx, uint32_t *place, const struct ur_cm_addr *to, const uint8_t *mad);
	void (*group_farewells)(void *ctx, const struct ur_gid *groups, unsigned n);
	/* A QP goes, and its peer, which is not on this host, may yet ask for this acknowledgement. NULL: nobody wants to know. */
	void (*last_ack)(void *ctx, const struct ur_last_ack *ack, ur_time now);
	/*
	 * The other processes of this device; all NULL when there are none. The inbox brings what they sent; sibling is the queue to the
	 * one with that slot, which stays valid, or NULL when nobody has it; siblings says which slots have one, and how many.
	 */
	struct ur_queue *inbox; /* its packets say whether they came from the wire (UR_PKT_LOCAL) */
	struct ur_queue *(*sibling)(void *ctx, uint8_t slot);
	unsigned (*siblings)(void *ctx, uint8_t slot[UR_NIC_OUTS]);
	/* As in ur_tp_config; and whether somebody looks at packets, so that the others are to send us frames alone. All may be NULL. */
	enum ur_fetched_by (*fetch)(void *ctx, uint8_t slot, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from,
				    unsigned nfrom);
	uint64_t (*token)(void *ctx, uint8_t slot, uint32_t at);
	void (*watched)(void *ctx, bool watched);
	/*
	 * A hop on the way to `dst` carries hop_mtu IP bytes, too few for packets of connections that are there, whose path MTU is that:
	 * once for each address, and again when a smaller path MTU follows. Or (0) it looks so, as in ur_tp_config.only_short. At most now
	 * and then. May be NULL.
	 */
	void (*narrow)(void *ctx, const struct ur_gid *dst, uint32_t path_mtu, uint16_t hop_mtu);
	/* When the last packet came to a QP of another lane, as ur_qp_last_received; 0 for other QPs. NULL: there are no other lanes. */
	ur_time (*last_received)(void *ctx, uint32_t qpn);
	/* As ur_cm_config.trouble. */
	void (*trouble)(void *ctx, const struct ur_cm_trouble *t);
};

/* What the port has said of a path, a moment ago. */
#define UR_NIC_PATH_MTUS 64
struct ur_nic_path_mtu {
	struct ur_gid dst;
	ur_time until;
	uint16_t mtu;
};

struct ur_nic {
	struct ur_port *port; /* NULL until attached: then nothing is sent or received */
	bool routed;          /* its queue is UR_QUEUE_BARE: the kernel routes and finds the next hop */
	struct ur_tp *tp;
	struct ur_cm *cm;
	struct ur_net *net;
	struct ur_wheel *wheel;
	struct ur_random random;
	struct ur_counters counters;
	struct ur_nic_config cfg;
	struct ur_timer siblings; /* armed while a connection to a process of this host is there */
	struct ur_trace *trace;     /* NULL: nobody wants to know; by ur_nic_set_trace */
	struct ur_capture *capture; /* NULL: off; by ur_nic_set_capture */
	struct ur_faults *faults;   /* NULL: off */
	ur_time now;                /* of the current call, for callbacks */
	uint64_t doorbells;         /* rounds that found some */
	bool more; /* the port gave a full burst: it may have more, which its descriptor does not show */
	bool watched; /* somebody looks at packets: those on this host are neither bulk nor slim */
	unsigned train_pkts; /* the longest train that the transport builds now */
	ur_time local_at;    /* when packets last came from this host */
	ur_time look_at;     /* the port has to be looked at again then, and */
	ur_time look_ns;     /* if it has nothing, so long after that */

	struct ur_nic_out out[UR_NIC_OUTS]; /* 0: the port's; by slot the other processes', and the loop */
	struct ur_list waiting;             /* those with a backlog */
	struct ur_idents idents;            /* IPv4 identifications of what comes in */
	struct ur_loop loop;                /* packets to ourselves */
	struct ur_bucket narrow_reports;    /* calls of cfg.narrow */
	struct {
		struct ur_pkt *train;     /* messages to QP 1 that wait for more of them; NULL: none */
		struct ur_timer timer;    /* they go then */
		struct ur_bucket at_once; /* those that do not wait */
	} mads;
	struct ur_nic_path_mtu path_mtu[UR_NIC_PATH_MTUS]; /* by a hash of the address */
	_Atomic(struct ur_qp *) doorbell;   /* QPs that rang since the last poll, newest first */
};

int ur_nic_create(const struct ur_nic_config *cfg, ur_time now, struct ur_nic **out);
/* Every object above it is gone. Gives back all packets; the port stays the caller's. */
void ur_nic_destroy(struct ur_nic *nic);
/* There are no other processes any more: in a forked child. */
void ur_nic_leave_siblings(struct ur_nic *nic);
void ur_nic_attach(struct ur_nic *nic, struct ur_port *port);
/* Receives trace events of the NIC (base/trace.h), at nic->now; may be NULL. Outlives the NIC, or is removed. */
void ur_nic_set_trace(struct ur_nic *nic, struct ur_trace *trace);
/* Records all packets from now on, or (NULL) none. It stays the caller's. */
void ur_nic_set_capture(struct ur_nic *nic, struct ur_capture *capture);
/* Injects these faults from now on instead of those before; NULL: none. 0 or ENOMEM. */
int ur_nic_set_faults(struct ur_nic *nic, const struct ur_fault_spec *spec);
/*
 * Makes the port's multicast filter follow the addresses (solicited-node groups and all hosts, in owned mode), the groups that QPs are
 * attached to and those that were joined; after adding or removing an address.
 */
int ur_nic_filter_mcast(struct ur_nic *nic);

/* One round: doorbells, receive, timers, send. Returns how many packets moved; 0 means idle until ur_nic_next, the port or a doorbell. */
unsigned ur_nic_poll(struct ur_nic *nic, ur_time now);
/* The same for a control call, of which there are many in a row: the port is left alone where it was found empty a moment ago. */
unsigned ur_nic_poll_control(struct ur_nic *nic, ur_time now);
/*
 * The same in another order: what this round's arrivals ask to be sent waits for the next round, so that an acknowledgement leaves together
 * with what the application posts in reply, in one burst, and not before it.
 */
unsigned ur_nic_poll_lazy(struct ur_nic *nic, ur_time now);
/* Of a round only what arrives: nothing is sent, and who rang waits for the next. */
unsigned ur_nic_poll_rx(struct ur_nic *nic, ur_time now);
/*
 * Of a round only what is to be sent: who rang, and as much as fits into the windows. What goes to this process itself arrives at once,
 * which needs no system call, and so do its answers.
 */
unsigned ur_nic_poll_tx(struct ur_nic *nic, ur_time now);
/* True when something waits to be sent, and all of it is answers to what arrived. */
bool ur_nic_owes_answers(const struct ur_nic *nic);
/* The time of the next timer, or now when something waits to be sent; UR_TIME_NEVER for neither. */
ur_time ur_nic_next(const struct ur_nic *nic);

/* Any thread, no lock: hands a QP whose ur_qp_doorbell said true to the next poll. */
void ur_nic_ring(struct ur_nic *nic, struct ur_qp *qp);
bool ur_nic_rang(const struct ur_nic *nic);

/*
 * ibv_modify_qp(3): opens the path that an IBV_QP_AV asks for, hands both to the transport and keeps `path` (zeroed by the owner at first,
 * alive as long as the QP). The QP is kicked whenever the path changes.
 */
int ur_nic_modify_qp(struct ur_nic *nic, struct ur_qp *qp, struct ur_net_path *path, const struct ibv_qp_attr *attr, int mask, ur_time now);
/* Takes the QP off the doorbell list, destroys it and closes its path. EBUSY while it is attached to a group. */
int ur_nic_destroy_qp(struct ur_nic *nic, struct ur_qp *qp, struct ur_net_path *path);
/* The process ends: as if each QP were destroyed, for `last_ack` of the configuration. */
void ur_nic_show_last_acks(struct ur_nic *nic, ur_time now);
/*
 * ibv_create_ah(3): an address handle whose path is kept current; ur_ah_destroy unmakes it. EINVAL, ENETUNREACH, EADDRNOTAVAIL, ENOMEM.
 * ah->api is left to the caller.
 */
int ur_nic_create_ah(struct ur_nic *nic, struct ur_pd *pd, const struct ibv_ah_attr *attr, ur_time now, struct ur_ah **out);
/* ibv_attach_mcast(3), ibv_detach_mcast(3): as ur_mcast_attach and ur_mcast_detach; the port's filter follows. */
int ur_nic_attach_mcast(struct ur_nic *nic, struct ur_qp *qp, const struct ur_gid *group);
int ur_nic_detach_mcast(struct ur_nic *nic, struct ur_qp *qp, const struct ur_gid *group);
/*
 * Membership in a group on a VLAN, which switches and routers are told of: as ur_net_group_join and ur_net_group_leave; the port's filter
 * follows. QPs receive when they are attached, whether or not the group was joined; without joining, a network may keep it from us.
 */
int ur_nic_join_mcast(struct ur_nic *nic, const struct ur_gid *group, uint16_t vlan, ur_time now);
int ur_nic_leave_mcast(struct ur_nic *nic, const struct ur_gid *group, uint16_t vlan, ur_time now);
/* What waits for more, a moment, goes now: the process ends. */
void ur_nic_flush_mads(struct ur_nic *nic);
/* Leaves all groups at once: the process ends. */
void ur_nic_end_mcast(struct ur_nic *nic, ur_time now);
/* IP bytes that a packet to this address may have: what the port carries, or less by the host's routes or for a hop that is narrower. */
uint16_t ur_nic_path_mtu(struct ur_nic *nic, const struct ur_gid *dst);

#endif
