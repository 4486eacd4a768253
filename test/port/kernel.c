/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel behind a bare port, which is its UDP sockets. It writes all headers and numbers the packets of a train from 0 on; it takes
 * headers off and merges what comes in a row; it answers for its address. Nothing else of it is there: who asks for more gets no answer.
 */
#include <errno.h>

#include "base/bytes.h"
#include "test/port/internal.h"
#include "wire/ip.h"
#include "wire/msg/arp.h"
#include "wire/msg/icmp.h"
#include "wire/train.h"

#define MERGE_MAX 64 /* packets that Linux merges at most */
#define FLOW_LABEL 0x5eed5

/* --- out --- */

static bool find_way(const struct ur_sim *sim, const struct ur_gid *to, struct ur_mac *mac)
{
	*mac = ur_mcast_mac(to);
	if (ur_gid_is_mcast(to))
		return true;
	for (unsigned i = 0; i < sim->nports; i++) {
		*mac = sim->ports[i].port.mac;
		if (ur_gid_eq(&sim->ports[i].addr, to))
			return true;
	}
	return false;
}

/* Of what stands there only addresses, traffic class and hop limit count. */
bool ur_sim_kernel_headers(struct ur_sim_port *p, struct ur_sim_buf *b, unsigned place)
{
	uint8_t *ip = b->pkt.data + b->pkt.l3_off;
	bool v4 = b->pkt.ip_version == 4;
	struct ur_path path;
	struct ur_gid src, dst;
	struct ur_mac dmac;

	if (b->pkt.kind != UR_PKT_ROCE)
		return false;
	src = dst = ur_gid_from_v4(0);
	memcpy(src.raw + (v4 ? 12 : 0), ip + (v4 ? 12 : 8), v4 ? 4 : 16);
	memcpy(dst.raw + (v4 ? 12 : 0), ip + (v4 ? 16 : 24), v4 ? 4 : 16);
	if (!find_way(p->sim, &dst, &dmac))
		return false;
	ur_path_build(&path, &p->port.mac, &dmac, 0, &src, &dst, v4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4), v4 ? ip[8] : ip[7],
		      FLOW_LABEL, UR_ROCE_PORT);
	if (b->pkt.bth_off != path.hdr_len)
		return false;
	memcpy(b->pkt.data, path.hdr, path.hdr_len);
	if (v4)
		ur_put16(ip + 4, (uint16_t)place);
	ur_udp_put_lengths(ip, b->pkt.ip_version, b->pkt.len - path.hdr_len + UR_UDP_LEN);
	return true;
}

/* --- in: addresses --- */

static int set_groups(struct ur_port *port, const struct ur_gid *groups, unsigned n)
{
	struct ur_sim_port *p = ur_container_of(port, struct ur_sim_port, port);

	if (n > UR_SIM_MCAST)
		return ENOSPC;
	if (n)
		memcpy(p->group, groups, n * sizeof(*groups));
	p->ngroups = n;
	return 0;
}

const struct ur_port_ops ur_sim_bare_ops = {
	.set_groups = set_groups,
	.link_up = ur_sim_link_up,
	.close = ur_sim_close,
};

static bool has_mac(const struct ur_gid *group, const uint8_t *mac)
{
	return memcmp(ur_mcast_mac(group).b, mac, 6) == 0;
}

bool ur_sim_kernel_receives(const struct ur_sim_port *p, const uint8_t *mac)
{
	struct ur_gid own = ur_nd_solicited_node(&p->addr);

	for (unsigned i = 0; i < p->ngroups; i++)
		if (has_mac(&p->group[i], mac))
			return true;
	return !ur_gid_is_v4(&p->addr) && has_mac(&own, mac);
}

/* Is it for a socket of this host? */
static bool is_own(const struct ur_sim_port *p, const struct ur_gid *dst)
{
	for (unsigned i = 0; i < p->ngroups; i++)
		if (ur_gid_eq(&p->group[i], dst))
			return true;
	return ur_gid_eq(&p->addr, dst);
}

