/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving. Slots of the ring are as long as the MTU asks for, and many. A longer frame, which is a train, is in its slot cut off; the
 * kernel keeps the whole of it in the socket's queue, in the order of the slots (PACKET_COPY_THRESH), and copies it to where we say when we
 * have seen its headers: each packet into a buffer of its own. So trains cost memory only while they wait, and keep their place among the
 * other frames.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "drivers/packet/internal.h"

#define IN_PLACE 512    /* longer frames stay in their slot until they are released; to copy shorter ones is cheaper */
#define HELD (1u << 16) /* status of such a slot: no bit that the kernel knows, and not zero, which would make it the kernel's */

/* What the ring says of a frame, read once. */
struct arrival {
	struct tpacket2_hdr *slot;
	uint8_t *frame;
	uint32_t status, len, have; /* of it, and of its bytes in the slot */
	uint32_t size;              /* of the packets of a train; 0: not known to be one */
	bool tagged, held;
	uint16_t tpid, tci;
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

/* To where any frame fits, as far as `len`. */
static ssize_t fetch_whole(struct ur_packet *s, size_t len)
{
	struct iovec iov = {s->whole, len};

	return fetch(s, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1});
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
	a->tci = copy.tp_vlan_tci;
	a->tpid = a->status & TP_STATUS_VLAN_TPID_VALID ? copy.tp_vlan_tpid : UR_ETHERTYPE_VLAN;
	if (ur_unlikely(copy.tp_mac < first || copy.tp_mac > s->slot_len || a->have > s->slot_len - copy.tp_mac || a->have > a->len))
		return true;
	a->frame = (uint8_t *)h + copy.tp_mac;
	if (s->vnet)
		read_vnet(a);
	return true;
}

/* --- one packet --- */

static void insert_tag(struct arrival *a)
{
	a->frame -= UR_VLAN_LEN;
	memmove(a->frame, a->frame + UR_VLAN_LEN, 12);
	ur_put16(a->frame + 12, a->tpid);
	ur_put16(a->frame + 14, a->tci);
	a->have += UR_VLAN_LEN;
}

static void take_one(struct ur_packet *s, struct arrival *a)
{
	struct ur_pkt *p = ur_packet_get(s);

	if (ur_unlikely(a->tagged && a->have >= UR_ETH_LEN))
		insert_tag(a);
	p->len = a->have;
	if (a->have <= IN_PLACE) {
		memcpy(p->data, a->frame, a->have);
	} else {
		p->data = a->frame;
		p->room = (uint32_t)((uint8_t *)a->slot + s->slot_len - a->frame);
		ur_container_of(p, struct ur_ppkt, pkt)->slot = a->slot;
		a->held = true;
	}
	s->cut[s->ncut++] = p;
}

/* --- trains --- */

static uint32_t packets_of(const struct ur_packet_head *h, uint32_t size)
{
	return (h->payload + size - 1) / size;
}

static bool can_cut(const struct ur_packet_head *h, uint32_t size)
{
	return size && h->len + UR_VLAN_LEN + size <= UR_PKT_ROOM && packets_of(h, size) <= UR_PACKET_TRAIN_MAX;
}

/* Packets that a train has had, and that are lost. */
static void missed(struct ur_packet *s, const struct ur_packet_head *h, uint32_t size)
{
	s->queue.rx_missed += size ? packets_of(h, size) : 1;
}

/* From memory that has all of it. `from` is where its headers end. */
static void cut(struct ur_packet *s, const struct ur_packet_head *h, const uint8_t *from, uint32_t size)
{
	for (uint32_t at = 0; at < h->payload; at += size) {
		struct ur_pkt *p = ur_packet_get(s);
		uint32_t n = ur_min_u32(size, h->payload - at);

		ur_packet_head_put(h, p, s->ncut, n);
		memcpy(p->data + h->len, from + at, n);
		s->cut[s->ncut++] = p;
	}
}

