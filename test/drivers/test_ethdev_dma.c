/* SPDX-License-Identifier: BSD-3-Clause */
/* What a NIC that reads memory by itself would get: DPDK's ring device shows the chains. */
#define _GNU_SOURCE
#include "test/drivers/test_ethdev_dma.h"

#include "drivers/ethdev/io.h"
#include "test/drivers/port_util.h"

#define SHIFT 0x123456000

static struct ur_ethdev *open_dma(void)
{
	struct ur_port *p = NULL;
	struct ur_ethdev *d;

	CU_ASSERT_EQUAL_FATAL(ur_ethdev_open(&(struct ur_ethdev_config){.vdev = "net_ring0", .chain_min = 512}, &p, err, sizeof(err)), 0);
	d = ur_ethdev_of(p);
	d->dma = true;
	d->piece = 4096;
	ur_ethdev_dma_ops(d);
	return d;
}

/* A packet that refers to `len` bytes of memory. */
static struct ur_pkt *referring(struct ur_ethdev *d, uint8_t *memory, uint32_t len, struct ur_ref *ref)
{
	struct ur_pkt *p = new_pkt(&d->port, &d->port.mac, HDR);

	p->seg[0] = (struct ur_seg){memory, len, ref};
	p->nseg = 1;
	p->tail_len = 4;
	return p;
}

/* The buffers of a chain that point to `memory`, which has `len` bytes, none of them across a page; then the tail. */
static void check_chain(struct rte_mbuf *m, const uint8_t *memory, uint32_t len)
{
	for (m = m->next; m && len; m = m->next) {
		CU_ASSERT_PTR_EQUAL(rte_pktmbuf_mtod(m, uint8_t *), memory);
		CU_ASSERT_EQUAL(rte_pktmbuf_iova(m), (uintptr_t)memory + SHIFT);
		CU_ASSERT_TRUE_FATAL(m->data_len <= len);
		CU_ASSERT_EQUAL((uintptr_t)memory / 4096, ((uintptr_t)memory + m->data_len - 1) / 4096);
		memory += m->data_len;
		len -= m->data_len;
	}
	CU_ASSERT_EQUAL(len, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	CU_ASSERT_EQUAL(m->data_len, 4);
	CU_ASSERT_PTR_NULL(m->next);
}

void dma__chains_what_is_mapped(void)
{
	static uint8_t area[16384] __attribute__((aligned(4096)));
	static const struct {
		uint32_t at, len;
		bool mapped, counted;
		uint8_t flags;
		unsigned segs; /* 1: copied */
		unsigned unmapped;
	} t[] = {
		{0, 1024, true, true, 0, 3, 0},
		{4096 - 1024, 1024, true, true, 0, 3, 0},
		{4096 - 1023, 1024, true, true, 0, 4, 0},
		{1, 4096, true, true, 0, 4, 0},
		{4096, 4096, true, true, 0, 3, 0},
		{0, 511, true, true, 0, 1, 0},
		{0, 511, false, true, 0, 1, 0}, /* it would not have been referred to anyway */
		{0, 1024, false, true, 0, 1, 1},
		{0, 1024, false, false, 0, 1, 1},
		{0, 1024, true, true, UR_PKT_AGAIN, 1, 0},
	};
	struct ur_ethdev *d = open_dma();

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_ref ref = {.n = 1, .dma = {.mapped = t[i].mapped, .shift = SHIFT}};
		struct ur_queue before = d->queue;
		struct ur_pkt *p = referring(d, area + t[i].at, t[i].len, t[i].counted ? &ref : NULL);
		struct rte_mbuf *m;

		p->flags = t[i].flags;
		CU_ASSERT_EQUAL_FATAL(ur_queue_tx(&d->queue, &p, 1), 1);
		CU_ASSERT_EQUAL_FATAL(rte_eth_rx_burst(d->id, 0, &m, 1), 1);
		CU_ASSERT_EQUAL(m->nb_segs, t[i].segs);
		CU_ASSERT_EQUAL(m->pkt_len, HDR + t[i].len + 4);
		CU_ASSERT_EQUAL(atomic_load(&ref.n), !t[i].counted ? 1 : t[i].segs == 1 ? 0 : t[i].segs - 2);
		if (t[i].segs > 1)
			check_chain(m, area + t[i].at, t[i].len);
		CU_ASSERT_EQUAL(d->queue.tx_chained - before.tx_chained, t[i].segs > 1);
		CU_ASSERT_EQUAL(d->queue.tx_gathered - before.tx_gathered, t[i].segs == 1);
		CU_ASSERT_EQUAL(d->queue.tx_unmapped - before.tx_unmapped, t[i].unmapped);
		rte_pktmbuf_free(m);
		CU_ASSERT_EQUAL(atomic_load(&ref.n), t[i].counted ? 0 : 1);
	}
	d->port.ops->close(&d->port);
}

/* Frames that go nowhere push the ring round once after the last chain, and then no more. */
void dma__reclaim_pushes(void)
{
	static uint8_t memory[2000];
	struct ur_ref ref = {.n = 1, .dma = {.mapped = true}};
	struct ur_ethdev *d = open_dma();
	struct ur_pkt *p = referring(d, memory, sizeof(memory), &ref);
	unsigned pushed = 0, n;
	struct rte_mbuf *m[64];

	d->queue.ops->reclaim(&d->queue);
	CU_ASSERT_EQUAL(rte_eth_rx_burst(d->id, 0, m, 64), 0); /* nobody has anything of ours */
	CU_ASSERT_EQUAL_FATAL(ur_queue_tx(&d->queue, &p, 1), 1);
	CU_ASSERT_EQUAL_FATAL(rte_eth_rx_burst(d->id, 0, m, 64), 1);
	rte_pktmbuf_free(m[0]);
	do {
		d->queue.ops->reclaim(&d->queue);
		n = rte_eth_rx_burst(d->id, 0, m, 64);
		pushed += n;
		for (unsigned i = 0; i < n; i++) {
			const uint8_t *f = rte_pktmbuf_mtod(m[i], uint8_t *);

			CU_ASSERT_EQUAL(m[i]->pkt_len, 60);
			CU_ASSERT_TRUE(!memcmp(f, d->port.mac.b, 6) && !memcmp(f + 6, d->port.mac.b, 6));
		}
		rte_pktmbuf_free_bulk(m, n);
	} while (n && pushed < 10000);
	CU_ASSERT_TRUE(pushed >= d->tx_desc && pushed < 2u * d->tx_desc);
	d->port.ops->close(&d->port);
}
