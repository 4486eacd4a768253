/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading another process's memory (process_vm_readv(2)), where the kernel lets us: the same user, the same pid namespace, and whatever
 * Yama's ptrace_scope, a security module or a seccomp filter says. So it is tried out: each process shows an address and what stands there,
 * a random number.
 *
 * A process id names another process once its owner has ended, and other memory once its owner has executed another program. So the number
 * is read with each copy, by the same call, which reads one address space from beginning to end: bytes are believed only if they
 * come from the memory that has the number. A forked child has not: the page with the number is empty there.
 */
#ifndef UR_FETCH_H
#define UR_FETCH_H

#include "host/page.h"
#include "wire/bulk.h"

/* Another process, as its page describes it: for who cannot look at the page, which may be released. */
struct ur_owner {
	pid_t pid;
	uint64_t proof_at, proof;
};

/* Shows the others what they can try it on. */
void ur_fetch_offer(const struct ur_own_page *own);
struct ur_owner ur_owner_of(const struct ur_sibling *s);
/* Does the id still name that process, with the memory that it had? False also where its memory cannot be read. */
bool ur_owner_is_there(const struct ur_owner *o);
/* Can we read that process's memory? */
bool ur_fetch_try(const struct ur_sibling *s);
/*
 * Lets that process read our memory, where Yama's ptrace_scope is 1 and lets only ancestors (PR_SET_PTRACER). There can be one such
 * process at a time. Does nothing where there is no Yama.
 */
void ur_fetch_permit(const struct ur_sibling *s);
/* As ur_tp_config.fetch, by the kernel; false for UR_FETCHED_NOT. */
bool ur_fetch(const struct ur_sibling *s, const struct ur_piece *to, unsigned nto, const struct ur_bulk_seg *from, unsigned nfrom);

#endif
