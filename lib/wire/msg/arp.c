/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for IPv4 over Ethernet. */
#include "wire/frame.h"
#include "wire/msg/arp.h"

/* Hardware type Ethernet, protocol IPv4, address lengths 6 and 4. */
static const uint8_t ether_ip4[6] = {0, 1, 0x08, 0, 6, 4};

static bool sender_ok(const struct ur_mac *m)
{
	static const struct ur_mac zero;

	return !(m->b[0] & 1) && memcmp(m->b, zero.b, 6) != 0;
}

bool ur_arp_parse(const struct ur_pkt *p, struct ur_arp *a)
{
	const uint8_t *h = p->data + p->l3_off;

	if (p->len < p->l3_off + (uint32_t)UR_ARP_LEN || memcmp(h, ether_ip4, sizeof(ether_ip4)) != 0)
		return false;
	a->op = ur_get16(h + 6);
	memcpy(a->smac.b, h + 8, 6);
	memcpy(&a->sip, h + 14, 4);
	memcpy(a->tmac.b, h + 18, 6);
	memcpy(&a->tip, h + 24, 4);
	return (a->op == UR_ARP_REQUEST || a->op == UR_ARP_REPLY) && sender_ok(&a->smac);
}

void ur_arp_build(struct ur_pkt *p, const struct ur_mac *eth_src, const struct ur_mac *eth_dst, uint16_t vlan, const struct ur_arp *a)
{
	uint8_t *h;

	ur_frame_start(p, UR_PKT_ARP, eth_src, eth_dst, vlan, UR_ETHERTYPE_ARP);
	h = p->data + p->l3_off;
	memcpy(h, ether_ip4, sizeof(ether_ip4));
	ur_put16(h + 6, a->op);
	memcpy(h + 8, a->smac.b, 6);
	memcpy(h + 14, &a->sip, 4);
	memcpy(h + 18, a->tmac.b, 6);
	memcpy(h + 24, &a->tip, 4);
	p->len = p->l3_off + (uint32_t)UR_ARP_LEN;
}
