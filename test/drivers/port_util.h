/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of test_ethdev.c and test_packet.c: ports on the two ends of a veth pair, and frames that look like RoCEv2. */
#ifndef UR_TEST_PORT_UTIL_H
#define UR_TEST_PORT_UTIL_H

#include <CUnit/CUnit.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/port.h"

#define HDR 60
#define ROCE_V1 0x8915 /* EtherType */

static char err[512];
static struct ur_port *a, *b; /* the two ends */

static inline void close_pair(void)
{
	a->ops->close(a);
	b->ops->close(b);
}

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* A RoCEv2-looking IPv4 header of HDR bytes. */
static inline void fill_header(uint8_t *d, const struct ur_mac *dst, const struct ur_mac *src, unsigned len, uint16_t port)
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

static inline struct ur_pkt *new_pkt(struct ur_port *p, const struct ur_mac *dst, unsigned len)
{
	struct ur_pkt *pkt = NULL;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(p->queue, &pkt, 1), 1);
	fill_header(pkt->data, dst, &p->mac, len, 4791);
	pkt->len = HDR;
	return pkt;
}

/* The next RoCE frame of either version within 500 ms, or NULL. */
static inline struct ur_pkt *receive(struct ur_port *p)
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

/* One frame from a to b: header, `nseg` segments of `seg` bytes, a tail; then the bytes and the counts are checked. */
static inline void transfer(unsigned nseg, unsigned seg, unsigned tail)
{
	static uint8_t memory[UR_PKT_SEGS][4096];
	unsigned len = HDR + nseg * seg + tail;
	struct ur_pkt *p = new_pkt(a, &b->mac, len), *r;
	struct ur_ref ref = {.n = nseg};

	for (unsigned i = 0; i < nseg; i++) {
		for (unsigned j = 0; j < seg; j++)
			memory[i][j] = (uint8_t)(i * 31 + j * 7 + 1);
		p->seg[i] = (struct ur_seg){memory[i], seg, &ref};
	}
	p->nseg = (uint8_t)nseg;
	memcpy(p->tail, "ABCDEFG", tail);
	p->tail_len = (uint8_t)tail;
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, &p, 1), 1);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0); /* both drivers have copied the frame */
	r = receive(b);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->len, len);
	for (unsigned i = 0; i < nseg; i++)
		CU_ASSERT_EQUAL(memcmp(r->data + HDR + i * seg, memory[i], seg), 0);
	CU_ASSERT_EQUAL(memcmp(r->data + len - tail, "ABCDEFG", tail), 0);
	CU_ASSERT_EQUAL(r->nseg, 0);
	ur_pkts_release(&r, 1);
}

static inline bool member_of(const char *ifname, const char *mac_hex)
{
	FILE *f = fopen("/proc/self/net/dev_mcast", "re");
	char line[128];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, ifname) && strstr(line, mac_hex);
	if (f)
		fclose(f);
	return found;
}

/* Sends a frame from another socket on the interface, as the kernel or another process would. */
static inline void send_raw(const char *ifname, const uint8_t *frame, size_t len)
{
	struct sockaddr_ll sll = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(ifname)};
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL(sendto(s, frame, len, 0, (struct sockaddr *)&sll, sizeof(sll)), (ssize_t)len);
	close(s);
}

#endif
