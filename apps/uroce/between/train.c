/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/between/train.h"

#include <string.h>

#include "fault/rule.h"
#include "wire/ip.h"

#define GSO_UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4; older headers lack it */
#define ID_AT 4      /* in the IPv4 header */

static uint32_t l3_of(const uint8_t *frame)
{
	return UR_ETH_LEN + (ur_get16(frame + 12) == UR_ETHERTYPE_VLAN ? UR_VLAN_LEN : 0);
}

static bool is_v4(const struct ur_between_train *t)
{
	return t->head[t->l3] >> 4 == 4;
}

/* Their lengths, and what the sum over the datagram begins with; the kernel goes on from here. */
static void put_lengths(const struct ur_between_train *t, uint8_t *head, uint32_t len)
{
	uint8_t *l3 = head + t->l3;
	const unsigned version = is_v4(t) ? 4 : 6;
	const uint16_t sum = (uint16_t)~ur_csum_fold(ur_udp_pseudo_sum(l3, version, UR_UDP_LEN + len));

	ur_udp_put_lengths(l3, version, UR_UDP_LEN + len);
	memcpy(head + t->begin - 2, &sum, sizeof(sum));
}

bool ur_between_train_begin(struct ur_between_train *t, const struct ur_between_frame *f)
{
	struct ur_fault_frame frame;

	if ((f->vnet.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) != GSO_UDP_L4 || f->vnet.gso_size < UR_BTH_LEN + UR_ICRC_LEN ||
	    !ur_fault_find_frame(f->data, f->len, &frame))
		return false;
	t->frame = f;
	t->l3 = l3_of(f->data);
	t->begin = frame.bth_off;
	if (t->begin != t->l3 + (f->data[t->l3] >> 4 == 4 ? UR_IP4_LEN : UR_IP6_LEN) + UR_UDP_LEN)
		return false; /* IP options */
	memcpy(t->head, f->data, t->begin);
	memcpy(t->single, t->head, t->begin);
	put_lengths(t, t->single, f->vnet.gso_size);
	return true;
}

void ur_between_head(const struct ur_between_train *t, uint32_t from, uint32_t to, uint8_t *head)
{
	const uint32_t size = t->frame->vnet.gso_size;
	uint8_t *l3 = head + t->l3;

	memcpy(head, t->single, t->begin);
	if (is_v4(t))
		ur_put16(l3 + ID_AT, (uint16_t)(ur_get16(l3 + ID_AT) + (from - t->begin) / size));
	if (to - from != size)
		put_lengths(t, head, to - from);
	else if (is_v4(t))
		ur_ip4_finish_again(l3);
}

void ur_between_head_vnet(const struct ur_between_train *t, uint32_t from, uint32_t to, struct virtio_net_hdr *vnet)
{
	const bool many = to - from > t->frame->vnet.gso_size;

	*vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = many ? GSO_UDP_L4 : VIRTIO_NET_HDR_GSO_NONE,
					.gso_size = many ? t->frame->vnet.gso_size : 0,
					.hdr_len = many ? (uint16_t)t->begin : 0,
					.csum_start = (uint16_t)(t->begin - UR_UDP_LEN),
					.csum_offset = 6};
}
