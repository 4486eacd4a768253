/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * struct ur_pkt: one Ethernet frame. A driver owns the memory; the holder of the pointer owns the packet.
 *
 *   received: `data`/`len` hold the whole frame, contiguous and writable; ur_frame_parse fills the parsed fields. A packet that came
 *             through a socket of the kernel's (UR_PKT_BARE) begins with its BTH: what stood before it the driver has put into the fields.
 *   to send:  `data`/`len` hold the headers (and small payloads); `seg` lists payload that stays where it is, in order after
 *             `data`; `tail`/`tail_len` hold the pad and the ICRC, the last bytes of the frame.
 *
 * A train is a run of packets that the kernel or a NIC carries as one and cuts into packets of equal length, of which the last may be
 * shorter: same addresses, ports and traffic class. Each has its own BTH, extended headers and ICRC. It is one struct ur_pkt (`stride` says
 * so), all of it in `data`: the headers once, then the packets from the BTH to the ICRC, one after another. train.h takes it apart.
 * Of a received train the fields up to `bth_off` are set, for all its packets; one that came through a socket is bare, others have headers.
 */
#ifndef UR_PKT_H
#define UR_PKT_H

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/touch.h"

#define UR_PKT_SEGS 4     /* payload segments of a packet to send; more fragments than that are copied into `data` */
#define UR_PKT_ROOM 4352  /* every packet buffer has at least this many bytes at `data`: MTU 4096 plus all headers */

/* Whether a device that reads memory by itself reaches a piece of it, and where (drivers/port.h: map). */
struct ur_dma {
	uint64_t shift; /* from addresses of this process to those of the bus, modulo 2^64 */
	bool mapped;
};

/* Counts frames that refer to a piece of memory, so that it is not given up under them. */
struct ur_ref {
	atomic_uint n;
	struct ur_dma dma; /* stays as it is while frames refer to it */
};

struct ur_seg {
	uint8_t *data;
	uint32_t len;
	struct ur_ref *ref; /* the driver drops one count when the frame no longer needs the bytes; may be NULL */
};

struct ur_bth {
	uint8_t opcode;
	uint8_t pad; /* 0 to 3 */
	uint8_t tver;
	bool se, migreq, ackreq, fecn, becn;
	uint16_t pkey;
	uint32_t dqpn; /* 24 bits */
	uint32_t psn;  /* 24 bits */
};

enum ur_pkt_kind {
	UR_PKT_OTHER, /* not ours to handle */
	UR_PKT_ROCE,
	UR_PKT_ROCE_GUESSED, /* if its IPv4 identification was `place`, which makes the ICRC right: so it does for a damaged one in 32768 */
	UR_PKT_ARP,
	UR_PKT_ICMP4,
	UR_PKT_ICMP6, /* echo and neighbour discovery */
	UR_PKT_GMP,   /* group management: IGMP and MLD */
};

enum ur_pkt_flag {
	UR_PKT_LOCAL = 1, /* to send: the destination is this very NIC; received: it came from this host, not from the port */
	UR_PKT_GROUP = 2, /* to send: the destination is a multicast group, which may have members at this very NIC */
	UR_PKT_BARE = 4,  /* received: without Ethernet, IP and UDP headers; src, dst, ip_version, ttl, tos, flow_label and sport are set */
	UR_PKT_CUT = 8,   /* received: cut out of a train; its IPv4 identification is the one that it most likely had */
	/*
	 * To send: it was sent before, and got lost. A device that reads memory by itself may have found other bytes there than the CPU,
	 * whose ICRC it carried: the memory was changed meanwhile, or other pages lie there now. So this time the CPU copies them.
	 */
	UR_PKT_AGAIN = 16,
	UR_PKT_COMPLETE = 32, /* to send: nothing is missing, the ICRC included; trains always are */
	UR_PKT_BULK = 64,     /* between QPs of this host: it stands for a run of packets (bulk.h) */
	UR_PKT_SLIM = 128,    /* between QPs of this host: what stands before its BTH means nothing, and no ICRC ends it (slim.h) */
	/* No packet, but an ICMP error that the kernel has told another process of this host; it quotes `data` (lib/nic/icmp.c). */
	UR_PKT_TOLD = UR_PKT_LOCAL | UR_PKT_BARE,
};

struct ur_queue; /* drivers/port.h */

struct ur_pkt {
	uint8_t *data;
	uint32_t len;
	uint32_t room;
	struct ur_seg seg[UR_PKT_SEGS];
	uint8_t nseg;
	uint8_t tail_len;
	uint8_t tail[8];
	uint8_t flags;
	/*
	 * The IPv4 identification. To send: the one that it has, which is its place in its train. Received: the one that it most likely
	 * had: of a bare packet its place; a packet of a train has that of the first, and one more for each packet between them.
	 */
	uint16_t place;
	uint32_t stride; /* of a train: bytes of each packet after the UDP header, the last may have fewer. 0: one packet */