static void answer_arp(const struct ur_sim_port *p, const struct ur_pkt *in, struct ur_pkt *out)
{
	struct ur_arp a, reply = {.op = UR_ARP_REPLY, .smac = p->port.mac};

	if (!ur_arp_parse(in, &a) || a.op != UR_ARP_REQUEST || !ur_gid_is_v4(&p->addr) || memcmp(&a.tip, p->addr.raw + 12, 4) != 0)
		return;
	reply.tmac = a.smac;
	reply.tip = a.sip;
	reply.sip = a.tip;
	ur_arp_build(out, &p->port.mac, &a.smac, 0, &reply);
}

static void answer_nd(const struct ur_sim_port *p, const struct ur_pkt *in, struct ur_pkt *out)
{
	struct ur_nd na = {.target = p->addr, .has_lladdr = true, .lladdr = p->port.mac, .solicited = true, .override = true};
	struct ur_icmp m;

	if (ur_icmp_parse(in, &m) && m.kind == UR_ICMP_NS && ur_gid_eq(&m.nd.target, &p->addr) && m.nd.has_lladdr)
		ur_nd_build(out, UR_ICMP_NA, &p->port.mac, &m.nd.lladdr, 0, &p->addr, &in->src, &na);
}

static void answer_neighbour(struct ur_sim_port *p, struct ur_pkt *in)
{
	struct ur_counters c = {.v = {0}};
	struct ur_sim_buf *out;

	if (!ur_frame_parse(in, &c) || (in->kind != UR_PKT_ARP && in->kind != UR_PKT_ICMP6))
		return;
	out = ur_sim_buf_get(p->sim, UR_SIM_FLYING);
	if (!out)
		return;
	if (in->kind == UR_PKT_ARP)
		answer_arp(p, in, &out->pkt);
	else
		answer_nd(p, in, &out->pkt);
	if (!out->pkt.len) {
		ur_sim_buf_put(p->sim, out);
		return;
	}
	p->sim->stats.answered++;
	ur_sim_send_own(p, out);
}

/* --- in: datagrams --- */

static bool take_ip4(struct ur_pkt *p, uint32_t *udp_len)
{
	const uint8_t *ip = p->data + UR_ETH_LEN;
	uint32_t room = p->len - UR_ETH_LEN, total = room < UR_IP4_LEN ? 0 : ur_get16(ip + 2);

	if (total < UR_IP4_LEN + UR_UDP_LEN || total > room || ip[0] != 0x45 || ip[9] != UR_PROTO_UDP || (ur_get16(ip + 6) & 0x3fff) ||
	    ur_csum_fold(ur_ip4_sum(ip, false)))
		return false;
	p->ip_version = 4;
	p->tos = ip[1];
	p->flow_label = 0;
	p->ttl = ip[8];
	p->src = p->dst = ur_gid_from_v4(0);
	memcpy(p->src.raw + 12, ip + 12, 4);
	memcpy(p->dst.raw + 12, ip + 16, 4);
	*udp_len = total - UR_IP4_LEN;
	return true;
}

static bool take_ip6(struct ur_pkt *p, uint32_t *udp_len)
{
	const uint8_t *ip = p->data + UR_ETH_LEN;
	uint32_t room = p->len - UR_ETH_LEN, len = room < UR_IP6_LEN ? 0 : ur_get16(ip + 4);

	if (len < UR_UDP_LEN || len > room - UR_IP6_LEN || ip[0] >> 4 != 6 || ip[6] != UR_PROTO_UDP)
		return false;
	p->ip_version = 6;
	p->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	p->flow_label = ur_get32(ip) & 0xfffff;
	p->ttl = ip[7];
	memcpy(p->src.raw, ip + 8, 16);
	memcpy(p->dst.raw, ip + 24, 16);
	*udp_len = len;
	return !ur_gid_is_v4(&p->src) && !ur_gid_is_v4(&p->dst); /* such a source is dropped, and nobody has such an address */
}

