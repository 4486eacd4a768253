/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that nobody may touch for now: AddressSanitizer finds who does, and without it this does nothing. */
#ifndef UR_SIM_HIDE_H
#define UR_SIM_HIDE_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UR_HAVE_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(UR_HAVE_ASAN)
#include <sanitizer/asan_interface.h>
#define ur_hide(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ur_show(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define ur_hide(p, n) ((void)(p), (void)(n))
#define ur_show(p, n) ((void)(p), (void)(n))
#endif

#endif
