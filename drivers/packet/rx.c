/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. Slots of the ring are as long as the MTU asks for, and many. A longer frame, which is a train, is in its slot cut off; the
 * kernel keeps the whole of it in the socket's queue, in the order of the slots (PACKET_COPY_THRESH), and copies it into a long buffer when
 * we come to its slot. So trains cost memory only while they wait, and keep their place among the other frames. They are handed on in one
 * piece, as they are.
 */
#include <errno.h>
#include <string.h>

#include "drivers/packet/internal.h"
#include "wire/train.h"

#define IN_PLACE 512    /* longer frames stay in their slot until they are released; to copy shorter ones is cheaper */
#define HELD (1u << 16) /* status of such a slot: no bit that the kernel knows, and not zero, which would make it the kernel's */

/* What the ring says of a frame, read once. */
struct arrival {
	struct tpacket2_hdr *slot;
	uint8_t *frame;
	uint32_t status, len, have; /* of it, and of its bytes in the slot */
	uint32_t size;              /* of the packets of a train; 0: none, or the kernel does not tell */
	bool tagged, held;
	uint16_t tpid, tci;
	ur_time when; /* if somebody wants to know */
};

static void count_missed(struct ur_packet *s)
{
	struct tpacket_stats st;
	socklen_t len = sizeof(st);

	if (getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, &st, &len) == 0)
		s->queue.rx_missed += st.tp_drops;
}

/*
 * The frame of this slot from the socket's queue: how long it is, or -1. It has to be fetched, or the next slot would be given this one. An
 * error of the socket's (the interface went down) is told once, before that; EINVAL is of the frame, which is gone.
 */
static ssize_t fetch(struct ur_packet *s, struct msghdr *msg)
{
	ssize_t n = -1;

	for (unsigned tries = 0; n < 0 && tries < 3 && (!tries || errno != EINVAL); tries++)
		n = recvmsg(s->fd, msg, MSG_DONTWAIT | MSG_TRUNC);
	return n;
}

static void read_vnet(struct arrival *a)
{
	struct virtio_net_hdr v;

	memcpy(&v, a->frame - sizeof(v), sizeof(v));
	if ((v.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == UR_PACKET_GSO_UDP_L4)
		a->size = v.gso_size;
}

/* False when the next slot is still the kernel's. What it says is checked against the slot: a->frame is NULL when that makes no sense. */
static bool next_arrival(struct ur_packet *s, struct arrival *a)
{
	struct tpacket2_hdr *h = (struct tpacket2_hdr *)(void *)(s->ring + (size_t)s->head * s->slot_len), copy;
	const uint32_t first = sizeof(*h) + sizeof(struct virtio_net_hdr) + UR_VLAN_LEN;

	*a = (struct arrival){.slot = h, .status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE)};
	if (!(a->status & TP_STATUS_USER))
		return false;
	memcpy(&copy, h, sizeof(copy));
	a->len = copy.tp_len;
	a->have = copy.tp_snaplen;
	a->tagged = a->status & TP_STATUS_VLAN_VALID;
	if (ur_unlikely(s->queue.stamp))
		a->when = copy.tp_sec * UR_NS_PER_S + copy.tp_nsec;
	a->tci = copy.tp_vlan_tci;
	a->tpid = a->status & TP_STATUS_VLAN_TPID_VALID ? copy.tp_vlan_tpid : UR_ETHERTYPE_VLAN;
	if (ur_unlikely(copy.tp_mac < first || copy.tp_mac > s->slot_len || a->have > s->slot_len - copy.tp_mac || a->have > a->len))
		return true;
	a->frame = (uint8_t *)h + copy.tp_mac;
	if (s->vnet)
		read_vnet(a);
	return true;
}

/* --- one frame --- */

