/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains: which packets join one, the places they get there, and the packets that it is taken apart into. */
#include <CUnit/CUnit.h>

#include "wire/crc/icrc.h"
#include "wire/ip.h"
#include "wire/train.h"
#include "wire_samples.h"

void ur_suite_train(void);

#define MANY 40
#define MOST 65535
#define DATAGRAM(payload) (UR_BTH_LEN + (payload) + UR_ICRC_LEN)

/* What a packet to be is like; zero is IPv4 with no payload. */
struct like {
	bool six;
	uint32_t len;
	bool seg; /* the payload stays where it is */
};

static uint8_t payload[4096];
static struct ur_pkt room[MANY], *pkts[MANY];

static struct ur_pkt *build(unsigned i, struct like k)
{
	static const struct ur_mac a = {{2, 0, 0, 0, 0, 1}}, b = {{2, 0, 0, 0, 0, 2}};
	struct ur_gid src = k.six ? (struct ur_gid){{0xfd, [15] = 1}} : ur_gid_from_v4(0x0100000a);
	struct ur_gid dst = k.six ? (struct ur_gid){{0xfd, [15] = 2}} : ur_gid_from_v4(0x0200000a);
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_SEND_MIDDLE, .pkey = UR_PKEY_DEFAULT, .dqpn = 7, .psn = i, .pad = -k.len & 3};
	struct ur_path path = {0};
	struct ur_pkt *p = pkts[i] = &room[i];

	ur_path_build(&path, &a, &b, 0, &src, &dst, 2, 64, 0, 0xc000);
	sample_room(p, UR_PKT_ROOM);
	memcpy(p->data, path.hdr, path.hdr_len);
	ur_bth_put(p->data + path.hdr_len, &bth);
	p->kind = UR_PKT_ROCE;
	p->bth = bth;
	p->l3_off = path.l3_off;
	p->bth_off = path.hdr_len;
	p->ip_version = path.ip_version;
	p->len = path.hdr_len + UR_BTH_LEN + (k.seg ? 0 : k.len);
	if (k.seg)
		p->seg[p->nseg++] = (struct ur_seg){.data = payload, .len = k.len};
	else
		memcpy(p->data + p->len - k.len, payload, k.len);
	ur_frame_finish(p, bth.pad);
	return p;
}

static void build_many(unsigned n, struct like k)
{
	for (unsigned i = 0; i < n; i++)
		build(i, k);
}

static void free_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sample_free(pkts[i]);
}

/* The frame as it goes onto the wire parses there, so its checksum and ICRC are right, and has that identification. */
static bool right_on_the_wire(const struct ur_pkt *p, uint16_t id)
{
	struct ur_counters c = {.v = {0}};
	uint8_t frame[UR_PKT_ROOM];
	struct ur_pkt in;
	bool ok;

	sample_load(&in, frame, (size_t)(ur_pkt_gather(p, 0, frame) - frame));
	ok = ur_frame_parse(&in, &c) && in.kind == UR_PKT_ROCE && (in.ip_version == 6 || ur_get16(in.data + in.l3_off + 4) == id);
	sample_free(&in);
	return ok;
}

static int fill_payload(void)
{
	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 31 + i / 256);
	return 0;
}

/* Room for a train of that many bytes, headers included, and nothing behind it. */
static struct ur_pkt begin(uint32_t bytes)
{
	struct ur_pkt t;

	sample_room(&t, bytes);
	return t;
}

/* --- appending --- */

