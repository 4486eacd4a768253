/* SPDX-License-Identifier: BSD-3-Clause */
#include "siblings/fetch.h"

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>

/* Of this process, whatever becomes of its engine. */
static uint64_t proof;

void ur_fetch_offer(const struct ur_own_page *own)
{
	if (getrandom(&proof, sizeof(proof), 0) != sizeof(proof))
		return; /* nothing is shown, so nobody tries */
	atomic_store(&own->page->proof, proof);
	atomic_store(&own->page->proof_at, (uintptr_t)&proof);
}

bool ur_fetch(const struct ur_sibling *s, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from, unsigned nfrom)
{
	struct iovec local[UR_FETCH_PIECES], remote[UR_FETCH_PIECES];
	size_t have = 0, want = 0;

	if (s->pid <= 0)
		return false;
	for (unsigned i = 0; i < nto; have += to[i++].len)
		local[i] = (struct iovec){to[i].at, to[i].len};
	for (unsigned i = 0; i < nfrom; want += from[i++].len)
		remote[i] = (struct iovec){(void *)(uintptr_t)from[i].at, from[i].len};
	return have == want && process_vm_readv(s->pid, local, nto, remote, nfrom, 0) == (ssize_t)want;
}

bool ur_fetch_try(const struct ur_sibling *s)
{
	uint64_t at = atomic_load(&s->page->proof_at), found = 0;
	const struct ur_piece to = {&found, sizeof(found)};
	const struct ur_bulk_seg from = {.at = at, .len = sizeof(found)};

	return at && ur_fetch(s, &to, 1, &from, 1) && found && found == atomic_load(&s->page->proof);
}

void ur_fetch_permit(const struct ur_sibling *s)
{
	if (s->pid > 0)
		prctl(PR_SET_PTRACER, s->pid, 0, 0, 0);
}
