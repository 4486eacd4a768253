/* SPDX-License-Identifier: BSD-3-Clause */
/* Two instances of lib/net on one link. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "net_harness.h"

struct ur_pkt *nh_pkt(struct nh *h)
{
	struct ur_pkt *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->data = malloc(UR_PKT_ROOM);
	if (!p->data)
		abort();
	p->room = UR_PKT_ROOM;
	h->pkts++;
	return p;
}

void nh_free(struct nh *h, struct ur_pkt *p)
{
	free(p->data);
	free(p);
	h->pkts--;
}

static unsigned alloc_pkts(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct nh_side *s = ctx;

	if (s->no_buffers)
		return 0;
	for (unsigned i = 0; i < n; i++)
		pkts[i] = nh_pkt(s->h);
	return n;
}

static void free_pkts(void *ctx, struct ur_pkt **pkts, unsigned n)
{
	struct nh_side *s = ctx;

	while (n--)
		nh_free(s->h, *pkts++);
}

static void output(void *ctx, struct ur_pkt *p)
{
	struct nh_side *s = ctx;

	CU_ASSERT_FATAL(p->len <= p->room);
	memcpy(s->last, p->data, ur_min_u32(p->len, sizeof(s->last)));
	s->sent[p->kind]++;
	p->next = NULL;
	*s->out_tail = p;
	s->out_tail = &p->next;
	s->nout++;
}

void nh_init(struct nh *h, bool owned0, bool owned1)
{
	memset(h, 0, sizeof(*h));
	h->now = UR_NS_PER_S;
	h->wheel = ur_wheel_create(h->now);
	for (int i = 0; i < 2; i++) {
		struct nh_side *s = &h->side[i];
		struct ur_net_config c = {.ctx = s, .alloc = alloc_pkts, .free = free_pkts, .output = output, .mtu = 1500};

		s->h = h;
		s->index = i;
		s->out_tail = &s->out;
		s->mac = (struct ur_mac){{2, 0, 0, 0, 0, (uint8_t)(i + 1)}};
		c.wheel = h->wheel;
		c.counters = &s->counters;
		c.mac = s->mac;
		c.owned = i ? owned1 : owned0;
		if (ur_net_create(&c, &s->net))
			abort();
	}
}

static struct ur_pkt *pop(struct nh_side *s)
{
	struct ur_pkt *p = s->out;

	if (!p)
		return NULL;
	s->out = p->next;
	if (!s->out)
		s->out_tail = &s->out;
	s->nout--;
	return p;
}

void nh_drop(struct nh *h, int side)
{
	struct ur_pkt *p;

	while ((p = pop(&h->side[side])))
		nh_free(h, p);
}

void nh_fini(struct nh *h)
{
	for (int i = 0; i < 2; i++) {
		ur_net_destroy(h->side[i].net);
		nh_drop(h, i);
	}
	CU_ASSERT_EQUAL(h->pkts, 0);
	CU_ASSERT(ur_wheel_next(h->wheel) == UR_TIME_NEVER);
	ur_wheel_destroy(h->wheel);
}

void nh_rx(struct nh *h, int side, struct ur_pkt *p)
{
	struct nh_side *s = &h->side[side];

	if (!ur_frame_parse(p, &s->counters))
		return;
	if (p->kind == UR_PKT_ROCE)
		s->roce_rx++;
	else
		ur_net_rx(s->net, p, h->now);
}

static void carry(struct nh *h, struct ur_pkt *p, int to)
{
	memcpy(p->data + p->len, p->tail, p->tail_len);
	p->len += p->tail_len;
	p->tail_len = 0;
	nh_rx(h, to, p);
	nh_free(h, p);
}

void nh_pump(struct nh *h)
{
	struct ur_pkt *p;

	while (h->side[0].nout + h->side[1].nout)
		for (int i = 0; i < 2; i++)
			if ((p = pop(&h->side[i])))
				carry(h, p, !i);
}

void nh_run(struct nh *h, ur_time until, bool pump)
{
	while (h->now < until) {
		ur_time t = ur_wheel_next(h->wheel);

		h->now = t < until ? (t > h->now ? t : h->now + 1) : until;
		ur_wheel_advance(h->wheel, h->now);
		if (pump)
			nh_pump(h);
	}
}

struct ur_gid nh_v4(unsigned a, unsigned b, unsigned c, unsigned d)
{
	const uint8_t addr[4] = {(uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d};
	uint32_t v;

	memcpy(&v, addr, 4);
	return ur_gid_from_v4(v);
}

struct ur_gid nh_v6(unsigned prefix, unsigned last)
{
	struct ur_gid g = {.raw = {0xfd, 0, (uint8_t)(prefix >> 8), (uint8_t)prefix, [14] = (uint8_t)(last >> 8), [15] = (uint8_t)last}};

	if (prefix == 0xfe80)
		memcpy(g.raw, (const uint8_t[]){0xfe, 0x80, 0, 0}, 4);
	return g;
}

int nh_add(struct nh *h, int side, struct ur_gid gid, unsigned prefix_len, unsigned vlan)
{
	struct ur_net_addr a = {.gid = gid, .prefix_len = (uint8_t)prefix_len, .vlan = (uint16_t)vlan};

	return ur_net_addr_add(h->side[side].net, &a);
}

struct ur_net_path_attr nh_to(struct ur_gid dgid)
{
	return (struct ur_net_path_attr){.dgid = dgid, .sport = 0xc123};
}

struct ur_pkt *nh_roce(struct nh *h, int side, const struct ur_net_path_attr *a)
{
	unsigned head = ur_net_headroom(h->side[side].net, a);
	struct ur_pkt *p = nh_pkt(h);

	p->bth = (struct ur_bth){.opcode = 0x64, .pkey = UR_PKEY_DEFAULT, .dqpn = 1};
	ur_bth_put(p->data + head, &p->bth);
	memset(p->data + head + UR_BTH_LEN, 0, 8 + 16);
	p->len = head + UR_BTH_LEN + 8 + 16;
	return p;
}
