/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes from the link, read a second time (RFC 826, RFC 4861, 7): what it claims, whom it asks, and so what may be sent in answer.
 * And what the instance sends, which hosts on the link may answer.
 */
#include <stdlib.h>

#include "net_fuzz.h"
#include "wire/ip.h"

struct reading {
	struct claim claim;
	bool asks;        /* for an address of ours, from a sender that may be answered */
	bool gmp;
	struct ur_gmp m;
};

static struct ur_mac mac_at(const uint8_t *b)
{
	struct ur_mac m;

	memcpy(m.b, b, 6);
	return m;
}

void keep_seen(struct fuzz *f, const uint8_t *b, uint32_t len)
{
	struct frame *fr = &f->seen[f->nseen++ % SEEN];

	fr->len = (uint16_t)ur_min_u32(len, FRAME_MAX);
	memcpy(fr->b, b, fr->len);
}

/* --- what comes --- */

static void read_arp(struct fuzz *f, const struct ur_pkt *p, struct reading *r)
{
	uint16_t vlan = p->vlan & 0xfff;
	struct ur_gid sip, tip;
	struct ur_arp a;

	if (!ur_arp_parse(p, &a))
		return;
	sip = ur_gid_from_v4(a.sip);
	tip = ur_gid_from_v4(a.tip);
	if (ur_gid_is_mcast(&sip) || is_ours(f, &sip))
		return;
	r->claim = (struct claim){.is = a.sip != 0,
				  .mac_said = true,
				  .solicited = a.op == UR_ARP_REPLY && is_ours_on(f, &tip, vlan),
				  .override = true,
				  .ip = sip,
				  .vlan = vlan,
				  .mac = a.smac};
	r->asks = a.op == UR_ARP_REQUEST && is_ours_on(f, &tip, vlan);
}

static void read_nd(struct fuzz *f, const struct ur_pkt *p, const struct ur_icmp *m, struct reading *r)
{
	bool ns = m->kind == UR_ICMP_NS;
	const struct ur_gid *who = ns ? &p->src : &m->nd.target;
	struct ur_mac from = mac_at(p->data + 6);
	uint16_t vlan = p->vlan & 0xfff;

	if (is_ours(f, who) || ur_gid_is_mcast(who) || (m->nd.has_lladdr && !mac_is_host(&m->nd.lladdr)) || (ns && !mac_is_host(&from)))
		return;
	r->claim = (struct claim){.is = m->nd.has_lladdr || !ns,
				  .mac_said = m->nd.has_lladdr,
				  .solicited = !ns && m->nd.solicited && is_ours_on(f, &p->dst, vlan),
				  .override = ns || m->nd.override,
				  .ip = *who,
				  .vlan = vlan,
				  .mac = m->nd.lladdr};
	r->asks = ns && is_ours_on(f, &m->nd.target, vlan);
}

static void read_icmp(struct fuzz *f, const struct ur_pkt *p, struct reading *r)
{
	struct ur_mac from = mac_at(p->data + 6);
	struct ur_icmp m;

	if (!ur_icmp_parse(p, &m))
		return;
	if (m.kind == UR_ICMP_NS || m.kind == UR_ICMP_NA)
		read_nd(f, p, &m, r);
	else if (m.kind == UR_ICMP_ECHO_REQUEST4 || m.kind == UR_ICMP_ECHO_REQUEST6)
		r->asks = is_ours_on(f, &p->dst, p->vlan & 0xfff) && !is_ours(f, &p->src) &&
			  !ur_gid_is_mcast(&p->src) && mac_is_host(&from);
}

static void note_claim(struct fuzz *f, const struct claim *c)
{
	unsigned h = c->is ? host_find(f, &c->ip, c->vlan) : HOSTS;

	if (c->is)
		trace(f, "a claim for host %u: ...%02x%02x%s%s%s", h, c->mac.b[4], c->mac.b[5], c->mac_said ? "" : " (none)",
		      c->solicited ? ", solicited" : "", c->override ? ", overriding" : "");
	if (h < HOSTS && c->mac_said)
		f->host[h].claimed |= mac_bit(c->mac.b);
}

