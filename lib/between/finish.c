/* SPDX-License-Identifier: BSD-3-Clause */
#include "between/finish.h"

#include <string.h>

#include "wire/frame.h"
#include "wire/ip.h"

#define GSO_UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4; older headers lack it */
#define ID_AT 4      /* in the IPv4 header */
#define TCP_LEN 20   /* of TCP, without options; the places of its fields: */
#define TCP_SEQ 4
#define TCP_WORDS 12
#define TCP_FLAGS 13
#define TCP_CSUM 16
#define TCP_FIN_PSH 0x09 /* are those of the last segment, */
#define TCP_CWR 0x80     /* and this of the first */
#define UDP_CSUM 6

static bool is_v4(const struct ur_cut *c)
{
	return c->frame[c->l3] >> 4 == 4;
}

static bool is_udp(const struct ur_cut *c)
{
	return (c->vnet.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == GSO_UDP_L4;
}

/* Where its transport header begins is what the checksum says; between the two are options or extensions. */
static bool find_headers(struct ur_cut *c)
{
	const uint32_t l4 = c->vnet.csum_start, least = l4 + (is_udp(c) ? UR_UDP_LEN : TCP_LEN);

	c->l3 = UR_ETH_LEN + (c->len >= UR_ETH_LEN && ur_get16(c->frame + 12) == UR_ETHERTYPE_VLAN ? UR_VLAN_LEN : 0);
	if (least >= c->len || l4 < c->l3 + UR_IP4_LEN || (!is_v4(c) && l4 < c->l3 + UR_IP6_LEN))
		return false;
	c->head = is_udp(c) ? least : l4 + (c->frame[l4 + TCP_WORDS] >> 4) * 4u;
	return c->head >= least && c->head < c->len;
}

bool ur_cut_begin(struct ur_cut *c, uint8_t *frame, uint32_t len, const struct virtio_net_hdr *vnet)
{
	const bool sums = vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
	const unsigned type = vnet->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;

	*c = (struct ur_cut){.frame = frame, .len = len, .vnet = *vnet};
	if (sums && (uint32_t)vnet->csum_start + vnet->csum_offset + 2 > len)
		return false;
	if (type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (!sums || !vnet->gso_size || (type != GSO_UDP_L4 && type != VIRTIO_NET_HDR_GSO_TCPV4 && type != VIRTIO_NET_HDR_GSO_TCPV6) ||
	    !find_headers(c))
		return false;
	c->size = vnet->gso_size;
	c->at = c->head;
	return true;
}

uint32_t ur_cut_next(const struct ur_cut *c)
{
	if (!c->head)
		return c->at ? 0 : c->len;
	return c->at < c->len ? c->head + ur_min_u32(c->size, c->len - c->at) : 0;
}

/* From where it begins to the end of the frame; what stands in its place is the sum over what the frame does not have there. */
static void put_sum(uint8_t *frame, uint32_t len, uint32_t start, uint32_t offset, bool udp)
{
	uint16_t sum = ur_csum_fold(ur_csum_add(0, frame + start, len - start));

	if (udp && !sum)
		sum = 0xffff;
	memcpy(frame + start + offset, &sum, sizeof(sum));
}

static void put_lengths(const struct ur_cut *c, uint8_t *to, uint32_t len, uint32_t place)
{
	uint8_t *ip = to + c->l3;

	if (is_v4(c)) {
		const uint32_t header = (ip[0] & 15u) * 4;
		uint16_t sum;

		ur_put16(ip + 2, (uint16_t)(len - c->l3));
		ur_put16(ip + ID_AT, (uint16_t)(ur_get16(ip + ID_AT) + place));
		ur_put16(ip + 10, 0);
		sum = ur_csum_fold(ur_csum_add(0, ip, ur_min_u32(header, c->vnet.csum_start - c->l3)));
		memcpy(ip + 10, &sum, sizeof(sum));
	} else {
		ur_put16(ip + 4, (uint16_t)(len - c->l3 - UR_IP6_LEN));
	}
}

/* The sum over the addresses, the protocol and the length, from which the kernel would go on. */
static uint16_t pseudo(const struct ur_cut *c, const uint8_t *to, uint32_t len)
{
	const uint32_t l4 = len - c->vnet.csum_start;
	const uint8_t rest[4] = {(uint8_t)(l4 >> 8), (uint8_t)l4, 0, is_udp(c) ? UR_PROTO_UDP : 6};
	const uint8_t *ip = to + c->l3;
	uint32_t sum = ur_csum_add(0, rest, sizeof(rest));

	sum = is_v4(c) ? ur_csum_add(sum, ip + 12, 8) : ur_csum_add(sum, ip + 8, 32);
	return (uint16_t)~ur_csum_fold(sum);
}

static void put_segment(struct ur_cut *c, uint8_t *to, uint32_t len)
{
	const uint32_t l4 = c->vnet.csum_start, offset = is_udp(c) ? UDP_CSUM : TCP_CSUM;
	const bool first = c->at == c->head, last = c->at + len - c->head == c->len;
	uint16_t sum;

	memcpy(to, c->frame, c->head);
	memcpy(to + c->head, c->frame + c->at, len - c->head);
	put_lengths(c, to, len, (c->at - c->head) / c->size);
	if (is_udp(c)) {
		ur_put16(to + l4 + 4, (uint16_t)(len - l4));
	} else {
		ur_put32(to + l4 + TCP_SEQ, ur_get32(to + l4 + TCP_SEQ) + c->at - c->head);
		to[l4 + TCP_FLAGS] &= (uint8_t) ~((last ? 0 : TCP_FIN_PSH) | (first ? 0 : TCP_CWR));
	}
	sum = pseudo(c, to, len);
	memcpy(to + l4 + offset, &sum, sizeof(sum));
	put_sum(to, len, l4, offset, is_udp(c));
	c->at += len - c->head;
}

void ur_cut_put(struct ur_cut *c, uint8_t *to)
{
	if (c->head) {
		put_segment(c, to, ur_cut_next(c));
		return;
	}
	memcpy(to, c->frame, c->len);
	if (c->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		put_sum(to, c->len, c->vnet.csum_start, c->vnet.csum_offset, c->vnet.csum_offset == UDP_CSUM);
	c->at = c->len;
}