static void take_here(struct ur_packet *s, struct ur_pkt *p, struct arrival *a)
{
	p->len = a->have;
	if (a->have <= IN_PLACE) {
		memcpy(p->data, a->frame, a->have);
		return;
	}
	p->data = a->frame;
	p->room = (uint32_t)((uint8_t *)a->slot + s->slot_len - a->frame);
	ur_container_of(p, struct ur_ppkt, pkt)->slot = a->slot;
	a->held = true;
}

/* False when it is not the frame that the slot tells of. */
static bool take_long(struct ur_packet *s, struct ur_pkt *p, const struct arrival *a)
{
	const size_t vnet = s->vnet ? sizeof(struct virtio_net_hdr) : 0;
	struct iovec iov;

	p->data += UR_PACKET_HEADROOM; /* for what stands before it, or a tag */
	p->room -= UR_PACKET_HEADROOM;
	p->len = ur_min_u32(a->len, p->room);
	iov = (struct iovec){p->data - vnet, p->room + vnet};
	return fetch(s, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1}) == (ssize_t)(vnet + a->len) && p->len == a->len;
}

static void insert_tag(struct ur_pkt *p, const struct arrival *a)
{
	p->data = ur_vlan_insert(p->data, a->tpid, a->tci);
	p->len += UR_VLAN_LEN;
	p->room += UR_VLAN_LEN;
}

/* Into an empty packet, a long one where the frame is long; false when there is no frame, or not all of it. */
static bool take_frame(struct ur_packet *s, struct ur_pkt *p, struct arrival *a)
{
	bool is_long = a->status & TP_STATUS_COPY;

	if (is_long && !take_long(s, p, a))
		return false;
	if (ur_unlikely(!a->frame || (!is_long && a->have < a->len)))
		return false;
	if (!is_long)
		take_here(s, p, a);
	if (ur_unlikely(a->tagged && p->len >= UR_ETH_LEN))
		insert_tag(p, a);
	if (ur_unlikely(s->queue.stamp))
		p->when = a->when;
	if (a->size || (is_long && !s->vnet))
		ur_packet_see_train(s, p, a->size);
	return true;
}

/* How many packets are lost with it: if it is a train, the socket's queue had no room for it. */
static unsigned packets_of(const struct arrival *a)
{
	const uint32_t headers = UR_ETH_LEN + UR_IP4_LEN + UR_UDP_LEN;

	return a->frame && a->size && a->len > headers ? (a->len - headers + a->size - 1) / a->size : 1;
}

/* --- the ring --- */

/* The kernel says that it has dropped something with the next frame that finds room; after the last burst there may be none. */
static void ring_is_empty(struct ur_packet *s)
{
	if (ur_unlikely(s->since_empty > s->slots / 2))
		count_missed(s);
	s->since_empty = 0;
}

static void pass_slot(struct ur_packet *s, const struct arrival *a)
{
	__atomic_store_n(&a->slot->tp_status, a->held ? HELD : TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	s->since_empty++;
	if (++s->head == s->slots)
		s->head = 0;
}

/* False when there is no frame, or no memory for it; *out is NULL when it is lost. */
static bool next(struct ur_packet *s, struct ur_pkt **out)
{
	struct arrival a;
	struct ur_pkt *p;

	if (!next_arrival(s, &a)) {
		ring_is_empty(s);
		return false;
	}
	p = a.status & TP_STATUS_COPY ? ur_packet_alloc_train(&s->queue) : ur_packet_get(s);
	if (ur_unlikely(!p))
		return false;
	if (ur_unlikely(a.status & TP_STATUS_LOSING))
		count_missed(s);
	*out = p;
	if (ur_unlikely(!take_frame(s, p, &a))) {
		ur_packet_release(&s->queue, out, 1);
		s->queue.rx_missed += packets_of(&a);
		*out = NULL;
	}
	pass_slot(s, &a);
	return true;
}

unsigned ur_packet_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_packet *s = ur_packet_of_queue(q);
	unsigned out = 0, all = 0;

	while (all < n && next(s, &pkts[out]))
		if (ur_likely(pkts[out] != NULL))
			all += ur_train_count(pkts[out++]);
	return out;
}
