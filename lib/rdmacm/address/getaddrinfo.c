/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_getaddrinfo(3) on top of getaddrinfo(3). The only thing that it asks the device is which source address goes with a destination; it
 * sends nothing. RoCE needs neither routing data nor connection data, so ai_route and ai_connect of a result are always empty.
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>

#include "rdmacm/address/addrinfo.h"
#include "rdmacm/internal.h"

#define RAI_ALL (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

/* What one call asks for. */
struct lookup {
	const struct rdma_addrinfo *hints;
	const struct ur_rai_kind *kind;
	int family;                  /* of sockets, AF_UNSPEC for any */
	bool ib;                     /* results are AF_IB */
	struct ur_rai_addr src, dst; /* of the hints */
};

static bool passive(const struct lookup *l)
{
	return l->hints->ai_flags & RAI_PASSIVE;
}

/* --- results --- */

static int copy_name(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

static bool same_family(const struct lookup *l, const struct ur_rai_addr *a, const struct ur_rai_addr *b)
{
	return l->ib || a->sa->sa_family == b->sa->sa_family;
}

/* The source of a result that has none: that of the hints, or that of the local route. */
static int put_source(const struct lookup *l, struct rdma_addrinfo *r, const struct ur_rai_addr *dst)
{
	struct ur_rai_addr src = l->src;

	if (src.len && dst->len && !same_family(l, &src, dst))
		src.len = 0;
	if (!src.len && dst->len && !(l->hints->ai_flags & RAI_NOROUTE))
		ur_rai_find_source(dst->sa, &src);
	return ur_rai_put_addr(&r->ai_src_addr, &r->ai_src_len, &src, l->ib, l->kind->port_space);
}

static int make_result(const struct lookup *l, const struct ur_rai_addr *src, const struct ur_rai_addr *dst, struct rdma_addrinfo **out)
{
	const struct ur_rai_addr *main_addr = src->len && (passive(l) || !dst->len) ? src : dst;
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return EAI_MEMORY;
	*out = r;
	r->ai_flags = l->hints->ai_flags;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one of the two addresses is there */
	r->ai_family = l->ib ? AF_IB : main_addr->sa->sa_family;
	r->ai_qp_type = l->kind->qp_type;
	r->ai_port_space = l->kind->port_space;
	if (src->len)
		err = ur_rai_put_addr(&r->ai_src_addr, &r->ai_src_len, src, l->ib, l->kind->port_space);
	else
		err = put_source(l, r, dst);
	if (err || passive(l))
		return err;
	return ur_rai_put_addr(&r->ai_dst_addr, &r->ai_dst_len, dst, l->ib, l->kind->port_space);
}

static int from_addrinfo(const struct lookup *l, const struct addrinfo *ai, struct rdma_addrinfo **out)
{
	const struct ur_rai_addr none = {.len = 0}, found = {.sa = ai->ai_addr, .len = ai->ai_addrlen};
	int err = passive(l) ? make_result(l, &found, &none, out) : make_result(l, &none, &found, out);

	if (err)
		return err;
	return copy_name(passive(l) ? &(*out)->ai_src_canonname : &(*out)->ai_dst_canonname, ai->ai_canonname);
}

/* --- where results come from --- */

static int from_node(const struct lookup *l, const char *node, const char *service, struct rdma_addrinfo **res)
{
	struct addrinfo want = {.ai_family = l->family, .ai_socktype = l->kind->socktype, .ai_protocol = l->kind->protocol}, *list, *ai;
	int err, saved;

	if (passive(l))
		want.ai_flags |= AI_PASSIVE;
	if (node)
		want.ai_flags |= AI_CANONNAME;
	if (l->hints->ai_flags & RAI_NUMERICHOST)
		want.ai_flags |= AI_NUMERICHOST;
	if (!node && l->ib)
		want.ai_family = AF_INET6; /* there is one wildcard of AF_IB, and not one for each IP version */
	err = getaddrinfo(node, service, &want, &list);
	if (err)
		return err;
	for (ai = list; ai && !err; ai = ai->ai_next) {
		err = from_addrinfo(l, ai, res);
		if (*res)
			res = &(*res)->ai_next;
	}
	saved = errno;
	freeaddrinfo(list);
	errno = saved;
	return err;
}

static bool family_fits(const struct lookup *l, const struct ur_rai_addr *a)
{
	return !a->len || l->ib || l->family == AF_UNSPEC || l->family == a->sa->sa_family;
}

/* Neither node nor service: the addresses of the hints themselves, or of the path that they bring. */
static int from_hints(const struct lookup *l, struct rdma_addrinfo **res)
{
	struct ur_rai_addr src = l->src, dst = l->dst;
	int err = 0;

	if (passive(l))
		dst.len = 0;
	if (!src.len && !dst.len && l->hints->ai_route_len)
		err = ur_rai_from_route(l->hints, &src, &dst);
	if (err)
		return err;
	if (passive(l) ? !src.len : !src.len && !dst.len)
		return EAI_NONAME;
	if (!family_fits(l, &src) || !family_fits(l, &dst) || (src.len && dst.len && !same_family(l, &src, &dst)))
		return EAI_ADDRFAMILY;
	return make_result(l, &src, &dst, res);
}

/* --- the call --- */

static int read_family(struct lookup *l)
{
	int family = l->hints->ai_family;

	if (family != AF_UNSPEC && family != AF_INET && family != AF_INET6 && family != AF_IB)
		return EAI_FAMILY;
	if (!family && l->src.len) /* results must go with it */
		family = l->src.sa->sa_family;
	l->ib = family == AF_IB;
	l->family = l->ib ? AF_UNSPEC : family;
	return 0;
}

static int read_hints(struct lookup *l)
{
	const struct rdma_addrinfo *h = l->hints;
	int err;

	if (h->ai_flags & ~RAI_ALL) {
		errno = EINVAL; /* -1 may also mean that */
		return EAI_BADFLAGS;
	}
	err = ur_rai_check_addr(h->ai_src_addr, h->ai_src_len);
	if (!err)
		err = ur_rai_check_addr(h->ai_dst_addr, h->ai_dst_len);
	if (err)
		return err;
	l->src = (struct ur_rai_addr){.sa = h->ai_src_addr, .len = h->ai_src_len};
	l->dst = (struct ur_rai_addr){.sa = h->ai_dst_addr, .len = h->ai_dst_len};
	err = read_family(l);
	if (err)
		return err;
	l->kind = ur_rai_kind_find(h->ai_qp_type, h->ai_port_space);
	return l->kind ? 0 : EAI_SOCKTYPE;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	struct lookup l = {.hints = hints ? hints : &no_hints};
	struct rdma_addrinfo *list = NULL;
	int err, saved;

	if (!res || (!node && !service && !hints))
		return ur_fail(EINVAL);
	err = read_hints(&l);
	if (!err)
		err = node || service ? from_node(&l, node, service, &list) : from_hints(&l, &list);
	if (!err) {
		*res = list;
		return 0;
	}
	saved = errno;
	rdma_freeaddrinfo(list);
	errno = saved;
	return err;
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
