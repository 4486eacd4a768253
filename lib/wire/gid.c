/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>

#include "wire/frame.h"

_Static_assert(UR_IP_TEXT >= INET6_ADDRSTRLEN, "the longest address fits");

const char *ur_gid_text(const struct ur_gid *g, char text[UR_GID_TEXT])
{
	char *to = text;

	for (unsigned i = 0; i < sizeof(g->raw); i++) {
		if (i && !(i & 1))
			*to++ = ':';
		*to++ = "0123456789abcdef"[g->raw[i] >> 4];
		*to++ = "0123456789abcdef"[g->raw[i] & 15];
	}
	*to = '\0';
	return text;
}

const char *ur_gid_ip(const struct ur_gid *g, char text[UR_IP_TEXT])
{
	return ur_gid_is_v4(g) ? inet_ntop(AF_INET, g->raw + 12, text, UR_IP_TEXT) : inet_ntop(AF_INET6, g->raw, text, UR_IP_TEXT);
}
