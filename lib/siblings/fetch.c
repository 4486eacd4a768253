/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/fetch.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of this process, whatever becomes of its engines, in a page of its own. NULL: there is none. */
static _Atomic uint64_t *proof;

static void make_page(void)
{
	const size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	if (madvise(page, len, MADV_WIPEONFORK))
		munmap(page, len);
	else
		proof = page;
}

/* The same for all engines of the process. 0: nothing can be shown, so nobody tries. */
static uint64_t own_proof(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t number, none = 0;

	pthread_once(&once, make_page);
	if (!proof || getrandom(&number, sizeof(number), 0) != sizeof(number))
		return 0;
	return atomic_compare_exchange_strong(proof, &none, number) ? number : none;
}

void ur_fetch_offer(const struct ur_own_page *own)
{
	const uint64_t number = own_proof();

	if (!number)
		return;
	atomic_store(&own->page->proof, number);
	atomic_store(&own->page->proof_at, (uintptr_t)proof);
}

struct ur_owner ur_owner_of(const struct ur_sibling *s)
{
	return (struct ur_owner){.pid = s->pid,
				 .proof_at = atomic_load_explicit(&s->page->proof_at, memory_order_relaxed),
				 .proof = atomic_load_explicit(&s->page->proof, memory_order_relaxed)};
}

/* The number comes first: from memory that has nothing at its place nothing else is copied. */
static bool read_from(const struct ur_owner *o, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from, unsigned nfrom)
{
	struct iovec local[1 + UR_FETCH_PIECES], remote[1 + UR_FETCH_PIECES];
	size_t have = 0, want = 0;
	uint64_t found = 0;

	if (o->pid <= 0)
		return false;
	local[0] = (struct iovec){&found, sizeof(found)};
	remote[0] = (struct iovec){(void *)(uintptr_t)o->proof_at, sizeof(found)};
	for (unsigned i = 0; i < nto; have += to[i++].len)
		local[1 + i] = (struct iovec){to[i].at, to[i].len};
	for (unsigned i = 0; i < nfrom; want += from[i++].len)
		remote[1 + i] = (struct iovec){(void *)(uintptr_t)from[i].at, from[i].len};
	return have == want && process_vm_readv(o->pid, local, 1 + nto, remote, 1 + nfrom, 0) == (ssize_t)(sizeof(found) + want) && found &&
	       found == o->proof;
}

bool ur_owner_is_there(const struct ur_owner *o)
{
	return read_from(o, NULL, 0, NULL, 0);
}

bool ur_fetch(const struct ur_sibling *s, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from, unsigned nfrom)
{
	const struct ur_owner o = ur_owner_of(s);

	return read_from(&o, to, nto, from, nfrom);
}

bool ur_fetch_try(const struct ur_sibling *s)
{
	const struct ur_owner o = ur_owner_of(s);

	return ur_owner_is_there(&o);
}

void ur_fetch_permit(const struct ur_sibling *s)
{
	if (s->pid > 0)
		prctl(PR_SET_PTRACER, s->pid, 0, 0, 0);
}
