/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sources of the walk share: the layers, and how one gets from one to the next. */
#ifndef UR_AN_WALK_PRIV_H
#define UR_AN_WALK_PRIV_H

#include "analyze/frame/walk.h"
#include "wire/frame.h"

enum layer {
	END,    /* there is no packet, or nothing that is read here */
	PACKET, /* to UDP port 4791 */
	ETHERNET,
	BY_TYPE, /* what the EtherType says */
	IP,
	BY_PROTO, /* what the next header of IP says */
	UDP,
	LLC,
	TAG,
	TAG_6,
	TAG_10,
	BACKBONE,
	MPLS,
	PPPOE,
	ARISTA,
	NSH,
	GRE,
	ERSPAN2,
	ERSPAN3,
	VXLAN,
	VXLAN_GPE,
	GENEVE,
	GTP,
	ETHERIP,
	OPTIONS,
	ROUTING,
	FRAGMENT6,
	AUTHENTICATION,
	COOKED,
	COOKED2,
	LOOPBACK,
	ERF,
	ROCE_V1,
	INFINIBAND,
	ESP,
	MACSEC,
	ULTRA_ETHERNET,
	LAYERS
};

struct way { /* from a number in a header to what follows it */
	uint16_t number;
	uint8_t layer;
};

static inline enum layer way_of(const struct way *ways, unsigned n, uint16_t number)
{
	for (unsigned i = 0; i < n; i++)
		if (ways[i].number == number)
			return ways[i].layer;
	return END;
}
#define WAY(ways, number) way_of(ways, ur_array_size(ways), number)

static inline bool skip(struct an_view *v, uint32_t n)
{
	if (v->have < n || v->len < n)
		return false;
	v->at += n;
	v->have -= n;
	v->len -= n;
	return true;
}

static inline enum layer after(struct an_walk *w, uint32_t n, enum layer next)
{
	return skip(&w->v, n) ? next : END;
}

static inline void shorten(struct an_view *v, uint32_t len)
{
	v->len = len < v->len ? len : v->len;
	v->have = v->have < v->len ? v->have : v->len;
}

/* `n` bytes, of which the last two are the EtherType of what follows. */
static inline enum layer tag_of(struct an_walk *w, uint32_t n)
{
	if (w->v.have < n)
		return END;
	w->type = ur_get16(w->v.at + n - 2);
	return after(w, n, BY_TYPE);
}

/* A header between Ethernet's and IP's that is no tag: what goes on after it has no Ethernet header of its own. */
static inline enum layer without_ethernet(struct an_pkt *p, enum layer next)
{
	p->eth = NULL;
	return next;
}

/* walk_tunnels.c: the layers of tunnels and recorders. */
enum layer an_layer_mpls(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_gre(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_erspan2(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_erspan3(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_vxlan(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_vxlan_gpe(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_nsh(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_geneve(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_gtp(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_etherip(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_cooked(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_cooked2(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_loopback(struct an_walk *w, struct an_pkt *p);
enum layer an_layer_erf_record(struct an_walk *w, struct an_pkt *p);

#endif
