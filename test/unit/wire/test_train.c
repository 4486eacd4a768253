/* SPDX-License-Identifier: BSD-3-Clause */
/* Trains of packets to send: which packets follow which, the places they get, and what is left of them when a train is torn apart. */
#include <CUnit/CUnit.h>

#include "wire/icrc.h"
#include "wire/train.h"
#include "wire_samples.h"

void ur_suite_train(void);

#define MANY 40
#define DATAGRAM(payload) (UR_BTH_LEN + (payload) + UR_ICRC_LEN)

/* What a packet to be is like; zero is IPv4 to host 0 with no payload. */
struct like {
	bool six;
	uint8_t to, tos, ttl;
	uint16_t sport;
	uint32_t len;
	bool seg; /* the payload stays where it is */
};

static uint8_t payload[4096];
static struct ur_pkt room[MANY], *pkts[MANY];

static struct ur_pkt *build(unsigned i, struct like k)
{
	static const struct ur_mac a = {{2, 0, 0, 0, 0, 1}}, b = {{2, 0, 0, 0, 0, 2}};
	struct ur_gid src = k.six ? (struct ur_gid){{0xfd, [15] = 1}} : ur_gid_from_v4(0x0100000a);
	struct ur_gid dst = k.six ? (struct ur_gid){{0xfd, [15] = (uint8_t)(k.to + 2)}} : ur_gid_from_v4(0x0200000au + k.to);
	struct ur_bth bth = {.opcode = UR_RC | UR_OP_SEND_MIDDLE, .pkey = UR_PKEY_DEFAULT, .dqpn = 7, .psn = i, .pad = -k.len & 3};
	struct ur_path path = {0};
	struct ur_pkt *p = pkts[i] = &room[i];

	ur_path_build(&path, &a, &b, 0, &src, &dst, k.tos, (uint8_t)(64 + k.ttl), 0, (uint16_t)(0xc000 + k.sport));
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
	return p;
}

static void build_many(unsigned n, struct like k)
{
	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 31 + i / 256);
	for (unsigned i = 0; i < n; i++)
		build(i, k);
}

static void finish_many(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ur_frame_finish(pkts[i], pkts[i]->bth.pad);
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

static void train__which_packets_follow(void)
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
		{"longer", {.len = 100}, {.len = 100}, {.len = 104}, false},
		{"shorter by what the pad makes up", {.len = 100}, {.len = 100}, {.len = 97}, true},
		{"longer by what the pad makes up", {.len = 97}, {.len = 97}, {.len = 100}, true},
		{"after a shorter one", {.len = 100}, {.len = 96}, {.len = 96}, false},
		{"after one whose pad makes it as long", {.len = 100}, {.len = 98}, {.len = 100}, true},
		{"a segment, as long", {.len = 100}, {.len = 100}, {.len = 100, .seg = true}, true},
		{"a segment, longer", {.len = 100}, {.len = 100}, {.len = 101, .seg = true}, false},
		{"another host", {.len = 100}, {.len = 100}, {.len = 100, .to = 1}, false},
		{"another host, IPv6", {.six = true, .len = 9}, {.six = true, .len = 9}, {.six = true, .len = 9, .to = 1}, false},
		{"another traffic class", {.len = 100}, {.len = 100}, {.len = 100, .tos = 2}, false},
		{"another traffic class, IPv6", {.six = true}, {.six = true}, {.six = true, .tos = 2}, false},
		{"another hop limit", {.len = 100}, {.len = 100}, {.len = 100, .ttl = 1}, false},
		{"another hop limit, IPv6", {.six = true}, {.six = true}, {.six = true, .ttl = 1}, false},
		{"another source port", {.len = 100}, {.len = 100}, {.len = 100, .sport = 1}, false},
		{"another source port, IPv6", {.six = true}, {.six = true}, {.six = true, .sport = 1}, false},
		{"another version", {.len = 100}, {.len = 100}, {.six = true, .len = 80}, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		build(0, t[i].first);
		build(1, t[i].last);
		build(2, t[i].next);
		ur_train_mark(pkts, 3, 64, 65535);
		if (pkts[1]->place != 1 || (pkts[2]->place == 2) != t[i].follows)
			CU_FAIL(t[i].what);
		finish_many(3);
		ur_train_move(pkts[2], 2); /* whatever its place is */
		if ((ur_train_length(pkts, 3, 64, 65535) == 3) != t[i].follows)
			CU_FAIL(t[i].what);
		free_many(3);
	}
}

