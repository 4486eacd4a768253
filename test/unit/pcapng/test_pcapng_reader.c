/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of pcap and pcapng as files have them, in both byte orders, and as no file should have them. Each lies in memory of its own size.
 */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcapng/reader.h"
#include "pcapng/writer.h"

void ur_suite_pcapng_reader(void);

static uint8_t file[512];
static struct ur_ng_block end; /* where the file ends */
static bool swapped;

static void begin_file(bool other_order)
{
	swapped = other_order;
	end = (struct ur_ng_block){.at = file, .end = file, .swapped = swapped};
}

static void put_words(unsigned n, const uint32_t *words)
{
	for (unsigned i = 0; i < n; i++)
		ur_ng_put32(&end, words[i]);
}

#define WORDS(...) put_words(sizeof((const uint32_t[]){__VA_ARGS__}) / 4, (const uint32_t[]){__VA_ARGS__})

#define SECTION WORDS(UR_NG_SECTION, 28, UR_NG_ORDER, swapped ? 1u << 16 : 1, UINT32_MAX, UINT32_MAX, 28)
/* One with a link type of 16 bits, in the order of the section. */
#define LINK(type) (swapped ? (uint32_t)(type) << 16 : (type))
#define INTERFACE WORDS(UR_NG_INTERFACE, 20, LINK(101), 0, 20)

static struct ur_ng_reader *reader;
static struct ur_ng_frame frame;
static uint8_t *piece;
static const char *why;
static size_t at;

static void setup(void)
{
	reader = ur_ng_reader_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
	piece = NULL;
	at = 0;
}

static void teardown(void)
{
	free(reader);
	free(piece);
}

/* The next piece of the file. */
static enum ur_ng_piece take(void)
{
	const size_t left = (size_t)(end.end - file) - at;
	size_t n = 0, all;

	why = NULL;
	while ((all = ur_ng_piece_bytes(reader, piece, n, &why)) > n) {
		CU_ASSERT_TRUE(all <= UR_NG_BLOCK_MAX + 24);
		if (all > left) {
			why = ur_ng_cut_off(reader, left);
			return UR_NG_NONE;
		}
		free(piece);
		piece = malloc(all);
		CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
		memcpy(piece, file + at, all);
		n = all;
	}
	at += n;
	return all ? ur_ng_take(reader, piece, &frame, &why) : UR_NG_NONE;
}

static void ends_with(const char *sentence)
{
	enum ur_ng_piece p;

	while ((p = take()) == UR_NG_OTHER)
		;
	CU_ASSERT_EQUAL(p, UR_NG_NONE);
	CU_ASSERT_TRUE(sentence ? why && !strcmp(why, sentence) : !why);
	if (sentence && (!why || strcmp(why, sentence)))
		printf("# %s, not: %s\n", why ? why : "the end", sentence);
	teardown();
	setup();
}

/* --- as it should be --- */

static void take__what_the_writer_wrote(void)
{
	const uint32_t out = 2;
	struct ur_ng_block b;

	begin_file(false);
	end.end += ur_ng_put_section(file);
	end.end += ur_ng_put_interface(end.end, 1, 0, "eth0");
	end.end += ur_ng_put_interface(end.end, 276, 96, NULL);
	for (uint32_t n = 0; n < 5; n++) {
		b = ur_ng_begin_frame(end.end, &(struct ur_ng_frame){.when = 7 + (5ull << 32), .have = n, .len = 60, .interface = n & 1});
		ur_ng_put(&b, "abcde", n);
		ur_ng_pad(&b);
		if (n & 1)
			ur_ng_put_option(&b, UR_NG_COMMENT, "seen", 4);
		if (n & 2)
			ur_ng_put_option(&b, UR_NG_PACKET_FLAGS, &out, 4);
		end.end += ur_ng_end(&b);
		CU_ASSERT_EQUAL(end.end - b.at, 32 + (n ? 4 : 0) + (n & 1 ? 8 : 0) + (n & 2 ? 8 : 0) + (n & 3 ? 4 : 0));
	}
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(take(), UR_NG_OTHER);
	for (uint32_t n = 0; n < 5; n++) {
		CU_ASSERT_EQUAL_FATAL(take(), UR_NG_FRAME);
		CU_ASSERT_TRUE(frame.when == 7 + (5ull << 32) && frame.have == n && frame.len == 60 && frame.interface == (n & 1));
		CU_ASSERT_TRUE(frame.link == (n & 1 ? 276 : 1) && frame.direction == (n & 2) && !memcmp(frame.data, "abcde", n));
	}
	ends_with(NULL);
}

