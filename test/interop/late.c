/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * To be preloaded: every rdma_resolve_addr comes a second late. perftest with -R exchanges its parameters over a first connection, and then
 * its client connects again at once: a server as slow as an emulated guest listens too late for that, whatever the two sides are made of.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	typeof(rdma_resolve_addr) *next = (typeof(rdma_resolve_addr) *)dlsym(RTLD_NEXT, "rdma_resolve_addr");

	sleep(1);
	return next(id, src, dst, timeout_ms);
}
