/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/os/holder.h"

#include <stdio.h>
#include <unistd.h>

static enum ur_udp_holder find_holder(const char *table, unsigned port, unsigned *holder)
{
	enum ur_udp_holder found = UR_UDP_HOLDER_UNKNOWN;
	FILE *f = fopen(table, "re");
	unsigned p, uid;
	char line[256];

	while (f && found != UR_UDP_HOLDER_OTHER && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %*x %*x:%*x %*x:%*x %*x %u", &p, &uid) != 2 || p != port)
			continue;
		found = uid == geteuid() ? UR_UDP_HOLDER_OWN : UR_UDP_HOLDER_OTHER;
		*holder = uid;
	}
	if (f)
		fclose(f);
	return found;
}

enum ur_udp_holder ur_udp_holder(unsigned port, unsigned *uid)
{
	enum ur_udp_holder v4 = find_holder("/proc/net/udp", port, uid), v6;

	if (v4 == UR_UDP_HOLDER_OTHER)
		return v4;
	v6 = find_holder("/proc/net/udp6", port, uid);
	return v6 != UR_UDP_HOLDER_UNKNOWN ? v6 : v4;
}