/* What was there stays, in its order; the new option comes last. */
static void copy_frame__keeps_its_options(void)
{
	for (unsigned i = 0; i < 4; i++) {
		const uint32_t size = i & 2 ? 48 : 36;
		struct ur_ng_options o;
		struct ur_ng_block b;
		uint8_t to[64];

		begin_file(i & 1);
		SECTION;
		INTERFACE;
		WORDS(UR_NG_PACKET, size, 0, 0, 9, 1, 1);
		ur_ng_put(&end, "x\0\0", 4);
		if (i & 2) {
			ur_ng_put_option(&end, UR_NG_COMMENT, "old", 3);
			WORDS(0);
		}
		WORDS(size);
		CU_ASSERT_TRUE_FATAL(take() && take() && take() == UR_NG_FRAME && frame.swapped == swapped);
		b = ur_ng_copy_frame(to, piece, &frame);
		ur_ng_put_option(&b, UR_NG_COMMENT, "new", 3);
		end.end -= size;
		ur_ng_put(&end, to, ur_ng_end(&b));
		at -= size;
		CU_ASSERT_TRUE_FATAL(take() == UR_NG_FRAME && *frame.data == 'x' && frame.when == 9000);
		o = (struct ur_ng_options){.at = piece + frame.options, .n = ur_ng_get32(piece + 4, swapped) - 4 - frame.options};
		if (i & 2)
			CU_ASSERT_TRUE(ur_ng_next_option(&o, swapped) && o.len == 3 && !memcmp(o.value, "old", 3));
		CU_ASSERT_TRUE(ur_ng_next_option(&o, swapped) && o.len == 3 && !memcmp(o.value, "new", 3));
		CU_ASSERT_TRUE(!ur_ng_next_option(&o, swapped) && o.n == 4);
		ends_with(NULL);
	}
}

/* Interfaces have clocks of their own, of any resolution and origin. */
static void take__times(void)
{
	static const struct {
		uint8_t resolution;
		int64_t offset;
		uint64_t ticks;
		ur_time when;
	} rows[] = {
		{6, 0, 1, 1000},
		{9, 0, 1, 1},
		{0, 0, 3, 3 * UR_NS_PER_S},
		{18, 0, 5000000000, 5},
		{19, 0, 5000000000, 0},
		{127, 0, 1, 0},
		{0x80 | 1, 0, 3, 1500000000},
		{0x80 | 63, 0, 1ull << 62, 500000000},
		{0x80 | 127, 0, 1ull << 62, 500000000},
		{9, -2, 5 * UR_NS_PER_S, 3 * UR_NS_PER_S},
		{9, 1, 5, UR_NS_PER_S + 5},
	};

	for (unsigned i = 0; i < 2 * ur_array_size(rows); i++) {
		const uint64_t offset = i & 1 ? __builtin_bswap64((uint64_t)rows[i / 2].offset) : (uint64_t)rows[i / 2].offset;

		begin_file(i & 1);
		SECTION;
		WORDS(UR_NG_INTERFACE, 44, LINK(1), 0);
		ur_ng_put_option(&end, UR_NG_IF_TSRESOL, &rows[i / 2].resolution, 1);
		ur_ng_put_option(&end, UR_NG_IF_TSOFFSET, &offset, 8);
		WORDS(0, 44, UR_NG_PACKET, 32, 0, (uint32_t)(rows[i / 2].ticks >> 32), (uint32_t)rows[i / 2].ticks, 0, 0, 32);
		CU_ASSERT_TRUE_FATAL(take() && take() && take() == UR_NG_FRAME);
		CU_ASSERT_EQUAL(frame.when, rows[i / 2].when);
		ends_with(NULL);
	}
}

