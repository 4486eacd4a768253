/* SPDX-License-Identifier: BSD-3-Clause */
/* The pieces of a packet: gathered, made contiguous, counted. */
#include <CUnit/CUnit.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/catch.h"
#include "wire/pkt.h"

void ur_suite_pkt(void);

static uint8_t bytes[64], x[] = {10, 11, 12}, y[] = {20};
static struct ur_ref ref_x;
static const uint8_t whole[] = {1, 2, 3, 4, 10, 11, 12, 20, 7, 8, 9};

static struct ur_pkt make(uint32_t room)
{
	struct ur_pkt p = {.data = bytes, .len = 4, .room = room, .nseg = 2, .tail_len = 3, .tail = {7, 8, 9, 99}};

	memset(bytes, 0xee, sizeof(bytes));
	memcpy(bytes, whole, 4);
	atomic_store(&ref_x.n, 1);
	p.seg[0] = (struct ur_seg){x, sizeof(x), &ref_x};
	p.seg[1] = (struct ur_seg){y, sizeof(y), NULL};
	return p;
}

static void pkt_gather__in_order(void)
{
	struct ur_pkt p = make(sizeof(bytes)), empty = {.data = bytes};
	uint8_t to[sizeof(whole) + 1] = {[sizeof(whole)] = 0x55};

	CU_ASSERT_EQUAL(ur_pkt_frame_len(&p), sizeof(whole));
	CU_ASSERT_PTR_EQUAL(ur_pkt_gather(&p, 0, to), to + sizeof(whole));
	CU_ASSERT_EQUAL(memcmp(to, whole, sizeof(whole)), 0);
	CU_ASSERT_EQUAL(to[sizeof(whole)], 0x55);
	CU_ASSERT_EQUAL(p.nseg, 2);
	CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 1);
	CU_ASSERT_PTR_EQUAL(ur_pkt_gather(&p, 3, to), to + sizeof(whole) - 3);
	CU_ASSERT_EQUAL(memcmp(to, whole + 3, sizeof(whole) - 3), 0);
	CU_ASSERT_PTR_EQUAL(ur_pkt_gather(&empty, 0, to), to);
}

/* Memory that has gone meanwhile reads as zeros; what else is in the packet stays, and nothing else gets in. */
static void pkt_gather__what_has_gone(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const uint8_t lost[] = {1, 2, 3, 4, 0, 0, 0, 20, 7, 8, 9};
	struct ur_pkt p = make(sizeof(bytes));
	uint8_t to[sizeof(lost)];

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
	CU_ASSERT_TRUE_FATAL(ur_catch_start());
	ur_catch_admit();
	memset(at, 0xaa, 2 * page);
	munmap(at + page, page);
	p.seg[0].data = at + page - 2;
	memset(to, 0x55, sizeof(to));
	ur_pkt_gather(&p, 0, to);
	CU_ASSERT_EQUAL(memcmp(to, lost, sizeof(lost)), 0);
	CU_ASSERT_TRUE(ur_pkt_linearise(&p));
	CU_ASSERT_EQUAL(memcmp(p.data, lost, sizeof(lost)), 0);
	munmap(at, page);
}

static void pkt_hold__counts(void)
{
	struct ur_pkt p = make(sizeof(bytes)), copy = p;

	ur_pkt_hold(&p);
	CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 2);
	ur_pkt_let_go(&copy);
	CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 1);
	CU_ASSERT_EQUAL(copy.nseg, 0);
	ur_pkt_let_go(&copy);
	CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 1);
	ur_pkt_let_go(&p);
	CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 0);
}

static void pkt_linearise__fits_or_leaves_it(void)
{
	struct ur_pkt p = make(sizeof(whole) - 1);

	CU_ASSERT_FALSE(ur_pkt_linearise(&p));
	CU_ASSERT_EQUAL(p.len, 4);
	CU_ASSERT_EQUAL(p.nseg, 2);
	CU_ASSERT_EQUAL(p.tail_len, 3);
	CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 1);
	CU_ASSERT_EQUAL(bytes[4], 0xee);
	p.room++;
	for (unsigned again = 0; again < 2; again++) {
		CU_ASSERT_TRUE(ur_pkt_linearise(&p));
		CU_ASSERT_EQUAL(p.len, sizeof(whole));
		CU_ASSERT_EQUAL(p.nseg, 0);
		CU_ASSERT_EQUAL(p.tail_len, 0);
		CU_ASSERT_EQUAL(atomic_load(&ref_x.n), 0);
		CU_ASSERT_EQUAL(memcmp(bytes, whole, sizeof(whole)), 0);
		CU_ASSERT_EQUAL(bytes[sizeof(whole)], 0xee);
	}
}

/* What a driver put in beside the bytes survives a copy; memory and owner are the copy's own. */
static void pkt_copy_fields__all_but_the_memory(void)
{
	struct ur_queue *own = (struct ur_queue *)x;
	struct ur_pkt to = {.data = bytes, .len = 5, .room = 6, .home = own};
	struct ur_pkt from = {.flags = UR_PKT_BARE, .place = 7, .kind = UR_PKT_ROCE, .ip_version = 6, .ttl = 8, .tos = 9, .sport = 10,
			      .l3_off = 11, .l4_off = 12, .bth_off = 13, .src = {{1}}, .dst = {{2}}, .bth = {.psn = 14}};

	ur_pkt_copy_fields(&to, &from);
	CU_ASSERT_TRUE(to.data == bytes && to.len == 5 && to.room == 6 && to.home == own);
	CU_ASSERT_TRUE(to.flags == UR_PKT_BARE && to.place == 7 && to.kind == UR_PKT_ROCE && to.ip_version == 6);
	CU_ASSERT_TRUE(to.ttl == 8 && to.tos == 9 && to.sport == 10);
	CU_ASSERT_TRUE(to.l3_off == 11 && to.l4_off == 12 && to.bth_off == 13 && to.bth.psn == 14);
	CU_ASSERT_TRUE(to.src.raw[0] == 1 && to.dst.raw[0] == 2);
}

void ur_suite_pkt(void)
{
	CU_pSuite s = CU_add_suite("pkt", NULL, NULL);

	CU_ADD_TEST(s, pkt_gather__in_order);
	CU_ADD_TEST(s, pkt_gather__what_has_gone);
	CU_ADD_TEST(s, pkt_hold__counts);
	CU_ADD_TEST(s, pkt_linearise__fits_or_leaves_it);
	CU_ADD_TEST(s, pkt_copy_fields__all_but_the_memory);
}