static void append__which_packets_follow(void)
{
	static const struct {
		const char *what;
		struct like first, last, next;
		bool follows;
	} t[] = {
		{"the same", {.len = 100}, {.len = 100}, {.len = 100}, true},
		{"the same, IPv6", {.six = true, .len = 100}, {.six = true, .len = 100}, {.six = true, .len = 100}, true},
		{"shorter", {.len = 100}, {.len = 100}, {.len = 8}, true},
		{"without payload", {.len = 100}, {.len = 100}, {.len = 0}, true},
		{"without payload all of them", {.len = 0}, {.len = 0}, {.len = 0}, true},
		{"longer", {.len = 100}, {.len = 100}, {.len = 104}, false},
		{"shorter by what the pad makes up", {.len = 100}, {.len = 100}, {.len = 97}, true},
		{"longer by what the pad makes up", {.len = 97}, {.len = 97}, {.len = 100}, true},
		{"after a shorter one", {.len = 100}, {.len = 96}, {.len = 96}, false},
		{"after one without payload", {.len = 100}, {.len = 0}, {.len = 0}, false},
		{"after one whose pad makes it as long", {.len = 100}, {.len = 98}, {.len = 100}, true},
		{"a segment, as long", {.len = 100}, {.len = 100}, {.len = 100, .seg = true}, true},
		{"a segment, longer", {.len = 100}, {.len = 100}, {.len = 101, .seg = true}, false},
		{"after segments", {.len = 100, .seg = true}, {.len = 100, .seg = true}, {.len = 100}, true},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_pkt train = begin(1024);

		build(0, t[i].first);
		build(1, t[i].last);
		build(2, t[i].next);
		CU_ASSERT_TRUE(ur_train_append(&train, pkts[0], 64, MOST));
		CU_ASSERT_EQUAL(train.stride, 0);
		CU_ASSERT_TRUE(ur_train_append(&train, pkts[1], 64, MOST));
		if (ur_train_append(&train, pkts[2], 64, MOST) != t[i].follows || ur_train_count(&train) != 2u + t[i].follows)
			CU_FAIL(t[i].what);
		free_many(3);
		sample_free(&train);
	}
}

/* Neither the train nor the packet: its place, identification and ICRC stay as well. */
static void append__refused_changes_nothing(void)
{
	uint8_t before[UR_PKT_ROOM], pkt_before[UR_PKT_ROOM];
	struct ur_pkt train = begin(UR_PKT_ROOM), was, pkt_was;

	build(0, (struct like){.len = 100});
	build(1, (struct like){.len = 104});
	CU_ASSERT_TRUE(ur_train_append(&train, pkts[0], 64, MOST));
	was = train, pkt_was = *pkts[1];
	memcpy(before, train.data, train.room);
	memcpy(pkt_before, pkts[1]->data, pkts[1]->room);
	CU_ASSERT_FALSE(ur_train_append(&train, pkts[1], 64, MOST));
	CU_ASSERT_TRUE(train.len == was.len && train.stride == was.stride && train.flags == was.flags && train.place == was.place);
	CU_ASSERT_TRUE(pkts[1]->len == pkt_was.len && pkts[1]->place == pkt_was.place && pkts[1]->tail_len == pkt_was.tail_len);
	CU_ASSERT_EQUAL(memcmp(pkts[1]->tail, pkt_was.tail, sizeof(pkt_was.tail)), 0);
	CU_ASSERT_EQUAL(memcmp(before, train.data, train.room), 0);
	CU_ASSERT_EQUAL(memcmp(pkt_before, pkts[1]->data, pkts[1]->room), 0);
	CU_ASSERT_TRUE(right_on_the_wire(pkts[1], 0));
	free_many(2);
	sample_free(&train);
}

/* Joins MANY packets to as many trains as the limits make necessary: each is cut into packets that are right. */
static void check_limits(bool six, unsigned max_pkts, uint32_t max_bytes, unsigned each)
{
	for (unsigned k = 0; k < MANY; k += each) {
		const unsigned n = ur_min_u32(each, MANY - k);
		struct ur_pkt train = begin(8192), one;
		struct ur_train_cursor at = {0};

		for (unsigned i = 0; i < n; i++)
			CU_ASSERT_TRUE(ur_train_append(&train, pkts[k + i], max_pkts, max_bytes));
		if (k + n < MANY)
			CU_ASSERT_FALSE(ur_train_append(&train, pkts[k + n], max_pkts, max_bytes));
		CU_ASSERT_EQUAL(ur_train_count(&train), n);
		CU_ASSERT_EQUAL(train.stride, n > 1 ? DATAGRAM(100) : 0);
		for (unsigned i = 0; i < n; i++) {
			sample_room(&one, UR_PKT_ROOM);
			CU_ASSERT_TRUE(ur_train_cut(&train, &at, &one));
			CU_ASSERT_EQUAL(one.bth.psn, k + i);
			CU_ASSERT_EQUAL(one.place, i);
			CU_ASSERT_EQUAL(one.stride, 0);
			CU_ASSERT_EQUAL(one.ip_version, six ? 6 : 4);
			CU_ASSERT_TRUE(right_on_the_wire(&one, (uint16_t)i));
			sample_free(&one);
		}
		CU_ASSERT_FALSE(ur_train_cut(&train, &at, &one));
		sample_free(&train);
	}
}

