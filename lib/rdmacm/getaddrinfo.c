/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_getaddrinfo(3) on top of getaddrinfo(3). Routes are found later, by rdma_resolve_addr: nothing here needs the device. */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rdmacm_priv.h"

#define RAI_ALL (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

/* --- which QP type, port space and socket type belong together --- */

static const struct kind {
	int qp_type, port_space, socktype, protocol;
} kinds[] = {
	{IBV_QPT_RC, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_UD, RDMA_PS_UDP, SOCK_DGRAM, IPPROTO_UDP},
	{IBV_QPT_UD, RDMA_PS_IPOIB, SOCK_DGRAM, IPPROTO_UDP},
	{IBV_QPT_RC, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_UC, RDMA_PS_IB, SOCK_DGRAM, IPPROTO_UDP},
	{IBV_QPT_UD, RDMA_PS_IB, SOCK_DGRAM, IPPROTO_UDP},
	{IBV_QPT_XRC_SEND, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_XRC_RECV, RDMA_PS_TCP, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_XRC_SEND, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
	{IBV_QPT_XRC_RECV, RDMA_PS_IB, SOCK_STREAM, IPPROTO_TCP},
};

/* Zero in a hint means any. */
static const struct kind *find_kind(const struct rdma_addrinfo *h)
{
	for (unsigned i = 0; i < ur_array_size(kinds); i++)
		if ((!h->ai_qp_type || h->ai_qp_type == kinds[i].qp_type) && (!h->ai_port_space || h->ai_port_space == kinds[i].port_space))
			return &kinds[i];
	return NULL;
}

/* --- entries --- */

static int copy_addr(struct sockaddr **to, socklen_t *to_len, const struct sockaddr *from, socklen_t len)
{
	if (!from || !len)
		return 0;
	*to = calloc(1, sizeof(struct sockaddr_storage) > len ? sizeof(struct sockaddr_storage) : len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

static int copy_name(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

/* One result: the node's address on the side that RAI_PASSIVE says, the hint's on the other. */
static int make_entry(const struct rdma_addrinfo *h, const struct kind *k, const struct addrinfo *ai, struct rdma_addrinfo **out)
{
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	bool passive = h->ai_flags & RAI_PASSIVE;
	int err;

	if (!r)
		return EAI_MEMORY;
	*out = r;
	r->ai_flags = h->ai_flags;
	r->ai_family = ai->ai_family;
	r->ai_qp_type = k->qp_type;
	r->ai_port_space = k->port_space;
	if (passive) {
		err = copy_addr(&r->ai_src_addr, &r->ai_src_len, ai->ai_addr, ai->ai_addrlen);
		return err ? err : copy_name(&r->ai_src_canonname, ai->ai_canonname);
	}
	err = copy_addr(&r->ai_dst_addr, &r->ai_dst_len, ai->ai_addr, ai->ai_addrlen);
	if (!err)
		err = copy_name(&r->ai_dst_canonname, ai->ai_canonname);
	if (!err && h->ai_src_addr && h->ai_src_addr->sa_family == ai->ai_family)
		err = copy_addr(&r->ai_src_addr, &r->ai_src_len, h->ai_src_addr, h->ai_src_len);
	return err;
}

static int from_node(const char *node, const char *service, const struct rdma_addrinfo *h, const struct kind *k, struct rdma_addrinfo **res)
{
	struct addrinfo want = {.ai_socktype = k->socktype, .ai_protocol = k->protocol}, *list, *ai;
	int err;

	if (h->ai_flags & RAI_PASSIVE)
		want.ai_flags |= AI_PASSIVE;
	if (h->ai_flags & RAI_NUMERICHOST)
		want.ai_flags |= AI_NUMERICHOST;
	if (h->ai_flags & RAI_FAMILY)
		want.ai_family = h->ai_family;
	err = getaddrinfo(node, service, &want, &list);
	if (err)
		return err;
	for (ai = list; ai && !err; ai = ai->ai_next) {
		err = make_entry(h, k, ai, res);
		if (*res)
			res = &(*res)->ai_next;
	}
	freeaddrinfo(list);
	return err;
}

/* Neither node nor service: the addresses of the hints themselves. */
static int from_hints(const struct rdma_addrinfo *h, const struct kind *k, struct rdma_addrinfo **res)
{
	bool passive = h->ai_flags & RAI_PASSIVE;
	struct addrinfo ai = {.ai_addr = passive ? h->ai_src_addr : h->ai_dst_addr, .ai_addrlen = passive ? h->ai_src_len : h->ai_dst_len};

	if (!ai.ai_addr || !ai.ai_addrlen)
		return EAI_NONAME;
	if (ai.ai_addrlen < ur_sa_len(ai.ai_addr->sa_family) || !ur_sa_len(ai.ai_addr->sa_family))
		return EAI_FAMILY;
	ai.ai_family = ai.ai_addr->sa_family;
	return make_entry(h, k, &ai, res);
}

static int check_hints(const struct rdma_addrinfo *h, const struct kind *k)
{
	if (h->ai_flags & ~RAI_ALL)
		return EAI_BADFLAGS;
	if ((h->ai_flags & RAI_FAMILY) && h->ai_family != AF_UNSPEC && h->ai_family != AF_INET && h->ai_family != AF_INET6)
		return EAI_FAMILY;
	return k ? 0 : EAI_SOCKTYPE;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	const struct rdma_addrinfo *h = hints ? hints : &no_hints;
	const struct kind *k = find_kind(h);
	struct rdma_addrinfo *list = NULL;
	int err;

	if (!res || (!node && !service && !hints))
		return ur_fail(EINVAL);
	err = check_hints(h, k);
	if (!err)
		err = node || service ? from_node(node, service, h, k, &list) : from_hints(h, k, &list);
	if (err) {
		rdma_freeaddrinfo(list);
		return err;
	}
	*res = list;
	return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