	/* Parsed fields; on packets to send the builder fills l3_off, bth_off, ip_version and bth as well. */
	uint8_t kind; /* enum ur_pkt_kind */
	uint8_t ip_version, ttl, tos;
	uint8_t slot; /* of a slim or bulk packet: of the process that it comes from */
	uint8_t may_fragment; /* of UR_PKT_ROCE_GUESSED: the flag DF is not as in what uroce sends */
	uint16_t l3_off, l4_off, bth_off, payload_off;
	uint16_t vlan; /* VLAN tag control information, 0 when untagged */
	uint16_t sport;
	uint32_t flow_label;
	uint32_t payload_len; /* without pad and ICRC */
	struct ur_bth bth;
	struct ur_gid src, dst; /* IP addresses as GIDs */
	ur_time when;           /* received: when it came, by the wall clock or in virtual time, where the port tells; otherwise 0 */
	struct ur_pkt *next;    /* for the holder's queues */
	struct ur_queue *home;  /* the queue to which it is returned; set by the driver */
};

#define UR_ECN_MASK 3 /* of `tos` */
#define UR_ECN_CE 3   /* congestion experienced (RFC 3168) */

static inline bool ur_tos_is_ce(uint8_t tos)
{
	return (tos & UR_ECN_MASK) == UR_ECN_CE;
}

/* Bytes of the frame as it is on the wire, without FCS. */
static inline uint32_t ur_pkt_frame_len(const struct ur_pkt *p)
{
	uint32_t n = p->len + p->tail_len;

	for (unsigned i = 0; i < p->nseg; i++)
		n += p->seg[i].len;
	return n;
}

/* A piece of memory without a count (NULL) needs none. */
static inline void ur_ref_get(struct ur_ref *ref)
{
	if (ref)
		atomic_fetch_add_explicit(&ref->n, 1, memory_order_relaxed);
}

static inline void ur_ref_put(struct ur_ref *ref)
{
	if (ref)
		atomic_fetch_sub_explicit(&ref->n, 1, memory_order_release);
}

/*
 * Zeroes what a driver's alloc leaves zero: all but the memory; seg[] means nothing while nseg is 0, and `home` is the driver's to set. A
 * copy becomes a few vector stores, memset a slow `rep stos`.
 */
static inline void ur_pkt_clear(struct ur_pkt *p)
{
	static const uint8_t zero[sizeof(*p) - offsetof(struct ur_pkt, nseg)];

	memcpy((uint8_t *)p + offsetof(struct ur_pkt, nseg), zero, sizeof(zero));
}

/* Empty, as a driver's alloc gave it: to be built again. It has no segments that are counted. */
static inline void ur_pkt_reset(struct ur_pkt *p)
{
	struct ur_queue *home = p->home;

	ur_pkt_clear(p);
	p->len = 0;
	p->home = home;
}

/* What the bytes of a packet do not tell: flags, and the fields of one that is bare or has been parsed. */
static inline void ur_pkt_copy_fields(struct ur_pkt *to, const struct ur_pkt *from)
{
	to->flags = from->flags;
	to->place = from->place;
	to->kind = from->kind;
	to->ip_version = from->ip_version;
	to->ttl = from->ttl;
	to->tos = from->tos;
	to->l3_off = from->l3_off;
	to->l4_off = from->l4_off;
	to->bth_off = from->bth_off;
	to->sport = from->sport;
	to->flow_label = from->flow_label;
	to->bth = from->bth;
	to->src = from->src;
	to->dst = from->dst;
}

/*
 * Copies the segments. One whose memory has gone since the packet was finished (transport.h: ur_tp_unsendable) leaves zeros: no ICRC fits
 * them, so the packet is lost where it arrives.
 */
static inline uint8_t *ur_pkt_put_segments(const struct ur_pkt *p, uint8_t *to)
{
	for (unsigned i = 0; i < p->nseg; to += p->seg[i++].len)
		if (ur_unlikely(!ur_touch_copy(to, p->seg[i].data, p->seg[i].len)))
			memset(to, 0, p->seg[i].len);
	return to;
}

/* Copies the frame as it is on the wire, from its byte `off` on, one of `data`; returns where it ends. The segments stay what they are. */
static inline uint8_t *ur_pkt_gather(const struct ur_pkt *p, uint32_t off, uint8_t *to)
{
	memcpy(to, p->data + off, p->len - off);
	to = ur_pkt_put_segments(p, to + p->len - off);
	memcpy(to, p->tail, p->tail_len);
	return to + p->tail_len;
}

/* Counts the segments; uncounts them, after which there are none. */
void ur_pkt_hold(const struct ur_pkt *p);
void ur_pkt_let_go(struct ur_pkt *p);
/* Gathers segments and tail after the inline bytes. False, and nothing has changed, when the buffer is too small. */
bool ur_pkt_linearise(struct ur_pkt *p);

#endif
