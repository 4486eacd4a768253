/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains through drivers/packet, on the interfaces that test_packet.c has made: whole, cut by the kernel, refused, among other frames. */
#include <CUnit/Basic.h>
#include <linux/virtio_net.h>
#include <stdlib.h>

#include "wire/ip.h"

#include "test/drivers/packet_util.h"

static void send_gso(const uint8_t *frame, size_t len, uint16_t size)
{
	struct virtio_net_hdr v = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = 5, .gso_size = size, .hdr_len = 42,
				   .csum_start = 34, .csum_offset = 6};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("ta")};
	struct iovec iov[2] = {{&v, sizeof(v)}, {(void *)(uintptr_t)frame, len}};
	struct msghdr m = {.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = iov, .msg_iovlen = 2};
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;

	CU_ASSERT_EQUAL(setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), 0);
	sendmsg(s, &m, 0); /* the kernel refuses some of them, which is as good */
	close(s);
}

/* Of all that b has, how many packets are good ones with numbers from `from` to `to`. */
static unsigned drain_data(uint32_t from, uint32_t to)
{
	struct unpack u = {.p = NULL};
	struct ur_pkt *r;
	unsigned good = 0;

	while (ur_queue_rx(b->queue, &u.p, 1))
		while ((r = unpack(&u))) {
			uint32_t psn = check_data(r);

			good += psn >= from && psn < to;
		}
	return good;
}

static void exchange_trains(unsigned flags)
{
	static const struct {
		unsigned n;
		uint32_t len, last;
	} t[] = {{2, 256, 256}, {3, 256, 1}, {2, 4096, 4096}, {15, 4096, 4096}, {15, 4096, 7}, {60, 1024, 1023}, {64, 16, 16}};
	uint32_t psn = 5;

	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned i = 0; i < ur_array_size(t); i++) {
			uint32_t from = psn;

			make_path(v6, 0);
			send_train(&psn, t[i].n, t[i].len, t[i].last);
			CU_ASSERT_EQUAL(receive_train(from, psn, flags), (uint64_t)(t[i].n - 1) * t[i].len + t[i].last);
		}
	CU_ASSERT_EQUAL(a->queue->tx_refused, 0);
	CU_ASSERT_EQUAL(b->queue->rx_missed, 0);
}

static void train__to_one_who_takes_trains(void)
{
	open_pair(false, false);
	exchange_trains(UR_PKT_CUT);
	close_pair();
}

/* Each packet on the wire by itself: the identifications that the kernel gave them are those that the ICRCs cover. */
static void train__cut_by_the_kernel(void)
{
	CU_ASSERT_EQUAL(system("ethtool -K ta tx-udp-segmentation off >/dev/null"), 0);
	for (unsigned plain = 0; plain < 2; plain++) {
		open_pair(false, plain);
		exchange_trains(0);
		close_pair();
	}
	CU_ASSERT_EQUAL(system("ethtool -K ta tx-udp-segmentation on >/dev/null"), 0);
}

static void train__to_an_older_kernel(void)
{
	uint32_t psn = 0xfffff0, from = psn; /* numbers wrap in the second train */

	open_pair(false, true);
	make_path(false, 0);
	send_train(&psn, TRAIN, 4096, 4096);
	CU_ASSERT_EQUAL(receive_train(from, psn, UR_PKT_CUT), TRAIN * 4096);
	make_path(true, 0);
	from = psn;
	send_train(&psn, 60, 1024, 5);
	CU_ASSERT_EQUAL(receive_train(from, psn, UR_PKT_CUT), 59 * 1024 + 5);
	close_pair();
}

static void train__from_an_older_kernel(void)
{
	open_pair(true, false);
	exchange_trains(0);
	close_pair();
}

static void train__with_a_vlan_tag(void)
{
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 5);
	send_train(&psn, TRAIN, 4096, 100);
	CU_ASSERT_EQUAL(receive_train(0, psn, UR_PKT_CUT), (TRAIN - 1) * 4096 + 100);
	close_pair();
}

/* Short frames come through slots, long trains through the socket's queue: they stay in order. */
static void train__keeps_its_place(void)
{
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 0);
	for (unsigned i = 0; i < 40; i++) {
		send_train(&psn, 1, 8, 8);
		send_train(&psn, 1 + i % TRAIN, 4096, 12);
		send_train(&psn, 2, 32, 32);
	}
	receive_train(0, psn, ANY);
	close_pair();
}

