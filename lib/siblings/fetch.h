/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading another process's memory (process_vm_readv(2)), where the kernel lets us: the same user, the same pid namespace, and whatever
 * Yama's ptrace_scope, a security module or a seccomp filter says. So it is tried out: each process shows an address and what stands there.
 */
#ifndef UR_FETCH_H
#define UR_FETCH_H

#include "host/page.h"
#include "wire/bulk.h"

/* Shows the others what they can try it on. */
void ur_fetch_offer(const struct ur_own_page *own);
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
