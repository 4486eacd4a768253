/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel has left to do: whatever comes out carries the payload in order, and each checksum over it is right. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "between/finish.h"
#include "wire/frame.h"

void ur_suite_between_finish(void);

#define GSO_UDP_L4 5
#define PAYLOAD 5000
#define ROOM 6000

struct kind {
	bool v6, tcp, tag;
	unsigned options; /* bytes of TCP options */
};

static struct {
	uint8_t frame[ROOM], out[ROOM];
	uint32_t len, l3, l4, head;
	struct virtio_net_hdr vnet;
} made;

/* The sum of RFC 1071, written down as it stands there. */
static uint16_t sum_of(const uint8_t *p, uint32_t len, uint32_t sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static uint16_t pseudo_sum(const uint8_t *frame, uint32_t l3, uint32_t l4, uint32_t len, bool v6, bool tcp)
{
	const uint32_t at = l3 + (v6 ? 8 : 12), n = v6 ? 32 : 8;

	return sum_of(frame + at, n, len - l4 + (tcp ? 6 : 17));
}

static void make(const struct kind *k, uint32_t payload)
{
	uint8_t *f = made.frame;

	memset(&made, 0, sizeof(made));
	made.l3 = k->tag ? 18 : 14;
	made.l4 = made.l3 + (k->v6 ? 40 : 20);
	made.head = made.l4 + (k->tcp ? 20 + k->options : 8);
	made.len = made.head + payload;
	if (k->tag)
		memcpy(f + 12, (const uint8_t[]){0x81, 0, 0, 7}, 4);
	ur_put16(f + made.l3 - 2, k->v6 ? 0x86dd : 0x0800);
	memset(f + made.l3, 0x11, made.l4 - made.l3);
	f[made.l3] = k->v6 ? 0x60 : 0x45;
	ur_put16(f + made.l3 + 4, 0xfffe); /* the identification of IPv4, which overflows */
	f[made.l3 + (k->v6 ? 6 : 9)] = k->tcp ? 6 : 17;
	for (uint32_t i = 0; i < payload; i++)
		f[made.head + i] = (uint8_t)(i * 7 + (i >> 8));
	if (k->tcp) {
		ur_put32(f + made.l4 + 4, 0xffffff00); /* as does the sequence number */
		f[made.l4 + 12] = (uint8_t)((20 + k->options) / 4 << 4);
		f[made.l4 + 13] = 0x99; /* CWR, ACK, PSH, FIN */
	}
	ur_put16(f + made.l4 + (k->tcp ? 16 : 6), pseudo_sum(f, made.l3, made.l4, made.len, k->v6, k->tcp));
	made.vnet = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = (uint16_t)made.l4, .csum_offset = k->tcp ? 16 : 6};
}

static void check_frame(const struct kind *k, uint32_t len, uint32_t at, unsigned place, bool last)
{
	const uint8_t *o = made.out, *ip = o + made.l3, *l4 = o + made.l4;

	CU_ASSERT(memcmp(o + made.head, made.frame + made.head + at, len - made.head) == 0);
	CU_ASSERT_EQUAL(sum_of(l4, len - made.l4, pseudo_sum(o, made.l3, made.l4, len, k->v6, k->tcp)), 0xffff);
	CU_ASSERT_EQUAL(ur_get16(ip + (k->v6 ? 4 : 2)), len - made.l3 - (k->v6 ? 40 : 0));
	if (!k->v6) {
		CU_ASSERT_EQUAL(sum_of(ip, 20, 0), 0xffff);
		CU_ASSERT_EQUAL(ur_get16(ip + 4), (uint16_t)(0xfffe + place));
	}
	if (!k->tcp) {
		CU_ASSERT_EQUAL(ur_get16(l4 + 4), len - made.l4);
		return;
	}
	CU_ASSERT_EQUAL(ur_get32(l4 + 4), 0xffffff00 + at);
	CU_ASSERT_EQUAL(l4[13], 0x10 | (place ? 0 : 0x80) | (last ? 0x09 : 0));
}