static void check_answers(struct fuzz *f, const struct reading *r, uint32_t len, bool local)
{
	bool answers = r->asks && f->owned && f->mac_known && !f->deaf;

	if (f->replies > answers)
		broke(f, "%u answers were sent where %u may be", f->replies, answers);
	if (f->replies < answers)
		broke(f, "who asked for an address of ours was not answered");
	if (f->reply_bytes > len + 8 && f->reply_bytes > 90)
		broke(f, "%u bytes were answered with %u", len, f->reply_bytes);
	if (!f->at_once && !f->acted && f->probes > r->claim.is)
		broke(f, "%u questions were sent for a frame that claims %s", f->probes, r->claim.is ? "one address" : "nothing");
	if (f->reports && !local)
		broke(f, "%u reports were sent at once for a frame from the link", f->reports);
}

void arrive(struct fuzz *f, bool local)
{
	bool nested = f->in_rx || f->in_callback, was_in_rx = f->in_rx;
	struct reading r = {.gmp = false};
	struct ur_pkt *p;

	if (f->out.len < UR_ETH_LEN)
		return;
	p = pkt_new(f);
	memcpy(p->data, f->out.b, f->out.len);
	p->len = f->out.len;
	if (!ur_frame_parse(p, &f->counters) || p->kind == UR_PKT_ROCE) {
		pkt_free(f, p);
		return;
	}
	p->flags = local ? UR_PKT_LOCAL : 0;
	if (p->kind == UR_PKT_ARP)
		read_arp(f, p, &r);
	else if (p->kind == UR_PKT_ICMP4 || p->kind == UR_PKT_ICMP6)
		read_icmp(f, p, &r);
	else if (p->kind == UR_PKT_GMP)
		r.gmp = ur_gmp_parse(p, &r.m);
	note_claim(f, &r.claim);
	if (!nested) {
		f->replies = f->probes = f->reports = f->roce = 0;
		f->reply_bytes = 0;
		f->acted = false;
		f->deaf = !f->mac_known;
		paths_before(f);
	}
	if (r.gmp)
		members_heard(f, p, &r.m);
	f->in_rx = true;
	ur_net_rx(f->net, p, f->now);
	f->in_rx = was_in_rx;
	if (!nested) {
		check_answers(f, &r, p->len, local);
		paths_after(f, &r.claim);
		if (r.gmp)
			members_after(f);
	}
	pkt_free(f, p);
}

/* --- what is sent --- */

static bool hears(const struct host *h, const uint8_t *dmac)
{
	return dmac[0] & 1 || !memcmp(dmac, h->mac.b, 6);
}

/* The host's answer comes at once, or after a millisecond. */
static void host_says(struct fuzz *f, struct ur_pkt *p)
{
	if (f->at_once) {
		struct frame keep = f->out;

		f->out.len = (uint16_t)p->len;
		memcpy(f->out.b, p->data, p->len);
		arrive(f, false);
		f->out = keep;
	} else if (f->nlater < LATER) {
		struct later *l = &f->later[f->nlater++];

		l->when = f->now + UR_NS_PER_MS;
		l->len = p->len;
		memcpy(l->b, p->data, p->len);
	}
	keep_seen(f, p->data, p->len);
}

static void host_answers(struct fuzz *f, const struct host *h, const struct ur_gid *asker, const struct ur_mac *to)
{
	uint8_t room[128];
	struct ur_pkt p = {.data = room, .room = sizeof(room)};
	struct ur_arp a = {.op = UR_ARP_REPLY, .smac = h->mac, .tmac = *to};
	struct ur_nd nd = {.target = h->ip, .has_lladdr = true, .lladdr = h->mac, .solicited = true, .override = true};

	if (ur_gid_is_v4(&h->ip)) {
		memcpy(&a.sip, h->ip.raw + 12, 4);
		memcpy(&a.tip, asker->raw + 12, 4);
		ur_arp_build(&p, &h->mac, to, h->vlan, &a);
	} else {
		ur_nd_build(&p, UR_ICMP_NA, &h->mac, to, h->vlan, &h->ip, asker, &nd);
	}
	host_says(f, &p);
}

/* A question for a neighbour is one that comes from an address of ours on his VLAN. */
static void on_question(struct fuzz *f, const struct ur_pkt *p, const struct ur_gid *src, const struct ur_gid *whom)
{
	unsigned h = host_find(f, whom, p->vlan & 0xfff);

	trace(f, "host %u is asked%s", h, p->data[0] & 1 ? "" : ", he alone");
	f->probes++;
	f->probed = *whom;
	if (h < HOSTS)
		f->host[h].asked = f->now;
	if (!is_ours_on(f, src, p->vlan & 0xfff))
		broke(f, "a question comes from an address that is not ours");
	if (h < HOSTS && f->host[h].up && hears(&f->host[h], p->data))
		host_answers(f, &f->host[h], src, &f->mac);
}