static void append__limits(void)
{
	static const struct {
		unsigned pkts;
		uint32_t bytes;
		unsigned train; /* packets in each */
	} t[] = {
		{64, MOST, MANY},
		{MANY, MOST, MANY},
		{7, MOST, 7},
		{2, MOST, 2},
		{1, MOST, 1},
		{64, 5 * DATAGRAM(100), 5},
		{64, 5 * DATAGRAM(100) - 1, 4},
		{64, DATAGRAM(100), 1},
		{3, 5 * DATAGRAM(100), 3},
	};

	for (unsigned i = 0; i < 2 * ur_array_size(t); i++) {
		build_many(MANY, (struct like){.six = i % 2, .len = 100, .seg = i % 3 == 0});
		check_limits(i % 2, t[i / 2].pkts, t[i / 2].bytes, t[i / 2].train);
		free_many(MANY);
	}
}

/* Nothing is written behind the memory of the train. */
static void append__room(void)
{
	const uint32_t headers = UR_ETH_LEN + UR_IP4_LEN + UR_UDP_LEN;
	struct ur_pkt train = begin(headers + DATAGRAM(64) * 3 + headers - 1), none = begin(headers + DATAGRAM(64) - 1);

	build_many(5, (struct like){.len = 64});
	CU_ASSERT_FALSE(ur_train_append(&none, pkts[0], 64, MOST));
	CU_ASSERT_EQUAL(none.len, 0);
	CU_ASSERT_TRUE(ur_train_append(&train, pkts[0], 64, MOST));
	CU_ASSERT_TRUE(ur_train_append(&train, pkts[1], 64, MOST));
	while (ur_train_append(&train, pkts[2], 64, MOST))
		CU_ASSERT_TRUE_FATAL(train.len <= train.room);
	CU_ASSERT_TRUE(train.len <= train.room);
	free_many(5);
	sample_free(&train);
	sample_free(&none);
}

/* --- taking apart --- */

static void count__of_bytes_and_packets(void)
{
	static const uint32_t lasts[] = {100, 96, 4, 1, 0};

	for (unsigned six = 0; six < 2; six++)
		for (unsigned n = 1; n < 9; n++)
			for (unsigned i = 0; i < ur_array_size(lasts); i++) {
				struct ur_pkt train = begin(UR_PKT_ROOM);
				uint32_t frames = 0;

				for (unsigned k = 0; k < n; k++) {
					build(k, (struct like){.six = six, .len = k + 1 < n ? 100 : lasts[i], .seg = k & 1});
					frames += ur_pkt_frame_len(pkts[k]);
					CU_ASSERT_EQUAL(ur_train_count(pkts[k]), 1);
					CU_ASSERT_EQUAL(ur_train_wire_len(pkts[k]), ur_pkt_frame_len(pkts[k]));
					CU_ASSERT_TRUE(ur_train_append(&train, pkts[k], 64, MOST));
				}
				CU_ASSERT_EQUAL(ur_train_count(&train), n);
				CU_ASSERT_EQUAL(ur_train_wire_len(&train), frames);
				free_many(n);
				sample_free(&train);
			}
}

/* Where each packet is; a packet alone is one that has all. */
static void next__bytes(void)
{
	struct ur_pkt train = begin(UR_PKT_ROOM);
	struct ur_train_cursor at = {0};
	uint32_t len = 0;

	for (unsigned i = 0; i < 5; i++) {
		build(i, (struct like){.len = i < 4 ? 100 : 7});
		CU_ASSERT_TRUE(ur_train_append(&train, pkts[i], 64, MOST));
		if (i)
			continue;
		CU_ASSERT_PTR_EQUAL(ur_train_next(&train, &at, &len), train.data + train.bth_off);
		CU_ASSERT_EQUAL(len, DATAGRAM(100));
		CU_ASSERT_PTR_NULL(ur_train_next(&train, &at, &len));
		at = (struct ur_train_cursor){0};
	}
	for (unsigned i = 0; i < 5; i++) {
		const uint8_t *b = ur_train_next(&train, &at, &len);

		CU_ASSERT_PTR_EQUAL(b, train.data + train.bth_off + i * DATAGRAM(100));
		CU_ASSERT_EQUAL(len, i < 4 ? DATAGRAM(100) : DATAGRAM(8));
		CU_ASSERT_EQUAL(at.place, i + 1);
		CU_ASSERT_EQUAL(memcmp(b, pkts[i]->data + pkts[i]->bth_off, UR_BTH_LEN), 0);
	}
	CU_ASSERT_PTR_NULL(ur_train_next(&train, &at, &len));
	free_many(5);
	sample_free(&train);
}