static void take__other_packets(void)
{
	for (unsigned i = 0; i < 2; i++) {
		begin_file(i);
		SECTION;
		WORDS(UR_NG_INTERFACE, 20, LINK(101), 6, 20);
		WORDS(UR_NG_SIMPLE_PACKET, 24, 9, 0, 0, 24); /* 8 bytes of it fit, and the interface keeps 6 */
		WORDS(UR_NG_SIMPLE_PACKET, 20, 9, 0, 20);
		WORDS(UR_NG_OLD_PACKET, 36, swapped ? 0xffff : 0xffff0000, 0, 1, 2, 2, 0, 36);
		WORDS(0x80001234, 12, 12);
		CU_ASSERT_TRUE_FATAL(take() && take() && take() == UR_NG_FRAME);
		CU_ASSERT_TRUE(frame.have == 6 && frame.len == 9 && frame.link == 101 && !frame.options && !frame.when);
		CU_ASSERT_TRUE_FATAL(take() == UR_NG_FRAME && frame.have == 4 && frame.len == 9);
		CU_ASSERT_EQUAL_FATAL(take(), UR_NG_FRAME);
		CU_ASSERT_TRUE(frame.have == 2 && frame.when == 1000 && frame.options == 32);
		ends_with(NULL);
	}
}

static void take__pcap(void)
{
	static const struct {
		uint32_t magic, version, words, have, len;
		ur_time when;
	} rows[] = {
		{0xa1b2c3d4, 4, 4, 4, 60, 2 * UR_NS_PER_S + 3000},
		{0xa1b23c4d, 4, 4, 4, 60, 2 * UR_NS_PER_S + 3},
		{0xa1b2cd34, 4, 6, 4, 60, 2 * UR_NS_PER_S + 3000},
		{0xa1b2c3d4, 3, 4, 60, 4, 2 * UR_NS_PER_S + 3000},
	};

	for (unsigned i = 0; i < 2 * ur_array_size(rows); i++) {
		begin_file(i & 1);
		WORDS(rows[i / 2].magic, swapped ? 2 << 16 | rows[i / 2].version : rows[i / 2].version << 16 | 2, 0, 0, 65535, 113);
		WORDS(2, 3, rows[i / 2].have, rows[i / 2].len);
		put_words(rows[i / 2].words - 4, (const uint32_t[2]){0});
		ur_ng_put(&end, "abcd", 4);
		CU_ASSERT_TRUE_FATAL(take() == UR_NG_OTHER && take() == UR_NG_FRAME);
		CU_ASSERT_TRUE(frame.when == rows[i / 2].when && frame.have == 4 && frame.len == 60 && frame.link == 113 && !frame.options);
		CU_ASSERT_TRUE(!memcmp(frame.data, "abcd", 4) && !ur_ng_has_blocks(reader));
		ends_with(NULL);
	}
}

/* --- as it should not be --- */

static void piece_bytes__impossible(void)
{
	static const uint32_t blocks[][7] = {
		{UR_NG_SECTION, 8, UR_NG_ORDER},
		{UR_NG_SECTION, 30, UR_NG_ORDER},
		{UR_NG_SECTION, UR_NG_BLOCK_MAX + 4, UR_NG_ORDER},
		{UR_NG_SECTION, 0xfffffffc, UR_NG_ORDER},
		{UR_NG_PACKET, 28, 0, 0, 0, 0, 28},
		{UR_NG_OLD_PACKET, 12, 12},
		{UR_NG_SIMPLE_PACKET, 12, 12},
	};

	for (unsigned i = 0; i < 2 * ur_array_size(blocks); i++) {
		begin_file(i & 1);
		SECTION;
		INTERFACE;
		put_words(7, blocks[i / 2]);
		ends_with("a block has an impossible length");
		begin_file(i & 1);
		WORDS(0xa1b2c3d4, swapped ? 0x20004 : 0x40002, 0, 0, 0, 1, 0, 0, UR_NG_BLOCK_MAX + 1 + i, 0);
		ends_with("a frame has an impossible length");
	}
}

