/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains that were received: one frame with one set of headers and the payloads of many packets one after another. Each packet gets
 * headers of its own, as it would have had on a wire: segmentation increments the IPv4 identification.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/psn.h"
#include "drivers/packet/internal.h"
#include "wire/ip.h"

#define IP4_FRAGMENT 0x3fff
#define IP4_ID 4

/* The length of the IP header at l3, or 0; *total is from there to the end of the datagram. */
static uint32_t ip_len(const uint8_t *l3, uint32_t have, uint16_t type, uint32_t *total)
{
	if (type == UR_ETHERTYPE_IP4 && have >= UR_IP4_LEN && l3[0] == 0x45 && l3[9] == UR_PROTO_UDP &&
	    !(ur_get16(l3 + 6) & IP4_FRAGMENT)) {
		*total = ur_get16(l3 + 2);
		return UR_IP4_LEN;
	}
	if (type == UR_ETHERTYPE_IP6 && have >= UR_IP6_LEN && l3[0] >> 4 == 6 && l3[6] == UR_PROTO_UDP) {
		*total = UR_IP6_LEN + ur_get16(l3 + 4);
		return UR_IP6_LEN;
	}
	return 0;
}

bool ur_packet_head_get(struct ur_packet_head *h, const uint8_t *frame, uint32_t have, uint32_t len)
{
	uint32_t l3 = UR_ETH_LEN, ip, total = 0;
	uint16_t type;

	if (have < UR_ETH_LEN + UR_VLAN_LEN)
		return false;
	type = ur_get16(frame + 12);
	if (type == UR_ETHERTYPE_VLAN) {
		type = ur_get16(frame + UR_ETH_LEN + 2);
		l3 += UR_VLAN_LEN;
	}
	ip = ip_len(frame + l3, have - l3, type, &total);
	if (!ip || have < l3 + ip + UR_UDP_LEN || total < ip + UR_UDP_LEN || total > len - l3)
		return false;
	h->l3_off = (uint8_t)l3;
	h->len = (uint8_t)(l3 + ip + UR_UDP_LEN);
	h->ip_version = ip == UR_IP4_LEN ? 4 : 6;
	h->id = h->ip_version == 4 ? ur_get16(frame + l3 + IP4_ID) : 0;
	h->payload = total - ip - UR_UDP_LEN;
	memcpy(h->bytes, frame, h->len);
	return true;
}

void ur_packet_head_tag(struct ur_packet_head *h, uint16_t tpid, uint16_t tci)
{
	if (h->l3_off != UR_ETH_LEN) /* one more would be too many for the parser, and for us */
		return;
	memmove(h->bytes + 16, h->bytes + 12, h->len - 12u);
	ur_put16(h->bytes + 12, tpid);
	ur_put16(h->bytes + 14, tci);
	h->len = (uint8_t)(h->len + UR_VLAN_LEN);
	h->l3_off = (uint8_t)(h->l3_off + UR_VLAN_LEN);
}

void ur_packet_head_put(const struct ur_packet_head *h, struct ur_pkt *p, unsigned k, uint32_t payload)
{
	uint8_t *l3 = p->data + h->l3_off;

	memcpy(p->data, h->bytes, h->len);
	if (h->ip_version == 4)
		ur_put16(l3 + IP4_ID, (uint16_t)(h->id + k));
	ur_udp_put_lengths(l3, h->ip_version, UR_UDP_LEN + payload);
	p->len = h->len + payload;
	p->flags = UR_PKT_CUT;
}

/* Is there a BTH for the same QP as the first one's, k packets later? */
static bool follows(const uint8_t *bth, const uint8_t *first, uint32_t k)
{
	return memcmp(bth + 2, first + 2, 2) == 0 && ur_get24(bth + 5) == ur_get24(first + 5) &&
	       ur_get24(bth + 9) == ((ur_get24(first + 9) + k) & UR_PSN_MASK);
}

uint32_t ur_packet_guess(const uint8_t *bth, uint32_t len, uint32_t most)
{
	for (uint32_t size = UR_BTH_LEN + UR_ICRC_LEN; size <= most && size + UR_BTH_LEN + UR_ICRC_LEN <= len; size += 4) {
		uint32_t k = 1, at = size;

		while (at + UR_BTH_LEN + UR_ICRC_LEN <= len && follows(bth + at, bth, k)) {
			at += size;
			k++;
		}
		if (at >= len)
			return size;
	}
	return 0;
}
