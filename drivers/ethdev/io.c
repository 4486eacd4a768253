/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts. A packet to send becomes an mbuf chain in one of two ways: its segments stay in place, and mbufs point to them,
 * or they are gathered into the packet's own buffer. Either happens once; a packet that the device did not take comes back as it is.
 */
#include <string.h>

#include "base/bytes.h"
#include "drivers/ethdev/io.h"

static inline struct ur_epkt *epkt_of_mbuf(struct rte_mbuf *m)
{
	return rte_mbuf_to_priv(m);
}

static inline struct rte_mbuf *mbuf_of(struct ur_pkt *p)
{
	return (struct rte_mbuf *)p - 1;
}

static inline struct ur_epkt *epkt_of(struct ur_pkt *p)
{
	return ur_container_of(p, struct ur_epkt, pkt);
}

/* DPDK calls it when the last mbuf that points to a segment is freed. */
static void seg_done(void *addr, void *ref)
{
	(void)addr;
	ur_ref_put(ref);
}

void ur_ethdev_enter(struct ur_queue *q)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);

	d->outer_lcore = RTE_PER_LCORE(_lcore_id);
	RTE_PER_LCORE(_lcore_id) = d->lcore;
}

void ur_ethdev_leave(struct ur_queue *q)
{
	RTE_PER_LCORE(_lcore_id) = ur_ethdev_of_queue(q)->outer_lcore;
}

/* False, and the mbuf is freed, when a frame came in several buffers and does not fit in the first. */
static bool rx_linear(struct ur_ethdev *d, struct rte_mbuf *m)
{
	if (ur_likely(m->nb_segs == 1) || rte_pktmbuf_linearize(m) == 0)
		return true;
	d->stats.rx_oversize++;
	rte_pktmbuf_free(m);
	return false;
}

unsigned ur_ethdev_rx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);
	struct rte_mbuf *m[UR_ETHDEV_BURST];
	unsigned got, out = 0;

	got = rte_eth_rx_burst(d->id, 0, m, (uint16_t)ur_min_u32(n, UR_ETHDEV_BURST));
	for (unsigned i = 0; i < got; i++) {
		struct ur_epkt *e = epkt_of_mbuf(m[i]);
		struct ur_pkt *pkt = &e->pkt;

		if (i + 1 < got)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], void *));
		if (ur_unlikely(!rx_linear(d, m[i])))
			continue;
		pkt->data = rte_pktmbuf_mtod(m[i], uint8_t *);
		pkt->len = m[i]->data_len;
		pkt->room = (uint32_t)m[i]->buf_len - m[i]->data_off;
		pkt->nseg = 0;
		pkt->stride = 0;
		pkt->tail_len = 0;
		pkt->flags = 0;
		pkt->when = 0;
		pkt->next = NULL;
		pkt->home = q;
		e->ready = false;
		pkts[out++] = pkt;
	}
	d->stats.rx += out;
	return out;
}

unsigned ur_ethdev_alloc(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);
	struct rte_mbuf *m[UR_ETHDEV_BURST];

	n = ur_min_u32(n, UR_ETHDEV_BURST);
	while (n && rte_pktmbuf_alloc_bulk(d->pkts, m, n))
		n /= 2; /* all or nothing: ask for less */
	for (unsigned i = 0; i < n; i++) {
		struct ur_epkt *e = epkt_of_mbuf(m[i]);
		struct ur_pkt *pkt = &e->pkt;

		pkt->data = rte_pktmbuf_mtod(m[i], uint8_t *);
		pkt->len = 0;
		pkt->room = rte_pktmbuf_tailroom(m[i]);
		ur_pkt_clear(pkt);
		e->ready = false;
		pkt->home = q;
		pkts[i] = pkt;
	}
	return n;
}

void ur_ethdev_release(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct rte_mbuf *m[UR_ETHDEV_BURST];
	unsigned k;

	(void)q;
	for (unsigned done = 0; done < n; done += k) {
		k = ur_min_u32(n - done, UR_ETHDEV_BURST);
		for (unsigned i = 0; i < k; i++) {
			if (!epkt_of(pkts[done + i])->ready)
				ur_pkt_let_go(pkts[done + i]);
			m[i] = mbuf_of(pkts[done + i]);
		}
		rte_pktmbuf_free_bulk(m, k);
	}
}

/* Copies segments and tail after `data` and gives the segments back. The caller has checked the room. */
static void tx_gather(struct ur_ethdev *d, struct ur_pkt *p, struct rte_mbuf *m)
{
	if (p->nseg || p->tail_len) {
		d->queue.tx_gathered += p->nseg != 0;
		ur_pkt_linearise(p);
	}
	m->data_len = (uint16_t)p->len;
	m->pkt_len = p->len;
}

static void tx_point_at(const struct ur_ethdev *d, struct rte_mbuf *m, uint8_t *data, uint32_t len, struct ur_ref *ref)
{
	struct ur_eseg *e = rte_mbuf_to_priv(m);
	rte_iova_t iova = d->dma ? (uintptr_t)data + ref->dma.shift : RTE_BAD_IOVA;

	e->shinfo.free_cb = seg_done;
	e->shinfo.fcb_opaque = ref;
	rte_mbuf_ext_refcnt_set(&e->shinfo, 1);
	rte_pktmbuf_attach_extbuf(m, data, iova, (uint16_t)len, &e->shinfo);
	m->data_len = (uint16_t)len;
}