static void on_reply(struct fuzz *f, const struct ur_pkt *p, const struct ur_gid *src)
{
	if (!f->owned)
		broke(f, "the kernel's answers are the kernel's to give");
	if (!is_ours_on(f, src, p->vlan & 0xfff))
		broke(f, "an answer speaks for an address that is not ours");
	f->replies++;
	f->reply_bytes += p->len;
}

static void on_arp(struct fuzz *f, const struct ur_pkt *p)
{
	struct ur_gid sip, tip;
	struct ur_arp a;

	if (!ur_arp_parse(p, &a) || !mac_eq(&a.smac, &f->mac))
		broke(f, "an ARP message is wrong");
	sip = ur_gid_from_v4(a.sip);
	tip = ur_gid_from_v4(a.tip);
	if (a.op == UR_ARP_REPLY)
		on_reply(f, p, &sip);
	else if (!ur_gid_eq(&sip, &tip))
		on_question(f, p, &sip, &tip);
	else if (f->in_rx || !f->owned || !is_ours_on(f, &sip, p->vlan & 0xfff))
		broke(f, "an address is announced by whom it is not ours to do, or unasked");
}

static void on_icmp(struct fuzz *f, const struct ur_pkt *p)
{
	struct ur_icmp m;

	if (!ur_icmp_parse(p, &m))
		broke(f, "an ICMP message is wrong");
	if (m.kind == UR_ICMP_NS) {
		on_question(f, p, &p->src, &m.nd.target);
	} else if (m.kind == UR_ICMP_NA) {
		if (!mac_eq(&m.nd.lladdr, &f->mac))
			broke(f, "an advertisement names another MAC address");
		if (f->in_rx || !f->owned)
			on_reply(f, p, &m.nd.target);
	} else if (m.kind == UR_ICMP_ECHO_REPLY4 || m.kind == UR_ICMP_ECHO_REPLY6) {
		on_reply(f, p, &p->src);
	} else {
		broke(f, "an ICMP message of an unexpected kind is sent");
	}
}

/* What is on the wire has to be right as it stands: the fields of a packet to send are set aside. */
void on_output(struct fuzz *f, struct ur_pkt *p)
{
	struct ur_counters unused = {0};
	struct ur_pkt q = *p;

	if (p->nseg || p->len + p->tail_len > p->room)
		broke(f, "a frame of %u bytes does not fit its buffer", p->len);
	memcpy(p->data + p->len, p->tail, p->tail_len);
	q.len = p->len + p->tail_len;
	q.flags = 0;
	if (!ur_frame_parse(&q, &unused) || q.kind != p->kind)
		broke(f, "a frame of %u bytes that is sent is wrong", q.len);
	if (!f->routed && !(p->flags & UR_PKT_LOCAL) && (!f->mac_known || memcmp(q.data + 6, f->mac.b, 6) != 0))
		broke(f, "a frame is sent with another MAC address than ours");
	keep_seen(f, q.data, q.len);
	if (q.kind == UR_PKT_ROCE)
		f->roce++;
	else if (f->routed && q.kind == UR_PKT_GMP)
		broke(f, "memberships are the kernel's to report");
	else if (q.kind == UR_PKT_ARP)
		on_arp(f, &q);
	else if (q.kind == UR_PKT_GMP)
		members_sent(f, &q);
	else
		on_icmp(f, &q);
}

/* Siblings are shown leaves alone. */
void on_tell(struct fuzz *f, const struct ur_pkt *p)
{
	struct ur_counters unused = {0};
	struct ur_pkt q = *p;
	struct ur_gmp_record r;
	struct ur_gmp m;
	bool leaves;

	if (!ur_frame_parse(&q, &unused) || q.kind != UR_PKT_GMP || !ur_gmp_parse(&q, &m))
		broke(f, "siblings are shown a frame that is wrong");
	leaves = m.kind == UR_GMP_LEAVE;
	while (ur_gmp_next(&m, &r))
		leaves |= r.type == UR_GMP_TO_IN;
	if (!leaves)
		broke(f, "siblings are shown a report that leaves nothing");
	f->told++;
}
