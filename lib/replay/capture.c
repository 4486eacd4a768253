/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames into parsed RoCEv2 packets, each in a buffer that ends where the packet does. A rewriting that changes nothing takes outer headers
 * off and trains apart.
 */
#include <stdlib.h>

#include "replay/replay.h"

#define BEGIN UR_NS_PER_S /* virtual time of the first frame */

void pkt_load(struct ur_pkt *p, const void *frame, uint32_t len)
{
	memset(p, 0, sizeof(*p));
	p->data = malloc(len ? len : 1);
	if (!p->data)
		return;
	memcpy(p->data, frame, len);
	p->len = p->room = len;
}

void pkt_drop(struct ur_pkt *p)
{
	free(p->data);
	p->data = NULL;
}

static bool append_record(struct capture *c, const struct ur_pkt *p, unsigned frame, ur_time when)
{
	if (c->n == c->room) {
		unsigned room = c->room ? 2 * c->room : 256;
		struct rec *more = realloc(c->rec, (size_t)room * sizeof(*more));

		if (!more)
			return false;
		c->rec = more;
		c->room = room;
	}
	c->rec[c->n++] = (struct rec){.frame = frame, .when = when, .pkt = *p};
	return true;
}

/* Time does not go back, whatever the stamps say. */
static ur_time stamp(struct capture *c, ur_time t)
{
	if (!c->begun)
		c->origin = t;
	c->begun = true;
	t = t > c->origin ? t - c->origin + BEGIN : BEGIN;
	c->when = t > c->when ? t : c->when;
	return c->when;
}

static void plain_frame(void *ctx, const struct ur_an_frame *f)
{
	struct ur_counters count = {.v = {0}};
	struct capture *c = ctx;
	struct ur_pkt p;

	pkt_load(&p, f->data, f->have);
	if (p.data && ur_frame_parse(&p, &count) && p.kind == UR_PKT_ROCE && append_record(c, &p, f->number, c->when))
		return;
	c->bad++;
	pkt_drop(&p);
}

bool capture_begin(struct capture *c, const char *file)
{
	const struct ur_rewrite_config nothing = {.naddr = 0};

	memset(c, 0, sizeof(*c));
	c->file = file;
	c->psns_max = 1u << 23; /* further apart, a PSN may as well lie after */
	c->memory_max = 1ull << 30;
	c->plain = ur_rewrite_create(&nothing, plain_frame, c);
	return c->plain;
}

void capture_frame(struct capture *c, const struct ur_an_frame *f)
{
	stamp(c, f->when);
	ur_rewrite_frame(c->plain, f);
}

void capture_end(struct capture *c)
{
	for (unsigned i = 0; i < c->n; i++)
		c->rec[i].want = &c->rec[i].pkt;
}

void capture_free(struct capture *c)
{
	for (unsigned i = 0; i < c->n; i++)
		pkt_drop(&c->rec[i].pkt);
	free(c->rec);
	ur_rewrite_destroy(c->plain);
}

bool pkt_remote(const struct ur_pkt *p, struct ur_reth *h)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	struct ur_atomiceth a;

	if (op->flags & UR_OPF_RETH) {
		ur_reth_get(pkt_ext(p) + op->off_reth, h);
		return true;
	}
	if (!(op->flags & UR_OPF_ATOMICETH))
		return false;
	ur_atomiceth_get(pkt_ext(p) + op->off_atomiceth, &a);
	*h = (struct ur_reth){.va = a.va, .rkey = a.rkey, .len = 8};
	return true;
}

void pkt_ip(const struct ur_pkt *p, struct ip_fields *f)
{
	const uint8_t *ip = p->data + p->l3_off;
	const uint32_t first = ur_get32(ip);

	if (p->ip_version == 4)
		*f = (struct ip_fields){.tclass = ip[1], .hop_limit = ip[8]};
	else
		*f = (struct ip_fields){.tclass = (uint8_t)(first >> 20), .hop_limit = ip[7], .flow_label = first & 0xfffff};
}
