/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/near.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "wire/frame.h"

struct ur_gid ur_near_gid(const struct sockaddr *a)
{
	struct ur_gid g;

	if (a->sa_family == AF_INET)
		return ur_gid_from_v4(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr);
	memcpy(g.raw, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
	return g;
}

bool ur_near_text(const struct sockaddr *a, socklen_t len, char *to, size_t room)
{
	return getnameinfo(a, len, to, (socklen_t)room, NULL, 0, NI_NUMERICHOST) == 0;
}

bool ur_near_local(const struct sockaddr *peer, socklen_t peer_len, const char *dev, struct sockaddr_storage *local)
{
	socklen_t len = sizeof(*local);
	int fd = socket(peer->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0;

	if (ok && *dev)
		ok = setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, dev, (socklen_t)strlen(dev)) == 0;
	ok = ok && connect(fd, peer, peer_len) == 0 && getsockname(fd, (struct sockaddr *)local, &len) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

bool ur_near_interface(const struct ur_gid *local, char *name, size_t room)
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i && !found; i = i->ifa_next) {
		struct ur_gid g;

		if (!i->ifa_addr || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		g = ur_near_gid(i->ifa_addr);
		found = ur_gid_eq(&g, local) && strlen(i->ifa_name) < room;
		if (found)
			strcpy(name, i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}
