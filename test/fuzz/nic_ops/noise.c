/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of other protocols, and RoCE in other clothes: echo requests, ARP, group queries, VLAN tags, RoCEv1, unknown types. */
#include "nic.h"
#include "wire/ip.h"
#include "wire/msg/arp.h"
#include "wire/msg/icmp.h"

static void begin(struct fuzz *f, uint16_t type)
{
	memcpy(f->out.b, f->mac[VICTIM].b, 6);
	memcpy(f->out.b + 6, f->mac[ATTACKER].b, 6);
	ur_put16(f->out.b + 12, type);
	f->out.from = ATTACKER;
	f->out.len = UR_ETH_LEN;
}

static void put_sum(uint8_t *field, const uint8_t *from, size_t len)
{
	uint16_t v = ur_csum_fold(ur_csum_add(0, from, len));

	memcpy(field, &v, 2);
}

static void ip4(struct fuzz *f, uint8_t proto, const uint8_t *msg, uint32_t len)
{
	uint8_t *ip = f->out.b + UR_ETH_LEN;

	begin(f, UR_ETHERTYPE_IP4);
	ur_ip4_put(ip, &f->gid[ATTACKER], &f->gid[VICTIM], 0, proto == UR_PROTO_IGMP ? 1 : 64, proto);
	memcpy(ip + UR_IP4_LEN, msg, len);
	ur_ip4_finish(ip, UR_IP4_LEN + len);
	f->out.len = (uint16_t)(UR_ETH_LEN + UR_IP4_LEN + len);
}

static void echo(struct fuzz *f, uint8_t v)
{
	uint8_t msg[8 + 4 * 255] = {8, 0, 0, 0, 1, v};
	uint32_t len = 8 + 4u * take(&f->in);

	if (v & 1)
		msg[0] = v;
	if (v & 2)
		msg[1] = v >> 4;
	put_sum(msg + 2, msg, len);
	ip4(f, UR_PROTO_ICMP4, msg, len);
}

static void group_query(struct fuzz *f, uint8_t v)
{
	uint8_t msg[12] = {v & 1 ? v : 0x11, v, 0, 0, v & 2 ? 224 : 0, 0, 0, v >> 4};
	uint32_t len = v & 4 ? 12 : 8;

	put_sum(msg + 2, msg, len);
	ip4(f, UR_PROTO_IGMP, msg, len);
}

static void arp(struct fuzz *f, uint8_t v)
{
	struct ur_pkt p = {.data = f->out.b, .room = FRAME_MAX};
	struct ur_arp a = {.op = v & 1 ? UR_ARP_REPLY : UR_ARP_REQUEST, .smac = f->mac[ATTACKER], .tmac = f->mac[VICTIM]};

	memcpy(&a.sip, (v & 2 ? f->stranger : f->gid[ATTACKER]).raw + 12, 4);
	memcpy(&a.tip, f->gid[VICTIM].raw + 12, 4);
	ur_arp_build(&p, &f->mac[ATTACKER], &f->mac[VICTIM], 0, &a);
	f->out.len = (uint16_t)p.len;
	if (v & 4)
		f->out.len = (uint16_t)(f->out.len - (v >> 3));
	else if (v >> 3)
		f->out.b[UR_ETH_LEN + (v >> 3) % 8] ^= 1;
}

/* A RoCE frame with a VLAN tag in front. */
static void tag(struct fuzz *f, uint8_t v)
{
	if (!capture_choose(f, v & 0x7f))
		return;
	if (f->out.len + UR_VLAN_LEN > FRAME_MAX) {
		f->out.len = 0;
		return;
	}
	memmove(f->out.b + UR_ETH_LEN + 2, f->out.b + 12, f->out.len - 12u);
	ur_put16(f->out.b + 12, UR_ETHERTYPE_VLAN);
	ur_put16(f->out.b + 14, v & 0x80 ? v & 15 : 0);
	f->out.len = (uint16_t)(f->out.len + UR_VLAN_LEN);
}

