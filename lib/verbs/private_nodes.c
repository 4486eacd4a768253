/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_query_gid_type in the private version node of each release of rdma-core since 34. Private are the functions that providers call, and
 * the node's number grows with a release that changes one of them; but ibv_devinfo and pyverbs call this one, and do not start where the
 * node is missing that they were built with. Only a shared library can have versions of a function.
 */
#include "verbs/internal.h"

/* Those of uroce.map; 34 is the default, and is not here. */
#define TENS(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7) X(t##8) X(t##9)
#define NODES(X) X(35) X(36) X(37) X(38) X(39) TENS(X, 4) TENS(X, 5) X(60) X(61) X(62) X(63) X(64) X(65)
#define NAME(n) "ibv_query_gid_type@IBVERBS_PRIVATE_" #n

#if defined(__has_attribute) && __has_attribute(symver) /* link-time optimization loses the other way */
#define VERSION(n) __attribute__((symver(NAME(n))))
NODES(VERSION)
#else
#define VERSION(n) __asm__(".symver uv_query_gid_type, " NAME(n));
NODES(VERSION)
#endif
__attribute__((visibility("default"))) int uv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
							     enum uv_gid_type_sysfs *type);

int uv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index, enum uv_gid_type_sysfs *type)
{
	return ibv_query_gid_type(ctx, port, index, type);
}