/* From the socket's queue; `off` bytes of headers are in front, which we have already. */
static void cut_long(struct ur_packet *s, const struct arrival *a, const struct ur_packet_head *h, uint32_t off)
{
	uint8_t headers[UR_PACKET_HDR_MAX];
	struct virtio_net_hdr vnet;
	struct iovec iov[UR_PACKET_TRAIN_MAX + 2] = {{&vnet, sizeof(vnet)}, {headers, off}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	for (uint32_t at = 0; at < h->payload; at += a->size) {
		struct ur_pkt *p = ur_packet_get(s);
		uint32_t n = ur_min_u32(a->size, h->payload - at);

		ur_packet_head_put(h, p, s->ncut, n);
		iov[msg.msg_iovlen++] = (struct iovec){p->data + h->len, n};
		s->cut[s->ncut++] = p;
	}
	if (ur_likely(fetch(s, &msg) == (ssize_t)(sizeof(vnet) + a->len)))
		return;
	missed(s, h, a->size);
	ur_packet_release(&s->queue, s->cut, s->ncut);
	s->ncut = 0;
}

/* A kernel that does not tell the size of the packets. */
static void guess_long(struct ur_packet *s, const struct arrival *a)
{
	ssize_t got = fetch_whole(s, UR_PACKET_LONGEST);
	struct ur_packet_head h;
	uint32_t off, size;

	if (got != (ssize_t)a->len || got > UR_PACKET_LONGEST || !ur_packet_head_get(&h, s->whole, a->len, a->len))
		return;
	off = h.len;
	size = ur_packet_guess(s->whole + off, h.payload, s->port.mtu - (off - h.l3_off));
	if (a->tagged)
		ur_packet_head_tag(&h, a->tpid, a->tci);
	if (can_cut(&h, size))
		cut(s, &h, s->whole + off, size);
	else
		missed(s, &h, 0);
}

/* A train that is in its slot, whole; or its first packets, when the socket's queue had no room for it. */
static void cut_here(struct ur_packet *s, const struct arrival *a, struct ur_packet_head *h, uint32_t off)
{
	uint32_t all = packets_of(h, a->size);

	if (a->have < off + h->payload)
		h->payload = (a->have - off) / a->size * a->size;
	cut(s, h, a->frame + off, a->size);
	s->queue.rx_missed += all - s->ncut;
}

static void take_arrival(struct ur_packet *s, struct arrival *a)
{
	struct ur_packet_head h;
	bool train = a->size && ur_packet_head_get(&h, a->frame, a->have, a->len) && h.payload > a->size;
	bool is_long = a->status & TP_STATUS_COPY;
	uint32_t off = train ? h.len : 0;

	if (!train && !is_long && a->have == a->len) {
		take_one(s, a);
		return;
	}
	if (train && a->tagged)
		ur_packet_head_tag(&h, a->tpid, a->tci);
	if (train && can_cut(&h, a->size)) {
		if (is_long)
			cut_long(s, a, &h, off);
		else
			cut_here(s, a, &h, off);
	} else if (!is_long || s->vnet) {
		if (is_long)
			fetch_whole(s, sizeof(struct virtio_net_hdr));
		if (train || !s->vnet)
			s->queue.rx_missed++;
	} else {
		guess_long(s, a);
	}
}

/* --- the ring --- */

/* The kernel says that it has dropped something with the next frame that finds room; after the last burst there may be none. */
static void ring_is_empty(struct ur_packet *s)
{
	if (ur_unlikely(s->since_empty > s->slots / 2))
		count_missed(s);
	s->since_empty = 0;
}

/* Puts the packets of the next frame into s->cut. False when there is none, or may not be enough memory for it. */
static bool next(struct ur_packet *s)
{
	struct arrival a;

	s->ncut = s->cut_at = 0;
	if (!next_arrival(s, &a)) {
		ring_is_empty(s);
		return false;
	}
	if (ur_unlikely(s->nfree < UR_PACKET_TRAIN_MAX))
		return false;
	if (ur_unlikely(a.status & TP_STATUS_LOSING))
		count_missed(s);
	if (ur_likely(a.frame != NULL))
		take_arrival(s, &a);
	else if (a.status & TP_STATUS_COPY)
		fetch_whole(s, sizeof(struct virtio_net_hdr));
	__atomic_store_n(&a.slot->tp_status, a.held ? HELD : TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	s->since_empty++;
	if (++s->head == s->slots)
		s->head = 0;
	return true;
}

unsigned ur_packet_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_packet *s = ur_packet_of_queue(q);
	unsigned out = 0;

	for (;;) {
		while (s->cut_at < s->ncut && out < n)
			pkts[out++] = s->cut[s->cut_at++];
		if (out == n || !next(s))
			return out;
	}
}