/* An IPv4 packet that was seen, with an IPv6 header that has its addresses. */
static void wrap(struct fuzz *f, uint8_t v)
{
	struct ur_gid src = ur_gid_from_v4(0), dst = src;
	uint8_t *ip = f->out.b + UR_ETH_LEN;
	uint32_t len;

	if (!capture_choose(f, v))
		return;
	len = f->out.len - ur_min_u32(f->out.len, UR_ETH_LEN + UR_IP4_LEN);
	if (f->fab.v6 || !len || f->out.len + UR_IP6_LEN > FRAME_MAX || ur_get16(f->out.b + 12) != UR_ETHERTYPE_IP4) {
		f->out.len = 0;
		return;
	}
	memcpy(src.raw + 12, ip + 12, 4);
	memcpy(dst.raw + 12, ip + 16, 4);
	memmove(ip + UR_IP6_LEN, ip + UR_IP4_LEN, len);
	ur_ip6_put(ip, &src, &dst, 0, 64, UR_PROTO_UDP, 0);
	ur_ip6_finish(ip, len);
	ur_put16(f->out.b + 12, UR_ETHERTYPE_IP6);
	f->out.len = (uint16_t)(UR_ETH_LEN + UR_IP6_LEN + len);
	mend(&f->out, false);
}

static void unknown(struct fuzz *f, uint8_t v)
{
	begin(f, v & 1 ? UR_ETHERTYPE_ROCE_V1 : (uint16_t)(v << 8));
	memset(f->out.b + UR_ETH_LEN, v, 64);
	f->out.len = (uint16_t)(UR_ETH_LEN + (v & 63));
}

/* Somebody says that a packet of the victim's did not arrive, and quotes it, right or not. */
static void unreachable(struct fuzz *f, uint8_t v)
{
	const struct frame *fr = &f->seen[VICTIM][v % SEEN];
	bool v4 = !f->fab.v6;
	uint32_t head = UR_ETH_LEN + (v4 ? UR_IP4_LEN : UR_IP6_LEN), how = take(&f->in), len = 8 + 4u * (how & 31);
	uint8_t *ip = f->out.b + UR_ETH_LEN, *m = f->out.b + head;
	struct ur_counters unused = {{0}};
	struct ur_pkt p = {.data = f->out.b, .room = FRAME_MAX};
	uint16_t sum;

	if (v % SEEN >= f->nseen[VICTIM] || fr->len < UR_ETH_LEN)
		return;
	begin(f, v4 ? UR_ETHERTYPE_IP4 : UR_ETHERTYPE_IP6);
	memset(m, 0, len);
	m[0] = v4 ? 3 : 1;
	m[1] = v4 ? 3 : 4;
	memcpy(m + 8, fr->b + UR_ETH_LEN, ur_min_u32(len - 8, fr->len - UR_ETH_LEN));
	if (v & 64)
		m[8 + (v4 ? UR_IP4_LEN : UR_IP6_LEN) + UR_UDP_LEN + 11] ^= v >> 4 & 3;
	if (v & 128)
		m[1] = v >> 4;
	if (how & 32) { /* or was too long for a hop */
		m[0] = v4 ? 3 : 2;
		m[1] = v4 ? 4 : 0;
		ur_put16(m + 6, (uint16_t)(how << 4));
	}
	if (v4) {
		ur_ip4_put(ip, &f->gid[ATTACKER], &f->gid[VICTIM], 0, 64, UR_PROTO_ICMP4);
		ur_ip4_finish(ip, UR_IP4_LEN + len);
	} else {
		ur_ip6_put(ip, &f->gid[ATTACKER], &f->gid[VICTIM], 0, 64, UR_PROTO_ICMP6, 0);
		ur_ip6_finish(ip, len);
	}
	p.len = f->out.len = (uint16_t)(head + len);
	if (!ur_frame_parse(&p, &unused))
		return;
	sum = ur_icmp_checksum(&p);
	memcpy(m + 2, &sum, 2);
}

void noise(struct fuzz *f)
{
	static void (*const kinds[])(struct fuzz *f, uint8_t v) = {echo, group_query, arp, tag, wrap, unknown};
	uint8_t which = take(&f->in);

	f->out.len = 0;
	if (which >= 0xf0) /* it came later than old inputs */
		unreachable(f, take(&f->in));
	else
		kinds[which % ur_array_size(kinds)](f, take(&f->in));
	inject(f, false);
}