/* Takes off what stands before the payload. A UDP checksum is wrong: nobody here sends any. */
static bool strip_headers(const struct ur_sim_port *port, struct ur_pkt *p)
{
	uint16_t type = p->len < UR_ETH_LEN ? 0 : ur_get16(p->data + 12);
	uint32_t len = 0, at = UR_ETH_LEN + (type == UR_ETHERTYPE_IP4 ? UR_IP4_LEN : UR_IP6_LEN);
	const uint8_t *udp = p->data + at;

	if (!(type == UR_ETHERTYPE_IP4 && take_ip4(p, &len)) && !(type == UR_ETHERTYPE_IP6 && take_ip6(p, &len)))
		return false;
	if (!is_own(port, &p->dst))
		return false;
	if (ur_get16(udp + 2) != UR_ROCE_PORT || ur_get16(udp + 4) < UR_UDP_LEN || ur_get16(udp + 4) > len || ur_get16(udp + 6))
		return false;
	p->sport = ur_get16(udp);
	p->len = ur_get16(udp + 4) - UR_UDP_LEN;
	p->data += at + UR_UDP_LEN;
	p->room -= at + UR_UDP_LEN;
	p->flags = UR_PKT_BARE;
	return true;
}

/*
 * Once in 32768 times damage looks like another identification, and the program cannot tell. That is known and no bug to be found again.
 */
static bool seems_good(const struct ur_sim_buf *b, const struct ur_pkt *whole)
{
	struct ur_pkt bare = b->pkt, frame = *whole;
	struct ur_counters c = {.v = {0}};

	return ur_frame_parse(&bare, &c) && !ur_frame_parse(&frame, &c);
}

static bool continues(const struct ur_sim_run *run, const struct ur_pkt *p)
{
	const struct ur_pkt *last = run->last;

	return last && run->n < MERGE_MAX && last->len == run->len && p->len && p->len <= run->len && p->sport == last->sport &&
	       p->tos == last->tos && p->ttl == last->ttl && ur_gid_eq(&p->src, &last->src) && ur_gid_eq(&p->dst, &last->dst);
}

/* Hands it to the port; where it takes its train to begin is a guess, as it is the kernel's. */
static void hand_over(struct ur_sim_port *p, struct ur_sim_buf *b, bool more)
{
	struct ur_sim_run *run = &p->run;

	if (!more || !continues(run, &b->pkt))
		*run = (struct ur_sim_run){.len = b->pkt.len};
	b->pkt.place = (uint8_t)run->n++;
	run->last = ur_sim_deliver(p, b) ? &b->pkt : NULL;
}

void ur_sim_kernel_rx(struct ur_sim_port *p, struct ur_sim_buf *unit)
{
	bool more = unit->merge && p->run.last;

	for (struct ur_sim_buf *b = unit, *next; b; b = next) {
		struct ur_pkt whole = b->pkt;

		next = b->more;
		if (!strip_headers(p, &b->pkt)) {
			answer_neighbour(p, &whole);
			p->sim->stats.filtered++;
			ur_sim_buf_put(p->sim, b);
			continue;
		}
		if (b->damaged && seems_good(b, &whole)) {
			p->sim->stats.unseen++;
			ur_sim_buf_put(p->sim, b);
			continue;
		}
		p->sim->stats.merged += more && b == unit;
		hand_over(p, b, more);
		more = true;
	}
}

/* Room for the rest of a train, in which the first packet is put; NULL: it stays alone. */
static struct ur_pkt *begin_train(struct ur_sim_port *p, struct ur_pkt *first)
{
	struct ur_pkt *t = p->queue.ops->alloc_train(&p->queue);

	if (!t)
		return NULL;
	ur_pkt_copy_fields(t, first);
	t->bth_off = 0;
	t->when = first->when;
	t->stride = first->len;
	return t;
}

static void append(struct ur_sim_port *p, struct ur_pkt *t, struct ur_pkt *pkt)
{
	memcpy(t->data + t->len, pkt->data, pkt->len);
	t->len += pkt->len;
	p->queue.ops->release(&p->queue, &pkt, 1);
}

struct ur_pkt *ur_sim_kernel_join(struct ur_sim_port *p)
{
	struct ur_pkt *first = ur_sim_pop(p), *t;
	uint8_t place = first->place;

