/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interfaces that an address, a network or a pattern stands for. Launchers of parallel programs give all hosts one value of UROCE_DEV,
 * and interfaces have a different name on each.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "host/device/hostif.h"

struct network {
	sa_family_t family;
	uint8_t addr[16];
	unsigned bits;
};

/* An address without a length stands for itself alone. */
static bool parse_network(const char *text, struct network *n)
{
	const size_t len = strcspn(text, "/");
	char addr[INET6_ADDRSTRLEN], *end;
	unsigned long bits;

	if (len >= sizeof(addr) || (text[len] && !isdigit((unsigned char)text[len + 1])))
		return false;
	memcpy(addr, text, len);
	addr[len] = 0;
	n->family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	n->bits = n->family == AF_INET ? 32 : 128;
	if (inet_pton(n->family, addr, n->addr) != 1)
		return false;
	if (!text[len])
		return true;
	bits = strtoul(text + len + 1, &end, 10);
	if (*end || bits > n->bits)
		return false;
	n->bits = (unsigned)bits;
	return true;
}

static bool is_address(const char *what)
{
	struct network n;

	return !strchr(what, '/') && parse_network(what, &n);
}

static bool in_network(const struct sockaddr *sa, const struct network *n)
{
	const uint8_t *addr;
	uint8_t mask = (uint8_t)(0xff00 >> n->bits % 8);

	if (sa->sa_family != n->family)
		return false;
	addr = sa->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr
					: (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	return !memcmp(addr, n->addr, n->bits / 8) && (n->bits % 8 == 0 || !((addr[n->bits / 8] ^ n->addr[n->bits / 8]) & mask));
}

static bool fits(const struct ifaddrs *a, const char *pattern, const struct network *n)
{
	if (!(a->ifa_flags & IFF_UP) || !a->ifa_addr || (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
		return false;
	return n ? in_network(a->ifa_addr, n) : fnmatch(pattern, a->ifa_name, 0) == 0;
}

bool ur_hostif_is_pattern(const char *what)
{
	return (strpbrk(what, "/*?[") || is_address(what)) && !if_nametoindex(what);
}

bool ur_hostif_names_add(struct ur_hostif_names *to, const char *name)
{
	for (unsigned i = 0; i < ur_min_u32(to->n, UR_DEVICES); i++)
		if (!strcmp(to->name[i], name))
			return false;
	if (to->n < UR_DEVICES)
		snprintf(to->name[to->n], IF_NAMESIZE, "%s", name);
	to->n += to->n <= UR_DEVICES;
	return true;
}

/* eth2 before eth10. */
static int by_name(const void *a, const void *b)
{
	return strverscmp(a, b);
}

int ur_hostif_match(const char *what, struct ur_hostif_names *out, char *err, size_t errlen)
{
	const bool address = is_address(what), network = address || strchr(what, '/');
	struct ifaddrs *all = NULL;
	struct network n;

	out->n = 0;
	if (network && !parse_network(what, &n)) {
		snprintf(err, errlen, "'%s' is not a network: write it as 10.0.0.0/16 or fd00::/64", what);
		return EINVAL;
	}
	if (getifaddrs(&all)) {
		snprintf(err, errlen, "cannot list the network interfaces (%s): name one with --dev", strerror(errno));
		return ENODEV;
	}
	for (const struct ifaddrs *a = all; a; a = a->ifa_next)
		if (fits(a, what, network ? &n : NULL))
			ur_hostif_names_add(out, a->ifa_name);
	freeifaddrs(all);
	if (!out->n) {
		snprintf(err, errlen, "no network interface that is up has an address %s '%s': 'ip addr' lists the addresses",
			 address   ? "that is"
			 : network ? "in"
				   : "and a name like",
			 what);
		return ENODEV;
	}
	qsort(out->name, ur_min_u32(out->n, UR_DEVICES), IF_NAMESIZE, by_name);
	return address && out->n > 1 ? ur_hostif_ambiguous(what, out, err, errlen) : 0;
}

int ur_hostif_ambiguous(const char *what, const struct ur_hostif_names *fit, char *err, size_t errlen)
{
	snprintf(err, errlen, "'%s' matches %s and %s: choose one of them with --dev", what, fit->name[0], fit->name[1]);
	return ENODEV;
}