/* The packets that come out are those that went in, from the Ethernet header to the ICRC. */
static void cut__gives_what_was_appended(void)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		const struct like k = {.six = kind & 1, .len = 333, .seg = kind & 2};
		struct ur_pkt train = begin(16384), one;
		struct ur_train_cursor at = {0};

		build_many(MANY - 1, k);
		build(MANY - 1, (struct like){.six = kind & 1, .len = 5});
		for (unsigned i = 0; i < MANY; i++)
			CU_ASSERT_TRUE(ur_train_append(&train, pkts[i], 64, MOST));
		for (unsigned i = 0; i < MANY; i++) {
			sample_room(&one, UR_PKT_ROOM);
			CU_ASSERT_TRUE(ur_train_cut(&train, &at, &one));
			CU_ASSERT_TRUE(ur_pkt_linearise(pkts[i]));
			CU_ASSERT_EQUAL_FATAL(one.len, pkts[i]->len);
			CU_ASSERT_EQUAL(memcmp(one.data, pkts[i]->data, one.len), 0);
			CU_ASSERT_TRUE(one.kind == UR_PKT_ROCE && one.l3_off == pkts[i]->l3_off && one.bth_off == pkts[i]->bth_off);
			CU_ASSERT_TRUE(one.flags & UR_PKT_COMPLETE);
			CU_ASSERT_EQUAL(one.bth.pad, pkts[i]->bth.pad);
			sample_free(&one);
		}
		free_many(MANY);
		sample_free(&train);
	}
}

/* As a socket gives a train of which the kernel has taken the headers off. */
static void view__of_a_bare_train(void)
{
	for (unsigned six = 0; six < 2; six++) {
		struct ur_pkt train = begin(16384), bare, view = {.data = NULL};
		struct ur_counters c = {.v = {0}};
		struct ur_train_cursor at = {.place = 0};

		build_many(12, (struct like){.six = six, .len = 700});
		build(12, (struct like){.six = six, .len = 3});
		for (unsigned i = 0; i < 13; i++)
			CU_ASSERT_TRUE(ur_train_append(&train, pkts[i], 64, MOST));
		bare = (struct ur_pkt){
			.data = train.data + train.bth_off, .len = train.len - train.bth_off, .stride = train.stride, .when = 77};
		bare.flags = UR_PKT_BARE;
		bare.ip_version = six ? 6 : 4;
		bare.tos = 2;
		bare.ttl = 64;
		bare.sport = 0xc000;
		bare.src = six ? (struct ur_gid){{0xfd, [15] = 1}} : ur_gid_from_v4(0x0100000a);
		bare.dst = six ? (struct ur_gid){{0xfd, [15] = 2}} : ur_gid_from_v4(0x0200000a);
		CU_ASSERT_EQUAL(ur_train_count(&bare), 13);
		for (unsigned i = 0; i < 13; i++) {
			CU_ASSERT_TRUE_FATAL(ur_train_view(&bare, &at, &view));
			CU_ASSERT_PTR_EQUAL(view.data, bare.data + i * DATAGRAM(700));
			CU_ASSERT_TRUE(view.len == (i < 12 ? DATAGRAM(700) : DATAGRAM(4)) && view.room == view.len && !view.stride);
			CU_ASSERT_TRUE(view.place == i && view.when == 77 && view.tos == 2 && view.ttl == 64 && view.sport == 0xc000);
			CU_ASSERT_TRUE(ur_gid_eq(&view.src, &bare.src) && ur_gid_eq(&view.dst, &bare.dst));
			CU_ASSERT_PTR_NULL(view.home);
			CU_ASSERT_TRUE(ur_frame_parse(&view, &c));
			CU_ASSERT_EQUAL(view.bth.psn, i);
			CU_ASSERT_EQUAL(view.payload_len, i < 12 ? 700 : 3);
		}
		CU_ASSERT_FALSE(ur_train_view(&bare, &at, &view));
		free_many(13);
		sample_free(&train);
	}
}

