/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Socket addresses and GIDs (IBTA annex A17): IPv6 as it is, IPv4 as ::ffff:a.b.c.d. An AF_IB address has the GID itself and in place of a
 * port a service id with a mask; the port is what the mask leaves of the lowest 16 bits.
 */
#include <string.h>

#include <infiniband/ib.h>

#include "base/bytes.h"
#include "rdmacm/internal.h"
#include "wire/frame.h"

bool ur_sa_gid(const struct sockaddr *sa, struct ur_gid *gid, uint16_t *port)
{
	const struct sockaddr_in *in4 = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_ib *ib = (const void *)sa;

	if (sa->sa_family == AF_IB) {
		memcpy(gid->raw, &ib->sib_addr, 16);
		*port = (uint16_t)be64toh(ib->sib_sid & ib->sib_sid_mask);
		return true;
	}
	if (sa->sa_family == AF_INET) {
		*gid = ur_gid_from_v4(in4->sin_addr.s_addr);
		*port = ntohs(in4->sin_port);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(gid->raw, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

void ur_sa_put(struct sockaddr_storage *ss, const struct ur_gid *gid, uint16_t port)
{
	struct sockaddr_in *in4 = (void *)ss;
	struct sockaddr_in6 *in6 = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	if (ur_gid_is_v4(gid)) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, gid->raw + 12, 4);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, gid->raw, 16);
	}
}

void ur_sa_put_ib(struct sockaddr_storage *ss, const struct ur_gid *gid, uint64_t service, uint64_t mask, uint16_t pkey)
{
	struct sockaddr_ib *ib = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	ib->sib_family = AF_IB;
	ib->sib_pkey = htons(pkey);
	memcpy(&ib->sib_addr, gid->raw, 16);
	ib->sib_sid = htobe64(service);
	ib->sib_sid_mask = htobe64(mask);
}

size_t ur_sa_len(int family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

void ur_sa_copy(struct sockaddr_storage *ss, const struct sockaddr *sa)
{
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, sa, ur_sa_len(sa->sa_family));
}

/* From now on the whole service id counts. */
static void set_service_port(struct sockaddr_ib *ib, uint16_t port)
{
	uint64_t sid = be64toh(ib->sib_sid & ib->sib_sid_mask);

	ib->sib_sid = htobe64((sid & RDMA_IB_IP_PS_MASK) | port);
	ib->sib_sid_mask = UINT64_MAX;
}

void ur_sa_set_port(struct sockaddr_storage *ss, uint16_t port)
{
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)ss)->sin_port = htons(port);
	else if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)ss)->sin6_port = htons(port);
	else if (ss->ss_family == AF_IB)
		set_service_port((struct sockaddr_ib *)ss, port);
}

uint32_t ur_sa_flow_label(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET6)
		return ntohl(((const struct sockaddr_in6 *)(const void *)sa)->sin6_flowinfo) & 0xfffff;
	if (sa->sa_family == AF_IB)
		return ntohl(((const struct sockaddr_ib *)(const void *)sa)->sib_flowinfo) & 0xfffff;
	return 0;
}

bool ur_gid_any(const struct ur_gid *gid)
{
	return ur_gid_is_zero(gid) || (ur_gid_is_v4(gid) && ur_get32(gid->raw + 12) == INADDR_ANY);
}

bool ur_gid_loopback(const struct ur_gid *gid)
{
	return ur_gid_is_v4(gid) ? gid->raw[12] == IN_LOOPBACKNET : memcmp(gid->raw, &in6addr_loopback, 16) == 0;
}
