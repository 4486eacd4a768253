/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of test_packet.c and test_packet_trains.c: RoCEv2 packets with numbers, whose payload says which number they have. */
#ifndef UR_TEST_PACKET_UTIL_H
#define UR_TEST_PACKET_UTIL_H

#include <arpa/inet.h>

#include "drivers/packet/packet.h"
#include "wire/frame.h"
#include "wire/train.h"

#include "test/drivers/port_util.h"

#define TRAIN 15 /* packets of 4 KiB that go into one */

/* test_packet_trains.c */
void add_train_tests(CU_pSuite s);

static uint8_t memory[64][4096];

static inline void open_pair(bool a_plain, bool b_plain)
{
	int rc = ur_packet_open(&(struct ur_packet_config){.ifname = "ta", .plain = a_plain}, &a, err, sizeof(err));

	rc = rc ? rc : ur_packet_open(&(struct ur_packet_config){.ifname = "tb", .plain = b_plain}, &b, err, sizeof(err));
	if (rc)
		fprintf(stderr, "open: %s\n", err);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static inline struct ur_pkt *receive_any(void)
{
	uint64_t end = now_ms() + 500;
	struct ur_pkt *r = NULL;

	while (!ur_queue_rx(b->queue, &r, 1) && now_ms() < end)
		;
	return r;
}

static struct ur_path path;

static inline void make_path(bool v6, uint16_t vlan)
{
	struct ur_gid src = {.raw = {0xfd, [15] = 1}}, dst = {.raw = {0xfd, [15] = 2}};

	if (!v6) {
		src = ur_gid_from_v4(htonl(0xc0000201));
		dst = ur_gid_from_v4(htonl(0xc0000202));
	}
	ur_path_build(&path, &a->mac, &b->mac, vlan, &src, &dst, 2, 64, 0, 0xc123);
}

/* SEND FIRST or LAST, number `psn`, whose payload of `len` bytes lies in memory[psn % 64]. */
static inline struct ur_pkt *data_pkt(uint32_t psn, uint32_t len, struct ur_ref *ref)
{
	struct ur_bth bth = {.opcode = 0, .pad = (uint8_t)(-len & 3), .pkey = 0xffff, .dqpn = 0x010203, .psn = psn & 0xffffff};
	struct ur_pkt *p;

	CU_ASSERT_EQUAL_FATAL(ur_queue_alloc(a->queue, &p, 1), 1);
	memcpy(p->data, path.hdr, path.hdr_len);
	p->kind = UR_PKT_ROCE;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->bth = bth;
	ur_bth_put(p->data + path.hdr_len, &bth);
	p->len = path.hdr_len + UR_BTH_LEN;
	memset(memory[psn % 64], (int)psn + 1, len);
	p->seg[0] = (struct ur_seg){memory[psn % 64], len, ref};
	p->nseg = 1;
	ur_ref_get(ref);
	return p;
}

/* Sends n packets of one way, as trains where the port sends trains. */
static inline void send_burst(struct ur_pkt **p, unsigned n)
{
	struct ur_queue *q = a->queue;
	struct ur_pkt *out[64], *train = NULL;
	unsigned m = 0;

	for (unsigned i = 0; i < n; i++) {
		ur_frame_finish(p[i], p[i]->bth.pad);
		if (q->train_pkts < 2 || n < 2) {
			out[m++] = p[i];
			continue;
		}
		if (!train || !ur_train_append(train, p[i], q->train_pkts, q->train_bytes)) {
			out[m++] = train = q->ops->alloc_train(q);
			CU_ASSERT_TRUE_FATAL(ur_train_append(train, p[i], q->train_pkts, q->train_bytes));
		}
		ur_pkts_release(&p[i], 1);
	}
	CU_ASSERT_EQUAL(ur_queue_tx(q, out, m), m);
}

/* n packets of `len` bytes, the last of `last`; numbers from *psn on. */
static inline void send_train(uint32_t *psn, unsigned n, uint32_t len, uint32_t last)
{
	struct ur_ref ref = {0};
	struct ur_pkt *p[64];

	for (unsigned i = 0; i < n; i++)
		p[i] = data_pkt((*psn)++, i == n - 1 ? last : len, &ref);
	send_burst(p, n);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
}

/* Is it a good packet, ICRC and payload included? Returns its number, or UINT32_MAX. */
static inline uint32_t check_data(struct ur_pkt *r)
{
	struct ur_counters c = {{0}};
	uint8_t want;

	if (!ur_frame_parse(r, &c) || r->kind != UR_PKT_ROCE)
		return UINT32_MAX;
	want = (uint8_t)(r->bth.psn + 1);
	for (uint32_t i = 0; i < r->payload_len; i++)
		if (r->data[r->payload_off + i] != want)
			return UINT32_MAX;
	return r->bth.psn;
}

/* The packets of what was received, one by one. Begin with zeros, and go on until there are no more. */
struct unpack {
	struct ur_pkt *p, view;
	struct ur_train_cursor at;
};

/* The next packet of u->p, which is released after its last one; NULL: there is no more. */
static inline struct ur_pkt *unpack(struct unpack *u)
{
	struct ur_pkt *r = u->view.data ? NULL : u->p;

	if (u->p && u->p->stride) {
		if (!u->view.data)
			u->at.place = u->p->place;
		r = ur_train_view(u->p, &u->at, &u->view) ? &u->view : NULL;
	} else {
		u->view.data = u->p ? u->p->data : NULL;
	}
	if (!r && u->p) {
		ur_pkts_release(&u->p, 1);
		*u = (struct unpack){.p = NULL};
	}
	return r;
}

#define ANY 0xff

/* Receives packets number `from` to `to` in order; returns how many bytes of payload. */
static inline uint64_t receive_train(uint32_t from, uint32_t to, unsigned flags)
{
	struct unpack u = {.p = NULL};
	uint64_t bytes = 0;

	while (from < to) {
		struct ur_pkt *r;

		u.p = receive_any();
		CU_ASSERT_PTR_NOT_NULL_FATAL(u.p);
		CU_ASSERT_TRUE(u.p->room >= u.p->len);
		for (; (r = unpack(&u)); from++) {
			CU_ASSERT_TRUE(flags == ANY || r->flags == flags);
			r->flags = 0; /* the identification has to be the right one */
			CU_ASSERT_EQUAL(check_data(r), from & 0xffffff);
			bytes += r->payload_len;
		}
	}
	CU_ASSERT_EQUAL(from, to);
	return bytes;
}

/* Everything that b has, released at once; returns how many packets. */
static inline unsigned drain(void)
{
	struct ur_pkt *r[64];
	unsigned n, got = 0;

	while ((n = ur_queue_rx(b->queue, r, 64))) {
		for (unsigned i = 0; i < n; i++)
			got += ur_train_count(r[i]);
		ur_pkts_release(r, n);
	}
	return got;
}

#endif
