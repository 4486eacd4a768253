/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/base/bytes.h: the copy whose end comes last, and that of few bytes. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"

void ur_suite_bytes(void);

#define SIZE 1100

static void copy_end_last__every_length(void)
{
	uint8_t from[SIZE], to[SIZE], want[SIZE];

	for (unsigned i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (unsigned len = 0; len < SIZE - 1; len++) {
		memset(to, 0xee, sizeof(to));
		memset(want, 0xee, sizeof(want));
		memcpy(want + 1, from, len);
		ur_copy_end_last(to + 1, from, len);
		CU_ASSERT_EQUAL_FATAL(memcmp(to, want, sizeof(to)), 0);
	}
}

static void copy_few__every_length(void)
{
	uint8_t from[100], to[100], want[100];

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (unsigned len = 0; len < sizeof(to) - 1; len++) {
		memset(to, 0xee, sizeof(to));
		memset(want, 0xee, sizeof(want));
		memcpy(want + 1, from, len);
		ur_copy_few(to + 1, from, len);
		CU_ASSERT_EQUAL_FATAL(memcmp(to, want, sizeof(to)), 0);
	}
}

/* --- the order: the last eight bytes lie in a page that faults when they are written, and by then all others must be there --- */

static struct {
	uint8_t *end; /* where the page begins */
	size_t page, before;
	volatile bool faulted, complete;
} order;

static void on_fault(int sig)
{
	(void)sig;
	order.complete = true;
	for (size_t i = 1; i <= order.before; i++)
		order.complete &= order.end[-(ptrdiff_t)i] == 2;
	order.faulted = true;
	mprotect(order.end, order.page, PROT_READ | PROT_WRITE);
}

static void write_across(size_t len)
{
	static uint8_t from[SIZE];

	memset(from, 2, sizeof(from));
	memset(order.end - order.page, 1, order.page + 8);
	order.before = len - 8;
	order.faulted = false;
	CU_ASSERT_EQUAL_FATAL(mprotect(order.end, order.page, PROT_NONE), 0);
	ur_copy_end_last(order.end - order.before, from, len);
	atomic_signal_fence(memory_order_seq_cst); /* the last store is not put after the look */
	CU_ASSERT_TRUE(order.faulted && order.complete);
	CU_ASSERT_EQUAL(memcmp(order.end - order.before, from, len), 0);
}

static void copy_end_last__order(void)
{
	struct sigaction ours = {.sa_handler = on_fault}, old;
	uint8_t *pages;

	order.page = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * order.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_NOT_EQUAL_FATAL(pages, MAP_FAILED);
	order.end = pages + order.page;
	CU_ASSERT_EQUAL_FATAL(sigaction(SIGSEGV, &ours, &old), 0);
	for (size_t len = 9; len < SIZE; len++)
		write_across(len);
	sigaction(SIGSEGV, &old, NULL);
	munmap(pages, 2 * order.page);
}

void ur_suite_bytes(void)
{
	CU_pSuite s = CU_add_suite("bytes", NULL, NULL);

	CU_ADD_TEST(s, copy_end_last__every_length);
	CU_ADD_TEST(s, copy_end_last__order);
	CU_ADD_TEST(s, copy_few__every_length);
}
