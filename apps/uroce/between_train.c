/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains of RoCEv2 packets that the kernel carries as one, and parts of them, as the kernel would have cut them. */
#include <string.h>

#include "between.h"
#include "wire/ip.h"

#define GSO_UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4; older headers lack it */
#define ID_AT 4      /* in the IPv4 header */

static uint32_t l3_of(const uint8_t *frame)
{
	return UR_ETH_LEN + (ur_get16(frame + 12) == UR_ETHERTYPE_VLAN ? UR_VLAN_LEN : 0);
}

static uint32_t ip_len(const uint8_t *l3)
{
	return *l3 >> 4 == 4 ? UR_IP4_LEN : UR_IP6_LEN;
}

bool ur_between_is_train(const struct ur_between_frame *f)
{
	struct ur_fault_frame frame;

	if ((f->vnet.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) != GSO_UDP_L4 || f->vnet.gso_size < UR_BTH_LEN + UR_ICRC_LEN ||
	    !ur_fault_find_frame(f->data, f->len, &frame))
		return false;
	/* no IP options */
	return frame.bth_off == l3_of(f->data) + ip_len(f->data + l3_of(f->data)) + UR_UDP_LEN;
}

uint32_t ur_between_train_begin(const struct ur_between_frame *train)
{
	const uint32_t l3 = l3_of(train->data);

	return l3 + ip_len(train->data + l3) + UR_UDP_LEN;
}

/* What the sum over the datagram begins with; the kernel goes on from here. */
static void begin_sum(uint8_t *l3, uint32_t udp_len)
{
	const uint16_t sum = (uint16_t)~ur_csum_fold(ur_udp_pseudo_sum(l3, *l3 >> 4, udp_len));

	memcpy(l3 + ip_len(l3) + 6, &sum, sizeof(sum));
}

uint32_t ur_between_head(const struct ur_between_frame *train, uint32_t from, uint32_t to, uint8_t *head, struct virtio_net_hdr *vnet)
{
	const uint32_t l3 = l3_of(train->data), len = ur_between_train_begin(train), udp_len = UR_UDP_LEN + to - from;
	const bool v4 = train->data[l3] >> 4 == 4, many = to - from > train->vnet.gso_size;

	memcpy(head, train->data, len);
	if (v4)
		ur_put16(head + l3 + ID_AT, (uint16_t)(ur_get16(head + l3 + ID_AT) + (from - len) / train->vnet.gso_size));
	ur_udp_put_lengths(head + l3, v4 ? 4 : 6, udp_len);
	begin_sum(head + l3, udp_len);
	*vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = many ? GSO_UDP_L4 : VIRTIO_NET_HDR_GSO_NONE,
					.gso_size = many ? train->vnet.gso_size : 0,
					.hdr_len = many ? (uint16_t)len : 0,
					.csum_start = (uint16_t)(len - UR_UDP_LEN),
					.csum_offset = 6};
	return len;
}