static void train_mark__limits(void)
{
	static const struct {
		unsigned pkts;
		uint32_t bytes;
		unsigned train; /* packets in each */
	} t[] = {
		{64, 65535, MANY},
		{MANY, 65535, MANY},
		{7, 65535, 7},
		{2, 65535, 2},
		{1, 65535, 1},
		{0, 65535, 1},
		{64, 5 * DATAGRAM(100), 5},
		{64, 5 * DATAGRAM(100) - 1, 4},
		{64, DATAGRAM(100) - 1, 1},
		{64, 0, 1},
		{3, 5 * DATAGRAM(100), 3},
	};

	for (unsigned i = 0; i < 2 * ur_array_size(t); i++) {
		unsigned each = t[i / 2].train;

		build_many(MANY, (struct like){.six = i % 2, .len = 100});
		ur_train_mark(pkts, MANY, t[i / 2].pkts, t[i / 2].bytes);
		finish_many(MANY);
		for (unsigned k = 0; k < MANY; k++) {
			CU_ASSERT_EQUAL(pkts[k]->place, k % each);
			CU_ASSERT_TRUE(right_on_the_wire(pkts[k], (uint16_t)(k % each)));
		}
		for (unsigned k = 0; k < MANY; k += each)
			CU_ASSERT_EQUAL(ur_train_length(pkts + k, MANY - k, t[i / 2].pkts, t[i / 2].bytes),
					each < MANY - k ? each : MANY - k);
		free_many(MANY);
	}
}

/* Pads and ICRCs are still missing when trains are marked; the lengths must be what they will be. */
static void train_mark__counts_what_will_be_there(void)
{
	build_many(4, (struct like){.len = 97});
	ur_train_mark(pkts, 4, 64, 4 * DATAGRAM(100) - 1);
	CU_ASSERT_EQUAL(pkts[2]->place, 2);
	CU_ASSERT_EQUAL(pkts[3]->place, 0);
	finish_many(4);
	CU_ASSERT_EQUAL(ur_train_length(pkts, 4, 64, 4 * DATAGRAM(100) - 1), 3);
	free_many(4);
}

static void train_mark__begins_anew(void)
{
	static const struct {
		struct like like;
		uint8_t place;
		unsigned length; /* of the train that begins here */
	} t[] = {
		{{.len = 1024}, 0, 3},           {{.len = 1024}, 1, 1},           {{.len = 7}, 2, 1},
		{{.len = 7}, 0, 2},              {{.len = 7}, 1, 1},              {{.to = 1, .len = 7}, 0, 1},
		{{.len = 7}, 0, 1},              {{.six = true, .len = 7}, 0, 2}, {{.six = true, .len = 5}, 1, 1},
		{{.six = true, .len = 9}, 0, 1}, {{.tos = 2, .len = 9}, 0, 1},    {{.len = 9}, 0, 1},
		{{.sport = 5, .len = 9}, 0, 1},
	};
	unsigned n = ur_array_size(t);

	for (unsigned i = 0; i < n; i++)
		build(i, t[i].like);
	ur_train_mark(pkts, n, 64, 65535);
	finish_many(n);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(pkts[i]->place, t[i].place);
		CU_ASSERT_EQUAL(ur_train_length(pkts + i, n - i, 64, 65535), t[i].length);
		CU_ASSERT_TRUE(right_on_the_wire(pkts[i], t[i].place));
	}
	free_many(n);
}

/* What is not RoCE, as a backlog may hold before what is left of a train, begins none. */
static void train_length__other_kinds(void)
{
	build_many(3, (struct like){.len = 8});
	pkts[0]->kind = UR_PKT_ICMP4;
	ur_frame_finish(pkts[0], 0);
	ur_train_mark(pkts + 1, 2, 64, 65535);
	ur_frame_finish(pkts[1], 0);
	ur_frame_finish(pkts[2], 0);
	CU_ASSERT_EQUAL(ur_train_length(pkts + 1, 2, 64, 65535), 2);
	pkts[1]->place = 1;
	CU_ASSERT_EQUAL(ur_train_length(pkts, 3, 64, 65535), 1);
	free_many(3);
}

/* The driver may have less than the engine was told: it asks again with what it has. */
static void train_length__smaller_limits(void)
{
	build_many(8, (struct like){.len = 64});
	ur_train_mark(pkts, 8, 64, 65535);
	finish_many(8);
	CU_ASSERT_EQUAL(ur_train_length(pkts, 8, 64, 65535), 8);
	CU_ASSERT_EQUAL(ur_train_length(pkts, 8, 5, 65535), 5);
	CU_ASSERT_EQUAL(ur_train_length(pkts, 3, 5, 65535), 3);
	CU_ASSERT_EQUAL(ur_train_length(pkts, 8, 64, 2 * DATAGRAM(64)), 2);
	CU_ASSERT_EQUAL(ur_train_length(pkts, 8, 64, 1), 1);
	CU_ASSERT_EQUAL(ur_train_length(pkts + 1, 7, 64, 65535), 1);
	free_many(8);
}

