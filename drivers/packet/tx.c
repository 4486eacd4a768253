/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: a burst becomes frames and trains, which leave with one system call. The kernel gathers headers, the program's memory and
 * ICRCs (short packets of a train we gather: drivers/os/sock.h), and has copied all of it when the call returns. (From a ring it would send
 * without a copy, and give the slot back while a receiver on this host still refers to it.)
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "drivers/os/sock.h"
#include "drivers/packet/internal.h"
#include "wire/ip.h"
#include "wire/train.h"

static void put_iov(struct msghdr *h, const void *data, size_t len)
{
	h->msg_iov[h->msg_iovlen++] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = len};
}

/* What the sum over a UDP datagram begins with. The kernel goes on from here, for each of its packets. */
static uint16_t pseudo_sum(const uint8_t *l3, unsigned version, uint32_t udp_len)
{
	uint8_t rest[4] = {(uint8_t)(udp_len >> 8), (uint8_t)udp_len, 0, UR_PROTO_UDP};
	uint32_t sum = ur_csum_add(0, rest, sizeof(rest));

	sum = version == 4 ? ur_csum_add(sum, l3 + 12, 8) : ur_csum_add(sum, l3 + 8, 32);
	return (uint16_t)~ur_csum_fold(sum);
}

/* Headers for the whole train. Those of its first packet stay as they are: it may have to leave alone in the end. */
static void put_head(struct ur_packet *s, unsigned m, const struct ur_pkt *first, uint32_t payload)
{
	uint8_t *head = s->tx_head[m], *l3 = head + first->l3_off, *udp = head + first->bth_off - UR_UDP_LEN;
	uint32_t udp_len = UR_UDP_LEN + payload;
	uint16_t sum;

	memcpy(head, first->data, first->bth_off);
	if (first->ip_version == 4)
		ur_ip4_finish(l3, UR_IP4_LEN + udp_len);
	else
		ur_ip6_finish(l3, udp_len);
	ur_put16(udp + 4, (uint16_t)udp_len);
	sum = pseudo_sum(l3, first->ip_version, udp_len);
	memcpy(udp + 6, &sum, 2);
	put_iov(&s->tx_msg[m].msg_hdr, head, first->bth_off);
}

static void put_train(struct ur_packet *s, unsigned m, struct ur_pkt **pkts, unsigned k, uint8_t **arena)
{
	struct msghdr *h = &s->tx_msg[m].msg_hdr;
	uint32_t size = ur_pkt_frame_len(pkts[0]) - pkts[0]->bth_off, payload = 0;

	s->tx_vnet[m] = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						.gso_type = UR_PACKET_GSO_UDP_L4,
						.gso_size = (uint16_t)size,
						.hdr_len = pkts[0]->bth_off,
						.csum_start = (uint16_t)(pkts[0]->bth_off - UR_UDP_LEN),
						.csum_offset = 6};
	for (unsigned i = 0; i < k; i++)
		payload += ur_pkt_frame_len(pkts[i]) - pkts[i]->bth_off;
	put_head(s, m, pkts[0], payload);
	h->msg_iovlen += ur_sock_train(h->msg_iov + h->msg_iovlen, pkts, k, arena);
}

static bool is_tagged(const struct ur_pkt *p)
{
	return p->len >= UR_ETH_LEN && ur_get16(p->data + 12) == UR_ETHERTYPE_VLAN;
}

static bool too_long(const struct ur_packet *s, const struct ur_pkt *p)
{
	uint32_t len = ur_pkt_frame_len(p);

	return len > s->max_frame && !(len <= s->max_frame + UR_VLAN_LEN && is_tagged(p));
}

/* Message number m of the call, from the first of at most n packets; returns how many go into it. */
static unsigned put_message(struct ur_packet *s, unsigned m, struct ur_pkt **pkts, unsigned n, struct iovec **iov,
			    uint8_t **arena)
{
	struct msghdr *h = &s->tx_msg[m].msg_hdr;
	unsigned k = ur_train_length(pkts, n, s->queue.train_pkts, s->queue.train_bytes);

	*h = (struct msghdr){.msg_iov = *iov};
	if (s->vnet)
		put_iov(h, &s->tx_vnet[m], sizeof(s->tx_vnet[m]));
	if (ur_unlikely(pkts[0]->place)) /* its train left without it */
		ur_train_move(pkts[0], 0);
	if (k > 1) {
		put_train(s, m, pkts, k, arena);
	} else {
		s->tx_vnet[m] = (struct virtio_net_hdr){.flags = 0};
		h->msg_iovlen += ur_sock_pieces(h->msg_iov + h->msg_iovlen, pkts[0], 0);
	}
	*iov += h->msg_iovlen;
	s->tx_len[m] = (uint8_t)k;
	return k;
}

/*
 * Of `m` messages; returns how many packets are gone, sent or refused. A train that is refused is to leave as the *torn packets that it is
 * made of; when the kernel has something against it as such, there are no more of them.
 */
static unsigned send_all(struct ur_packet *s, unsigned m, bool *full, unsigned *torn)
{
	unsigned done = 0, pkts = 0;

	while (done < m) {
		int sent = sendmmsg(s->fd, s->tx_msg + done, m - done, MSG_DONTWAIT);

		if (ur_unlikely(sent <= 0)) {
			*full = ur_sock_is_full(errno);
			if (*full)
				break;
			if (s->tx_len[done] > 1) {
				if (errno == EINVAL)
					s->queue.train_pkts = 1;
				*torn = s->tx_len[done];
				break;
			}
			s->queue.tx_refused++;
			sent = 1;
		}
		for (int i = 0; i < sent; i++)
			pkts += s->tx_len[done++];
	}
	return pkts;
}

unsigned ur_packet_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_packet *s = ur_packet_of_queue(q);
	unsigned done = 0, torn = 0;
	bool full = false;

	while (done < n && !full) {
		struct iovec *iov = s->tx_iov;
		uint8_t *arena = s->tx_arena;
		unsigned room = ur_min_u32(n - done, UR_PACKET_TX_PKTS), put_in = 0, m = 0, gone;

		while (put_in < room && m < UR_PACKET_TX_MSGS && !too_long(s, pkts[done + put_in]))
			put_in += put_message(s, m++, pkts + done + put_in, put_in < torn ? 1 : room - put_in, &iov, &arena);
		torn = 0;
		gone = send_all(s, m, &full, &torn);
		if (!m) { /* the first one is too long for the port: nobody else can send it either */
			q->tx_refused++;
			gone = 1;
		}
		ur_packet_release(q, pkts + done, gone);
		done += gone;
	}
	return done;
}