static void cut(const struct kind *k, uint32_t size)
{
	struct ur_cut c;
	uint32_t len, at = 0;
	unsigned n = 0;

	make(k, PAYLOAD);
	made.vnet.gso_type = k->tcp ? (k->v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4) : GSO_UDP_L4;
	made.vnet.gso_size = (uint16_t)size;
	CU_ASSERT_FATAL(ur_cut_begin(&c, made.frame, made.len, &made.vnet));
	while ((len = ur_cut_next(&c))) {
		CU_ASSERT_FATAL(len <= made.head + size && at + len - made.head <= PAYLOAD);
		ur_cut_put(&c, made.out);
		check_frame(k, len, at, n++, at + len - made.head == PAYLOAD);
		at += len - made.head;
	}
	CU_ASSERT(at == PAYLOAD && n == (PAYLOAD + size - 1) / size);
}

static const struct kind kinds[] = {{false, false, false, 0}, {true, false, false, 0}, {false, true, false, 0},
				    {true, true, false, 12},  {false, false, true, 0}, {false, true, true, 40}};

static void between_finish__cuts(void)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (uint32_t size = 1; size < 5100; size += 499)
			cut(&kinds[i], size);
}

static void between_finish__sums(void)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];
		struct ur_cut c;

		make(k, 1001);
		CU_ASSERT_FATAL(ur_cut_begin(&c, made.frame, made.len, &made.vnet));
		CU_ASSERT_EQUAL(ur_cut_next(&c), made.len);
		ur_cut_put(&c, made.out);
		CU_ASSERT_EQUAL(ur_cut_next(&c), 0);
		CU_ASSERT_EQUAL(
			sum_of(made.out + made.l4, made.len - made.l4, pseudo_sum(made.out, made.l3, made.l4, made.len, k->v6, k->tcp)),
			0xffff);
	}
}

/* One that is finished is copied. */
static void between_finish__nothing_to_do(void)
{
	const struct virtio_net_hdr none = {.flags = 0};
	struct ur_cut c;

	make(&kinds[0], 100);
	CU_ASSERT_FATAL(ur_cut_begin(&c, made.frame, made.len, &none));
	CU_ASSERT_EQUAL(ur_cut_next(&c), made.len);
	ur_cut_put(&c, made.out);
	CU_ASSERT(memcmp(made.out, made.frame, made.len) == 0 && ur_cut_next(&c) == 0);
}

/* Descriptions that fit nothing: nothing is read or written beyond the frame, whose memory is as long as it. */
static void between_finish__nonsense(void)
{
	struct ur_rng rng = {.state = 3};
	unsigned taken = 0;

	for (unsigned i = 0; i < 20000; i++) {
		const uint32_t len = ur_rng_u32(&rng) % 200 + 1;
		uint8_t *frame = malloc(len);
		struct virtio_net_hdr v;
		struct ur_cut c;
		uint32_t next;

		CU_ASSERT_FATAL(frame != NULL);
		make(&kinds[i % 6], 100);
		memcpy(frame, made.frame, len);
		v = made.vnet;
		v.gso_type = (uint8_t)(ur_rng_u32(&rng) % 7);
		v.gso_size = (uint16_t)(ur_rng_u32(&rng) % 60);
		if (i % 3 == 0)
			v.csum_start = (uint16_t)(ur_rng_u32(&rng) % 250);
		if (i % 5 == 0)
			v.csum_offset = (uint16_t)(ur_rng_u32(&rng) % 250);
		for (unsigned k = ur_rng_u32(&rng) % 3; k > 0; k--)
			frame[ur_rng_u32(&rng) % len] = (uint8_t)ur_rng_u32(&rng);
		if (ur_cut_begin(&c, frame, len, &v)) {
			taken++;
			while ((next = ur_cut_next(&c))) {
				CU_ASSERT_FATAL(next <= len);
				ur_cut_put(&c, made.out);
			}
		}
		free(frame);
	}
	CU_ASSERT(taken > 1000);
}

void ur_suite_between_finish(void)
{
	CU_pSuite s = CU_add_suite("between_finish", NULL, NULL);

	CU_ADD_TEST(s, between_finish__cuts);
	CU_ADD_TEST(s, between_finish__sums);
	CU_ADD_TEST(s, between_finish__nothing_to_do);
	CU_ADD_TEST(s, between_finish__nonsense);
}