static void take__hostile(void)
{
	for (unsigned i = 0; i < 2; i++) {
		begin_file(i);
		SECTION;
		INTERFACE;
		WORDS(UR_NG_PACKET, 36, 1, 0, 0, 0, 0, 0, 36);
		ends_with("a frame is of an interface that the file does not describe");
		begin_file(i);
		SECTION;
		INTERFACE;
		WORDS(UR_NG_PACKET, 36, 0, 0, 0, 5, 5, 0, 36);
		ends_with("a frame is longer than its block");
		begin_file(i);
		SECTION;
		INTERFACE;
		WORDS(UR_NG_PACKET, 36, 0, 0, 0, UINT32_MAX, 5, 0, 36);
		ends_with("a frame is longer than its block");
		begin_file(i);
		SECTION;
		WORDS(UR_NG_SIMPLE_PACKET, 16, 0, 16);
		ends_with("a frame is of an interface that the file does not describe");
		begin_file(i);
		SECTION;
		INTERFACE;
		SECTION; /* which has none */
		WORDS(UR_NG_SIMPLE_PACKET, 16, 0, 16);
		ends_with("a frame is of an interface that the file does not describe");
		begin_file(i);
		SECTION;
		WORDS(UR_NG_INTERFACE, 16, LINK(1), 16);
		ends_with("it has an interface that cannot be read");
	}
}

static void take__no_more_interfaces_than_there_is_room_for(void)
{
	begin_file(false);
	SECTION;
	CU_ASSERT_EQUAL(take(), UR_NG_OTHER);
	INTERFACE;
	for (unsigned i = 0; i < UR_NG_INTERFACES_MAX; i++, at -= 20)
		CU_ASSERT_EQUAL_FATAL(take(), UR_NG_OTHER);
	ends_with("it has an interface that cannot be read");
}

/* An option that is longer than what is left ends the list, and so does one that is cut off. */
static void next_option__stays_within(void)
{
	static const uint8_t list[] = {1, 0, 1, 0, 'a', 0, 0, 0, 2, 0, 5, 0, 1, 2, 3, 4};

	for (uint32_t n = 0; n <= sizeof(list); n++) {
		uint8_t *copy = malloc(n ? n : 1);
		struct ur_ng_options o = {.at = copy, .n = n};
		unsigned found = 0;

		CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
		memcpy(copy, list, n);
		while (ur_ng_next_option(&o, false))
			found++;
		CU_ASSERT_EQUAL(found, n >= 8);
		free(copy);
	}
}

static void cut_off__names_what_is_missing(void)
{
	static const char *const wrong[] = {"it is no capture in pcap or pcapng format", "its header is cut off",
					    "the last frame is cut off", "the last block is cut off"};
	for (unsigned ng = 0; ng < 2; ng++) {
		begin_file(false);
		if (ng) {
			SECTION;
			INTERFACE;
		} else {
			WORDS(0xa1b2c3d4, 0x40002, 0, 0, 0, 1, 0, 0, 4, 4, 0);
		}
		while (end.end-- > file) {
			const unsigned n = (unsigned)(end.end - file), header = ng ? 28 : 24;

			ends_with(n < 4 ? wrong[0] : n < header ? wrong[1] : n == header ? NULL : wrong[2 + ng]);
		}
	}
	begin_file(false);
	WORDS(0x12345678, 0, 0);
	ends_with(wrong[0]);
}

void ur_suite_pcapng_reader(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("pcapng_reader", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, take__what_the_writer_wrote);
	CU_ADD_TEST(s, copy_frame__keeps_its_options);
	CU_ADD_TEST(s, take__times);
	CU_ADD_TEST(s, take__other_packets);
	CU_ADD_TEST(s, take__pcap);
	CU_ADD_TEST(s, piece_bytes__impossible);
	CU_ADD_TEST(s, take__hostile);
	CU_ADD_TEST(s, take__no_more_interfaces_than_there_is_room_for);
	CU_ADD_TEST(s, next_option__stays_within);
	CU_ADD_TEST(s, cut_off__names_what_is_missing);
}
