/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rdma_getaddrinfo(3) is made of: addrinfo_kind.c knows which QP types, port spaces and services belong together, addrinfo_addr.c puts
 * addresses into results, getaddrinfo.c asks the resolver. Functions return 0, an EAI code of <netdb.h>, or -1 and errno.
 */
#ifndef UR_ADDRINFO_H
#define UR_ADDRINFO_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>

struct ur_rai_kind {
	int qp_type, port_space;
	int socktype, protocol; /* what services of this kind are called in services(5) */
};

/* Zero means any. NULL when the two do not belong together. */
const struct ur_rai_kind *ur_rai_kind_find(int qp_type, int port_space);

/* An address for one side of a result; empty when `len` is 0. */
struct ur_rai_addr {
	const struct sockaddr *sa;
	socklen_t len;
	struct sockaddr_storage own; /* what `sa` points to unless it is the caller's */
};

/* Checks an address of the hints: EAI_FAMILY, or -1 and EINVAL for one that is not there or too short. An empty one is good. */
int ur_rai_check_addr(const struct sockaddr *sa, socklen_t len);
/* The addresses of the path record that stands first in hints.ai_route. -1 and EINVAL when there is none. */
int ur_rai_from_route(const struct rdma_addrinfo *hints, struct ur_rai_addr *src, struct ur_rai_addr *dst);
/* The address that a local route gives packets to `dst`; empty when there is no device or no route. */
void ur_rai_find_source(const struct sockaddr *dst, struct ur_rai_addr *src);
/* Copies an address; with `ib` as an AF_IB one for services of `port_space`. EAI_MEMORY. */
int ur_rai_put_addr(struct sockaddr **to, socklen_t *to_len, const struct ur_rai_addr *from, bool ib, int port_space);

#endif