/* Of a segment what one mbuf may point to. */
static uint32_t piece(const struct ur_ethdev *d, const uint8_t *data, uint32_t len)
{
	return ur_min_u32(len, d->piece - ((uintptr_t)data & (d->piece - 1)));
}

static unsigned pieces(const struct ur_ethdev *d, const struct ur_pkt *p)
{
	unsigned n = p->nseg;

	for (unsigned i = 0; i < p->nseg; i++)
		n += piece(d, p->seg[i].data, p->seg[i].len) < p->seg[i].len;
	return n;
}

/* The mbufs of a segment, which has one count for each; returns how many. */
static unsigned tx_point_at_seg(const struct ur_ethdev *d, struct rte_mbuf **s, const struct ur_seg *seg)
{
	uint32_t first = piece(d, seg->data, seg->len);

	tx_point_at(d, s[0], seg->data, first, seg->ref);
	if (ur_likely(first == seg->len))
		return 1;
	ur_ref_get(seg->ref);
	tx_point_at(d, s[1], seg->data + first, seg->len - first, seg->ref);
	return 2;
}

/* False when there are no mbufs for it; the packet is then as before. */
static bool tx_chain(struct ur_ethdev *d, struct ur_pkt *p, struct rte_mbuf *m)
{
	struct rte_mbuf *s[UR_ETHDEV_CHAIN - 1], *last = m;
	unsigned n = pieces(d, p) + (p->tail_len != 0), k = 0;

	if (rte_pktmbuf_alloc_bulk(d->segs, s, n))
		return false;
	m->data_len = (uint16_t)p->len;
	m->pkt_len = ur_pkt_frame_len(p);
	m->nb_segs = (uint16_t)(n + 1);
	for (unsigned i = 0; i < p->nseg; i++)
		k += tx_point_at_seg(d, s + k, &p->seg[i]);
	if (p->tail_len) {
		memcpy(rte_pktmbuf_mtod(s[k], void *), p->tail, sizeof(p->tail));
		s[k]->data_len = p->tail_len;
	}
	for (unsigned i = 0; i < n; i++)
		last = last->next = s[i];
	d->pushes = d->tx_desc + UR_ETHDEV_BURST;
	d->queue.tx_chained++;
	return true;
}

static bool is_mapped(const struct ur_pkt *p)
{
	for (unsigned i = 0; i < p->nseg; i++)
		if (!p->seg[i].ref || !p->seg[i].ref->dma.mapped)
			return false;
	return true;
}

static bool worth_chaining(struct ur_ethdev *d, const struct ur_pkt *p, uint32_t frame_len)
{
	if (!d->chains || !p->nseg || frame_len - p->len - p->tail_len < (uint64_t)d->chain_min * p->nseg)
		return false;
	if (ur_likely(!d->dma || (is_mapped(p) && !(p->flags & UR_PKT_AGAIN))))
		return true;
	d->queue.tx_unmapped += !(p->flags & UR_PKT_AGAIN);
	return false;
}

static bool is_tagged(const struct ur_pkt *p)
{
	return p->len >= 14 && ur_get16(p->data + 12) == 0x8100;
}

/* Makes the mbuf ready. False when the frame is longer than the port carries. */
static bool tx_ready(struct ur_ethdev *d, struct ur_pkt *p, struct rte_mbuf *m)
{
	struct ur_epkt *e = epkt_of(p);
	uint32_t len;

	if (ur_unlikely(e->ready))
		return true;
	len = ur_pkt_frame_len(p);
	if (ur_unlikely(len > d->max_frame) && !(len <= d->max_frame + 4 && is_tagged(p)))
		return false;
	m->data_off = (uint16_t)(p->data - (uint8_t *)m->buf_addr);
	if (!worth_chaining(d, p, len) || !tx_chain(d, p, m)) {
		if (ur_unlikely(len > (uint32_t)m->buf_len - m->data_off))
			return false;
		tx_gather(d, p, m);
	}
	e->ready = true;
	return true;
}

unsigned ur_ethdev_tx(struct ur_queue *q, struct ur_pkt **pkts, unsigned n)
{
	struct ur_ethdev *d = ur_ethdev_of_queue(q);
	struct rte_mbuf *m[UR_ETHDEV_BURST];
	unsigned done = 0;

	while (done < n) {
		unsigned want = ur_min_u32(n - done, UR_ETHDEV_BURST), k = 0, sent;

		while (k < want && tx_ready(d, pkts[done + k], mbuf_of(pkts[done + k]))) {
			m[k] = mbuf_of(pkts[done + k]);
			k++;
		}
		sent = k ? rte_eth_tx_burst(d->id, 0, m, (uint16_t)k) : 0;
		d->stats.tx += sent;
		done += sent;
		if (sent < k)
			break;
		if (k < want) { /* the one that stopped the batch is too long for the port: nobody else can send it either */
			d->stats.tx_oversize++;
			ur_ethdev_release(q, &pkts[done++], 1);
		}
	}
	return done;
}
