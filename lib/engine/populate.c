/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that may not be there, without faulting. madvise(2) with MADV_POPULATE_READ and MADV_POPULATE_WRITE says what a fault would not
 * survive; process_vm_writev(2) of the own process is a memcpy(3) that may fail.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/touch.h"
#include "engine/catch.h"
#include "engine/populate.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define TRIES 16 /* when a signal came, or the kernel was short of something */

static uintptr_t page_size(void)
{
	static _Atomic uintptr_t known;
	uintptr_t p = known;

	if (ur_unlikely(!p))
		known = p = (uintptr_t)sysconf(_SC_PAGESIZE);
	return p;
}

bool ur_populate(void *at, uint64_t len, bool write)
{
	uintptr_t page = page_size(), from = (uintptr_t)at & ~(page - 1), end = (uintptr_t)at + len;

	if (end < (uintptr_t)at || end > UINTPTR_MAX - page)
		return false;
	end = (end + page - 1) & ~(page - 1);
	for (unsigned i = 0; i < TRIES; i++) {
		if (!madvise((void *)from, end - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
			return true;
		if (errno != EINTR && errno != EAGAIN)
			return false;
	}
	return false;
}

/* An emulator of user programs takes advice that it does not know for a hint, and ignores it: nothing can be made present at NULL. */
bool ur_populate_supported(void)
{
	static _Atomic int known; /* 1: supported, 2: not */
	char here = 0;

	if (ur_unlikely(!known))
		known = ur_populate(&here, 1, true) && !ur_populate(NULL, 1, true) ? 1 : 2;
	return known == 1;
}

/* --- all that a program registers --- */

#define PIECE (64ull << 20) /* a signal does not cost more than one of these */

struct pages {
	uint8_t *at, *end;
	bool write;
};

/* Changes nothing, even if another thread writes there. A compiler may make a mere load of an OR with 0, not of this. */
static void touch_by_write(uint8_t *at)
{
	uint8_t v = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &v, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

static void touch_pages(void *arg)
{
	const struct pages *p = arg;
	uint8_t *at = p->at;

	while (at < p->end) {
		if (p->write)
			touch_by_write(at);
		else
			(void)*(volatile uint8_t *)at;
		at += page_size() - (uintptr_t)at % page_size();
	}
}

bool ur_populate_by_touch(void *at, uint64_t len, bool write)
{
	struct pages p = {.at = at, .end = (uint8_t *)((uintptr_t)at + len), .write = write};

	if (!ur_catch_start())
		return true;
	ur_catch_again();
	ur_catch_admit();
	return ur_touch_call(touch_pages, &p);
}

bool ur_populate_all(void *at, uint64_t len, bool write)
{
	bool advice = ur_populate_supported(), ok = true;

	for (uint64_t done = 0, n; ok && done < len; done += n) {
		void *piece = (void *)((uintptr_t)at + done); /* a program may name memory from NULL on */

		n = len - done < PIECE ? len - done : PIECE;
		ok = advice ? ur_populate(piece, n, write) : ur_populate_by_touch(piece, n, write);
	}
	return ok;
}

/* --- copies --- */

/*
 * The kernel copies, and says what a copy of our own would not survive: between a look at a page and its use another thread may unmap it.
 * Where a sandbox forbids that, the look is all there is.
 */
bool ur_user_copy(void *to, const void *from, uint64_t len, bool write)
{
	struct iovec local = {(void *)(uintptr_t)from, len}, remote = {to, len};
	ssize_t n = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);

	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n == (ssize_t)len;
	if (!ur_populate_all(write ? to : (void *)(uintptr_t)from, len, write))
		return false;
	memcpy(to, from, len);
	return true;
}