	if (!p->head || p->head->place != place + 1 || !first->len || !(t = begin_train(p, first)))
		return first;
	append(p, t, first);
	while (p->head && p->head->place == place + 1 && t->len + p->head->len <= t->room) {
		append(p, t, ur_sim_pop(p));
		place++;
	}
	return t;
}

/* --- in: frames, for packet sockets --- */

/* Parses the headers alone, as those of a train; false when they are not those of one of its packets. */
static bool headers_of(const struct ur_pkt *p, struct ur_pkt *headers)
{
	struct ur_counters c = {.v = {0}};

	*headers = *p;
	headers->stride = 1;
	return ur_frame_parse(headers, &c) && headers->kind == UR_PKT_ROCE && headers->len == p->len;
}

/* What differs between the headers of a train's packets: lengths, identification, checksums. */
static void put_varying(uint8_t *l3, uint8_t version, const uint8_t *from)
{
	static const uint8_t at4[] = {2, 3, 4, 5, 10, 11, 24, 25}, at6[] = {4, 5, 44, 45};
	const uint8_t *at = version == 4 ? at4 : at6;

	for (unsigned i = 0; i < (version == 4 ? ur_array_size(at4) : ur_array_size(at6)); i++)
		l3[at[i]] = from[at[i]];
}

/* Damage that only the exact identification shows, the program may take for another one: as with bare ports, that is known. */
static bool hides_damage(const struct ur_pkt *p)
{
	struct ur_pkt exact = *p, cut = *p;
	struct ur_counters c = {.v = {0}};

	cut.flags = UR_PKT_CUT;
	return !ur_frame_parse(&exact, &c) && ur_frame_parse(&cut, &c);
}

/* Is the packet the next one of the train, of which `last` bytes belong to the one before? */
static bool continues_train(const struct ur_pkt *t, uint32_t last, const struct ur_pkt *p)
{
	uint8_t like[UR_PATH_HDR_MAX];
	struct ur_pkt h;

	if (!headers_of(p, &h) || h.bth_off != t->bth_off || h.ip_version != t->ip_version || last != t->stride)
		return false;
	if (h.len - h.bth_off > t->stride || t->len + h.len > UINT16_MAX || ur_train_count(t) >= MERGE_MAX)
		return false;
	if (h.ip_version == 4 && h.place != (uint16_t)(t->place + ur_train_count(t)))
		return false;
	memcpy(like, p->data, h.bth_off);
	put_varying(like + h.l3_off, h.ip_version, t->data + t->l3_off);
	return memcmp(like, t->data, h.bth_off) == 0 && !hides_damage(p);
}

struct ur_pkt *ur_sim_kernel_join_frames(struct ur_sim_port *p)
{
	struct ur_pkt *first = ur_sim_pop(p), *t, whole;
	struct ur_counters c = {.v = {0}};
	uint32_t last;

	if (!p->head || !headers_of(first, &whole) || hides_damage(first))
		return first;
	last = first->len - whole.bth_off;
	t = p->queue.ops->alloc_train(&p->queue);
	if (!t)
		return first;
	memcpy(t->data, first->data, first->len);
	t->len = first->len;
	t->stride = last;
	ur_pkt_copy_fields(t, &whole);
	while (p->head && continues_train(t, last, p->head)) {
		struct ur_pkt *next = ur_sim_pop(p);

		last = next->len - t->bth_off;
		memcpy(t->data + t->len, next->data + t->bth_off, last);
		t->len += last;
		p->queue.ops->release(&p->queue, &next, 1);
	}
	if (ur_train_count(t) == 1) {
		p->queue.ops->release(&p->queue, &t, 1);
		return first;
	}
	t->when = first->when;
	p->queue.ops->release(&p->queue, &first, 1);
	ur_udp_put_lengths(t->data + t->l3_off, t->ip_version, t->len - t->bth_off + UR_UDP_LEN);
	p->sim->stats.joined++;
	ur_frame_parse(t, &c);
	return t;
}
