/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP messages. */
#include <CUnit/CUnit.h>

#include "wire/msg/arp.h"
#include "wire_samples.h"

void ur_suite_arp(void);

static bool parse(const uint8_t *frame, size_t len, struct ur_arp *a)
{
	struct ur_counters c = {0};
	struct ur_pkt p;
	bool ok;

	sample_load(&p, frame, len);
	ok = ur_frame_parse(&p, &c) && p.kind == UR_PKT_ARP && ur_arp_parse(&p, a);
	sample_free(&p);
	return ok;
}

static void arp_parse__captured(void)
{
	struct ur_arp a;

	CU_ASSERT_TRUE_FATAL(parse(sample_arp_request, sizeof(sample_arp_request), &a));
	CU_ASSERT_EQUAL(a.op, UR_ARP_REQUEST);
	CU_ASSERT_EQUAL(memcmp(a.smac.b, "\x52\x54\0\x99\0\x03", 6), 0);
	CU_ASSERT_EQUAL(memcmp(a.tmac.b, "\0\0\0\0\0\0", 6), 0);
	CU_ASSERT_EQUAL(memcmp(&a.sip, "\x0a\x63\0\x03", 4), 0);
	CU_ASSERT_EQUAL(memcmp(&a.tip, "\x0a\x63\0\x02", 4), 0);
	CU_ASSERT_TRUE_FATAL(parse(sample_arp_reply, sizeof(sample_arp_reply), &a));
	CU_ASSERT_EQUAL(a.op, UR_ARP_REPLY);
	CU_ASSERT_EQUAL(memcmp(a.tmac.b, "\x52\x54\0\x99\0\x03", 6), 0);
}

static void arp_parse__truncated(void)
{
	struct ur_arp a;

	for (size_t n = 14; n < sizeof(sample_arp_request); n++)
		CU_ASSERT_FALSE(parse(sample_arp_request, n, &a));
}

static void arp_parse__refused(void)
{
	static const struct {
		uint8_t off, value;
	} bad[] = {{15, 6}, {16, 0x86}, {18, 8}, {19, 16}, {21, 0}, {21, 3}, {20, 1}, {22, 0x53}};

	for (unsigned i = 0; i < ur_array_size(bad); i++) {
		uint8_t frame[sizeof(sample_arp_request)];
		struct ur_arp a;

		memcpy(frame, sample_arp_request, sizeof(frame));
		frame[bad[i].off] = bad[i].value;
		CU_ASSERT_FALSE(parse(frame, sizeof(frame), &a));
	}
}

static void arp_parse__sender_without_mac(void)
{
	uint8_t frame[sizeof(sample_arp_request)];
	struct ur_arp a;

	memcpy(frame, sample_arp_request, sizeof(frame));
	memset(frame + 22, 0, 6);
	CU_ASSERT_FALSE(parse(frame, sizeof(frame), &a));
}

static void arp_build__captured_bytes(void)
{
	static const struct {
		const uint8_t *frame;
		size_t len;
	} frames[] = {{sample_arp_request, sizeof(sample_arp_request)}, {sample_arp_reply, sizeof(sample_arp_reply)}};

	for (unsigned i = 0; i < 2; i++) {
		struct ur_mac dst, src;
		struct ur_arp a;
		struct ur_pkt p;

		CU_ASSERT_TRUE(parse(frames[i].frame, frames[i].len, &a));
		memcpy(dst.b, frames[i].frame, 6);
		memcpy(src.b, frames[i].frame + 6, 6);
		sample_room(&p, UR_PKT_ROOM);
		p.nseg = 3;
		p.tail_len = 4;
		ur_arp_build(&p, &src, &dst, 0, &a);
		CU_ASSERT_EQUAL(p.kind, UR_PKT_ARP);
		CU_ASSERT_EQUAL(ur_pkt_frame_len(&p), frames[i].len);
		CU_ASSERT_EQUAL(memcmp(p.data, frames[i].frame, frames[i].len), 0);
		sample_free(&p);
	}
}

static void arp_build__vlan(void)
{
	struct ur_mac m = {{2, 0, 0, 0, 0, 1}};
	struct ur_arp a = {.op = UR_ARP_REPLY, .smac = m, .sip = 1, .tip = 2}, back;
	struct ur_counters c = {0};
	struct ur_pkt p;

	sample_room(&p, 46);
	ur_arp_build(&p, &m, &m, 77, &a);
	CU_ASSERT_EQUAL(p.len, 46);
	CU_ASSERT_TRUE(ur_frame_parse(&p, &c));
	CU_ASSERT_EQUAL(p.vlan, 77);
	CU_ASSERT_TRUE(ur_arp_parse(&p, &back));
	CU_ASSERT_TRUE(back.sip == 1 && back.tip == 2);
	sample_free(&p);
}

void ur_suite_arp(void)
{
	CU_pSuite s = CU_add_suite("arp", NULL, NULL);

	CU_ADD_TEST(s, arp_parse__captured);
	CU_ADD_TEST(s, arp_parse__truncated);
	CU_ADD_TEST(s, arp_parse__refused);
	CU_ADD_TEST(s, arp_parse__sender_without_mac);
	CU_ADD_TEST(s, arp_build__captured_bytes);
	CU_ADD_TEST(s, arp_build__vlan);
}