/* As a packet socket gives it: one set of headers, with the lengths of the whole. */
static struct ur_pkt as_received(struct ur_pkt *train, unsigned id)
{
	struct ur_pkt t = {.data = train->data, .len = train->len, .room = train->len, .stride = train->stride, .when = 77};
	struct ur_counters c = {.v = {0}};
	uint8_t *l3 = t.data + train->l3_off;

	if (train->ip_version == 4)
		ur_put16(l3 + 4, (uint16_t)id);
	ur_udp_put_lengths(l3, train->ip_version, t.len - train->bth_off + UR_UDP_LEN);
	CU_ASSERT_TRUE_FATAL(ur_frame_parse(&t, &c));
	CU_ASSERT_TRUE(t.kind == UR_PKT_ROCE && t.stride == train->stride && t.len == train->len);
	CU_ASSERT_TRUE(t.l3_off == train->l3_off && t.bth_off == train->bth_off && t.place == (train->ip_version == 4 ? id : 0));
	return t;
}

/* Each packet is the frame that the kernel would cut off, whatever was cut off before it. */
static void view__of_a_train_with_headers(void)
{
	static const struct {
		uint32_t len, last;
		unsigned id;
	} t[] = {{700, 3, 0}, {700, 700, 0xfff8}, {0, 0, 5}, {0, 0, 0xffff}, {4, 0, 250}, {24, 4, 0x1234}};

	for (unsigned i = 0; i < 2 * ur_array_size(t); i++) {
		const bool six = i & 1;
		struct ur_pkt train = begin(16384), whole, view = {.data = NULL};
		struct ur_counters c = {.v = {0}};
		struct ur_train_cursor at;

		build_many(12, (struct like){.six = six, .len = t[i / 2].len});
		build(12, (struct like){.six = six, .len = t[i / 2].last});
		for (unsigned k = 0; k < 13; k++) {
			CU_ASSERT_TRUE(ur_train_append(&train, pkts[k], 64, MOST));
			ur_train_move(pkts[k], (uint16_t)(t[i / 2].id + k));
			CU_ASSERT_TRUE(ur_pkt_linearise(pkts[k]));
			memcpy(train.data + train.len - UR_ICRC_LEN, pkts[k]->data + pkts[k]->len - UR_ICRC_LEN, UR_ICRC_LEN);
		}
		whole = as_received(&train, t[i / 2].id);
		CU_ASSERT_EQUAL(ur_train_count(&whole), 13);
		at = (struct ur_train_cursor){.place = whole.place};
		for (unsigned k = 0; k < 13; k++) {
			CU_ASSERT_TRUE_FATAL(ur_train_view(&whole, &at, &view));
			CU_ASSERT_EQUAL_FATAL(view.len, pkts[k]->len);
			CU_ASSERT_EQUAL(memcmp(view.data, pkts[k]->data, view.len), 0);
			CU_ASSERT_TRUE(view.flags == UR_PKT_CUT && view.room == view.len && view.when == 77 && !view.stride);
			view.flags = 0; /* the identification is exactly the right one */
			CU_ASSERT_TRUE(ur_frame_parse(&view, &c) && view.bth.psn == k);
			memset(&view.src, 0xff, sizeof(view.src)); /* who has the view may do with its fields what he wants */
			view.ip_version = 0;
			view.l3_off = view.bth_off = 7;
		}
		CU_ASSERT_FALSE(ur_train_view(&whole, &at, &view));
		free_many(13);
		sample_free(&train);
	}
}

