/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ICMP error quotes the packet that it is about: its IP and UDP headers, and mostly the BTH. Frames without RoCEv2 come here; what is
 * not an ICMP error about UDP port 4791 is left alone.
 */
#include "analyze/cm/icmp.h"

#include <stdlib.h>

#include "analyze/flow/flow.h"
#include "analyze/frame/hash.h"
#include "analyze/state/cm_facts.h"
#include "analyze/state/events.h"
#include "analyze/state/report.h"
#include "wire/frame.h"
#include "wire/ip.h"
#include "wire/msg/cm_msg.h"

#define ICMP_LEN 8
#define DETH_LEN 8
#define SPEAKERS_MAX 65536 /* hosts; of more, an error is a warning at the end of a program as well */

struct quoted {
	struct ur_gid src, dst;
	uint32_t dqpn; /* 0: not quoted so far */
	uint32_t len, mtu;
	uint8_t type, code, version;
	bool answers; /* a message that the connection manager sends to nobody who has not spoken before */
};

/* Everything but what begins a conversation. */
static bool is_answer(const uint8_t *mad)
{
	const uint16_t attr = ur_get16(mad + 16);

	return attr != UR_CM_REQ && attr != UR_CM_SIDR_REQ && attr >= UR_CM_REQ && attr <= UR_CM_APR;
}

/* The header that is quoted at `in`: false when it is not of a packet to the port of RoCEv2. */
static bool read_quoted(const uint8_t *in, uint32_t n, struct quoted *q)
{
	uint32_t head = UR_IP6_LEN;

	if (q->version == 4) {
		head = n >= UR_IP4_LEN ? (in[0] & 15u) * 4 : 0;
		if (head < UR_IP4_LEN || n < head + UR_UDP_LEN || in[9] != UR_PROTO_UDP)
			return false;
		q->src = ur_gid_from_v4_at(in + 12);
		q->dst = ur_gid_from_v4_at(in + 16);
		q->len = ur_get16(in + 2);
	} else {
		if (n < head + UR_UDP_LEN || in[6] != UR_PROTO_UDP)
			return false;
		memcpy(q->src.raw, in + 8, 16);
		memcpy(q->dst.raw, in + 24, 16);
		q->len = head + ur_get16(in + 4);
	}
	if (ur_get16(in + head + 2) != UR_ROCE_PORT)
		return false;
	if (n >= head + UR_UDP_LEN + 8)
		q->dqpn = ur_get32(in + head + UR_UDP_LEN + 4) & 0xffffff;
	head += UR_UDP_LEN + UR_BTH_LEN + DETH_LEN;
	q->answers = q->dqpn == 1 && n >= head + UR_MAD_HDR_LEN && is_answer(in + head);
	return true;
}

static bool read_error(const struct an_pkt *p, struct quoted *q)
{
	const uint8_t *ip = p->ip, *icmp;
	const uint32_t n = p->ip_have;
	uint32_t head;

	if (!ip)
		return false;
	q->version = p->ip_version;
	head = q->version == 4 ? (ip[0] & 15u) * 4 : UR_IP6_LEN;
	if ((q->version == 4 ? ip[9] != UR_PROTO_ICMP4 : ip[6] != UR_PROTO_ICMP6) || n < head + ICMP_LEN)
		return false;
	icmp = ip + head;
	q->type = icmp[0];
	q->code = icmp[1];
	q->mtu = q->version == 4 ? ur_get16(icmp + 6) : ur_get32(icmp + 4);
	return read_quoted(icmp + ICMP_LEN, n - head - ICMP_LEN, q);
}

enum kind { NONE, NOBODY, TOO_LONG, NO_WAY };

static enum kind kind_of(const struct quoted *q)
{
	if (q->version == 4)
		return q->type != 3 ? NONE : q->code == 3 ? NOBODY : q->code == 4 ? TOO_LONG : NO_WAY;
	return q->type == 2 ? TOO_LONG : q->type != 1 ? NONE : q->code == 4 ? NOBODY : NO_WAY;
}

bool an_icmp_quotes(const struct an_pkt *p, struct ur_gid *src, struct ur_gid *dst, uint8_t *type, uint8_t *code)
{
	struct quoted q = {0};

	if (!read_error(p, &q) || kind_of(&q) == NONE)
		return false;
	*src = q.src;
	*dst = q.dst;
	*type = q.type;
	*code = q.code;
	return true;
}

struct speaker {
	struct ur_table_node node;
	struct ur_gid host;
};

/* Has this host sent packets before? */
static bool spoke(const struct ur_analysis *a, const struct ur_gid *host)
{
	const struct speaker *s;

	ur_table_for_each (s, &a->speakers, an_key(a->salt, host, host, 0), node)
		if (ur_gid_eq(&s->host, host))
			return true;
	return false;
}

void an_speaks(struct ur_analysis *a, const struct ur_gid *host)
{
	struct speaker *s;

	if (a->speakers.used == SPEAKERS_MAX || spoke(a, host))
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->host = *host;
	if (!ur_table_add(&a->speakers, &s->node, an_key(a->salt, host, host, 0)))
		free(s);
}

static void free_speaker(struct ur_table_node *n)
{
	free(ur_container_of(n, struct speaker, node));
}

void an_speakers_fini(struct ur_analysis *a)
{
	ur_table_clear(&a->speakers, free_speaker);
}

void an_icmp(struct ur_analysis *a, const struct an_pkt *p)
{
	static const char *const phrases[] = {
		[NOBODY] = "{src} says (ICMP, port unreachable) that nothing receives UDP port 4791 on {dst}: RoCEv2 is not set up there, "
			   "or its "
			   "program has ended",
		[TOO_LONG] = "{src} cannot pass on a packet of {0} bytes to {dst} (ICMP): the next hop has an MTU of {1}; a smaller path "
			     "MTU of the "
			     "QP, or a larger MTU on the way, is needed",
		[NO_WAY] = "{src} says (ICMP type {2}, code {3}) that {dst} cannot be reached",
	};
	struct quoted q = {0};
	struct an_flow *flow;
	enum kind kind;
	bool gone;

	if (!read_error(p, &q))
		return;
	kind = kind_of(&q);
	if (kind == NONE)
		return;
	flow = q.dqpn ? an_flow_find(a, &q.src, &q.dst, q.dqpn) : NULL;
	if (flow) {
		flow->facts.icmp_frame = p->frame;
		flow->facts.findings++;
		an_event(a, flow->s.begun ? flow : NULL,
			 (struct ur_an_event){
				 .kind = UR_AN_EV_ICMP, .when = p->when, .frame = p->frame, .psn = flow->s.next, .n = 1, .answer = true});
	}
	gone = kind == NOBODY && (q.answers || spoke(a, &q.dst));
	an_report(a, &(struct ur_finding){.rule = gone ? UR_RULE_ICMP_GONE : UR_RULE_ICMP,
					  .frame = p->frame,
					  .when = p->when,
					  .src = p->src,
					  .dst = q.dst,
					  .qpn = q.dqpn,
					  .v = {q.len, q.mtu, q.type, q.code},
					  .s = {phrases[kind]}});
}