/*
 * Whoever may open a packet socket on this host may send what is no train, or one of packets that are no packets. It is dropped, and the
 * next train is whole.
 */
static void train__that_makes_no_sense(void)
{
	static const struct {
		uint16_t size, total, type;
		uint8_t first, proto;
	} t[] = {
		{1, 60000, 0x0800, 0x45, 17},     /* too many packets */
		{1000, 60000, 0x0800, 0x46, 17},  /* IP options */
		{1000, 60000, 0x0800, 0x45, 6},   /* not UDP */
		{5000, 60000, 0x0800, 0x45, 17},  /* packets that are longer than our buffers */
		{1000, 65535, 0x0800, 0x45, 17},  /* longer than the frame */
		{1000, 20, 0x0800, 0x45, 17},     /* shorter than its headers */
		{1000, 60000, 0x86dd, 0x45, 17},  /* another version */
		{1000, 60000, 0x0806, 0x45, 17},  /* not IP at all */
		{60000, 60000, 0x0800, 0x45, 17}, /* no train */
		{15, 1500, 0x0800, 0x45, 17},     /* packets that are none */
		{16, 60000, 0x0800, 0x45, 17},    /* too many of the shortest */
		{1000, 60000, 0x0800, 0x45, 17},  /* nothing in it that is right */
		{0, 60000, 0x0800, 0x45, 17},     /* of no length */
	};
	static uint8_t frame[60014];
	uint32_t psn = 0, from;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		open_pair(false, i & 1);
		make_path(false, 0);
		fill_header(frame, &b->mac, &a->mac, sizeof(frame), 4791);
		ur_put16(frame + 12, t[i].type);
		ur_put16(frame + 16, t[i].total);
		ur_put16(frame + 38, (uint16_t)(t[i].total - 20));
		frame[14] = t[i].first;
		frame[23] = t[i].proto;
		ur_ip4_finish_again(frame + 14);
		send_gso(frame, sizeof(frame), t[i].size);
		from = psn;
		send_train(&psn, TRAIN, 4096, 4096);
		CU_ASSERT_EQUAL(drain_data(from, psn), TRAIN);
		close_pair();
	}
}

/* Writes n packets of 1024 bytes with the numbers from `psn` on as another sender's train: its identifications begin with `id`. */
static uint32_t strange_train(uint8_t *frame, uint32_t psn, unsigned n, uint16_t id)
{
	struct ur_ref ref = {0};
	uint32_t len = 0;

	for (unsigned i = 0; i < n; i++) {
		struct ur_pkt *p = data_pkt(psn + i, 1024, &ref);
		uint32_t from = i ? p->bth_off : 0;

		ur_frame_finish(p, 0);
		ur_train_move(p, (uint16_t)(id + i));
		ur_pkt_gather(p, from, frame + len);
		len += ur_pkt_frame_len(p) - from;
		ur_pkts_release(&p, 1);
	}
	ur_udp_put_lengths(frame + 14, 4, len - 34);
	return len;
}

/* Whatever number the first packet has, the others count on from there. */
static void train__numbered_by_another_sender(void)
{
	static const uint16_t ids[] = {1, 0x00f0, 0x1234, 0xfff0};
	static uint8_t frame[65536];
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 0);
	for (unsigned i = 0; i < ur_array_size(ids); i++, psn += 60) {
		send_gso(frame, strange_train(frame, psn, 60, ids[i]), 1024 + UR_BTH_LEN + UR_ICRC_LEN);
		receive_train(psn, psn + 60, UR_PKT_CUT);
	}
	close_pair();
}

/* One packet of a train that is damaged is one, wherever it is; headers that are damaged are those of all. */
static void train__damaged(void)
{
	static const struct {
		unsigned at;
		unsigned good;
	} t[] = {{42, 59}, {42 + 12, 59}, {42 + 1039, 59}, {42 + 30 * 1040 + 500, 59}, {42 + 59 * 1040, 59}, {42 + 60 * 1040 - 1, 59},
		 {14 + 10, 0},  {14 + 2, 0},  {34 + 2, 0},     {34 + 5, 0},             {14 + 13, 0}};
	static uint8_t frame[65536];

	open_pair(false, false);
	make_path(false, 0);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint32_t len = strange_train(frame, 0, 60, 7);

		frame[t[i].at] ^= 0x11;
		send_gso(frame, len, 1024 + UR_BTH_LEN + UR_ICRC_LEN);
		CU_ASSERT_EQUAL(drain_data(0, 60), t[i].good);
	}
	close_pair();
}

