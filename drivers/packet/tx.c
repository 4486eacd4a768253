/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: a burst is frames and trains, which leave with one system call. The kernel has copied all of it when the call returns. (From a
 * ring it would send without a copy, and give the slot back while a receiver on this host still refers to it.)
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

/* Headers for the whole train. Those of its first packet stay as they are: it may have to be cut in the end. */
static void put_head(struct ur_packet *s, unsigned m, const struct ur_pkt *first, uint32_t payload)
{
	uint8_t *head = s->tx_head[m], *l3 = head + first->l3_off;
	uint32_t udp_len = UR_UDP_LEN + payload;
	uint16_t sum;

	memcpy(head, first->data, first->bth_off);
	ur_udp_put_lengths(l3, first->ip_version, udp_len);
	/* What the sum over the datagram begins with: the kernel goes on from here, for each packet. */
	sum = (uint16_t)~ur_csum_fold(ur_udp_pseudo_sum(l3, first->ip_version, udp_len));
	memcpy(head + first->bth_off - 2, &sum, 2);
	put_iov(&s->tx_msg[m].msg_hdr, head, first->bth_off);
}

static void put_train(struct ur_packet *s, unsigned m, struct ur_pkt *p)
{
	s->tx_vnet[m] = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						.gso_type = UR_PACKET_GSO_UDP_L4,
						.gso_size = (uint16_t)p->stride,
						.hdr_len = p->bth_off,
						.csum_start = (uint16_t)(p->bth_off - UR_UDP_LEN),
						.csum_offset = 6};
	put_head(s, m, p, p->len - p->bth_off);
	put_iov(&s->tx_msg[m].msg_hdr, p->data + p->bth_off, p->len - p->bth_off);
}

static bool is_tagged(const struct ur_pkt *p)
{
	return p->len >= UR_ETH_LEN && ur_get16(p->data + 12) == UR_ETHERTYPE_VLAN;
}

static bool too_long(const struct ur_packet *s, const struct ur_pkt *p)
{
	uint32_t len = p->stride ? p->bth_off + p->stride : ur_pkt_frame_len(p);

	return len > s->max_frame && !(len <= s->max_frame + UR_VLAN_LEN && is_tagged(p));
}

/* Message number m of the call: a frame or a train. */
static void put_message(struct ur_packet *s, unsigned m, struct ur_pkt *p, struct iovec **iov)
{
	struct msghdr *h = &s->tx_msg[m].msg_hdr;

	*h = (struct msghdr){.msg_iov = *iov};
	if (s->vnet)
		put_iov(h, &s->tx_vnet[m], sizeof(s->tx_vnet[m]));
	if (p->stride) {
		put_train(s, m, p);
	} else {
		s->tx_vnet[m] = (struct virtio_net_hdr){.flags = 0};
		h->msg_iovlen += ur_sock_pieces(h->msg_iov + h->msg_iovlen, p, 0);
	}
	*iov += h->msg_iovlen;
}

/* A train that the kernel does not take as such, packet by packet. What finds no room is as good as lost. */
static void send_cut(struct ur_packet *s, const struct ur_pkt *t)
{
	struct virtio_net_hdr vnet = {.flags = 0};
	uint8_t frame[UR_PKT_ROOM];
	struct ur_pkt one = {.data = frame, .room = sizeof(frame)};
	struct iovec iov[2] = {{&vnet, s->vnet ? sizeof(vnet) : 0}, {frame, 0}};
	struct msghdr h = {.msg_iov = iov, .msg_iovlen = 2};
	struct ur_train_cursor at = {0};

	while (ur_train_cut(t, &at, &one)) {
		iov[1].iov_len = one.len;
		if (sendmsg(s->fd, &h, MSG_DONTWAIT) < 0)
			s->queue.tx_refused++;
	}
}

/*
 * Of `m` messages; returns how many are gone, sent or refused. When the kernel has something against a train as such, there are no more of
 * them.
 */
static unsigned send_all(struct ur_packet *s, struct ur_pkt *const *pkts, unsigned m, bool *full)
{
	unsigned done = 0;

	while (done < m) {
		int sent = sendmmsg(s->fd, s->tx_msg + done, m - done, MSG_DONTWAIT);

		if (ur_likely(sent > 0)) {
			done += (unsigned)sent;
			continue;
		}
		*full = ur_sock_is_full(errno);
		if (*full)
			break;
		if (pkts[done]->stride) {
			if (errno == EINVAL)
				s->queue.train_pkts = 1;
			send_cut(s, pkts[done]);
		} else {
			s->queue.tx_refused++;
		}
		done++;
	}
	return done;
}

unsigned ur_packet_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_packet *s = ur_packet_of_queue(q);
	unsigned done = 0;
	bool full = false;

	while (done < n && !full) {
		struct iovec *iov = s->tx_iov;
		unsigned room = ur_min_u32(n - done, UR_PACKET_TX_MSGS), m = 0, gone;

		for (; m < room && !too_long(s, pkts[done + m]); m++)
			put_message(s, m, pkts[done + m], &iov);
		gone = send_all(s, pkts + done, m, &full);
		if (!m) { /* the first one is too long for the port: nobody else can send it either */
			q->tx_refused += ur_train_count(pkts[done]);
			gone = 1;
		}
		ur_packet_release(q, pkts + done, gone);
		done += gone;
	}
	return done;
}