/* What was handled as a run is not looked at again: the next view has headers all the same. */
static void view__after_a_run(void)
{
	struct ur_pkt train = begin(16384), whole, view = {.data = NULL};
	struct ur_train_cursor at = {0};

	build_many(12, (struct like){.len = 700});
	for (unsigned k = 0; k < 12; k++)
		CU_ASSERT_TRUE(ur_train_append(&train, pkts[k], 64, MOST));
	whole = as_received(&train, 0);
	for (unsigned k = 0; k < 12; k++) {
		if (k == 3 || k == 7) {
			at.at += 2 * whole.stride;
			at.place += 2;
			k += 2;
		}
		CU_ASSERT_TRUE_FATAL(ur_train_view(&whole, &at, &view));
		CU_ASSERT_TRUE(ur_pkt_linearise(pkts[k]));
		CU_ASSERT_TRUE(view.len == pkts[k]->len && memcmp(view.data, pkts[k]->data, view.len) == 0);
	}
	free_many(12);
	sample_free(&train);
}

/* The headers of a train are judged as those of a packet; what follows them is not looked at. */
static void parse__headers_of_a_train(void)
{
	static const struct {
		unsigned at;
		uint8_t bits;
		enum ur_counter why; /* UR_C_RX_ROCE: it is one all the same */
	} t[] = {
		{14, 0x01, UR_C_DROP_BAD_IP},      {14 + 2, 0x80, UR_C_DROP_TRUNCATED}, {14 + 8, 1, UR_C_DROP_BAD_IP},
		{14 + 6, 0x20, UR_C_DROP_BAD_IP},  {14 + 20 + 4, 1, UR_C_DROP_BAD_UDP}, {14 + 20 + 8, 0xff, UR_C_RX_ROCE},
		{14 + 20 + 6, 0xff, UR_C_RX_ROCE},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ur_pkt train = begin(16384), p;
		struct ur_counters c = {.v = {0}};

		build_many(12, (struct like){.len = 700});
		for (unsigned k = 0; k < 12; k++)
			CU_ASSERT_TRUE(ur_train_append(&train, pkts[k], 64, MOST));
		p = as_received(&train, 9);
		p.data[t[i].at] ^= t[i].bits;
		CU_ASSERT_EQUAL(ur_frame_parse(&p, &c), t[i].why == UR_C_RX_ROCE);
		CU_ASSERT_EQUAL(c.v[t[i].why], t[i].why != UR_C_RX_ROCE);
		free_many(12);
		sample_free(&train);
	}
}

/* The rest of a train that a kernel cut in two: the first packet of it has a place that is not 0. */
static void view__begins_at_its_place(void)
{
	uint8_t bytes[3 * 40] = {0};
	struct ur_pkt bare = {.data = bytes, .len = sizeof(bytes), .stride = 40, .place = 254, .flags = UR_PKT_BARE}, view = {.data = NULL};
	struct ur_train_cursor at = {.place = bare.place};

	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(ur_train_view(&bare, &at, &view));
		CU_ASSERT_EQUAL(view.place, 254 + i);
	}
	CU_ASSERT_FALSE(ur_train_view(&bare, &at, &view));
}

/* --- parts --- */

#define WHOLE 13

static struct ur_pkt whole_train(bool six)
{
	struct ur_pkt train = begin(16384);

	for (unsigned i = 0; i < WHOLE; i++)
		CU_ASSERT_TRUE(ur_train_append(&train, build(i, (struct like){.six = six, .len = i + 1 < WHOLE ? 200 : 9}), 64, MOST));
	return train;
}

static struct ur_pkt part(const struct ur_pkt *t, unsigned from, unsigned n, bool anew)
{
	const struct ur_train_cursor at = {.at = from * t->stride, .place = (uint16_t)(t->place + from)};
	struct ur_pkt p = begin(t->bth_off + n * t->stride);

	ur_train_part(t, at, n, anew, &p);
	CU_ASSERT_TRUE(ur_train_count(&p) == n && (n == 1) == !p.stride && p.len <= p.room);
	return p;
}