/* An error that waits at the socket, because the interface was down, costs no train and mixes up none. */
static void train__fetched_after_the_link_was_down(void)
{
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 0);
	send_train(&psn, TRAIN, 4096, 4096);
	send_train(&psn, TRAIN, 4096, 4096);
	CU_ASSERT_EQUAL(system("ip link set tb down && ip link set tb up"), 0);
	receive_train(0, psn, UR_PKT_CUT);
	close_pair();
}

/* n packets of 16 bytes in one train, however many the port says it sends. */
static struct ur_pkt *long_train(uint32_t *psn, unsigned n)
{
	struct ur_pkt *t = a->queue->ops->alloc_train(a->queue), *p;
	struct ur_ref ref = {0};

	for (unsigned i = 0; i < n; i++) {
		p = data_pkt((*psn)++, i < n - 1 ? 16 : 3, &ref);
		ur_frame_finish(p, p->bth.pad);
		CU_ASSERT_TRUE_FATAL(ur_train_append(t, p, n, 65000));
		ur_pkts_release(&p, 1);
	}
	return t;
}

/* A train that the kernel does not take as such leaves in packets, whose identifications are those of their ICRCs; and so do later ones. */
static void train__refused_leaves_in_packets(void)
{
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct ur_pkt *p[3];
		uint32_t psn = 0;

		open_pair(false, false);
		make_path(v6, 0);
		for (unsigned i = 0; i < 3; i++)
			p[i] = long_train(&psn, i == 1 ? 200 : 20); /* no kernel takes 200 */
		CU_ASSERT_EQUAL(ur_queue_tx(a->queue, p, 3), 3);
		receive_train(0, 20, UR_PKT_CUT);
		receive_train(20, 220, 0);
		receive_train(220, 240, UR_PKT_CUT); /* it was on its way already */
		CU_ASSERT_EQUAL(a->queue->tx_refused, 0);
		CU_ASSERT_EQUAL(a->queue->train_pkts, 1);
		send_train(&psn, 20, 16, 16);
		receive_train(240, 260, 0);
		close_pair();
	}
}

/* While the interface is down all packets of a train are refused; trains go on when it is up again. */
static void train__refused_by_the_interface(void)
{
	struct ur_pkt *t;
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 0);
	t = long_train(&psn, 20);
	CU_ASSERT_EQUAL(system("ip link set ta down"), 0);
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, &t, 1), 1);
	CU_ASSERT_EQUAL(a->queue->tx_refused, 20);
	CU_ASSERT_TRUE(a->queue->train_pkts > 1);
	CU_ASSERT_EQUAL(system("ip link set ta up"), 0);
	close_pair();
}

/* Longer than a frame may be that the port sends. */
static void train__of_frames_that_are_too_long(void)
{
	struct ur_pkt *t;
	uint32_t psn = 0;

	open_pair(false, false);
	make_path(false, 0);
	t = long_train(&psn, 5);
	t->stride = UR_PKT_ROOM;
	t->len = t->bth_off + 3 * UR_PKT_ROOM;
	CU_ASSERT_EQUAL(ur_queue_tx(a->queue, &t, 1), 1);
	CU_ASSERT_EQUAL(a->queue->tx_refused, 3);
	CU_ASSERT_EQUAL(drain(), 0);
	close_pair();
}

void add_train_tests(CU_pSuite s)
{
	CU_ADD_TEST(s, train__to_one_who_takes_trains);
	CU_ADD_TEST(s, train__cut_by_the_kernel);
	CU_ADD_TEST(s, train__to_an_older_kernel);
	CU_ADD_TEST(s, train__from_an_older_kernel);
	CU_ADD_TEST(s, train__with_a_vlan_tag);
	CU_ADD_TEST(s, train__keeps_its_place);
	CU_ADD_TEST(s, train__fetched_after_the_link_was_down);
	CU_ADD_TEST(s, train__refused_leaves_in_packets);
	CU_ADD_TEST(s, train__refused_by_the_interface);
	CU_ADD_TEST(s, train__of_frames_that_are_too_long);
	CU_ADD_TEST(s, train__that_makes_no_sense);
	CU_ADD_TEST(s, train__numbered_by_another_sender);
	CU_ADD_TEST(s, train__damaged);
}
