/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of test_ethdev.c: ports on the two ends of the veth pair, and frames that look like RoCEv2. */
#ifndef UR_TEST_ETHDEV_UTIL_H
#define UR_TEST_ETHDEV_UTIL_H

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "drivers/ethdev/ethdev.h"

#define HDR 60
#define ROCE_V1 0x8915 /* EtherType */

static char err[512];
static struct ur_port *a, *b; /* the two ends */

static struct ur_port *must_open(const struct ur_ethdev_config *cfg)
{
	struct ur_port *p = NULL;
	int rc = ur_ethdev_open(cfg, &p, err, sizeof(err));

	if (rc)
		fprintf(stderr, "open: %s\n", err);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	return p;
}

static void open_pair(unsigned chain_min)
{
	a = must_open(&(struct ur_ethdev_config){.ifname = "ta", .chain_min = chain_min});
	b = must_open(&(struct ur_ethdev_config){.ifname = "tb", .chain_min = chain_min});
}

static void close_pair(void)
{
	a->ops->close(a);
	b->ops->close(b);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* A RoCEv2-looking IPv4 header of HDR bytes. */
static void fill_header(uint8_t *d, const struct ur_mac *dst, const struct ur_mac *src, unsigned len, uint16_t port)
{
	memset(d, 0, HDR);
	memcpy(d, dst->b, 6);
	memcpy(d + 6, src->b, 6);
	ur_put16(d + 12, 0x0800);
	d[14] = 0x45;
	ur_put16(d + 16, (uint16_t)(len - 14));
	d[22] = 64;
	d[23] = 17;
	memcpy(d + 26, "\xc0\x00\x02\x01\xc0\x00\x02\x02", 8);
	ur_put16(d + 36, port);
}

static struct ur_pkt *new_pkt(struct ur_port *p, const struct ur_mac *dst, unsigned len)
{
	struct ur_pkt *pkt = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(p->queue, &pkt, 1), 1);
	fill_header(pkt->data, dst, &p->mac, len, 4791);
	pkt->len = HDR;
	return pkt;
}

/* The next RoCE frame of either version within 500 ms, or NULL. */
static struct ur_pkt *receive(struct ur_port *p)
{
	uint64_t end = now_ms() + 500;
	struct ur_pkt *r;

	while (now_ms() < end)
		if (ur_queue_rx(p->queue, &r, 1) == 1) {
			if (r->len >= HDR && (ur_get16(r->data + 12) == ROCE_V1 || (ur_get16(r->data + 12) == 0x0800 && r->data[23] == 17)))
				return r;
			ur_pkts_release(&r, 1);
		}
	return NULL;
}

#endif