/* One of them was dropped, or made contiguous; another came between. */
static void train_length__gaps(void)
{
	struct ur_pkt *torn[3];

	build_many(4, (struct like){.len = 64, .seg = true});
	ur_train_mark(pkts, 4, 64, 65535);
	finish_many(4);
	torn[0] = pkts[0], torn[1] = pkts[2], torn[2] = pkts[3];
	CU_ASSERT_EQUAL(ur_train_length(torn, 3, 64, 65535), 1);
	CU_ASSERT_TRUE(ur_pkt_linearise(pkts[0]));
	CU_ASSERT_EQUAL(ur_train_length(pkts, 4, 64, 65535), 4);
	CU_ASSERT_TRUE(ur_pkt_linearise(pkts[1]) && ur_pkt_linearise(pkts[2]));
	CU_ASSERT_EQUAL(ur_train_length(pkts, 4, 64, 65535), 4);
	free_many(4);
}

/* A finished packet that was made contiguous is no longer than it looks: its pad and ICRC are in `data`. */
static void train_length__contiguous_first(void)
{
	build(0, (struct like){.len = 64});
	build(1, (struct like){.len = 68});
	pkts[1]->place = 1;
	finish_many(2);
	CU_ASSERT_TRUE(ur_pkt_linearise(pkts[0]));
	CU_ASSERT_EQUAL(ur_train_length(pkts, 2, 64, 65535), 1);
	free_many(2);
}

static void train_move__mends(void)
{
	static const struct like kinds[] = {{.len = 0}, {.len = 1}, {.len = 63, .seg = true}, {.len = 1024}, {.len = 4096, .seg = true},
					    {.six = true, .len = 64}};
	static const uint8_t places[] = {0, 1, 2, 63, 127, 128, 255};

	for (unsigned i = 0; i < ur_array_size(kinds); i++)
		for (unsigned from = 0; from < ur_array_size(places); from++)
			for (unsigned k = 0; k < 2 * ur_array_size(places); k++) {
				build(0, kinds[i]);
				ur_train_move(pkts[0], 0); /* nothing to mend yet */
				pkts[0]->place = places[from];
				if (!kinds[i].six)
					ur_put16(pkts[0]->data + pkts[0]->l3_off + 4, places[from]);
				finish_many(1);
				CU_ASSERT_TRUE(right_on_the_wire(pkts[0], places[from]));
				if (k % 2)
					CU_ASSERT_TRUE(ur_pkt_linearise(pkts[0]));
				ur_train_move(pkts[0], places[k / 2]);
				CU_ASSERT_EQUAL(pkts[0]->place, places[k / 2]);
				CU_ASSERT_TRUE(right_on_the_wire(pkts[0], places[k / 2]));
				free_many(1);
			}
}

/* The port took two of a train: each of the others goes alone, and may begin a new train no more. */
static void train_move__torn(void)
{
	build_many(6, (struct like){.len = 256, .seg = true});
	ur_train_mark(pkts, 6, 64, 65535);
	finish_many(6);
	for (unsigned i = 2; i < 6; i++) {
		CU_ASSERT_EQUAL(ur_train_length(pkts + i, 6 - i, 64, 65535), 1);
		ur_train_move(pkts[i], 0);
		CU_ASSERT_TRUE(right_on_the_wire(pkts[i], 0));
	}
	CU_ASSERT_EQUAL(ur_train_length(pkts, 6, 64, 65535), 2);
	free_many(6);
}

void ur_suite_train(void)
{
	CU_pSuite s = CU_add_suite("train", NULL, NULL);

	CU_ADD_TEST(s, train__which_packets_follow);
	CU_ADD_TEST(s, train_mark__limits);
	CU_ADD_TEST(s, train_mark__counts_what_will_be_there);
	CU_ADD_TEST(s, train_mark__begins_anew);
	CU_ADD_TEST(s, train_length__other_kinds);
	CU_ADD_TEST(s, train_length__smaller_limits);
	CU_ADD_TEST(s, train_length__gaps);
	CU_ADD_TEST(s, train_length__contiguous_first);
	CU_ADD_TEST(s, train_move__mends);
	CU_ADD_TEST(s, train_move__torn);
}
