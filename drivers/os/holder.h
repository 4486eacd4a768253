/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a UDP port of this network namespace, from /proc/net/udp and /proc/net/udp6. */
#ifndef UR_HOLDER_H
#define UR_HOLDER_H

enum ur_udp_holder {
	UR_UDP_HOLDER_UNKNOWN, /* no socket is listed, or there is no /proc */
	UR_UDP_HOLDER_OWN,     /* sockets of this user only; those of the kernel are root's */
	UR_UDP_HOLDER_OTHER,
};

/* Sets *uid to the holder's user unless the holder is UNKNOWN. */
enum ur_udp_holder ur_udp_holder(unsigned port, unsigned *uid);

#endif