/* Each of them is what it would be in a train that began with the first of them. */
static void part__of_a_train_to_send(void)
{
	for (unsigned i = 0; i < 2 * WHOLE * WHOLE; i++) {
		const unsigned six = i & 1, from = i / 2 % WHOLE, n = ur_min_u32(i / 2 / WHOLE + 1, WHOLE - from);
		struct ur_pkt train = whole_train(six), p = part(&train, from, n, true), one;
		struct ur_train_cursor at = {0};

		CU_ASSERT_TRUE(n > 1 || (p.bth.psn == from && right_on_the_wire(&p, 0)));
		for (unsigned k = 0; k < n; k++) {
			sample_room(&one, UR_PKT_ROOM);
			CU_ASSERT_TRUE(ur_train_cut(&p, &at, &one));
			CU_ASSERT_TRUE(one.bth.psn == from + k && one.kind == UR_PKT_ROCE && one.flags & UR_PKT_COMPLETE);
			CU_ASSERT_TRUE(right_on_the_wire(&one, (uint16_t)k));
			sample_free(&one);
		}
		sample_free(&p);
		free_many(WHOLE);
		sample_free(&train);
	}
}

/* Each of them is what it was, with the place that it had; bare or with its headers. */
static void part__of_a_received_train(void)
{
	for (unsigned i = 0; i < 4 * WHOLE * WHOLE; i++) {
		const unsigned six = i & 1, off = i & 2 ? six ? 62 : 42 : 0, from = i / 4 % WHOLE;
		const unsigned n = ur_min_u32(i / 4 / WHOLE + 1, WHOLE - from);
		struct ur_pkt train = whole_train(six), t = as_received(&train, 0), p, view = {.data = NULL};
		struct ur_counters c = {.v = {0}};
		struct ur_train_cursor at = {.place = (uint16_t)from};

		t.flags = off ? UR_PKT_BARE : 0;
		t.ttl = 64;
		t.data += off;
		t.len -= off;
		t.bth_off = (uint16_t)(t.bth_off - off);
		p = part(&t, from, n, false);
		CU_ASSERT_TRUE(p.when == 77 && p.place == from && ur_gid_eq(&p.src, &t.src) && p.sport == t.sport);
		for (unsigned k = 0; k < n; k++) {
			CU_ASSERT_TRUE_FATAL(ur_train_view(&p, &at, &view));
			CU_ASSERT_TRUE(ur_frame_parse(&view, &c) && view.kind == UR_PKT_ROCE && view.bth.psn == from + k);
		}
		sample_free(&p);
		free_many(WHOLE);
		sample_free(&train);
	}
}

/* --- moving --- */

static void move__mends(void)
{
	static const struct like kinds[] = {
		{.len = 0}, {.len = 1}, {.len = 63, .seg = true}, {.len = 1024}, {.len = 4096, .seg = true}, {.six = true, .len = 64}};
	static const uint8_t places[] = {0, 1, 2, 63, 127, 128, 255};

	for (unsigned i = 0; i < ur_array_size(kinds); i++)
		for (unsigned from = 0; from < ur_array_size(places); from++)
			for (unsigned k = 0; k < 2 * ur_array_size(places); k++) {
				build(0, kinds[i]);
				ur_train_move(pkts[0], places[from]);
				CU_ASSERT_TRUE(right_on_the_wire(pkts[0], places[from]));
				if (k % 2)
					CU_ASSERT_TRUE(ur_pkt_linearise(pkts[0]));
				ur_train_move(pkts[0], places[k / 2]);
				CU_ASSERT_EQUAL(pkts[0]->place, places[k / 2]);
				CU_ASSERT_TRUE(right_on_the_wire(pkts[0], places[k / 2]));
				free_many(1);
			}
}

void ur_suite_train(void)
{
	CU_pSuite s = CU_add_suite("train", fill_payload, NULL);

	CU_ADD_TEST(s, append__which_packets_follow);
	CU_ADD_TEST(s, append__refused_changes_nothing);
	CU_ADD_TEST(s, append__limits);
	CU_ADD_TEST(s, append__room);
	CU_ADD_TEST(s, count__of_bytes_and_packets);
	CU_ADD_TEST(s, next__bytes);
	CU_ADD_TEST(s, cut__gives_what_was_appended);
	CU_ADD_TEST(s, view__of_a_bare_train);
	CU_ADD_TEST(s, view__of_a_train_with_headers);
	CU_ADD_TEST(s, view__after_a_run);
	CU_ADD_TEST(s, parse__headers_of_a_train);
	CU_ADD_TEST(s, view__begins_at_its_place);
	CU_ADD_TEST(s, part__of_a_train_to_send);
	CU_ADD_TEST(s, part__of_a_received_train);
	CU_ADD_TEST(s, move__mends);
}
